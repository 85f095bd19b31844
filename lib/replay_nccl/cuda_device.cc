#include "replay_nccl/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "replay/arithmetic.h"
#include "replay_nccl/gpu_kernels.h"

namespace meshplan {
namespace {

constexpr int64_t slab_bytes = int64_t{64} << 20;
constexpr int poison_byte = 0xdb;
constexpr int guard_byte = 0xa7;

Status good(int code, const char* what) {
  if (code == 0) return Done{};
  return environment(std::string("CUDA cannot ") + what + ": " +
                     cudaGetErrorString(static_cast<cudaError_t>(code)));
}

// A walk of elements as one of bytes.
gpu::Walk walk_of(const Region& region, int64_t scale) {
  gpu::Walk walk;
  walk.dims = static_cast<int>(region.dims.size());
  for (size_t d = 0; d < region.dims.size(); ++d) {
    walk.extent[d] = region.dims[d].extent;
    walk.from_stride[d] = region.dims[d].from_stride * scale;
    walk.to_stride[d] = region.dims[d].to_stride * scale;
  }
  walk.run = region.run * scale;
  return walk;
}

class CudaDevice final : public GpuDevice {
 public:
  CudaDevice() = default;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override {
    for (auto& [rank, place] : places_) {
      (void)cudaSetDevice(place.gpu);
      forget(place);
      for (Slab& slab : place.slabs) {
        if (memory_.free) {
          memory_.free(slab.data);
        } else {
          (void)cudaFree(slab.data);
        }
      }
      for (auto& [slot, buffer] : place.scratch) (void)cudaFree(buffer.data);
      for (const Stream& stream : place.streams) {
        if (stream.event != nullptr) (void)cudaEventDestroy(stream.event);
        (void)cudaStreamDestroy(stream.stream);
      }
    }
  }

  Status open(const std::vector<int32_t>& ranks, int64_t first) {
    int gpus = 0;
    const cudaError_t counted = cudaGetDeviceCount(&gpus);
    if (counted != cudaSuccess || gpus == 0) {
      return environment(
          std::string("backend nccl: no GPU: ") +
          (counted != cudaSuccess ? cudaGetErrorString(counted) : "CUDA finds none") +
          "; run on a machine with an NVIDIA GPU and driver, or use --backend host or mpi");
    }
    (void)cudaRuntimeGetVersion(&runtime_);
    (void)cudaDriverGetVersion(&driver_);
    cudaDeviceProp properties{};
    if (auto done = good(cudaGetDeviceProperties(&properties, 0), "describe a GPU"); !done)
      return done;
    counts_ = {gpus, properties.multiProcessorCount};
    for (size_t i = 0; i < ranks.size(); ++i) {
      Place& place = places_[ranks[i]];
      place.gpu = static_cast<int>((first + static_cast<int64_t>(i)) % gpus);
      if (auto made = stream(ranks[i], main_stream); !made) return made.error();
    }
    return Done{};
  }

  Result<void*> stream(int32_t rank, int64_t number) override {
    Place& place = places_.at(rank);
    if (auto done = good(cudaSetDevice(place.gpu), "select a GPU"); !done) return done.error();
    while (std::ssize(place.streams) <= number) {
      Stream made;
      if (auto done =
              good(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "make a stream");
          !done)
        return done.error();
      place.streams.push_back(made);
    }
    return static_cast<void*>(place.streams[static_cast<size_t>(number)].stream);
  }

  // One event a stream is enough: a wait is for its latest record, and later records leave it so.
  Status order(int32_t rank, int64_t first, int64_t later) override {
    auto from = stream(rank, first);
    if (!from) return from.error();
    auto to = stream(rank, later);
    if (!to) return to.error();
    Stream& before = places_.at(rank).streams[static_cast<size_t>(first)];
    if (before.event == nullptr) {
      if (auto done = good(cudaEventCreateWithFlags(&before.event, cudaEventDisableTiming),
                           "make an event");
          !done)
        return done;
    }
    if (auto done = good(cudaEventRecord(before.event, before.stream), "record an event"); !done)
      return done;
    return good(cudaStreamWaitEvent(static_cast<cudaStream_t>(*to), before.event, 0),
                "wait for an event");
  }

  Result<bool> idle(int32_t rank, int64_t number) override {
    const Stream& asked = places_.at(rank).streams[static_cast<size_t>(number)];
    const cudaError_t state = cudaStreamQuery(asked.stream);
    if (state == cudaErrorNotReady) return false;
    if (auto done = good(state, "finish the work on a stream"); !done) return done.error();
    return true;
  }

