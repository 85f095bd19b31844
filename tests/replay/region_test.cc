#include "replay/region.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace meshplan;

namespace {

// Row-major numbers of the elements of `part` within `box`, the slow way.
std::vector<int64_t> slow_offsets(const Box& part, const Box& box) {
  std::vector<int64_t> out;
  for (int64_t at = 0; at < volume(part); ++at) {
    const std::vector<int64_t> index = index_at(part, at);
    int64_t offset = 0;
    for (size_t d = 0; d < box.size(); ++d) offset = offset * width(box[d]) + (index[d] - box[d].lo);
    out.push_back(offset);
  }
  return out;
}

Box random_outer(const Box& part, std::mt19937& random) {
  Box outer = part;
  for (Interval& i : outer) {
    i.lo -= static_cast<int64_t>(random() % 3);
    i.hi += static_cast<int64_t>(random() % 3);
  }
  return outer;
}

}  // namespace

TEST_CASE("a region visits every element of the part once, in order, in both buffers") {
  constexpr unsigned seed = 20261;
  std::mt19937 random(seed);
  CAPTURE(seed);
  for (int round = 0; round < 400; ++round) {
    Box part(random() % 5);
    for (Interval& i : part) {
      i.lo = static_cast<int64_t>(random() % 4);
      i.hi = i.lo + static_cast<int64_t>(random() % 4);
    }
    const Box from = random_outer(part, random);
    const Box to = random_outer(part, random);
    CAPTURE(to_text(part));
    CAPTURE(to_text(from));
    CAPTURE(to_text(to));
    const Region region = make_region(part, from, to);
    CHECK(elements(region) == volume(part));
    std::vector<int64_t> read;
    std::vector<int64_t> written;
    for_each_run(region, [&](int64_t f, int64_t t) {
      for (int64_t i = 0; i < region.run; ++i) {
        read.push_back(f + i);
        written.push_back(t + i);
      }
    });
    CHECK(read == slow_offsets(part, from));
    CHECK(written == slow_offsets(part, to));
  }
}

TEST_CASE("packing and unpacking bring every element back, for every element size") {
  const Box box{{0, 4}, {2, 9}, {1, 4}};
  const Box part{{1, 3}, {3, 8}, {1, 3}};
  for (int64_t size : {1, 2, 4, 8}) {
    std::vector<std::byte> whole(static_cast<size_t>(volume(box) * size));
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i * 37 % 251);
    std::vector<std::byte> packed(static_cast<size_t>(volume(part) * size));
    std::vector<std::byte> back(whole.size());
    copy_region(make_region(part, box, part), whole.data(), packed.data(), size);
    copy_region(make_region(part, part, box), packed.data(), back.data(), size);
    std::vector<int64_t> held = slow_offsets(part, box);
    for (int64_t e = 0; e < volume(box); ++e) {
      const bool inside = std::find(held.begin(), held.end(), e) != held.end();
      for (int64_t b = 0; b < size; ++b) {
        const auto at = static_cast<size_t>(e * size + b);
        CHECK(back[at] == (inside ? whole[at] : std::byte{0}));
      }
    }
  }
}

TEST_CASE("going past the cache moves the same bytes, whatever their length and place") {
  for (int64_t run : {255, 256, 300, 1024, 1061}) {
    for (int64_t shift : {0, 1, 17}) {
      const Box box{{0, 5}, {0, run + 40}};
      const Box part{{1, 4}, {shift, shift + run}};
      std::vector<std::byte> whole(static_cast<size_t>(volume(box)));
      for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i * 37 % 251);
      std::vector<std::byte> kept(static_cast<size_t>(volume(part)) + 64, std::byte{9});
      std::vector<std::byte> past = kept;
      // Packed to a place that is no multiple of anything.
      copy_region(make_region(part, box, part), whole.data(), kept.data() + 3, 1);
      copy_region(make_region(part, box, part), whole.data(), past.data() + 3, 1, true);
      CHECK(kept == past);
      std::vector<std::byte> back(whole.size(), std::byte{8});
      std::vector<std::byte> around = back;
      copy_region(make_region(part, part, box), kept.data() + 3, back.data(), 1);
      copy_region(make_region(part, part, box), past.data() + 3, around.data(), 1, true);
      CHECK(back == around);
    }
  }
}

TEST_CASE("whole rows are contiguous and columns are not") {
  const Box box{{0, 8}, {0, 6}};
  CHECK(contiguous_offset({{2, 5}, {0, 6}}, box) == 12);
  CHECK(contiguous_offset({{3, 4}, {2, 5}}, box) == 20);
  CHECK_FALSE(contiguous_offset({{0, 8}, {0, 3}}, box).has_value());
  CHECK(contiguous_offset({{4, 4}, {0, 3}}, box).has_value());
  CHECK(contiguous_offset({}, {}) == 0);
}
