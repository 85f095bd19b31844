#include "measure/nccl_words.h"

namespace meshplan {

std::string nccl_type_word(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::float16:
      return "half";
    case DType::float8_e4m3:
      return "f8e4m3";
    case DType::float8_e5m2:
      return "f8e5m2";
    case DType::boolean:
      return "uint8";
    default:
      return to_text(dtype);
  }
}

std::string nccl_op_word(const std::optional<ReduceOp>& op) {
  if (!op) return "none";
  return *op == ReduceOp::product ? "prod" : to_text(*op);
}

}  // namespace meshplan
