// Lists of sub-axes: coordinates of ranks on them, and their differences.
//
// A sub-axis (`SubAxis`, tensor/state.h) is a factor of a mesh dim: of b with 8 ranks, b:(2)2 is
// the middle factor of 2 x 2 x 2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "base/result.h"
#include "tensor/state.h"

namespace meshplan {

// The coordinates of ranks on a list of sub-axes, given the row-major index of a rank in its mesh.
//
//     mesh b 8, sub-axes b:(2)2     index    0 1 2 3 4 5 6 7
//                                   number   0 0 1 1 0 0 1 1     the coordinates as one number
//                                   part     0 0 2 2 0 0 2 2     what they add to the index
//
// Law: two ranks differ at most on these sub-axes if index - part(index) is the same for both.
class CoordinatesOn {
 public:
  CoordinatesOn(std::span<const SubAxis> sub_axes, std::span<const int64_t> mesh_shape);
  // Below count(); the first sub-axis counts slowest.
  [[nodiscard]] int64_t number(int64_t index) const {
    int64_t number = 0;
    for (const Digit& d : digits_)
      number = number * d.size + floor_mod(floor_div(index, d.below), d.size);
    return number;
  }
  [[nodiscard]] int64_t part(int64_t index) const {
    int64_t part = 0;
    for (const Digit& d : digits_) part += floor_mod(floor_div(index, d.below), d.size) * d.below;
    return part;
  }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  // A digit of the row-major index, in mixed radix.
  struct Digit {
    int64_t below;  // product of the radices of the digits further inside
    int64_t size;
  };
  std::vector<Digit> digits_;
  int64_t count_ = 1;
};

// The number of every rank of the mesh on the sub-axes, by index. Law: number(index) of them.
[[nodiscard]] std::vector<int32_t> numbers_on(std::span<const SubAxis> sub_axes,
                                              std::span<const int64_t> mesh_shape);

// The sub-axes of `a` without those factors that `b` has too; sub-axes of size 1 vanish. Error
// where factors of one mesh dim overlap and neither divides the other.
//
//     mesh b 8     b:(1)8 without b:(2)2 is b:(1)2, b:(4)2
[[nodiscard]] Result<std::vector<SubAxis>> sub_axes_without(const std::vector<SubAxis>& a,
                                                            const std::vector<SubAxis>& b,
                                                            const std::vector<int64_t>& mesh_shape);
// What a step between two states of one mesh reduces: pending before and not after, of a sub-axis
// of which a part stays pending the rest. In mesh order, mesh dims of size 1 apart. (An exchange
// lists every mesh dim, not just these.)
//
//     mesh b 6     P(sum) -> {P(sum):2,R:3}: b:(2)3
[[nodiscard]] std::vector<PendingSubAxis> reduced_between(const State& before, const State& after,
                                                          const std::vector<int64_t>& mesh_shape);
// Every mesh dim whole: what an exchange lists.
[[nodiscard]] std::vector<SubAxis> every_dim(std::span<const int64_t> mesh_shape);
[[nodiscard]] std::vector<SubAxis> partial_sub_axes(const State& state);
[[nodiscard]] std::vector<SubAxis> shard_sub_axes(const State& state);

}  // namespace meshplan
