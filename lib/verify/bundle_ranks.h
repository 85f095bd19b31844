// The ranks that take part in a bundle, numbered from 0 by ascending global id, and what of them
// the levels of a topology join.
//
//     train on ranks 0-7, serve on 8-15     numbers 0 to 15
//     of a mesh all copies take part where a member is on it alone, of two meshes the first of each
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "verify/bundle_view.h"
#include "verify/units.h"

namespace meshplan::verification {

// The most ranks that are looked at one by one.
constexpr int64_t most_bundle_ranks = int64_t{1} << 18;

// One number a rank of the mesh: copy by copy, row-major in each.
struct Slots {
  std::vector<int64_t> bases;  // of the copies, as positions
  std::vector<uint32_t> ranks;
};

class BundleRanks {
 public:
  // nullopt: more than `most_bundle_ranks`, or a mesh that does not tile its world.
  [[nodiscard]] static std::optional<BundleRanks> of(const BundleView& view);

  [[nodiscard]] size_t size() const { return ids_.size(); }
  [[nodiscard]] size_t levels() const { return levels_.size(); }
  [[nodiscard]] int64_t id(uint32_t rank) const { return ids_[rank]; }
  [[nodiscard]] uint32_t number_of(int64_t id) const;
  // The innermost level whose unit holds both.
  [[nodiscard]] size_t level_of(uint32_t a, uint32_t b) const;
  // `across`: the first copy alone.
  [[nodiscard]] const Slots& slots(const Mesh& mesh, bool across) const {
    return slots_.at({&mesh, across});
  }

 private:
  std::vector<int64_t> ids_;
  std::vector<int64_t> levels_;  // ranks of a unit
  std::map<std::pair<const Mesh*, bool>, Slots> slots_;
};

}  // namespace meshplan::verification
