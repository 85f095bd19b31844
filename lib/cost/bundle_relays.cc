#include "cost/bundle_relays.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "cost/chain_bound.h"
#include "cost/collective_time.h"

namespace meshplan {
namespace {

// Of waves in which givers send so many numbers are tried; what is between two of them takes no
// less than the latencies of the lower and the transfer of the higher one.
constexpr std::array<int64_t, 17> tried_waves{1,  2,  3,  4,  5,  6,  7,  8, 10,
                                              12, 16, 20, 24, 32, 40, 48, 64};

// Rounded up.
int64_t bytes_in(int64_t ps, int64_t mb_per_s) {
  return ps == 0 ? 0 : saturated(int128{mb_per_s} * ps / 1'000'000 + 1);
}

}  // namespace

BundleRelays::BundleRelays(const Topology& topology, const Topology& bound, const LevelUnits& units)
    : topology_(topology),
      bound_(bound),
      units_(units),
      wanted_(static_cast<size_t>(units.levels())),
      in_unit_(static_cast<size_t>(units.levels()), 1) {}

void BundleRelays::add_givers(const Mesh& mesh, int64_t copies) {
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (int64_t index = 0; index < mesh_size(mesh); ++index)
      givers_.insert(rank_at(*mesh.universe, position_of(mesh, copy, index)));
  }
}

void BundleRelays::add(const Participants& all, int64_t weight) {
  std::vector<int32_t> takers;
  for (size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.ranks[i].wanted >= 0 && givers_.count(all.ranks[i].id) == 0)
      takers.push_back(static_cast<int32_t>(i));
  }
  if (takers.empty()) return;
  for (int level = 0; level < units_.levels(); ++level) {
    std::map<int64_t, std::map<int32_t, int64_t>> boxes;  // by unit: ranks that want it
    for (const int32_t i : takers) {
      const RankBoxes& rank = all.ranks[static_cast<size_t>(i)];
      ++boxes[units_.joined(rank.id, level)][rank.wanted];
    }
    int64_t& in_unit = in_unit_[static_cast<size_t>(level)];
    std::map<int32_t, int64_t> copies;  // by box
    for (const auto& [unit, of_unit] : boxes) {
      for (const auto& [box, ranks] : of_unit) {
        ++copies[box];
        in_unit = std::max(in_unit, ranks);
      }
    }
    for (const auto& [box, times] : copies) {
      int64_t& bytes = wanted_[static_cast<size_t>(level)][times];
      bytes = saturating_add(bytes, saturating_mul(all.wanted.volume(box), weight));
    }
  }
}

std::vector<int64_t> BundleRelays::takers(const std::set<int64_t>& ids) const {
  std::vector<int64_t> takers;
  std::set_difference(ids.begin(), ids.end(), givers_.begin(), givers_.end(),
                      std::back_inserter(takers));
  return takers;
}

// Of all these ranks together over the links to `to`, which lie apart, at the rate of exchanges.
int64_t BundleRelays::given_mb_per_s(const std::vector<int64_t>& from, const UnitCounts& to) const {
  int64_t sum = 0;
  for (const int64_t id : from) {
    for (int l = 0; l < units_.levels(); ++l) {
      if (meets(units_, id, to, {}, l))
        sum = saturating_add(sum, exchange_mb_per_s(bound_.levels[static_cast<size_t>(l)]));
    }
  }
  return sum;
}

BundleRelays::Sides BundleRelays::sides_of(const std::vector<int64_t>& takers) const {
  const std::vector<int64_t> givers(givers_.begin(), givers_.end());
  Sides sides{counts_of(units_, givers), counts_of(units_, takers), 0};
  sides.given_mb_per_s =
      std::min(given_mb_per_s(takers, sides.givers), given_mb_per_s(givers, sides.takers));
  return sides;
}

// The least latency of an exchange in which some giver sends to a taker: it has a peer.
int64_t BundleRelays::giving_latency_ns(const std::vector<int64_t>& takers,
                                        const UnitCounts& givers) const {
  int64_t latency_ns = INT64_MAX;
  int64_t per_peer_ns = INT64_MAX;
  for (int l = 0; l < units_.levels(); ++l) {
    const bool met = std::any_of(takers.begin(), takers.end(),
                                 [&](int64_t id) { return meets(units_, id, givers, {}, l); });
    const TopologyLevel& level = topology_.levels[static_cast<size_t>(l)];
    if (met) per_peer_ns = std::min(per_peer_ns, level.per_peer_ns);
    if (per_peer_ns < INT64_MAX) latency_ns = std::min(latency_ns, level.latency_ns);
  }
  return saturating_add(latency_ns, per_peer_ns);
}

