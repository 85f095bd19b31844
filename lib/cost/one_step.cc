#include "cost/one_step.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/fresh_units.h"

namespace meshplan {
namespace {

// The shards of a grid that are not empty, to count those that meet a box.
class Meeting {
 public:
  explicit Meeting(const BoxGrid& grid) : sides_(grid.dims()) {
    for (size_t d = 0; d < grid.dims(); ++d) {
      for (const Interval& side : grid.sides(d)) {
        if (width(side) > 0) sides_[d].push_back(side);
      }
    }
  }
  [[nodiscard]] int64_t boxes(const BoxGrid& of, int32_t box) const {
    int64_t count = 1;
    for (size_t d = 0; d < sides_.size(); ++d) {
      const Interval& side = of.box(box)[d];
      if (width(side) == 0) return 0;
      const auto first = std::partition_point(sides_[d].begin(), sides_[d].end(),
                                              [&](const Interval& i) { return i.hi <= side.lo; });
      const auto end = std::partition_point(first, sides_[d].end(),
                                            [&](const Interval& i) { return i.lo < side.hi; });
      count *= end - first;
    }
    return count;
  }

 private:
  std::vector<std::vector<Interval>> sides_;
};

struct OneStep {
  int64_t peers = 0;
  int64_t transfer_ps = 0;
};

// What one exchange takes at least on some rank: every contribution to every box is held by a rank
// of its own.
class OneExchange {
 public:
  OneExchange(const Participants& all, const RankLinks& links, int64_t element_bytes)
      : all_(all),
        links_(links),
        hundred_(100 * element_bytes),
        asked_(static_cast<size_t>(all.held.count()), 0),
        spared_(static_cast<size_t>(all.held.count()), 0) {}

  // What a rank that wants something receives, each by itself.
  void count_receivers() {
    const Meeting meets_held(all_.held);
    std::vector<int64_t> meeting(static_cast<size_t>(all_.wanted.count()), -1);
    for (size_t i = 0; i < all_.ranks.size(); ++i) {
      const RankBoxes& rank = all_.ranks[i];
      if (rank.wanted < 0) continue;
      int64_t& boxes = meeting[rank.wanted];
      if (boxes < 0) boxes = meets_held.boxes(all_.wanted, rank.wanted);
      int64_t peers = boxes * all_.contributions;
      int64_t elements = saturating_mul(all_.wanted.volume(rank.wanted), all_.contributions);
      if (rank.held >= 0) {
        const int64_t own = shared_elements(all_.wanted, rank.wanted, all_.held, rank.held);
        if (own > 0) {
          --peers;
          ++asked_[rank.held];
          spared_[rank.held] += own;
          elements -= own;
        }
      }
      step_.peers = std::max(step_.peers, peers);
      carry(elements, 1, links_.exchange_bandwidth(links_.of_rank(static_cast<int32_t>(i))));
    }
  }

  // The ranks that hold one contribution to a box share those who ask for it.
  void count_holders() {
    const Meeting meets_wanted(all_.wanted);
    const int64_t wanting = all_.cells * all_.cell_ranks;
    const int64_t bandwidth = links_.exchange_bandwidth(links_.all());
    for (int32_t box = 0; box < all_.held.count(); ++box) {
      const auto at = static_cast<size_t>(box);
      const int64_t volume = all_.held.volume(box);
      if (volume == 0) continue;
      // Of all contributions together, so that what holders want counts once for theirs.
      const int64_t holders = all_.holders * all_.contributions;
      const int64_t receivers =
          meets_wanted.boxes(all_.held, box) * wanting * all_.contributions - asked_[at];
      step_.peers = std::max(step_.peers, ceil_div(receivers, holders));
      carry(saturating_mul(saturating_mul(volume, wanting), all_.contributions) - spared_[at],
            holders, bandwidth);
    }
  }

