#include "replay/copy_past_cache.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace meshplan {
namespace {

constexpr int64_t line = 64;

int64_t bytes_to_line(const std::byte* at) { return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(line)); }

void ask_for(const std::byte* at) { _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0); }

// Two pieces of a size that the compiler knows, which may lie upon each other.
template <size_t piece>
void copy_two(const std::byte* from, std::byte* to, int64_t bytes) {
  std::memcpy(to, from, piece);
  const int64_t last = bytes - static_cast<int64_t>(piece);
  std::memcpy(to + last, from + last, piece);
}

// Less than a line, at an end of a run.
void copy_end(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes >= 32) return copy_two<32>(from, to, bytes);
  if (bytes >= 16) return copy_two<16>(from, to, bytes);
  if (bytes >= 8) return copy_two<8>(from, to, bytes);
  if (bytes >= 4) return copy_two<4>(from, to, bytes);
  for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
}

void copy_line(const std::byte* from, std::byte* to) {
  const auto* f = reinterpret_cast<const __m128i*>(from);
  auto* t = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(f);
  const __m128i b = _mm_loadu_si128(f + 1);
  const __m128i c = _mm_loadu_si128(f + 2);
  const __m128i d = _mm_loadu_si128(f + 3);
  _mm_stream_si128(t, a);
  _mm_stream_si128(t + 1, b);
  _mm_stream_si128(t + 2, c);
  _mm_stream_si128(t + 3, d);
}

void ask_for_later(const std::byte* at) { _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1); }

// `count` runs of `bytes`, the next one `from_step` and `to_step` bytes further on.
struct Runs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t from_step = 0;
  int64_t to_step = 0;
  int64_t count = 1;
  int64_t bytes = 0;
  int64_t ahead = 0;  // bytes from what is copied to what is asked for meanwhile
};

// Whole lines, those of all runs in turn. They are asked for into the second-level cache: more can be on their way to it than to the first.
// The loop over runs stays a loop: unrolled it needs more registers than there are, and what it spills waits behind the stores around the
// cache.
void copy_whole_lines(const Runs& runs) {
  for (int64_t at = 0; at < runs.bytes; at += line) {
    const std::byte* f = runs.from + at;
    std::byte* t = runs.to + at;
#pragma GCC unroll 1
    for (int64_t i = 0; i < runs.count; ++i, f += runs.from_step, t += runs.to_step) {
      ask_for_later(f + runs.ahead);
      copy_line(f, t);
    }
  }
}

// The same by half lines, for machines that have such registers: a fifth faster.
__attribute__((target("avx"))) void copy_half_lines(const Runs& runs) {
  for (int64_t at = 0; at < runs.bytes; at += line) {
    const std::byte* f = runs.from + at;
    std::byte* t = runs.to + at;
#pragma GCC unroll 1
    for (int64_t i = 0; i < runs.count; ++i, f += runs.from_step, t += runs.to_step) {
      _mm_prefetch(reinterpret_cast<const char*>(f + runs.ahead), _MM_HINT_T1);
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(f));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(f) + 1);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(t), a);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(t) + 1, b);
    }
  }
}

bool has_half_lines() {
  static const bool has = __builtin_cpu_supports("avx") != 0;
  return has;
}

void copy_lines(const Runs& runs) { (has_half_lines() ? copy_half_lines : copy_whole_lines)(runs); }

// A run of half a line or more, through the cache.
void copy_run(const std::byte* from, std::byte* to, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }

// The same for short ones, for which a call that takes any length costs as much as the bytes. The last half line may lie upon the one
// before.
__attribute__((target("avx"))) void copy_short_run(const std::byte* from, std::byte* to, int64_t bytes) {
  constexpr int64_t half = line / 2;
  const std::byte* last = from + bytes - half;
  std::byte* last_to = to + bytes - half;
  for (; from <= last; from += half, to += half) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(last_to), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(last)));
}

// One run after the other. Lines of the target that a run does not fill go through the cache, which must have them first.
void copy_in_order(Runs runs) {
  const int64_t to_ahead = runs.from_step == 0 ? 0 : runs.ahead / runs.from_step * runs.to_step;
  for (int64_t i = 0; i < runs.count; ++i, runs.from += runs.from_step, runs.to += runs.to_step) {
    int64_t at = std::min(runs.bytes, bytes_to_line(runs.to));
    if (at != 0) {
      ask_for(runs.to + to_ahead);
      copy_end(runs.from, runs.to, at);
    }
    for (; at + line <= runs.bytes; at += line) {
      ask_for(runs.from + runs.ahead + at);
      copy_line(runs.from + at, runs.to + at);
    }
    if (at == runs.bytes) continue;
    if (runs.to_step != runs.bytes) ask_for(runs.to + to_ahead + runs.bytes - 1);
    copy_end(runs.from + at, runs.to + at, runs.bytes - at);
  }
}

