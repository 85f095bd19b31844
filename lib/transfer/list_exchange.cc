#include "transfer/list_exchange.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/int_math.h"
#include "tensor/key_writer.h"
#include "transfer/far_share.h"
#include "transfer/far_share_traffic.h"
#include "transfer/level_units.h"
#include "transfer/one_phase_traffic.h"
#include "transfer/shift_traffic.h"
#include "transfer/sub_axes.h"
#include "transfer/two_phase_traffic.h"
#include "transfer/unit_wants.h"

namespace meshplan {
namespace {

// How many sub-axes both orders begin with that cut the tensor dim into parts on their own. A run
// of sub-axes of one mesh dim cuts as one, so it is common as a whole or not at all.
//
//     a, b:(1)2 and a, c               1: both begin with a
//     b:(1)2, c and b:(1)2, b:(2)2     0: in the second b:(1)2 and b:(2)2 are one run
size_t common_sub_axes(const std::vector<SubAxis>& a, const std::vector<SubAxis>& b) {
  if (a == b) return a.size();
  size_t k = 0;
  while (k < a.size() && k < b.size() && a[k] == b[k]) ++k;
  auto goes_on = [&](const std::vector<SubAxis>& order, size_t i) {
    return i > 0 && i < order.size() && order[i].mesh_dim == order[i - 1].mesh_dim &&
           order[i].before == order[i - 1].before * order[i - 1].size;
  };
  while (goes_on(a, k) || goes_on(b, k)) --k;
  return k;
}

// What came of a class.
enum class Outcome {
  listed,
  enough,          // listed, and no other needs to be
  enough_of_part,  // no more of it needs to be listed
  too_much,
};

class Lister {
 public:
  // `before`: a listing of the same that ended, to go on from; nullptr: from the first class.
  explicit Lister(const ListQuestion& q, const ListingMemory::Entry* before = nullptr)
      : q_(q),
        src_mesh_(q.levels->mesh()),
        known_(before == nullptr ? 0 : before->classes),
        units_(before == nullptr ? 0 : before->units),
        left_(q.most_listed - (before == nullptr ? 0 : before->looked)),
        level_ranks_(level_ranks_of(q.levels->topology())) {
    if (q.src->partial.empty()) return;
    const std::vector<SubAxis> pending = partial_sub_axes(*q.src);
    const std::vector<int64_t> sizes = mesh_shape(src_mesh_);
    const State nothing;
    for (const PendingSubAxis& p :
         reduced_between(*q.src, q.dst_mesh == nullptr ? *q.dst : nothing, sizes))
      reduced_.push_back(p.sub_axis);
    if (const auto stays = sub_axes_without(pending, reduced_, sizes)) apart_ = *stays;
  }

  // Calls visit(ranks, units), which gives an Outcome, for every class that differs from those
  // before and was not listed then, until one says that it is enough; false: more to list than
  // allowed.
  template <class Visitor>
  bool for_each_class(Visitor&& visit) {
    const LevelUnits units(level_ranks_);
    // Setting up a rank takes as long as looking at a few shards.
    const int64_t ranks_allowed = q_.most_listed / 4;
    if (mesh_size(src_mesh_) > ranks_allowed ||
        (q_.dst_mesh != nullptr && mesh_size(*q_.dst_mesh) > ranks_allowed))
      return false;
    if (q_.dst_mesh != nullptr) {
      auto ranks = make_exchange_ranks(whole_side(src_mesh_, *q_.src, q_.shape, reduced_),
                                       whole_side(*q_.dst_mesh, *q_.dst, q_.shape, {}), left_);
      ranks_ += mesh_size(src_mesh_) + mesh_size(*q_.dst_mesh);
      if (!ranks) return false;
      overlaps_ += static_cast<int64_t>(ranks->overlaps.size());
      const bool listed = one(*ranks, units, visit);
      give_back(std::move(*ranks));
      return listed;
    }
    // Where all fetch, members of a unit do so for others whose elements they never need.
    const std::vector<int64_t> kinds =
        q_.fetchers && !all_fetch(*q_.fetchers) ? keep_apart() : std::vector<int64_t>{};
    NumbersOnLists& numbers = q_.levels->listings().numbers;
    for (const RankClass& like : q_.levels->classes(apart_, kinds)) {
      const size_t first = known_ - classes_;  // that was not listed before
      if (first >= like.ids.size()) {
        classes_ += like.ids.size();
        continue;
      }
      classes_ = known_;
      ranks_ += static_cast<int64_t>(like.indices.size());
      // What was listed in part is known to be few enough.
      auto ranks = make_exchange_ranks(
          side_of(src_mesh_, *q_.src, q_.shape, reduced_, like.indices, like.ids.front(), numbers),
          side_of(src_mesh_, *q_.dst, q_.shape, {}, like.indices, like.ids.front(), numbers),
          first > 0 ? INT64_MAX : left_);
      if (!ranks) return false;
      overlaps_ += static_cast<int64_t>(ranks->overlaps.size());
      bool listed = true;
      for (size_t i = first; i < like.ids.size() && listed && !enough_; ++i) {
        ranks->id = like.ids[i];
        listed = one(*ranks, units, visit);
        known_ = classes_;
      }
      give_back(*std::move(ranks));
      if (!listed || enough_) return listed;
    }
    return true;
  }

