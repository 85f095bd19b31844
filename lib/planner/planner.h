// The pipeline: plans every redistribution of a file, prices, verifies and collects warnings. One
// pass a file (greedy.h, graph.h, merge.h, optimal.h, advice.h, audit.h); this is where their order
// is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mesh/mesh_table.h"
#include "plan/plan.h"
#include "tensor/request.h"

namespace meshplan {

// A failed redistribution or bundle: which and why.
struct PlanFailure {
  size_t index = 0;  // into the requests; of a bundle its first member
  Error error;
  std::optional<size_t> bundle;  // index into the bundles
};

struct PlanOutcome {
  Plan plan;                          // complete only when there are no failures
  std::vector<PlanFailure> failures;  // in request order
  int64_t work = 0;                   // units (search/work.h) that all questions took
};

// Plans all requests, and the bundles of some of them (planner/plan_bundle.h; what fails there is
// told of the bundle). Equal questions are planned once. Each plan is verified; a plan that fails
// verification is an internal error (exit 70). With groups "any" and max_groups K the plans run on
// what is declared and on the K sets of mesh dims that save most (rank_flattens.h).
[[nodiscard]] PlanOutcome plan_requests(const MeshTable& meshes, const Topology& topology,
                                        const std::vector<Request>& requests,
                                        const PlanOptions& options, std::string spec_digest,
                                        const std::vector<BundleRequest>& bundles = {});

// The same of one question after the other, for callers that keep no plan and want no advice. Law:
// the price is that of plan_requests, also where advice takes so much of a question's work that its
// search ends early. What it refers to must outlive it.
class QuestionPlanner {
 public:
  QuestionPlanner(const MeshTable& meshes, const Topology& topology, const PlanOptions& options);
  ~QuestionPlanner();
  QuestionPlanner(const QuestionPlanner&) = delete;
  QuestionPlanner& operator=(const QuestionPlanner&) = delete;

  // Planned, priced and verified.
  [[nodiscard]] Result<PlannedRedistribution> answer(const Request& request);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<Parts> advised_;  // with advice; nullptr: none is asked for
};

}  // namespace meshplan
