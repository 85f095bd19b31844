// A GPU device that is host memory. With streams, work waits its turn behind collectives that are not done, as on a GPU; without, it is
// done when it is enqueued and streams are always idle (one process that plays all ranks).
#pragma once

#include <map>
#include <memory>
#include <thread>

#include "fake_stream.h"
#include "replay/host_device.h"
#include "replay_nccl/gpu_device.h"

namespace meshplan::test {

class HostGpu final : public GpuDevice {
 public:
  explicit HostGpu(bool streams = false) : streams_(streams) {}
  ~HostGpu() override {
    for (auto& [rank, slabs] : slabs_) {
      for (const GpuSlab& slab : slabs) memory_.free(slab.data);
    }
  }
  HostGpu(const HostGpu&) = delete;
  HostGpu& operator=(const HostGpu&) = delete;

  Result<std::byte*> allocate(int32_t rank, int64_t bytes) override {
    if (!memory_.get) return host_.allocate(rank, bytes);
    // One slab a buffer is enough to see what is registered.
    auto data = memory_.get(bytes + 2 * guard_bytes);
    if (!data) return data.error();
    slabs_[rank].push_back({*data, bytes + 2 * guard_bytes});
    return *data + guard_bytes;
  }
  void reset() override { host_.reset(); }
  Status work(int32_t rank, std::span<const LocalOp> ops) override {
    if (!streams_) return host_.work(rank, ops);
    std::vector<LocalOp> kept(ops.begin(), ops.end());
    on(rank).put([this, rank, kept] {
      return [this, rank, kept] {
        (void)host_.work(rank, kept);
        return true;
      };
    });
    return Done{};
  }
  Status for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) override { return host_.for_each(n, bytes, run); }
  Status synchronise() override {
    for (auto& [rank, stream] : stream_) finish(rank);
    return Done{};
  }
  Status guard(int32_t rank, std::byte* data, int64_t bytes) override {
    finish(rank);
    return host_.guard(rank, data, bytes);
  }
  Status poison(int32_t rank, std::byte* data, int64_t bytes) override {
    finish(rank);
    return host_.poison(rank, data, bytes);
  }
  Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) override {
    finish(rank);
    return host_.guards_whole(rank, data, bytes);
  }
  Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape, const DataTable& table, int64_t start) override {
    finish(rank);
    return host_.fill(rank, to, box, shape, table, start);
  }
  Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box, std::span<const int64_t> shape, const DataTable& table,
                             int64_t start, size_t keep) override {
    finish(rank);
    return host_.compare(rank, found, box, shape, table, start, keep);
  }
  Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override {
    finish(rank);
    return host_.read(rank, from, to, bytes);
  }
  Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override {
    finish(rank);
    return host_.write(rank, from, to, bytes);
  }
  Result<bool> record(const std::function<Status()>& enqueue) override {
    if (!streams_) return false;
    for (auto& [rank, stream] : stream_) {
      stream->recorded.clear();
      stream->recording = true;
    }
    recording_ = true;
    Status done = enqueue();
    recording_ = false;
    for (auto& [rank, stream] : stream_) stream->recording = false;
    if (!done) return done.error();
    return true;
  }
  Status run_recorded() override {
    for (auto& [rank, stream] : stream_) {
      for (const auto& make : stream->recorded) stream->tasks.push_back(make());
    }
    return Done{};
  }

  Result<void*> stream(int32_t rank) override { return streams_ ? static_cast<void*>(&on(rank)) : nullptr; }
  Result<bool> idle(int32_t rank) override { return !streams_ || on(rank).idle(); }
  Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) override {
    auto& buffer = scratch_[{rank, slot}];
    if (buffer.size() < static_cast<size_t>(bytes)) buffer.resize(static_cast<size_t>(bytes));
    return buffer.data();
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> out{{"GPU", "none: host memory"}};
    for (const auto& [rank, stream] : stream_) out.emplace_back("rank number " + std::to_string(rank), "no GPU");
    return out;
  }
  void take_memory_from(GpuMemory memory) override { memory_ = std::move(memory); }
  [[nodiscard]] std::vector<GpuSlab> slabs(int32_t rank) const override {
    const auto at = slabs_.find(rank);
    return at == slabs_.end() ? std::vector<GpuSlab>() : at->second;
  }
  [[nodiscard]] bool recording() const override { return recording_; }

 private:
  FakeStream& on(int32_t rank) {
    auto& stream = stream_[rank];
    if (!stream) stream = std::make_unique<FakeStream>();
    return *stream;
  }
  void finish(int32_t rank) {
    if (!streams_) return;
    while (!on(rank).idle()) std::this_thread::yield();
  }

  HostDevice host_{1};
  bool streams_ = false;
  bool recording_ = false;
  std::map<int32_t, std::unique_ptr<FakeStream>> stream_;
  std::map<std::pair<int32_t, int>, std::vector<std::byte>> scratch_;
  GpuMemory memory_;
  std::map<int32_t, std::vector<GpuSlab>> slabs_;
};

}  // namespace meshplan::test
