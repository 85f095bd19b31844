// Elementwise arithmetic of reductions: combine, divide, cast. The caller decides the order of
// operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// into[i] = into[i] (op) with[i], rounded to the dtype each time. avg combines like sum; divide_by
// does the division. bool: sum and max are or, product and min are and. Integers wrap.
void combine(DType dtype, ReduceOp op, std::byte* into, const std::byte* with, int64_t count);

// data[i] = data[i] / divisor; integers truncate towards zero, bool is unchanged.
void divide_by(DType dtype, std::byte* data, int64_t count, int64_t divisor);

// to[i] = from[i] in another dtype, rounded to nearest. The buffers do not overlap.
void cast_elements(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to,
                   int64_t count);

// The identity of `op`: 0 for sum and avg, 1 for product, the largest for min, the smallest for
// max.
void fill_identity(DType dtype, ReduceOp op, std::byte* data, int64_t count);

}  // namespace meshplan