BundleRelays::Takers BundleRelays::takers_in_units(int level, const std::vector<int64_t>& takers,
                                                   const Sides& sides) const {
  std::map<int64_t, std::vector<int64_t>> units;
  for (const int64_t id : takers) units[units_.joined(id, level)].push_back(id);
  Takers found;
  found.among_mb_per_s.resize(static_cast<size_t>(units_.levels()), 0);
  RelayNeed need;
  need.given_mb_per_s = sides.given_mb_per_s;
  for (const auto& [unit, ids] : units) {
    const UnitCounts inside = counts_of(units_, ids);
    for (const int64_t id : ids) {
      for (int l = 0; l < units_.levels(); ++l) {
        const int64_t mb_per_s = bound_.levels[static_cast<size_t>(l)].mb_per_s;
        const bool meets_takers = meets(units_, id, sides.takers, inside, l);
        if (meets_takers || meets(units_, id, sides.givers, {}, l))
          need.taken_mb_per_s = saturating_add(need.taken_mb_per_s, mb_per_s);
        for (auto at = static_cast<size_t>(l); meets_takers && at < found.among_mb_per_s.size();
             ++at)
          found.among_mb_per_s[at] = saturating_add(found.among_mb_per_s[at], mb_per_s);
      }
    }
  }
  const std::map<int64_t, int64_t>& wanted = wanted_[static_cast<size_t>(level)];
  for (const auto& [copies, unused] : wanted) {
    need.copies = copies;
    need.leaving = need.arriving = 0;
    for (const auto& [times, bytes] : wanted) {
      need.leaving = saturating_add(need.leaving, bytes);
      need.arriving = saturating_add(need.arriving, saturating_mul(bytes, std::min(times, copies)));
    }
    found.needs.push_back(need);
  }
  return found;
}

// Beside an exchange, which has the latency of its outermost level, collectives of inner levels may
// run that begin earlier: so much longer than the exchange's own bytes theirs may take.
BundleRelays::Latencies BundleRelays::latencies(const std::vector<int64_t>& takers,
                                                const UnitCounts& givers, bool lone) const {
  Latencies latencies;
  const int64_t giving_ns = giving_latency_ns(takers, givers);
  latencies.giving_ps = saturating_mul(giving_ns, 1000);
  int64_t least_ns = INT64_MAX;
  for (const TopologyLevel& level : bound_.levels) {
    least_ns = std::min(least_ns, level.latency_ns);
    latencies.alone_ps.push_back(saturating_mul(lone ? level.latency_ns : least_ns, 1000));
  }
  if (!lone) latencies.longer_ps = saturating_mul(std::max<int64_t>(0, giving_ns - least_ns), 1000);
  return latencies;
}

// The least time without latencies of so many waves in which givers send, and of others over levels
// up to `outermost`, -1: there are none.
int64_t BundleRelays::waves_ps(const std::vector<Takers>& sets, int64_t waves, int outermost,
                               int64_t longer_ps) {
  const int64_t beside_ps = saturating_mul(waves - 1, longer_ps);
  int64_t least_ps = 0;
  for (const Takers& set : sets) {
    const int64_t among = outermost < 0 ? 0 : set.among_mb_per_s[static_cast<size_t>(outermost)];
    const int64_t beside = bytes_in(beside_ps, set.among_mb_per_s.back());
    for (RelayNeed need : set.needs) {
      need.arriving = std::max<int64_t>(0, need.arriving - beside);
      least_ps = std::max(least_ps, least_relay_ps(need, waves, among));
    }
  }
  return least_ps;
}

int64_t BundleRelays::ps(const std::vector<int64_t>& takers, int64_t bytes_ps, bool lone) const {
  if (takers.empty() || wanted_.front().empty()) return 0;
  const Sides sides = sides_of(takers);
  const Latencies latency = latencies(takers, sides.givers, lone);
  if (latency.giving_ps == 0) return 0;
  std::vector<Takers> sets;
  for (int level = 0; level < units_.levels(); ++level)
    sets.push_back(takers_in_units(level, takers, sides));
  int64_t best_ps = INT64_MAX;
  int64_t fewest = 1;  // more than were tried before
  for (const int64_t waves : tried_waves) {
    const int64_t giving_ps = saturating_mul(fewest, latency.giving_ps);
    const int64_t rest_ps =
        std::max<int64_t>(0, bytes_ps - saturating_mul(waves, latency.longer_ps));
    if (saturating_add(giving_ps, rest_ps) >= best_ps) return best_ps;
    for (int outermost = -1; outermost < units_.levels(); ++outermost) {
      const int64_t alone_ps = outermost < 0 ? 0 : latency.alone_ps[static_cast<size_t>(outermost)];
      const int64_t transfer =
          std::max(rest_ps, waves_ps(sets, waves, outermost, latency.longer_ps));
      best_ps = std::min(best_ps, saturating_add(saturating_add(giving_ps, alone_ps), transfer));
    }
    fewest = waves + 1;
  }
  // What more waves take has latencies that grow by more than they may begin earlier.
  const int64_t many_ps = saturating_mul(fewest, latency.giving_ps - latency.longer_ps);
  return std::min(best_ps, saturating_add(many_ps, bytes_ps));
}

