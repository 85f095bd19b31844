#include "planner/bundles.h"

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/int_math.h"
#include "base/text.h"
#include "cost/bounds.h"
#include "cost/bundle_bound.h"
#include "cost/listed_bounds.h"
#include "cost/step_cost.h"
#include "planner/bundle_choice.h"
#include "planner/bundle_figures.h"
#include "planner/bundle_members.h"
#include "planner/bundle_schedule.h"
#include "planner/bundle_ways.h"
#include "planner/question_key.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

// A bundle this close to its bound is not worth looking at other ways: in percent above it.
constexpr int64_t close_enough_percent = 1;
// More families of stops are tried of so many kinds, times ranks, at most: each is as long again.
constexpr size_t most_sides = 4096;
// Ways take hardly more where it is no more than this part of the time.
constexpr int64_t hardly_more_part = 16;
// So many pairs of ranks, and ranks in waves, are looked at beyond that, half a second.
constexpr int64_t most_improving = 20'000'000;
// Pairs of ranks that a choice may list beside those that are: each takes some 300 B, and time. Few
// are listed even where enough was looked at.
constexpr int64_t most_listed = 10'000'000;
constexpr int64_t few_listed = 1'000'000;
// Where nothing else runs, choices of more are listed until they have so many.
constexpr int64_t most_long_listed = 50'000'000;
// A choice is far slower than another that takes no more than one part in so many of its time.
constexpr int64_t far_slower = 2;
// Steps of a way that are many to list.
constexpr size_t many_steps = 3;

class BundlePlanner {
 public:
  BundlePlanner(Plan& plan, const BundleRequest& bundle, PlanGroups& groups,
                const BundleEffort& effort)
      : plan_(plan),
        bundle_(bundle),
        effort_(effort),
        groups_(groups),
        ranks_(make_rank_table(plan.meshes)),
        levels_(plan.meshes.meshes.size()),
        counter_(plan, ranks_, levels_),
        times_(plan, ranks_, kinds_, levels_, counter_, bundle.max_staging_bytes) {}

  // `asked`: the bundle, or with less staging: then by the rounds that need least of it.
  Result<PlannedBundle> answer(const BundleRequest& asked) {
    PlannedBundle planned;
    planned.request = asked;
    collect_kinds();
    for (const Kind& kind : kinds_) {
      planned.tensors = saturating_add(planned.tensors, kind.tensors);
      planned.alone_ps = saturating_add(
          planned.alone_ps, saturating_mul(alone(kind).totals.predicted_ps, kind.tensors));
    }
    alone_ps_ = planned.alone_ps;
    const BundleBounds bounds = bundle_bounds(plan_, bundle_);
    bound_ps_ = bounds.ps;
    WayMaker maker(plan_, bundle_, groups_, levels_, effort_.ways);
    for (Kind& kind : kinds_) maker.make(kind, kinds_.size() == 1 && kind.tensors == 1);
    BundleSchedules schedules(bundle_, kinds_, counter_, close_ps(), effort_.most);
    const Status found = choose(schedules);
    least_staging_ = schedules.least_staging();
    if (!found && !schedules.take_least(asked.max_staging_bytes)) return found.error();
    MESHPLAN_CHECK(schedules.found(), "a bundle without rounds has an error that says why");
    settle_members(plan_, levels_, kinds_, schedules.chosen());
    planned.rounds = std::move(schedules.figures().rounds);
    planned.totals = schedules.figures().totals;
    planned.totals.lower_bound_bytes = std::min(bounds.bytes, planned.totals.wire_bytes);
    planned.totals.lower_bound_ps =
        std::min({bound_ps_, planned.totals.predicted_ps, planned.alone_ps});
    planned.proven_gap_ps =
        1000 * (ns_of_ps(planned.totals.predicted_ps) - ns_of_ps(planned.totals.lower_bound_ps));
    return planned;
  }
  // Of the rounds that were tried and keep to the messages, bytes; nullopt: none do.
  [[nodiscard]] std::optional<int64_t> least_staging() const { return least_staging_; }
  [[nodiscard]] int64_t looked_at() const { return counter_.looked_at(); }

 private:
  [[nodiscard]] const PlannedRedistribution& alone(const Kind& kind) const {
    return plan_.redistributions[kind.members.front()];
  }

  LevelMap& levels_of(size_t mesh) {
    if (!levels_[mesh])
      levels_[mesh] = std::make_unique<LevelMap>(plan_.meshes.meshes[mesh], plan_.topology);
    return *levels_[mesh];
  }

