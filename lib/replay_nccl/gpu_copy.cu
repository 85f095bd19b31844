// Copies of runs between buffers, each the way that was the fastest for it (an H200;
// testdata/results/nccl.txt has the numbers):
//
//     vectors across the ends of runs   vectors of 8 or 16 bytes divide every address, or runs are
//                                       short
//     vectors run by run                of 4 or 8 bytes, into gaps, runs of 32 of them and more
//     words                             all other runs of 16 bytes and more: 16 bytes of the target
//                                       at a time, put together of what the source has, wherever it
//                                       lies
//
// A thread has all that it reads on its way before it writes.
#include "replay_nccl/gpu_kernels.h"
#include "replay_nccl/gpu_launch.h"

namespace meshplan::gpu {
namespace {

// Runs do not lie one behind the other in the target.
bool into_gaps(const Walk& walk) { return walk.to_stride[walk.dims - 1] != walk.run; }

// Neighbouring threads copy neighbouring vectors, across the ends of runs, so that none is idle
// whatever the length of a run.
template <class Vector>
constexpr uint32_t across_at_once = sizeof(Vector) <= 4 ? 8 : 4;

template <class Vector, class Index>
__global__ void copy_across_runs(Steps<Index> steps, const char* from, char* to, Index all) {
  constexpr uint32_t several = across_at_once<Vector>;
  const Index stride = static_cast<Index>(gridDim.x) * blockDim.x * several;
  for (Index first = blockIdx.x * static_cast<Index>(blockDim.x) * several + threadIdx.x;
       first < all; first += stride) {
    Vector held[several] = {};
    int64_t targets[several];
    for (uint32_t k = 0; k < several; ++k) {
      const Index i = first + k * blockDim.x;
      if (i >= all) break;
      const Index run = steps.run.divide(i);
      const auto within =
          static_cast<int64_t>(i - run * steps.run.by) * static_cast<int64_t>(sizeof(Vector));
      int64_t source = 0;
      locate<Index>(steps, run, source, targets[k]);
      targets[k] += within;
      held[k] = *reinterpret_cast<const Vector*>(from + source + within);
    }
    for (uint32_t k = 0; k < several; ++k) {
      if (first + k * blockDim.x >= all) break;
      *reinterpret_cast<Vector*>(to + targets[k]) = held[k];
    }
  }
}

// Each run by 32 neighbouring threads: of what is written into gaps its sectors of 32 bytes, which
// two vectors share where runs begin between them, are then written at nearly one time.
constexpr uint32_t lanes = 32;
constexpr uint32_t run_at_once = 4;

template <class Vector, class Index>
__global__ void copy_run_by_run(Steps<Index> steps, const char* from, char* to, Index pieces,
                                Index all) {
  const Index thread = blockIdx.x * static_cast<Index>(blockDim.x) + threadIdx.x;
  const Index teams = static_cast<Index>(gridDim.x) * blockDim.x / lanes;
  for (Index piece = thread / lanes; piece < all; piece += teams) {
    const Index run = piece / pieces;
    int64_t f = 0;
    int64_t t = 0;
    locate<Index>(steps, run, f, t);
    const Index first = (piece - run * pieces) * lanes * run_at_once + thread % lanes;
    const auto* source = reinterpret_cast<const Vector*>(from + f);
    auto* target = reinterpret_cast<Vector*>(to + t);
    Vector held[run_at_once] = {};
    for (uint32_t k = 0; k < run_at_once; ++k) {
      const Index i = first + k * lanes;
      if (i < steps.run.by) held[k] = source[i];
    }
    for (uint32_t k = 0; k < run_at_once; ++k) {
      const Index i = first + k * lanes;
      if (i < steps.run.by) target[i] = held[k];
    }
  }
}

template <class Vector, class Index>
int copy_vectors(void* stream, const Walk& walk, const void* from, void* to, int64_t all) {
  const int64_t vectors = walk.run / static_cast<int64_t>(sizeof(Vector));  // of a run
  const Steps<Index> steps(walk, vectors);
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (sizeof(Vector) == 16 || !into_gaps(walk) || vectors < lanes)
    return launch(copy_across_runs<Vector, Index>, all / across_at_once<Vector> + 1, stream, steps,
                  source, target, static_cast<Index>(all));
  const int64_t pieces = (vectors + lanes * run_at_once - 1) / (lanes * run_at_once);
  const int64_t of_all = all / vectors * pieces;
  return launch(copy_run_by_run<Vector, Index>, of_all * lanes, stream, steps, source, target,
                static_cast<Index>(pieces), static_cast<Index>(of_all));
}

template <class Vector>
int copy_as(void* stream, const Walk& walk, const void* from, void* to, int64_t runs) {
  // 32 bits are faster, where no number comes near their end.
  const int64_t all = runs * (walk.run / static_cast<int64_t>(sizeof(Vector)));
  return all < (int64_t{1} << 30) ? copy_vectors<Vector, uint32_t>(stream, walk, from, to, all)
                                  : copy_vectors<Vector, uint64_t>(stream, walk, from, to, all);
}

constexpr uint32_t word_bytes = 16;

// The two aligned words that hold 16 bytes of memory, which begin at byte `places` of the first.
struct Pair {
  uint4 low = {};
  uint4 high = {};
  uint32_t places = 0;
};

// Bytes first to last of the 16 at an address; only aligned words with one of them are read.
__device__ void load(uintptr_t at, uint32_t first, uint32_t last, Pair& pair) {
  pair.places = static_cast<uint32_t>(at % word_bytes);
  const auto* words = reinterpret_cast<const uint4*>(at - pair.places);
  if (first < last && pair.places + first < word_bytes) pair.low = words[0];
  if (first < last && pair.places + last > word_bytes) pair.high = words[1];
}

// Those 16 bytes.
__device__ uint4 shifted_down(const Pair& pair) {
  const auto& [low, high, places] = pair;
  const uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t by_two[6];
  for (uint32_t i = 0; i < 6; ++i) by_two[i] = (places & 8) != 0 ? w[i + 2] : w[i];
  uint32_t by_one[5];
  for (uint32_t i = 0; i < 5; ++i) by_one[i] = (places & 4) != 0 ? by_two[i + 1] : by_two[i];
  uint32_t out[4];
  const uint32_t bits = 8 * (places & 3);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint64_t both = static_cast<uint64_t>(by_one[i + 1]) << 32 | by_one[i];
    out[i] = static_cast<uint32_t>(both >> bits);
  }
  return {out[0], out[1], out[2], out[3]};
}

// All bits of a word's 32-bit part number `part` that belong to its bytes before `end`.
__device__ uint32_t bits_before(uint32_t end, uint32_t part) {
  if (end >= 4 * part + 4) return ~uint32_t{0};
  return end <= 4 * part ? 0 : (uint32_t{1} << (8 * (end - 4 * part))) - 1;
}

// Bytes before `end` of one word, the rest of another.
__device__ uint4 joined(const uint4& before, const uint4& after, uint32_t end) {
  const uint32_t a[4] = {before.x, before.y, before.z, before.w};
  const uint32_t b[4] = {after.x, after.y, after.z, after.w};
  uint32_t out[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t mask = bits_before(end, i);
    out[i] = (a[i] & mask) | (b[i] & ~mask);
  }
  return {out[0], out[1], out[2], out[3]};
}

// Runs that lie one behind the other in the target; a walk's blocks are at its outer dims.
template <class Index>
struct Block {
  int64_t bytes = 0;
  int64_t from_stride = 0;  // from run to run
  Divisor<Index> run;       // bytes
};

// Where a word goes: its bytes first to last, none where last is 0.
struct Place {
  char* at = nullptr;
  uint32_t first = 0;
  uint32_t last = 0;
};

__device__ void store_word(const Place& place, const uint4& word) {
  if (place.first == 0 && place.last == word_bytes) {
    *reinterpret_cast<uint4*>(place.at) = word;
    return;
  }
  const uint32_t parts[4] = {word.x, word.y, word.z, word.w};
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t end = 4 * i + 4;
    if (place.first <= 4 * i && place.last >= end) {
      *reinterpret_cast<uint32_t*>(place.at + 4 * i) = parts[i];
    } else if (place.first < end && place.last > 4 * i) {
      for (uint32_t byte = 4 * i; byte < end; ++byte) {
        if (byte >= place.first && byte < place.last)
          place.at[byte] = static_cast<char>(parts[i] >> (8 * (byte % 4)));
      }
    }
  }
}

