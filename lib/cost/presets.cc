#include "cost/topology.h"

#include "plan/topology_limits.h"

namespace meshplan {
namespace {

// The outermost level holds every rank, whatever its size says; this is what presets write.
constexpr int64_t every_rank = 1'048'576;
// Cost of one more peer in an exchange or all_to_all, where a source gives none: at 0 an exchange
// would tie with every flat collective.
constexpr int64_t per_peer = 500;

// GPUs of a host or rack on fast links, and what is between them; `peer_mb_per_s` and `peer_bytes`
// as TopologyLevel has them.
struct Machine {
  const char* name;
  const char* inside;
  int64_t ranks;
  int64_t inside_mb_per_s;
  int64_t inside_peer_mb_per_s;
  int64_t inside_peer_bytes;
  int64_t switch_mb_per_s;
  int64_t across_mb_per_s;
  int64_t across_peer_mb_per_s;
  const char* source;
};

constexpr int64_t to_64_mib = int64_t{64} << 20;
constexpr Machine nvidia[] = {
    {"a100", "nvlink", 8, 235'000, 53'000, to_64_mib, 0, 22'500, 11'700,
     "8 GPUs a host on NVLink 3: 235 GB/s all_reduce bus bandwidth, no reduction by switches; HDR 8 x 25 GB/s, nine tenths taken as "
     "effective (stas00/ml-engineering, network); one peer: as h100's share of its links"},
    {"h100", "nvlink", 8, 362'000, 82'000, to_64_mib, 551'000, 48'300, 25'200,
     "8 GPUs a host on NVLink 4, NDR 8 x 50 GB/s: bus bandwidths (362 inside, 482 with NVLS, 48.3 across) and what one peer reaches (82 "
     "inside up to 64 MiB, 25.2 across) as measured on 10 hosts (xxrjun/nccl-tests-cluster)"},
    {"h200", "nvlink", 8, 362'000, 82'000, to_64_mib, 550'000, 48'300, 25'200,
     "8 GPUs a host on NVLink 4: all_gather 361, reduce_scatter 363, all_reduce up to 481 GB/s bus bandwidth (NCCL 2.30.7, coreweave "
     "nccl-tests pull 43); NDR 8 x 50 GB/s and one peer as h100"},
    {"b200", "nvlink", 8, 682'000, 154'000, to_64_mib, 958'000, 48'300, 25'200,
     "8 GPUs a host on NVLink 5: 682 GB/s on the bus, 838 with NVLS (nccl-tests issue 212); 8 x 50 GB/s across as h100; one peer inside: "
     "as h100's share of its links"},
    {"b300", "nvlink", 8, 682'000, 154'000, to_64_mib, 958'000, 96'600, 50'400,
     "8 GPUs a host on NVLink 5 as b200: 682 GB/s on the bus, 838 with NVLS (nccl-tests issue 212); 8 x 100 GB/s across (NVIDIA's DGX "
     "B300 data sheet), of which and of one peer the shares that h100 reaches"},
    {"gb200-nvl72", "nvlink", 72, 682'000, 154'000, to_64_mib, 851'000, 45'200, 23'600,
     "72 GPUs in one NVLink domain: 839 GB/s all_reduce bus bandwidth at 4 GiB, 45.2 GB/s a GPU over two racks, of 50 (coreweave "
     "nccl-tests pull 43); rings inside as b200 (nccl-tests issue 212); one peer: as h100's share"},
    {"gb200-nvl64", "nvlink", 64, 682'000, 154'000, to_64_mib, 851'000, 45'200, 23'600,
     "as clouds sell them, 64 of a rack's 72 GPUs in one NVLink domain: 839 GB/s all_reduce bus bandwidth at 4 GiB on 72, 45.2 GB/s a GPU "
     "over two racks, of 50 (coreweave nccl-tests pull 43); rings inside as b200 (nccl-tests issue 212); one peer: as h100's share"},
    {"gb300-nvl72", "nvlink", 72, 682'000, 154'000, to_64_mib, 851'000, 90'400, 47'200,
     "72 GPUs in one NVLink domain as GB200: 839 GB/s all_reduce bus bandwidth at 4 GiB there (coreweave nccl-tests pull 43); rings inside "
     "as b200 (nccl-tests issue 212); 100 GB/s a GPU across (NVIDIA's GB300 NVL72 data sheet), of which the share that GB200 reaches of "
     "50; one peer: as h100's share"},
    {"gb300-nvl64", "nvlink", 64, 682'000, 154'000, to_64_mib, 851'000, 90'400, 47'200,
     "as clouds sell them, 64 of a rack's 72 GPUs in one NVLink domain as GB200: 839 GB/s all_reduce bus bandwidth at 4 GiB there "
     "(coreweave nccl-tests pull 43); rings inside as b200 (nccl-tests issue 212); 100 GB/s a GPU across (NVIDIA's GB300 NVL72 data "
     "sheet), of which the share that GB200 reaches of 50; one peer: as h100's share"},
};
constexpr Machine amd[] = {
    {"mi300x", "xgmi", 8, 313'000, 48'000, 0, 0, 48'300, 25'200,
     "8 GPUs a host, full mesh of 48 GB/s a pair (rocm.blogs.amd.com, mi300x-rccl-xgmi): 313 GB/s with all 8 (stas00/ml-engineering, "
     "network); 8 x 50 GB/s across and one peer there as h100"},
    {"mi355x", "xgmi", 8, 375'600, 57'600, 0, 0, 48'300, 25'200,
     "8 GPUs a host, full mesh of 76.8 GB/s a pair and direction where MI300X has 64 (AMD's MI355X data sheet): mi300x's 48 GB/s a pair "
     "(rocm.blogs.amd.com, mi300x-rccl-xgmi) and 313 with all 8 (stas00/ml-engineering, network) in that proportion; 8 x 50 GB/s "
     "across and one peer there as h100"},
};

// A collective library: its protocols, the last of which exchanges take with a hop a peer.
struct Library {
  const char* source;
  std::vector<Protocol> protocols;
};
Library nccl() {
  return {
      "; of NCCL: starts and hops, steps of trees (5.0, 8.5, 14.0 us across hosts) and of switches (NVLS_TREE: 25 us and 14 a step), LL at "
      "about 1/8 inside and 1/19 across and LL128 at 0.92 and 0.76 of Simple: its tuning table for H100 (2.27.5, meta-pytorch/autoparallel); "
      "trees at 5/6 of a ring, 95 and 94 % in all_to_all: 2.29.2 on H100 (xxrjun/nccl-tests-cluster)",
      {{"LL", 6'600, true, 0, {{1'000, 1'250, 1'000, 1'040}, {2'700, 526, 5'000, 438}}},
       {"LL128", 14'000, true, 0, {{1'900, 9'200, 1'900, 7'660}, {4'000, 7'600, 8'500, 6'330}}},
       {"Simple",
        8'400,
        true,
        25'000,
        {{3'400, 10'000, 3'400, 8'330}, {14'000, 10'000, 14'000, 8'330}}}}};
}
Library rccl() {
  return {
      "; of RCCL: starts of LL and Simple in its tuning table (ROCm/rccl, graph/tuning.cc); hops, steps and shares as those of NCCL for H100 "
      "(2.27.5, meta-pytorch/autoparallel; 2.29.2, xxrjun/nccl-tests-cluster)",
      {{"LL", 12'000, true, 0, {{1'000, 1'250, 1'000, 1'040}, {2'700, 526, 5'000, 438}}},
       {"Simple",
        17'000,
        true,
        0,
        {{3'400, 10'000, 3'400, 8'330}, {14'000, 10'000, 14'000, 8'330}}}}};
}

Topology two_levels(const Machine& machine, const Library& library) {
  constexpr int64_t inside_percent = 95;
  constexpr int64_t across_percent = 94;
  Topology t;
  t.name = machine.name;
  t.source = std::string(machine.source) + library.source;
  t.protocols = library.protocols;
  // An exchange takes a hop a peer, as a ring does: then none is cheaper than the ring that moves
  // the same boxes.
  const Protocol& last = library.protocols.back();
  const int64_t inside = last.levels[0].hop_ns;
  const int64_t across = last.levels[1].hop_ns;
  t.levels = {{machine.inside, machine.ranks, machine.inside_mb_per_s, last.base_ns + inside,
               inside, inside_percent, machine.inside_peer_mb_per_s, machine.inside_peer_bytes,
               machine.switch_mb_per_s},
              {"ib", every_rank, machine.across_mb_per_s, last.base_ns + across, across,
               across_percent, machine.across_peer_mb_per_s}};
  if (machine.switch_mb_per_s == 0) t.protocols.back().switch_ns = 0;
  return t;
}

// No library of protocols is known there.
Topology tpu_v5p() {
  Topology t;
  t.name = "tpu-v5p";
  t.source =
      "3D torus of up to 8,960 chips, 100 GB/s a link direction (Google's TPU pages): one direction of three axes at once, 5 us a step; the "
      "data-centre network beyond is taken as 12.5 GB/s and 50 us a chip, a further peer as 0.5 us";
  t.levels = {{"ici", 8'960, 300'000, 5'000, per_peer, 100},
              {"dcn", every_rank, 12'500, 50'000, per_peer, 100}};
  return t;
}

std::vector<Topology> make_presets() {
  std::vector<Topology> all;
  for (const Machine& machine : nvidia) {
    all.push_back(two_levels(machine, nccl()));
    const std::string name = all.back().name;
    if (!name.ends_with("-nvl72")) continue;
    all.push_back(all.back());  // "gb200": a rack as it is built
    all.back().name = name.substr(0, name.find('-'));
  }
  for (const Machine& machine : amd) all.push_back(two_levels(machine, rccl()));
  all.push_back(tpu_v5p());
  all.push_back(uniform_topology());
  return all;
}

Status check_shares(const Topology& topology) {
  for (const Protocol& protocol : topology.protocols) {
    for (size_t l = 0; l < protocol.levels.size() && l < topology.levels.size(); ++l) {
      const ProtocolLevel& at = protocol.levels[l];
      const int64_t least = least_share(topology.levels[l].mb_per_s);
      for (const int64_t share : {at.share, at.tree_share, at.far_share}) {
        if (share < least)
          return bad_input("protocol '" + protocol.name + "' has a share of " +
                           std::to_string(share) + " over level " + std::to_string(l) +
                           ", less than " + std::to_string(least) + ", which comes to 1 MB/s");
      }
    }
  }
  return Done{};
}

const std::vector<Topology>& presets() {
  static const std::vector<Topology> all = make_presets();
  return all;
}

}  // namespace

Topology uniform_topology() {
  Topology t;
  t.name = "uniform";
  t.source = "no machine: one level for comparing plans by bytes and steps";
  t.levels = {{"link", every_rank, 100'000, 10'000, per_peer, 100}};
  return t;
}

std::optional<Topology> topology_preset(std::string_view name) {
  for (const Topology& t : presets()) {
    if (t.name == name) return t;
  }
  return std::nullopt;
}

const std::vector<std::string>& topology_preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Topology& t : presets()) all.push_back(t.name);
    return all;
  }();
  return names;
}

Status check_topology(const Topology& topology) {
  auto number = [](int64_t value) { return std::to_string(value); };
  if (topology.levels.empty()) return bad_input("a topology needs at least one level");
  if (topology.levels.size() > 8)
    return bad_input("a topology has " + number(std::ssize(topology.levels)) +
                     " levels, the most is 8");
  for (size_t i = 0; i < topology.levels.size(); ++i) {
    const TopologyLevel& level = topology.levels[i];
    std::string where = "level " + number(static_cast<int64_t>(i)) + " ('" + level.name + "')";
    if (level.ranks < 1)
      return bad_input(where + " holds " + number(level.ranks) + " ranks, the least is 1");
    if (i > 0 && level.ranks < topology.levels[i - 1].ranks) {
      return bad_input(where + " holds " + number(level.ranks) + " ranks, fewer than the " +
                       number(topology.levels[i - 1].ranks) +
                       " of the level inside it: list levels from the inside out");
    }
    if (i > 0 && level.ranks % topology.levels[i - 1].ranks != 0 &&
        i + 1 < topology.levels.size()) {
      return bad_input(where + " holds " + number(level.ranks) +
                       " ranks, which is not a multiple of the " +
                       number(topology.levels[i - 1].ranks) + " of the level inside it");
    }
    if (level.mb_per_s < 1 || level.mb_per_s > max_mb_per_s) {
      return bad_input(where + " has a bandwidth of " + number(level.mb_per_s) +
                       " MB/s, not within 1 and 1000000000000");
    }
    if (level.latency_ns < 0 || level.latency_ns > max_latency_ns) {
      return bad_input(where + " has a latency of " + number(level.latency_ns) +
                       " ns, not within 0 and 1000000000000");
    }
    if (level.per_peer_ns < 0 || level.per_peer_ns > max_per_peer_ns) {
      return bad_input(where + " has per_peer_ns " + number(level.per_peer_ns) +
                       ", not within 0 and 1000000000");
    }
    if (level.exchange_percent < 1 || level.exchange_percent > 100) {
      return bad_input(where + " has exchange_percent " + number(level.exchange_percent) +
                       ", not within 1 and 100");
    }
  }
  return check_shares(topology);
}

}  // namespace meshplan
