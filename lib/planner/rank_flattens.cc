#include "planner/rank_flattens.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "base/int_math.h"
#include "planner/flatten_prices.h"
#include "planner/planner.h"
#include "planner/question_key.h"
#include "search/work.h"

namespace meshplan {
namespace {

struct Candidate {
  std::string mesh;
  std::vector<std::string> dims;
};

// Those that PyTorch's rules warn of.
std::vector<Candidate> warned_of(const Plan& plan) {
  std::vector<Candidate> candidates;
  MeshTable spare = plan.meshes;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const Warning& w : r.warnings) {
      if (w.kind != WarningKind::missing_flatten || w.fix_name.empty()) continue;
      const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.mesh == w.mesh && c.dims == w.dims;
      });
      if (!known && declare_set(spare, w.mesh, w.dims)) candidates.push_back({w.mesh, w.dims});
    }
  }
  return candidates;
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

// What a file takes with some of the candidates declared.
class FilePrices {
 public:
  // `ranks`: whether candidates are looked for.
  FilePrices(const MeshTable& meshes, const Topology& topology,
             const std::vector<Request>& requests, const PlanOptions& options, bool ranks)
      : meshes_(meshes), topology_(topology), requests_(requests), options_(options) {
    options_.groups = GroupPolicy::declared;
    options_.max_groups = -1;
    options_.audit = false;
    options_.alternatives = 0;
    options_.advice = false;
    PlanOutcome base = plan_requests(meshes, topology, requests, options_, "");
    work_ = base.work;
    declared_ps_ = base.plan.totals.predicted_ps;
    if (!ranks) return;
    if (options.planner == PlannerKind::optimal) {
      price_questions(base.plan);
    } else {
      candidates_ = warned_of(base.plan);
    }
  }

  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  [[nodiscard]] int64_t declared_ps() const { return declared_ps_; }
  // Units spent so far.
  [[nodiscard]] int64_t work() const { return work_ + (searched_ ? searched_->work() : 0); }

  int64_t file_ps(const std::vector<size_t>& sets) {
    if (!searched_) return planned_ps(sets);
    FlattenSets declared = 0;
    for (const size_t set : sets) declared |= set_of(set);
    int64_t ps = 0;
    for (size_t q = 0; q < searched_->questions(); ++q)
      add_weighted(ps, searched_->plan_with(q, declared, Effort::settled).totals.predicted_ps,
                   searched_->times(q));
    return ps;
  }

 private:
  void price_questions(const Plan& plan) {
    searched_ = std::make_unique<FlattenPrices>(meshes_, topology_, options_);
    std::map<std::string, std::pair<size_t, int64_t>> questions;  // the first, and how often
    for (size_t i = 0; i < plan.redistributions.size(); ++i) {
      const Request& request = plan.redistributions[i].request;
      int64_t& times = questions.try_emplace(question_key(request), i, 0).first->second.second;
      times = saturating_add(times, request.count);
    }
    LeftForAdvice left;
    left.work = options_.work_budget / 100 * work::advice_percent;
    for (const auto& [key, question] : questions)
      searched_->add(plan.redistributions[question.first], question.second, left);
    searched_->find_candidates();
    for (const FlattenCandidate& set : searched_->candidates()) {
      const Mesh& mesh = meshes_.meshes[set.mesh];
      candidates_.push_back({mesh.name, {}});
      for (const size_t m : set.dims) candidates_.back().dims.push_back(mesh.dims[m].name);
    }
  }

  // PyTorch's rules plan the whole file again.
  int64_t planned_ps(const std::vector<size_t>& sets) {
    MeshTable with = meshes_;
    for (const size_t set : sets) declare_set(with, candidates_[set].mesh, candidates_[set].dims);
    const PlanOutcome outcome = plan_requests(with, topology_, requests_, options_, "");
    work_ += outcome.work;
    return outcome.plan.totals.predicted_ps;
  }

