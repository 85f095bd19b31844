// A thread pool for parallel loops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace meshplan {

class WorkerPool {
 public:
  // So many threads, including the caller, or as many as the system gives; 0: one per core.
  explicit WorkerPool(int64_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] int64_t threads() const;
  // Runs do(i) for every i in 0..n-1 and returns when all are done. `run` must not throw. One
  // caller at a time.
  void for_each(int64_t n, const std::function<void(int64_t)>& run);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace meshplan
