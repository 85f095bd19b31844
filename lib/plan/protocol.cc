#include "plan/protocol.h"

#include <algorithm>

namespace meshplan {

std::optional<Op> unserved_op(const std::vector<Protocol>& protocols) {
  for (const Op op :
       {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all, Op::exchange}) {
    const auto any = [op](const Protocol& p) { return serves(p, op); };
    const auto large = [op](const Protocol& p) { return serves(p, op) && p.most_bytes == 0; };
    if (row_of(op).pays_per_peer && std::none_of(protocols.begin(), protocols.end(), any)) continue;
    if (std::none_of(protocols.begin(), protocols.end(), large)) return op;
  }
  return std::nullopt;
}

std::vector<Protocol> nccl_protocols(size_t levels) {
  struct Row {
    const char* name;
    int64_t base_ns, inside_ns, across_ns, share;
  };
  constexpr Row rows[] = {{"LL", 6600, 600, 2700, whole_share / 2},
                          {"LL128", 14000, 1900, 4000, whole_share * 15 / 16},
                          {"Simple", 8400, 3400, 14000, whole_share}};
  std::vector<Protocol> all;
  for (const Row& row : rows) {
    Protocol& protocol = all.emplace_back();
    protocol.name = row.name;
    protocol.base_ns = row.base_ns;
    for (size_t l = 0; l < levels; ++l)
      protocol.levels.push_back({l == 0 ? row.inside_ns : row.across_ns, row.share});
  }
  return all;
}

}  // namespace meshplan
