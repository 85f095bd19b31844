#include "search/list_meetings.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Of one list that are looked at, from the start of the dim on.
constexpr size_t most_parts = 64;

// Where parts that are not empty end, in their order.
class Ends {
 public:
  Ends(const PlanProblem& p, const SearchState& s, int d, std::vector<int64_t>& out)
      : p_(p), s_(s), d_(d), out_(out) {
    out.clear();
  }
  void list(int begin, int64_t lo, int64_t width) {
    if (width == 0 || out_.size() == most_parts) return;
    if (begin == s_.end_of(d_)) {
      out_.push_back(lo + width);
      return;
    }
    const SubAxisRun run = run_of_sub_axes(p_, s_, d_, begin);
    const int64_t chunk = ceil_div(width, run.cut_into) * floor_div(run.cut_into, run.parts);
    for (int64_t at = 0; at < width && out_.size() < most_parts; at += chunk)
      list(run.end, lo + at, std::min(chunk, width - at));
  }

 private:
  const PlanProblem& p_;
  const SearchState& s_;
  int d_;
  std::vector<int64_t>& out_;
};

// Parts of list d that are not empty, of those from `begin` on that cut `width` elements, and begin
// within so many of them.
int64_t parts_within(const PlanProblem& p, const SearchState& s, int d, int begin, int64_t width,
                     int64_t within) {
  if (begin == s.end_of(d)) return 1;
  const SubAxisRun run = run_of_sub_axes(p, s, d, begin);
  const int64_t chunk = ceil_div(width, run.cut_into) * floor_div(run.cut_into, run.parts);
  const int64_t whole = floor_div(within, chunk);
  const int64_t rest = within - whole * chunk;
  int64_t parts = 0;
  if (whole > 0) parts = whole * parts_within(p, s, d, run.end, chunk, chunk);
  if (rest > 0)
    parts += parts_within(p, s, d, run.end, std::min(chunk, width - whole * chunk), rest);
  return parts;
}

// The most of the listed parts of `b` that one of those of `a` meets.
int64_t most_met(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t most = 1;
  int64_t lo = 0;
  size_t first = 0;
  for (const int64_t hi : a) {
    while (first < b.size() && b[first] <= lo) ++first;
    size_t last = first;
    while (last < b.size() && b[last] < hi) ++last;
    if (last == b.size()) break;  // others were not listed
    most = std::max(most, static_cast<int64_t>(last - first) + 1);
    first = last;
    lo = hi;
  }
  return most;
}

}  // namespace

ListMeetings::Slot& ListMeetings::slot(uint64_t from, uint64_t to) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = (from * 0x9e3779b97f4a7c15U ^ to * 0xbf58476d1ce4e5b9U) >> 32 & mask;;
       i = (i + 1) & mask) {
    if (slots_[i].most.shards == 0 || (slots_[i].from == from && slots_[i].to == to))
      return slots_[i];
  }
}

const std::vector<int64_t>& ListMeetings::ends(const PlanProblem& p, const SearchState& s, int d,
                                               uint64_t key) const {
  const auto [known, is_new] = ends_.try_emplace(key);
  if (is_new) {
    const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
    Ends(p, s, d, known->second).list(s.begin_of(d), 0, extent);
  }
  return known->second;
}

const ListMeetings::Most& ListMeetings::of(const PlanProblem& p, const SearchState& from,
                                           const SearchState& to, int d) const {
  if (slots_.size() < 2 * (taken_ + 1)) {
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(std::max<size_t>(64, before.size() * 2), {});
    for (const Slot& known : before) {
      if (known.most.shards != 0) slot(known.from, known.to) = known;
    }
  }
  const uint64_t from_key = list_key(from, d);
  const uint64_t to_key = list_key(to, d);
  Slot& found = slot(from_key, to_key);
  if (found.most.shards != 0) return found.most;
  const std::vector<int64_t>& shards = ends(p, from, d, from_key);
  const std::vector<int64_t>& targets = ends(p, to, d, to_key);
  const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  p.work += static_cast<int64_t>(shards.size() + targets.size()) / 4 + work::bound;
  // The first part is as wide as any.
  const ListMeetings::Most first{
      parts_within(p, from, d, from.begin_of(d), extent, targets.front()),
      parts_within(p, to, d, to.begin_of(d), extent, shards.front())};
  found = {from_key,
           to_key,
           {std::max(first.shards, most_met(targets, shards)),
            std::max(first.targets, most_met(shards, targets))}};
  ++taken_;
  return found.most;
}

int64_t parts_met(const PlanProblem& p, const SearchState& s, int d, int64_t lo, int64_t hi) {
  const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  const auto begin_before = [&](int64_t at) {
    return parts_within(p, s, d, s.begin_of(d), extent, at);
  };
  return begin_before(hi) - begin_before(lo + 1) + 1;
}

}  // namespace meshplan