  // Over the links that leave units of the level inside of `level`: what no member of the unit
  // holds.
  void count_units(int level) {
    links_.for_holding_units(all_.ranks, level - 1, [&](const RankLinks::HoldingUnit& unit) {
      for (size_t i = unit.first; i < unit.end; ++i) {
        const int32_t wanted = all_.ranks[i].wanted;
        if (wanted < 0) continue;
        int64_t elements = all_.wanted.volume(wanted);
        for (const int32_t box : unit.boxes)
          elements -= shared_elements(all_.wanted, wanted, all_.held, box);
        const LevelSet leaving = links_.leaving(level, links_.of_rank(static_cast<int32_t>(i)));
        carry(elements, 1, links_.exchange_bandwidth(leaving));
      }
    });
  }

  [[nodiscard]] const OneStep& step() const { return step_; }

 private:
  // So many elements over the links of `ranks` of them; `bandwidth` in hundredths.
  void carry(int64_t elements, int64_t ranks, int64_t bandwidth) {
    if (elements <= 0 || bandwidth <= 0) return;
    step_.transfer_ps = std::max(step_.transfer_ps,
                                 transfer_ps(saturating_mul(elements, hundred_), ranks, bandwidth));
  }

  const Participants& all_;
  const RankLinks& links_;
  int64_t hundred_;              // an element's bytes, in hundredths as bandwidths of exchanges are
  std::vector<int64_t> asked_;   // by box held: holders of it that want part of it
  std::vector<int64_t> spared_;  // elements of it that they want
  OneStep step_;
};

OneStep one_exchange(const Topology& topology, const Participants& all, const RankLinks& links,
                     int64_t element_bytes) {
  OneExchange exchange(all, links, element_bytes);
  exchange.count_receivers();
  exchange.count_holders();
  for (int level = 1; level < static_cast<int>(topology.levels.size()) && all.contributions == 1;
       ++level)
    exchange.count_units(level);
  return exchange.step();
}

// Elements that some rank receives at least in one all_gather on the source's mesh after which the
// ranks of the target hold what they want. A reduction of zero-filled contributions over two ranks
// or more, which moves half of its box at least, could do the same. Every rank that wants holds
// something.
int64_t gathered_elements(const Participants& all, const State& src) {
  std::vector<int64_t> box(all.ranks.size(), 1);
  for (size_t d = 0; d < all.held.dims(); ++d) {
    const auto shards = all.held.sides(d).size();
    // Parts that prefixes of the order cut, sub-axes split anywhere.
    std::vector<size_t> parts{1};
    size_t reached = 1;
    for (const SubAxis& sub_axis : src.shards[d]) {
      for (int64_t f = 2; f <= sub_axis.size; ++f) {
        if (sub_axis.size % f == 0) parts.push_back(reached * static_cast<size_t>(f));
      }
      reached *= static_cast<size_t>(sub_axis.size);
    }
    auto block = [&](const RankBoxes& rank, size_t count) {
      const size_t length = shards / count;
      const size_t first = all.held.shard(d, rank.held) / length * length;
      return Interval{all.held.side(d, first).lo, all.held.side(d, first + length - 1).hi};
    };
    std::vector<size_t> enough;
    for (const size_t count : parts) {
      const bool covers =
          std::all_of(all.ranks.begin(), all.ranks.end(), [&](const RankBoxes& rank) {
            if (rank.wanted < 0) return true;
            const Interval& want = all.wanted.box(rank.wanted)[d];
            const Interval have = block(rank, count);
            return width(want) == 0 || (have.lo <= want.lo && want.hi <= have.hi);
          });
      if (covers) enough.push_back(count);
    }
    // nothing is gathered in this dim, and it may be cut before
    const bool sliced = enough.back() == shards;
    for (size_t i = 0; i < all.ranks.size(); ++i) {
      const RankBoxes& rank = all.ranks[i];
      if (rank.wanted < 0) continue;
      int64_t least = width(all.wanted.box(rank.wanted)[d]);
      if (!sliced) {
        int64_t smallest = INT64_MAX;
        for (const size_t count : enough) smallest = std::min(smallest, width(block(rank, count)));
        least = std::max(least, smallest);
      }
      box[i] = saturating_mul(box[i], least);
    }
  }
  int64_t most = 0;
  for (size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.ranks[i].wanted >= 0)
      most = std::max(most, std::min(box[i] - all.held.volume(all.ranks[i].held), box[i] / 2));
  }
  return most;
}

// A plan of one collective, of which some rank moves what takes so long, and some has peers.
int64_t collective_of_ps(const RankLinks& links, const LeastCrossing& least, int64_t transfer,
                         int64_t peers_ps = 0) {
  if (!least.near_ends_last)
    return saturating_add(saturating_add(ps_of_ns(least.latency_ns), peers_ps),
                          std::max(least.transfer(), transfer));
  return std::max(least.ps(links), saturating_add(ps_of_ns(links.least_latency_ns(0)),
                                                  std::max(transfer, peers_ps)));
}

}  // namespace

