// On a GPU: what the copy kernel moves beside cudaMemcpyAsync, and what replaying a single collective over NCCL costs beside bare loops of the
// same NCCL call: on blocking communicators, as the backend's where it measures, and on polled ones, as where it validates. In turns, in one
// run; medians:
//
//     build/tests/bench/nccl_overhead [ranks] [repetitions] [MiB a rank]
//
// All ranks are in this process; more of them than GPUs need NCCL 2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1 and NCCL_MAX_CTAS=4.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "copy/region.h"
#include "one_step.h"
#include "replay/executor.h"
#include "replay_nccl/cuda_device.h"
#include "replay_nccl/nccl_communicator.h"

namespace {

using namespace meshplan;
using Clock = std::chrono::steady_clock;

void good(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, code);
  std::exit(5);
}

// Milliseconds between two events around what is put on the stream.
double milliseconds(cudaStream_t stream, const std::function<void()>& put) {
  cudaEvent_t first{};
  cudaEvent_t last{};
  good(cudaEventCreate(&first), "an event");
  good(cudaEventCreate(&last), "an event");
  good(cudaEventRecord(first, stream), "an event");
  put();
  good(cudaEventRecord(last, stream), "an event");
  good(cudaStreamSynchronize(stream), "a stream");
  float taken = 0;
  good(cudaEventElapsedTime(&taken, first, last), "an event");
  good(cudaEventDestroy(first), "an event");
  good(cudaEventDestroy(last), "an event");
  return taken;
}

// Packs and unpacks boxes whose rows are a part of the buffer's rows: 256 MiB of them.
void measure_copies(GpuDevice& device) {
  constexpr int64_t payload = int64_t{256} << 20;
  auto* stream = static_cast<cudaStream_t>(device.stream(0, GpuDevice::main_stream).value());
  std::printf("%-8s %8s %6s %12s %12s %6s\n", "copy", "run (B)", "rows x", "GB/s", "memcpy GB/s", "ratio");
  for (const bool packs : {true, false}) {
    for (const int64_t run : {2, 6, 16, 20, 64, 100, 256, 300, 302, 512, 1000, 1024, 4096, 65536, 65538, 1048576}) {
      for (const int64_t parts : {2, 8}) {
        const int64_t rows = payload / run;
        device.reset();
        const Box wide{{0, rows}, {0, run * parts}};
        const Box narrow{{0, rows}, {0, run}};
        std::byte* gapped = device.allocate(0, volume(wide)).value();
        std::byte* dense = device.allocate(0, volume(narrow)).value();
        LocalOp op;
        op.dtype = DType::uint8;
        op.region = packs ? make_region(narrow, wide, narrow) : make_region(narrow, narrow, wide);
        op.from = packs ? gapped : dense;
        op.to = packs ? dense : gapped;
        std::vector<double> kernel;
        std::vector<double> memcpy;
        for (int turn = -3; turn < 15; ++turn) {
          const double a = milliseconds(stream, [&] { (void)device.work(0, {&op, 1}).value(); });
          const double b = milliseconds(stream, [&] {
            good(cudaMemcpyAsync(dense, gapped, static_cast<size_t>(rows * run), cudaMemcpyDeviceToDevice, stream), "a copy");
          });
          if (turn < 0) continue;
          kernel.push_back(a);
          memcpy.push_back(b);
        }
        const double bytes = 2e-6 * static_cast<double>(rows * run);  // read and written, GB/s from ms
        std::printf("%-8s %8lld %6lld %12.0f %12.0f %6.2f\n", packs ? "pack" : "unpack", static_cast<long long>(run),
                    static_cast<long long>(parts), bytes / median(kernel), bytes / median(memcpy), median(memcpy) / median(kernel));
      }
    }
  }
  device.reset();
}

