#include "replay_host/open_backend.h"

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/int_math.h"
#include "base/text.h"
#include "replay/exchange_pairs.h"
#include "replay/executor.h"
#include "replay/host_device.h"
#include "replay_host/host_communicator.h"

namespace meshplan {

Result<Backend> open_backend(const std::string& name, const BackendQuestion& question) {
  if (name == "host") {
    Backend backend;
    backend.device = std::make_unique<HostDevice>(question.threads);
    backend.communicator = std::make_unique<HostCommunicator>(question.world, *backend.device);
    return backend;
  }
  if (name == "mpi" || name == "nccl") return load_backend(name, question);
  return bad_input("unknown backend '" + name + "': expected host, mpi or nccl");
}

namespace {

// Finds a step with too many pairs of ranks for one process. An exchange has only pairs that
// share data.
Status check_pairs(const Plan& plan, const ReplayOptions& options) {
  const int64_t world = rank_count(plan.meshes);
  std::set<const PlannedRedistribution*> wanted;
  const auto units = replay_units(plan, options);
  if (!units) return units.error();
  for (const ReplayUnit& unit : *units) {
    if (unit.redistribution != nullptr) wanted.insert(unit.redistribution);
    if (unit.bundle == nullptr) continue;
    for (const size_t member : unit.bundle->request.members)
      wanted.insert(&plan.redistributions[member]);
  }
  for (const PlannedRedistribution& r : plan.redistributions) {
    if (!wanted.contains(&r)) continue;
    for (size_t i = 0; i < r.steps.size(); ++i) {
      if (is_local(r.steps[i].op)) continue;
      if (r.steps[i].op == Op::exchange) {
        // So few ranks are few pairs, whatever they exchange.
        if (saturating_mul(world, world) <= max_host_pairs) continue;
        const int64_t pairs = exchange_pairs(plan, r, i);
        if (pairs <= max_host_pairs) continue;
        return environment("redistribution '" + r.request.id + "', step " + std::to_string(i) +
                           ": the exchange is between " +
                           (pairs == INT64_MAX
                                ? "too many pairs of ranks to count"
                                : "up to " + with_commas(pairs) + " pairs of ranks") +
                           ", the host backend supports at most " + with_commas(max_host_pairs) +
                           "; replay the same redistribution on fewer ranks, or use --backend mpi");
      }
      const int64_t group = product_of_sizes(r.steps[i].mesh_dims);
      const int64_t pairs = saturating_mul(world, group);
      if (pairs <= max_host_pairs) continue;
      return environment("redistribution '" + r.request.id + "', step " + std::to_string(i) +
                         ": groups of " + with_commas(group) + " ranks are " + with_commas(pairs) +
                         " pairs of ranks in total, the host backend supports at most " +
                         with_commas(max_host_pairs) +
                         "; replay a plan with smaller groups, or use --backend mpi");
    }
  }
  return Done{};
}

}  // namespace

Result<BackendQuestion> backend_question(const std::string& name, const Plan& plan,
                                         const ReplayOptions& options) {
  if (plan.meshes.meshes.empty())
    return bad_input("the plan has no mesh; make it again with meshplan plan");
  BackendQuestion question;
  question.world = rank_count(plan.meshes);
  const int64_t most = name == "host" ? max_host_ranks : max_process_ranks;
  if (question.world > most) {
    return environment(
        "the plan has " + with_commas(question.world) + " ranks, the " + name +
        " backend supports at most " + with_commas(most) +
        "; plan the same redistributions on smaller mesh dims to replay them" +
        (question.world <= max_process_ranks ? ", or use --backend mpi on as many processes" : ""));
  }
  if (name == "host") {
    if (auto fits = check_pairs(plan, options); !fits) return fits.error();
  }
  question.global_ids = make_rank_table(plan.meshes).global_ids;
  question.threads = options.threads;
  question.deadline = options.step_deadline;
  for (const PlannedBundle& bundle : plan.bundles)
    question.streams = std::max(question.streams, most_in_flight(bundle.rounds));
  return question;
}

Result<ReplayReport> replay_on(const std::string& backend, const Plan& plan,
                               const ReplayOptions& options) {
  const auto question = backend_question(backend, plan, options);
  if (!question) return question.error();
  auto opened = open_backend(backend, *question);
  if (!opened) return opened.error();
  return replay(plan, options, *opened->communicator, *opened->device);
}

bool is_root_process() {
  for (const char* name :
       {"MESHPLAN_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) return parse_int(value).value_or(0) == 0;
  }
  return true;
}

void wait_for_root_output() {
  if (!is_root_process()) std::this_thread::sleep_for(std::chrono::seconds(2));
}

}  // namespace meshplan
