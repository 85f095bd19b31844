// Buffers that the system has no memory for are refused, in place of a process that ends without a word.
#include "replay/free_memory.h"

#include <doctest/doctest.h>

#include "replay/host_device.h"

namespace meshplan {

TEST_CASE("what is free is what is available, and what may be swapped") {
  CHECK(free_memory_in("MemTotal:  100 kB\nMemAvailable:       40 kB\nSwapFree:  2 kB\n") == 42 * 1024);
  CHECK(free_memory_in("MemAvailable: 40 kB") == 40 * 1024);
  CHECK(free_memory_in("MemAvailable: 99999999999999999 kB\n") == INT64_MAX);
  for (const char* text : {"", "MemTotal: 100 kB\n", "MemAvailable:", "MemAvailable: -1 kB\n", "MemAvailable: 99999999999999999999 kB\n",
                           "MemAvailableX: 5 kB\n"}) {
    CAPTURE(text);
    CHECK(!free_memory_in(text));
  }
}

TEST_CASE("buffers take no more than there is, whichever rank asks, and as much again after a reset") {
  HostDevice device(1, int64_t{70} << 20);  // two slabs of 32 MiB
  for (int round = 0; round < 2; ++round) {
    CHECK(device.allocate(0, 20'000'000).ok());
    CHECK(device.allocate(1, 20'000'000).ok());
    const auto none = device.allocate(7, 20'000'000);
    REQUIRE(!none.ok());
    CHECK(none.error().fault == Fault::environment);
    CHECK(none.error().message.starts_with(
        "rank 7 needs a buffer of 20000000 bytes, and the system has no 33554432 bytes more for buffers; "));
    device.reset();
  }
  CHECK(!HostDevice(1, 1000).allocate(0, 1).ok());
}

}  // namespace meshplan