  Result<std::byte*> scratch(int32_t rank, int slot, int64_t bytes) override {
    auto stream_ready = stream(rank, main_stream);
    if (!stream_ready) return stream_ready.error();
    Slab& buffer = places_.at(rank).scratch[slot];
    if (buffer.size < bytes) {
      if (buffer.data != nullptr) (void)cudaFree(buffer.data);
      buffer = {};
      if (auto done = get(rank, bytes, buffer); !done) return done.error();
    }
    return buffer.data;
  }

  Result<std::byte*> allocate(int32_t rank, int64_t bytes) override {
    auto stream_ready = stream(rank, main_stream);
    if (!stream_ready) return stream_ready.error();
    Place& place = places_.at(rank);
    const int64_t need = ceil_div(bytes, 256) * 256 + 512;
    while (place.current < place.slabs.size() &&
           place.slabs[place.current].size - place.slabs[place.current].used < need)
      ++place.current;
    if (place.current == place.slabs.size()) {
      Slab slab;
      if (auto done = get_slab(rank, need, slab); !done) return done.error();
      place.slabs.push_back(slab);
    }
    Slab& slab = place.slabs[place.current];
    std::byte* data = slab.data + slab.used + 256;
    slab.used += need;
    return data;
  }

  void reset() override {
    forget_recorded();
    for (auto& [rank, place] : places_) {
      for (Slab& slab : place.slabs) slab.used = 0;
      place.current = 0;
    }
    tables_.clear();
  }

  Status work(int32_t rank, std::span<const LocalOp> ops) override {
    return work_on(rank, main_stream, ops);
  }
  Status work_on(int32_t rank, int64_t number, std::span<const LocalOp> ops) override {
    auto on = stream(rank, number);
    if (!on) return on.error();
    for (const LocalOp& op : ops) {
      int code = 0;
      switch (op.kind) {
        case LocalOp::Kind::copy: {
          if (op.region.dims.size() > gpu::max_dims)
            return environment("a box of more than " + std::to_string(gpu::max_dims) +
                               " strided dims");
          const int64_t size = element_bytes(op.dtype);
          code = gpu::copy(*on, walk_of(op.region, size), op.from + op.region.from_offset * size,
                           op.to + op.region.to_offset * size);
          break;
        }
        case LocalOp::Kind::identity: {
          std::byte value[8];
          fill_identity(op.dtype, op.op, value, 1);
          code = gpu::set_elements(*on, op.to, value, static_cast<int>(element_bytes(op.dtype)),
                                   op.count);
          break;
        }
        case LocalOp::Kind::cast:
          code = gpu::cast(*on, static_cast<int>(op.from_dtype), op.from,
                           static_cast<int>(op.dtype), op.to, op.count);
          break;
        case LocalOp::Kind::divide:
          code = gpu::divide(*on, static_cast<int>(op.dtype), op.to, op.count, op.divisor);
          break;
        case LocalOp::Kind::combine:
          code = gpu::combine(*on, static_cast<int>(op.dtype), static_cast<int>(op.op), op.to,
                              op.from, op.count);
          break;
      }
      if (auto done = good(code, "run a kernel"); !done) return done;
    }
    return Done{};
  }

  Status for_each(int64_t n, int64_t /*bytes*/,
                  const std::function<Status(int64_t)>& run) override {
    for (int64_t i = 0; i < n; ++i) {
      if (auto done = run(i); !done) return done;
    }
    return Done{};
  }

  Status synchronise() override {
    for (auto& [rank, place] : places_) {
      for (const Stream& stream : place.streams) {
        if (auto done = good(cudaStreamSynchronize(stream.stream), "finish the work on a stream");
            !done)
          return done;
      }
    }
    return Done{};
  }

  // What each rank's main stream gets becomes one graph, with what streams get that `order` forks
  // from it; they have to be joined to it again.
  Result<std::optional<int64_t>> record(const std::function<Status()>& enqueue) override {
    for (auto& [rank, place] : places_) {
      if (auto done = good(cudaSetDevice(place.gpu), "select a GPU"); !done) return done.error();
      if (auto done = good(cudaStreamBeginCapture(place.own(), cudaStreamCaptureModeThreadLocal),
                           "begin a graph");
          !done)
        return done.error();
    }
    recording_ = true;
    Status status = enqueue();
    recording_ = false;
    int64_t number = 0;  // the same of every rank
    for (auto& [rank, place] : places_) {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t ready = nullptr;
      (void)cudaSetDevice(place.gpu);
      Status ended = good(cudaStreamEndCapture(place.own(), &graph), "end a graph");
      if (status && ended)
        ended = good(cudaGraphInstantiate(&ready, graph, 0), "make a graph ready");
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      if (status && !ended) status = ended;
      number = std::ssize(place.recorded);
      place.recorded.push_back(ready);
    }
    if (!status) return status.error();
    return std::optional<int64_t>(number);
  }

