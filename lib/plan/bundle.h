// Bundles: many redistributions asked for at once, moved by one schedule.
//
//     sync     members w1 (4 tensors), w2 (1 tensor), each one exchange between two meshes
//     round 0  stream 0            w1 step 0 tensors [0:3]
//     round 1  stream 0            w1 step 0 tensors [3:4], w2 step 0 tensors [0:1]
//
// A round is one launch on one communicator, of steps of many tensors: exchanges in one phase, with
// one packed message to each peer, or collectives of one op, group and list of mesh dims, launched
// together. Its parts say which step of which member it runs, for which of the member's like
// tensors (its count) and, where a tensor is larger than the staging allows, for which piece of
// each. Every step that communicates is in rounds, for every tensor and piece once; a member is in
// one bundle.
//
// Pieces. A part with `pieces` k and `piece` i runs the i-th piece of its step. Of step 0 that is
// of every box that a rank sends or keeps the i-th of k near-equal parts along one dim: the longest
// of those whose cut the most later steps that go in pieces, in a row and one at least, leave as
// step 0 makes it, where it has 16 slices, else the longest of all (ties: the lowest;
// transfer/piece_transfers.h). Of a later step it is what its sender got in piece i of the step
// before, so that one bucket can be shared while the next is fetched. Only exchanges in one phase
// that reduce nothing, of tensors with dims, go in pieces, and only as step 0 or behind such steps
// alone: there piece i needs piece i of the step before. Any other step needs all pieces of the
// step before it.
// A tensor has the same `pieces` in all its steps, or from some step on 1.
//
// An exchange in two phases (in no chunks) goes in an even number 2 c of pieces, whatever the steps
// before it do. What a rank fetches lands in its box after the step, and piece 2 i + 1 passes on
// from there, in a later wave, what piece 2 i fetched.
//   As step 0, or behind steps that go in no pieces, any piece needs all pieces of the step before:
//   of every box of the first phase, and of every box of the second and what a rank keeps, the i-th
//   of c near-equal parts along its longest dim are piece 2 i and piece 2 i + 1.
//   Behind steps that go in pieces, piece 2 i is what its sender got in piece i of c in the step
//   before: what is fetched, and what moves inside units or is kept of boxes before the step, which
//   waits for no fetching. Piece 2 i + 1 is what of that was fetched and is passed on. Where the
//   step before goes in c pieces, both need its piece i alone, else all of them.
//
// Messages. In a round of exchanges every rank sends each peer one message: the boxes of all parts,
// each row-major, without gaps. Parts lie in the order of their elements' bytes on the wire, the
// widest first (so that every box begins at a multiple of its element), then as they are listed; of
// a part its tensors ascending; of a tensor boxes by contribution, then by lower corner. What a
// rank keeps is in no message.
//
// Order. A wave is a set of rounds that run at the same time. Round r is in wave
//     wave(r) = 1 + the latest wave of the rounds that it names in `after` and of the round before
//               it in its stream; 0 where there is none
// so a stream has at most one round in a wave. A part may run once all of the step before it that
// it needs ran in rounds that its own waits for, by way of others too: `after` and streams lead
// there, an earlier wave is not enough. Local steps (slices, zero fills, collectives in groups of
// one rank) are not in rounds: they run with the next step, in the first of its waves and in front
// of it, or behind the last other step, in the wave that completes it; those of members of local
// steps only run when all waves are done. Waves follow one another and share nothing.
//
// Figures, of ranks by global id, over all copies of a mesh that take part (of two meshes the first
// of each). What stays with its rank is no traffic and needs no staging.
//   wire_bytes     that one rank receives in the round, the most over ranks; of a collective its
//                  steps', summed over tensors
//   staging_bytes  that one rank has packed in the round, sent and received, the most over ranks;
//                  of a collective what its steps pack (the part of their peak_bytes beside input
//                  and output), summed over tensors
//   messages       sends and receives of one rank, the most over ranks: one a peer and direction;
//                  of a collective 2 for each tensor
//   predicted      of exchanges: what one exchange takes that moves all of its parts, counted rank
//                  by rank (cost/collective_time.h): bytes[l] and peers[l] are the most that a rank
//                  sends or receives over level l, and has to send to or to receive from; copied
//                  are twice the most received bytes. Levels price it, whatever tables there are.
//                  Of collectives: one whose whole, piece and copied bytes are those of all
//                  tensors, each summed.
//   a wave         of exchanges: the same of all its rounds together, whose bytes and peers add up
//                  on every rank (a peer in two rounds counts twice), so that what they share of a
//                  level is counted. Beside collectives no less than these take one after another
//                  and what the ranks of their meshes then exchange over the levels on which ranks
//                  of a group meet: nothing of a link counts twice, and ranks and links that
//                  collectives do not use exchange meanwhile.
// Totals: predicted is the sum over waves; wire_bytes and messages are sums over rounds;
// staging_bytes is the most that a rank has in a wave: packed in all its rounds (of a collective
// every rank of the meshes of its parts has the round's staging_bytes), and every box between two
// steps of a tensor, whole, in its own type, from the first wave of the step that writes it to the
// last wave of the one that uses it (local steps are in all waves of the next step that is in a
// round, or of the last one before; where a member has none they run as one, from source to target,
// and there is nothing between); peak_bytes the most that a rank has of that, at its most, and of
// the sources and targets of all members.
// `max_staging_bytes` holds for totals.staging_bytes, `max_messages` for every round. Bytes are
// held at 2^63 - 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/op_table.h"

