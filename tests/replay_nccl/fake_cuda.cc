#include "fake_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_stream.h"

using namespace meshplan::test;

namespace {

// What each stream of a graph does, that of the one that starts it first.
struct Graph {
  std::vector<std::vector<TaskMaker>> branches;
};
struct Piece {
  int gpu;
  size_t bytes;
};

thread_local int current = 0;
std::vector<FakeStream*> streams;                   // in the order of their making
std::vector<std::unique_ptr<FakeStream>> branches;  // of graphs that run
std::set<FakeEvent*> events;
std::map<void*, Piece> pieces;
int graphs = 0;

size_t told(const char* name, size_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : static_cast<size_t>(std::strtoull(value, nullptr, 10));
}
int gpus() { return static_cast<int>(told("FAKE_CUDA_GPUS", 1)); }

FakeStream* as_fake(void* stream) { return static_cast<FakeStream*>(stream); }
FakeEvent* as_event(void* event) { return static_cast<FakeEvent*>(event); }
bool is_stream(FakeStream* stream) { return std::find(streams.begin(), streams.end(), stream) != streams.end(); }

bool any_recording() {
  return std::any_of(streams.begin(), streams.end(), [](const FakeStream* stream) { return stream->capture != nullptr; });
}

// All streams of the process, the youngest first, each as far as it comes.
void drive() {
  for (size_t i = branches.size(); i-- > 0;) {
    if (branches[i]->idle()) branches.erase(branches.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (size_t i = streams.size(); i-- > 0;) (void)streams[i]->idle();
}

cudaError_t finish(FakeStream* stream) {
  if (stream->capture) return cudaErrorStreamCaptureUnsupported;
  while (!stream->tasks.empty()) drive();
  return cudaSuccess;
}

cudaError_t put(FakeStream* stream, std::function<void()> work, bool kernel) {
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (kernel && stream->gpu != current) return cudaErrorInvalidResourceHandle;
  stream->put([work = std::move(work)]() -> StreamTask {
    return [work] {
      work();
      return true;
    };
  });
  return cudaSuccess;
}

}  // namespace

namespace meshplan::test {

int enqueue_on(void* stream, std::function<void()> work) { return static_cast<int>(put(as_fake(stream), std::move(work), true)); }

int64_t alive_on_fake_cuda() { return static_cast<int64_t>(pieces.size() + streams.size() + events.size()) + graphs; }
int64_t streams_on_fake_cuda() { return static_cast<int64_t>(streams.size()); }

}  // namespace meshplan::test

extern "C" {

const char* cudaGetErrorString(cudaError_t code) {
  static thread_local char text[64];
  (void)std::snprintf(text, sizeof(text), "error %d of the fake CUDA", static_cast<int>(code));
  return text;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpus();
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  (void)std::snprintf(properties->name, sizeof(properties->name), "none: host memory");
  properties->multiProcessorCount = 132;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  (void)std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpus()) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (any_recording()) return cudaErrorStreamCaptureUnsupported;
  size_t used = bytes;
  for (const auto& [piece, of] : pieces) used += of.gpu == current ? of.bytes : 0;
  if (used > told("FAKE_CUDA_MEMORY", SIZE_MAX)) return cudaErrorMemoryAllocation;
  // Pages of its own: memory that was freed is gone, and what nobody writes costs nothing.
  *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*data == MAP_FAILED) return cudaErrorMemoryAllocation;
  pieces[*data] = {current, bytes};
  return cudaSuccess;
}
// Waits for all work of the GPU, which may still use the memory.
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  if (any_recording()) return cudaErrorStreamCaptureUnsupported;
  const auto piece = pieces.find(data);
  if (piece == pieces.end()) return cudaErrorInvalidValue;
  for (FakeStream* stream : streams) (void)finish(stream);
  munmap(data, piece->second.bytes);
  pieces.erase(piece);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  return put(
      as_fake(stream), [=] { std::memmove(to, from, bytes); }, false);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return put(
      as_fake(stream), [=] { std::memset(to, value, bytes); }, true);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  auto* made = new FakeStream;
  made->gpu = current;
  streams.push_back(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto at = std::find(streams.begin(), streams.end(), as_fake(stream));
  if (at == streams.end()) return cudaErrorInvalidResourceHandle;
  streams.erase(at);
  delete as_fake(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (as_fake(stream)->capture) return cudaErrorStreamCaptureUnsupported;
  drive();
  return as_fake(stream)->tasks.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return finish(as_fake(stream)); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  auto* made = new FakeEvent;
  made->gpu = current;
  events.insert(made);
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (events.erase(as_event(event)) == 0) return cudaErrorInvalidResourceHandle;
  delete as_event(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FakeEvent* fake = as_event(event);
  FakeStream* on = as_fake(stream);
  if (events.count(fake) == 0 || !is_stream(on) || fake->gpu != on->gpu) return cudaErrorInvalidResourceHandle;
  auto reached = std::make_shared<std::set<int>>();
  on->put(numbered([reached](int run) -> StreamTask {
    return [reached, run] {
      reached->insert(run);
      return true;
    };
  }));
  fake->reached = reached;
  fake->capture = on->capture;
  fake->stream = on;
  fake->behind = on->capture ? on->capture->of(on).tasks.size() : 0;
  return cudaSuccess;
}
// A stream that waits for an event of a graph that is recorded becomes part of it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const FakeEvent* fake = as_event(event);
  FakeStream* on = as_fake(stream);
  if (events.count(as_event(event)) == 0 || !is_stream(on)) return cudaErrorInvalidResourceHandle;
  if (fake->reached == nullptr) return cudaSuccess;
  if (fake->capture == nullptr && on->capture) return cudaErrorStreamCaptureIsolation;
  if (fake->capture) {
    if (fake->capture->ended) return cudaErrorCapturedEvent;
    if (!on->capture) {
      on->capture = fake->capture;
      on->capture->branches.push_back({on, {}, 0});
    }
    if (on->capture != fake->capture) return cudaErrorStreamCaptureMerge;
    if (on->capture->branches.front().stream == on) on->capture->of(fake->stream).joined = fake->behind;
  }
  on->put(numbered([reached = fake->reached](int run) -> StreamTask { return [reached, run] { return reached->count(run) > 0; }; }));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  FakeStream* fake = as_fake(stream);
  if (fake->capture) return cudaErrorIllegalState;
  fake->capture = std::make_shared<FakeCapture>();
  fake->capture->branches.push_back({fake, {}, 0});
  return cudaSuccess;
}
// What every stream that was forked from this one did has to be waited for by it.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FakeStream* fake = as_fake(stream);
  const std::shared_ptr<FakeCapture> capture = fake->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->branches.front().stream != fake) return cudaErrorStreamCaptureUnmatched;
  bool joined = true;
  auto* made = new Graph;
  for (auto& branch : capture->branches) {
    joined = joined && (branch.stream == fake || branch.joined == branch.tasks.size());
    branch.stream->capture = nullptr;
    made->branches.push_back(std::move(branch.tasks));
  }
  capture->ended = true;
  if (!joined) {
    delete made;
    *graph = nullptr;
    return cudaErrorStreamCaptureUnjoined;
  }
  *graph = reinterpret_cast<cudaGraph_t>(made);
  ++graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long /*flags*/) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  ++graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  --graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  --graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (!is_stream(as_fake(stream))) return cudaErrorInvalidResourceHandle;
  const auto& all = reinterpret_cast<Graph*>(graph)->branches;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) branches.push_back(std::make_unique<FakeStream>());
    FakeStream* on = i == 0 ? as_fake(stream) : branches.back().get();
    for (const TaskMaker& make : all[i]) on->tasks.push_back(make());
  }
  return cudaSuccess;
}

}  // extern "C"
