#include "cost/fresh_units.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"

namespace meshplan {
namespace {

int64_t product_of(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product = saturating_mul(product, size);
  return product;
}

}  // namespace

// By f of the s chunks of a mesh dim, what is left of it cuts f and so many times more: s divides
// f times the smallest shard where it always does.
bool always_cut_evenly(int64_t extent, std::span<const int64_t> mesh_sizes) {
  const int64_t ranks = product_of(mesh_sizes);
  if (extent % ranks != 0) return false;
  const int64_t smallest = extent / ranks;
  for (const int64_t size : mesh_sizes) {
    for (int64_t part = 2; part * part <= size; ++part) {
      if (size % part == 0 && (smallest % part != 0 || smallest % (size / part) != 0)) return false;
    }
  }
  return true;
}

// Of a width w the smallest of f parts is w / f - (f - 1) (s - 1) / f at least, and of what that
// loses later cuts leave less: all of them lose less than the largest s - 1.
bool always_filled(int64_t extent, std::span<const int64_t> mesh_sizes) {
  const int64_t most = *std::max_element(mesh_sizes.begin(), mesh_sizes.end());
  if (extent == 0) return false;
  return always_cut_evenly(extent, mesh_sizes) ||
         extent / product_of(mesh_sizes) >= std::max<int64_t>(1, most - 1);
}

// By f of the s chunks of a mesh dim w becomes (w + s - 1) / f at most; f is 2 or more, so that all
// cuts add less than the largest s - 1.
int64_t widest_shard(int64_t extent, int64_t parts, std::span<const int64_t> mesh_sizes) {
  const int64_t most = *std::max_element(mesh_sizes.begin(), mesh_sizes.end());
  return saturating_add(floor_div(extent, parts), most - 1);
}

namespace {

// The unit inside of those that links of the level join.
int64_t unit_inside(const RankLinks& links, int64_t id, int level) {
  return level == 0 ? id : links.unit(id, level - 1);
}

// Of the source's links that leave its units, in hundredths of MB/s.
int64_t leaving_sources(const Participants& all, const RankLinks& links, int level) {
  int64_t bandwidth = 0;
  for (size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.ranks[i].held < 0) continue;
    const LevelSet leaving = links.leaving(level, links.of_rank(static_cast<int32_t>(i)));
    bandwidth = saturating_add(bandwidth, links.exchange_bandwidth(leaving));
  }
  return bandwidth;
}

FreshUnits units_of_level(const Participants& all, const RankLinks& links, int level) {
  FreshUnits fresh;
  fresh.level = level;
  int64_t exchange_bandwidth = 0;
  std::vector<int32_t> boxes;
  const std::vector<RankBoxes>& ranks = all.ranks;
  for (size_t first = 0, end = 0; first < ranks.size(); first = end) {
    const int64_t unit = unit_inside(links, ranks[first].id, level);
    bool holds = false;
    for (end = first; end < ranks.size() && unit_inside(links, ranks[end].id, level) == unit; ++end)
      holds = holds || ranks[end].held >= 0;
    if (holds) continue;
    boxes.clear();
    for (size_t i = first; i < end; ++i) {
      const LevelSet leaving = links.leaving(level, links.of_rank(static_cast<int32_t>(i)));
      fresh.bandwidth = saturating_add(fresh.bandwidth, links.bandwidth(leaving));
      exchange_bandwidth = saturating_add(exchange_bandwidth, links.exchange_bandwidth(leaving));
      boxes.push_back(ranks[i].wanted);
      fresh.received = saturating_add(fresh.received, all.wanted.volume(ranks[i].wanted));
    }
    fresh.ranks += static_cast<int64_t>(end - first);
    std::sort(boxes.begin(), boxes.end());
    boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
    for (const int32_t box : boxes)
      fresh.wanted = saturating_add(fresh.wanted, all.wanted.volume(box));
  }
  fresh.entering = std::min(leaving_sources(all, links, level), exchange_bandwidth);
  return fresh;
}

// Elements that no other ranks than `ranks` of all hold, at most, in any state of the target's mesh
// that cuts some extent unevenly. Shards lie with as many ranks each, so of k shards k ranks / all
// lie there alone; their sides are an even share and `wider` at most, by extent. The product of
// those is largest where one extent is cut by all that cuts.
int64_t most_held_alone(std::span<const int64_t> shape, std::span<const int64_t> wider,
                        int64_t ranks, int64_t all) {
  int64_t most = 0;
  for (size_t cut = 0; cut < shape.size(); ++cut) {
    if (wider[cut] == 0) continue;
    int64_t elements = 1;  // of all shards
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t more = saturating_mul(wider[d], d == cut ? all : 1);
      elements = saturating_mul(elements, saturating_add(shape[d], more));
    }
    most = std::max(most, elements);
  }
  return ceil_div(saturating_mul(most, ranks), all);
}

}  // namespace