  // How much of what may be listed was looked at.
  [[nodiscard]] int64_t looked() const { return q_.most_listed - left_; }
  // Ranks set up, and their overlaps.
  [[nodiscard]] int64_t ranks() const { return ranks_; }
  [[nodiscard]] int64_t overlaps() const { return overlaps_; }
  // Classes listed, now or before.
  [[nodiscard]] size_t classes() const { return classes_; }
  // Of the class that the listing ended in, now or before, how many units were listed.
  [[nodiscard]] int64_t units() const { return units_; }
  Outcome end_after(int64_t units) {
    units_ = units;
    return Outcome::enough_of_part;
  }
  // A visitor said that it is enough.
  [[nodiscard]] bool ended_early() const { return enough_; }

 private:
  // Ranks that differ on what both states cut first and alike have no element in common, before or
  // after. Gives the kind of each class: classes of one kind have parts of the same widths. Empty
  // where all do.
  //
  //     [10], S(0)[a]S(0)[b] -> S(0)[a], a of 4     parts [0:3] [3:6] [6:9] [9:10]: kinds 0 0 0 1
  //
  // Sub-axes that stay pending come first among those that keep ranks apart, then the tensor dims'.
  std::vector<int64_t> keep_apart() {
    const std::vector<int64_t> sizes = mesh_shape(src_mesh_);
    int64_t pending = 1;  // coordinates on what stays pending
    for (const SubAxis& sub_axis : apart_) pending *= sub_axis.size;
    std::vector<int64_t> kinds{0};  // by number on the sub-axes of the tensor dims so far
    std::vector<int64_t> next;
    std::vector<int64_t> widths;  // of the dim's parts, each once, as they are first met
    std::vector<int64_t> looks;   // of each part, which of these it has
    bool all_alike = true;
    for (size_t d = 0; d < q_.shape.size(); ++d) {
      const auto& order = q_.src->shards[d];
      const std::span<const SubAxis> common(order.data(),
                                            common_sub_axes(order, q_.dst->shards[d]));
      if (common.empty()) continue;
      apart_.insert(apart_.end(), common.begin(), common.end());
      const std::vector<Interval> parts = shard_intervals(common, q_.shape[d], sizes);
      widths.clear();
      looks.clear();
      for (const Interval& part : parts) {
        const auto known = std::find(widths.begin(), widths.end(), width(part));
        looks.push_back(known - widths.begin());
        if (known == widths.end()) widths.push_back(width(part));
      }
      all_alike = all_alike && widths.size() == 1;
      next.clear();
      for (const int64_t kind : kinds) {
        for (const int64_t look : looks) next.push_back(kind * std::ssize(widths) + look);
      }
      kinds.swap(next);
    }
    if (all_alike) return {};
    number_as_met(kinds);
    const auto classes = kinds.size();
    for (int64_t i = 1; i < pending; ++i)
      for (size_t k = 0; k < classes; ++k) kinds.push_back(kinds[k]);
    return kinds;
  }

  // 0, 1, 2, ... in place of values, in the order in which they are first met.
  static void number_as_met(std::vector<int64_t>& values) {
    std::vector<int64_t> numbers(
        static_cast<size_t>(*std::max_element(values.begin(), values.end()) + 1), -1);
    int64_t met = 0;
    for (int64_t& value : values) {
      int64_t& number = numbers[static_cast<size_t>(value)];
      if (number < 0) number = met++;
      value = number;
    }
  }

