// How the tensors of a bundle are put into rounds.
//
//     kind w, 3 tensors, 2 buckets      bucket 0: tensor 0, and piece 0 of 2 of tensor 1
//                                       bucket 1: piece 1 of 2 of tensor 1, and tensor 2
//
// A bucket takes the same share of every kind, so that all senders and all receivers have work in
// every round. Step s of bucket b is a round on stream s, behind step s - 1 of the bucket: so it
// runs beside step 0 of bucket b + s. Kinds with collectives go through the same buckets, where
// those of one step, op and group are a round on a stream of their own; or they come behind, in
// buckets of their own, all steps of one before the next.
// Kinds of fewer steps begin later, so that one round has what all of them send over the outermost
// level, or gather.
//
// An exchange that comes before them pays its peers in each bucket, and what it brings takes
// little: it may bring what the next buckets need, too, as far as the staging holds that.
//
//     2 buckets      exchange 0, all_gather 0, exchange 1, all_gather 1
//     ahead by 2     exchange 0 and 1, all_gather 0, all_gather 1
//
// Beside collectives a kind of hardly any bytes goes through the first bucket alone.
//
// Shares are even, or fall from bucket to bucket where a later step takes less than the first, and
// rise where it takes more: so steps that run at the same time take as long as each other, and the
// steps that run beside nothing are those of small buckets.
//
//     step 0 takes 4, step 1 takes 2     shares 1/2 1/2       2 | 2 + 1 | 1          5 in all
//                                        shares 2/3 1/3     8/3 | 4/3 + 4/3 | 2/3    14/3 in all
//
// A tensor's boxes between two steps are held from its first bucket to its last, so tensors that
// have much there go one at a time through buckets of their own, behind the others, and each begins
// when nothing of the tensor before is on the way:
//
//     kind w, 2 large tensors, 3 buckets each     0: piece 0 of tensor 0 .. 2: piece 2 of tensor 0
//                                                 3: piece 0 of tensor 1, behind all steps of 2 ..
#pragma once

#include <cstdint>
#include <vector>

#include "planner/bundle_kind.h"

namespace meshplan {

// The tensors of a kind are numbered through its members.
struct KindPart {
  size_t kind = 0;
  size_t step = 0;  // of those that communicate
  int64_t from = 0;
  int64_t to = 0;
  int64_t piece = 0;
  int64_t pieces = 1;
};

struct KindRound {
  int64_t stream = 0;
  std::vector<size_t> after;
  std::vector<KindPart> parts;
};

struct RoundLimits {
  int64_t buckets = 1;
  std::vector<int64_t> shares;           // of each bucket, in parts of their sum; none: even
  int64_t buckets_behind = INT64_MAX;    // of kinds with collectives; at most `buckets`
  int64_t tensors_a_round = INT64_MAX;   // of kinds with collectives
  int64_t tensors_a_launch = INT64_MAX;  // of one collective: it has messages for each
  // Of kinds with collectives: one round brings what so many of their buckets need, where they
  // begin with an exchange.
  int64_t buckets_ahead = 1;
  bool beside = false;  // whether kinds with collectives go through the same buckets
  // Of a rank: kinds share buckets, or an exchange before collectives, as long as they have no more
  // if they go whole, each with messages of its own. A kind that has more is alone; 0: each is.
  int64_t messages_a_round = INT64_MAX;
  [[nodiscard]] bool by_messages() const { return messages_a_round < INT64_MAX; }
  // Those that share no buckets go through as many as make these as large as the others', not each
  // through `buckets`.
  bool alike = false;
  int64_t most_between = INT64_MAX;  // bytes between steps of a tensor that shares its buckets
};

// The next number of buckets, not below `buckets`, into which so many tensors go evenly: where some
// buckets have one tensor more than others, waves wait for the largest.
[[nodiscard]] int64_t evenly(int64_t buckets, int64_t tensors);

[[nodiscard]] bool may_go_alone(const Kind& kind);
// Bytes that one tensor has between its steps on a rank, the most over ranks.
[[nodiscard]] int64_t bytes_between(const Way& way);
// Bytes of all tensors of the kind, wherever they lie.
[[nodiscard]] int64_t bytes_of(const Kind& kind, size_t way);

// Messages that some rank has in some round, in however many pieces the tensor goes: what is cut
// into as many slices goes together where it begins with the same one.
[[nodiscard]] int64_t least_messages(const Way& way);

// `chosen`: the way of each kind.
[[nodiscard]] std::vector<KindRound> make_rounds(const std::vector<Kind>& kinds,
                                                 const std::vector<size_t>& chosen,
                                                 const RoundLimits& limits);

// Tensors of a kind with collectives, the most over kinds; 0: there are none.
[[nodiscard]] int64_t most_behind(const std::vector<Kind>& kinds,
                                  const std::vector<size_t>& chosen);

// The rounds of kinds with collectives, at least.
[[nodiscard]] int64_t launches_of_collectives(const std::vector<Kind>& kinds,
                                              const std::vector<size_t>& chosen,
                                              const RoundLimits& limits);

// The parts by member.
[[nodiscard]] std::vector<RoundPart> parts_of(const KindPart& part, const Kind& kind,
                                              const Way& way, const Plan& plan);

}  // namespace meshplan