// Eight runs at a time, or four long ones.
void copy_side_by_side(Runs runs) {
  const int64_t all = runs.count;
  runs.count = runs.bytes <= 1024 ? 8 : 4;
  int64_t done = 0;
  for (; done + runs.count <= all; done += runs.count) {
    copy_lines(runs);
    runs.from += runs.count * runs.from_step;
    runs.to += runs.count * runs.to_step;
  }
  runs.count = all - done;
  copy_in_order(runs);
}

// Runs that go to one place, one behind the other, and share its lines: gathered where the first-level cache has room, written from there.
class Gathering {
 public:
  void add(const Runs& runs) {
    if (runs.to != next_) {
      finish();
      next_ = runs.to;
      held_ = held_from_ = static_cast<int64_t>(reinterpret_cast<uintptr_t>(runs.to) % static_cast<uintptr_t>(line));
    }
    // In registers: what is stored to memory waits behind what goes around the caches.
    const std::byte* f = runs.from;
    int64_t held = held_;
    const auto copy = runs.bytes < 512 && has_half_lines() ? copy_short_run : copy_run;
    for (int64_t i = 0; i < runs.count; ++i, f += runs.from_step) {
      for (int64_t at = 0; at < runs.bytes + line - 1; at += line) ask_for_later(f + runs.ahead + at);
      copy(f, room_.data() + held, runs.bytes);
      held += runs.bytes;
      if (held < enough) continue;
      next_ += held - held_;
      held_ = held;
      write_lines();
      held = held_;
    }
    next_ += held - held_;
    held_ = held;
  }
  void finish() {
    write_lines();
    copy_end(room_.data() + held_from_, next_ - (held_ - held_from_), held_ - held_from_);
    held_ = held_from_ = 0;
  }

 private:
  static constexpr int64_t enough = 4096;

  // All but the last line, if that is not full.
  void write_lines() {
    std::byte* start = next_ - held_;  // where room_ goes; a whole line
    if (held_ < line) return;
    if (held_from_ > 0) copy_end(room_.data() + held_from_, start + held_from_, line - held_from_);
    const int64_t skipped = held_from_ > 0 ? line : 0;
    const int64_t whole = held_ / line * line;
    copy_lines({room_.data() + skipped, start + skipped, 0, 0, 1, whole - skipped, 0});
    std::memcpy(room_.data(), room_.data() + whole, static_cast<size_t>(held_ - whole));
    held_ -= whole;
    held_from_ = 0;
  }

  alignas(line) std::array<std::byte, enough + line + longest_with_care> room_;
  std::byte* next_ = nullptr;  // where the next run goes, if it follows
  int64_t held_ = 0;           // bytes of room_
  int64_t held_from_ = 0;      // the first of them that is ours
};

}  // namespace

bool copy_past_cache(const Region& region, const std::byte* from, std::byte* to, int64_t element_size) {
  const RegionDim& inner = region.dims.back();
  Runs runs;
  runs.from_step = inner.from_stride * element_size;
  runs.to_step = inner.to_stride * element_size;
  runs.count = inner.extent;
  runs.bytes = region.run * element_size;
  Region outer = region;
  outer.dims.pop_back();
  auto for_all = [&](int64_t bytes_ahead, auto&& copy) {
    runs.ahead = std::max<int64_t>(1, bytes_ahead / runs.bytes) * runs.from_step;
    for_each_run(outer, [&](int64_t f, int64_t t) {
      runs.from = from + f * element_size;
      runs.to = to + t * element_size;
      copy(runs);
    });
  };
  const bool gaps = runs.from_step != runs.bytes && runs.bytes <= longest_with_care;
  const bool one_place = runs.to_step == runs.bytes;
  const bool whole_lines =
      runs.bytes % line == 0 && runs.to_step % line == 0 && bytes_to_line(to + region.to_offset * element_size) == 0 &&
      std::all_of(outer.dims.begin(), outer.dims.end(), [&](const RegionDim& d) { return d.to_stride * element_size % line == 0; });
  const bool gathers_well = runs.bytes >= 512 && runs.bytes < 1024;  // as measured: then it is ahead of side by side
  if (gaps && one_place && (gathers_well || !whole_lines)) {
    Gathering gathering;
    for_all(8 << 10, [&](const Runs& now) { gathering.add(now); });
    gathering.finish();
  } else if (gaps && whole_lines) {
    for_all(32 << 10, copy_side_by_side);
  } else {
    for_all(2 << 10, copy_in_order);
  }
  _mm_sfence();
  return true;
}

}  // namespace meshplan

#else

namespace meshplan {

bool copy_past_cache(const Region& /*region*/, const std::byte* /*from*/, std::byte* /*to*/, int64_t /*element_size*/) { return false; }

}  // namespace meshplan
#endif
