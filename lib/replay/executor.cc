#include "replay/executor.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "plan/firsts.h"
#include "replay/bundle_run.h"

namespace meshplan {
namespace {

using FaultMap = std::map<std::string, const InjectedFault*>;  // by id of the unit

// Each fault is injected into the first unit that has its step, or round.
Result<FaultMap> faults_by_unit(const ReplayOptions& options, const std::vector<ReplayUnit>& chosen,
                                const RankTable& ranks, const Communicator& communicator) {
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
    auto target = std::find_if(chosen.begin(), chosen.end(), [&](const ReplayUnit& unit) {
      const auto steps = unit.bundle != nullptr ? std::ssize(unit.bundle->rounds)
                                                : std::ssize(unit.redistribution->steps);
      return steps > fault.step && faults.find(unit.id()) == faults.end();
    });
    if (target == chosen.end()) {
      return bad_input("--inject " + to_text(fault) + ": no remaining redistribution has a step " +
                       std::to_string(fault.step));
    }
    faults[target->id()] = &fault;
  }
  return faults;
}

// Of each unit the first that it repeats, its own place where it repeats none, is a bundle or has a
// fault.
std::vector<size_t> first_units(const Plan& plan, const std::vector<ReplayUnit>& chosen,
                                const FaultMap& faults) {
  std::vector<size_t> firsts(chosen.size());
  std::vector<size_t> units;  // of redistributions as planned
  std::vector<size_t> some;   // these redistributions
  for (size_t i = 0; i < chosen.size(); ++i) {
    firsts[i] = i;
    if (chosen[i].bundle != nullptr || faults.find(chosen[i].id()) != faults.end()) continue;
    units.push_back(i);
    some.push_back(static_cast<size_t>(chosen[i].redistribution - plan.redistributions.data()));
  }
  const std::vector<size_t> same = firsts_of(plan.redistributions, some);
  for (size_t k = 0; k < units.size(); ++k) firsts[units[k]] = units[same[k]];
  return firsts;
}

// What was found of another, for one that repeats it.
RedistributionReport repeated(const RedistributionReport& first, const std::string& id) {
  RedistributionReport report = first;
  report.id = id;
  report.same_as = first.id;
  return report;
}

// Replays one unit into the report.
Status replay_unit(const Plan& plan, const ReplayUnit& unit, const ReplayOptions& options,
                   const RankTable& ranks, const InjectedFault* fault, Communicator& communicator,
                   Device& device, ReplayReport& report) {
  device.reset();
  if (unit.bundle != nullptr) {
    auto checked = checked_run<BundleRun>(
        {&plan, unit.bundle, &options, &ranks, &communicator, &device, fault});
    if (!checked) return checked.error();
    report.bundles.push_back(std::move(checked->report));
    return Done{};
  }
  auto checked = checked_run<RedistributionRun>(
      {&plan, unit.redistribution, &options, &ranks, &communicator, &device, fault});
  if (!checked) return checked.error();
  report.redistributions.push_back(std::move(checked->report));
  return Done{};
}

}  // namespace

Result<RankTable> ranks_for(const Plan& plan, const Communicator& communicator) {
  if (plan.meshes.meshes.empty())
    return bad_input("the plan has no mesh; create it again with meshplan plan");
  return rank_table_within(plan.meshes, communicator.world());
}

Result<ReplayReport> replay(const Plan& plan, const ReplayOptions& options,
                            Communicator& communicator, Device& device) {
  const auto there = ranks_for(plan, communicator);
  if (!there) return there.error();
  const RankTable& ranks = *there;
  const auto world = std::ssize(ranks.global_ids);
  const auto chosen = replay_units(plan, options);
  if (!chosen) return chosen.error();
  const auto faults = faults_by_unit(options, *chosen, ranks, communicator);
  if (!faults) return faults.error();
  ReplayReport report;
  report.backend = communicator.name();
  report.ranks = world;
  report.is_root = communicator.is_root();
  if (communicator.local_ranks().size() < static_cast<size_t>(world)) {
    auto facts = or_abort(communicator, communicator.describe(std::chrono::steady_clock::now() +
                                                              options.step_deadline));
    if (!facts) return facts.error();
    report.environment = std::move(*facts);
  }
  const std::vector<size_t> firsts = first_units(plan, *chosen, *faults);
  std::vector<size_t> reports(chosen->size());  // where in the report a unit by itself is
  for (size_t i = 0; i < chosen->size(); ++i) {
    const ReplayUnit& unit = (*chosen)[i];
    reports[i] = report.redistributions.size();
    if (firsts[i] != i) {
      report.redistributions.push_back(
          repeated(report.redistributions[reports[firsts[i]]], unit.id()));
      continue;
    }
    if (options.progress) options.progress(i, chosen->size(), unit.id());
    const auto fault = faults->find(unit.id());
    if (auto done = replay_unit(plan, unit, options, ranks,
                                fault == faults->end() ? nullptr : fault->second, communicator,
                                device, report);
        !done)
      return done.error();
  }
  return report;
}

}  // namespace meshplan
