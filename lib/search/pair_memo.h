// What bounds and floors said of pairs of states last, where states are few: the searches of one
// question ask for the same pairs again, and so does one that goes on after its bounds were raised.
//
//     2xFx8, a median question     bounds between states 770 times, of 230 pairs
//                                  floors by boxes 480 times, of 240 pairs
//                                  floors of exchanges 310 times, of 150 pairs
//
// Every pair has one place, which the next pair that has it takes: the same for all problems, so
// that a question takes the same work whatever was asked before it.
#pragma once

#include <cstdint>
#include <vector>

#include "search/search_state.h"

namespace meshplan {

// One thing that is asked of pairs, by tag. `Value` has `ps`.
template <class Tag, class Value>
class PairMemo {
 public:
  // What say() says of the pair, in so numbered a way (below 4): all of it, or more than
  // `enough_ps`. Its work counts where it is remembered, too, so that searches go as they would
  // without.
  template <class Say>
  static Value of(const PlanProblem& p, const SearchState& from, const SearchState& to,
                  uint32_t way, int64_t enough_ps, Say&& say) {
    if (!has_few_states(p)) return say();
    const uint64_t asked = p.number.value << 2 | way;
    const Slot& slot = slot_of(from, to, way);
    const bool known = slot.asked == asked && slot.from == from && slot.to == to;
    if (known && (slot.value.ps > enough_ps || slot.enough_ps >= slot.value.ps)) {
      p.work += slot.work;
      return slot.value;
    }
    const int64_t before = p.work - p.shared_work;
    const Value value = say();
    slot_of(from, to, way) = {asked, from, to, enough_ps, value, p.work - p.shared_work - before};
    return value;
  }

 private:
  static constexpr int places_log = 11;
  struct Slot {
    uint64_t asked = 0;  // 0: the place is free
    SearchState from;
    SearchState to;
    int64_t enough_ps = 0;
    Value value;
    int64_t work = 0;  // that it took, but for what many pairs share
  };
  static Slot& slot_of(const SearchState& from, const SearchState& to, uint32_t way) {
    thread_local std::vector<Slot> slots(size_t{1} << places_log);
    const uint64_t key = hash_of(from) * 3 + hash_of(to) + way;
    return slots[key * 0x9e3779b97f4a7c15U >> (64 - places_log)];
  }
};

}  // namespace meshplan
