#include "copy/region.h"

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

TEST_CASE("going past the cache moves the same bytes, whatever their length and place, and no others") {
  constexpr unsigned seed = 20262;
  std::mt19937 random(seed);
  CAPTURE(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  // Every run from 1 to 1100 bytes, some long ones, and whole lines at every distance of lines.
  std::vector<int64_t> runs{4032, 4096, 4100, 8191, 8192, 8256, 9000};
  for (int64_t run = 1; run <= 1100; ++run) runs.push_back(run);
  for (int64_t run : {256, 320, 512, 960, 1024, 1088, 2048, 4096}) runs.insert(runs.end(), 20, run);
  for (int64_t run : runs) {
    // 1 to 3 blocks of 1 to 40 rows of one run, with or without gaps between runs and between blocks, in both buffers.
    const bool lines = run % 64 == 0 && below(4) != 0;
    auto gap = [&] { return below(3) == 0 ? 0 : lines ? 64 * below(9) : below(500); };
    const int64_t rows = 1 + below(40);
    const int64_t blocks = 1 + below(3);
    const int64_t from_row = run + gap();
    const int64_t to_row = run + gap();
    const int64_t from_block = from_row * rows + gap();
    const int64_t to_block = to_row * rows + gap();
    const int64_t from_offset = lines ? 64 * below(3) : below(70);
    const int64_t to_offset = lines ? 64 * below(3) : below(70);
    const Region region{{{blocks, from_block, to_block}, {rows, from_row, to_row}}, run, from_offset, to_offset};
    CAPTURE(run);
    CAPTURE(rows);
    CAPTURE(blocks);
    CAPTURE(from_row);
    CAPTURE(to_row);
    CAPTURE(from_offset);
    CAPTURE(to_offset);
    std::vector<std::byte> source(static_cast<size_t>(from_offset + blocks * from_block + 64));
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    // The target starts at a line, as buffers of a replay do, or somewhere.
    std::vector<std::byte> memory(static_cast<size_t>(to_offset + blocks * to_block + 256), std::byte{9});
    const auto place = reinterpret_cast<uintptr_t>(memory.data());
    std::byte* to = memory.data() + (64 - place % 64) + (lines ? 0 : below(64));
    std::vector<std::byte> expected = memory;
    std::byte* slow = expected.data() + (to - memory.data());
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < run; ++i) {
          slow[to_offset + block * to_block + row * to_row + i] =
              source[static_cast<size_t>(from_offset + block * from_block + row * from_row + i)];
        }
      }
    }
    copy_region(region, source.data(), to, 1, true);
    CHECK(memory == expected);
    std::fill(memory.begin(), memory.end(), std::byte{9});
    copy_region(region, source.data(), to, 1, false);
    CHECK(memory == expected);
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
