#include "verify/coverage.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan::verification {
namespace {

bool continues_run(const ShardList& list, size_t i) {
  return i < list.count && (list.continues >> i & 1) != 0;
}

// One run of a list: entries [begin, end), which cut as one.
struct DigitRun {
  size_t begin = 0;
  size_t end = 0;
  int64_t product = 1;  // chunks
  // Parts that the width is divided into, rounded up; product or a multiple of it.
  int64_t cut_into = 1;
};

DigitRun run_at(const Digits& digits, const ShardList& list, size_t begin) {
  DigitRun run{begin, begin, 1, 1};
  do {
    run.product *= digits.list[list.digits[run.end++]].size;
  } while (continues_run(list, run.end));
  const Digit& first = digits.list[list.digits[begin]];
  run.cut_into = first.before == 1 ? first.mesh_dim_size : run.product;
  return run;
}

// Width of a full chunk of the run.
int128 chunk_width(const DigitRun& run, int64_t width) {
  return static_cast<int128>(ceil_div(width, run.cut_into)) * (run.cut_into / run.product);
}

// The list without its first `skip` entries.
ShardList tail(const ShardList& list, size_t skip) {
  ShardList rest{list.digits + skip, list.count - skip, list.continues >> skip, 0};
  for (size_t i = 0; i < rest.count; ++i) rest.set |= digit_bit(rest.digits[i]);
  return rest;
}

// The distinct non-zero widths that the first `count` entries (whole runs) leave of [0, extent).
std::vector<int64_t> widths_after(const Digits& digits, const ShardList& list, size_t count,
                                  int64_t extent) {
  std::vector<int64_t> widths{extent};
  for (size_t i = 0; i < count;) {
    DigitRun run = run_at(digits, list, i);
    std::vector<int64_t> next;
    for (int64_t width : widths) {
      int128 chunk = chunk_width(run, width);
      if (chunk >= width) {
        next.push_back(width);
        continue;
      }
      next.push_back(static_cast<int64_t>(chunk));
      auto full = static_cast<int64_t>(width / chunk);
      if (full < run.product && width % chunk != 0)
        next.push_back(static_cast<int64_t>(width % chunk));
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    widths = std::move(next);
    i = run.end;
  }
  return widths;
}

// Row-major numbers of the coordinates of some digits: `number` of a coordinate tuple of `list`,
// counting the digits of `wanted` only, in an order of digits that is the same for every list.
class Numbering {
 public:
  Numbering(const Digits& digits, const ShardList& list, DigitSet wanted)
      : strides_(list.count, 0), sizes_(list.count) {
    std::array<int64_t, max_digits> stride_of{};
    for (size_t digit = 0; digit < digits.count; ++digit) {
      if (!has(wanted, digit)) continue;
      stride_of[digit] = count_;
      count_ *= digits.list[digit].size;
    }
    for (size_t i = 0; i < list.count; ++i) {
      sizes_[i] = digits.list[list.digits[i]].size;
      strides_[i] = has(wanted, list.digits[i]) ? stride_of[list.digits[i]] : 0;
    }
  }
  [[nodiscard]] int64_t count() const { return count_; }
  // The number of the chunk with this mixed-radix index.
  [[nodiscard]] int64_t number(int64_t chunk) const {
    int64_t result = 0;
    for (size_t i = sizes_.size(); i-- > 0;) {
      result += chunk % sizes_[i] * strides_[i];
      chunk /= sizes_[i];
    }
    return result;
  }

 private:
  std::vector<int64_t> strides_;
  std::vector<int64_t> sizes_;
  int64_t count_ = 1;
};

std::string text_of(const Interval& interval) {
  return "[" + std::to_string(interval.lo) + ":" + std::to_string(interval.hi) + ")";
}

// The chunks of both lists, compared one by one.
Problem compare_chunks(const Digits& digits, const ShardList& before, const ShardList& after,
                       DigitSet senders, int64_t extent) {
  auto held = chunks_of(digits, before, extent);
  auto needed = chunks_of(digits, after, extent);
  if (!held || !needed)
    return "more than " + std::to_string(max_chunks) +
           " uneven chunks: too many to compare one by one";
  const DigitSet fixed = before.set & ~senders;
  const Numbering of_held(digits, before, fixed);
  const Numbering of_needed(digits, after, fixed);
  // unions[k]: what ranks with the fixed coordinates k hold together, ascending, without neighbours
  // that touch.
  std::vector<std::vector<Interval>> unions(static_cast<size_t>(of_held.count()));
  for (size_t i = 0; i < held->size(); ++i) {
    if (width((*held)[i]) == 0) continue;
    std::vector<Interval>& parts = unions[of_held.number(static_cast<int64_t>(i))];
    if (!parts.empty() && parts.back().hi == (*held)[i].lo) {
      parts.back().hi = (*held)[i].hi;
    } else {
      parts.push_back((*held)[i]);
    }
  }
  for (size_t i = 0; i < needed->size(); ++i) {
    const Interval& need = (*needed)[i];
    if (width(need) == 0) continue;
    const std::vector<Interval>& parts = unions[of_needed.number(static_cast<int64_t>(i))];
    auto part = std::upper_bound(parts.begin(), parts.end(), need.lo,
                                 [](int64_t at, const Interval& p) { return at < p.hi; });
    if (part != parts.end() && part->lo <= need.lo && need.hi <= part->hi) continue;
    int64_t missing = part != parts.end() && part->lo <= need.lo ? part->hi : need.lo;
    return "a rank needs " + text_of(need) + (extent == 0 ? "" : " of " + std::to_string(extent)) +
           ", but no rank in its group holds element " + std::to_string(missing);
  }
  return std::nullopt;
}

}  // namespace

bool cuts_evenly(const Digits& digits, const ShardList& list, int64_t extent) {
  for (size_t i = 0; i < list.count;) {
    DigitRun run = run_at(digits, list, i);
    if (extent % run.cut_into != 0) return false;
    extent /= run.product;
    i = run.end;
  }
  return true;
}

std::optional<std::vector<Interval>> chunks_of(const Digits& digits, const ShardList& list,
                                               int64_t extent) {
  std::vector<Interval> chunks{{0, extent}};
  for (size_t i = 0; i < list.count;) {
    DigitRun run = run_at(digits, list, i);
    if (run.product > max_chunks / std::ssize(chunks)) return std::nullopt;
    std::vector<Interval> next;
    next.reserve(chunks.size() * static_cast<size_t>(run.product));
    for (const Interval& chunk : chunks) {
      const int64_t total = width(chunk);
      const int128 step = chunk_width(run, total);
      for (int64_t j = 0; j < run.product; ++j) {
        auto lo = static_cast<int64_t>(std::min<int128>(total, step * j));
        auto hi = static_cast<int64_t>(std::min<int128>(total, step * (j + 1)));
        next.push_back({chunk.lo + lo, chunk.lo + hi});
      }
    }
    chunks = std::move(next);
    i = run.end;
  }
  return chunks;
}

Problem check_covered(const Digits& digits, const ShardList& before, const ShardList& after,
                      DigitSet senders, int64_t extent) {
  size_t head = 0;  // entries that both lists start with, cutting alike
  while (head < before.count && head < after.count && before.digits[head] == after.digits[head] &&
         continues_run(before, head) == continues_run(after, head)) {
    ++head;
  }
  // Go back to where a run starts, unless the run starts at the major end of its mesh dim: then a
  // shorter run is the union of a longer one.
  size_t run_start = head;
  while (run_start > 0 && (continues_run(before, run_start) || continues_run(after, run_start)))
    --run_start;
  const bool exact_head = run_start == head || digits.list[before.digits[run_start]].before == 1;
  // All that follows the head is among the senders' digits: together they hold what the head
  // leaves, and no rank needs more after the step.
  if ((tail(before, exact_head ? head : run_start).set & ~senders) == 0) return std::nullopt;

  if (cuts_evenly(digits, before, extent) && cuts_evenly(digits, after, extent)) {
    // An even digit is one digit of the element's own number: position / stride % size. What a rank
    // needs agrees with its coordinate on the digit's stride after; its senders hold what
    // agrees with it on the stride before. Both are the same only at equal strides, and the stride
    // is the extent over the product of all sizes up to the digit.
    std::array<int64_t, max_digits> cut_after{};
    int64_t product = 1;
    for (size_t i = 0; i < after.count; ++i)
      cut_after[after.digits[i]] = product *= digits.list[after.digits[i]].size;
    product = 1;
    for (size_t i = 0; i < before.count; ++i) {
      product *= digits.list[before.digits[i]].size;
      const size_t digit = before.digits[i];
      if (has(senders, digit) || cut_after[digit] == product) continue;
      return "a rank needs a chunk of " +
             std::to_string(extent / std::max<int64_t>(1, cut_after[digit])) +
             " consecutive elements, but the ranks in its group hold other ones: mesh dim " +
             std::to_string(digits.list[digit].mesh_dim) + " cuts into " + std::to_string(product) +
             " before and " + std::to_string(cut_after[digit]) + " after";
    }
    return std::nullopt;
  }
  // Below the head every rank stays within its own parent, unless it receives from other parents.
  for (size_t i = 0; i < run_start; ++i) {
    if (has(senders, before.digits[i])) run_start = i;
  }
  while (run_start > 0 && continues_run(before, run_start)) --run_start;
  for (int64_t left : widths_after(digits, before, run_start, extent)) {
    if (auto problem =
            compare_chunks(digits, tail(before, run_start), tail(after, run_start), senders, left))
      return problem;
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
