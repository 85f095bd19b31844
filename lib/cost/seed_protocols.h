// First protocols for one op out of its measured curve, time over bytes, from which the fit starts.
//
//     us
//     |                 . far: beyond near_bytes the slope is steeper
//     |              .
//     |          . near          the curve is cut where a new line is worth it; each piece is a
//     |    ...                   protocol for sizes up to its end (most_bytes)
//     |  .
//     +---------------------- bytes
//
// A protocol with a later end could be taken by smaller sizes too, so none of its line lies below
// what was measured there.
#pragma once

#include <cstdint>
#include <vector>

namespace meshplan {

// A measured time: bytes that a rank moves, and nanoseconds.
struct CurvePoint {
  double bytes = 0;
  double ns = 0;
  int64_t size = 0;  // as nccl-tests counts
};

// start + max(bytes * slope, (bytes - near) * far_slope), for sizes up to most_size (0: all).
struct CurvePiece {
  double start_ns = 0;
  double slope = 0;  // ns a byte
  double near = 0;   // 0: no far slope
  double far_slope = 0;
  int64_t most_size = 0;
};
[[nodiscard]] double time_of(const CurvePiece& piece, double bytes);

// The pieces of a curve, at most `most` of them and one for each gap between sizes in which it
// jumps; `points` ascend in bytes and size.
[[nodiscard]] std::vector<CurvePiece> cut_curve(std::vector<CurvePoint> points, int most);

}  // namespace meshplan
