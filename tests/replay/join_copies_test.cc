#include "replay/join_copies.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>

#include "replay/host_device.h"

using namespace meshplan;

namespace {

// Copies of parts of one box into another buffer, joined where they can be, do what they do one by one.
size_t check_joined(const std::vector<Box>& parts, const Box& box, int64_t gap) {
  std::vector<int16_t> source(static_cast<size_t>(volume(box)));
  std::iota(source.begin(), source.end(), int16_t{1});
  int64_t room = 0;
  for (const Box& part : parts) room += volume(part) + gap;
  std::vector<int16_t> apart(static_cast<size_t>(room), 0);
  std::vector<int16_t> together = apart;
  auto ops_into = [&](std::vector<int16_t>& to, bool join) {
    std::vector<LocalOp> ops;
    auto* at = reinterpret_cast<std::byte*>(to.data());
    for (const Box& part : parts) {
      LocalOp op;
      op.dtype = DType::int16;
      op.from = reinterpret_cast<const std::byte*>(source.data());
      op.to = at;
      op.region = make_region(part, box, part);
      at += (volume(part) + gap) * 2;
      if (!join || ops.empty() || !join_copies(ops.back(), op)) ops.push_back(op);
    }
    return ops;
  };
  const auto one_by_one = ops_into(apart, false);
  const auto joined = ops_into(together, true);
  for (const LocalOp& op : one_by_one) do_on_host(op);
  for (const LocalOp& op : joined) do_on_host(op);
  CHECK(apart == together);
  std::fill(together.begin(), together.end(), int16_t{0});
  for (LocalOp op : joined) {
    read_in_order(op);
    do_on_host(op);
  }
  CHECK(apart == together);
  return joined.size();
}

}  // namespace

TEST_CASE("columns for many ranks are one copy") {
  const Box box{{0, 8}, {0, 12}};
  std::vector<Box> columns;
  for (int64_t c = 0; c < 12; c += 3) columns.push_back({{0, 8}, {c, c + 3}});
  CHECK(check_joined(columns, box, 0) == 1);
  CHECK(check_joined(columns, box, 5) == 1);
  // The last is narrower: a copy of its own.
  columns.push_back({{0, 8}, {10, 12}});
  CHECK(check_joined(columns, box, 0) == 2);
}

TEST_CASE("rows that follow each other are one run, whatever their number") {
  const Box box{{0, 9}, {0, 4}};
  CHECK(check_joined({{{0, 2}, {0, 4}}, {{2, 7}, {0, 4}}, {{7, 9}, {0, 4}}}, box, 0) == 1);
}

namespace {

// As the threads of a GPU may do it: all is read before anything is written.
void do_at_once(const LocalOp& op) {
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> runs;
  const int64_t size = element_bytes(op.dtype);
  for_each_run(op.region, [&](int64_t from, int64_t to) {
    const std::byte* at = op.from + from * size;
    runs.emplace_back(op.to + to * size, std::vector<std::byte>(at, at + op.region.run * size));
  });
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) std::copy(run->second.begin(), run->second.end(), run->first);
}

}  // namespace

TEST_CASE("a copy of what the one before it has written is not joined with it, however alike their distances") {
  std::vector<int16_t> memory(64);
  std::iota(memory.begin(), memory.end(), int16_t{1});
  auto copy = [&](int64_t from, int64_t to) {
    LocalOp op;
    op.dtype = DType::int16;
    op.from = reinterpret_cast<const std::byte*>(memory.data() + from);
    op.to = reinterpret_cast<std::byte*>(memory.data() + to);
    op.region.run = 8;
    return op;
  };
  // A slice of a box, and what is packed of it: 0 -> 16 -> 32.
  LocalOp last = copy(0, 16);
  CHECK_FALSE(join_copies(last, copy(16, 32)));
  CHECK_FALSE(join_copies(last, copy(17, 40)));
  CHECK(last.region.dims.empty());
  CHECK(join_copies(last, copy(8, 24)));  // the other half of it
}

TEST_CASE("copies from and to one memory, joined where they can be and done at once, do what they do one after the other") {
  std::mt19937 random(11);
  size_t joined = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int16_t> source(48);
    std::iota(source.begin(), source.end(), int16_t{1});
    std::vector<int16_t> apart = source;
    std::vector<int16_t> together = source;
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    const int64_t run = 1 + below(3);
    const int64_t rows = 1 + below(2);
    const int64_t step_from = below(5);
    const int64_t step_to = below(5);
    int64_t from = below(12);
    int64_t to = below(12);
    std::vector<LocalOp> ops;
    for (int i = 0; i < 4; ++i) {
      LocalOp op;
      op.dtype = DType::int16;
      op.region.run = run;
      if (rows > 1) op.region.dims = {{rows, run + 1, run + 2}};
      op.from = reinterpret_cast<const std::byte*>(apart.data() + from);
      op.to = reinterpret_cast<std::byte*>(apart.data() + to);
      const bool overlaps = from < to + rows * (run + 2) && to < from + rows * (run + 1);
      if (!overlaps) {
        do_on_host(op);
        op.from = reinterpret_cast<const std::byte*>(together.data() + from);
        op.to = reinterpret_cast<std::byte*>(together.data() + to);
        if (ops.empty() || !join_copies(ops.back(), op)) {
          ops.push_back(op);
        } else {
          ++joined;
        }
      }
      from += random() % 8 == 0 ? 1 : step_from;
      to += random() % 8 == 0 ? 1 : step_to;
    }
    for (const LocalOp& op : ops) do_at_once(op);
    CHECK(apart == together);
  }
  CHECK(joined > 1000);
}

TEST_CASE("whatever is joined does the same as its parts") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const Box box{{0, 6}, {0, 5}, {0, 4}};
    std::vector<Box> parts;
    for (int i = 0; i < 5; ++i) {
      Box part;
      for (const Interval& side : box) {
        const auto lo = static_cast<int64_t>(random() % static_cast<uint64_t>(side.hi));
        part.push_back({lo, lo + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(side.hi - lo))});
      }
      const auto times = random() % 3;
      parts.push_back(part);
      for (size_t t = 0; t < times && part[1].hi < box[1].hi; ++t) {
        part[1].lo += 1;
        part[1].hi += 1;
        parts.push_back(part);
      }
    }
    (void)check_joined(parts, box, static_cast<int64_t>(random() % 3));
  }
}
