#include "search/list_meetings.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/exchange_peers.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Of one list that are looked at, from either end of the dim.
constexpr size_t most_parts = 64;

// Parts that are not empty: where the first ones end, or, from the dim's end, where the last begin.
class PartsLister {
 public:
  PartsLister(const PlanProblem& p, const SearchState& s, int d, int64_t extent, bool from_end,
              std::vector<int64_t>& out)
      : p_(p), s_(s), d_(d), extent_(extent), from_end_(from_end), out_(out) {
    out.clear();
  }
  void list(int begin, int64_t lo, int64_t width) {
    if (width == 0 || out_.size() == most_parts) return;
    if (begin == s_.end_of(d_)) {
      out_.push_back(from_end_ ? extent_ - lo : lo + width);
      return;
    }
    const SubAxisRun run = run_of_sub_axes(p_, s_, d_, begin);
    const int64_t chunk = run.chunk_of(width);
    const int64_t parts = ceil_div(width, chunk);
    for (int64_t i = 0; i < parts && out_.size() < most_parts; ++i) {
      const int64_t at = (from_end_ ? parts - 1 - i : i) * chunk;
      list(run.end, lo + at, std::min(chunk, width - at));
    }
  }

 private:
  const PlanProblem& p_;
  const SearchState& s_;
  int d_;
  int64_t extent_;
  bool from_end_;
  std::vector<int64_t>& out_;
};

// Parts of list d that are not empty, of those from `begin` on that cut `width` elements, and begin
// within so many of them.
int64_t parts_within(const PlanProblem& p, const SearchState& s, int d, int begin, int64_t width,
                     int64_t within) {
  if (begin == s.end_of(d)) return 1;
  const SubAxisRun run = run_of_sub_axes(p, s, d, begin);
  const int64_t chunk = run.chunk_of(width);
  const int64_t whole = floor_div(within, chunk);
  const int64_t rest = within - whole * chunk;
  int64_t parts = 0;
  if (whole > 0) parts = whole * parts_within(p, s, d, run.end, chunk, chunk);
  if (rest > 0)
    parts += parts_within(p, s, d, run.end, std::min(chunk, width - whole * chunk), rest);
  return parts;
}

// The same of the whole list, which may cut the dim evenly.
int64_t parts_within(const PlanProblem& p, const RankSides::Lists& lists, int d, int64_t extent,
                     int64_t within) {
  const RankSides::Sides& sides = *lists.along[as_index(d)];
  if (sides.even) return ceil_div(within, sides.widest);
  return parts_within(p, lists.of, d, lists.of.begin_of(d), extent, within);
}

// The most of the listed parts of `b` that one of those of `a` meets.
int64_t most_met(std::span<const int64_t> a, std::span<const int64_t> b) {
  int64_t most = 1;
  size_t first = 0;
  for (const int64_t hi : a) {
    size_t last = first;
    while (last < b.size() && b[last] < hi) ++last;
    if (last == b.size()) break;  // others were not listed
    most = std::max(most, static_cast<int64_t>(last - first) + 1);
    first = last + (b[last] == hi ? 1 : 0);
  }
  return most;
}

}  // namespace

ListMeetings::Parts ListMeetings::parts(const PlanProblem& p, const RankSides::Lists& lists,
                                        int d) const {
  std::vector<Parts>& known = dims_[as_index(d)].parts;
  const RankSides::Sides& sides = *lists.along[as_index(d)];
  if (known.size() <= sides.list) known.resize(sides.list + 1);
  Parts& parts = known[sides.list];
  if (!parts.first.empty()) return parts;
  thread_local std::vector<int64_t> listed;
  if (sides.even) {
    listed.resize(std::min(most_parts, static_cast<size_t>(sides.numbers)));
    for (size_t k = 0; k < listed.size(); ++k)
      listed[k] = static_cast<int64_t>(k + 1) * sides.widest;
    parts.first = room_.keep(std::span<const int64_t>(listed));
    if (static_cast<size_t>(sides.numbers) > most_parts) parts.last = parts.first;
    return parts;
  }
  const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  const auto list = [&](bool from_end) {
    PartsLister(p, lists.of, d, extent, from_end, listed).list(lists.of.begin_of(d), 0, extent);
    return room_.keep(std::span<const int64_t>(listed));
  };
  parts.first = list(false);
  if (parts.first.size() == most_parts && parts.first.back() < extent) parts.last = list(true);
  return parts;
}

ListMeetings::Most ListMeetings::count(const PlanProblem& p, const RankSides::Lists& from,
                                       const RankSides::Lists& to, int d) const {
  const Parts targets = parts(p, to, d);
  const Parts shards = parts(p, from, d);
  const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  p.share_work(static_cast<int64_t>(shards.first.size() + targets.first.size()) + work::bound);
  const bool both_even = from.along[as_index(d)]->even && to.along[as_index(d)]->even;
  // The first part is as wide as any.
  Most most;
  most.shards = std::max(parts_within(p, from, d, extent, targets.first.front()),
                         most_met(targets.first, shards.first));
  most.targets = std::max(parts_within(p, to, d, extent, shards.first.front()),
                          most_met(shards.first, targets.first));
  if (!targets.last.empty() && !shards.last.empty() && !both_even) {
    p.share_work(static_cast<int64_t>(shards.last.size() + targets.last.size()));
    most.shards = std::max(most.shards, most_met(targets.last, shards.last));
    most.targets = std::max(most.targets, most_met(shards.last, targets.last));
  }
  const auto inside = [&](int64_t parts, const RankSides::Lists& lists) {
    if (parts == 1) return parts;
    return std::min(parts, coordinates_inside(p, lists.along[as_index(d)]->sub_axes));
  };
  most.shards_inside = inside(most.shards, from);
  most.targets_inside = inside(most.targets, to);
  if (from.of.length(d) + to.of.length(d) == 0) most.whole = extent;
  return most;
}

uint32_t ListMeetings::number_of(const Most& most) const {
  const auto known = std::find(most_.begin(), most_.end(), most);
  const auto number = static_cast<uint32_t>(known - most_.begin());
  if (known == most_.end()) most_.push_back(most);
  return number;
}

int64_t parts_met(const PlanProblem& p, const SearchState& s, int d, int64_t lo, int64_t hi) {
  const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  const auto begin_before = [&](int64_t at) {
    return parts_within(p, s, d, s.begin_of(d), extent, at);
  };
  return begin_before(hi) - begin_before(lo + 1) + 1;
}

}  // namespace meshplan
