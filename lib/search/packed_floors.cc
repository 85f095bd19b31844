// What one exchange takes at least, by counts of digits (PackedWorld::exchange_floors).
#include <algorithm>

#include "base/int_math.h"
#include "cost/pipeline.h"
#include "search/packed.h"

namespace meshplan {

// Pieces received, contributions among them: from the nearest holders, so what some unit mate has
// comes from inside (exchange_digits.cc). With a far share part of it comes from outside, from one
// more rank at least.
int64_t PackedWorld::one_phase_floor_ps(const Difference& d, const PendingDigits& w, int total,
                                        bool far_share) {
  const int64_t bytes = piece(total + d.beyond(), w.reduced != 0);
  const int64_t all = power(d.beyond() + w.reduced);
  const int64_t near = power(d.beyond() - d.beyond_outside() + w.reduced - w.reduced_outside);
  const int64_t inside = d.crossed() && !d.crossed_from_outside() ? near : near - 1;
  const int64_t outside = d.crossed_from_outside() ? all : all - near;
  if (far_share && inside == 0) return INT64_MAX;
  int64_t latency = inside > 0 ? first_latency_ : 0;
  int64_t slowest = far_share ? pace_together_.ps(saturating_mul(inside + outside, bytes))
                              : pace_inside_.ps(saturating_mul(inside, bytes));
  int64_t peers = saturating_mul(inside, first_per_peer_);
  if (outside > 0 || far_share) {
    latency = outer_latency_;
    slowest = std::max(slowest, pace_outside_.ps(saturating_mul(outside, bytes)));
    const int64_t peers_outside = std::max<int64_t>(outside, 1);
    peers = saturating_add(peers, saturating_mul(peers_outside, outer_per_peer_));
  }
  return saturating_add(saturating_add(latency, peers), slowest);
}

// The members of a unit that want one box share what the unit misses of it: where positions are
// crossed from outside of the unit, of some box all. The member that fetches least of it gets the
// rest inside.
int64_t PackedWorld::two_phases_floor_ps(const Difference& d, const PendingDigits& w, int total,
                                         int outers) {
  const int64_t sharing = power(inside_ - w.kept_at_once_inside - (total - outers));
  const int64_t wanted = missing(total, d.beyond(), d.crossed());
  const int64_t fetched =
      d.crossed_from_outside()
          ? ceil_div(wanted, sharing)
          : share(outers, d.held_outside(), d.crossed_outside(), w.kept_at_once_inside);
  return in_two_phases_ps(fetched, wanted - fetched);
}

namespace {

// A box of so many elements has a side of so many at least.
int64_t least_longest(int64_t elements, size_t dims) {
  int64_t side = 1;
  for (;;) {
    int64_t cube = 1;
    for (size_t d = 0; d < dims; ++d) cube = saturating_mul(cube, 2 * side);
    if (cube > elements) return side;
    side *= 2;
  }
}

}  // namespace

// Fetched by all, with nothing pending: all members share all that their unit misses. Some member
// misses its whole box, and gets inside what it does not fetch of it: a share is at most a slice of
// a piece, along its longest side, and a 128th above the even one.
int64_t PackedWorld::by_all_floor_ps(const Difference& d, int total, int outers) {
  const int64_t fetched = share(outers, d.held_outside(), d.crossed_outside(), 0);
  const int64_t bytes = piece(total + d.beyond(), false);
  const int64_t slice =
      ceil_div(bytes, least_longest(bytes / p_->element, p_->tensor.shape.size()));
  const int64_t most = saturating_add(fetched, fetched / 64 + slice + p_->element);
  return in_two_phases_ps(fetched, missing(total, d.beyond(), d.crossed()) - most);
}

// Of so many bytes that a member fetches and gets inside.
int64_t PackedWorld::in_two_phases_ps(int64_t fetched, int64_t inside) const {
  PhaseTime fetch;
  PhaseTime share_out;
  if (fetched > 0 && outer_level_ > 0)
    fetch = {saturating_add(outer_latency_, outer_per_peer_), pace_outside_.ps(fetched)};
  if (inside > 0)
    share_out = {saturating_add(first_latency_, first_per_peer_), pace_inside_.ps(inside)};
  return pipelined_ps(fetch, share_out, best_chunks(fetch, share_out));
}

}  // namespace meshplan