  void collect_kinds() {
    std::unordered_map<std::string, size_t> known;
    for (const size_t member : bundle_.members) {
      const Request& request = plan_.redistributions[member].request;
      const auto [at, fresh] = known.try_emplace(question_key(request), kinds_.size());
      if (fresh) kinds_.emplace_back();
      Kind& kind = kinds_[at->second];
      kind.members.push_back(member);
      kind.firsts.push_back(kind.tensors);
      kind.tensors = saturating_add(kind.tensors, request.count);
      (void)levels_of(request.src_mesh);
      (void)levels_of(request.dst_mesh);
    }
  }

  [[nodiscard]] int64_t close_ps() const {
    return saturating_add(bound_ps_,
                          floor_div(saturating_mul(bound_ps_, close_enough_percent), 100));
  }
  [[nodiscard]] bool is_close(int64_t ps) const { return ps <= close_ps(); }

  // Whether rounds may have the messages of one of its tensors: collectives go whole, and so do
  // exchanges before them.
  bool may_fit(size_t kind, size_t way) {
    return kinds_[kind].ways[way].only_exchanges() ||
           times_.whole_messages(kind, way) <= bundle_.max_messages;
  }

  // Whether the way may be taken and overlaps with those of others, or the kind has none that does.
  bool overlaps(size_t k, size_t way) {
    const Kind& kind = kinds_[k];
    if (!may_be_own_in_two_phases_ && kind.own_in_two_phases && way + 1 == kind.ways.size())
      return false;
    return (kind.ways[way].only_exchanges() || !kind.ways.front().only_exchanges()) &&
           may_fit(k, way);
  }

  using Family = std::pair<int, bool>;  // of stops, and whether pieces go whole
  [[nodiscard]] std::set<Family> families() const {
    std::set<Family> families;
    for (const Kind& kind : kinds_) {
      for (const auto& [family, way] : kind.families) families.insert(family);
    }
    return families;
  }

