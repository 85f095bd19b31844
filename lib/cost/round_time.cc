#include "cost/round_time.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/in_order_of.h"
#include "base/int_math.h"
#include "cost/collective_time.h"
#include "transfer/level_map.h"
#include "transfer/level_units.h"

namespace meshplan {

template <class Load, class JoinPeers>
void RoundLoad::add_bytes_and(const Load& other, int64_t times, JoinPeers&& join_peers) {
  for (size_t rank = 0; rank < ranks_; ++rank) {
    for (int l = 0; l < levels_; ++l) {
      Tally::Cell& cell = tally_.at(static_cast<int32_t>(rank), l);
      const Tally::Cell& more = other.at(static_cast<int32_t>(rank), l);
      add_up(cell.received, saturating_mul(more.received, times));
      add_up(cell.sent, saturating_mul(more.sent, times));
      join_peers(cell.peers_in, more.peers_in);
      join_peers(cell.peers_out, more.peers_out);
    }
  }
}

void RoundLoad::add(const RoundLoad& other) {
  add_bytes_and(other.tally_, 1, [](auto& peers, auto more) { peers += more; });
}

void RoundLoad::add(const KeptLoad& other) {
  add_bytes_and(other, 1, [](auto& peers, auto more) { peers += more; });
}

void RoundLoad::add_to_messages(const KeptLoad& other) {
  add_bytes_and(other, 1, [](auto& peers, auto more) { raise(peers, more); });
}

void RoundLoad::add_bytes(const RoundLoad& other, int64_t times) {
  add_bytes_and(other.tally_, times, [](auto& /*peers*/, auto /*more*/) {});
}

void RoundLoad::set_peers(const RoundLoad& other) {
  add_bytes_and(other.tally_, 0, [](auto& peers, auto more) { peers = more; });
}

KeptLoad::KeptLoad(const RoundLoad& load) : levels_(static_cast<size_t>(load.levels_)) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, uint32_t> known;
  for (size_t rank = 0; rank < load.ranks_; ++rank) {
    for (int l = 0; l < load.levels_; ++l) {
      const Tally::Cell& cell = load.tally_.at(static_cast<int32_t>(rank), l);
      const auto [at, fresh] =
          known.try_emplace({cell.received, cell.sent, cell.peers_in, cell.peers_out},
                            static_cast<uint32_t>(cells_.size()));
      if (fresh) cells_.push_back(cell);
      of_.push_back(at->second);
    }
  }
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

int64_t RoundLoad::predicted_ps(const Topology& topology, const std::vector<bool>& ranks,
                                LevelSet levels) const {
  int64_t most_received = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    int64_t received = 0;
    for (int l = 0; l < levels_ && ranks[rank]; ++l) {
      if (has_level(levels, static_cast<size_t>(l)))
        add_up(received, tally_.at(static_cast<int32_t>(rank), l).received);
    }
    raise(most_received, received);
  }
  return traffic_ps(topology, tally_.most(ranks, levels), Peers::number_and_rate,
                    saturating_mul(2, most_received));
}

void WaveCollectives::add(int64_t takes_ps, const std::vector<int32_t>& on_ranks,
                          LevelSet on_levels, size_t all_ranks) {
  add_up(ps, takes_ps);
  levels |= on_levels;
  ranks.resize(all_ranks, false);
  for (const int32_t rank : on_ranks) ranks[static_cast<size_t>(rank)] = true;
}

int64_t wave_ps(const Topology& topology, const RoundLoad& exchanges,
                const WaveCollectives& collectives) {
  const int64_t apart = exchanges.predicted_ps(topology);
  if (collectives.ranks.empty()) return apart;
  const int64_t behind = exchanges.predicted_ps(topology, collectives.ranks, collectives.levels);
  return std::max(apart, saturating_add(collectives.ps, behind));
}

size_t mesh_of_collective(const Plan& plan, const PlannedRedistribution& planned, size_t step) {
  const Request& request = planned.request;
  const bool landed = request.src_mesh != request.dst_mesh &&
                      planned.steps[step].mesh == plan.meshes.meshes[request.dst_mesh].name;
  return landed ? request.dst_mesh : request.src_mesh;
}

LevelSet levels_of_collective(const Plan& plan, const PlannedRedistribution& planned, size_t step) {
  const LevelMap levels(plan.meshes.meshes[mesh_of_collective(plan, planned, step)], plan.topology);
  return levels_met(levels.shapes(planned.steps[step].mesh_dims));
}

std::vector<int32_t> ranks_of_collective(const Plan& plan, const RankTable& ranks,
                                         const PlannedRedistribution& planned, size_t step) {
  const Mesh& mesh = plan.meshes.meshes[mesh_of_collective(plan, planned, step)];
  const bool across = planned.request.src_mesh != planned.request.dst_mesh;
  const std::vector<int32_t>& numbers = ranks.of_positions(*mesh.universe);
  std::vector<int32_t> all;
  for (int64_t copy = 0; copy < (across ? 1 : mesh_copies(mesh)); ++copy) {
    for (int64_t index = 0; index < mesh_size(mesh); ++index)
      all.push_back(numbers[static_cast<size_t>(position_of(mesh, copy, index))]);
  }
  return all;
}