int64_t least_held(std::span<const int64_t> shape, int64_t ranks,
                   std::span<const int64_t> mesh_sizes) {
  const int64_t all = product_of(mesh_sizes);
  const int64_t elements = product_of(shape);
  int64_t held = saturating_mul(elements, ranks);
  if (held == INT64_MAX) return 0;
  held = floor_div(held, all);
  if (ranks == all) return held;
  std::vector<int64_t> wider;  // than an even share, by extent
  for (const int64_t extent : shape) {
    const bool even = always_cut_evenly(extent, mesh_sizes);
    wider.push_back(even ? 0 : widest_shard(0, 1, mesh_sizes));
    if (even) continue;
    const int64_t parts = extent / all / all;
    held -= parts > 0 ? ceil_div(held, parts) : held;
  }
  const int64_t others = most_held_alone(shape, wider, all - ranks, all);
  return others > 0 ? std::max(held, elements - others) : held;
}

std::vector<FreshUnits> fresh_units(const Topology& topology, const Participants& all,
                                    const RankLinks& links) {
  std::vector<FreshUnits> units;
  const auto levels = static_cast<int>(topology.levels.size());
  for (int level = levels == 1 ? 0 : 1; level < levels; ++level) {
    const FreshUnits fresh = units_of_level(all, links, level);
    if (fresh.wanted > 0 && fresh.entering > 0) units.push_back(fresh);
  }
  return units;
}

int64_t least_in_two_ps(const std::vector<FreshUnits>& units, const Participants& all,
                        const RankLinks& links, std::span<const int64_t> shape,
                        int64_t element_bytes, const LeastCrossing& least) {
  int64_t most = 0;
  for (const FreshUnits& fresh : units) {
    const LevelSet leaving = links.leaving(fresh.level, links.all());
    const int64_t latency_ns = links.least_latency_ns(fresh.level);
    const int64_t other_latency_ns = links.least_latency_ns(0);
    const int64_t per_peer_ns = links.least_per_peer_ns(leaving);
    // bandwidths of exchanges are in hundredths
    const int64_t hundred = saturating_mul(100, element_bytes);
    const int64_t at_once_ps =
        ps_of_ns(latency_ns + other_latency_ns + per_peer_ns) +
        std::max(least.transfer(),
                 transfer_ps(saturating_mul(fresh.wanted, hundred), 1, fresh.entering));
    const int64_t landed =
        std::min(fresh.wanted, least_held(shape, fresh.ranks, all.wanted.mesh_sizes()));
    // The exchange and the steps behind it both wait for links of this level.
    int64_t passed_on_ps = least.transfer_beyond(fresh.level);
    if (fresh.entering < saturating_mul(100, fresh.bandwidth)) {
      // One less, as both are rounded up.
      const int64_t landing_ps = transfer_ps(saturating_mul(landed, hundred), 1, fresh.entering);
      const int64_t rest_ps =
          transfer_ps(saturating_mul(fresh.wanted - landed, element_bytes), 1, fresh.bandwidth);
      passed_on_ps = std::max(passed_on_ps, saturating_add(landing_ps, rest_ps) - 1);
    }
    const int64_t waited_ns =
        latency_ns + (landed > 0 ? latency_ns + per_peer_ns : other_latency_ns);
    passed_on_ps = saturating_add(ps_of_ns(waited_ns), passed_on_ps);
    most = std::max(most, std::min(at_once_ps, passed_on_ps));
  }
  return most;
}

int64_t least_of_one_exchange_ps(const std::vector<FreshUnits>& units, int64_t element_bytes) {
  int64_t most = 0;
  for (const FreshUnits& fresh : units) {
    const int64_t hundredths = saturating_mul(fresh.received, saturating_mul(100, element_bytes));
    most = std::max(most, transfer_ps(hundredths, 1, fresh.entering));
  }
  return most;
}

}  // namespace meshplan
