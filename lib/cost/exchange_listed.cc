// The listed engine: rank by rank, for uneven shards, sizes that do not line up, permuted ranks and two meshes.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/int_math.h"
#include "cost/exchange.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

struct Rank {
  int64_t position = -1;  // in the rank map
  int64_t id = 0;         // global rank
  Box held;               // before; empty list and `holds` false where the rank is only a target
  Box wanted;             // after
  bool holds = false;
  bool wants = false;
  int32_t shard = -1;         // index of its source shard
  std::vector<int64_t> kept;  // coordinates on pending atoms that stay pending
};

struct Shard {
  Box box;
  std::vector<int64_t> kept;
  std::vector<int32_t> holders;  // indices of ranks, in rank order
  int64_t asked = 0;             // how many ranks so far miss part of it
};

bool pending_in(const State& state, const Atom& atom) {
  return std::any_of(state.partial.begin(), state.partial.end(), [&](const PendingAtom& p) { return p.atom == atom; });
}

std::vector<int64_t> coordinates_on(const std::vector<Atom>& atoms, std::span<const int64_t> shape, std::span<const int64_t> coordinates) {
  std::vector<int64_t> out;
  for (const Atom& atom : atoms) {
    auto m = static_cast<size_t>(atom.mesh_dim);
    out.push_back(atom_coordinate(atom, shape[m], coordinates[m]));
  }
  return out;
}

// The ranks of one copy (both meshes' copy 0 where there are two) with what they hold and want, in rank order.
std::vector<Rank> list_ranks(const ExchangeQuestion& q, int64_t copy, const std::vector<Atom>& kept) {
  const Mesh& src_mesh = q.levels->mesh();
  const Mesh& dst_mesh = q.dst_mesh != nullptr ? *q.dst_mesh : src_mesh;
  std::map<int64_t, Rank> by_id;
  auto src_shape = mesh_shape(src_mesh);
  for (int64_t i = 0; i < mesh_size(src_mesh); ++i) {
    int64_t position = position_of(src_mesh, copy, i);
    Rank& r = by_id[rank_at(*src_mesh.universe, position)];
    auto c = coordinates_of(i, src_shape);
    r.position = position;
    r.held = box_of(*q.src, q.shape, src_shape, c);
    r.holds = true;
    r.kept = coordinates_on(kept, src_shape, c);
  }
  auto dst_shape = mesh_shape(dst_mesh);
  for (int64_t i = 0; i < mesh_size(dst_mesh); ++i) {
    int64_t position = position_of(dst_mesh, copy, i);
    Rank& r = by_id[rank_at(*dst_mesh.universe, position)];
    auto c = coordinates_of(i, dst_shape);
    r.position = position;
    r.wanted = box_of(*q.dst, q.shape, dst_shape, c);
    r.wants = true;
    if (q.dst_mesh != nullptr) r.kept = coordinates_on(kept, dst_shape, c);
  }
  std::vector<Rank> ranks;
  for (auto& [id, r] : by_id) {
    r.id = id;
    ranks.push_back(std::move(r));
  }
  return ranks;
}

// Source shards: ranks with equal boxes, equal coordinates on pending atoms (kept or reduced) hold the same data.
std::vector<Shard> list_shards(std::vector<Rank>& ranks, const std::vector<std::vector<int64_t>>& pending) {
  std::map<std::vector<int64_t>, int32_t> index;
  std::vector<Shard> shards;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].holds) continue;
    std::vector<int64_t> key = pending[i];
    for (const Interval& side : ranks[i].held) {
      key.push_back(side.lo);
      key.push_back(side.hi);
    }
    auto [at, fresh] = index.emplace(std::move(key), static_cast<int32_t>(shards.size()));
    if (fresh) shards.push_back({ranks[i].held, ranks[i].kept, {}, 0});
    ranks[i].shard = at->second;
    shards[static_cast<size_t>(at->second)].holders.push_back(static_cast<int32_t>(i));
  }
  return shards;
}

