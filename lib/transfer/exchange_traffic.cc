#include "transfer/exchange_traffic.h"

#include <algorithm>

#include "base/int_math.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

void add(int64_t& sum, int64_t more) { sum = saturating_add(sum, more); }
void raise(int64_t& most, int64_t other) { most = std::max(most, other); }

// Bytes and peers of every rank over every level, in one phase.
class Tally {
 public:
  Tally(size_t ranks, int levels) : levels_(static_cast<size_t>(levels)), cells_(ranks * levels_) {}
  struct Cell {
    int64_t received = 0;
    int64_t sent = 0;
    int64_t peers_in = 0;
    int64_t peers_out = 0;
  };
  Cell& at(int32_t rank, int level) { return cells_[static_cast<size_t>(rank) * levels_ + static_cast<size_t>(level)]; }
  [[nodiscard]] int64_t received(size_t rank) const { return sum(rank, &Cell::received); }
  [[nodiscard]] int64_t sent(size_t rank) const { return sum(rank, &Cell::sent); }
  [[nodiscard]] Traffic most() const {
    Traffic traffic;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Cell& c = cells_[i];
      raise(traffic.bytes[i % levels_], std::max(c.received, c.sent));
      raise(traffic.peers[i % levels_], std::max(c.peers_in, c.peers_out));
    }
    return traffic;
  }

 private:
  [[nodiscard]] int64_t sum(size_t rank, int64_t Cell::*what) const {
    int64_t all = 0;
    for (size_t l = 0; l < levels_; ++l) add(all, cells_[rank * levels_ + l].*what);
    return all;
  }
  size_t levels_;
  std::vector<Cell> cells_;
};

// Parts of one shard, cut alike and asked for from the same holders by several ranks in a row: what
// the holders send is added up once for all of them.
class EvenSenders {
 public:
  EvenSenders(const ExchangeRanks& ranks, int64_t element_bytes, Tally& tally)
      : ranks_(ranks), element_(element_bytes), tally_(tally), asks_(ranks.shards()) {}
  void ask(const Overlap& overlap, const NearestHolders& near) {
    Ask& ask = asks_[static_cast<size_t>(overlap.shard)];
    const int64_t slice = overlap.elements / overlap.longest;
    const bool alike = ask.times > 0 && ask.longest == overlap.longest && ask.slice == slice && ask.near.begin == near.begin &&
                       ask.near.count == near.count && ask.near.level == near.level;
    if (!alike) {
      settle(overlap.shard);
      ask = {near, overlap.longest, slice, 0};
    }
    ++ask.times;
  }
  void settle_all() {
    for (size_t s = 0; s < asks_.size(); ++s) settle(static_cast<int32_t>(s));
  }

 private:
  struct Ask {
    NearestHolders near;
    int64_t longest = 1;
    int64_t slice = 0;  // elements
    int64_t times = 0;
  };
  void settle(int32_t shard) {
    Ask& ask = asks_[static_cast<size_t>(shard)];
    if (ask.times == 0) return;
    const auto holders = ranks_.holders_of(shard);
    const int64_t parts = std::min<int64_t>(ask.near.count, ask.longest);
    for (int64_t i = 0; i < parts; ++i) {
      auto& cell = tally_.at(holders[static_cast<size_t>(ask.near.begin + i)], ask.near.level);
      const int64_t bytes = saturating_mul(saturating_mul(ask.slice, near_equal(ask.longest, ask.near.count, i)), element_);
      add(cell.sent, saturating_mul(bytes, ask.times));
      add(cell.peers_out, ask.times);
    }
    ask.times = 0;
  }
  const ExchangeRanks& ranks_;
  int64_t element_;
  Tally& tally_;
  std::vector<Ask> asks_;
};

// Even cuts of what moves; only what comes from inside the unit where `inside`.
int64_t tally_even(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes, bool inside, Tally& tally) {
  int64_t pieces = 0;
  EvenSenders senders(ranks, element_bytes, tally);
  for_each_even_piece(ranks, units, [&](int32_t r, const Overlap& overlap, const NearestHolders& near) {
    if (inside && near.level > 0) return;
    ++pieces;
    auto& cell = tally.at(r, near.level);
    add(cell.received, saturating_mul(overlap.elements, element_bytes));
    cell.peers_in += std::min<int64_t>(near.count, overlap.longest);
    senders.ask(overlap, near);
  });
  senders.settle_all();
  return pieces;
}

}  // namespace

void join_traffic(ExchangeTraffic& all, const ExchangeTraffic& more) {
  for (size_t p = 0; p < all.phase.size(); ++p) {
    for (size_t l = 0; l < max_levels; ++l) {
      raise(all.phase[p].bytes[l], more.phase[p].bytes[l]);
      raise(all.phase[p].peers[l], more.phase[p].peers[l]);
    }
    raise(all.received[p], more.received[p]);
  }
  raise(all.wire_bytes, more.wire_bytes);
  raise(all.sent_bytes, more.sent_bytes);
  add(all.work, more.work);
}

