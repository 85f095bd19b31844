#include "measure/samples.h"

#include <algorithm>
#include <sstream>

namespace meshplan {

Status slowest_of_all(const std::vector<std::vector<int64_t>*>& lists, Communicator& communicator,
                      Deadline deadline) {
  std::string mine;
  for (const auto* list : lists) {
    for (int64_t ns : *list) mine += std::to_string(ns) + " ";
  }
  auto all = communicator.tell_all(mine, deadline);
  if (!all) return all.error();
  for (const std::string& text : *all) {
    std::istringstream words(text);
    for (auto* list : lists) {
      for (int64_t& ns : *list) {
        int64_t theirs = 0;
        if (words >> theirs) ns = std::max(ns, theirs);
      }
    }
  }
  return Done{};
}

}  // namespace meshplan
