// A device whose work runs on streams, each in order. The communicator enqueues its collectives on
// a rank's main stream, between the device's own work, or beside it on streams that are made when
// they are first used. Streams wait for each other only where `order` says so.
#pragma once

#include <utility>

#include "replay/device.h"

namespace meshplan {

// A large block of memory from which buffers are allocated.
struct GpuSlab {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

// The allocator of slabs.
struct GpuMemory {
  std::function<Result<std::byte*>(int64_t)> get;
  std::function<void(std::byte*)> free;
};

// Of this process's GPUs, which are alike.
struct GpuCounts {
  int64_t gpus = 1;
  int64_t multiprocessors = 1;  // of one
};

class GpuDevice : public Device {
 public:
  // The number of the stream that a rank's own work is on.
  static constexpr int64_t main_stream = 0;

  // A stream of a local rank (a cudaStream_t), after making its GPU the current one.
  virtual Result<void*> stream(int32_t rank, int64_t number) = 0;
  // Whether a stream of the rank, which was asked for before, is idle.
  virtual Result<bool> idle(int32_t rank, int64_t number) = 0;
  // What is enqueued on stream `later` from now on waits for what is on stream `first` now.
  virtual Status order(int32_t rank, int64_t first, int64_t later) = 0;
  // As `work`, on another stream.
  virtual Status work_on(int32_t rank, int64_t number, std::span<const LocalOp> ops) = 0;
  // A buffer that outlives `reset`; growing it again invalidates the old one. `slot` tells buffers
  // of one rank apart.
  virtual Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) = 0;
  [[nodiscard]] virtual GpuCounts counts() const = 0;
  // What the report says: GPU names, driver and runtime versions, which rank has which GPU ("rank
  // number N").
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  // Slabs of `allocate`'s buffers come from here; before the first of them. NCCL registers its own
  // memory only.
  virtual void take_memory_from(GpuMemory memory) = 0;
  // The slabs of a rank, in the order of their making; they stay until the device ends.
  [[nodiscard]] virtual std::vector<GpuSlab> slabs(int32_t rank) const = 0;
  // Ends all that `record` made. NCCL closes no communicator of which a graph holds calls.
  virtual void forget_recorded() = 0;
  // Inside Device::record: enqueued work does not run now, so waiting for it is an error.
  [[nodiscard]] virtual bool recording() const = 0;
};

}  // namespace meshplan
