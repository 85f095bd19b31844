// A device whose work runs on streams: one a rank, in order. The communicator enqueues its collectives there, between the device's own
// work.
#pragma once

#include "replay/device.h"

namespace meshplan {

class GpuDevice : public Device {
 public:
  // The stream of a local rank (a cudaStream_t), after making its GPU the current one.
  virtual Result<void*> stream(int32_t rank) = 0;
  // Whether everything enqueued on the rank's stream is done.
  virtual Result<bool> idle(int32_t rank) = 0;
  // A buffer that outlives `reset`; growing it again invalidates the old one. `slot` tells buffers of one rank apart.
  virtual Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) = 0;
  // Reads and writes between host memory and a buffer, finished on return (they wait for the stream).
  // What the report says: GPU names, driver and runtime versions, which rank has which GPU.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
};

}  // namespace meshplan