  Status run_recorded(int64_t number) override {
    for (auto& [rank, place] : places_) {
      if (auto done = good(cudaSetDevice(place.gpu), "select a GPU"); !done) return done;
      cudaGraphExec_t graph = place.recorded[static_cast<size_t>(number)];
      if (auto done = good(cudaGraphLaunch(graph, place.own()), "start a graph"); !done)
        return done;
    }
    return Done{};
  }

  void forget_recorded() override {
    for (auto& [rank, place] : places_) {
      (void)cudaSetDevice(place.gpu);
      forget(place);
    }
  }
  void take_memory_from(GpuMemory memory) override { memory_ = std::move(memory); }
  [[nodiscard]] std::vector<GpuSlab> slabs(int32_t rank) const override {
    std::vector<GpuSlab> out;
    for (const Slab& slab : places_.at(rank).slabs) out.push_back({slab.data, slab.size});
    return out;
  }
  [[nodiscard]] bool recording() const override { return recording_; }

  Status guard(int32_t rank, std::byte* data, int64_t bytes) override {
    auto on = stream(rank, main_stream);
    if (!on) return on.error();
    if (auto done =
            good(gpu::set_bytes(*on, data - guard_bytes, guard_byte, guard_bytes), "write a guard");
        !done)
      return done;
    return good(gpu::set_bytes(*on, data + bytes, guard_byte, guard_bytes), "write a guard");
  }

