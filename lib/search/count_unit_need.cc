#include "search/count_unit_need.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {

bool sums_fit(const PlanProblem& p) {
  return saturating_mul(p.total_elements, p.ranks * p.ranks) < INT64_MAX;
}

namespace {

// Counts the need of one unit. `Sum`: wide enough for what all members want together.
template <typename Sum>
class NeedCounter {
 public:
  NeedCounter(const PlanProblem& p, const UnitPair& pair, const UnitBoxes& held,
              const UnitBoxes& wanted)
      : p_(p), pair_(pair), held_(held), wanted_(wanted) {
    const SearchState& from = pair.from;
    const SearchState& to = pair.to;
    std::fill_n(across_.begin(), held_.size(), 1);
    std::fill_n(along_.begin(), wanted_.size(), 1);
    int most = 0;
    for (int d = 0; d < p.dims; ++d) {
      const size_t of_held = as_index(d) * held_.size();
      const size_t of_wanted = as_index(d) * wanted_.size();
      if (from.length(d) == 0) {
        for (size_t w = 0; w < wanted_.size(); ++w)
          along_[w] *= wanted_.high[of_wanted + w] - wanted_.low[of_wanted + w];
      } else if (to.length(d) == 0) {
        for (size_t h = 0; h < held_.size(); ++h)
          across_[h] *= held_.high[of_held + h] - held_.low[of_held + h];
      } else {
        cut_[cuts_++] = {&held_.low[of_held], &held_.high[of_held], &wanted_.low[of_wanted],
                         &wanted_.high[of_wanted]};
        // Most boxes are apart along the dim that is cut most.
        const int sub_axes = from.length(d) + to.length(d);
        if (sub_axes > most) std::swap(cut_[0], cut_[cuts_ - 1]);
        most = std::max(most, sub_axes);
      }
    }
  }

  void count(UnitNeed& need) {
    switch (cuts_) {
      case 1:
        return count<1>(need);
      case 2:
        return count<2>(need);
      default:
        return count<any_cuts>(need);
    }
  }

 private:
  static constexpr size_t any_cuts = max_search_dims + 1;

  // `Cuts`: of both states, or any.
  template <size_t Cuts>
  void count(UnitNeed& need) {
    p_.work += work::unit_need + static_cast<int64_t>(wanted_.size() * held_.size() * 3 / 4);
    std::fill_n(served_.begin(), held_.size(), 0);
    std::fill_n(asks_.begin(), held_.size(), 0);
    for (size_t w = 0; w < wanted_.size(); ++w) {
      need.wants.push_back(enter<Cuts>(w));
      need.inside = std::max(need.inside, need.wants.back().near - 1);
    }
    need.least = times_idle(least_);
    need.one_phase = times_idle(one_phase_);
    need.one_member = times_idle(one_member_);
    need.missing = times_idle(missing<Cuts>());
    count_senders(need);
    count_leaving(need);
  }

  // Parts of which members are all holders, and that others want: each element that these want is
  // missing up to `wanting` times inside. Contributions to one box may leave as one, but not in one
  // exchange.
  void count_leaving(UnitNeed& need) const {
    Sum all = 0;
    Sum most = 0;
    int64_t wanting = 0;  // each element
    for (size_t h = 0; h < held_.size(); ++h) {
      const UnitBoxes::Of& hold = held_.box[h];
      const bool alone = hold.members * pair_.contributions * pair_.held_parts ==
                         pair_.talking * hold.contributions;
      if (!alone || hold.elements == 0) continue;
      if (wanting == 0) wanting = floor_div(pair_.talking, pair_.wanted_parts);
      all += hold.elements - ceil_div(saturated(served_[h]), wanting);
      const Sum sent = hold.contributions * (Sum{hold.elements} * wanting - served_[h]);
      most = std::max(most, (sent + hold.members - 1) / hold.members);
      need.alone.push_back({h, asks_[h], std::min(hold.elements, saturated(served_[h]))});
    }
    need.leaving = times_idle(all);
    need.sent_outside = times_idle(most);
  }

