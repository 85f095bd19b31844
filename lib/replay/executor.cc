#include "replay/executor.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace meshplan {
namespace {

// The redistributions of --id, or all.
Result<std::vector<const PlannedRedistribution*>> selected_by(const Plan& plan,
                                                              const ReplayOptions& options) {
  std::vector<const PlannedRedistribution*> chosen;
  for (const std::string& id : options.only_ids) {
    const bool known = std::any_of(plan.redistributions.begin(), plan.redistributions.end(),
                                   [&](const auto& r) { return r.request.id == id; });
    if (known) continue;
    std::vector<std::string> ids;
    for (const PlannedRedistribution& r : plan.redistributions) ids.push_back(r.request.id);
    std::string message = "the plan has no redistribution '" + id + "'";
    if (auto near = nearest(id, ids)) message += "; did you mean '" + *near + "'?";
    return bad_input(message);
  }
  for (const PlannedRedistribution& r : plan.redistributions) {
    const bool wanted = options.only_ids.empty() ||
                        std::find(options.only_ids.begin(), options.only_ids.end(), r.request.id) !=
                            options.only_ids.end();
    if (wanted) chosen.push_back(&r);
  }
  return chosen;
}

using FaultMap = std::map<const PlannedRedistribution*, const InjectedFault*>;

// Each fault is injected into the first redistribution that has its step.
Result<FaultMap> faults_by_redistribution(const ReplayOptions& options,
                                          const std::vector<const PlannedRedistribution*>& chosen,
                                          const RankTable& ranks,
                                          const Communicator& communicator) {
  FaultMap faults;
  for (const InjectedFault& fault : options.faults) {
    if (!std::binary_search(ranks.global_ids.begin(), ranks.global_ids.end(), fault.rank)) {
      return bad_input("--inject " + to_text(fault) + ": the plan has no rank " +
                       std::to_string(fault.rank));
    }
    if (needs_process(fault.kind) && communicator.local_ranks().size() > 1) {
      return bad_input("--inject " + to_text(fault) + ": the " + communicator.name() +
                       " backend has one process for all ranks; use --backend mpi" +
                       (communicator.name() == "nccl" ? " or --launch" : ""));
    }
    auto target = std::find_if(chosen.begin(), chosen.end(), [&](const PlannedRedistribution* r) {
      return static_cast<int64_t>(r->steps.size()) > fault.step && faults.find(r) == faults.end();
    });
    if (target == chosen.end()) {
      return bad_input("--inject " + to_text(fault) + ": no remaining redistribution has a step " +
                       std::to_string(fault.step));
    }
    faults[*target] = &fault;
  }
  return faults;
}

}  // namespace

Result<ReplayReport> replay(const Plan& plan, const ReplayOptions& options,
                            Communicator& communicator, Device& device) {
  if (plan.meshes.meshes.empty())
    return bad_input("the plan has no mesh; create it again with meshplan plan");
  const auto there = rank_table_within(plan.meshes, communicator.world());
  if (!there) return there.error();
  const RankTable& ranks = *there;
  const auto world = static_cast<int64_t>(ranks.global_ids.size());
  const auto selected = selected_by(plan, options);
  if (!selected) return selected.error();
  const std::vector<const PlannedRedistribution*>& chosen = *selected;
  const auto placed = faults_by_redistribution(options, chosen, ranks, communicator);
  if (!placed) return placed.error();
  const FaultMap& faults = *placed;
  ReplayReport report;
  report.backend = communicator.name();
  report.ranks = world;
  report.is_root = communicator.is_root();
  if (communicator.local_ranks().size() < static_cast<size_t>(world)) {
    auto facts = communicator.describe(std::chrono::steady_clock::now() + options.step_deadline);
    if (!facts) {
      communicator.abort(facts.error());
      return facts.error();
    }
    report.environment = std::move(*facts);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const PlannedRedistribution& r = *chosen[i];
    if (options.progress) options.progress(i, chosen.size(), r.request.id);
    device.reset();
    auto fault = faults.find(&r);
    RedistributionRun::Question question{&plan,
                                         &r,
                                         &options,
                                         &ranks,
                                         &communicator,
                                         &device,
                                         fault == faults.end() ? nullptr : fault->second};
    auto run = RedistributionRun::prepare(question);
    if (auto done = RedistributionRun::agree(run, question); !done) return done.error();
    auto checked = run->run_and_check();
    if (!checked) {
      communicator.abort(checked.error());
      return checked.error();
    }
    report.redistributions.push_back(std::move(*checked));
  }
  return report;
}

}  // namespace meshplan
