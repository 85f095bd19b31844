// Copies that follow each other at even distances, as one: a walk with one more dim instead of a list.
//
//     to staging 0: rows [0:8] x columns [0:4]   from 0        one copy: 3 times, 4 apart in the source
//     to staging 1: rows [0:8] x columns [4:8]   from 4    =>  and 32 apart in the staging, of
//     to staging 2: rows [0:8] x columns [8:12]  from 8        rows [0:8] x 4 columns
//
// A rank that packs for many others then has one piece of work (on a GPU one kernel), not one for each of them.
#pragma once

#include "replay/device.h"

namespace meshplan {

// Makes `next` part of `last` where it is the same walk further on, or goes on where `last` ends; else false, and nothing has changed.
// Law: doing the joined copy does both.
[[nodiscard]] bool join_copies(LocalOp& last, const LocalOp& next);
// Turns the walk so that it reads in the order of memory: memory that no cache holds is read fastest without gaps, while whole lines may be
// written anywhere. Law: it moves the same elements.
void read_in_order(LocalOp& copy);

}  // namespace meshplan
