// The GPU device beside the host device that is its oracle: its kernels, compiled for the host over a fake CUDA (fake_cuda.h) in
// test_replay_nccl, and as they are in test_gpu_kernels, which needs a GPU.
#include "replay_nccl/cuda_device.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "replay/arithmetic.h"
#include "replay/host_device.h"

using namespace meshplan;

namespace {

constexpr DType every_dtype[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3, DType::float8_e5m2,
                                 DType::int64,   DType::int32,   DType::int16,    DType::int8,    DType::uint8,       DType::boolean};
constexpr ReduceOp every_op[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product};

// Both devices, for one rank, with buffers that hold the same.
struct Pair {
  std::unique_ptr<GpuDevice> gpu = std::move(open_cuda({0}, 0).value());
  HostDevice host{1};

  struct Buffer {
    std::byte* gpu;
    std::byte* host;
    int64_t bytes;
  };
  Buffer buffer(const std::vector<std::byte>& bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    Buffer b{gpu->allocate(0, size).value(), host.allocate(0, size).value(), size};
    (void)gpu->write(0, bytes.data(), b.gpu, size).value();
    std::memcpy(b.host, bytes.data(), bytes.size());
    return b;
  }
  // One piece of work on both, whose buffers lie so many bytes into these.
  void work(LocalOp op, const Buffer& from, int64_t from_at, const Buffer& to, int64_t to_at) {
    op.from = from.gpu + from_at;
    op.to = to.gpu + to_at;
    (void)gpu->work(0, {&op, 1}).value();
    op.from = from.host + from_at;
    op.to = to.host + to_at;
    (void)host.work(0, {&op, 1}).value();
  }
  // Whether both buffers hold the same now.
  [[nodiscard]] bool same(const Buffer& b) {
    std::vector<std::byte> found(static_cast<size_t>(b.bytes));
    (void)gpu->read(0, b.gpu, found.data(), b.bytes).value();
    return std::memcmp(found.data(), b.host, found.size()) == 0;
  }
};

std::vector<std::byte> random_bytes(size_t n, std::mt19937& random) {
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Numbers from -8 to 8 in quarters, whole ones in integers, that every dtype holds and whose products none overflows by much.
std::vector<std::byte> numbers(DType dtype, int64_t n, std::mt19937& random) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 65) - 32) / 4;
  std::vector<std::byte> bytes(static_cast<size_t>(n * element_bytes(dtype)));
  cast_elements(DType::float32, reinterpret_cast<const std::byte*>(values.data()), dtype, bytes.data(), n);
  return bytes;
}

}  // namespace

TEST_CASE("the copy kernel copies what the host copies, whatever the run, the strides and the place") {
  constexpr unsigned seed = 20270;
  std::mt19937 random(seed);
  CAPTURE(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 600; ++round) {
    Pair pair;
    const DType dtype = every_dtype[below(12)];
    const int64_t size = element_bytes(dtype);
    LocalOp op;
    op.dtype = dtype;
    op.region.run = 1 + below(round % 4 == 0 ? 900 : 40);
    int64_t from_end = op.region.run;
    int64_t to_end = op.region.run;
    const int64_t depth = below(4);
    std::vector<RegionDim> dims;
    for (int64_t d = 0; d < depth; ++d) {
      const RegionDim dim{1 + below(5), from_end + below(3) * 4, to_end + below(3) * 4};
      from_end = dim.extent * dim.from_stride;
      to_end = dim.extent * dim.to_stride;
      dims.insert(dims.begin(), dim);
    }
    op.region.dims = dims;
    op.region.from_offset = below(9);
    op.region.to_offset = below(9);
    const auto from = pair.buffer(random_bytes(static_cast<size_t>((from_end + 16) * size), random));
    const auto to = pair.buffer(random_bytes(static_cast<size_t>((to_end + 16) * size), random));
    CAPTURE(to_text(dtype));
    CAPTURE(op.region.run);
    CAPTURE(depth);
    pair.work(op, from, below(3) * size, to, below(3) * size);
    CHECK(pair.same(to));
  }
}

