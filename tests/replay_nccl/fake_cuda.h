// A small CUDA over host memory: the runtime's functions that the backend calls (fake_cuda.cc), on streams that nothing runs until somebody
// asks (fake_stream.h), and kernels as loops. Of several streams the youngest runs first, as far as it comes, so that what does not wait for
// an event runs too early. It refuses what the real one refuses and a test would not notice: work for a stream of another GPU than the
// current one, waiting and allocating while a graph is recorded, a graph with a stream that is not joined again, freeing twice. FAKE_CUDA_GPUS=number and
// FAKE_CUDA_MEMORY=bytes say how many GPUs there are, with how much memory each; 1 and without end unless told.
//
// The .cu files of the backend are compiled for the host with this file before them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

struct FakeIndex {
  unsigned x = 0;
};
// CUDA's names.
inline thread_local FakeIndex blockIdx;
inline thread_local FakeIndex threadIdx;
inline thread_local FakeIndex blockDim;
inline thread_local FakeIndex gridDim;

inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long more) {
  const unsigned long long before = *at;
  *at += more;
  return before;
}

namespace meshplan::test {

// A cudaError_t.
int enqueue_on(void* stream, std::function<void()> work);

// Few threads, so that each has many turns, but whole warps. The last one runs first: what a later one writes is there before an earlier one
// reads, as it may be on a GPU.
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), int64_t work, void* stream, Arguments... arguments) {
  return enqueue_on(stream, [=] {
    blockDim.x = 32;
    gridDim.x = work > 32 ? 3 : 1;
    for (blockIdx.x = gridDim.x; blockIdx.x-- > 0;) {
      for (threadIdx.x = blockDim.x; threadIdx.x-- > 0;) kernel(arguments...);
    }
  });
}

// What was allocated and not freed, and streams, events and graphs that were not destroyed.
[[nodiscard]] int64_t alive_on_fake_cuda();
[[nodiscard]] int64_t streams_on_fake_cuda();

}  // namespace meshplan::test
