// The GPU device over a fake CUDA (fake_cuda.h): what it says of GPUs, and that nothing of it stays.
#include "replay_nccl/cuda_device.h"

#include <doctest/doctest.h>

#include <cstring>

#include "fake_cuda.h"
#include "variable.h"

using namespace meshplan;
using namespace meshplan::test;

TEST_CASE("buffers, tables, scratch and streams are given back") {
  {
    auto device = std::move(open_cuda({0, 1}, 0).value());
    for (int32_t rank : {0, 1}) {
      CHECK(device->poison(rank, device->allocate(rank, 1000).value(), 1000).ok());
      CHECK(device->scratch(rank, 3, 500).ok());
      CHECK(device->stream(rank, 2).ok());
    }
    CHECK(device->synchronise().ok());
    CHECK(alive_on_fake_cuda() > 0);
  }
  CHECK(alive_on_fake_cuda() == 0);
}

TEST_CASE("every recording runs by its number, whatever was recorded after it") {
  auto device = std::move(open_cuda({0}, 0).value());
  std::byte* first = device->allocate(0, 8).value();
  std::byte* second = device->allocate(0, 8).value();
  std::vector<int64_t> numbers;
  for (std::byte* data : {first, second}) {
    const auto made = device->record([&] { return device->poison(0, data, 8); });
    REQUIRE((made.ok() && made->has_value()));
    numbers.push_back(**made);
  }
  const std::byte nothing[8] = {};
  auto written = [&](const std::byte* data) {
    std::byte found[8];
    (void)device->read(0, data, found, 8).value();
    return std::memcmp(found, nothing, 8) != 0;
  };
  for (size_t run : {size_t{0}, size_t{1}, size_t{0}}) {
    for (std::byte* data : {first, second}) (void)device->write(0, nothing, data, 8).value();
    CHECK(device->run_recorded(numbers[run]).ok());
    CHECK(written(first) == (run == 0));
    CHECK(written(second) == (run == 1));
  }
  device->reset();
  CHECK(device->record([] { return Status(Done{}); })->value() == 0);
}

TEST_CASE("ranks go round the GPUs, each with a stream of its own GPU") {
  const Variable gpus("FAKE_CUDA_GPUS", "2");
  {
    auto device = std::move(open_cuda({0, 1, 2}, 1).value());
    std::vector<std::string> where;
    for (const auto& [key, value] : device->facts()) {
      if (key.rfind("rank number ", 0) == 0) where.push_back(key + ": " + value);
    }
    CHECK(where == std::vector<std::string>{"rank number 0: GPU 1 at 0000:01:00.0, none: host memory",
                                            "rank number 1: GPU 0 at 0000:00:00.0, none: host memory",
                                            "rank number 2: GPU 1 at 0000:01:00.0, none: host memory"});
    // Kernels for each in turn: the fake refuses one for a stream of another GPU than the current.
    for (int32_t rank : {0, 1, 2, 0}) {
      std::byte* data = device->allocate(rank, 64).value();
      CHECK(device->poison(rank, data, 64).ok());
    }
    CHECK(device->synchronise().ok());
  }
  CHECK(alive_on_fake_cuda() == 0);
}

TEST_CASE("too little memory and no GPU at all are said, with what to do") {
  {
    const Variable memory("FAKE_CUDA_MEMORY", "100000000");
    auto device = std::move(open_cuda({0}, 0).value());
    CHECK(device->allocate(0, 1000).ok());
    auto more = device->allocate(0, 90000000);
    REQUIRE_FALSE(more.ok());
    CHECK(exit_code(more.error().fault) == 5);
    CHECK_MESSAGE(more.error().message.find("rank number 0 cannot allocate 90000640 bytes of GPU memory") == 0, more.error().message);
    CHECK(more.error().message.find("--shrink") != std::string::npos);
  }
  const Variable gpus("FAKE_CUDA_GPUS", "0");
  auto none = open_cuda({0}, 0);
  REQUIRE_FALSE(none.ok());
  CHECK_MESSAGE(none.error().message.find("backend nccl: no GPU: ") == 0, none.error().message);
}
