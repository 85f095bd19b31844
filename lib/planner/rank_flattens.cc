#include "planner/rank_flattens.h"

#include <algorithm>
#include <bit>

#include "base/int_math.h"
#include "base/text.h"
#include "planner/planner.h"
#include "search/work.h"

namespace meshplan {
namespace {

struct Candidate {
  std::string mesh;
  std::vector<std::string> dims;
};

// The sets of mesh dims that help some redistribution by themselves: those that the search knows,
// or those that PyTorch's rules warn of.
std::vector<Candidate> candidates_of(const PlanOutcome& outcome) {
  std::vector<Candidate> candidates;
  for (const FlattenCandidate& set : outcome.candidates) {
    const Mesh& mesh = outcome.plan.meshes.meshes[set.mesh];
    candidates.push_back({mesh.name, {}});
    for (const size_t m : set.dims) candidates.back().dims.push_back(mesh.dims[m].name);
  }
  if (!candidates.empty()) return candidates;
  for (const PlannedRedistribution& r : outcome.plan.redistributions) {
    for (const Warning& w : r.warnings) {
      if (w.kind != WarningKind::missing_flatten || w.fix_name.empty()) continue;
      const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.mesh == w.mesh && c.dims == w.dims;
      });
      if (!known) candidates.push_back({w.mesh, w.dims});
    }
  }
  return candidates;
}

MeshTable with_declared(const MeshTable& meshes, const std::vector<Candidate>& sets) {
  MeshTable more = meshes;
  for (const Candidate& c : sets) {
    // A name of its own: an existing flatten of that name has another layout.
    std::string name = join(c.dims, "_");
    while (!declare_flatten(more, c.mesh, c.dims, name)) name += "_";
  }
  return more;
}

constexpr size_t affordable = 256;  // plans of the whole file

// Choices of up to `most` of so many candidates; more than `affordable` where there are too many.
size_t choices_of(size_t candidates, size_t most) {
  size_t choices = 0;
  for (size_t size = 1, ways = candidates; size <= most; ++size) {
    choices += ways;
    if (choices > affordable) break;
    ways = ways * (candidates - size) / (size + 1);
  }
  return choices;
}

class FlattenRanker {
 public:
  FlattenRanker(const MeshTable& meshes, const Topology& topology,
                const std::vector<Request>& requests, const PlanOptions& options)
      : meshes_(meshes),
        topology_(topology),
        requests_(requests),
        options_(options),
        budget_{saturating_mul(options.work_budget, static_cast<int64_t>(requests.size()))} {}

  FlattenRanking rank(int64_t most) {
    PlanOptions with_advice = options_;
    with_advice.advice = true;
    const PlanOutcome base = plan_requests(meshes_, topology_, requests_, with_advice, "");
    ranking_.declared_ps = base.plan.totals.predicted_ps;
    const std::vector<Candidate> candidates = candidates_of(base);
    const auto n = static_cast<int64_t>(candidates.size());
    const auto k = static_cast<size_t>(std::max<int64_t>(0, std::min(most, n)));
    // All choices, where planning them all stays affordable.
    const size_t choices = choices_of(candidates.size(), k);
    const int64_t a_plan = std::max<int64_t>(base.work, work::step);
    ranking_.exhaustive = choices <= affordable && n < 60 &&
                          saturating_mul(static_cast<int64_t>(choices), a_plan) <= budget_.left;
    order(ranking_.exhaustive ? best_choice(candidates, k) : candidates, k);
    return std::move(ranking_);
  }

 private:
  // Predicted time of the whole file with these sets declared.
  int64_t file_ps(const std::vector<Candidate>& sets) {
    PlanOptions quiet = options_;
    quiet.audit = false;
    quiet.advice = false;
    quiet.alternatives = 0;
    const PlanOutcome outcome =
        plan_requests(with_declared(meshes_, sets), topology_, requests_, quiet, "");
    budget_.spend(outcome.work);
    return outcome.plan.totals.predicted_ps;
  }

  // Every choice of up to k candidates.
  std::vector<Candidate> best_choice(const std::vector<Candidate>& candidates, size_t k) {
    std::vector<Candidate> chosen;
    int64_t best = ranking_.declared_ps;
    for (uint64_t pick = 1; pick < uint64_t{1} << candidates.size(); ++pick) {
      if (static_cast<size_t>(std::popcount(pick)) > k) continue;
      std::vector<Candidate> sets;
      for (size_t i = 0; i < candidates.size(); ++i) {
        if ((pick >> i & 1) != 0) sets.push_back(candidates[i]);
      }
      const int64_t ps = file_ps(sets);
      // Fewer groups win a tie: each is a communicator to create.
      if (ps < best || (ps == best && sets.size() < chosen.size())) {
        best = ps;
        chosen = std::move(sets);
      }
    }
    return chosen;
  }

  // Orders the choice by what each adds, the largest first; where not every choice was planned this
  // picks the k as well.
  void order(std::vector<Candidate> chosen, size_t k) {
    std::vector<Candidate> declared;
    int64_t now = ranking_.declared_ps;
    while (!chosen.empty() && declared.size() < k) {
      size_t best = chosen.size();
      int64_t best_ps = now;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (budget_.used_up()) break;
        std::vector<Candidate> sets = declared;
        sets.push_back(chosen[i]);
        const int64_t ps = file_ps(sets);
        if (ps < best_ps || (ps == best_ps && best == chosen.size() && ranking_.exhaustive)) {
          best = i;
          best_ps = ps;
        }
      }
      if (best == chosen.size()) break;
      declared.push_back(chosen[best]);
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(best));
      now = best_ps;
      ranking_.chosen.push_back({declared.back().mesh, declared.back().dims, now});
    }
  }

  const MeshTable& meshes_;
  const Topology& topology_;
  const std::vector<Request>& requests_;
  const PlanOptions& options_;
  work::Budget budget_;
  FlattenRanking ranking_;
};

}  // namespace

FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                             const std::vector<Request>& requests, const PlanOptions& options,
                             int64_t most) {
  return FlattenRanker(meshes, topology, requests, options).rank(most);
}

}  // namespace meshplan