// Near-equal part `i` of `n` of a length.
int64_t near_equal(int64_t length, int64_t n, int64_t i) { return length / n + (i < length % n); }

struct Tally {
  std::vector<std::array<int64_t, max_levels>> received, sent, peers_in, peers_out;
  explicit Tally(size_t n) : received(n), sent(n), peers_in(n), peers_out(n) {}
};

// What two boxes share: its volume and its longest side, at least 1.
struct Shared {
  int64_t elements = 1;
  int64_t longest = 1;
};
Shared shared(const Box& a, const Box& b) {
  Shared s;
  for (size_t d = 0; d < a.size(); ++d) {
    const int64_t side = std::min(a[d].hi, b[d].hi) - std::max(a[d].lo, b[d].lo);
    if (side <= 0) return {0, 1};
    s.elements *= side;
    s.longest = std::max(s.longest, side);
  }
  return s;
}

// Senders and receivers of one phase in one copy.
Tally tally_copy(const ExchangeQuestion& q, const std::vector<Rank>& ranks, std::vector<Shard>& shards, bool whole) {
  Tally tally(ranks.size());
  for (Shard& s : shards) s.asked = 0;
  std::vector<int32_t> nearest;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Rank& r = ranks[i];
    if (!r.wants) continue;
    for (size_t v = 0; v < shards.size(); ++v) {
      Shard& s = shards[v];
      if (static_cast<int32_t>(v) == r.shard || (q.dst_mesh == nullptr && s.kept != r.kept)) continue;
      const auto [elements, side] = shared(s.box, r.wanted);
      if (elements == 0) continue;
      int level = q.levels->levels();
      for (int32_t h : s.holders) {
        int l = q.levels->level_between(r.position, ranks[static_cast<size_t>(h)].position);
        if (l < level) {
          level = l;
          nearest.clear();
        }
        if (l == level) nearest.push_back(h);
      }
      auto at = static_cast<size_t>(level);
      auto h = static_cast<int64_t>(nearest.size());
      int64_t bytes = elements * q.element_bytes;
      tally.received[i][at] += bytes;
      if (whole || h == 1) {
        auto sender = static_cast<size_t>(nearest[static_cast<size_t>(s.asked % h)]);
        tally.sent[sender][at] += bytes;
        ++tally.peers_out[sender][at];
        ++tally.peers_in[i][at];
      } else {
        for (int64_t part = 0; part < h; ++part) {
          int64_t length = near_equal(side, h, part);
          if (length == 0) break;
          auto sender = static_cast<size_t>(nearest[static_cast<size_t>(part)]);
          tally.sent[sender][at] += bytes / side * length;
          ++tally.peers_out[sender][at];
          ++tally.peers_in[i][at];
        }
      }
      ++s.asked;
    }
  }
  return tally;
}

void fold(ExchangeCost& cost, const Tally& tally, size_t levels) {
  for (size_t i = 0; i < tally.received.size(); ++i) {
    int64_t received = 0;
    int64_t sent = 0;
    for (size_t l = 0; l < levels; ++l) {
      received += tally.received[i][l];
      sent += tally.sent[i][l];
      cost.traffic.bytes[l] = std::max({cost.traffic.bytes[l], tally.received[i][l], tally.sent[i][l]});
      cost.traffic.peers[l] = std::max({cost.traffic.peers[l], tally.peers_in[i][l], tally.peers_out[i][l]});
    }
    cost.wire_bytes = std::max(cost.wire_bytes, received);
    cost.sent_bytes = std::max(cost.sent_bytes, sent);
  }
}

