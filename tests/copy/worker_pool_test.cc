#include "copy/worker_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

using namespace meshplan;

TEST_CASE("every turn is taken once, loop after loop, whatever the number of threads") {
  for (int64_t threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    CHECK(pool.threads() == threads);
    for (int64_t n : {0, 1, 2, 100, 1000}) {
      std::vector<std::atomic<int>> taken(static_cast<size_t>(n));
      pool.for_each(n, [&](int64_t i) { ++taken[static_cast<size_t>(i)]; });
      for (const auto& t : taken) CHECK(t == 1);
    }
  }
  CHECK(WorkerPool(0).threads() >= 1);
}
