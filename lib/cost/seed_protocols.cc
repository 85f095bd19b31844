#include "cost/seed_protocols.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace meshplan {
namespace {

// What a further piece, and a further slope in one, must be worth: the sum of |log factor|.
constexpr double piece_price = 0.10;
constexpr double far_price = 0.05;
// From which on times of neighbouring sizes jump: between two pieces, and within the steep slope of
// one.
constexpr double least_jump = 1.25;
constexpr double least_steep_jump = 1.6;
// No line is flatter: 1e6 GB/s.
constexpr double least_slope = 1e-6;

using Points = std::vector<CurvePoint>;

// The line of least squared relative errors through points [first, last], its start `least` or
// more.
CurvePiece line_through(const Points& points, size_t first, size_t last, double least) {
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (size_t i = first; i <= last; ++i) {
    const double weight = 1 / (points[i].ns * points[i].ns);
    w += weight;
    wx += weight * points[i].bytes;
    wxx += weight * points[i].bytes * points[i].bytes;
    wt += weight * points[i].ns;
    wxt += weight * points[i].bytes * points[i].ns;
  }
  CurvePiece piece;
  const double determinant = w * wxx - wx * wx;
  if (determinant > 1e-9 * w * wxx) {
    piece.start_ns = (wt * wxx - wx * wxt) / determinant;
    piece.slope = (w * wxt - wx * wt) / determinant;
  } else {
    piece.start_ns = least;
    piece.slope = (wt - least * w) / wx;
  }
  if (piece.start_ns < least) {
    piece.start_ns = least;
    piece.slope = (wxt - least * wx) / wxx;
  }
  piece.slope = std::max(piece.slope, least_slope);
  return piece;
}

// With the slope of the line through [first, last], if it is steeper, beyond where it meets.
std::optional<CurvePiece> with_far(CurvePiece piece, const Points& points, size_t first,
                                   size_t last) {
  const CurvePiece line = line_through(points, first, last, -1e18);
  const double near = (piece.start_ns - line.start_ns) / line.slope;
  if (line.slope <= piece.slope * 1.02 || near < 1) return std::nullopt;
  piece.far_slope = line.slope;
  piece.near = near;
  return piece;
}

// The errors of a piece that ends with `last` at its own points, and at earlier ones where it would
// be taken in place of theirs.
double errors_of(const CurvePiece& piece, const Points& points, size_t first, size_t last) {
  double sum = piece_price + (piece.near > 0 ? far_price : 0);
  for (size_t i = 0; i <= last; ++i) {
    const double error = std::log(time_of(piece, points[i].bytes) / points[i].ns);
    const double counted = i < first ? std::max(0.0, -error - 0.02) : std::abs(error);
    sum += counted + 2 * counted * counted;
  }
  return sum;
}

struct Fitted {
  CurvePiece piece;
  double errors = 0;
};

// The best piece for points [first, last].
Fitted best_piece(const Points& points, size_t first, size_t last) {
  std::optional<Fitted> best;
  const auto consider = [&](const CurvePiece& piece) {
    const double errors = errors_of(piece, points, first, last);
    if (!best || errors < best->errors) best = Fitted{piece, errors};
  };
  if (last == 0 && points.size() > 1) {  // The smallest size alone, below a jump: all latency.
    const CurvePiece flat{points[0].ns, least_slope, 0, 0, 0};
    return {flat, errors_of(flat, points, 0, 0)};
  }
  const double before = first == 0 ? 0 : points[first - 1].ns;
  for (const double least : {0.0, before / 2, before}) {
    for (size_t end = first; end <= last; ++end) {
      const CurvePiece near = line_through(points, first, end, least);
      if (end == last) consider(near);
      for (size_t from = end + 1; from < last && from <= end + 2; ++from) {
        if (const auto bent = with_far(near, points, from, last)) consider(*bent);
      }
      if (first == 0) continue;
      if (const auto bent = with_far(near, points, end, last); bent && end < last) consider(*bent);
    }
    if (first == 0) break;
  }
  return *best;
}

// A larger size that came out faster is noise: neighbours out of order have their mean.
void never_fall(Points& points) {
  for (size_t i = 1; i < points.size(); ++i) {
    for (size_t at = i; at > 0 && points[at - 1].ns > points[at].ns; --at) {
      const double mean = std::sqrt(points[at - 1].ns * points[at].ns);
      points[at - 1].ns = points[at].ns = mean;
    }
  }
}

// No row says where between two measured sizes a curve jumps: in between, the mean of what the
// lower and the upper size tell, so that a prediction is off by the root of the jump at most. None
// where the upper one tells less than `least` times as much. Of the lower one's slope half counts,
// as it is unsure beyond its sizes.
std::optional<CurvePiece> bridge(const CurvePiece& below, const CurvePiece& above,
                                 const CurvePoint& from, const CurvePoint& to, double least) {
  const double middle = (from.bytes + to.bytes) / 2;
  const double start = time_of(below, from.bytes);
  const double proportional = start * middle / from.bytes;
  const double low = (start + std::min(proportional, time_of(below, middle))) / 2;
  const double high = time_of(above, middle);
  if (high < low * least) return std::nullopt;
  CurvePiece piece;
  piece.start_ns = start;  // so that it undercuts no smaller size
  piece.slope = std::max((std::sqrt(low * high) - start) / middle, least_slope);
  piece.most_size = to.size - 1;
  return piece;
}

// Whether time grows faster than bytes between two sizes of one piece. Where it does not, as on any
// straight line, the line itself tells what is in between, however far apart the sizes are.
bool outgrows_bytes(const CurvePiece& piece, const CurvePoint& from, const CurvePoint& to) {
  return time_of(piece, to.bytes) * from.bytes > time_of(piece, from.bytes) * to.bytes;
}

// Every so many points of a long curve, its ends among them.
void thin(Points& points) {
  constexpr size_t most_points = 48;
  if (points.size() <= most_points) return;
  Points kept;
  for (size_t i = 0; i < most_points; ++i)
    kept.push_back(points[i * (points.size() - 1) / (most_points - 1)]);
  points = std::move(kept);
}

}  // namespace

