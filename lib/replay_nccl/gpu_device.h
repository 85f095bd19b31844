// A device whose work runs on streams: one a rank, in order. The communicator enqueues its
// collectives there, between the device's own work.
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

class GpuDevice : public Device {
 public:
  // The stream of a local rank (a cudaStream_t), after making its GPU the current one.
  virtual Result<void*> stream(int32_t rank) = 0;
  // Whether the stream of the rank is idle.
  virtual Result<bool> idle(int32_t rank) = 0;
  // A buffer that outlives `reset`; growing it again invalidates the old one. `slot` tells buffers
  // of one rank apart.
  virtual Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) = 0;
  // What the report says: GPU names, driver and runtime versions, which rank has which GPU ("rank
  // number N").
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  // Slabs of `allocate`'s buffers come from here; before the first of them. NCCL registers its own
  // memory only.
  virtual void take_memory_from(GpuMemory memory) = 0;
  // The slabs of a rank, in the order of their making; they stay until the device ends.
  [[nodiscard]] virtual std::vector<GpuSlab> slabs(int32_t rank) const = 0;
  // Inside Device::record: enqueued work does not run now, so waiting for it is an error.
  [[nodiscard]] virtual bool recording() const = 0;
};

}  // namespace meshplan