TEST_CASE("combining, dividing and neutral elements are the host's, bit for bit, for every dtype and op") {
  constexpr unsigned seed = 20271;
  std::mt19937 random(seed);
  CAPTURE(seed);
  constexpr int64_t count = 501;
  for (DType dtype : every_dtype) {
    CAPTURE(to_text(dtype));
    for (ReduceOp reduce : every_op) {
      CAPTURE(to_text(reduce));
      Pair pair;
      const auto with = pair.buffer(numbers(dtype, count, random));
      const auto into = pair.buffer(numbers(dtype, count, random));
      LocalOp op;
      op.dtype = dtype;
      op.op = reduce;
      op.count = count;
      op.kind = LocalOp::Kind::combine;
      pair.work(op, with, 0, into, 0);
      CHECK(pair.same(into));
      op.kind = LocalOp::Kind::divide;
      for (int64_t divisor : {1, 2, 3, 7}) {
        op.divisor = divisor;
        pair.work(op, with, 0, into, 0);
        CAPTURE(divisor);
        CHECK(pair.same(into));
      }
      op.kind = LocalOp::Kind::identity;
      pair.work(op, with, 0, into, 0);
      CHECK(pair.same(into));
    }
  }
}

TEST_CASE("casts between all dtypes are the host's, bit for bit") {
  constexpr unsigned seed = 20272;
  std::mt19937 random(seed);
  CAPTURE(seed);
  constexpr int64_t count = 257;
  for (DType from_dtype : every_dtype) {
    for (DType dtype : every_dtype) {
      CAPTURE(to_text(from_dtype));
      CAPTURE(to_text(dtype));
      Pair pair;
      const auto from = pair.buffer(numbers(from_dtype, count, random));
      const auto to = pair.buffer(std::vector<std::byte>(static_cast<size_t>(count * element_bytes(dtype))));
      LocalOp op;
      op.kind = LocalOp::Kind::cast;
      op.from_dtype = from_dtype;
      op.dtype = dtype;
      op.count = count;
      pair.work(op, from, 0, to, 0);
      CHECK(pair.same(to));
    }
  }
}

TEST_CASE("filling and checking on the GPU are the host's: each wrong element is counted, the first ones are named") {
  constexpr unsigned seed = 20273;
  std::mt19937 random(seed);
  CAPTURE(seed);
  const std::vector<int64_t> shape{7, 9, 5};
  const Box box{{2, 6}, {1, 8}, {0, 5}};
  for (DType dtype : every_dtype) {
    CAPTURE(to_text(dtype));
    DataQuestion question;
    question.dtype = dtype;
    const DataTable table(question);
    const int64_t shift = table.shift_for(random());
    const int64_t elements = volume(box);
    const int64_t size = element_bytes(dtype);
    Pair pair;
    const auto buffer = pair.buffer(random_bytes(static_cast<size_t>(elements * size), random));
    (void)pair.gpu->fill(0, buffer.gpu, box, shape, table, table.source_start(0, shift)).value();
    (void)pair.host.fill(0, buffer.host, box, shape, table, table.source_start(0, shift)).value();
    CHECK(pair.same(buffer));
    // The answer itself, then with so many elements of it wrong.
    std::vector<std::byte> answer(static_cast<size_t>(elements * size));
    fill_box(answer.data(), box, shape, table.answer(), table.period(), shift, size);
    for (int64_t wrong : {0, 1, 6, 30}) {
      std::vector<std::byte> spoilt = answer;
      for (int64_t i = 0; i < wrong; ++i) spoilt[static_cast<size_t>((i * 4 + 3) * size)] ^= std::byte{1};
      (void)pair.gpu->write(0, spoilt.data(), buffer.gpu, buffer.bytes).value();
      const Comparison found = pair.gpu->compare(0, buffer.gpu, box, shape, table, shift, 8).value();
      const Comparison expected = pair.host.compare(0, spoilt.data(), box, shape, table, shift, 8).value();
      CAPTURE(wrong);
      CHECK(found.wrong == wrong);
      CHECK(expected.wrong == wrong);
      CHECK(found.first.size() == expected.first.size());
      // On a GPU any eight of them may be the kept ones; with up to eight they are all.
      if (wrong <= 8) CHECK(found.first == expected.first);
    }
  }
}

TEST_CASE("guards and poison are seen") {
  Pair pair;
  std::byte* data = pair.gpu->allocate(0, 100).value();
  (void)pair.gpu->poison(0, data, 100).value();
  CHECK(pair.gpu->guards_whole(0, data, 100).value());
  std::vector<std::byte> held(100);
  (void)pair.gpu->read(0, data, held.data(), 100).value();
  CHECK(held == std::vector<std::byte>(100, held.front()));
  const std::byte one{1};
  for (int64_t at : {int64_t{-1}, int64_t{-64}, int64_t{100}, int64_t{163}}) {
    (void)pair.gpu->guard(0, data, 100).value();
    (void)pair.gpu->write(0, &one, data + at, 1).value();
    CAPTURE(at);
    CHECK_FALSE(pair.gpu->guards_whole(0, data, 100).value());
  }
}
