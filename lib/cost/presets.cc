#include "cost/topology.h"

#include "plan/topology_limits.h"

namespace meshplan {
namespace {

// The outermost level holds every rank, whatever its size says; this is what presets write.
constexpr int64_t every_rank = 1'048'576;
// Cost of one more peer in an exchange or all_to_all, where a source gives none: at 0 an exchange
// would tie with every flat collective.
constexpr int64_t per_peer = 500;

// Hosts, or pods, of `ranks` on fast links, and what is between them.
struct Machine {
  const char* name;
  const char* inside;
  int64_t ranks;
  int64_t inside_mb_per_s;
  int64_t inside_latency_ns;
  const char* across;
  int64_t across_mb_per_s;
  int64_t across_latency_ns;
  const char* source;
};
constexpr Machine machines[] = {
    {"a100", "nvlink", 8, 235'000, 10'000, "ib", 22'500, 25'000,
     "8 GPUs a host on NVLink 3: 235 GB/s all_reduce bus bandwidth (stas00/ml-engineering, network); HDR 8 x 25 GB/s, nine tenths "
     "taken as effective; latencies as for h100"},
    {"h100", "nvlink", 8, 370'000, 10'000, "ib", 45'000, 25'000,
     "8 GPUs a host on NVLink 4: 450 GB/s a direction, about 370 on the bus; NDR 8 x 50 GB/s, about 45 effective "
     "(stas00/ml-engineering, network); 10 and 25 us a step"},
    {"h200", "nvlink", 8, 361'000, 17'900, "ib", 45'000, 25'000,
     "8 GPUs a host on NVLink 4: all_gather 361, reduce_scatter 363, all_reduce up to 481 GB/s bus bandwidth, 17.9 us flat to 512 KiB "
     "(NCCL 2.30.7, coreweave nccl-tests pull 43); NDR 8 x 50 GB/s, about 45 effective"},
    {"b200", "nvlink", 8, 682'000, 10'000, "ib", 45'000, 25'000,
     "8 GPUs a host on NVLink 5: 682 GB/s on the bus, 838 with NVLS (nccl-tests issue 212); 8 x 50 GB/s across, about 45 effective"},
    {"b300", "nvlink", 8, 682'000, 10'000, "ib", 90'000, 25'000,
     "8 GPUs a host on NVLink 5: 682 GB/s on the bus, 838 with NVLS (nccl-tests issue 212, B200); 8 x 100 GB/s across (NVIDIA's DGX B300 "
     "data sheet), nine tenths taken as effective; latencies as for h100"},
    {"gb200-nvl72", "nvlink", 72, 839'000, 10'000, "ib", 45'200, 25'000,
     "72 GPUs in one NVLink domain: 839 GB/s all_reduce bus bandwidth at 4 GiB; 45.2 GB/s a GPU over two racks, of 50 (coreweave "
     "nccl-tests pull 43); latencies as for h100"},
    {"gb200-nvl64", "nvlink", 64, 839'000, 10'000, "ib", 45'200, 25'000,
     "as clouds sell them, 64 of a rack's 72 GPUs in one NVLink domain: 839 GB/s all_reduce bus bandwidth at 4 GiB on 72; 45.2 GB/s a GPU "
     "over two racks, of 50 (coreweave nccl-tests pull 43); latencies as for h100"},
    {"gb300-nvl72", "nvlink", 72, 839'000, 10'000, "ib", 90'400, 25'000,
     "72 GPUs in one NVLink domain, NVLink 5 as in GB200: 839 GB/s all_reduce bus bandwidth at 4 GiB there (coreweave nccl-tests pull 43); "
     "100 GB/s a GPU across (NVIDIA's GB300 NVL72 data sheet), of which the share that GB200 reaches of 50; latencies as for h100"},
    {"gb300-nvl64", "nvlink", 64, 839'000, 10'000, "ib", 90'400, 25'000,
     "as clouds sell them, 64 of a rack's 72 GPUs in one NVLink domain, NVLink 5 as in GB200: 839 GB/s all_reduce bus bandwidth at 4 GiB "
     "there (coreweave nccl-tests pull 43); 100 GB/s a GPU across (NVIDIA's GB300 NVL72 data sheet), of which the share that GB200 reaches "
     "of 50; latencies as for h100"},
    {"mi300x", "xgmi", 8, 313'000, 10'000, "ib", 45'000, 25'000,
     "8 GPUs a host, full mesh of 48 GB/s a pair: 313 GB/s with all 8 (stas00/ml-engineering, network); 8 x 50 GB/s "
     "across, about 45 effective"},
    {"mi355x", "xgmi", 8, 375'600, 10'000, "ib", 45'000, 25'000,
     "8 GPUs a host, full mesh of 76.8 GB/s a pair and direction where MI300X has 64 (AMD's MI355X data sheet): mi300x's 313 GB/s with all "
     "8 (stas00/ml-engineering, network) in that proportion; 8 x 50 GB/s across, about 45 effective; latencies as for h100"},
    {"tpu-v5p", "ici", 8'960, 300'000, 5'000, "dcn", 12'500, 50'000,
     "3D torus of up to 8,960 chips, 100 GB/s a link direction (Google's TPU pages): one direction of three axes at once; the data-centre "
     "network beyond is taken as 12.5 GB/s and 50 us a chip"},
};

Topology two_levels(const Machine& machine) {
  Topology t;
  t.name = machine.name;
  t.source = machine.source;
  t.levels = {{machine.inside, machine.ranks, machine.inside_mb_per_s, machine.inside_latency_ns,
               per_peer, 100},
              {machine.across, every_rank, machine.across_mb_per_s, machine.across_latency_ns,
               per_peer, 100}};
  return t;
}

std::vector<Topology> make_presets() {
  std::vector<Topology> all;
  for (const Machine& machine : machines) {
    all.push_back(two_levels(machine));
    const std::string name = all.back().name;
    if (!name.ends_with("-nvl72")) continue;
    all.push_back(two_levels(machine));  // "gb200": a rack as it is built
    all.back().name = name.substr(0, name.find('-'));
  }
  all.push_back(uniform_topology());
  return all;
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
    return bad_input("a topology has " + number(static_cast<int64_t>(topology.levels.size())) +
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
  return Done{};
}

}  // namespace meshplan