ExchangeTraffic list_one_phase(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes, ExchangeCut cut) {
  ExchangeTraffic out;
  Tally tally(ranks.size(), units.levels());
  if (cut == ExchangeCut::even) {
    out.work = tally_even(ranks, units, element_bytes, false, tally);
  } else {
    for_each_whole_piece(ranks, units, [&](int32_t r, const Overlap& overlap, const NearestHolders& near, int32_t sender) {
      ++out.work;
      const int64_t bytes = saturating_mul(overlap.elements, element_bytes);
      auto& in = tally.at(r, near.level);
      add(in.received, bytes);
      ++in.peers_in;
      auto& from = tally.at(sender, near.level);
      add(from.sent, bytes);
      ++from.peers_out;
    });
  }
  out.phase[0] = tally.most();
  for (size_t r = 0; r < ranks.size(); ++r) {
    raise(out.wire_bytes, tally.received(r));
    raise(out.sent_bytes, tally.sent(r));
  }
  out.received[0] = out.wire_bytes;
  return out;
}

ExchangeTraffic list_two_phases(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes) {
  ExchangeTraffic out;
  Tally outer(ranks.size(), units.levels());
  Tally inner(ranks.size(), units.levels());
  out.work = tally_even(ranks, units, element_bytes, true, inner);
  // Peers are counted once however many parts go from one rank to another. Inside a unit: a matrix of who hears whom.
  std::vector<std::pair<int32_t, int32_t>> outside;  // (fetcher, holder)
  std::vector<uint8_t> heard;                        // receiver-major by sender
  TwoPhases phases(ranks, units);
  Nearest nearest(ranks, units);
  UnitExchange unit;
  while (phases.next(unit)) {
    if (unit.fetched.empty()) continue;
    const size_t k = unit.members.size();
    const int32_t first = unit.members.front();
    heard.assign(k * k, 0);
    outside.clear();
    for (const FetchedPart& f : unit.fetched) {
      const int64_t bytes = saturating_mul(f.elements(), element_bytes);
      add(outer.at(f.fetcher, f.level).received, bytes);
      add(outer.at(f.holder, f.level).sent, bytes);
      outside.emplace_back(f.fetcher, f.holder);
      for (int32_t m : unit.members) {
        if (m == f.fetcher || ranks.wanted[static_cast<size_t>(m)] != f.wanted) continue;
        ++out.work;
        add(inner.at(m, 0).received, bytes);
        add(inner.at(f.fetcher, 0).sent, bytes);
        heard[static_cast<size_t>(m - first) * k + static_cast<size_t>(f.fetcher - first)] = 1;
      }
    }
    out.work += static_cast<int64_t>(unit.fetched.size());
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
    for (const auto& [fetcher, holder] : outside) {
      int level = 0;
      while (units.unit(ranks.id[static_cast<size_t>(fetcher)], level) != units.unit(ranks.id[static_cast<size_t>(holder)], level)) ++level;
      ++outer.at(fetcher, level).peers_in;
      ++outer.at(holder, level).peers_out;
    }
    // What is passed on may come from a rank that also sends what it holds: those peers were counted already.
    for (int32_t m : unit.members) {
      const int32_t w = ranks.wanted[static_cast<size_t>(m)];
      if (w < 0) continue;
      for (const Overlap& overlap : ranks.overlaps_of(w)) {
        if (overlap.shard == ranks.shard[static_cast<size_t>(m)]) continue;
        const NearestHolders& near = nearest.of(overlap.shard, m);
        if (near.level > 0) continue;
        const int64_t parts = std::min<int64_t>(near.count, overlap.longest);
        for (int64_t i = 0; i < parts; ++i) {
          const int32_t sender = ranks.holders_of(overlap.shard)[static_cast<size_t>(near.begin + i)];
          heard[static_cast<size_t>(m - first) * k + static_cast<size_t>(sender - first)] = 0;
        }
      }
    }
    for (size_t to = 0; to < k; ++to) {
      for (size_t from = 0; from < k; ++from) {
        if (heard[to * k + from] == 0) continue;
        ++inner.at(first + static_cast<int32_t>(to), 0).peers_in;
        ++inner.at(first + static_cast<int32_t>(from), 0).peers_out;
      }
    }
  }
  out.phase = {outer.most(), inner.most()};
  for (size_t r = 0; r < ranks.size(); ++r) {
    raise(out.received[0], outer.received(r));
    raise(out.received[1], inner.received(r));
    raise(out.wire_bytes, saturating_add(outer.received(r), inner.received(r)));
    raise(out.sent_bytes, saturating_add(outer.sent(r), inner.sent(r)));
  }
  return out;
}

}  // namespace meshplan
