// How units of levels cut the dims of a mesh: every dim into digits, each on one level.
//
//     hosts of 4, mesh a 2 x b 8         a: 2 across hosts      b: 2 across hosts, 4 inside
//     the same ranks as b 8 x a 2        the same digits: ranks 0 8 1 9 2 10 ...
//
// Law: two ranks of one copy of the mesh share a unit of a level exactly if they differ on no digit
// of a level further out. So only units matter, and not where in its innermost unit a rank sits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mesh/mesh.h"

namespace meshplan {

// A sub-axis of a mesh dim that lies on one level: ranks that differ only on it are in one unit of
// `level` and in different ones below it.
struct LevelDigit {
  int64_t before = 1;
  int64_t size = 1;
  int level = 0;
  bool operator==(const LevelDigit&) const = default;
};
// By mesh dim, major first; neighbours of one level are one digit, and none has size 1.
using MeshDigits = std::vector<std::vector<LevelDigit>>;

// Of a world whose ranks are not listed.
constexpr int64_t most_ranks_cut = 1'048'576;

// nullopt: units cut the mesh, or copies of it, in no such way. It is told by strides where ids are
// consecutive and units cut these cleanly; else by every rank, of up to `most_ranks_cut`.
[[nodiscard]] std::optional<MeshDigits> level_digits(const Mesh& mesh,
                                                     std::span<const int64_t> level_ranks);
// Told by strides alone; by every rank, O(world).
[[nodiscard]] std::optional<MeshDigits> digits_by_strides(const Mesh& mesh,
                                                          std::span<const int64_t> level_ranks);
[[nodiscard]] std::optional<MeshDigits> digits_by_ranks(const Mesh& mesh,
                                                        std::span<const int64_t> level_ranks);

}  // namespace meshplan
