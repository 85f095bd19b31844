// The redistributions of a plan file, read one after another.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "plan/read_parts.h"

namespace meshplan {

class RedistributionList {
 public:
  // Reads the next element: a redistribution, or {"id", "count", "same_as"} and notes ("x-..."),
  // which repeats an earlier one that is written out.
  void add(const Value& value, const MeshTable& meshes, const std::vector<MeshNames>& names);

  [[nodiscard]] std::vector<PlannedRedistribution> take() { return std::move(list_); }

 private:
  // The index of the redistribution that a repeat names.
  [[nodiscard]] size_t first_named(const Value& value) const;

  std::vector<PlannedRedistribution> list_;
  std::vector<size_t> firsts_;  // of each the one that is written out
  std::unordered_map<std::string, size_t> by_id_;
};

}  // namespace meshplan
