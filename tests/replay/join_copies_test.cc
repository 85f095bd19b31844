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