// Of the levels from..to, at least one of which is used.
int64_t BundleRelays::least_latency_ps(int from, int to) const {
  int64_t least_ns = INT64_MAX;
  for (int l = from; l < to; ++l)
    least_ns = std::min(least_ns, bound_.levels[static_cast<size_t>(l)].latency_ns);
  return saturating_mul(least_ns, 1000);
}

// Through units inside the level, none of which has both givers and takers.
int64_t BundleRelays::chain_ps(int level, const Sides& sides, const std::vector<Takers>& sets,
                               int64_t giving_ps) const {
  for (const auto& [unit, ranks] : sides.takers) {
    if (unit.first == level - 1 && sides.givers.count(unit) > 0) return 0;
  }
  const auto all_of = [&](int of_level) {
    int64_t sum = 0;
    for (const auto& [times, bytes] : wanted_[static_cast<size_t>(of_level)])
      sum = saturating_add(sum, saturating_mul(bytes, times));
    return sum;
  };
  const Takers& ranks = sets.front();
  const Takers& units = sets[static_cast<size_t>(level)];
  ChainNeed need;
  need.leaving = ranks.needs.front().leaving;
  need.entering = all_of(level);
  need.arriving = all_of(0);
  need.units = wanted_[static_cast<size_t>(level)].rbegin()->first;
  need.in_unit = in_unit_[static_cast<size_t>(level)];
  need.copies = wanted_.front().rbegin()->first;
  need.given_mb_per_s = sides.given_mb_per_s;
  need.entering_mb_per_s = units.needs.front().taken_mb_per_s;
  need.arriving_mb_per_s = ranks.needs.front().taken_mb_per_s;
  need.inside_mb_per_s = ranks.among_mb_per_s[static_cast<size_t>(level) - 1];
  need.across_ps = std::min(giving_ps, least_latency_ps(level, units_.levels()));
  need.inside_ps = least_latency_ps(0, level);
  return least_chain_ps(need);
}

// All leaves the givers, then the all_gather brings every unit what its groups have elsewhere.
int64_t BundleRelays::gathered_ps(const CopyLines& lines, const std::vector<Takers>& sets,
                                  int64_t giving_ps) const {
  const RelayNeed& need = sets.front().needs.front();
  int outermost = 0;
  int64_t gather_ps = 0;
  for (int level = 0; level < units_.levels(); ++level) {
    const auto at = static_cast<size_t>(level);
    const int64_t mb_per_s = sets[at].among_mb_per_s.back();
    if (lines[at] < 2 || mb_per_s == 0) continue;
    outermost = level;
    const int64_t bytes = saturating_mul(lines[at] - 1, need.leaving);
    gather_ps = std::max(gather_ps, transfer_ps(bytes, 1, mb_per_s));
  }
  const int64_t given_ps = transfer_ps(need.leaving, 1, need.given_mb_per_s);
  const int64_t latencies_ps =
      saturating_add(giving_ps, least_latency_ps(outermost, units_.levels()));
  return saturating_add(latencies_ps, saturating_add(given_ps, gather_ps));
}

int64_t BundleRelays::lone_ps(const std::vector<int64_t>& takers,
                              const std::vector<CopyLines>& lines) const {
  if (takers.empty() || wanted_.front().empty()) return 0;
  const Sides sides = sides_of(takers);
  const int64_t giving_ps = latencies(takers, sides.givers, true).giving_ps;
  if (giving_ps == 0 || sides.given_mb_per_s == 0) return 0;
  std::vector<Takers> sets;
  for (int level = 0; level < units_.levels(); ++level)
    sets.push_back(takers_in_units(level, takers, sides));
  int64_t ps = 0;
  for (int level = 1; level < units_.levels(); ++level)
    ps = std::max(ps, chain_ps(level, sides, sets, giving_ps));
  for (const CopyLines& of_dim : lines) ps = std::min(ps, gathered_ps(of_dim, sets, giving_ps));
  return ps;
}

}  // namespace meshplan