  const MeshTable& meshes_;
  const Topology& topology_;
  const std::vector<Request>& requests_;
  PlanOptions options_;
  std::vector<Candidate> candidates_;
  std::unique_ptr<FlattenPrices> searched_;
  int64_t declared_ps_ = 0;
  int64_t work_ = 0;
};

class FlattenRanker {
 public:
  FlattenRanker(FilePrices& prices, int64_t most_work) : prices_(prices), most_work_(most_work) {}

  FlattenRanking rank(int64_t most) {
    ranking_.declared_ps = prices_.declared_ps();
    const size_t n = prices_.candidates().size();
    const size_t k = static_cast<size_t>(std::clamp<int64_t>(most, 0, static_cast<int64_t>(n)));
    // All choices, where planning them all stays affordable.
    const size_t choices = choices_of(n, k);
    const int64_t a_plan = std::max<int64_t>(prices_.work(), work::step);
    ranking_.exhaustive = choices <= affordable && n < 60 &&
                          saturating_mul(static_cast<int64_t>(choices), a_plan) <= most_work_;
    std::vector<size_t> all(n);
    std::iota(all.begin(), all.end(), size_t{0});
    order(ranking_.exhaustive ? best_choice(n, k) : all, k);
    return std::move(ranking_);
  }

 private:
  // Every choice of up to k candidates.
  std::vector<size_t> best_choice(size_t candidates, size_t k) {
    std::vector<size_t> chosen;
    int64_t best = ranking_.declared_ps;
    for (uint64_t pick = 1; pick < uint64_t{1} << candidates; ++pick) {
      if (static_cast<size_t>(std::popcount(pick)) > k) continue;
      std::vector<size_t> sets;
      for (size_t i = 0; i < candidates; ++i) {
        if ((pick >> i & 1) != 0) sets.push_back(i);
      }
      const int64_t ps = prices_.file_ps(sets);
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
  void order(std::vector<size_t> chosen, size_t k) {
    std::vector<size_t> declared;
    int64_t now = ranking_.declared_ps;
    while (!chosen.empty() && declared.size() < k) {
      size_t best = chosen.size();
      int64_t best_ps = now;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (prices_.work() > most_work_) break;
        std::vector<size_t> sets = declared;
        sets.push_back(chosen[i]);
        const int64_t ps = prices_.file_ps(sets);
        if (ps < best_ps || (ps == best_ps && best == chosen.size() && ranking_.exhaustive)) {
          best = i;
          best_ps = ps;
        }
      }
      if (best == chosen.size()) break;
      declared.push_back(chosen[best]);
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(best));
      now = best_ps;
      const Candidate& set = prices_.candidates()[declared.back()];
      ranking_.chosen.push_back({set.mesh, set.dims, now});
    }
  }

  FilePrices& prices_;
  int64_t most_work_;
  FlattenRanking ranking_;
};

}  // namespace

FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                             const std::vector<Request>& requests, const PlanOptions& options,
                             int64_t most) {
  FilePrices prices(meshes, topology, requests, options, most > 0);
  const int64_t most_work = saturating_mul(options.work_budget, std::ssize(requests));
  FlattenRanking ranking = FlattenRanker(prices, most_work).rank(most);
  ranking.work = prices.work();
  return ranking;
}

std::vector<bool> in_bundles(const std::vector<BundleRequest>& bundles, size_t redistributions) {
  std::vector<bool> bundled(redistributions, false);
  for (const BundleRequest& bundle : bundles) {
    for (const size_t member : bundle.members) bundled[member] = true;
  }
  return bundled;
}

std::vector<Request> not_bundled(const std::vector<Request>& requests,
                                 const std::vector<BundleRequest>& bundles) {
  const std::vector<bool> bundled = in_bundles(bundles, requests.size());
  std::vector<Request> left;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!bundled[i]) left.push_back(requests[i]);
  }
  return left;
}

MeshTable with_flattens(const MeshTable& meshes, const std::vector<RankedFlatten>& flattens) {
  MeshTable with = meshes;
  for (const RankedFlatten& flatten : flattens) declare_set(with, flatten.mesh, flatten.dims);
  return with;
}

}  // namespace meshplan
