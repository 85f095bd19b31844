#include "search/end_ways.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "search/moves.h"
#include "search/work.h"

namespace meshplan {
namespace {

// About what it takes to look at one exchange.
constexpr int64_t work_of_step = 60;
// And to put something off, and take it up again.
constexpr int64_t work_of_put_off = 12;
// So much at once: then the other end may be worth more, or the work be used up.
constexpr int64_t work_of_look = 400'000;

}  // namespace

EndWays::EndWays(StepsBetween& steps, End end, size_t end_state)
    : s_(steps),
      p_(*steps.question.problem),
      backward_(end == End::target),
      end_(end_state),
      ways_(steps.states.size()),
      was_settled_(steps.states.size(), false),
      width_(steps.most_ps / int64_t{parts} + 1),
      steps_(parts),
      states_(parts),
      put_off_in_(parts, 0) {
  ways_[end_].ps = 0;
  push({static_cast<uint32_t>(end_), any}, 0);
}

void EndWays::push(Entry entry, int64_t ps) {
  const size_t part = part_of(ps);
  (entry.next == any ? states_ : steps_)[part].push_back(entry);
  part_ = std::min(part_, part);
  work_ahead_ = -1;
}

void EndWays::put_off(Entry entry, int64_t ps, int64_t all) {
  p_.work += work_of_put_off;
  put_off_.push_back({all, ps, entry});
  std::push_heap(put_off_.begin(), put_off_.end());
  ++put_off_in_[part_of(ps)];
}

bool EndWays::kept_for_later(Entry entry, int64_t ps, int64_t all, int64_t most) {
  if (part_of(ps) > part_) {
    push(entry, ps);
    return true;
  }
  if (all > most) put_off(entry, ps, all);
  return all > most;
}

void EndWays::take_up_again(int64_t most) {
  // Once a better plan is known some are of no use any more.
  if (s_.most_ps < put_off_most_ && !put_off_.empty()) {
    std::erase_if(put_off_, [&](const PutOff& each) {
      if (each.all <= s_.most_ps) return false;
      --put_off_in_[part_of(each.ps)];
      return true;
    });
    std::make_heap(put_off_.begin(), put_off_.end());
  }
  put_off_most_ = s_.most_ps;
  while (!put_off_.empty() && put_off_.front().all <= most) {
    const PutOff first = put_off_.front();
    std::pop_heap(put_off_.begin(), put_off_.end());
    put_off_.pop_back();
    --put_off_in_[part_of(first.ps)];
    push(first.entry, first.ps);
  }
}

void EndWays::set_radius() {
  size_t part = 0;
  while (part < part_ && put_off_in_[part] == 0) ++part;
  radius_ = part < parts ? static_cast<int64_t>(part) * width_ : too_long;
}

int64_t EndWays::work_ahead() {
  if (work_ahead_ < 0) work_ahead_ = count_ahead();
  return work_ahead_;
}

int64_t EndWays::count_ahead() const {
  size_t part = part_;
  while (part < parts && steps_[part].empty() && states_[part].empty()) ++part;
  if (part == parts) return 0;
  p_.work += std::ssize(steps_[part]) / 4;
  int64_t ahead = 0;
  for (const Entry& entry : steps_[part])
    ahead += entry.i == any ? work::peers * std::ssize(ways_) : work_of_step;
  return ahead;
}

bool EndWays::go_on(int64_t most) {
  const int64_t before = p_.work;
  const bool more = look_nearest(most);
  work_ += p_.work - before + 1;
  return more;
}

bool EndWays::look_nearest(int64_t most) {
  work_ahead_ = -1;
  take_up_again(most);
  while (part_ < parts && steps_[part_].empty() && states_[part_].empty()) ++part_;
  set_radius();
  if (part_ == parts) return false;
  const size_t part = part_;
  if (steps_[part].empty()) {
    for (const Entry& entry : std::exchange(states_[part], {})) settle_in_time(entry, most);
    return true;
  }
  const int64_t most_work = p_.work + work_of_look;
  while (!steps_[part].empty() && p_.work < most_work) {
    const Entry entry = steps_[part].back();
    steps_[part].pop_back();
    p_.work += 1;
    if (!ways_[entry.next].settled) continue;
    if (entry.i != any) {
      look_at(entry.i, entry.next, most);
      continue;
    }
    p_.work += static_cast<int64_t>(ways_.size()) / 2;
    for (size_t i = 0; i < ways_.size(); ++i) {
      if (i != entry.next) look_at(i, entry.next, most);
    }
  }
  return true;
}

// Comes to know so much of an exchange as tells whether it leads to the state for now.
void EndWays::look_at(size_t i, size_t next, int64_t most) {
  const LeastExchange& least = exchange(i, next);
  const int64_t before = ways_[next].ps;
  const int64_t far = other_->known(i);
  while (true) {
    const int64_t ps = std::max(before + least.ps(), own(i));
    if (ps >= ways_[i].ps || ps + far > s_.most_ps) return;
    if (least.known() >= Known::floors) return offer(i, next, least.ps(), true);
    const Entry entry{static_cast<uint32_t>(i), static_cast<uint32_t>(next)};
    if (kept_for_later(entry, ps, ps + far, most)) return;
    s_.exchanges.refine(from_of(i, next), to_of(i, next), too_much(i) - before);
  }
}

// A state by itself, unless the way to it is not for now any more.
void EndWays::settle_in_time(Entry entry, int64_t most) {
  const Way& way = ways_[entry.i];
  if (way.settled || way.ps == too_long) return;
  const int64_t all = way.ps + other_->known(entry.i);
  if (all > s_.most_ps) return;
  if (!kept_for_later(entry, way.ps, all, most)) settle(entry.i);
}

int64_t EndWays::least_by_open() const {
  int64_t least = too_long;
  if (radius_ == too_long) return least;
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (ways_[i].settled) continue;
    const int64_t far = other_->known(i);
    if (!other_->way(i).settled) {
      least = std::min(least, known(i) + far);
      continue;
    }
    // What leads there from those that are settled may be known better.
    p_.work += std::ssize(settled_);
    least = std::min(least, std::max(ways_[i].ps, known(i)) + far);
    for (const size_t next : settled_) {
      const int64_t ps = ways_[next].ps + exchange(i, next).ps();
      least = std::min(least, std::max(ps, known(i)) + far);
    }
  }
  return least;
}

