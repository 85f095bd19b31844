// How units cut mesh dims into digits, against every pair of ranks.
#include "transfer/level_digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "../verify/random_world.h"
#include "mesh/mesh_table.h"
#include "tensor/box.h"
#include "transfer/level_units.h"

using namespace meshplan;

namespace {

constexpr int64_t every_rank = INT64_MAX;

// The outermost level on which two ranks differ by digits.
int level_by_digits(const MeshDigits& digits, const std::vector<int64_t>& sizes, int64_t a, int64_t b) {
  const std::vector<int64_t> at = coordinates_of(a, sizes);
  const std::vector<int64_t> other = coordinates_of(b, sizes);
  int level = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    for (const LevelDigit& digit : digits[d]) {
      const int64_t below = sizes[d] / (digit.before * digit.size);
      if (at[d] / below % digit.size != other[d] / below % digit.size) level = std::max(level, digit.level);
    }
  }
  return level;
}

// The innermost level whose unit has both.
int level_by_ids(const LevelUnits& units, int64_t a, int64_t b) {
  int level = 0;
  while (units.unit(a, level) != units.unit(b, level)) ++level;
  return level;
}

void check_law(const MeshDigits& digits, const Mesh& mesh, const std::vector<int64_t>& level_ranks) {
  const LevelUnits units(level_ranks);
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  for (int64_t copy = 0; copy < mesh_copies(mesh); ++copy) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < mesh_size(mesh); ++i) ids.push_back(rank_at(*mesh.universe, position_of(mesh, copy, i)));
    for (int64_t a = 0; a < mesh_size(mesh); ++a) {
      for (int64_t b = 0; b < a; ++b)
        REQUIRE(level_by_digits(digits, sizes, a, b) == level_by_ids(units, ids[static_cast<size_t>(a)], ids[static_cast<size_t>(b)]));
    }
  }
}

// The mesh as a root of its own, on a list of the same ranks.
Mesh listed(const Mesh& mesh) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (const MeshDim& dim : mesh.dims) dims.emplace_back(dim.name, dim.size);
  auto made = make_mesh("listed", dims, materialise(mesh));
  REQUIRE(made.ok());
  return *made;
}

Mesh on_ranks(const std::vector<int64_t>& sizes, std::vector<int64_t> ranks) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
  auto made = make_mesh("mesh", dims, std::move(ranks));
  REQUIRE(made.ok());
  return *made;
}

std::vector<int64_t> random_sizes(test::Random& random) {
  std::vector<int64_t> sizes;
  int64_t ranks = 1;
  for (int64_t dims = 1 + random.below(4); dims > 0; --dims) {
    int64_t size = random.pick(std::vector<int64_t>{1, 2, 2, 3, 4, 6, 8});
    if (ranks * size > 64) size = 1;
    ranks *= size;
    sizes.push_back(size);
  }
  return sizes;
}

std::vector<int64_t> random_units(test::Random& random) {
  std::vector<int64_t> units;
  int64_t unit = 1;
  for (int64_t level = random.below(3); level > 0; --level) units.push_back(unit *= random.pick(std::vector<int64_t>{2, 3, 4, 8}));
  units.push_back(every_rank);
  return units;
}

}  // namespace

TEST_CASE("ranks in another order of dims have the digits of the transposed mesh") {
  MeshTable views;
  REQUIRE(add_root(views, "world", 16, {}, {{"a", 4}, {"b", 2}, {"c", 2}}).ok());
  REQUIRE(add_transpose(views, "turned", "world", {"b", "c", "a"}).ok());
  const std::vector<int64_t> units{8, every_rank};
  const Mesh& turned = views.meshes[1];
  const MeshDigits digits{{{1, 2, 0}}, {{1, 2, 0}}, {{1, 2, 1}, {2, 2, 0}}};
  CHECK(level_digits(turned, units) == digits);
  CHECK(level_digits(listed(turned), units) == digits);
}

