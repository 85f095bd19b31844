#include "copy/copy_past_cache.h"

#include "copy/half_lines.h"

#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstring>

namespace meshplan {
namespace {

constexpr int64_t line = 64;

// To the start of the next line, and from the start of this one.
int64_t bytes_to_line(const std::byte* at) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(line));
}
int64_t bytes_from_line(const std::byte* at) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(line));
}

// Two pieces of a compile-time size, which may overlap.
template <size_t piece>
void copy_two(const std::byte* from, std::byte* to, int64_t bytes) {
  std::memcpy(to, from, piece);
  const int64_t last = bytes - static_cast<int64_t>(piece);
  std::memcpy(to + last, from + last, piece);
}

// Less than a line, at either end of a run.
void copy_end(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes >= 32) return copy_two<32>(from, to, bytes);
  if (bytes >= 16) return copy_two<16>(from, to, bytes);
  if (bytes >= 8) return copy_two<8>(from, to, bytes);
  if (bytes >= 4) return copy_two<4>(from, to, bytes);
  for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
}

__attribute__((target("avx"), always_inline)) inline void write_line(const std::byte* from,
                                                                     std::byte* to) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + 1);
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, b);
}

// Copies runs in order, prefetching `ahead` bytes. Target lines that a run does not fill go through
// the cache and are prefetched for writing.
__attribute__((target("avx"))) void copy_in_order(Runs runs, int64_t ahead) {
  const int64_t to_ahead = runs.from_step == 0 ? 0 : ahead / runs.from_step * runs.to_step;
  for (int64_t i = 0; i < runs.count; ++i, runs.from += runs.from_step, runs.to += runs.to_step) {
    int64_t at = std::min(runs.bytes, bytes_to_line(runs.to));
    if (at != 0) {
      ask_for(runs.to + to_ahead);
      copy_end(runs.from, runs.to, at);
    }
    for (; at + line <= runs.bytes; at += line) {
      ask_for(runs.from + ahead + at);
      write_line(runs.from + at, runs.to + at);
    }
    if (at == runs.bytes) continue;
    if (runs.to_step != runs.bytes) ask_for(runs.to + to_ahead + runs.bytes - 1);
    copy_end(runs.from + at, runs.to + at, runs.bytes - at);
  }
}

// Runs that fill whole lines, a line of each in turn. Not inlined, so that strides are loaded from
// memory: inlined it prefetches too fast (67 % instead of 73 % of the speed of memcpy at 256 bytes
// of 2048).
__attribute__((target("avx"), noinline)) void copy_lines_in_turn(const Runs& runs, int64_t ahead) {
  for (int64_t at = 0; at < runs.bytes; at += line) {
    const std::byte* f = runs.from + at;
    std::byte* t = runs.to + at;
#pragma GCC unroll 1
    for (int64_t i = 0; i < runs.count; ++i, f += runs.from_step, t += runs.to_step) {
      ask_for_later(f + ahead);
      write_line(f, t);
    }
  }
}

// Eight runs at a time.
void copy_side_by_side(Runs runs, int64_t ahead) {
  const int64_t all = runs.count;
  runs.count = 8;
  int64_t done = 0;
  for (; done + runs.count <= all; done += runs.count) {
    copy_lines_in_turn(runs, ahead);
    runs.from += runs.count * runs.from_step;
    runs.to += runs.count * runs.to_step;
  }
  runs.count = all - done;
  copy_in_order(runs, ahead);
}

