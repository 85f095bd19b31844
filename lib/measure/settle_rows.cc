#include <algorithm>

#include "measure/measured_file.h"

namespace meshplan {
namespace {

constexpr int64_t every_rank = 1'048'576;

// Levels alone, their numbers to be fitted: hosts, and what is between them if any row needs it.
Topology levels_of(const std::vector<MeasuredFile>& files) {
  Topology topology;
  int64_t host_ranks = 1;
  bool several = false;
  for (const MeasuredFile& file : files) {
    host_ranks = std::max(host_ranks, file.host_ranks);
    for (const FoundRow& row : file.rows) several = several || row.per_host < row.ranks;
  }
  TopologyLevel host;
  host.name = "host";
  host.ranks = several ? host_ranks : every_rank;
  host.mb_per_s = 100'000;
  host.latency_ns = 10'000;
  topology.levels = {host};
  if (several) {
    TopologyLevel between = host;
    between.name = "between";
    between.ranks = every_rank;
    topology.levels.push_back(between);
  }
  return topology;
}

// How many of the group's ranks are in one unit of each level, ranks in the order of their hosts.
std::vector<int64_t> members_of(const FoundRow& row, const Topology& topology, bool one_domain) {
  std::vector<int64_t> members;
  const size_t levels = topology.levels.size();
  for (size_t l = 0; l < levels; ++l) {
    const int64_t unit = topology.levels[l].ranks;
    int64_t here = l == 0 ? row.per_host : members.back();
    if (l + 1 == levels) {
      here = row.ranks;
    } else if (row.per_host == row.ranks || ((l > 0 || one_domain) && unit >= row.ranks)) {
      here = std::min(unit, row.ranks);
    } else if ((l > 0 || one_domain) && row.ranks % unit == 0) {
      here = unit;
    }
    members.push_back(here);
  }
  return members;
}

// nccl-tests' sendrecv: every rank sends its buffer to the next one, over every level on the way.
Traffic ring_of_sends(const MeasuredRow& row) {
  Traffic traffic;
  int64_t inside = 1;
  for (size_t l = 0; l < row.members.size(); ++l) {
    if (row.members[l] == inside) continue;
    traffic.bytes[l] = row.size_bytes;
    traffic.peers[l] = 1;
    inside = row.members[l];
  }
  return traffic;
}

}  // namespace

Result<MeasuredRows> settle_rows(const std::vector<MeasuredFile>& files,
                                 const std::optional<Topology>& base) {
  MeasuredRows settled;
  std::optional<Topology> found = base;
  for (const MeasuredFile& file : files) {
    if (!found) found = file.base;
  }
  settled.base = found ? *found : levels_of(files);
  for (const MeasuredFile& file : files) {
    for (const FoundRow& row : file.rows) {
      settled.rows.push_back(row.row);
      MeasuredRow& last = settled.rows.back();
      if (!last.members.empty()) continue;
      last.members = members_of(row, settled.base, file.one_domain);
      for (size_t l = 1; l < last.members.size(); ++l) {
        if (last.members[l] % last.members[l - 1] != 0)
          return bad_input(last.place + ": " + std::to_string(row.ranks) +
                           " ranks do not fill units of " + std::to_string(last.members[l - 1]));
      }
      if (last.op == Op::exchange) last.traffic = ring_of_sends(last);
    }
  }
  if (settled.rows.empty())
    return bad_input(
        "nothing that communicates was timed; measure with meshplan run PLAN --measure --report "
        "FILE, or with nccl-tests");
  return settled;
}

}  // namespace meshplan
