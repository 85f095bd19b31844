// Joins copies at equal distances into one copy with one more dim.
//
//     to staging 0: rows [0:8] x columns [0:4]   from 0     one copy: 3 times, source stride 4
//     to staging 1: rows [0:8] x columns [4:8]   from 4  => and staging stride 32, of
//     to staging 2: rows [0:8] x columns [8:12]  from 8     rows [0:8] x 4 columns
//
// A rank that packs for many peers then needs one operation (one GPU kernel) instead of one per
// peer.
#pragma once

#include "replay/device.h"

namespace meshplan {

// Joins `next` into `last` if it is the same copy at another offset or continues where `last` ends;
// else returns false and changes nothing. Law: the joined copy, its elements copied in any order or
// all at once, is equivalent to `last` and then `next`.
[[nodiscard]] bool join_copies(LocalOp& last, const LocalOp& next);
// Reorders the dims so that the source is read in memory order: uncached memory is read fastest
// without gaps, while whole lines can be written in any order. Law: the same elements are copied.
void read_in_order(LocalOp& copy);

}  // namespace meshplan