std::optional<int64_t> steps_across_ps(const Topology& topology, const Participants& all,
                                       const RankLinks& links, const State& src,
                                       std::span<const int64_t> shape, int64_t element_bytes,
                                       const LeastCrossing& least) {
  const bool inside = std::all_of(all.ranks.begin(), all.ranks.end(),
                                  [](const RankBoxes& r) { return r.held >= 0 || r.wanted < 0; });
  bool crosses = false;  // the step between the meshes moves something in every plan
  int64_t gather_ps = INT64_MAX;
  if (!inside) {
    // Some rank holds nothing before that step and something after it: one of those that hold what
    // is landed where others cannot hold all of it, any where no shard of any state on the target's
    // mesh is empty.
    const std::span<const int64_t> sizes = all.wanted.mesh_sizes();
    const auto bare = std::count_if(all.ranks.begin(), all.ranks.end(),
                                    [](const RankBoxes& r) { return r.held < 0 && r.wanted >= 0; });
    const auto lands = [&](int64_t extent) {
      return bare == std::ssize(all.wanted.of_ranks()) ? extent > 0 : always_filled(extent, sizes);
    };
    crosses = least_held(shape, bare, sizes) > 0 || std::all_of(shape.begin(), shape.end(), lands);
    if (!crosses) return std::nullopt;
  } else {
    // One collective may do it all. On the target's mesh only where its ranks hold the whole tensor
    // before.
    if (all.contributions > 1 || all.cell_ranks > 1) return std::nullopt;
    std::vector<bool> there(static_cast<size_t>(all.held.count()), false);
    for (const RankBoxes& rank : all.ranks) {
      if (rank.wanted >= 0) there[rank.held] = true;
    }
    bool whole = true;
    for (int32_t box = 0; box < all.held.count(); ++box)
      whole = whole && (there[box] || all.held.volume(box) == 0);
    if (whole) return std::nullopt;
    const int64_t elements = gathered_elements(all, src);
    gather_ps = collective_of_ps(
        links, least,
        transfer_ps(saturating_mul(elements, element_bytes), 1, links.bandwidth(links.all())));
  }
  const int64_t per_peer_ns = links.least_per_peer_ns(links.all());
  std::vector<FreshUnits> fresh;
  if (crosses && all.cell_ranks == 1) fresh = fresh_units(topology, all, links);
  OneStep one{1, 0};
  if (all.cell_ranks == 1) one = one_exchange(topology, all, links, element_bytes);
  one.transfer_ps = std::max(one.transfer_ps, least_of_one_exchange_ps(fresh, element_bytes));
  const int64_t peers_ps = ps_of_ns(saturating_mul(per_peer_ns, one.peers));
  int64_t exchange_ps = saturating_add(saturating_add(ps_of_ns(least.latency_ns), peers_ps),
                                       std::max(least.transfer(), one.transfer_ps));
  // Or an all_to_all.
  if (inside)
    exchange_ps = std::min(exchange_ps, collective_of_ps(links, least, one.transfer_ps, peers_ps));
  const int64_t other_ns = saturating_add(links.least_latency_ns(0), crosses ? per_peer_ns : 0);
  const int64_t two_ps = std::max(saturating_add(least.ps(links), ps_of_ns(other_ns)),
                                  least_in_two_ps(fresh, all, links, shape, element_bytes, least));
  return std::min({exchange_ps, gather_ps, two_ps});
}

}  // namespace meshplan
