#include "replay/shrink.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// The intervals of one shard order, by row-major coordinates on the mesh dims of the order.
std::vector<Interval> intervals(std::span<const SubAxis> order, int64_t extent,
                                const std::vector<int64_t>& mesh_shape) {
  const int64_t total = product_of_sizes(order);
  std::vector<Interval> out;
  std::vector<int64_t> coordinates(mesh_shape.size());
  for (int64_t i = 0; i < total; ++i) {
    std::fill(coordinates.begin(), coordinates.end(), 0);
    int64_t rest = i;
    for (size_t k = order.size(); k-- > 0;) {
      const SubAxis& a = order[k];
      const auto m = static_cast<size_t>(a.mesh_dim);
      coordinates[m] += rest % a.size * (mesh_shape[m] / (a.before * a.size));
      rest /= a.size;
    }
    out.push_back(shard_interval(order, extent, mesh_shape, coordinates));
  }
  return out;
}

// For each prefix of the order and each part of the previous prefix: whether the division leaves a
// remainder.
std::vector<bool> evenness(std::span<const SubAxis> order, int64_t extent,
                           const std::vector<int64_t>& mesh_shape) {
  std::vector<bool> out;
  for (size_t k = 0; k < order.size(); ++k) {
    for (const Interval& i : intervals(order.first(k), extent, mesh_shape))
      out.push_back(width(i) % order[k].size == 0);
  }
  return out;
}

// The rank of every cut point in the sorted sequence.
std::vector<size_t> cut_sequence(size_t d, int64_t extent, const std::vector<StateOnMesh>& states) {
  std::vector<int64_t> cuts{0, extent};
  for (const StateOnMesh& s : states) {
    for (const Interval& i : intervals(s.state->shards[d], extent, s.mesh_shape)) {
      cuts.push_back(i.lo);
      cuts.push_back(i.hi);
    }
  }
  std::vector<int64_t> sorted = cuts;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<size_t> sequence;
  for (int64_t cut : cuts)
    sequence.push_back(
        static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), cut) - sorted.begin()));
  return sequence;
}

struct Pattern {
  std::vector<size_t> cuts;
  std::vector<bool> even;
  bool operator==(const Pattern&) const = default;
};

Pattern pattern_of(int64_t extent, size_t d, const std::vector<StateOnMesh>& states) {
  Pattern p;
  p.cuts = cut_sequence(d, extent, states);
  for (const StateOnMesh& s : states) {
    std::vector<bool> even = evenness(s.state->shards[d], extent, s.mesh_shape);
    p.even.insert(p.even.end(), even.begin(), even.end());
  }
  return p;
}

// How many parts an order cuts a dim into, of which widths repeat: parts from the start of a mesh
// dim take chunks of what the whole dim would be cut into (tensor/box.cc), others do not.
int64_t parts_of(std::span<const SubAxis> order, const std::vector<int64_t>& mesh_shape) {
  int64_t parts = 1;
  for (const SubAxis& a : order) {
    const bool from_start = std::any_of(order.begin(), order.end(), [&](const SubAxis& other) {
      return other.mesh_dim == a.mesh_dim && other.before == 1;
    });
    if (!from_start) {
      parts = saturating_mul(parts, a.size);
    } else if (a.before == 1) {
      parts = saturating_mul(parts, mesh_shape[static_cast<size_t>(a.mesh_dim)]);
    }
  }
  return parts;
}

// The period of the remainders: a multiple of the parts of every order; 0 if huge. Shapes that
// differ by it are tried, and taken where their pattern is the same.
int64_t period_of(size_t d, const std::vector<StateOnMesh>& states) {
  int64_t period = 1;
  for (const StateOnMesh& s : states) {
    const int64_t parts = parts_of(s.state->shards[d], s.mesh_shape);
    if (parts > (int64_t{1} << 20)) return 0;
    period = saturating_mul(period / std::gcd(period, parts), parts);
    if (period > (int64_t{1} << 20)) return 0;
  }
  return period;
}

// Below so many elements a part nothing smaller is looked for; up to so many of them it is.
constexpr int64_t few_a_part = 8;
constexpr int64_t most_a_part = 4;
// Parts that are looked at for that.
constexpr int64_t most_looked_at = 5'000'000;

// The smallest extent of that pattern with other remainders, where `extent` is large beside the
// parts: remainders need not be the same, but fall on the same parts.
//
//     7168 into 96: 95 of 75, one of 43        191: 95 of 2, one of 1
//     with 64 left of 96 as 7168 has it no extent below 3136 leaves the last part any
int64_t with_other_remainders(int64_t extent, size_t d, const std::vector<StateOnMesh>& states,
                              const Pattern& pattern) {
  int64_t most = 1;
  int64_t all = 1;
  for (const StateOnMesh& s : states) {
    const int64_t parts = product_of_sizes(s.state->shards[d]);
    most = std::max(most, parts_of(s.state->shards[d], s.mesh_shape));
    all = saturating_add(all, parts);
  }
  if (floor_div(extent, few_a_part) < most) return extent;
  const int64_t last = std::min(saturating_mul(most_a_part, most), most + most_looked_at / all);
  for (int64_t n = most + 1; n <= last; ++n) {
    if (pattern_of(n, d, states) == pattern) return n;
  }
  return extent;
}

}  // namespace

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n = saturating_mul(n, extent);
  return n;
}

bool same_pattern(int64_t a, int64_t b, size_t d, const std::vector<StateOnMesh>& states) {
  return pattern_of(a, d, states) == pattern_of(b, d, states);
}

std::vector<int64_t> shrink_shape(const std::vector<int64_t>& shape,
                                  const std::vector<StateOnMesh>& states, int64_t max_elements) {
  std::vector<int64_t> small = shape;
  std::vector<int64_t> periods;
  std::vector<Pattern> patterns;
  for (size_t d = 0; d < shape.size(); ++d) {
    periods.push_back(period_of(d, states));
    patterns.push_back(pattern_of(shape[d], d, states));
  }
  std::vector<bool> done(shape.size(), false);
  while (elements_of(small) > max_elements) {
    // Halve the dim with the most remaining periods.
    size_t best = shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (done[d] || periods[d] == 0 || small[d] <= 1) continue;
      if (best == shape.size() || small[d] / periods[d] > small[best] / periods[best]) best = d;
    }
    if (best == shape.size()) break;
    const int64_t period = periods[best];
    const int64_t rest = shape[best] % period;
    const int64_t now = (small[best] - rest) / period;  // current number of periods
    const int64_t least = period == 1 ? 1 : 2;          // two elements per chunk
    int64_t next = std::max(least, now / 2);
    // A few attempts suffice: near one half, either remainders do not reach other cut points or the
    // extent is too small to shrink.
    const int64_t last = std::min(now, next + 8);
    while (next < last && !(pattern_of(rest + next * period, best, states) == patterns[best]))
      ++next;
    if (next >= last) {
      small[best] = with_other_remainders(small[best], best, states, patterns[best]);
      done[best] = true;
    } else {
      small[best] = rest + next * period;
    }
  }
  return small;
}

}  // namespace meshplan
