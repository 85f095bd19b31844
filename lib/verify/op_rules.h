// What each op may do, as verify sees it. On purpose this is not the table that all others read
// (plan/op_table.h): what is wrong there is not right here.
//
//     op              digits of mesh_dims                     other digits
//     all_gather      shard -> free                           unchanged
//     reduce_scatter  pending -> shard                        unchanged, or free -> shard (a slice)
//     all_reduce      pending -> free                         unchanged
//     all_to_all      shard d -> shard e                      unchanged
//     slice           free -> shard                           unchanged
//     to_partial      free -> pending, shard -> pending sum   unchanged
//     exchange        all mesh dims, to any role but pending; pending digits stay or are reduced
#pragma once

#include "plan/op_table.h"
#include "verify/digits.h"

namespace meshplan::verification {

// Who works together.
enum class Partners : uint8_t { none, group, mesh };

// What one rank sends another in one round, padding included.
enum class Piece : uint8_t {
  none,
  box,     // its box before the step
  chunk,   // the other's box after it
  share,   // its box before the step over the ranks of the group
  pair,    // what its box before and the other's after it have in common
  listed,  // pair by pair (recount_exchange.h)
};

struct OpRule {
  Partners partners = Partners::none;
  Piece piece = Piece::none;
  int64_t rounds = 0;          // in which every piece goes once to all that need it
  bool between_pairs = false;  // every other rank is a peer; else neighbours are
  bool may_reduce = false;
  bool must_reduce = false;
  bool slices_too = false;  // other digits may go from free to shard
  // The new box may come from the ranks that differ on the digits that change; else each has it.
  bool receives = false;
};

[[nodiscard]] constexpr OpRule rule_of(Op op) {
  switch (op) {
    case Op::slice:
      return {};
    case Op::to_partial:
      return {.receives = true};
    case Op::all_gather:
      return {.partners = Partners::group, .piece = Piece::box, .rounds = 1, .receives = true};
    case Op::reduce_scatter:
      return {.partners = Partners::group,
              .piece = Piece::chunk,
              .rounds = 1,
              .may_reduce = true,
              .must_reduce = true,
              .slices_too = true};
    case Op::all_reduce:
      return {.partners = Partners::group,
              .piece = Piece::share,
              .rounds = 2,
              .may_reduce = true,
              .must_reduce = true};
    case Op::all_to_all:
      return {.partners = Partners::group,
              .piece = Piece::pair,
              .rounds = 1,
              .between_pairs = true,
              .receives = true};
    case Op::exchange:
      return {.partners = Partners::mesh,
              .piece = Piece::listed,
              .rounds = 1,
              .between_pairs = true,
              .may_reduce = true,
              .receives = true};
  }
  return {};
}

// Without communication.
[[nodiscard]] constexpr bool is_alone(Op op) { return rule_of(op).partners == Partners::none; }

// Whether a digit that `op` talks over (or, for local ops, changes) may go from one role to the
// other.
[[nodiscard]] constexpr bool may_change(Op op, bool reduces, int32_t from, int32_t to) {
  switch (op) {
    case Op::all_gather:
      return is_shard_role(from) && to == role_free;
    case Op::reduce_scatter:
      return is_pending_role(from) && is_shard_role(to);
    case Op::all_reduce:
      return is_pending_role(from) && to == role_free;
    case Op::all_to_all:
      return is_shard_role(from) && is_shard_role(to) && from != to;
    case Op::slice:
      return from == role_free && is_shard_role(to);
    case Op::to_partial:
      return is_pending_role(to) &&
             (from == role_free || (is_shard_role(from) && to == role_of(ReduceOp::sum)));
    case Op::exchange:
      return !is_pending_role(to) && (!is_pending_role(from) || reduces);
  }
  return false;
}

}  // namespace meshplan::verification
