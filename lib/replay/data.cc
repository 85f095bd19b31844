#include "replay/data.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/int_math.h"
#include "copy/region.h"
#include "replay/arithmetic.h"
#include "replay/number.h"

namespace meshplan {
namespace {

bool is_prime(int64_t n) {
  for (int64_t f = 2; f * f <= n; ++f) {
    if (n % f == 0) return false;
  }
  return n > 1;
}

// A period that is `contributions` times a prime: near 8191 elements for one contribution, never
// fewer than 1009 times.
int64_t period_for(int64_t contributions) {
  int64_t prime = std::max<int64_t>(1009, 16384 / contributions);
  while (!is_prime(prime)) ++prime;
  return contributions * prime;
}

// Only the odd part of a divisor matters for exactness: powers of two only change the exponent.
int64_t odd_part(int64_t n) {
  while (n % 2 == 0) n /= 2;
  return n;
}

struct Bounds {
  int64_t live = 1;  // contributions that are not neutral
  int64_t unit = 1;  // values are multiples of it
  int64_t most = 1;  // |value| <= most * unit
};

Bounds exact_bounds(const DataQuestion& q) {
  Bounds bounds;
  const int64_t most_live = q.contributions > 16 ? 16 : q.contributions;
  if (q.dtype == DType::boolean) return {most_live, 1, 1};
  if (q.op == ReduceOp::min || q.op == ReduceOp::max) {
    return {
        most_live, 1,
        std::min<int64_t>(std::min(exact_limit(q.dtype), exact_limit(q.reduce_dtype)), 1 << 20)};
  }
  if (q.op == ReduceOp::product) {
    // Powers of two with signs: the product stays below the largest value.
    int64_t doublings = 0;
    while (doublings < 16 && std::ldexp(1.0, static_cast<int>(doublings) + 1) <=
                                 std::min(largest_value(q.dtype), largest_value(q.reduce_dtype)))
      ++doublings;
    return {std::clamp<int64_t>(doublings, 1, most_live), 1, 2};
  }
  bounds.unit = q.divisor;
  // Sums of at most `integers` units are exact; integer dtypes must not overflow.
  const int64_t spread =
      saturating_mul(is_floating(q.dtype) ? odd_part(q.divisor) : q.divisor, q.growth);
  int64_t integers = std::min(exact_limit(q.dtype), exact_limit(q.reduce_dtype)) / spread;
  const double largest = std::min(largest_value(q.dtype), largest_value(q.reduce_dtype));
  const double by_range = largest / static_cast<double>(saturating_mul(q.divisor, q.growth));
  if (by_range < static_cast<double>(integers)) integers = static_cast<int64_t>(by_range);
  // A dtype too narrow for a multiple of the divisor (int8 averaged over 128 ranks) gets zeros
  // only.
  if (integers == 0) return {1, 1, 0};
  integers = std::min(integers, int64_t{1} << 30);
  // At least 4 different magnitudes if the dtype allows, even if fewer contributions are live.
  bounds.live = std::clamp<int64_t>(integers / 4, 1, most_live);
  bounds.most = std::max<int64_t>(1, integers / bounds.live);
  return bounds;
}

// The neutral value of contributions that are not live, and a live value, for exact data.
double neutral_value(const DataQuestion& q, const Bounds& bounds) {
  if (q.dtype == DType::boolean) return q.op == ReduceOp::product || q.op == ReduceOp::min ? 1 : 0;
  switch (q.op) {
    case ReduceOp::product:
      return 1;
    case ReduceOp::min:
      return static_cast<double>(bounds.most);
    case ReduceOp::max:
      return is_signed(q.dtype) ? -static_cast<double>(bounds.most) : 0;
    default:
      return 0;
  }
}

double live_value(const DataQuestion& q, const Bounds& bounds, uint64_t random) {
  if (q.dtype == DType::boolean) return static_cast<double>(random & 1U);
  if (bounds.most == 0) return 0;
  const double sign = is_signed(q.dtype) && (random & 1U) != 0 ? -1 : 1;
  random >>= 1U;
  if (q.op == ReduceOp::product) return sign * ((random & 1U) != 0 ? 2 : 1);
  const auto magnitude = static_cast<int64_t>(1 + random % static_cast<uint64_t>(bounds.most));
  return sign * static_cast<double>(magnitude) * static_cast<double>(bounds.unit);
}

double random_value(const DataQuestion& q, int64_t position, uint64_t random) {
  if (q.dtype == DType::boolean) return static_cast<double>(random & 1U);
  if (is_floating(q.dtype)) return static_cast<double>(random >> 11U) * 0x1p-52 - 1;
  // Integers: small enough that sums of all contributions do not wrap; where the dtype has too few
  // for that, only so many of them are not 0 (`position`: in the table).
  const int64_t limit = std::min(exact_limit(q.dtype), exact_limit(q.reduce_dtype));
  const bool adds = q.op == ReduceOp::sum || q.op == ReduceOp::avg;
  if (adds && position % q.contributions >= limit) return 0;
  const int64_t most = std::clamp<int64_t>(adds ? limit / q.contributions : limit, 1, 1 << 20);
  const auto magnitude = static_cast<double>(random % static_cast<uint64_t>(most + 1));
  return is_signed(q.dtype) && (random >> 63U) != 0 ? -magnitude : magnitude;
}

// Calls visit(position in the table, first element of the run, length) for pieces of a run that do
// not wrap.
template <class Visitor>
void for_unwrapped(int64_t position, int64_t length, int64_t period, Visitor&& visit) {
  int64_t done = 0;
  while (done < length) {
    const int64_t n = std::min(length - done, period - position);
    visit(position, done, n);
    done += n;
    position = 0;
  }
}

int64_t wrapped(int64_t start, int64_t element, int64_t period) {
  return (start + element % period) % period;
}

// Combines values one by one as the op of the question does; without any value, `total` is neutral.
struct Reduction {
  const DataQuestion& q;
  double total;
  bool first = true;