double time_of(const CurvePiece& piece, double bytes) {
  double moved = bytes * piece.slope;
  if (piece.near > 0) moved = std::max(moved, (bytes - piece.near) * piece.far_slope);
  return piece.start_ns + moved;
}

std::vector<CurvePiece> cut_curve(std::vector<CurvePoint> points, int most) {
  thin(points);
  never_fall(points);
  const size_t n = points.size();
  if (n == 0) return {};
  struct Ending {
    double errors = 1e300;
    size_t first = 0;
    CurvePiece piece;
  };
  // endings[k][i]: points [0, i] in k + 1 pieces.
  std::vector<std::vector<Ending>> endings(static_cast<size_t>(most), std::vector<Ending>(n));
  for (size_t first = 0; first < n; ++first) {
    for (size_t last = first; last < n; ++last) {
      const Fitted fitted = best_piece(points, first, last);
      for (size_t k = 0; k < endings.size(); ++k) {
        if ((k == 0) != (first == 0)) continue;
        const double before = k == 0 ? 0 : endings[k - 1][first - 1].errors;
        Ending& ending = endings[k][last];
        if (before + fitted.errors < ending.errors)
          ending = {before + fitted.errors, first, fitted.piece};
      }
    }
  }
  size_t k = 0;
  for (size_t i = 1; i < endings.size(); ++i) {
    if (endings[i][n - 1].errors < endings[k][n - 1].errors) k = i;
  }
  std::vector<CurvePiece> pieces;  // the last comes first
  for (size_t last = n - 1;; --k) {
    const Ending& ending = endings[k][last];
    CurvePiece piece = ending.piece;
    if (last + 1 < n) {
      const double middle = std::sqrt(static_cast<double>(points[last].size) *
                                      static_cast<double>(points[last + 1].size));
      const CurvePiece above = pieces.back();
      const auto jump = bridge(piece, above, points[last], points[last + 1], least_jump);
      if (jump) pieces.push_back(*jump);
      piece.most_size = jump ? points[last].size : std::llround(middle);
    }
    for (size_t i = last; i > ending.first; --i) {
      if (!outgrows_bytes(piece, points[i - 1], points[i])) continue;
      const auto jump = bridge(piece, piece, points[i - 1], points[i], least_steep_jump);
      if (jump) pieces.push_back(*jump);
    }
    pieces.push_back(piece);
    if (ending.first == 0) break;
    last = ending.first - 1;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace meshplan
