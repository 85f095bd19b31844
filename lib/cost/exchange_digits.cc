// The aligned engine: counts of ranks and pieces as products over digits.
//
// Every digit position p of the tensor has radix q and at most one controlling atom before (a) and after (b). The rank with coordinates x
// needs the source shards v with v_p = x_b where both control p, any v_p where only a does; each piece is the whole tensor over the product
// of the radices of all controlled positions. A pending atom that is reduced is a digit that only the source controls and that cuts no
// piece. The nearest holder of v is at the level of the outermost source atom where x_a differs from v; free atoms up to that level make h
// holders.
#include <algorithm>

#include "base/int_math.h"
#include "cost/exchange.h"

namespace meshplan {
namespace {

// Atoms joined by "must be equal".
class Joined {
 public:
  explicit Joined(int n) {
    for (int i = 0; i < n; ++i) root_[static_cast<size_t>(i)] = static_cast<int8_t>(i);
  }
  int find(int i) {
    while (root_[static_cast<size_t>(i)] != i) i = root_[static_cast<size_t>(i)];
    return i;
  }
  void join(int a, int b) { root_[static_cast<size_t>(find(a))] = static_cast<int8_t>(find(b)); }

 private:
  std::array<int8_t, max_digits> root_{};
};

bool has(uint64_t mask, int i) { return (mask >> i & 1) != 0; }

struct Counts {
  int64_t piece_bytes = 0;
  int64_t target_bytes = 0;
  int64_t wire_bytes = 0;
  std::array<int64_t, max_levels> received{};  // pieces
  std::array<int64_t, max_levels> served{};  // (receiver, piece) pairs that one shard's holder groups serve, before sharing among h holders
  std::array<int64_t, max_levels> holders{};  // h
};

// Whether coordinates exist with every dual position of level above `l` (by the atom `side` of it) matched and one at exactly l not.
template <class Level>
bool mismatch_at(const DigitProblem& p, int l, Level level_of, uint64_t must_be_source) {
  Joined joined(p.atoms);
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    if (a >= 0 && b >= 0 && a != b && level_of(a, b) > l) joined.join(a, b);
  }
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    if (a < 0 || b < 0 || a == b || level_of(a, b) != l) continue;
    if (must_be_source != 0 && !has(must_be_source, b)) continue;
    if (joined.find(a) != joined.find(b)) return true;
  }
  return false;
}

Counts count(const DigitProblem& p, int levels) {
  Counts c;
  std::array<int64_t, max_levels> any{};  // product of digits that only the source controls, per level
  any.fill(1);
  uint64_t forced = p.kept;
  bool crossed = false;
  int64_t pieces_of_tensor = 1;
  int64_t target_parts = 1;
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    if (a < 0 && b < 0) continue;
    int64_t q = p.atom[static_cast<size_t>(a >= 0 ? a : b)].size;
    pieces_of_tensor *= q;
    if (b >= 0) target_parts *= q;
    if (a >= 0 && b >= 0) {
      forced |= uint64_t{1} << b;
      crossed = crossed || a != b;
    } else if (a >= 0) {
      any[static_cast<size_t>(p.atom[static_cast<size_t>(a)].level)] *= q;
    }
  }
  for (int i = 0; i < p.atoms; ++i) {
    if (has(p.reduced, i)) any[static_cast<size_t>(p.atom[static_cast<size_t>(i)].level)] *= p.atom[static_cast<size_t>(i)].size;
  }
  c.piece_bytes = p.total_bytes / pieces_of_tensor;
  c.target_bytes = p.total_bytes / target_parts;
  const uint64_t source = p.in_source | p.reduced | p.kept;
  int64_t upto = 1;  // product of `any` up to the level below
  int64_t holders = 1;
  int64_t reach = 1;  // unforced atoms up to the level below
  for (int l = 0; l < levels; ++l) {
    const int64_t below = upto;
    upto *= any[static_cast<size_t>(l)];
    bool receives_crossed = crossed && mismatch_at(
                                           p, l, [&](int a, int) { return p.atom[static_cast<size_t>(a)].level; }, 0);
    c.received[static_cast<size_t>(l)] = receives_crossed ? upto : upto - below;
    int64_t source_here = 1;
    for (int i = 0; i < p.atoms; ++i) {
      if (p.atom[static_cast<size_t>(i)].level != l) continue;
      if (!has(source, i)) holders *= p.atom[static_cast<size_t>(i)].size;
      if (has(forced, i)) continue;
      reach *= p.atom[static_cast<size_t>(i)].size;
      if (has(source, i)) source_here *= p.atom[static_cast<size_t>(i)].size;
    }
    bool serves_crossed = crossed && mismatch_at(
                                         p, l, [&](int, int b) { return p.atom[static_cast<size_t>(b)].level; }, source);
    c.served[static_cast<size_t>(l)] = serves_crossed ? reach : reach - reach / source_here;
    c.holders[static_cast<size_t>(l)] = holders;
  }
  c.wire_bytes = (crossed ? upto : upto - 1) * c.piece_bytes;
  return c;
}