void EndWays::settle(size_t i) {
  if (s_.question.world != nullptr && price_first(i)) return;
  ways_[i].settled = was_settled_[i] = true;
  settled_.push_back(i);
  if (backward_) {
    s_.exchanges.ask_to(i);
    for (const StateMove& move : s_.moves.to[i]) offer_move(move.from, move.number, move.from, i);
  } else {
    s_.exchanges.ask_from(i);
    for (size_t k = 0; k < s_.moves.from[i].size(); ++k)
      offer_move(i, k, s_.moves.leads_to[i][k], i);
  }
  push({any, static_cast<uint32_t>(i)}, ways_[i].ps + s_.question.exchange_latency_ps);
}

// No less than what is known of the state by itself. Within a part a state may come to have a
// better way after it was settled.
void EndWays::offer(size_t i, size_t next, int64_t ps, bool by_exchange) {
  const int64_t all = std::max(saturating_add(ps, ways_[next].ps), own(i));
  if (all >= too_much(i)) return;
  if (ways_[i].settled) std::erase(settled_, i);
  ways_[i] = {all, false, by_exchange, next, ps};
  push({static_cast<uint32_t>(i), any}, all);
  const int64_t whole = all + other_->ways_[i].ps;
  if (whole >= s_.shortest_ps) return;
  s_.shortest_ps = whole;
  s_.meeting = i;
}

// A move is priced where it may be of use.
void EndWays::offer_move(size_t from, size_t number, size_t i, size_t next) {
  Edge& edge = s_.moves.from[from][number];
  const bool unpriced = !is_local(edge.op) && edge.cost.collectives == 0;
  const int64_t least_ps = unpriced ? s_.question.collective_latency_ps : edge.cost.ps;
  if (saturating_add(least_ps, ways_[next].ps) >= too_much(i)) return;
  if (unpriced) price_collective(p_, s_.states[from].at, edge);
  offer(i, next, edge.cost.ps, false);
}

// Where prices are closed forms, the exchange that a way ends with is priced before its state is
// settled. Others lead by a state only where it was settled before.
bool EndWays::price_first(size_t i) {
  const Way way = ways_[i];
  if (!way.by_exchange) return false;
  const size_t from = from_of(i, way.next);
  const size_t to = to_of(i, way.next);
  const LeastExchange& least = s_.exchanges.between(from, to);
  while (least.known() < Known::price && least.ps() == way.step_ps)
    s_.exchanges.refine(from, to, too_far(i) - ways_[way.next].ps);
  if (least.ps() == way.step_ps) return false;
  other_->learn(from, to);
  was_settled_[i] ? lose(i) : find_again(i);
  return true;
}

void EndWays::learn(size_t from, size_t to) {
  const size_t i = backward_ ? from : to;
  const Way& way = ways_[i];
  if (!way.by_exchange || way.next != (backward_ ? to : from)) return;
  if (s_.exchanges.between(from, to).ps() > way.step_ps) lose(i);
}

void EndWays::lose(size_t first) {
  enum Mark : uint8_t { unknown, lost, stays };
  p_.work += static_cast<int64_t>(ways_.size()) / 2;
  std::vector<Mark> marks(ways_.size(), unknown);
  marks[first] = lost;
  marks[end_] = stays;
  std::vector<size_t> passed;
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (ways_[i].ps == too_long) continue;
    passed.clear();
    size_t at = i;
    for (; marks[at] == unknown; at = ways_[at].next) passed.push_back(at);
    for (const size_t state : passed) marks[state] = marks[at];
  }
  std::erase_if(settled_, [&](size_t state) { return marks[state] == lost; });
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (marks[i] != lost) continue;
    // Those lie as far away at least as was known.
    if (ways_[i].settled) radius_ = std::min(radius_, ways_[i].ps);
    ways_[i] = {};
  }
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (marks[i] == lost) find_again(i);
  }
}

// The best way by those that are settled.
void EndWays::find_again(size_t i) {
  s_.was_lost = true;
  ways_[i] = {};
  const auto offer_by = [&](size_t from, size_t number, size_t next) {
    if (ways_[next].settled) offer_move(from, number, i, next);
  };
  if (backward_) {
    for (size_t k = 0; k < s_.moves.from[i].size(); ++k) offer_by(i, k, s_.moves.leads_to[i][k]);
  } else {
    for (const StateMove& move : s_.moves.to[i]) offer_by(move.from, move.number, move.from);
  }
  for (const size_t next : settled_) {
    const int64_t ps = std::max(ways_[next].ps + exchange(i, next).ps(), own(i));
    if (next == i || ps >= too_much(i)) continue;
    push({static_cast<uint32_t>(i), static_cast<uint32_t>(next)}, ps);
  }
  p_.work += std::ssize(settled_) * 2;
}

}  // namespace meshplan
