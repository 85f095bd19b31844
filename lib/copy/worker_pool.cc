#include "copy/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/start_threads.h"

namespace meshplan {

struct WorkerPool::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  uint64_t generation = 0;  // number of loops; guarded by mutex
  int64_t busy = 0;         // workers still in the current loop
  bool stop = false;
  const std::function<void(int64_t)>* run = nullptr;
  int64_t n = 0;
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;

  void take_turns() {
    for (int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) (*run)(i);
  }

  void serve() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      lock.unlock();
      take_turns();
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }
};

WorkerPool::WorkerPool(int64_t threads) : shared_(std::make_unique<Shared>()) {
  if (threads <= 0) threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  shared_->threads = start_threads(static_cast<size_t>(threads - 1),
                                   [shared = shared_.get()] { shared->serve(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

int64_t WorkerPool::threads() const { return std::ssize(shared_->threads) + 1; }

void WorkerPool::for_each(int64_t n, const std::function<void(int64_t)>& run) {
  if (shared_->threads.empty() || n < 2) {
    for (int64_t i = 0; i < n; ++i) run(i);
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->run = &run;
    shared_->n = n;
    shared_->next = 0;
    shared_->busy = std::ssize(shared_->threads);
    ++shared_->generation;
  }
  shared_->wake.notify_all();
  shared_->take_turns();
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait(lock, [&] { return shared_->busy == 0; });
}

}  // namespace meshplan