namespace meshplan {

// What a spec asks for: members as indices into its redistributions, in their order.
struct BundleRequest {
  std::string id;
  std::vector<size_t> members;
  int64_t count = 1;                             // how often the whole happens
  int64_t max_staging_bytes = int64_t{2} << 30;  // of one rank; 0: no limit
  int64_t max_messages = 1024;                   // of one rank in one round
  bool operator==(const BundleRequest&) const = default;
};

struct RoundPart {
  size_t member = 0;  // index into Plan::redistributions
  int64_t step = 0;   // index into its steps
  int64_t from = 0;   // of its like tensors, numbered from 0: those from this one
  int64_t to = 1;     // up to, but not with, this one
  int64_t piece = 0;
  int64_t pieces = 1;
  bool operator==(const RoundPart&) const = default;
};

struct BundleRound {
  Op op = Op::exchange;
  std::string group;  // id of the group that it runs on; exchanges: empty where parts have several
  int64_t stream = 0;
  std::vector<size_t> after;  // earlier rounds, ascending
  std::vector<RoundPart> parts;
  int64_t wire_bytes = 0;
  int64_t staging_bytes = 0;
  int64_t messages = 0;
  int64_t predicted_ps = 0;
  bool operator==(const BundleRound&) const = default;
};

struct BundleTotals {
  int64_t rounds = 0;
  int64_t wire_bytes = 0;
  int64_t staging_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t messages = 0;
  int64_t predicted_ps = 0;
  int64_t lower_bound_ps = 0;  // no schedule takes less (cost/bundle_bound.h)
  // Some rank must receive so many; a file has them in its own totals alone, and reading gives 0.
  int64_t lower_bound_bytes = 0;
  bool operator==(const BundleTotals&) const = default;
};

struct PlannedBundle {
  BundleRequest request;
  int64_t tensors = 0;  // the counts of its members together
  std::vector<BundleRound> rounds;
  BundleTotals totals;
  // Predicted less the lower bound, each in nanoseconds rounded up, as the file has them.
  int64_t proven_gap_ps = 0;
  // What the members take one by one, each planned for itself; not below the lower bound.
  int64_t alone_ps = 0;
  bool operator==(const PlannedBundle&) const = default;
};

// The wave of every round. `after` names earlier rounds only.
[[nodiscard]] std::vector<int64_t> waves_of(const std::vector<BundleRound>& rounds);
// Rounds of one wave, the most over waves.
[[nodiscard]] int64_t most_in_flight(const std::vector<BundleRound>& rounds);

}  // namespace meshplan