// NCCL's functions of the library that the backend has loaded.
struct Bare {
  decltype(&::ncclCommInitRankConfig) init = nullptr;
  decltype(&::ncclGetUniqueId) unique_id = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclGroupStart) start = nullptr;
  decltype(&::ncclGroupEnd) end = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAlltoAll) all_to_all = nullptr;
  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;

  Bare(const std::string& path, int64_t ranks, bool blocking) {
    void* library = dlopen(path.c_str(), RTLD_NOW);
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) std::exit(5);
    };
    find(init, "ncclCommInitRankConfig");
    find(unique_id, "ncclGetUniqueId");
    find(async_error, "ncclCommGetAsyncError");
    find(start, "ncclGroupStart");
    find(end, "ncclGroupEnd");
    find(all_gather, "ncclAllGather");
    find(all_reduce, "ncclAllReduce");
    find(reduce_scatter, "ncclReduceScatter");
    find(all_to_all, "ncclAlltoAll");
    int gpus = 1;
    good(cudaGetDeviceCount(&gpus), "GPUs");
    comms.resize(static_cast<size_t>(ranks));
    streams.resize(comms.size());
    std::vector<int> devices;
    for (int r = 0; r < static_cast<int>(ranks); ++r) devices.push_back(r % gpus);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    ncclUniqueId id;
    good(unique_id(&id), "an id");
    good(start(), "a group");
    for (size_t r = 0; r < comms.size(); ++r) {
      good(cudaSetDevice(devices[r]), "a GPU");
      begun(init(&comms[r], static_cast<int>(ranks), id, static_cast<int>(r), &config), "communicators");
    }
    begun(end(), "a group");
    settle();
    for (size_t r = 0; r < streams.size(); ++r) {
      good(cudaSetDevice(devices[r]), "a GPU");
      good(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking), "a stream");
    }
  }

  static void begun(ncclResult_t code, const char* what) { good(code == ncclInProgress ? 0 : code, what); }
  void settle() const {
    for (ncclComm_t comm : comms) {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) good(async_error(comm, &state), "a communicator");
      good(state, "a communicator");
    }
  }

  void run(const Call& call) const {
    good(start(), "a group");
    for (const RankCall& rank : call.ranks) {
      ncclComm_t comm = comms[static_cast<size_t>(rank.rank)];
      cudaStream_t stream = streams[static_cast<size_t>(rank.rank)];
      const void* from = rank.sends.front().data;
      void* to = rank.receives.front().data;
      const auto sent = static_cast<size_t>(rank.sends.front().count);
      const auto received = static_cast<size_t>(rank.receives.front().count);
      switch (call.op) {
        case Op::all_gather:
          begun(all_gather(from, to, sent, ncclFloat, comm, stream), "all_gather");
          break;
        case Op::all_reduce:
          begun(all_reduce(from, to, sent, ncclFloat, ncclSum, comm, stream), "all_reduce");
          break;
        case Op::reduce_scatter:
          begun(reduce_scatter(from, to, received, ncclFloat, ncclSum, comm, stream), "reduce_scatter");
          break;
        default:
          begun(all_to_all(from, to, sent, ncclFloat, comm, stream), "all_to_all");
      }
    }
    begun(end(), "a group");
    settle();
    for (cudaStream_t stream : streams) {
      while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      }
    }
  }
};

double seconds(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t ranks = argc > 1 ? std::atoll(argv[1]) : 1;
  const int64_t repetitions = argc > 2 ? std::atoll(argv[2]) : 200;
  const int64_t elements = (argc > 3 ? std::atoll(argv[3]) : 4) << 18;  // float32 a rank
  std::vector<int32_t> numbers(static_cast<size_t>(ranks));
  std::iota(numbers.begin(), numbers.end(), 0);
  auto device = open_cuda(numbers, 0);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 5;
  }
  for (const auto& [name, value] : (*device)->facts()) std::printf("# %s: %s\n", name.c_str(), value.c_str());
  measure_copies(**device);
  auto nccl = NcclLibrary::load();
  if (!nccl) {
    std::fprintf(stderr, "%s\n", nccl.error().message.c_str());
    return 5;
  }
  NcclQuestion question;
  question.nccl = *nccl;
  question.device = device->get();
  question.world = ranks;
  question.global_ids.assign(numbers.begin(), numbers.end());
  question.calls = NcclLibrary::Calls::block;  // as where steps are measured
  auto communicator = open_nccl(question);
  if (!communicator) {
    std::fprintf(stderr, "%s\n", communicator.error().message.c_str());
    return 5;
  }
  const Bare blocking(nccl->path(), ranks, true);
  const Bare polled(nccl->path(), ranks, false);
  std::printf("# NCCL %s, %lld ranks, %lld KiB a rank, %lld repetitions in turns\n%-16s %12s %12s %12s %10s %10s\n",
              nccl_version_text(nccl->version()).c_str(), static_cast<long long>(ranks), static_cast<long long>(elements / 256),
              static_cast<long long>(repetitions), "op", "replayed us", "polled us", "blocking us", "to polled", "to blocking");
  for (const OneStep& s : collectives_to_measure(ranks, elements)) {
    const Plan plan = one_step(ranks, s.shape, s.before, s.after, s.op);
    ReplayOptions options;
    options.full_size = true;
    const RankTable table = make_rank_table(plan.meshes);
    (*device)->reset();
    const RedistributionRun::Question asked{&plan,  plan.redistributions.data(), &options, &table, communicator->get(), device->get(),
                                            nullptr};
    auto run = RedistributionRun::prepare(asked);
    (void)RedistributionRun::agree(run, asked).value();
    const Call* bare_call = run->bare_call(0);
    if (bare_call == nullptr) {
      std::printf("%-16s no call: nothing moves\n", to_text(s.op));
      continue;
    }
    const Call& call = *bare_call;
    std::vector<double> replayed;
    std::vector<double> bare;
    std::vector<double> waited;
    for (int64_t turn = -5; turn < repetitions; ++turn) {
      const double a = seconds([&] { (void)run->run_step(0).value(); });
      const double b = seconds([&] { polled.run(call); });
      const double c = seconds([&] { blocking.run(call); });
      if (turn < 0) continue;
      replayed.push_back(a);
      bare.push_back(b);
      waited.push_back(c);
    }
    std::printf("%-16s %12.1f %12.1f %12.1f %10.3f %10.3f\n", to_text(s.op), median(replayed) * 1e6, median(bare) * 1e6,
                median(waited) * 1e6, median(replayed) / median(bare), median(replayed) / median(waited));
    std::fflush(stdout);
  }
  return 0;
}