  template <class Visitor>
  bool one(const ExchangeRanks& ranks, const LevelUnits& units, Visitor&& visit) {
    const int64_t looked = overlaps_by_unit(ranks, units);
    left_ -= looked;
    if (left_ < 0) return false;
    const Outcome outcome = visit(ranks, units);
    if (outcome == Outcome::too_much) return false;
    enough_ = outcome != Outcome::listed;
    if (outcome == Outcome::enough_of_part) {
      left_ += looked;
    } else {
      ++classes_;
      units_ = 0;
    }
    return true;
  }

  const ListQuestion& q_;
  const Mesh& src_mesh_;
  size_t known_;   // classes that need no listing any more
  int64_t units_;  // of the next one that were listed before
  size_t classes_ = 0;
  int64_t left_;
  int64_t ranks_ = 0;
  int64_t overlaps_ = 0;
  bool enough_ = false;
  std::vector<int64_t> level_ranks_;
  std::vector<SubAxis> apart_;    // ranks that differ on these do not talk
  std::vector<SubAxis> reduced_;  // pending before, not after
};

// What is pending keeps ranks apart or is reduced, whatever the reduction.
void add_without_ops(KeyWriter& key, const State& state) {
  key.add(state.shards);
  key.add(state.partial.size());
  for (const PendingSubAxis& pending : state.partial) key.add(pending.sub_axis);
}
std::string key_of(const ListQuestion& q, int phases) {
  KeyWriter key;
  // of two phases also who fetches: 2 either, 3 to 6 as Fetchers has them
  const int way = phases == 1 ? 1 : q.fetchers ? 3 + static_cast<int>(*q.fetchers) : 2;
  key.add_all(way, q.element_bytes, q.shape);
  add_without_ops(key, *q.src);
  add_without_ops(key, *q.dst);
  return std::move(key).take();
}

int64_t work_of(const ListedPhase& listed) {
  return listed.even.work + (listed.whole ? listed.whole->work : 0);
}

// Of a listing that looked at so much beside what it set up.
void count_work(const ListQuestion& q, const Lister& lister, int64_t looked) {
  if (lister.ranks() == 0) return;
  ListingMemory& memory = q.levels->listings();
  memory.ranks += lister.ranks();
  memory.looked += lister.overlaps() + looked;
}

// Lists by list(lister, so far), which adds what `Lister` makes of the question to what is known so
// far; false: too much. On one mesh with the memory of its levels.
template <class List>
std::optional<ListedPhase> remembered(const ListQuestion& q, int phases, List&& list) {
  ListedPhase listed;
  ListingMemory& memory = q.levels->listings();
  if (q.dst_mesh != nullptr) {
    Lister lister(q);
    const bool suffices = list(lister, listed);
    count_work(q, lister, suffices ? work_of(listed) : q.most_listed);
    if (!suffices) return std::nullopt;
    return listed;
  }
  ListingMemory::Entry& known = memory.entries[key_of(q, phases)];
  if (q.most_listed <= known.too_few) return std::nullopt;
  const bool goes_on = known.listed && known.looked <= q.most_listed;
  if (goes_on) {
    listed = *known.listed;
    if (known.complete) return listed;
    if (q.is_enough && q.is_enough(listed.even, listed.whole.value_or(listed.even))) return listed;
  }
  Lister lister(q, goes_on ? &known : nullptr);
  const int64_t before = work_of(listed);
  const bool suffices = list(lister, listed);
  count_work(q, lister, suffices ? work_of(listed) - before : q.most_listed);
  if (!suffices) {
    known.too_few = q.most_listed;
    return std::nullopt;
  }
  known.listed = listed;
  known.complete = !lister.ended_early();
  known.classes = lister.classes();
  known.units = lister.units();
  known.looked = lister.looked();
  return listed;
}

}  // namespace

std::optional<ListedPhase> list_exchange(const ListQuestion& question) {
  return remembered(question, 1, [&](Lister& lister, ListedPhase& listed) {
    ExchangeTraffic whole = listed.whole.value_or(listed.even);
    bool several_holders = listed.whole.has_value();
    const auto join = [&](const ExchangeRanks& ranks, const LevelUnits& units) {
      const bool across = question.dst_mesh != nullptr;
      const auto here = list_one_phase(ranks, units, question.element_bytes, across);
      if (!here) return Outcome::too_much;
      join_traffic(listed.even, here->even);
      join_traffic(whole, here->whole.value_or(here->even));
      several_holders = several_holders || here->whole;
      listed.uneven = listed.uneven || here->uneven;
      listed.far = listed.far || has_far_holders(ranks, units);
      const bool enough = question.is_enough && question.is_enough(listed.even, whole);
      return enough ? Outcome::enough : Outcome::listed;
    };
    if (!lister.for_each_class(join)) return false;
    if (several_holders) listed.whole = whole;
    return true;
  });
}

std::optional<ListedPhase> list_either_in_two_phases(const ListQuestion& question) {
  return remembered(question, 2, [&](Lister& lister, ListedPhase& listed) {
    ExchangeTraffic by_all = listed.whole.value_or(listed.even);
    bool may_gain = listed.whole.has_value();
    const bool either = !question.fetchers;
    const auto is_enough_with = [&](const ExchangeTraffic& some_units) {
      ExchangeTraffic even = listed.even;
      join_traffic(even, some_units);
      return question.is_enough(even, even);
    };
    const auto join = [&](const ExchangeRanks& ranks, const LevelUnits& units) {
      AfterUnits after;
      after.first = std::max<int64_t>(1, lister.units() * 2);
      if (!either && question.is_enough) after.is_enough = is_enough_with;
      const auto list = [&](Fetchers fetchers) {
        return list_two_phases(ranks, units, question.element_bytes, fetchers, either, after);
      };
      const TwoPhaseTraffic here = list(question.fetchers.value_or(Fetchers::wanting));
      join_traffic(listed.even, here.traffic);
      if (here.ended_after > 0) return lister.end_after(here.ended_after);
      join_traffic(by_all, here.uneven ? list(Fetchers::all).traffic : here.traffic);
      may_gain = may_gain || here.uneven;
      const bool enough =
          question.is_enough && question.is_enough(listed.even, may_gain ? by_all : listed.even);
      return enough ? Outcome::enough : Outcome::listed;
    };
    if (!lister.for_each_class(join)) return false;
    if (may_gain) listed.whole = by_all;
    return true;
  });
}

std::optional<ExchangeTraffic> list_exchange_in_two_phases(const ListQuestion& question) {
  ListQuestion one = question;
  one.fetchers = question.fetchers.value_or(Fetchers::wanting);
  const auto listed = list_either_in_two_phases(one);
  if (!listed) return std::nullopt;
  return listed->even;
}

bool list_shifts(const ListQuestion& question,
                 const std::function<void(const ShiftTraffic&)>& use) {
  MESHPLAN_CHECK(question.dst_mesh != nullptr, "shifts are for exchanges across meshes");
  Lister lister(question);
  const auto list = [&](const ExchangeRanks& ranks, const LevelUnits& units) {
    const Fetchers fetchers = question.fetchers.value_or(Fetchers::wanting);
    use(ShiftTraffic(ranks, units, question.element_bytes, fetchers));
    return Outcome::enough;
  };
  const bool listed = lister.for_each_class(list);
  count_work(question, lister, 0);
  return listed;
}

bool list_far_shares(const ListQuestion& question,
                     const std::function<void(const FarShareLister&)>& use) {
  struct Class {
    ExchangeRanks ranks;
    LevelUnits units;
  };
  std::vector<Class> classes;
  int64_t overlaps = 0;
  Lister lister(question);
  const bool listed =
      lister.for_each_class([&](const ExchangeRanks& ranks, const LevelUnits& units) {
        overlaps = saturating_add(overlaps, overlaps_by_rank(ranks));
        const bool few = overlaps <= question.most_listed;
        if (few) classes.push_back({ranks, units});
        return few ? Outcome::listed : Outcome::enough;
      });
  count_work(question, lister, 0);
  if (!listed || overlaps > question.most_listed) return false;
  use([&](int64_t far_64ths) {
    ExchangeTraffic all;
    for (const Class& one : classes)
      join_traffic(all, list_far_share(one.ranks, one.units, question.element_bytes, far_64ths));
    question.levels->listings().looked += all.work;
    return all;
  });
  return true;
}

}  // namespace meshplan
