#include "planner/advice.h"

#include <optional>
#include <utility>

#include "base/int_math.h"
#include "base/text.h"
#include "cost/worth.h"
#include "planner/surely_saves.h"

namespace meshplan {
namespace {

// What a set saves over the file, weighted by count.
struct Change {
  int64_t saved_ps = 0;
  int64_t sure_ps = 0;  // of that, where it is more than the model's error
};

class Adviser {
 public:
  Adviser(const MeshTable& meshes, const Topology& topology, FlattenPrices& prices)
      : meshes_(meshes), topology_(topology), prices_(prices) {
    for (size_t i = 0; i < prices.candidates().size(); ++i) pool_.push_back(i);
  }

  std::vector<size_t> advise() {
    while (true) {
      std::vector<size_t> chosen = best_first();
      const auto needless = first_needless(chosen);
      if (!needless) return chosen;
      std::erase(pool_, *needless);
    }
  }

 private:
  Change change(FlattenSets before, FlattenSets after, Effort effort = Effort::rough) {
    Change change;
    for (size_t q = 0; q < prices_.questions(); ++q) {
      const FlattenedPlan& without = prices_.plan_with(q, before, effort);
      const FlattenedPlan& with = prices_.plan_with(q, after, effort);
      if (effort == Effort::settled && !(without.settled && with.settled)) continue;
      const int64_t saved_ps = without.totals.predicted_ps - with.totals.predicted_ps;
      if (saved_ps <= 0) continue;
      add_weighted(change.saved_ps, saved_ps, prices_.times(q));
      if (surely_saves(topology_, without.steps, with.steps))
        add_weighted(change.sure_ps, saved_ps, prices_.times(q));
    }
    return change;
  }

  [[nodiscard]] bool is_worth(size_t candidate, const Change& change) const {
    const FlattenCandidate& set = prices_.candidates()[candidate];
    const int64_t ranks = size(group_layout(meshes_.meshes[set.mesh], set.dims));
    return saturating_mul(change.sure_ps, most_runs) >= communicator_start_ps(ranks);
  }

  // Of the pool, what saves most beside those before it.
  std::vector<size_t> best_first() {
    std::vector<size_t> chosen;
    std::vector<size_t> left = pool_;
    FlattenSets declared = 0;
    while (true) {
      std::optional<size_t> best;
      int64_t most_ps = 0;
      for (const size_t candidate : left) {
        const Change change = this->change(declared, declared | set_of(candidate));
        if (change.saved_ps <= most_ps || !is_worth(candidate, change)) continue;
        most_ps = change.saved_ps;
        best = candidate;
      }
      if (!best) return chosen;
      chosen.push_back(*best);
      declared |= set_of(*best);
      std::erase(left, *best);
    }
  }

  // The earliest that, looked at closely, is not worth its communicator in its turn or when all the
  // others are declared.
  std::optional<size_t> first_needless(const std::vector<size_t>& chosen) {
    FlattenSets declared = 0;
    for (const size_t candidate : chosen) {
      const FlattenSets more = declared | set_of(candidate);
      if (!is_worth(candidate, change(declared, more, Effort::settled))) return candidate;
      declared = more;
    }
    for (const size_t candidate : chosen) {
      const FlattenSets others = declared & ~set_of(candidate);
      if (!is_worth(candidate, change(others, declared, Effort::settled))) return candidate;
    }
    return std::nullopt;
  }

  const MeshTable& meshes_;
  const Topology& topology_;
  FlattenPrices& prices_;
  std::vector<size_t> pool_;
};

Warning warning_of(const Mesh& mesh, const FlattenCandidate& set, const Step& step,
                   const FlattenedPlan& planned, const Totals& before, const Totals& after) {
  Warning w;
  w.kind = WarningKind::missing_flatten;
  for (const size_t m : set.dims) w.dims.push_back(mesh.dims[m].name);
  w.collective = step.op;
  w.operations = planned.totals.collectives;
  w.fix_name = set.name;
  w.mesh = mesh.name;
  w.message = std::string("one ") + to_text(w.collective) + " over " + join(w.dims, ", ") +
              " would be cheaper than the " + std::to_string(w.operations) +
              (w.operations == 1 ? " step" : " steps") + " planned: declare " + w.fix_name +
              " flattened";
  w.saves_ns = saved_ns(before, after);
  w.saves_collectives = before.collectives - after.collectives;
  w.message += "; saves " + human_ns(w.saves_ns);
  return w;
}

// Of a question whose searches do not end: what it takes less in the file with all of them,
// promised by the first that its plan runs on then.
std::vector<Warning> promised_together(const MeshTable& meshes, FlattenPrices& prices,
                                       size_t question, const std::vector<size_t>& advised) {
  FlattenSets all = 0;
  for (const size_t candidate : advised) all |= set_of(candidate);
  const std::optional<FlattenedPlan> with = prices.plan_in_file(question, all);
  const FlattenedPlan& planned = prices.plan_with(question, 0);
  if (!with || saved_ns(planned.totals, with->totals) <= 0) return {};
  for (const size_t candidate : advised) {
    const Step* const step = prices.step_on(question, *with, candidate);
    const FlattenCandidate& set = prices.candidates()[candidate];
    if (step != nullptr)
      return {
          warning_of(meshes.meshes[set.mesh], set, *step, planned, planned.totals, with->totals)};
  }
  return {};
}

}  // namespace

std::vector<size_t> advised_flattens(const MeshTable& meshes, const Topology& topology,
                                     FlattenPrices& prices) {
  return Adviser(meshes, topology, prices).advise();
}

std::vector<Warning> missing_flattens(const MeshTable& meshes, FlattenPrices& prices,
                                      size_t question, const std::vector<size_t>& advised) {
  std::vector<Warning> warnings;
  FlattenSets declared = 0;
  for (const size_t candidate : advised) {
    const FlattenedPlan& before = prices.plan_with(question, declared, Effort::settled);
    declared |= set_of(candidate);
    const FlattenedPlan& after = prices.plan_with(question, declared, Effort::settled);
    if (!before.settled || !after.settled)
      return promised_together(meshes, prices, question, advised);
    if (saved_ns(before.totals, after.totals) <= 0) continue;
    const Step* step = prices.step_on(question, after, candidate);
    const FlattenCandidate& set = prices.candidates()[candidate];
    const bool more = !warnings.empty();
    warnings.push_back(warning_of(meshes.meshes[set.mesh], set,
                                  step == nullptr ? after.steps.front() : *step,
                                  prices.plan_with(question, 0), before.totals, after.totals));
    if (more) warnings.back().message += " more";
  }
  return warnings;
}

}  // namespace meshplan
