// What a chain takes at least that leads from givers to units of takers, on to other units, and to
// their ranks: what is passed on came in an earlier wave (cost/relay_bound.h).
//
//     1 host of 8 gives 128 MiB to 2 hosts of 8 that want all of it, 45 GB/s a NIC
//
//     wave         1          2              3             ..
//     given        piece 1    piece 2        piece 3
//     crosses                 half of 1      half of 2     between the hosts of takers
//     is shared                              piece 1       inside of them
//
// A byte is at a unit once it is at a rank of it. Waves are across, where anything may enter units,
// or inside, where takers of one unit send to each other alone. In a wave of t seconds givers send
// g t bytes at most, e t enter units, b t arrive at ranks; inside g and e are 0.
//
// Law. W bytes are wanted. N_u is the sum over them of the units that want them, H at most for
// each; N the sum of the ranks, n at most in one unit, m at most in all. The sums over all waves of
// g t, e t and b t reach W, N_u and N, and for all waves v and x > v
//
//     N_u <= H (g t before v) + (g t)_v + (e t behind v)
//     N   <= m (g t before v) + (g t)_v + (b t behind v)
//     N   <= n (e t before v) + (e t)_v + (b t behind v)
//     N   <= n (H (g t before v) + (g t)_v + (e t between v and x)) + (e t)_x + (b t behind x)
//
// Proof. What had left the givers before v is at H units and m ranks at most; anything else that is
// there behind v came from givers in v, once for every byte of (g t)_v. What was at a unit before x
// is at n of its ranks at most; anything else at a rank behind x entered the unit in x, once for
// every byte of (e t)_x: what a rank passes on inside it had before. The last row puts the first
// into this. All that is at none of these places comes later.
//
// A collective may pass on within its wave what entered: an all_to_all and an all_gather whose
// groups have one rank at most that wants a byte bring it to one that does, as the proof asks. All
// others are told apart (cost/bundle_relays.h).
#pragma once

#include <cstdint>

namespace meshplan {

struct ChainNeed {
  int64_t leaving = 0;   // W, bytes
  int64_t entering = 0;  // N_u
  int64_t arriving = 0;  // N
  int64_t units = 1;     // H
  int64_t in_unit = 1;   // n
  int64_t copies = 1;    // m
  int64_t given_mb_per_s = 0;
  int64_t entering_mb_per_s = 0;
  int64_t arriving_mb_per_s = 0;  // in waves across; not below the two above
  int64_t inside_mb_per_s = 0;    // in waves inside
  int64_t across_ps = 0;          // latencies
  int64_t inside_ps = 0;
};

// Picoseconds, latencies included. It is enough to look at waves of which the first is across, as
// nothing arrives inside before, and of which no two inside follow one another: both together obey
// the law of one.
[[nodiscard]] int64_t least_chain_ps(const ChainNeed& need);

}  // namespace meshplan