// Runs that are contiguous in the target.
class Gathering {
 public:
  __attribute__((target("avx"))) void add(const Runs& runs, int64_t ahead) {
    if (runs.to != start_ + held_) {
      finish();
      held_ = held_from_ = bytes_from_line(runs.to);
      start_ = runs.to - held_;
    }
    // Kept in registers: a normal store would wait for the non-temporal stores.
    const std::byte* from = runs.from;
    const int64_t step = runs.from_step;
    const int64_t bytes = runs.bytes;
    int64_t held = held_;
    const int64_t at_a_time = std::clamp<int64_t>(longest_with_care / bytes, 1, 8);
    for (int64_t i = 0; i < runs.count; i += at_a_time) {
      const int64_t count = std::min(at_a_time, runs.count - i);
      // Prefetches exactly the lines of the runs: the first line of each run, then the second. In
      // memory order, the hardware prefetchers would continue past the runs.
      for (int64_t at = 0; at < bytes + line - 1; at += line) {
        const std::byte* run = from + ahead;
#pragma GCC unroll 1
        for (int64_t j = 0; j < count; ++j, run += step) {
          const std::byte* l = run - bytes_from_line(run) + at;
          if (l < run + bytes) ask_for_later(l);
        }
      }
      for (int64_t j = 0; j < count; ++j, from += step, held += bytes)
        copy_run_by_half_lines(from, room_.data() + held, bytes);
      held = write_lines(held);
    }
    held_ = held;
  }
  __attribute__((target("avx"))) void finish() {
    held_ = write_lines(held_);
    copy_end(room_.data() + held_from_, start_ + held_from_, held_ - held_from_);
    held_ = held_from_ = 0;
  }

 private:
  // Flushes the held bytes except an incomplete last line; returns how many remain.
  __attribute__((target("avx"), always_inline)) int64_t write_lines(int64_t held) {
    if (held < line) return held;
    if (held_from_ > 0) copy_end(room_.data() + held_from_, start_ + held_from_, line - held_from_);
    const int64_t whole = held / line * line;
    for (int64_t at = held_from_ > 0 ? line : 0; at < whole; at += line)
      write_line(room_.data() + at, start_ + at);
    std::memcpy(room_.data(), room_.data() + whole, line);
    start_ += whole;
    held_from_ = 0;
    return held - whole;
  }

  alignas(line) std::array<std::byte, 2 * line + longest_with_care> room_;
  std::byte* start_ = nullptr;  // target line of room_
  int64_t held_ = 0;            // bytes of room_
  int64_t held_from_ = 0;       // first valid byte
};

}  // namespace

bool copy_past_cache(const Region& region, const std::byte* from, std::byte* to,
                     int64_t element_size) {
  if (!has_half_lines()) return false;
  const int64_t bytes = region.run * element_size;
  const RegionDim& inner = region.dims.back();
  const bool gaps = inner.from_stride != region.run && bytes <= longest_with_care;
  const bool one_place = inner.to_stride == region.run;
  const bool whole_lines =
      bytes % line == 0 && bytes_to_line(to + region.to_offset * element_size) == 0 &&
      std::all_of(region.dims.begin(), region.dims.end(),
                  [&](const RegionDim& d) { return d.to_stride * element_size % line == 0; });
  auto for_all = [&](int64_t runs_ahead, auto&& copy) {
    const int64_t ahead = std::max<int64_t>(1, runs_ahead) * inner.from_stride * element_size;
    for_all_runs(region, from, to, element_size, [&](const Runs& runs) { copy(runs, ahead); });
  };
  // Method and prefetch distance are chosen by measurement (tests/bench/replay_bench.cc).
  const bool few_lines = bytes < 5 * line;
  if (gaps && whole_lines && (few_lines || !one_place)) {
    for_all(std::min<int64_t>(32, (32 << 10) / bytes), copy_side_by_side);
  } else if (gaps && one_place) {
    Gathering gathering;
    for_all((16 << 10) / bytes,
            [&](const Runs& runs, int64_t ahead) { gathering.add(runs, ahead); });
    gathering.finish();
  } else {
    for_all((2 << 10) / bytes, copy_in_order);
  }
  _mm_sfence();
  return true;
}

}  // namespace meshplan

#else

namespace meshplan {

bool copy_past_cache(const Region& /*region*/, const std::byte* /*from*/, std::byte* /*to*/,
                     int64_t /*element_size*/) {
  return false;
}

}  // namespace meshplan
#endif
