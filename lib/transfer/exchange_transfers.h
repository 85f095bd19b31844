// Who sends what to whom in an exchange: exactly the boxes that others miss, with the work spread
// evenly over the holders. The rules are in this module's README.md.
//
//     2 x 2, [8], S(0)R -> RR, even cut     to target 0: [0:4] from 0 (it keeps it),
//                                           [4:6] from 2, [6:8] from 3
//
// Law: the boxes that go to one target tile its box, if the sources hold it
// (tests/transfer/exchange_transfers_test.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensor/box.h"
#include "transfer/exchange_cut.h"

namespace meshplan {

// A rank by its global id, and its box before (a source) or after (a target). Source boxes are
// equal or disjoint, and so are target boxes.
struct RankBox {
  int64_t rank = 0;
  Box box;
};

struct ExchangeTransfer {
  int32_t source = 0;  // index into the sources
  int32_t target = 0;  // index into the targets
  Box box;
  bool operator==(const ExchangeTransfer&) const = default;
};

// Every box that is not empty, by target, then shard (in order of its first holder), then part.
// What a rank keeps (the target's rank holds the shard) is listed too, with itself as source.
// `level_ranks`: consecutive global ids in one unit of each level, inside out; the last level holds
// every rank. `far_64ths`: of the even cut, the share that is asked of far holders.
[[nodiscard]] std::vector<ExchangeTransfer> exchange_transfers(std::span<const RankBox> sources,
                                                               std::span<const RankBox> targets,
                                                               std::span<const int64_t> level_ranks,
                                                               ExchangeCut cut,
                                                               int64_t far_64ths = 0);

// What ranks receive from others, without boxes.
struct ExchangeElements {
  int32_t source = 0;  // index into the sources
  int32_t target = 0;  // index into the targets
  int64_t elements = 0;
};
// Ranks that receive the same from the same ranks: each of `to` each of the parts.
//
//     train on hosts 0 to 3, serve on hosts 4 to 7, S(0) -> R     32 parts to 32 ranks, once
struct ReceivedAlike {
  struct Part {
    int32_t from = 0;  // index into the sources
    int64_t elements = 0;
  };
  std::vector<Part> parts;
  // Indices into the targets; of several all parts come over the outermost level.
  std::vector<int32_t> to;
};
// Law: the volumes of exchange_transfers that a rank does not keep, each pair of ranks once, in no
// order.
void exchange_elements(std::span<const RankBox> sources, std::span<const RankBox> targets,
                       std::span<const int64_t> level_ranks, ExchangeCut cut,
                       const std::function<void(const ReceivedAlike&)>& use);

//     2 hosts of 2, [8], S(0)R -> RR     first_phase      [4:6] from 2 to 0, [6:8] from 3 to 1, ...
//                                        from_sources     [0:4] from 0 to 0, ...
//                                        from_fetchers    [4:6] from 0 to 0 and to 1, ...
struct TwoPhaseTransfers {
  // What members fetch from other units: `target` is the index of the fetching member among the
  // targets.
  std::vector<ExchangeTransfer> first_phase;
  // Second phase, inside units: what a source held before, and what a member has fetched, whose
  // `source` is an index into the targets.
  std::vector<ExchangeTransfer> from_sources;
  std::vector<ExchangeTransfer> from_fetchers;
  std::vector<int32_t> fetch_of;  // by those: which of the first phase brought the box
};
// Members that fetch are targets, though they may not want what they fetch for others.
[[nodiscard]] TwoPhaseTransfers two_phase_transfers(std::span<const RankBox> sources,
                                                    std::span<const RankBox> targets,
                                                    std::span<const int64_t> level_ranks,
                                                    Fetchers fetchers = Fetchers::wanting);

// Without boxes. Law: the volumes of two_phase_transfers that go from one rank to another.
struct TwoPhaseElements {
  std::vector<ExchangeElements> first_phase;
  std::vector<ExchangeElements> from_sources;
  std::vector<ExchangeElements> from_fetchers;  // `source`: index into the targets
};
[[nodiscard]] TwoPhaseElements two_phase_elements(std::span<const RankBox> sources,
                                                  std::span<const RankBox> targets,
                                                  std::span<const int64_t> level_ranks,
                                                  Fetchers fetchers = Fetchers::wanting);

}  // namespace meshplan
