// Parts of a plan file, each read from its JSON value and checked alone and against the meshes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/int_math.h"
#include "json/value.h"
#include "plan/plan.h"

namespace meshplan {

// The names and sizes of a mesh, once for all that is read or written on it.
struct MeshNames {
  std::vector<std::string> names;
  std::vector<int64_t> shape;
};
[[nodiscard]] std::vector<MeshNames> names_of(const MeshTable& table);

// Of a plan's document: its "mesh", or its "universes".
[[nodiscard]] MeshTable read_meshes(const Value& root);
[[nodiscard]] PlanOptions read_options(const Value& value);
[[nodiscard]] Topology read_topology(const Value& value);
[[nodiscard]] PlanGroup read_group(const Value& value, const MeshTable& meshes);
[[nodiscard]] Totals read_totals(const Value& value);
// The notes of a redistribution, by ascending key.
[[nodiscard]] std::vector<Note> read_notes(const Value& value);
[[nodiscard]] PlannedRedistribution read_redistribution(const Value& value, const MeshTable& meshes,
                                                        const std::vector<MeshNames>& names);

template <class Named>
[[nodiscard]] Named named(const Value& value, std::optional<Named> (*parse)(std::string_view),
                          const char* what) {
  return value.must(parse(value.text()), what);
}

// Nanoseconds of the file as picoseconds, held at the largest where they were held when written.
[[nodiscard]] inline int64_t picoseconds(const Value& value) {
  return saturating_mul(value.integer(0, ns_of_ps(INT64_MAX)), 1000);
}

}  // namespace meshplan