TEST_CASE("where ranks sit within their innermost unit makes no digits") {
  const std::vector<int64_t> units{4, every_rank};
  const MeshDigits digits{{{1, 2, 1}}, {{1, 4, 0}}};
  CHECK(level_digits(on_ranks({2, 4}, {2, 0, 3, 1, 4, 5, 7, 6}), units) == digits);
  CHECK(level_digits(on_ranks({2, 4}, {7, 6, 5, 4, 3, 2, 1, 0}), units) == digits);
  // Another host each, with gaps.
  CHECK(level_digits(on_ranks({2, 4}, {40, 41, 42, 43, 8, 9, 10, 11}), units) == digits);
  // Ranks 4 and 3 have changed hosts.
  CHECK_FALSE(level_digits(on_ranks({2, 4}, {0, 1, 2, 4, 3, 5, 6, 7}), units));
  // Of the two rows one lies in a host, the other in two.
  CHECK_FALSE(level_digits(on_ranks({2, 2}, {0, 1, 2, 4}), units));
  // All in one host, which the ranks do not fill.
  CHECK(level_digits(on_ranks({3}, {5, 6, 7}), units) == MeshDigits{{{1, 3, 0}}});
}

TEST_CASE("random views: by strides and by every rank the same, of listed ranks too") {
  test::Random random(31);
  int by_strides = 0;
  int by_ranks = 0;
  for (int tried = 0; tried < 2'000; ++tried) {
    CAPTURE(tried);
    const std::vector<int64_t> sizes = random_sizes(random);
    const std::vector<int64_t> units = random_units(random);
    Mesh mesh = on_ranks(sizes, {});
    random.shuffle(mesh.dims);
    if (random.one_in(4)) mesh.dims.pop_back();  // copies
    const auto strides = digits_by_strides(mesh, units);
    const auto ranks = digits_by_ranks(mesh, units);
    if (strides) {
      CHECK(ranks == strides);
      ++by_strides;
    }
    if (!ranks) continue;
    check_law(*ranks, mesh, units);
    CHECK(level_digits(listed(mesh), units) == ranks);
    ++by_ranks;
  }
  CHECK(by_strides > 200);
  CHECK(by_ranks > by_strides);
}

TEST_CASE("random lists: digits exactly where some account for the units of every rank") {
  test::Random random(32);
  int cut = 0;
  int uncut = 0;
  for (int tried = 0; tried < 2'000; ++tried) {
    CAPTURE(tried);
    const std::vector<int64_t> sizes = random_sizes(random);
    const std::vector<int64_t> units = random_units(random);
    Mesh view = on_ranks(sizes, {});
    random.shuffle(view.dims);
    std::vector<int64_t> ranks = materialise(view);
    const bool has_digits = digits_by_ranks(view, units).has_value();
    // Ranks change places within their innermost unit: nothing changes.
    const int64_t inner = units.size() == 1 ? std::ssize(ranks) : std::min(units.front(), std::ssize(ranks));
    std::vector<int64_t> within(ranks.size());
    std::iota(within.begin(), within.end(), int64_t{0});
    for (auto at = within.begin(); within.end() - at >= inner; at += inner) {
      std::vector<int64_t> unit(at, at + inner);
      random.shuffle(unit);
      std::copy(unit.begin(), unit.end(), at);
    }
    for (int64_t& rank : ranks) rank = within[static_cast<size_t>(rank)];
    const auto mixed = level_digits(on_ranks(mesh_shape(view), ranks), units);
    CHECK(mixed.has_value() == has_digits);
    if (mixed) check_law(*mixed, on_ranks(mesh_shape(view), ranks), units);
    // Ranks in any order.
    random.shuffle(ranks);
    const auto any = level_digits(on_ranks(mesh_shape(view), ranks), units);
    if (any) check_law(*any, on_ranks(mesh_shape(view), ranks), units);
    ++(any ? cut : uncut);
  }
  CHECK(cut > 100);
  CHECK(uncut > 100);
}
