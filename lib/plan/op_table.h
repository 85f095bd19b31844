// The ops that plans are made of: one row says all that other modules ask about an op.
//
//     P(sum)  --all_reduce-->      R       every rank's box is reduced, all get the whole result
//     P(sum)  --reduce_scatter-->  S(0)    the same, each rank gets its part of the result
//     S(0)    --all_gather-->      R       every rank's box goes to all
//     S(0)    --all_to_all-->      S(1)    every rank sends each other one its part
//     R       --slice-->           S(0)    every rank keeps its part
//     R       --to_partial-->      P(sum)  one rank keeps the value, the others the identity
//     any     --exchange-->        any     every rank gets what it misses, in pairs
//
// A new op is a row here and its name in `Op`, and
//   who sends what to whom           transfer/transfer_maker.h names the files
//   its call, if it is of a group    replay_mpi/mpi_communicator.cc, replay_nccl/nccl_enqueue.cc
//   its proof                        verify/op_rules.h, step_rules.cc, which read no row on purpose
//   that PyTorch lacks it            render/torch_obstacle.cc
//   where the planner takes it       search/moves.cc
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/placement.h"

namespace meshplan {

// In the order that breaks ties between plans.
enum class Op : uint8_t {
  slice,
  all_gather,
  reduce_scatter,
  all_to_all,
  all_reduce,
  to_partial,
  exchange
};

// Which ranks work together in a step.
enum class OpScope : uint8_t {
  rank,   // each by itself: no communication and no group
  group,  // the ranks of one group, in one collective
  mesh,   // any ranks of the mesh or of two meshes, in pairs; only such a step has `phases` and
          // `whole_pieces`
};

// The largest piece that a rank sends to one other: what the wire bytes of a step are counted in.
enum class OpPiece : uint8_t {
  none,
  box_before,    // the box that it holds before the step
  box_after,     // the box that a rank holds after it
  overlap,       // what a box before and a box after have in common
  share_of_box,  // its box before, divided by the ranks of the group
  listed,        // each pair of ranks has its own (transfer/exchange_traffic.h)
};

// What one rank sends, or receives, in the call of an op to a communication library.
enum class CallChunks : uint8_t {
  none,
  one,   // its box before the step, or its box after it
  each,  // one chunk for each member of the group: what goes to it, or comes from it
  any,   // chunks for any ranks
};

struct OpRow {
  const char* name;
  const char* nccl_tests;  // in the name of the program of nccl-tests that measures it; null: none
  OpScope scope;
  OpPiece piece;
  int64_t rounds;          // times that the pieces go once round the group
  CallChunks sends;        // these two say how its call is prepared:
  CallChunks receives;     // replay/prepare_step.cc
  bool reduces;            // completes pending reductions: its steps have a reduce op
  bool pays_per_peer;      // each rank starts a transfer with every other one, not with neighbours
  bool torch_merges;       // PyTorch runs several mesh dims as one step where they are flattened
  double torch_units;      // what PyTorch's graph search counts for it under the unit cost model
  const char* piece_name;  // of `piece`, in sentences
  // Why a step of it is in a plan. {dims}: its mesh dims. {ranks}: of a group. {from}, {to}: the
  // tensor dim sharded before and after. {result}: the placement after it.
  const char* why;           // by the optimal planner
  const char* why_by_rules;  // by PyTorch's rules
};

inline constexpr std::array<OpRow, 7> op_table = {{
    {
        .name = "slice",
        .nccl_tests = nullptr,
        .scope = OpScope::rank,
        .piece = OpPiece::none,
        .rounds = 0,
        .sends = CallChunks::none,
        .receives = CallChunks::none,
        .reduces = false,
        .pays_per_peer = false,
        .torch_merges = false,
        .torch_units = 0,
        .piece_name = "",
        .why = "keeps this rank's part over {dims} of what it holds already, a local step",
        .why_by_rules = "keeps this rank's shard of tensor dim {to} over {dims}, a local step",
    },
    {
        .name = "all_gather",
        .nccl_tests = "all_gather",
        .scope = OpScope::group,
        .piece = OpPiece::box_before,
        .rounds = 1,
        .sends = CallChunks::one,
        .receives = CallChunks::each,
        .reduces = false,
        .pays_per_peer = false,
        .torch_merges = true,
        .torch_units = 2,
        .piece_name = "box",
        .why = "gathers the shards over {dims} into one collective of {ranks} ranks",
        .why_by_rules = "replicates tensor dim {from} over {dims}",
    },
    {
        .name = "reduce_scatter",
        .nccl_tests = "reduce_scatter",
        .scope = OpScope::group,
        .piece = OpPiece::box_after,
        .rounds = 1,
        .sends = CallChunks::each,
        .receives = CallChunks::one,
        .reduces = true,
        .pays_per_peer = false,
        .torch_merges = true,
        .torch_units = 2,
        .piece_name = "chunk",
        .why =
            "finishes the pending reduction over {dims} and keeps only the shard that this rank needs",
        .why_by_rules =
            "finishes the pending reduction over {dims} and keeps this rank's shard of tensor dim {to}",
    },
    {
        .name = "all_to_all",
        .nccl_tests = "alltoall",
        .scope = OpScope::group,
        .piece = OpPiece::overlap,
        .rounds = 1,
        .sends = CallChunks::each,
        .receives = CallChunks::each,
        .reduces = false,
        .pays_per_peer = true,
        .torch_merges = false,
        .torch_units = 1,
        .piece_name = "piece",
        .why =
            "moves the shard over {dims} to where the target has it, each rank keeping its share",
        .why_by_rules = "moves the shard over {dims} from tensor dim {from} to tensor dim {to}",
    },
    {
        .name = "all_reduce",
        .nccl_tests = "all_reduce",
        .scope = OpScope::group,
        .piece = OpPiece::share_of_box,
        .rounds = 2,
        .sends = CallChunks::one,
        .receives = CallChunks::one,
        .reduces = true,
        .pays_per_peer = false,
        .torch_merges = true,
        .torch_units = 4,
        .piece_name = "share",
        .why = "finishes the pending reduction over {dims} where every rank needs the whole result",
        .why_by_rules = "finishes the pending reduction over {dims}",
    },
    {
        .name = "to_partial",
        .nccl_tests = nullptr,
        .scope = OpScope::rank,
        .piece = OpPiece::none,
        .rounds = 0,
        .sends = CallChunks::none,
        .receives = CallChunks::none,
        .reduces = false,
        .pays_per_peer = false,
        .torch_merges = false,
        .torch_units = 0,
        .piece_name = "",
        .why = "writes the value as a contribution over {dims}, a local step",
        .why_by_rules = "writes the value as a contribution to {result} over {dims}, a local step",
    },
    {
        .name = "exchange",
        .nccl_tests = "sendrecv",
        .scope = OpScope::mesh,
        .piece = OpPiece::listed,
        .rounds = 1,
        .sends = CallChunks::any,
        .receives = CallChunks::any,
        .reduces = false,
        .pays_per_peer = true,
        .torch_merges = false,
        .torch_units = 0,
        .piece_name = "box",
        .why =
            "sends every rank just the boxes that it misses, from the nearest ranks that hold them",
        .why_by_rules = "",
    },
}};

static_assert(op_table.size() == static_cast<size_t>(Op::exchange) + 1, "one row for each op");

[[nodiscard]] constexpr const OpRow& row_of(Op op) { return op_table[static_cast<size_t>(op)]; }
[[nodiscard]] constexpr const char* to_text(Op op) { return row_of(op).name; }
[[nodiscard]] std::optional<Op> parse_op(std::string_view text);
[[nodiscard]] constexpr bool is_local(Op op) { return row_of(op).scope == OpScope::rank; }
[[nodiscard]] constexpr bool is_collective(Op op) { return row_of(op).scope == OpScope::group; }

// The op that takes one mesh dim from one placement to another.
[[nodiscard]] Op op_between(const Placement& src, const Placement& dst);

// What one rank of a collective moves, padding included.
struct OpBytes {
  int64_t piece = 0;
  int64_t whole = 0;  // what nccl-tests calls the size: the pieces of all ranks
  int64_t wire = 0;   // received by one rank
};
// `largest`: bytes of the piece; for share_of_box those of the box. Saturates.
//     pieces   whole = group * piece                          wire = (group - 1) * piece
//     shares   whole = the box, piece = ceil(whole / group)  wire = ceil(2 whole (group-1) / group)
[[nodiscard]] OpBytes bytes_of(Op op, int64_t largest, int64_t group);

// `size` (nccl-tests' word) times the bus factor: rounds * (n - 1) / n for a collective, 1 for an
// exchange. By it the bandwidths of different ops compare with that of the links.
[[nodiscard]] double bus_bytes(Op op, double size, int64_t ranks);

// A row's sentence with its {words} filled in.
using NamedWords = std::initializer_list<std::pair<std::string_view, std::string_view>>;
[[nodiscard]] std::string filled(std::string_view sentence, NamedWords words);

}  // namespace meshplan
