// Placements: how a tensor is laid out over one mesh dim. Text as in PyTorch: R, S(1), P(sum), and
// on input SS(0,2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace meshplan {

enum class ReduceOp : uint8_t { sum, avg, min, max, product };
[[nodiscard]] const char* to_text(ReduceOp op);
[[nodiscard]] std::optional<ReduceOp> parse_reduce_op(std::string_view text);
// Whether partials of both kinds may be pending in one state: if equal, or sum and avg.
[[nodiscard]] bool may_mix(ReduceOp a, ReduceOp b);

struct Placement {
  enum class Kind : uint8_t { replicate, shard, partial, strided_shard };
  Kind kind = Kind::replicate;
  int32_t tensor_dim = 0;       // shard, strided_shard
  ReduceOp op = ReduceOp::sum;  // partial
  int64_t split_factor = 1;     // strided_shard
  bool operator==(const Placement&) const = default;
};

[[nodiscard]] constexpr Placement replicate() { return {}; }
[[nodiscard]] constexpr Placement shard(int32_t tensor_dim) {
  return {Placement::Kind::shard, tensor_dim, ReduceOp::sum, 1};
}
[[nodiscard]] constexpr Placement partial(ReduceOp op) {
  return {Placement::Kind::partial, 0, op, 1};
}
[[nodiscard]] constexpr bool is_replicate(const Placement& p) {
  return p.kind == Placement::Kind::replicate;
}
[[nodiscard]] constexpr bool is_shard(const Placement& p) {
  return p.kind == Placement::Kind::shard;
}
[[nodiscard]] constexpr bool is_partial(const Placement& p) {
  return p.kind == Placement::Kind::partial;
}

// Law: parse_placement(to_text(p)) == p. Errors say what was expected; a mask partial (P(mask)) has
// an error of its own.
[[nodiscard]] std::string to_text(const Placement& placement);
void append_text(std::string& out, const Placement& placement);
[[nodiscard]] Result<Placement> parse_placement(std::string_view text);

}  // namespace meshplan