  Status poison(int32_t rank, std::byte* data, int64_t bytes) override {
    auto on = stream(rank, main_stream);
    if (!on) return on.error();
    if (auto done = good(gpu::set_bytes(*on, data, poison_byte, bytes), "poison a buffer"); !done)
      return done;
    return guard(rank, data, bytes);
  }

  Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) override {
    std::byte guards[2 * guard_bytes];
    if (auto done = read(rank, data - guard_bytes, guards, guard_bytes); !done) return done.error();
    if (auto done = read(rank, data + bytes, guards + guard_bytes, guard_bytes); !done)
      return done.error();
    return std::all_of(std::begin(guards), std::end(guards),
                       [](std::byte b) { return b == static_cast<std::byte>(guard_byte); });
  }

  Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape,
              const DataTable& table, int64_t start) override {
    auto on = stream(rank, main_stream);
    if (!on) return on.error();
    auto data = uploaded(rank, table, table.source());
    if (!data) return data.error();
    return good(gpu::fill(*on, table_walk(box, shape, table, start), *data, to), "fill a buffer");
  }

  Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box,
                             std::span<const int64_t> shape, const DataTable& table, int64_t start,
                             size_t keep) override {
    auto on = stream(rank, main_stream);
    if (!on) return on.error();
    auto data = uploaded(rank, table, table.answer());
    if (!data) return data.error();
    std::vector<int64_t> counters(2 + keep, 0);
    const auto bytes = static_cast<int64_t>(counters.size() * sizeof(int64_t));
    auto there = scratch(rank, 100, bytes);
    if (!there) return there.error();
    if (auto done = write(rank, reinterpret_cast<const std::byte*>(counters.data()), *there, bytes);
        !done)
      return done.error();
    const int code = gpu::compare(*on, table_walk(box, shape, table, start), *data, found,
                                  reinterpret_cast<int64_t*>(*there), static_cast<int64_t>(keep));
    if (auto done = good(code, "compare a buffer"); !done) return done.error();
    if (auto done = read(rank, *there, reinterpret_cast<std::byte*>(counters.data()), bytes); !done)
      return done.error();
    Comparison result;
    result.wrong = counters[0];
    const auto kept =
        static_cast<std::ptrdiff_t>(std::min<int64_t>(counters[1], static_cast<int64_t>(keep)));
    result.first.assign(counters.begin() + 2, counters.begin() + 2 + kept);
    std::sort(result.first.begin(), result.first.end());
    return result;
  }

  Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override {
    return move(rank, from, to, bytes, cudaMemcpyDeviceToHost);
  }
  Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) override {
    return move(rank, from, to, bytes, cudaMemcpyHostToDevice);
  }

  [[nodiscard]] GpuCounts counts() const override { return counts_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const override {
    auto version = [](int v) {
      return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    std::vector<std::pair<std::string, std::string>> out{
        {"CUDA compiled for", version(CUDART_VERSION)},
        {"CUDA runtime", version(runtime_)},
        {"CUDA driver", version(driver_)}};
    for (const auto& [rank, place] : places_) {
      cudaDeviceProp properties{};
      (void)cudaGetDeviceProperties(&properties, place.gpu);
      // Its number depends on what the process may see, its place on the bus does not.
      char bus[32] = "";
      (void)cudaDeviceGetPCIBusId(bus, sizeof(bus), place.gpu);
      out.emplace_back("rank number " + std::to_string(rank),
                       "GPU " + std::to_string(place.gpu) + " at " + bus + ", " + properties.name);
    }
    return out;
  }

 private:
  struct Slab {
    std::byte* data = nullptr;
    int64_t size = 0;
    int64_t used = 0;
  };
  struct Stream {
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;  // made when another stream first waits for this one
  };
  struct Place {
    int gpu = 0;
    std::vector<Stream> streams;
    std::vector<Slab> slabs;
    size_t current = 0;
    std::map<int, Slab> scratch;
    std::vector<cudaGraphExec_t> recorded;  // by number
    [[nodiscard]] cudaStream_t own() const { return streams[main_stream].stream; }
  };

  static void forget(Place& place) {
    for (cudaGraphExec_t graph : place.recorded) {
      if (graph != nullptr) (void)cudaGraphExecDestroy(graph);
    }
    place.recorded.clear();
  }

  Status get_slab(int32_t rank, int64_t need, Slab& slab) const {
    if (!memory_.get) return get(rank, std::max(need, slab_bytes), slab);
    // Times a power of two, so that ranks with boxes of nearly one size have slabs of the same.
    int64_t bytes = slab_bytes;
    while (bytes < need) bytes *= 2;
    auto data = memory_.get(bytes);
    if (!data)
      return environment("rank number " + std::to_string(rank) + ": " + data.error().message);
    slab = {*data, bytes, 0};
    return Done{};
  }

  static Status get(int32_t rank, int64_t bytes, Slab& slab) {
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, static_cast<size_t>(bytes));
    if (code != cudaSuccess) {
      return environment("rank number " + std::to_string(rank) + " cannot allocate " +
                         std::to_string(bytes) + " bytes of GPU memory (" +
                         cudaGetErrorString(code) + "); replay a smaller shape with --shrink");
    }
    slab = {static_cast<std::byte*>(data), bytes, 0};
    return Done{};
  }

  Status move(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes,
              cudaMemcpyKind kind) {
    auto on = stream(rank, main_stream);
    if (!on) return on.error();
    auto* s = static_cast<cudaStream_t>(*on);
    if (auto done =
            good(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, s), "copy a buffer");
        !done)
      return done;
    return good(cudaStreamSynchronize(s), "copy a buffer");
  }

  static gpu::TableWalk table_walk(const Box& box, std::span<const int64_t> shape,
                                   const DataTable& table, int64_t start) {
    const Region region = make_region(box, full_box(shape), box);
    gpu::TableWalk walk;
    walk.walk = walk_of(region, 1);
    walk.from_offset = region.from_offset;
    walk.period = table.period();
    walk.start = start;
    walk.size = static_cast<int>(element_bytes(table.question().dtype));
    return walk;
  }

  // The table in the rank's GPU memory, until the next reset.
  Result<const std::byte*> uploaded(int32_t rank, const DataTable& table, const std::byte* data) {
    auto known = tables_.find({rank, data});
    if (known != tables_.end()) return known->second;
    const int64_t bytes = table.period() * element_bytes(table.question().dtype);
    auto there = allocate(rank, bytes);
    if (!there) return there.error();
    if (auto done = write(rank, data, *there, bytes); !done) return done.error();
    tables_[{rank, data}] = *there;
    return static_cast<const std::byte*>(*there);
  }

  std::map<int32_t, Place> places_;
  std::map<std::pair<int32_t, const std::byte*>, const std::byte*> tables_;
  GpuMemory memory_;
  bool recording_ = false;
  GpuCounts counts_;
  int runtime_ = 0;
  int driver_ = 0;
};

}  // namespace

Result<std::unique_ptr<GpuDevice>> open_cuda(const std::vector<int32_t>& ranks, int64_t first) {
  auto device = std::make_unique<CudaDevice>();
  if (auto done = device->open(ranks, first); !done) return done.error();
  return std::unique_ptr<GpuDevice>(std::move(device));
}

}  // namespace meshplan