ExchangeCost one_phase(const Topology& topology, const DigitProblem& p, const Counts& c, bool whole, int64_t copied) {
  ExchangeCost cost;
  cost.whole_pieces = whole;
  cost.wire_bytes = c.wire_bytes;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    int64_t h = c.holders[l];
    int64_t sent = 0;
    int64_t peers_in = c.received[l];
    int64_t peers_out = c.served[l];
    if (h == 1) {
      sent = c.served[l] * c.piece_bytes;
    } else if (whole) {
      peers_out = ceil_div(c.served[l], h);
      sent = peers_out * c.piece_bytes;
    } else {
      int64_t parts = std::min(h, p.longest);
      sent = c.served[l] * (c.piece_bytes / p.longest * ceil_div(p.longest, h));
      peers_in = c.received[l] * parts;
    }
    cost.sent_bytes += sent;
    cost.traffic.bytes[l] = std::max(c.received[l] * c.piece_bytes, sent);
    cost.traffic.peers[l] = std::max(peers_in, peers_out);
  }
  cost.predicted_ps = traffic_ps(topology, cost.traffic, true, copied);
  return cost;
}

// Each unit of level 0 fetches what none of its members holds once, spread over its members, then they exchange inside. Units and ranks
// differ in what they miss by which crossed positions (both ends control, with different atoms) they mismatch; each kind of rank that can
// exist counts.
ExchangeCost two_phases(const Topology& topology, const DigitProblem& p, const Counts& c) {
  ExchangeCost cost;
  int64_t union_parts = 1;   // cuts of the tensor that the unit's target union has
  int64_t held_parts = 1;    // further cuts of it by source atoms outside of the unit
  int64_t source_parts = 1;  // cuts by positions that only the source controls
  int64_t outer_source_parts = 1;
  int64_t wanted_pieces = 1;  // source shards that meet the union
  bool outer_crossed = false;
  int outermost = 0;
  auto level = [&](int atom) { return p.atom[static_cast<size_t>(atom)].level; };
  Joined matched(p.atoms);  // crossed positions between atoms outside of the unit
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    if (a < 0 && b < 0) continue;
    int64_t q = p.atom[static_cast<size_t>(a >= 0 ? a : b)].size;
    bool a_out = a >= 0 && level(a) > 0;
    bool b_out = b >= 0 && level(b) > 0;
    if (b_out) union_parts *= q;
    if (a_out && !b_out) held_parts *= q;
    if (a >= 0 && b < 0) source_parts *= q;
    if (a_out && b < 0) outer_source_parts *= q;
    if (a >= 0 && !b_out) wanted_pieces *= q;
    if (a_out) outermost = std::max(outermost, level(a));
    if (a_out && b_out && a != b) {
      outer_crossed = true;
      matched.join(a, b);
    }
  }
  bool crossed_into = false;  // a rank can want what is outside although its unit mismatches nowhere
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    crossed_into = crossed_into || (a >= 0 && b >= 0 && level(a) > 0 && level(b) == 0 && matched.find(a) != matched.find(b));
  }
  bool crossed_inside = mismatch_at(
      p, 0, [&](int a, int) { return level(a); }, 0);

  int64_t values_inside = 1;  // pending atoms inside the unit: each coordinate holds values of its own
  for (int i = 0; i < p.atoms; ++i) {
    if (has(p.kept, i) && level(i) == 0) values_inside *= p.atom[static_cast<size_t>(i)].size;
  }
  const int64_t union_bytes = p.total_bytes / union_parts * values_inside;
  const int64_t target = c.target_bytes;
  const int64_t least = ceil_div(union_bytes - union_bytes / held_parts, p.ranks_inside);  // fetched by a member of a unit without mismatch
  const int64_t most = outer_crossed ? ceil_div(union_bytes, p.ranks_inside) : least;
  const int64_t outside = target - target / outer_source_parts;
  int64_t rest = target - target / source_parts - std::min(least, outside);
  if (crossed_inside) rest = std::max(rest, target - std::min(least, outside));
  if (crossed_into) rest = std::max(rest, target - std::min(least, target));
  cost.wire_bytes = least + rest;
  if (outer_crossed) {
    int64_t after_most = target - std::min(most, target);
    rest = std::max(rest, after_most);
    cost.wire_bytes = std::max(cost.wire_bytes, most + after_most);
  }
  wanted_pieces *= values_inside;
  auto out = static_cast<size_t>(outermost);
  if (most > 0) {
    cost.traffic.bytes[out] = most;
    cost.traffic.peers[out] = ceil_div(outer_crossed ? wanted_pieces : wanted_pieces - wanted_pieces / held_parts, p.ranks_inside);
  }
  if (rest > 0) {
    cost.inner.bytes[0] = rest;
    cost.inner.peers[0] = p.ranks_inside - 1;
  }
  cost.sent_bytes = cost.wire_bytes;
  cost.predicted_ps = saturating_add(traffic_ps(topology, cost.traffic, true, 2 * most), traffic_ps(topology, cost.inner, true, 2 * rest));
  return cost;
}

}  // namespace

