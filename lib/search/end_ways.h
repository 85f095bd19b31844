// The cheapest ways between listed states and one end of a question, nearest states first: one half
// of the search of least_left.h. The other half begins at the other end, and what one knows tells
// the other which states are of use.
//
//     P(avg)P(avg)P(avg)S(0) -> RS(1)RS(0) on 4 x 32 x 8 x 6, 450 states, a plan of 2,065 us
//     from the target alone    444 states are settled
//     from both ends           61 and 91, and no way of less leads by any other
//
// A state is settled when no way to it that is still to be found takes less. What leads on from it
// is looked at when states come up that lie as far away as it may lead at least, and only as
// closely as tells that they are farther: most exchanges by their peers alone.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "search/least_exchanges.h"
#include "search/state_moves.h"

namespace meshplan {

// What both halves share.
struct StepsBetween {
  const LeftQuestion& question;
  const std::vector<LeftState>& states;
  StateMoves& moves;
  LeastExchanges& exchanges;
  int64_t most_ps = 0;  // of a plan that is of any use
  // The cheapest way that is known, and the state where ways from both ends meet on it.
  int64_t shortest_ps = too_long;
  size_t meeting = 0;
  bool was_lost = false;  // it is to be found again
};

class EndWays {
 public:
  enum class End { source, target };
  static constexpr size_t none = std::numeric_limits<size_t>::max();

  struct Way {
    int64_t ps = too_long;  // by the best way known
    bool settled = false;   // what leads on from it was offered
    bool by_exchange = false;
    size_t next = none;   // towards the end
    int64_t step_ps = 0;  // between the two
  };

  EndWays(StepsBetween& steps, End end, size_t end_state);
  void set_other(EndWays& other) { other_ = &other; }

  [[nodiscard]] const Way& way(size_t i) const { return ways_[i]; }
  // Between a state and the end no plan of use has less, ps.
  [[nodiscard]] int64_t known(size_t i) const {
    const Way& w = ways_[i];
    return std::max(own(i), w.settled ? std::min(w.ps, radius_) : radius_);
  }

  // Looks at what lies nearest, for plans that take `most` at most; false where nothing is left.
  bool go_on(int64_t most);
  // The work that all looks took, with about what the next one takes.
  [[nodiscard]] int64_t work_with_next() { return work_ + work_ahead(); }
  // What a plan of use takes at least that goes by a state which is not settled.
  [[nodiscard]] int64_t least_by_open() const;
  // After more has come to be known of an exchange: the ways that lead by it are found again.
  void learn(size_t from, size_t to);

 private:
  // What is to be looked at from so far on: the exchange between a state and the next one towards
  // the end, all those with that next one (i: any), or a state that may be settled (next: any).
  struct Entry {
    uint32_t i;
    uint32_t next;
  };
  static constexpr uint32_t any = std::numeric_limits<uint32_t>::max();
  // By which a plan takes more than was asked for.
  struct PutOff {
    int64_t all;  // that plan, ps
    int64_t ps;   // from the end
    Entry entry;
    bool operator<(const PutOff& other) const { return all > other.all; }
  };
  using Queue = std::vector<std::vector<Entry>>;  // by part of the time that a plan may take
  static constexpr size_t parts = 256;

  [[nodiscard]] size_t from_of(size_t i, size_t next) const { return backward_ ? i : next; }
  [[nodiscard]] size_t to_of(size_t i, size_t next) const { return backward_ ? next : i; }
  [[nodiscard]] const LeastExchange& exchange(size_t i, size_t next) const {
    return s_.exchanges.between(from_of(i, next), to_of(i, next));
  }
  // What is known of a state by itself; sums of two do not overflow.
  [[nodiscard]] int64_t own(size_t i) const {
    return std::min(backward_ ? s_.states[i].left : s_.states[i].before, too_long);
  }
  // From so much on a way is of no use: to no plan, or beside the one that is known.
  [[nodiscard]] int64_t too_far(size_t i) const { return s_.most_ps - other_->known(i) + 1; }
  [[nodiscard]] int64_t too_much(size_t i) const { return std::min(ways_[i].ps, too_far(i)); }
  [[nodiscard]] size_t part_of(int64_t ps) const {
    return std::min(parts - 1, static_cast<size_t>(ps / width_));
  }
  void push(Entry entry, int64_t ps);
  void put_off(Entry entry, int64_t ps, int64_t all);
  // Whether it lies farther away than what is looked at, or a plan by it takes more than `most`.
  bool kept_for_later(Entry entry, int64_t ps, int64_t all, int64_t most);
  void take_up_again(int64_t most);
  bool look_nearest(int64_t most);
  [[nodiscard]] int64_t work_ahead();
  [[nodiscard]] int64_t count_ahead() const;
  void set_radius();
  // Settles a state, or, where states pack, comes to know more of the exchange that leads to it.
  void settle(size_t i);
  void settle_in_time(Entry entry, int64_t most);
  void offer(size_t i, size_t next, int64_t ps, bool by_exchange);
  void offer_move(size_t from, size_t number, size_t i, size_t next);
  void look_at(size_t i, size_t next, int64_t most);
  // Whether the exchange that a way ends with takes longer than was known.
  bool price_first(size_t i);
  // The way to a state takes longer than was known: it is found again, and all that lead by it.
  void lose(size_t first);
  void find_again(size_t i);

  StepsBetween& s_;
  const PlanProblem& p_;
  const bool backward_;  // from the target
  EndWays* other_ = nullptr;
  size_t end_;
  std::vector<Way> ways_;
  std::vector<bool> was_settled_;
  std::vector<size_t> settled_;
  int64_t radius_ = 0;   // so far away at least is what is not settled and of use, ps
  const int64_t width_;  // of a part, ps
  size_t part_ = 0;      // before it nothing is left to look at
  Queue steps_;
  Queue states_;
  std::vector<PutOff> put_off_;      // a heap: the least plan first
  std::vector<size_t> put_off_in_;   // so many in each part
  int64_t put_off_most_ = too_long;  // that plans of use took when these were looked through
  int64_t work_ = 0;
  int64_t work_ahead_ = -1;  // -1: to be told anew
};

}  // namespace meshplan
