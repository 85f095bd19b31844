// Element types. Their names in specs and plans are those of to_text.
// Replay computes with each (replay/number.h; replay_nccl/gpu_kernels.cu lists them in this order),
// and the schemas list the names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

enum class DType : uint8_t {
  float64,
  float32,
  bfloat16,
  float16,
  float8_e4m3,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean
};

[[nodiscard]] int64_t element_bytes(DType dtype);  // bytes
[[nodiscard]] bool is_floating(DType dtype);
[[nodiscard]] const char* to_text(DType dtype);  // "bfloat16", "bool"
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);
[[nodiscard]] const std::vector<std::string>& dtype_names();

}  // namespace meshplan