// Two phases in one copy: what a unit of level 0 misses as a whole is fetched once, near-equal shares of it by each member, then every
// member receives the rest of its target from inside.
void two_phase_copy(const ExchangeQuestion& q, const std::vector<Rank>& ranks, const std::vector<Shard>& shards, ExchangeCost& cost) {
  std::map<int64_t, std::vector<size_t>> units;
  for (size_t i = 0; i < ranks.size(); ++i) units[q.levels->unit(ranks[i].position, 0)].push_back(i);
  for (const auto& entry : units) {
    const int64_t unit = entry.first;
    const std::vector<size_t>& members = entry.second;
    std::vector<int64_t> missing_of(members.size(), 0);  // bytes of the member's target that no member holds
    std::vector<int64_t> wanted_of(members.size(), 0);   // bytes of its target that it does not hold itself
    int64_t missing = 0;
    int64_t pieces = 0;
    size_t outermost = 0;
    for (const Shard& s : shards) {
      bool inside = std::any_of(s.holders.begin(), s.holders.end(),
                                [&](int32_t h) { return q.levels->unit(ranks[static_cast<size_t>(h)].position, 0) == unit; });
      // The union of the members' parts of this shard: exact where they are equal or disjoint, else their sum capped by the shard.
      std::vector<Box> parts;
      int64_t sum = 0;
      for (size_t k = 0; k < members.size(); ++k) {
        const Rank& r = ranks[members[k]];
        if (!r.wants || (q.dst_mesh == nullptr && s.kept != r.kept)) continue;
        const int64_t bytes = shared(s.box, r.wanted).elements * q.element_bytes;
        if (bytes == 0 || (r.shard >= 0 && &shards[static_cast<size_t>(r.shard)] == &s)) continue;
        wanted_of[k] += bytes;
        if (inside) continue;
        missing_of[k] += bytes;
        if (Box piece = intersect(s.box, r.wanted); std::find(parts.begin(), parts.end(), piece) == parts.end()) {
          parts.push_back(std::move(piece));
          sum += bytes;
        }
      }
      if (inside || sum == 0) continue;
      missing += std::min(sum, volume(s.box) * q.element_bytes);
      ++pieces;
      int level = q.levels->levels();
      for (int32_t h : s.holders)
        level = std::min(level, q.levels->level_between(ranks[members[0]].position, ranks[static_cast<size_t>(h)].position));
      outermost = std::max(outermost, static_cast<size_t>(level));
    }
    auto inside_count = static_cast<int64_t>(members.size());
    int64_t fetched = ceil_div(missing, inside_count);
    if (missing > 0) {
      cost.traffic.bytes[outermost] = std::max(cost.traffic.bytes[outermost], fetched);
      cost.traffic.peers[outermost] = std::max(cost.traffic.peers[outermost], ceil_div(pieces, inside_count));
    }
    for (size_t k = 0; k < members.size(); ++k) {
      int64_t rest = std::max<int64_t>(0, wanted_of[k] - std::min(fetched, missing_of[k]));
      cost.wire_bytes = std::max(cost.wire_bytes, fetched + rest);
      if (rest == 0) continue;
      cost.inner.bytes[0] = std::max(cost.inner.bytes[0], rest);
      cost.inner.peers[0] = std::max(cost.inner.peers[0], inside_count - 1);
    }
  }
  cost.sent_bytes = cost.wire_bytes;
}

// Too many pairs to list: every extent rounded up until digits line up, or, where they never do, the whole target over the outermost level.
ExchangeCost estimate(const ExchangeQuestion& q) {
  std::vector<int64_t> padded(q.shape.begin(), q.shape.end());
  auto shape = mesh_shape(q.levels->mesh());
  for (size_t d = 0; d < padded.size(); ++d) {
    int64_t parts = 1;
    for (const State* state : {q.src, q.dst}) {
      int64_t product = 1;
      for (const Atom& atom : state->shards[d]) product = saturating_mul(product, atom.size);
      parts = product > INT64_MAX / parts ? INT64_MAX : std::lcm(parts, product);
    }
    padded[d] = saturating_mul(ceil_div(padded[d], parts), parts);
  }
  ExchangeQuestion rounded = q;
  rounded.shape = padded;
  ExchangeCost cost;
  if (auto aligned = price_exchange_aligned(rounded)) {
    cost = *aligned;
  } else {
    const Mesh& dst_mesh = q.dst_mesh != nullptr ? *q.dst_mesh : q.levels->mesh();
    int64_t bytes = q.element_bytes;
    for (int64_t side : largest_box(*q.dst, q.shape, mesh_shape(dst_mesh))) bytes = saturating_mul(bytes, side);
    auto outermost = static_cast<size_t>(q.levels->levels() - 1);
    cost.wire_bytes = cost.sent_bytes = cost.traffic.bytes[outermost] = bytes;
    cost.traffic.peers[outermost] = 1;
    cost.predicted_ps = traffic_ps(q.levels->topology(), cost.traffic, true, saturating_mul(2, bytes));
  }
  cost.exact = false;
  return cost;
}

}  // namespace

