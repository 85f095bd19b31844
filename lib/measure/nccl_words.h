// nccl-tests' words for types and reductions, as its tables and its JSON have them.
#pragma once

#include <optional>
#include <string>

#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// "float", "half", "bfloat16"; a bool is the byte that it is moved as, "uint8".
[[nodiscard]] std::string nccl_type_word(DType dtype);
// "sum", "prod", "none"
[[nodiscard]] std::string nccl_op_word(const std::optional<ReduceOp>& op);

}  // namespace meshplan
