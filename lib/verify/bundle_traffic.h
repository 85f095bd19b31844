// What the parts of a bundle's rounds move and keep, each counted once for all like tensors.
//
//     kind 0, step 0, piece 1 of 2     who sends what to whom (sent_boxes.h)
//     kind 0 after step 0              bytes of the box of every rank
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "verify/bundle_ranks.h"
#include "verify/bundle_view.h"
#include "verify/sent_boxes.h"

namespace meshplan::verification {

// With how many ranks over one level a rank has to do in a round.
struct PeerShare {
  uint32_t rank = 0;
  uint32_t level = 0;
  int64_t to = 0;
  int64_t from = 0;
};

// A piece with its number: equal ones have the same.
struct NumberedTraffic {
  size_t number = 0;
  std::shared_ptr<const PieceTraffic> traffic;  // nullptr: it cannot be counted
};

// Bytes of one rank.
struct RankBytes {
  uint32_t rank = 0;
  int64_t bytes = 0;
};

class BundleTraffic {
 public:
  BundleTraffic(const BundleView& view, const BundleRanks& ranks, WorkLeft& work)
      : view_(view), ranks_(ranks), work_(work) {}

  [[nodiscard]] NumberedTraffic piece(size_t kind, const RoundPart& part);
  // Of all these together, ordered by number: one packed message a peer.
  using Together = std::vector<NumberedTraffic>;
  [[nodiscard]] const std::vector<PeerShare>& peers(const Together& together);
  [[nodiscard]] const Collective& collective(size_t kind, size_t step);
  // Of a tensor of the state on the mesh, in bytes of its own type; ranks with nothing left out.
  [[nodiscard]] std::vector<RankBytes> boxes(size_t kind, const State& state, const Mesh& mesh);

 private:
  using Key = std::tuple<size_t, int64_t, int64_t, int64_t>;  // kind, step, piece, pieces
  // The boxes of a step, or in the parts in which the steps before it brought them; of two phases
  // those of either, and the same in the parts in which the steps before, and the fetching, brought
  // them.
  enum class Sent : uint8_t { whole, behind, fetched, passed_on, fetched_behind, passed_on_behind };
  using SentKey = std::tuple<size_t, size_t, Sent>;  // kind, step
  [[nodiscard]] std::shared_ptr<const SentBoxes> sent(size_t kind, size_t step, Sent how);
  [[nodiscard]] ExchangeView exchange_of(size_t kind, size_t step) const;
  [[nodiscard]] std::optional<SentBoxes> list_phase(size_t kind, size_t step, PhaseBoxes which);
  [[nodiscard]] std::optional<SentBoxes> list_sent(size_t kind, size_t step, Sent how);
  [[nodiscard]] std::optional<PieceTraffic> count_piece(size_t kind, const RoundPart& part);
  void remember(size_t entries);

  const BundleView& view_;
  const BundleRanks& ranks_;
  WorkLeft& work_;
  size_t remembered_ = 0;
  std::map<Key, size_t> numbers_;
  std::map<size_t, std::shared_ptr<const PieceTraffic>> pieces_;  // by number
  std::map<SentKey, std::shared_ptr<const SentBoxes>> sent_;
  std::map<std::vector<size_t>, std::vector<PeerShare>> peers_;
  std::map<std::pair<size_t, size_t>, Collective> collectives_;
};

}  // namespace meshplan::verification