  // Kinds that have it by one family of stops, the others as in `others`.
  [[nodiscard]] std::vector<size_t> by_family(const Family& family,
                                              const std::vector<size_t>& others) const {
    std::vector<size_t> chosen = others;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const auto way = kinds_[k].families.find(family);
      if (way != kinds_[k].families.end()) chosen[k] = way->second;
    }
    return chosen;
  }

  // Ways whose bytes together take least, of those that overlap: all kinds by one family of stops,
  // then kind by kind.
  std::vector<size_t> least_load(Messages messages) {
    std::vector<size_t> best(kinds_.size(), 0);
    int64_t best_ps = times_.about_ps(best, messages);
    const auto consider = [&](const std::vector<size_t>& other) {
      const int64_t ps = times_.about_ps(other, messages);
      if (ps >= best_ps) return;
      best_ps = ps;
      best = other;
    };
    for (const Family& family : families()) {
      if (is_close(best_ps)) break;
      consider(by_family(family, best));
    }
    settle_least(best, best_ps, messages);
    settle_own(best, best_ps, messages);
    return best;
  }

  // Kind by kind what takes least, until all are close.
  void settle_least(std::vector<size_t>& best, int64_t& best_ps, Messages messages) {
    if (is_close(best_ps)) return;
    times_.settle(best, messages, Launches::behind, [&](size_t k, const auto& about_ps) {
      size_t least = best[k];
      for (size_t way = 0; way < kinds_[k].ways.size() && !is_close(best_ps); ++way) {
        if (!overlaps(k, way)) continue;
        const int64_t ps = about_ps(way);
        if (ps >= best_ps) continue;
        best_ps = ps;
        least = way;
      }
      return least;
    });
  }

  // Of those that go at once as many by their own plan, or in the first cut, as may.
  void settle_own(std::vector<size_t>& best, int64_t best_ps, Messages messages) {
    times_.settle(best, messages, Launches::behind, [&](size_t k, const auto& about_ps) {
      if (best[k] > 1) return best[k];
      for (const size_t way : {kinds_[k].ways.size() - 1, size_t{0}}) {
        const PlannedRedistribution& planned = kinds_[k].ways[way].planned;
        if (!is_in_one_phase(planned) || !overlaps(k, way)) continue;
        if (about_ps(way) <= best_ps) return way;
      }
      return best[k];
    });
  }

  [[nodiscard]] size_t most_steps(const std::vector<size_t>& chosen) const {
    size_t most = 0;
    for (size_t k = 0; k < kinds_.size(); ++k)
      most = std::max(most, std::as_const(kinds_[k].ways[chosen[k]].planned.steps).size());
    return most;
  }

  [[nodiscard]] std::string why_none() const {
    const int64_t limit = plan_.options.max_memory_bytes;
    if (limit > 0) {
      return "its exchange in two phases cannot, and others exceed max_memory_bytes " +
             std::to_string(limit) + "; raise it, or leave the redistribution out of the bundle";
    }
    return "its exchange in two phases cannot; use --planner optimal, or leave it out of the bundle";
  }

  // Of the first two ways, as a rule one exchange in either cut, what takes less by itself.
  size_t cheaper_first_way(const Kind& kind) {
    std::array<int64_t, 2> ps{INT64_MAX, INT64_MAX};
    for (size_t way = 0; way < std::min(kind.ways.size(), ps.size()); ++way) {
      PlannedRedistribution planned = kind.ways[way].planned;
      price_redistribution(planned, plan_.meshes, levels_of(planned.request.src_mesh));
      ps[way] = planned.totals.predicted_ps;
    }
    return ps[1] < ps[0] ? 1 : 0;
  }

  // Kinds that gather by the cheaper of their first ways, the others as in `others`.
  [[nodiscard]] std::vector<size_t> by_exchanges(const std::vector<size_t>& others) {
    std::vector<size_t> chosen = others;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      if (!kinds_[k].ways[chosen[k]].only_exchanges()) chosen[k] = cheaper_first_way(kinds_[k]);
    }
    return chosen;
  }

  // Kinds that can gather by what takes least of those ways, the others as in `others`.
  std::vector<size_t> gathering(const std::vector<size_t>& others, Launches launches) {
    std::vector<size_t> best = others;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      for (size_t way = kinds_[k].gathering; way < kinds_[k].rails; ++way) {
        if (!may_fit(k, way)) continue;
        best[k] = way;
        break;
      }
    }
    int64_t best_ps = times_.about_ps(best, Messages::shared, launches);
    times_.settle(best, Messages::shared, launches, [&](size_t k, const auto& about_ps) {
      size_t least = best[k];
      for (size_t way = kinds_[k].gathering; way < kinds_[k].rails; ++way) {
        if (!may_fit(k, way)) continue;
        const int64_t ps = about_ps(way);
        if (ps >= best_ps) continue;
        best_ps = ps;
        least = way;
      }
      return least;
    });
    return best;
  }

  // Whether a bucket has room for the messages of one tensor to and from the target, and for the
  // box before it.
  [[nodiscard]] bool shares_in_one_round(const PlannedRedistribution& planned) const {
    const Request& request = planned.request;
    const int64_t target =
        saturating_mul(element_bytes(request.tensor.dtype),
                       largest_elements(planned.dst, request.tensor.shape,
                                        mesh_shape(plan_.meshes.meshes[request.dst_mesh])));
    const int64_t staging = bundle_.max_staging_bytes;
    return staging == 0 || saturating_mul(3, target) <= staging;
  }

  // Kinds that can by rails, the others as in `others`.
  [[nodiscard]] std::vector<size_t> by_rails(const std::vector<size_t>& others) {
    std::vector<size_t> best = others;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const Kind& kind = kinds_[k];
      if (kind.rails < kind.gathers_end && may_fit(k, kind.rails) &&
          shares_in_one_round(kind.ways[kind.rails].planned))
        best[k] = kind.rails;
    }
    return best;
  }

  // The best schedule of the few choices.
  Status choose(BundleSchedules& schedules) {
    for (const Kind& kind : kinds_) {
      if (kind.ways.empty()) {
        return no_plan("bundle '" + bundle_.id + "': no plan of redistribution '" +
                       alone(kind).request.id + "' can run in rounds: " + why_none());
      }
    }
    const std::vector<size_t> least = least_load(Messages::shared);
    const std::vector<size_t> least_of_kinds = least_load(Messages::of_kinds);
    const std::vector<size_t> at_once(kinds_.size(), 0);
    std::vector<size_t> own;
    for (const Kind& kind : kinds_) own.push_back(kind.ways.size() - 1);
    std::vector<size_t> one_phase = own;  // what goes in two by the way before: fewer messages
    for (size_t k = 0; k < kinds_.size(); ++k) {
      if (kinds_[k].own_in_two_phases) one_phase[k] = kinds_[k].ways.size() - 2;
    }
    // What goes through many stops takes longest to list, and may not be needed.
    std::vector<std::vector<size_t>> choices;
    const auto add = [&](std::vector<size_t> choice) {
      if (std::find(choices.begin(), choices.end(), choice) == choices.end())
        choices.push_back(std::move(choice));
    };
    if (!is_close(times_.about_ps(least))) {
      std::vector<size_t> rails = by_rails(least_of_kinds);
      if (rails != least_of_kinds) add(std::move(rails));
      for (const Launches launches : {Launches::behind, Launches::beside})
        add(gathering(least_of_kinds, launches));
    }
    if (most_steps(least) >= many_steps) add(own);
    for (const std::vector<size_t>& other : {least, least_of_kinds, at_once, by_exchanges(own), own,
                                             by_exchanges(one_phase), one_phase})
      add(other);
    choices = far_slower_last(std::move(choices));
    Status last = consider_each(schedules, choices);
    if (schedules.wants_more()) consider_one_phase(schedules, {least, least_of_kinds});
    if (schedules.found() && schedules.is_far() && kinds_.size() * counter_.ranks() <= most_sides)
      consider_families(schedules, least, choices);
    if (!schedules.found()) consider(schedules, times_.fewest_messages());
    if (schedules.found()) improve(schedules);
    const auto found_ps = [&] {
      return schedules.found() ? schedules.figures().totals.predicted_ps : INT64_MAX;
    };
    const int64_t together_ps = found_ps();
    schedules.consider_apart(question());
    if (found_ps() < together_ps) improve(schedules);
    if (schedules.found()) return Done{};
    // Of ways whose exchanges move nothing whole messages say nothing.
    const int64_t enough = times_.whole_messages(times_.fewest_messages());
    const bool tells = enough > bundle_.max_messages && (enough < INT64_MAX || last.ok());
    return tells ? needs_messages(bundle_, enough) : last;
  }

  // Choices that take far longer than others, as if all overlapped, come behind those.
  std::vector<std::vector<size_t>> far_slower_last(std::vector<std::vector<size_t>> choices) {
    std::vector<int64_t> about;  // ps
    for (const auto& chosen : choices) about.push_back(times_.about_ps(chosen));
    const int64_t far_slower_ps =
        saturating_mul(far_slower, *std::min_element(about.begin(), about.end()));
    std::vector<std::vector<size_t>> ordered;
    for (const bool last : {false, true}) {
      for (size_t i = 0; i < choices.size(); ++i) {
        if ((about[i] > far_slower_ps) == last) ordered.push_back(std::move(choices[i]));
      }
    }
    return ordered;
  }

  // Until one is close; where enough was looked at, what is soon listed, until one takes no more
  // than its members one by one. Some of those that are long to list where no other runs. Why the
  // last that does not run does not.
  Status consider_each(BundleSchedules& schedules,
                       const std::vector<std::vector<size_t>>& choices) {
    Status last = Done{};
    std::vector<std::pair<int64_t, size_t>> long_to_list;  // pairs, choice
    const auto consider_it = [&](const std::vector<size_t>& chosen) {
      const Status tried = schedules.consider(question(), chosen);
      if (!tried) last = tried;
    };
    for (size_t i = 0; i < choices.size(); ++i) {
      if (schedules.found() && is_close(schedules.figures().totals.predicted_ps)) return last;
      if (schedules.found() &&
          times_.least_ps(choices[i]) >= schedules.figures().totals.predicted_ps)
        continue;
      const int64_t pairs = times_.unlisted_pairs(choices[i]);
      if (schedules.found() && schedules.has_looked_enough() &&
          (pairs > few_listed || schedules.figures().totals.predicted_ps <= alone_ps_))
        continue;
      if (pairs <= most_listed) {
        consider_it(choices[i]);
      } else {
        long_to_list.emplace_back(pairs, i);
      }
    }
    int64_t listed = 0;
    for (const auto& [pairs, i] : long_to_list) {
      if (schedules.found() || (listed > 0 && listed + pairs > most_long_listed)) break;
      listed = saturating_add(listed, pairs);
      consider_it(choices[i]);
      for (size_t k = 0; k < kinds_.size() && !schedules.found(); ++k)
        forget_list(kinds_[k].ways[choices[i][k]]);
    }
    return last;
  }

  // A choice that is not too long to list.
  void consider(BundleSchedules& schedules, const std::vector<size_t>& chosen) {
    if (is_soon_listed(chosen)) (void)schedules.consider(question(), chosen);
  }
  bool is_soon_listed(const std::vector<size_t>& chosen) {
    return times_.unlisted_pairs(chosen) <= most_listed;
  }
  [[nodiscard]] WayQuestion question() const { return {&plan_, &ranks_, &levels_}; }

  // Kind by kind any way whose schedule takes less, while some does and not too much was looked at:
  // how waves fill, and what limits allow, only a schedule tells.
  void improve(BundleSchedules& schedules) {
    const int64_t enough = counter_.looked_at() + most_improving;
    schedules.look_on(most_improving);
    size_t unchanged = 0;  // kinds in a row
    for (size_t k = 0; unchanged < kinds_.size(); k = (k + 1) % kinds_.size()) {
      const size_t before = schedules.chosen()[k];
      for (size_t way = 0; way < kinds_[k].ways.size(); ++way) {
        if (!schedules.wants_more() || counter_.looked_at() >= enough) return;
        std::vector<size_t> chosen = schedules.chosen();
        if (chosen[k] == way) continue;
        chosen[k] = way;
        if (times_.least_ps(chosen) >= schedules.figures().totals.predicted_ps) continue;
        if (is_soon_listed(chosen)) schedules.improve(question(), chosen);
      }
      unchanged = schedules.chosen()[k] == before ? unchanged + 1 : 0;
    }
  }

  // What takes as little as if all overlapped has its pieces in twice as many rounds where kinds go
  // in two phases as by themselves: the least that has none of these.
  void consider_one_phase(BundleSchedules& schedules,
                          const std::vector<std::vector<size_t>>& tried) {
    const bool others = std::any_of(tried.begin(), tried.end(), [&](const auto& chosen) {
      for (size_t k = 0; k < kinds_.size(); ++k) {
        if (kinds_[k].own_in_two_phases && chosen[k] + 1 == kinds_[k].ways.size()) return true;
      }
      return false;
    });
    if (!others) return;
    may_be_own_in_two_phases_ = false;
    for (const Messages messages : {Messages::shared, Messages::of_kinds})
      consider(schedules, least_load(messages));
    may_be_own_in_two_phases_ = true;
  }

  // What takes as little as if all overlapped, or hardly more, differs in how its steps fill the
  // buckets: where the best of the choices is far from the bound, all kinds by each such family of
  // stops, of those of equal figures the first.
  void consider_families(BundleSchedules& schedules, const std::vector<size_t>& others,
                         const std::vector<std::vector<size_t>>& choices) {
    std::set<std::tuple<int64_t, int64_t, size_t>> tried;
    const auto is_new = [&](const std::vector<size_t>& chosen) {
      return tried.insert({times_.about_ps(chosen), times_.least_ps(chosen), most_steps(chosen)})
          .second;
    };
    for (const auto& chosen : choices) is_new(chosen);
    const int64_t least_ps = times_.about_ps(others);
    const int64_t hardly_more_ps = saturating_add(least_ps, floor_div(least_ps, hardly_more_part));
    for (const Family& family : families()) {
      if (!schedules.wants_more()) return;
      const std::vector<size_t> chosen = by_family(family, others);
      const int64_t best_ps = schedules.figures().totals.predicted_ps;
      if (times_.about_ps(chosen) >= std::min(best_ps, hardly_more_ps)) continue;
      if (!is_new(chosen)) continue;
      consider(schedules, chosen);
    }
  }

  Plan& plan_;
  const BundleRequest& bundle_;
  const BundleEffort& effort_;
  PlanGroups& groups_;
  RankTable ranks_;
  std::vector<std::unique_ptr<LevelMap>> levels_;  // by mesh; those of the members
  FigureCounter counter_;
  std::vector<Kind> kinds_;
  ChoiceTimes times_;
  int64_t bound_ps_ = 0;
  int64_t alone_ps_ = 0;                  // its members one by one
  bool may_be_own_in_two_phases_ = true;  // whether kinds may go so
  std::optional<int64_t> least_staging_;
};

}  // namespace

TriedBundle try_bundle(Plan& plan, const BundleRequest& asked, PlanGroups& groups, int64_t staging,
                       const BundleEffort& effort) {
  BundleRequest bundle = asked;
  bundle.max_staging_bytes = staging;
  BundlePlanner planner(plan, bundle, groups, effort);
  auto planned = planner.answer(asked);
  return {std::move(planned), planner.least_staging(), planner.looked_at()};
}

}  // namespace meshplan
