#include "cost/round_time.h"

#include <algorithm>
#include <tuple>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "transfer/level_units.h"

namespace meshplan {

template <class JoinPeers>
void RoundLoad::add_bytes_and(const RoundLoad& other, JoinPeers&& join_peers) {
  for (size_t rank = 0; rank < ranks_; ++rank) {
    for (int l = 0; l < levels_; ++l) {
      Tally::Cell& cell = tally_.at(static_cast<int32_t>(rank), l);
      const Tally::Cell& more = other.tally_.at(static_cast<int32_t>(rank), l);
      add_up(cell.received, more.received);
      add_up(cell.sent, more.sent);
      join_peers(cell.peers_in, more.peers_in);
      join_peers(cell.peers_out, more.peers_out);
    }
  }
}

void RoundLoad::add(const RoundLoad& other) {
  add_bytes_and(other, [](auto& peers, auto more) { peers += more; });
}

void RoundLoad::add_to_messages(const RoundLoad& other) {
  add_bytes_and(other, [](auto& peers, auto more) { raise(peers, more); });
}

RankLoad RoundLoad::of_rank(size_t rank) const {
  RankLoad load;
  for (int l = 0; l < levels_; ++l) {
    const Tally::Cell& cell = tally_.at(static_cast<int32_t>(rank), l);
    add_up(load.received, cell.received);
    add_up(load.sent, cell.sent);
    load.messages += cell.peers_in + cell.peers_out;
  }
  return load;
}

int64_t RoundLoad::wire_bytes() const {
  int64_t most = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) raise(most, of_rank(rank).received);
  return most;
}

int64_t RoundLoad::staging_bytes() const {
  int64_t most = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const RankLoad load = of_rank(rank);
    raise(most, saturating_add(load.received, load.sent));
  }
  return most;
}

int64_t RoundLoad::messages() const {
  int64_t most = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) raise(most, of_rank(rank).messages);
  return most;
}

int64_t RoundLoad::predicted_ps(const Topology& topology) const {
  return traffic_ps(topology, tally_.most(), Peers::number_and_rate,
                    saturating_mul(2, wire_bytes()));
}

RoundCounter::RoundCounter(const RankTable& ranks, const Topology& topology)
    : ids_(ranks.global_ids), level_ranks_(level_ranks_of(topology)) {
  if (ids_.size() > most_dense) return;
  dense_.assign(ids_.size() * ids_.size(), 0);
  known_levels_.assign(ids_.size() * ids_.size(), unknown_level);
}

int RoundCounter::level_of(const PairElements& pair) {
  if (dense_.empty()) return level_between(pair.from, pair.to);
  uint8_t& known =
      known_levels_[static_cast<size_t>(pair.from) * ids_.size() + static_cast<size_t>(pair.to)];
  if (known == unknown_level) known = static_cast<uint8_t>(level_between(pair.from, pair.to));
  return known;
}

int RoundCounter::level_between(int32_t a, int32_t b) const {
  const LevelUnits units(level_ranks_);
  int level = 0;
  while (units.unit(ids_[static_cast<size_t>(a)], level) !=
         units.unit(ids_[static_cast<size_t>(b)], level))
    ++level;
  return level;
}

void RoundCounter::add(const std::vector<PairElements>& pairs, int64_t element_bytes,
                       int64_t times) {
  for (const PairElements& pair : pairs) {
    const int64_t bytes = saturating_mul(saturating_mul(pair.elements, element_bytes), times);
    if (dense_.empty()) {
      pairs_.push_back({pair.from, pair.to, bytes});
      continue;
    }
    int64_t& sum =
        dense_[static_cast<size_t>(pair.from) * ids_.size() + static_cast<size_t>(pair.to)];
    if (sum == 0) pairs_.push_back({pair.from, pair.to, 0});
    add_up(sum, bytes);
  }
}

RoundLoad RoundCounter::take() {
  RoundLoad load(ids_.size(), levels());
  if (dense_.empty()) {
    std::sort(pairs_.begin(), pairs_.end(), [](const PairElements& a, const PairElements& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
  }
  for (size_t i = 0; i < pairs_.size(); ++i) {
    PairElements pair = pairs_[i];
    if (dense_.empty()) {
      for (;
           i + 1 < pairs_.size() && pairs_[i + 1].from == pair.from && pairs_[i + 1].to == pair.to;
           ++i)
        add_up(pair.elements, pairs_[i + 1].elements);
    } else {
      std::swap(
          pair.elements,
          dense_[static_cast<size_t>(pair.from) * ids_.size() + static_cast<size_t>(pair.to)]);
    }
    const int level = level_of(pair);
    Tally::Cell& sender = load.tally_.at(pair.from, level);
    add_up(sender.sent, pair.elements);
    ++sender.peers_out;
    Tally::Cell& receiver = load.tally_.at(pair.to, level);
    add_up(receiver.received, pair.elements);
    ++receiver.peers_in;
  }
  pairs_.clear();
  return load;
}

}  // namespace meshplan