// A word of two runs at most: what is read of either, and where the second begins.
struct Word {
  Pair run;
  Pair next;
  uint32_t split = word_bytes;
  Place place;
};

// Word number i of runs of 16 bytes and more. Blocks begin anywhere, so each counts a word more
// than it fills.
template <class Index>
__device__ void read_word(const Steps<Index>& steps, const Block<Index>& block, const char* from,
                          char* to, Index i, Word& word) {
  const Index number = steps.run.divide(i);
  int64_t source = 0;
  int64_t target = 0;
  locate<Index>(steps, number, source, target);
  const auto unaligned =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(to + target) % word_bytes);
  const int64_t at = static_cast<int64_t>(i - number * steps.run.by) * word_bytes - unaligned;
  if (at >= block.bytes) return;
  const uint32_t first = at < 0 ? static_cast<uint32_t>(-at) : 0;
  const uint32_t last =
      block.bytes - at < word_bytes ? static_cast<uint32_t>(block.bytes - at) : word_bytes;
  word.place = {to + target + at, first, last};
  const auto begin = static_cast<Index>(at + first);
  const Index run = block.run.divide(begin);
  const Index within = begin - run * block.run.by;
  const Index left = block.run.by - within;
  const uintptr_t in_run = reinterpret_cast<uintptr_t>(from + source) + run * block.from_stride;
  word.split = left < last - first ? first + static_cast<uint32_t>(left) : last;
  load(in_run + within - first, first, word.split, word.run);
  load(in_run + block.from_stride - word.split, word.split, last, word.next);
}

