// What only a GPU has the memory and the speed for: boxes whose numbers of elements and bytes do not fit in 32 bits.
#include <doctest/doctest.h>

#include "copy/region.h"
#include "replay/data.h"
#include "replay_nccl/cuda_device.h"

using namespace meshplan;

TEST_CASE("boxes of more than 2^32 bytes are filled, copied byte by byte and checked; a wrong byte at their end is found") {
  auto device = std::move(open_cuda({0}, 0).value());
  const std::vector<int64_t> shape{5, int64_t{1} << 30};
  const Box all = full_box(shape);
  const Box inner{{0, 5}, {3, shape[1]}};  // runs begin at odd places
  DataQuestion question;
  question.dtype = DType::uint8;
  const DataTable table(question);
  const int64_t shift = table.shift_for(20274);
  std::byte* from = device->allocate(0, volume(all)).value();
  std::byte* to = device->allocate(0, volume(inner)).value();
  (void)device->poison(0, to, volume(inner)).value();
  (void)device->fill(0, from, all, shape, table, table.source_start(0, shift)).value();
  CHECK(device->compare(0, from, all, shape, table, shift, 4)->wrong == 0);
  LocalOp op;
  op.dtype = DType::uint8;
  op.region = make_region(inner, all, inner);
  op.from = from;
  op.to = to;
  (void)device->work(0, {&op, 1}).value();
  CHECK(device->compare(0, to, inner, shape, table, shift, 4)->wrong == 0);
  CHECK(device->guards_whole(0, to, volume(inner)).value());
  std::byte last{};
  (void)device->read(0, to + volume(inner) - 1, &last, 1).value();
  last ^= std::byte{1};
  (void)device->write(0, &last, to + volume(inner) - 1, 1).value();
  const Comparison found = device->compare(0, to, inner, shape, table, shift, 4).value();
  CHECK(found.wrong == 1);
  CHECK(found.first == std::vector<int64_t>{volume(inner) - 1});
}
