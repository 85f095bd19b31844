// Values in a room stay where they are, also when the room they were put into is gone.
#include "base/room.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

using namespace meshplan;

namespace {

std::vector<int64_t> counting(size_t count, int64_t from) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

bool same(std::span<const int64_t> a, const std::vector<int64_t>& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace

TEST_CASE("values of any number stay where they are") {
  Room room;
  std::vector<std::span<const int64_t>> kept;
  std::vector<std::vector<int64_t>> values;
  for (size_t k = 0; k < 200; ++k) {
    values.push_back(counting(k * k % 9'001, static_cast<int64_t>(k)));
    kept.push_back(room.keep(std::span<const int64_t>(values.back())));
    if (k % 3 == 0) CHECK(*room.keep(static_cast<uint8_t>(k)) == k);  // the next is aligned all the same
  }
  for (size_t k = 0; k < kept.size(); ++k) {
    REQUIRE(same(kept[k], values[k]));
    REQUIRE((kept[k].empty() || reinterpret_cast<uintptr_t>(kept[k].data()) % alignof(int64_t) == 0));
  }
}

TEST_CASE("copies share what stands and add beside each other") {
  std::span<const int64_t> before, in_one, in_other;
  Room last;
  {
    Room one;
    before = one.keep(std::span<const int64_t>(counting(5, 10)));
    Room other = one;
    in_one = one.keep(std::span<const int64_t>(counting(5, 20)));
    in_other = other.keep(std::span<const int64_t>(counting(5, 30)));
    CHECK(in_one.data() != in_other.data());
    last = other;
    other = {};
    CHECK(same(in_one, counting(5, 20)));
    Room moved = std::move(one);
    CHECK(same(in_one, counting(5, 20)));
    CHECK(same(moved.keep(std::span<const int64_t>(counting(5, 40))), counting(5, 40)));
    CHECK(same(in_one, counting(5, 20)));
  }
  CHECK(same(before, counting(5, 10)));
  CHECK(same(in_other, counting(5, 30)));
}