ExchangeCost price_exchange_listed(const ExchangeQuestion& q) {
  const Mesh& src_mesh = q.levels->mesh();
  const auto shape = mesh_shape(src_mesh);
  std::vector<Atom> kept;
  std::vector<Atom> reduced;
  for (const PendingAtom& p : q.src->partial) (pending_in(*q.dst, p.atom) ? kept : reduced).push_back(p.atom);

  int64_t most_shards = 1;
  for (const auto& order : q.src->shards) {
    for (const Atom& atom : order) most_shards = saturating_mul(most_shards, atom.size);
  }
  for (const PendingAtom& p : q.src->partial) most_shards = saturating_mul(most_shards, p.atom.size);
  int64_t world = mesh_size(src_mesh) + (q.dst_mesh != nullptr ? mesh_size(*q.dst_mesh) : 0);
  if (saturating_mul(world, most_shards) > listed_limit) return estimate(q);

  const Topology& topology = q.levels->topology();
  const auto levels = topology.levels.size();
  // Copies differ only where units cut them differently.
  int64_t copies = q.dst_mesh != nullptr || q.levels->regular() ? 1 : mesh_copies(src_mesh);
  ExchangeCost cut;
  ExchangeCost whole;
  ExchangeCost twice;
  for (int64_t copy = 0; copy < copies; ++copy) {
    auto ranks = list_ranks(q, copy, kept);
    std::vector<std::vector<int64_t>> pending(ranks.size());
    {
      std::map<int64_t, size_t> at;
      for (size_t i = 0; i < ranks.size(); ++i) at[ranks[i].position] = i;
      std::vector<Atom> all = kept;
      all.insert(all.end(), reduced.begin(), reduced.end());
      for (int64_t i = 0; i < mesh_size(src_mesh); ++i) {
        pending[at[position_of(src_mesh, copy, i)]] = coordinates_on(all, shape, coordinates_of(i, shape));
      }
    }
    auto shards = list_shards(ranks, pending);
    if (q.phases == 2) {
      two_phase_copy(q, ranks, shards, twice);
      continue;
    }
    if (!q.whole_pieces || !*q.whole_pieces) fold(cut, tally_copy(q, ranks, shards, false), levels);
    if (!q.whole_pieces || *q.whole_pieces) fold(whole, tally_copy(q, ranks, shards, true), levels);
  }
  if (q.phases == 2) {
    int64_t fetched = *std::max_element(twice.traffic.bytes.begin(), twice.traffic.bytes.end());
    twice.predicted_ps = saturating_add(traffic_ps(topology, twice.traffic, true, 2 * fetched),
                                        traffic_ps(topology, twice.inner, true, 2 * twice.inner.bytes[0]));
    return twice;
  }
  whole.whole_pieces = true;
  cut.predicted_ps = traffic_ps(topology, cut.traffic, true, 2 * cut.wire_bytes);
  whole.predicted_ps = traffic_ps(topology, whole.traffic, true, 2 * whole.wire_bytes);
  if (q.whole_pieces) return *q.whole_pieces ? whole : cut;
  return whole.predicted_ps < cut.predicted_ps ? whole : cut;
}

}  // namespace meshplan