int64_t missing_bytes(const DigitProblem& p) {
  int64_t any = 1;
  int64_t pieces = 1;
  bool crossed = false;
  for (int i = 0; i < p.positions; ++i) {
    int a = p.src[static_cast<size_t>(i)];
    int b = p.dst[static_cast<size_t>(i)];
    if (a < 0 && b < 0) continue;
    int64_t q = p.atom[static_cast<size_t>(a >= 0 ? a : b)].size;
    pieces *= q;
    if (b < 0) any *= q;
    crossed = crossed || (a >= 0 && b >= 0 && a != b);
  }
  return (crossed ? any : any - 1) * (p.total_bytes / pieces);
}

ExchangeCost price_digits(const Topology& topology, const DigitProblem& problem, int phases, std::optional<bool> whole_pieces) {
  const int levels = static_cast<int>(topology.levels.size());
  Counts c = count(problem, levels);
  if (phases == 2) return two_phases(topology, problem, c);
  int64_t copied = 2 * c.wire_bytes;
  if (whole_pieces) return one_phase(topology, problem, c, *whole_pieces, copied);
  ExchangeCost cut = one_phase(topology, problem, c, false, copied);
  bool shared = false;
  for (int l = 0; l < levels; ++l) shared = shared || (c.holders[static_cast<size_t>(l)] > 1 && c.received[static_cast<size_t>(l)] > 0);
  if (!shared) return cut;
  ExchangeCost whole = one_phase(topology, problem, c, true, copied);
  return whole.predicted_ps < cut.predicted_ps ? whole : cut;
}

}  // namespace meshplan