RoundCounter::RoundCounter(const RankTable& ranks, const Topology& topology)
    : ranks_(ranks.global_ids.size()),
      levels_(topology.levels.size()),
      load_(ranks_, static_cast<int>(levels_)),
      to_each_(ranks_, 0) {
  const std::vector<int64_t> level_ranks = level_ranks_of(topology);
  const LevelUnits units(level_ranks);
  for (const int64_t id : ranks.global_ids) {
    for (int level = 0; level < levels(); ++level) units_.push_back(units.unit(id, level));
  }
}

int RoundCounter::level_between(int32_t a, int32_t b) const {
  const int64_t* units_of_a = &units_[static_cast<size_t>(a) * levels_];
  const int64_t* units_of_b = &units_[static_cast<size_t>(b) * levels_];
  int level = 0;
  while (units_of_a[level] != units_of_b[level]) ++level;
  return level;
}

void RoundCounter::add_message(const PairElements& pair) {
  const int level = level_between(pair.from, pair.to);
  Tally::Cell& sender = load_.tally_.at(pair.from, level);
  add_up(sender.sent, pair.elements);
  ++sender.peers_out;
  Tally::Cell& receiver = load_.tally_.at(pair.to, level);
  add_up(receiver.received, pair.elements);
  ++receiver.peers_in;
}

namespace {

// Of so many tensors.
int64_t bytes_of(int64_t elements, int64_t element_bytes, int64_t times) {
  return saturating_mul(saturating_mul(elements, element_bytes), times);
}

}  // namespace

void RoundCounter::add_once(const ReceivedAlike& received, int64_t element_bytes, int64_t times) {
  if (received.to.size() == 1) {
    for (const ReceivedAlike::Part& part : received.parts)
      add_message({part.from, received.to.front(), bytes_of(part.elements, element_bytes, times)});
    return;
  }
  const int outermost = levels() - 1;
  const auto receivers = std::ssize(received.to);
  int64_t all = 0;
  for (const ReceivedAlike::Part& part : received.parts) {
    const int64_t bytes = bytes_of(part.elements, element_bytes, times);
    Tally::Cell& sender = load_.tally_.at(part.from, outermost);
    add_up(sender.sent, saturating_mul(bytes, receivers));
    sender.peers_out += receivers;
    add_up(all, bytes);
  }
  for (const int32_t to : received.to) {
    Tally::Cell& receiver = load_.tally_.at(to, outermost);
    add_up(receiver.received, all);
    receiver.peers_in += std::ssize(received.parts);
  }
}

template <class Use>
void RoundCounter::for_each_pair(Use&& use) {
  pairs_ = in_order_of(std::move(pairs_), ranks_,
                       [](const PairElements& pair) { return static_cast<size_t>(pair.from); });
  size_t next = 0;
  for (int32_t from = 0; from < static_cast<int32_t>(ranks_); ++from) {
    const auto add = [&](int32_t to, int64_t bytes) {
      int64_t& sum = to_each_[static_cast<size_t>(to)];
      if (sum == 0) receivers_.push_back(to);
      add_up(sum, bytes);
    };
    for (; next < pairs_.size() && pairs_[next].from == from; ++next)
      add(pairs_[next].to, pairs_[next].elements);
    for (Pieces& pieces : pieces_) {
      if (pieces.reader.next_sender() != from) continue;
      pieces.reader.read_sender([&](int32_t to, int64_t elements) {
        add(to, bytes_of(elements, pieces.element_bytes, pieces.times));
      });
    }
    for (const int32_t to : receivers_)
      use(PairElements{from, to, std::exchange(to_each_[static_cast<size_t>(to)], 0)});
    receivers_.clear();
  }
  pieces_.clear();
}

void RoundCounter::add(const std::vector<PairElements>& pairs, int64_t element_bytes,
                       int64_t times) {
  for (const PairElements& pair : pairs)
    pairs_.push_back({pair.from, pair.to, bytes_of(pair.elements, element_bytes, times)});
  if (pairs_.size() <= most_pairs_) return;
  std::vector<Pieces> pieces = std::exchange(pieces_, {});
  std::vector<PairElements> together;
  for_each_pair([&](const PairElements& pair) { together.push_back(pair); });
  pairs_ = std::move(together);
  pieces_ = std::move(pieces);
  most_pairs_ = std::max(most_apart, 2 * pairs_.size());
}

void RoundCounter::add(const PieceReader& pieces, int64_t element_bytes, int64_t times) {
  pieces_.push_back({pieces, element_bytes, times});
}

RoundLoad RoundCounter::take() {
  for_each_pair([&](const PairElements& pair) { add_message(pair); });
  pairs_.clear();
  most_pairs_ = most_apart;
  return std::exchange(load_, RoundLoad(ranks_, levels()));
}

}  // namespace meshplan
