#include "fake_cuda.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fake_stream.h"

using meshplan::test::FakeStream;
using meshplan::test::StreamTask;

namespace {

struct Graph {
  std::vector<std::function<StreamTask()>> tasks;
};
struct Piece {
  int gpu;
  size_t bytes;
};

thread_local int current = 0;
std::map<FakeStream*, int> streams;  // with the GPU that each belongs to
std::map<void*, Piece> pieces;
int graphs = 0;

size_t told(const char* name, size_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : static_cast<size_t>(std::strtoull(value, nullptr, 10));
}
int gpus() { return static_cast<int>(told("FAKE_CUDA_GPUS", 1)); }

FakeStream* as_fake(void* stream) { return static_cast<FakeStream*>(stream); }

bool any_recording() {
  for (const auto& [stream, gpu] : streams) {
    if (stream->recording) return true;
  }
  return false;
}

// All streams of the process, in turn: one may wait for another.
void drive() {
  for (const auto& [stream, gpu] : streams) (void)stream->idle();
}

cudaError_t finish(FakeStream* stream) {
  if (stream->recording) return cudaErrorStreamCaptureUnsupported;
  while (!stream->tasks.empty()) drive();
  return cudaSuccess;
}

cudaError_t put(FakeStream* stream, std::function<void()> work, bool kernel) {
  const auto known = streams.find(stream);
  if (known == streams.end()) return cudaErrorInvalidResourceHandle;
  if (kernel && known->second != current) return cudaErrorInvalidResourceHandle;
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

int64_t alive_on_fake_cuda() { return static_cast<int64_t>(pieces.size() + streams.size()) + graphs; }

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
  for (const auto& [stream, gpu] : streams) (void)finish(stream);
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
  streams[made] = current;
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (streams.erase(as_fake(stream)) == 0) return cudaErrorInvalidResourceHandle;
  delete as_fake(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (as_fake(stream)->recording) return cudaErrorStreamCaptureUnsupported;
  drive();
  return as_fake(stream)->tasks.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return finish(as_fake(stream)); }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  FakeStream* fake = as_fake(stream);
  if (fake->recording) return cudaErrorIllegalState;
  fake->recording = true;
  fake->recorded.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FakeStream* fake = as_fake(stream);
  if (!fake->recording) return cudaErrorIllegalState;
  fake->recording = false;
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{std::move(fake->recorded)});
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
  if (streams.count(as_fake(stream)) == 0) return cudaErrorInvalidResourceHandle;
  for (const auto& make : reinterpret_cast<Graph*>(graph)->tasks) as_fake(stream)->tasks.push_back(make());
  return cudaSuccess;
}

}  // extern "C"