template <class Index>
__global__ void copy_words(Steps<Index> steps, Block<Index> block, const char* from, char* to,
                           Index all) {
  const Index stride = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = blockIdx.x * static_cast<Index>(blockDim.x) + threadIdx.x; i < all; i += stride) {
    Word word;
    read_word(steps, block, from, to, i, word);
    if (word.place.last == 0) continue;
    const uint4 run = shifted_down(word.run);
    const bool of_two = word.split < word.place.last;
    store_word(word.place, of_two ? joined(run, shifted_down(word.next), word.split) : run);
  }
}

template <class Index>
int start_words(void* stream, const Walk& outer, const Block<Index>& block, int64_t words,
                int64_t all, const void* from, void* to) {
  return launch(copy_words<Index>, all, stream, Steps<Index>(outer, words), block,
                static_cast<const char*>(from), static_cast<char*>(to), static_cast<Index>(all));
}

int copy_by_words(void* stream, const Walk& walk, const void* from, void* to, int64_t runs) {
  Walk outer = walk;
  int64_t bytes = walk.run;
  int64_t from_stride = 0;
  const int inner = walk.dims - 1;
  if (!into_gaps(walk)) {
    outer.dims = inner;
    bytes *= walk.extent[inner];
    from_stride = walk.from_stride[inner];
  }
  const int64_t words = (bytes + word_bytes - 2) / word_bytes + 1;
  const int64_t all = runs * walk.run / bytes * words;
  if (all < (int64_t{1} << 27))
    return start_words<uint32_t>(stream, outer, {bytes, from_stride, Divisor<uint32_t>(walk.run)},
                                 words, all, from, to);
  return start_words<uint64_t>(stream, outer, {bytes, from_stride, Divisor<uint64_t>(walk.run)},
                               words, all, from, to);
}

}  // namespace

int copy(void* stream, const Walk& walk, const void* from, void* to) {
  int64_t runs = 1;
  auto odd = static_cast<uint64_t>(walk.run) | reinterpret_cast<uint64_t>(from) |
             reinterpret_cast<uint64_t>(to);
  for (int d = 0; d < walk.dims; ++d) {
    runs *= walk.extent[d];
    odd |= static_cast<uint64_t>(walk.from_stride[d]) | static_cast<uint64_t>(walk.to_stride[d]);
  }
  if (runs == 0 || walk.run == 0) return 0;
  if (walk.dims == 0)
    return static_cast<int>(cudaMemcpyAsync(to, from, static_cast<size_t>(walk.run),
                                            cudaMemcpyDeviceToDevice, stream_of(stream)));
  if (odd % 16 == 0) return copy_as<uint4>(stream, walk, from, to, runs);
  if (odd % 8 == 0) return copy_as<uint2>(stream, walk, from, to, runs);
  if (odd % 4 == 0 && (into_gaps(walk) || walk.run < word_bytes))
    return copy_as<uint32_t>(stream, walk, from, to, runs);
  if (walk.run >= word_bytes) return copy_by_words(stream, walk, from, to, runs);
  if (odd % 2 == 0) return copy_as<uint16_t>(stream, walk, from, to, runs);
  return copy_as<uint8_t>(stream, walk, from, to, runs);
}

}  // namespace meshplan::gpu
