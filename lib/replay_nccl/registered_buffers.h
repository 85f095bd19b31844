// Registers the buffers of local ranks with communicators (`--register local|symmetric`), so that
// NCCL reads and writes them in place.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "replay_nccl/gpu_device.h"
#include "replay_nccl/nccl_library.h"

namespace meshplan {

// Memory of NCCL, which can be registered.
[[nodiscard]] GpuMemory nccl_memory(const NcclLibrary& nccl);

// The sizes of slabs as a text that processes tell each other, and back, of every rank.
[[nodiscard]] std::string slab_sizes(const std::vector<GpuSlab>& slabs);
[[nodiscard]] std::vector<std::vector<int64_t>> slab_sizes(const std::vector<std::string>& texts);

class RegisteredBuffers {
 public:
  RegisteredBuffers(NcclLibrary nccl, Registration kind) : nccl_(std::move(nccl)), kind_(kind) {}

  [[nodiscard]] bool wanted() const { return kind_ != Registration::none; }
  // Slabs that can be registered: of a symmetric window every rank must bring as much, so those
  // whose place in the list and size all ranks share. `sizes`: of each rank in the world, its
  // slabs' sizes in order.
  [[nodiscard]] std::vector<size_t> common(const std::vector<std::vector<int64_t>>& sizes) const;
  // Registers slabs of these numbers that are not yet, with one communicator of each local rank.
  // Inside an open group; the handles are there when the communicators have settled.
  [[nodiscard]] Status add(const std::map<int32_t, NcclComm>& comms, const GpuDevice& device,
                           const std::vector<size_t>& slabs, const std::string& place);
  // Before a communicator is closed.
  void drop(NcclComm comm);
  [[nodiscard]] size_t count() const { return handles_.size(); }

 private:
  NcclLibrary nccl_;
  Registration kind_ = Registration::none;
  std::map<std::pair<NcclComm, std::byte*>, void*> handles_;
};

}  // namespace meshplan
