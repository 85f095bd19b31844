#include "replay_nccl/registered_buffers.h"

#include <algorithm>
#include <sstream>

#include "replay_nccl/nccl_enqueue.h"

namespace meshplan {

GpuMemory nccl_memory(const NcclLibrary& nccl) {
  return {[nccl](int64_t bytes) -> Result<std::byte*> {
            std::byte* data = nullptr;
            const NcclCode code = nccl.allocate(data, bytes);
            if (code == nccl_done) return data;
            return environment("NCCL has no memory for " + std::to_string(bytes) + " bytes: " +
                               nccl.error_text(code) + "; replay a smaller shape with --shrink");
          },
          [nccl](std::byte* data) { nccl.release(data); }};
}

std::string slab_sizes(const std::vector<GpuSlab>& slabs) {
  std::string text;
  for (const GpuSlab& slab : slabs) text += std::to_string(slab.bytes) + " ";
  return text;
}

std::vector<std::vector<int64_t>> slab_sizes(const std::vector<std::string>& texts) {
  std::vector<std::vector<int64_t>> sizes;
  for (const std::string& text : texts) {
    std::istringstream words(text);
    sizes.emplace_back();
    for (int64_t bytes = 0; words >> bytes;) sizes.back().push_back(bytes);
  }
  return sizes;
}

std::vector<size_t> RegisteredBuffers::common(
    const std::vector<std::vector<int64_t>>& sizes) const {
  std::vector<size_t> out;
  if (sizes.empty()) return out;
  size_t count = sizes.front().size();
  for (const auto& list : sizes)
    count =
        kind_ == Registration::local ? std::max(count, list.size()) : std::min(count, list.size());
  for (size_t i = 0; i < count; ++i) {
    auto as_first = [&](const auto& list) { return list[i] == sizes.front()[i]; };
    if (kind_ == Registration::local || std::all_of(sizes.begin(), sizes.end(), as_first))
      out.push_back(i);
  }
  return out;
}

Status RegisteredBuffers::add(const std::map<int32_t, NcclComm>& comms, const GpuDevice& device,
                              const std::vector<size_t>& slabs, const std::string& place) {
  for (const auto& [rank, comm] : comms) {
    if (comm == nullptr) continue;
    const std::vector<GpuSlab> held = device.slabs(rank);
    for (size_t i : slabs) {
      if (i >= held.size()) continue;
      auto [at, fresh] = handles_.try_emplace({comm, held[i].data}, nullptr);
      if (!fresh) continue;
      if (auto done = nccl_good(
              nccl_, nccl_.register_buffer(kind_, comm, held[i].data, held[i].bytes, &at->second),
              place);
          !done) {
        handles_.erase(at);
        return done;
      }
    }
  }
  return Done{};
}

void RegisteredBuffers::drop(NcclComm comm) {
  for (auto at = handles_.lower_bound({comm, nullptr});
       at != handles_.end() && at->first.first == comm; at = handles_.erase(at)) {
    nccl_.deregister(kind_, comm, at->second);
  }
}

}  // namespace meshplan
