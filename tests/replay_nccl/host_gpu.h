// A GPU device that is host memory: work is done when it is enqueued, so that streams are always idle.
#pragma once

#include <map>

#include "replay/host_device.h"
#include "replay_nccl/gpu_device.h"

namespace meshplan::test {

class HostGpu final : public GpuDevice {
 public:
  Result<std::byte*> allocate(int32_t rank, int64_t bytes) override { return host_.allocate(rank, bytes); }
  void reset() override { host_.reset(); }
  // Copies before a collective must not wait for it: they run at once, like work that precedes it on the stream.
  Status work(int32_t rank, std::span<const LocalOp> ops) override { return host_.work(rank, ops); }
  Status for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) override { return host_.for_each(n, bytes, run); }
  Status synchronise() override { return Done{}; }
  Status guard(int32_t rank, std::byte* data, int64_t bytes) override { return host_.guard(rank, data, bytes); }
  Status poison(int32_t rank, std::byte* data, int64_t bytes) override { return host_.poison(rank, data, bytes); }
  Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) override { return host_.guards_whole(rank, data, bytes); }
  Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape, const DataTable& table, int64_t start) override {
    return host_.fill(rank, to, box, shape, table, start);
  }
  Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box, std::span<const int64_t> shape, const DataTable& table,
                             int64_t start, size_t keep) override {
    return host_.compare(rank, found, box, shape, table, start, keep);
  }
  Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override { return host_.read(rank, from, to, bytes); }
  Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override { return host_.write(rank, from, to, bytes); }
  Result<void*> stream(int32_t /*rank*/) override { return nullptr; }
  Result<bool> idle(int32_t /*rank*/) override { return true; }
  Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) override {
    auto& buffer = scratch_[{rank, slot}];
    if (buffer.size() < static_cast<size_t>(bytes)) buffer.resize(static_cast<size_t>(bytes));
    return buffer.data();
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override { return {{"GPU", "none: host memory"}}; }

 private:
  HostDevice host_{1};
  std::map<std::pair<int32_t, int>, std::vector<std::byte>> scratch_;
};

}  // namespace meshplan::test
