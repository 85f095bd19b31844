#include "plan/protocol.h"

namespace meshplan {

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
