// Buffers in host memory, processed by a thread pool.
#pragma once

#include <memory>
#include <optional>

#include "copy/worker_pool.h"
#include "replay/device.h"
#include "replay/free_memory.h"

namespace meshplan {

class HostDevice final : public Device {
 public:
  // `threads` 0: one per core. `most_bytes`: of all buffers.
  explicit HostDevice(int64_t threads, std::optional<int64_t> most_bytes = free_memory());
  ~HostDevice() override;

  Result<std::byte*> allocate(int32_t rank, int64_t bytes) override;
  void reset() override;
  Status work(int32_t rank, std::span<const LocalOp> ops) override;
  Status for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) override;
  Status synchronise() override { return Done{}; }
  Status guard(int32_t rank, std::byte* data, int64_t bytes) override;
  Status poison(int32_t rank, std::byte* data, int64_t bytes) override;
  Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) override;
  Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape,
              const DataTable& table, int64_t start) override;
  Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box,
                             std::span<const int64_t> shape, const DataTable& table, int64_t start,
                             size_t keep) override;
  Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override;
  Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override;

 private:
  struct Slab;
  WorkerPool pool_;
  int64_t left_bytes_;  // that slabs may still take
  std::vector<std::unique_ptr<Slab>> slabs_;
  size_t current_ = 0;  // slab used for allocations
};

// Executes one op on host memory; also used by devices that emulate.
void do_on_host(const LocalOp& op);

}  // namespace meshplan