  void add(double value) {
    const bool boolean = q.dtype == DType::boolean;
    const bool is_or = boolean && q.op != ReduceOp::product && q.op != ReduceOp::min;
    if (first) {
      total = value;
    } else if (is_or || q.op == ReduceOp::max) {
      total = std::max(total, value);
    } else if (q.op == ReduceOp::min) {
      total = std::min(total, value);
    } else if (q.op == ReduceOp::product || boolean) {
      total *= value;
    } else {
      total += value;
    }
    first = false;
  }
};

double divided(const DataQuestion& q, double total) {
  if (q.divisor <= 1 || q.dtype == DType::boolean) return total;
  const double quotient = total / static_cast<double>(q.divisor);
  return is_floating(q.dtype) ? quotient : std::trunc(quotient);
}

// Table position p holds a live value where p mod contributions < live. offset_k = k mod
// contributions, so exactly `live` contributions are live for every element. A random multiple is
// added, so that adjacent table entries do not belong to adjacent ranks.
std::vector<int64_t> offsets_for(const DataQuestion& q, int64_t period) {
  std::vector<int64_t> offsets(static_cast<size_t>(q.contributions));
  const int64_t blocks = period / q.contributions;
  for (int64_t k = 0; k < q.contributions; ++k) {
    const auto block = static_cast<int64_t>(mix(q.seed + 1, static_cast<uint64_t>(k)) %
                                            static_cast<uint64_t>(blocks));
    offsets[k] = k + q.contributions * block;
  }
  return offsets;
}

}  // namespace

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

DataTable::DataTable(const DataQuestion& question) : question_(question) {
  const DataQuestion& q = question_;
  MESHPLAN_CHECK(q.contributions >= 1 && q.divisor >= 1,
                 "a reduction has at least one contribution");
  const int64_t k_count = q.contributions;
  period_ = period_for(k_count);
  const Bounds bounds = exact_bounds(q);
  all_zero_ = q.kind == DataKind::exact && bounds.most == 0;
  // Random products of integers wrap, in float64 they do not: those are of exact data.
  const bool wraps =
      q.op == ReduceOp::product && !is_floating(q.dtype) && q.dtype != DType::boolean;
  live_ = q.kind == DataKind::exact || wraps ? bounds.live : k_count;
  const int64_t size = element_bytes(q.dtype);
  source_.resize(static_cast<size_t>(period_ * size));
  answer_.resize(source_.size());

  offsets_ = offsets_for(q, period_);
  std::vector<double> values(static_cast<size_t>(period_));
  const double neutral = neutral_value(q, bounds);
  for (int64_t p = 0; p < period_; ++p) {
    const uint64_t random = mix(q.seed, static_cast<uint64_t>(p));
    double value = neutral;
    if (q.kind == DataKind::random && !wraps) {
      value = random_value(q, p, random);
    } else if (p % k_count < live_) {
      value = live_value(q, bounds, random);
    }
    std::byte* element = source_.data() + p * size;
    store_number(q.dtype, element, value);
    values[p] = load_number(q.dtype, element);
  }

  // The result. Exact data sums exactly in double in any order (64-bit integers stay below 2^53).
  if (q.kind == DataKind::random) oracle_.resize(static_cast<size_t>(period_));
  for (int64_t p = 0; p < period_; ++p) {
    Reduction reduction{q, neutral};
    auto add = [&](int64_t k) {
      int64_t at = p + offsets_[k];
      if (at >= period_) at -= period_;
      reduction.add(values[at]);
    };
    if (q.kind == DataKind::exact && live_ < k_count) {
      // Only the live ones: (p + k) mod contributions < live.
      for (int64_t r = 0; r < live_; ++r) add((r - p % k_count + k_count) % k_count);
      if (q.op == ReduceOp::max || q.op == ReduceOp::min) reduction.add(neutral);
    } else {
      for (int64_t k = 0; k < k_count; ++k) add(k);
    }
    const double total = divided(q, reduction.total);
    if (q.kind == DataKind::random) {
      oracle_[p] = total;
      largest_ = std::max(largest_, std::abs(total));
    }
    store_number(q.dtype, answer_.data() + p * size, total + 0.0);  // + 0.0: never a negative zero
  }
}

int64_t DataTable::shift_for(uint64_t salt) const {
  const auto blocks = static_cast<uint64_t>(period_ / question_.contributions);
  return static_cast<int64_t>(mix(question_.seed + 2, salt) % blocks) * question_.contributions;
}

int64_t DataTable::source_start(int64_t k, int64_t shift) const {
  return (offsets_[k] + shift) % period_;
}

void fill_box(std::byte* to, const Box& box, std::span<const int64_t> shape, const std::byte* table,
              int64_t period, int64_t start, int64_t element_size) {
  const Region region = make_region(box, full_box(shape), box);
  for_each_run(region, [&](int64_t from, int64_t at) {
    for_unwrapped(wrapped(start, from, period), region.run, period,
                  [&](int64_t position, int64_t done, int64_t n) {
                    std::memcpy(to + (at + done) * element_size, table + position * element_size,
                                static_cast<size_t>(n * element_size));
                  });
  });
}

Comparison compare_box(const std::byte* found, const Box& box, std::span<const int64_t> shape,
                       const std::byte* table, int64_t period, int64_t start, int64_t element_size,
                       size_t keep) {
  Comparison result;
  const Region region = make_region(box, full_box(shape), box);
  for_each_run(region, [&](int64_t from, int64_t at) {
    for_unwrapped(wrapped(start, from, period), region.run, period,
                  [&](int64_t position, int64_t done, int64_t n) {
                    const std::byte* a = found + (at + done) * element_size;
                    const std::byte* b = table + position * element_size;
                    if (std::memcmp(a, b, static_cast<size_t>(n * element_size)) == 0) return;
                    for (int64_t i = 0; i < n; ++i) {
                      if (std::memcmp(a + i * element_size, b + i * element_size,
                                      static_cast<size_t>(element_size)) == 0)
                        continue;
                      ++result.wrong;
                      if (result.first.size() < keep) result.first.push_back(at + done + i);
                    }
                  });
  });
  return result;
}

namespace {

// Bound on the error of a sum of `contributions` values of -1..1 in any order: each addition rounds
// by half an ulp of the largest sum.
double random_tolerance(const DataQuestion& q) {
  if (q.contributions == 1 && q.growth == 1) return 0;
  const auto most = static_cast<double>(saturating_mul(q.contributions, q.growth));
  if (!is_floating(q.dtype)) return q.divisor > 1 ? most : 0;
  const double step = std::max(ulp_at(q.dtype, most), ulp_at(q.reduce_dtype, most));
  return most * step;
}

}  // namespace

ErrorMeasure measure_error(const std::byte* found, const Box& box, std::span<const int64_t> shape,
                           const DataTable& table, int64_t start, size_t keep) {
  ErrorMeasure error;
  const DType dtype = table.question().dtype;
  const int64_t period = table.period();
  const int64_t size = element_bytes(dtype);
  const double tolerance = random_tolerance(table.question());
  // Where all results are 0 an error is told as it is: values are of -1..1.
  const double largest = table.largest() > 0 ? table.largest() : 1;
  const Region region = make_region(box, full_box(shape), box);
  for_each_run(region, [&](int64_t from, int64_t at) {
    for_unwrapped(wrapped(start, from, period), region.run, period,
                  [&](int64_t position, int64_t done, int64_t n) {
                    for (int64_t i = 0; i < n; ++i) {
                      const double right = table.oracle()[position + i];
                      double off =
                          std::abs(load_number(dtype, found + (at + done + i) * size) - right);
                      if (off == 0) continue;
                      if (std::isnan(off)) off = std::numeric_limits<double>::infinity();
                      error.ulp = std::max(error.ulp, off / ulp_at(dtype, right));
                      error.relative = std::max(error.relative, off / largest);
                      if (off <= tolerance) continue;
                      ++error.beyond.wrong;
                      if (error.beyond.first.size() < keep)
                        error.beyond.first.push_back(at + done + i);
                    }
                  });
  });
  return error;
}

}  // namespace meshplan
