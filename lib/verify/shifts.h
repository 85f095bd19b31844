// The shifts of an exchange in which a rank asks few others at once.
//
// Every part is fetched by one rank from one that holds it. d is the most of them that one rank
// fetches, or that one rank serves. The parts are put in d shifts, so that in none a rank fetches
// two, or serves two, in order:
//
//   its shift   the lowest, a, in which its fetcher has no part yet
//   room        where its holder has a part in a, let b be the lowest in which the holder has none.
//               First that part goes to b; the one that the fetcher of that part had in b goes to
//               a; the one that the holder of this had in a goes to b; and so on until there is
//               none
//
//     4 from 0    shift 0               4 from 1    shift 1
//     6 from 0    a = 0, where 0 serves 4; b = 1: 4 from 0 goes to 1, and 4 from 1 to 0
//     6 from 1    shift 1
//
// There is always room. Of the parts of one rank at most d - 1 others have shifts, so that a and b
// are below d. Those that change places are a path from the holder on, by a part in a to a fetcher
// and by one in b to a holder in turn: it comes to fetchers that have a part in a only, so never to
// the one that has none. (König: d colours are enough for the edges of a graph of two sides.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace meshplan::verification {

// A rank as fetcher has nothing to do with the same rank as holder.
struct FetchingPair {
  size_t fetcher = 0;
  size_t holder = 0;
};

struct Shifts {
  std::vector<int64_t> of;  // by part
  int64_t count = 0;        // d
};

// The most times that parts change places. Some seconds.
constexpr int64_t most_changes = int64_t{1} << 27;

// Of fewer than `ranks` ranks. nullopt: parts change places more often than `most_changes`.
[[nodiscard]] std::optional<Shifts> shifts_of(std::span<const FetchingPair> parts, size_t ranks);

}  // namespace meshplan::verification