  // The elements that a box held shares with one that is wanted: along a dim that one of both
  // states leaves whole as many as the other one's has.
  template <size_t Cuts>
  [[nodiscard]] int64_t shared(size_t w, size_t h) const {
    int64_t elements = 1;
    for (size_t k = 0; k < (Cuts == any_cuts ? cuts_ : Cuts); ++k) {
      const Cut& cut = cut_[k];
      const int64_t both = std::min(cut.wanted_high[w], cut.held_high[h]) -
                           std::max(cut.wanted_low[w], cut.held_low[h]);
      if (both <= 0) return 0;
      elements *= both;
    }
    return elements * along_[w] * across_[h];
  }

  // What enters for one box, and what members have of it.
  template <size_t Cuts>
  UnitNeed::Want enter(size_t w) {
    const UnitBoxes::Of& want = wanted_.box[w];
    Sum here = 0;   // held by members, each contribution by itself
    Sum whole = 0;  // of which members hold every contribution
    int64_t near = 0;
    for (size_t h = 0; h < held_.size(); ++h) {
      const UnitBoxes::Of& hold = held_.box[h];
      if (hold.apart != want.apart) continue;
      const int64_t both = shared<Cuts>(w, h);
      if (both == 0) continue;
      here += Sum{both} * hold.contributions;
      served_[h] += Sum{both} * want.members;
      asks_[h] += want.members;
      near += hold.contributions;
      if (hold.contributions == pair_.contributions) whole += both;
    }
    const Sum fetched = Sum{pair_.contributions} * want.elements - here;
    least_ += want.elements - whole;
    one_phase_ += fetched * want.members;
    one_member_ = std::max(one_member_, fetched);
    return {near, times_idle(fetched), want.members};
  }

  // What members do not hold themselves, and which they need not be sent.
  template <size_t Cuts>
  [[nodiscard]] Sum missing() {
    Sum all = 0;
    std::fill_n(own_.begin(), held_.size(), 0);
    std::fill_n(owners_.begin(), held_.size(), 0);
    for (size_t m = 0; m < wanted_.of_member.size(); ++m) {
      const size_t w = wanted_.of_member[m];
      const size_t h = held_.of_member[m];
      const int64_t own = shared<Cuts>(w, h);
      all += Sum{pair_.contributions} * wanted_.box[w].elements - own;
      own_[h] += own;
      owners_[h] += own > 0 ? 1 : 0;
    }
    return all;
  }
  // Members send what others of the unit want of their boxes, all that hold one of a contribution
  // together: the most that one sends at least, and to how many.
  void count_senders(UnitNeed& need) const {
    Sum most = 0;
    for (size_t h = 0; h < held_.size(); ++h) {
      const UnitBoxes::Of& hold = held_.box[h];
      const Sum sent = hold.contributions * served_[h] - own_[h];
      most = std::max(most, (sent + hold.members - 1) / hold.members);
      need.inside =
          std::max(need.inside, ceil_div(hold.contributions * asks_[h] - owners_[h], hold.members));
    }
    need.one_sender = times_idle(most);
  }

  [[nodiscard]] int64_t times_idle(Sum elements) const {
    return saturating_mul(saturated(elements), p_.idle_elements);
  }

  const PlanProblem& p_;
  const UnitPair& pair_;
  const UnitBoxes& held_;
  const UnitBoxes& wanted_;
  // Along the dims that only the target cuts the elements of each box wanted, along those that only
  // the source cuts those of each box held; and the sides along those that both cut.
  std::array<int64_t, most_unit_members> along_;
  std::array<int64_t, most_unit_members> across_;
  struct Cut {
    const int64_t* held_low = nullptr;
    const int64_t* held_high = nullptr;
    const int64_t* wanted_low = nullptr;
    const int64_t* wanted_high = nullptr;
  };
  std::array<Cut, max_search_dims> cut_;
  size_t cuts_ = 0;
  // Of each box held what members want of it, in all, and how many do; what its holders do
  // themselves, and how many.
  std::array<Sum, most_unit_members> served_;
  std::array<int64_t, most_unit_members> asks_;
  std::array<Sum, most_unit_members> own_;
  std::array<int64_t, most_unit_members> owners_;
  Sum least_ = 0;
  Sum one_phase_ = 0;
  Sum one_member_ = 0;
};

}  // namespace

void count_unit_need(const PlanProblem& p, const UnitPair& pair, const UnitBoxes& held,
                     const UnitBoxes& wanted, UnitNeed& need) {
  if (sums_fit(p)) return NeedCounter<int64_t>(p, pair, held, wanted).count(need);
  NeedCounter<int128>(p, pair, held, wanted).count(need);
}

}  // namespace meshplan
