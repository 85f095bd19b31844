#pragma once

#include <vector>

#include "tensor/dtype.h"

namespace meshplan::test {

inline const std::vector<DType> all_dtypes{DType::float64,     DType::float32,     DType::bfloat16, DType::float16,
                                           DType::float8_e4m3, DType::float8_e5m2, DType::int64,    DType::int32,
                                           DType::int16,       DType::int8,        DType::uint8,    DType::boolean};

}  // namespace meshplan::test
