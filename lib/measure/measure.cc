#include "measure/measure.h"

#include <algorithm>
#include <unordered_map>

#include "cost/step_cost.h"
#include "measure/measure_bundle.h"
#include "measure/samples.h"
#include "plan/asked_ids.h"
#include "plan/step_mesh.h"
#include "replay/executor.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

// How many peers the price of a step counts: by what it rises when each of them costs 1 us more.
int64_t peers_priced(StepQuestion question) {
  if (!row_of(question.step->op).pays_per_peer) return 0;
  Topology raised = *question.topology;
  raised.tables.clear();
  question.topology = &raised;
  const int64_t before = price_step(question).predicted_ps;
  for (TopologyLevel& level : raised.levels) level.per_peer_ns += 1000;
  return (price_step(question).predicted_ps - before) / 1'000'000;
}

// What nccl-tests calls count and size, of elements that a rank holds before the step and after it.
void set_size(StepTimes& t, int64_t wire_bytes, int64_t held, int64_t gets) {
  const int64_t width = element_bytes(t.type);
  int64_t pieces = 1;
  switch (row_of(t.op).piece) {
    case OpPiece::box_before:
      t.count = held;
      pieces = t.group_size;
      break;
    case OpPiece::box_after:
      t.count = gets;
      pieces = t.group_size;
      break;
    case OpPiece::overlap:
      t.count = t.group_size > 1 ? wire_bytes / (t.group_size - 1) / width : 0;
      pieces = t.group_size;
      break;
    case OpPiece::share_of_box:
      t.count = held;
      break;
    case OpPiece::listed:
      t.count = wire_bytes / width;
      break;
    case OpPiece::none:
      t.count = gets;
      break;
  }
  t.size_bytes = pieces * t.count * width;
}

// The size of each step and the prediction, for the shape that is replayed.
std::vector<StepTimes> step_frames(const Plan& plan, const PlannedRedistribution& r,
                                   const std::vector<int64_t>& shape) {
  std::vector<StepTimes> frames;
  const State* before = &r.request.src;
  const Mesh* mesh_before = &plan.meshes.meshes[r.request.src_mesh];
  const TensorMeta tensor{shape, r.request.tensor.dtype};
  for (const Step& step : r.steps) {
    const Mesh& mesh = mesh_after(plan.meshes, r.request, step);
    StepTimes t;
    t.op = step.op;
    t.group = step.group;
    t.group_size = step_ranks(plan, r, step);
    for (const SubAxis& sub_axis : step.mesh_dims)
      t.mesh_dims.push_back(to_text(sub_axis, dim_names(mesh), mesh_shape(mesh)));
    const bool reduces = step.reduce_op.has_value();
    t.type = reduces && r.request.reduce_dtype ? *r.request.reduce_dtype : tensor.dtype;
    t.redop = step.reduce_op;
    const StepQuestion question{&plan.topology,         mesh_before, &mesh, &tensor,
                                r.request.reduce_dtype, before,      &step};
    const StepCost cost = price_step(question);
    t.peers = peers_priced(question);
    t.level = cost.level;
    t.load = step_load(question);
    t.predicted_ns = ns_of_ps(cost.predicted_ps);
    const int64_t held = largest_elements(*before, shape, mesh_shape(*mesh_before));
    const int64_t gets = largest_elements(step.state, shape, mesh_shape(mesh));
    set_size(t, cost.wire_bytes, held, gets);
    frames.push_back(std::move(t));
    before = &step.state;
    mesh_before = &mesh;
  }
  return frames;
}

int64_t predicted_sum(const std::vector<StepTimes>& steps) {
  int64_t ns = 0;
  for (const StepTimes& s : steps) ns += s.predicted_ns;
  return ns;
}

// Steps until the end of the step is the end of its work.
Status run_to_end(RedistributionRun& run, size_t step, Device& device, bool graph) {
  if (graph) return run.run_recorded_step(step);
  if (auto done = run.run_step(step); !done) return done;
  return device.synchronise();
}

Status run_whole(RedistributionRun& run, Device& device, bool graph) {
  if (graph) return run.run_recorded();  // the barrier that follows waits for its end
  for (size_t i = 0; i < run.steps(); ++i) {
    if (auto done = run.run_step(i); !done) return done;
  }
  return device.synchronise();
}

// Timed from barrier to barrier.
Result<int64_t> time_whole(RedistributionRun& run, Communicator& communicator, Device& device,
                           const ReplayOptions& options) {
  const Deadline deadline = Clock::now() + options.step_deadline;
  const std::string place = run.place() + ", timed as a whole";
  if (auto done = communicator.barrier(place, deadline); !done) return done.error();
  const auto start = Clock::now();
  if (auto done = run_whole(run, device, options.graph); !done) return done.error();
  if (auto done = communicator.barrier(place, deadline); !done) return done.error();
  return ns_since(start);
}

// Each step from a barrier to its end.
Status time_steps(RedistributionRun& run, RedistributionTimes& times, bool keep,
                  Communicator& communicator, Device& device, const ReplayOptions& options) {
  const Deadline deadline = Clock::now() + options.step_deadline;
  for (size_t s = 0; s < run.steps(); ++s) {
    if (auto done = communicator.barrier(run.place(s) + ", timed", deadline); !done) return done;
    const auto start = Clock::now();
    if (auto done = run_to_end(run, s, device, options.graph); !done) return done;
    if (keep) times.steps[s].samples_ns.push_back(ns_since(start));
  }
  return Done{};
}

// All samples of a redistribution: of the whole and of its steps.
std::vector<std::vector<int64_t>*> lists_of(RedistributionTimes& times) {
  std::vector<std::vector<int64_t>*> lists{&times.samples_ns};
  for (StepTimes& s : times.steps) lists.push_back(&s.samples_ns);
  return lists;
}

// The redistributions that are wanted, members of bundles by themselves.
std::vector<const PlannedRedistribution*> alone_of(const Plan& plan, const ReplayOptions& options) {
  std::vector<const PlannedRedistribution*> chosen;
  for (const PlannedRedistribution& r : plan.redistributions) {
    const bool wanted = options.only_ids.empty() ||
                        std::find(options.only_ids.begin(), options.only_ids.end(), r.request.id) !=
                            options.only_ids.end();
    if (wanted) chosen.push_back(&r);
  }
  return chosen;
}

MeasureReport empty_report(const Plan& plan, const MeasureOptions& options,
                           const Communicator& communicator) {
  MeasureReport report;
  report.backend = communicator.name();
  report.ranks = rank_count(plan.meshes);
  report.is_root = communicator.is_root();
  report.plan_digest = plan.digest;
  report.spec_digest = plan.spec_digest;
  report.topology = plan.topology;
  report.options = options.replay;
  report.warmup = options.warmup;
  report.repetitions = options.repetitions;
  return report;
}

// Check the data first, then prepare for timing.
struct Ready {
  RedistributionRun run;
  RedistributionTimes times;
};
Result<Ready> make_ready(const Plan& plan, const PlannedRedistribution& r, const RankTable& ranks,
                         const MeasureOptions& options, Communicator& communicator,
                         Device& device) {
  auto checked = checked_run<RedistributionRun>(
      {&plan, &r, &options.replay, &ranks, &communicator, &device, nullptr});
  if (!checked) return checked.error();
  RedistributionTimes times;
  times.count = r.request.count;
  times.dtype = r.request.tensor.dtype;
  times.steps = step_frames(plan, r, checked->run.replay_shape());
  times.predicted_ns = predicted_sum(times.steps);
  times.replay = std::move(checked->report);
  return Ready{std::move(checked->run), std::move(times)};
}

Status time_turns(Ready& ready, const MeasureOptions& options, Communicator& communicator,
                  Device& device) {
  for (int64_t turn = -options.warmup; turn < options.repetitions; ++turn) {
    if (auto done =
            time_steps(ready.run, ready.times, turn >= 0, communicator, device, options.replay);
        !done)
      return done;
    auto whole = time_whole(ready.run, communicator, device, options.replay);
    if (!whole) return whole.error();
    if (turn >= 0) ready.times.samples_ns.push_back(*whole);
  }
  return slowest_of_all(lists_of(ready.times), communicator,
                        Clock::now() + options.replay.step_deadline);
}

}  // namespace

double algorithm_bandwidth(const StepTimes& step) {
  const int64_t ns = summarise(step.samples_ns).median;
  if (is_local(step.op) || ns == 0) return 0;
  return static_cast<double>(step.size_bytes) / static_cast<double>(ns);
}

double bus_bandwidth(const StepTimes& step) {
  return bus_bytes(step.op, algorithm_bandwidth(step), step.group_size);
}

ReplayReport replay_part(const MeasureReport& report) {
  ReplayReport replay;
  replay.backend = report.backend;
  replay.ranks = report.ranks;
  replay.is_root = report.is_root;
  for (const RedistributionTimes& r : report.redistributions)
    replay.redistributions.push_back(r.replay);
  for (const BundleTimes& b : report.bundles) replay.bundles.push_back(b.replay);
  return replay;
}

MeasureReport untimed(const Plan& plan, const ReplayOptions& options, const ReplayReport& replay) {
  MeasureReport report;
  report.backend = replay.backend;
  report.ranks = replay.ranks;
  report.is_root = replay.is_root;
  report.plan_digest = plan.digest;
  report.spec_digest = plan.spec_digest;
  report.topology = plan.topology;
  report.options = options;
  std::unordered_map<std::string_view, const PlannedRedistribution*> by_id;
  for (const PlannedRedistribution& planned : plan.redistributions)
    by_id.emplace(planned.request.id, &planned);
  std::unordered_map<std::string_view, int64_t> predicted_ns;  // by id
  for (const RedistributionReport& r : replay.redistributions) {
    RedistributionTimes times;
    times.replay = r;
    if (const auto found = by_id.find(r.id); found != by_id.end()) {
      const PlannedRedistribution& planned = *found->second;
      times.count = planned.request.count;
      times.dtype = planned.request.tensor.dtype;
      // The steps of a repeat are told under the first.
      if (r.same_as.empty()) times.steps = step_frames(plan, planned, r.replay_shape);
      times.predicted_ns =
          r.same_as.empty() ? predicted_sum(times.steps) : predicted_ns.at(r.same_as);
      predicted_ns.emplace(r.id, times.predicted_ns);
    }
    report.redistributions.push_back(std::move(times));
  }
  for (const BundleReport& found : replay.bundles) {
    const auto planned =
        std::find_if(plan.bundles.begin(), plan.bundles.end(),
                     [&](const PlannedBundle& b) { return b.request.id == found.id; });
    if (planned != plan.bundles.end()) report.bundles.push_back(untimed_bundle(*planned, found));
  }
  return report;
}

Result<MeasureReport> measure(const Plan& plan, const MeasureOptions& options,
                              Communicator& communicator, Device& device) {
  auto ranks = ranks_for(plan, communicator);
  if (!ranks) return ranks.error();
  MeasureReport report = empty_report(plan, options, communicator);
  auto environment_facts =
      or_abort(communicator, communicator.describe(Clock::now() + options.replay.step_deadline));
  if (!environment_facts) return environment_facts.error();
  report.environment = std::move(*environment_facts);
  const auto chosen = replay_units(plan, options.replay);
  if (!chosen) return chosen.error();
  for (size_t i = 0; i < chosen->size(); ++i) {
    const ReplayUnit& unit = (*chosen)[i];
    if (options.replay.progress) options.replay.progress(i, chosen->size(), unit.id());
    device.reset();
    if (unit.bundle != nullptr) {
      auto times = measure_bundle(
          {&plan, unit.bundle, &options.replay, &*ranks, &communicator, &device, nullptr}, options);
      if (!times) return times.error();
      report.bundles.push_back(std::move(*times));
      continue;
    }
    auto ready = make_ready(plan, *unit.redistribution, *ranks, options, communicator, device);
    if (!ready) return ready.error();
    if (auto done = or_abort(communicator, time_turns(*ready, options, communicator, device));
        !done)
      return done.error();
    report.redistributions.push_back(std::move(ready->times));
  }
  return report;
}

namespace {

// Each may find colder caches when it runs first, so they alternate.
Status time_in_turns(Ready& a, Ready& b, const MeasureOptions& options, Communicator& communicator,
                     Device& device) {
  for (int64_t turn = -options.warmup; turn < options.repetitions; ++turn) {
    const bool swapped = (turn & 1) != 0;
    for (int k = 0; k < 2; ++k) {
      Ready& now = (k == 0) != swapped ? a : b;
      auto ns = time_whole(now.run, communicator, device, options.replay);
      if (!ns) return ns.error();
      if (turn >= 0) now.times.samples_ns.push_back(*ns);
      if (auto done =
              time_steps(now.run, now.times, turn >= 0, communicator, device, options.replay);
          !done)
        return done;
    }
  }
  std::vector<std::vector<int64_t>*> lists = lists_of(a.times);
  for (std::vector<int64_t>* list : lists_of(b.times)) lists.push_back(list);
  return slowest_of_all(lists, communicator, Clock::now() + options.replay.step_deadline);
}

// What a person asks for by id stands in one of the plans at least.
Status check_ids(const Plan& first, const Plan& second, const std::vector<std::string>& asked) {
  for (const std::string& id : asked) {
    auto known = check_asked_ids(first, {&id, 1}, AskedIds::of_redistributions);
    if (!known && !check_asked_ids(second, {&id, 1}, AskedIds::of_redistributions)) return known;
  }
  return Done{};
}

// Adds those of the plan that move what is asked for, and are not there yet.
void add_bundles(const Plan& plan, const std::vector<std::string>& asked,
                 std::vector<std::string>& ids) {
  for (std::string& id : bundles_that_move(plan, asked)) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
  }
}

AgainstEntry entry_of(const std::string& id, const RedistributionTimes& first,
                      const RedistributionTimes& second) {
  AgainstEntry entry;
  entry.id = id;
  entry.first = summarise(first.samples_ns);
  entry.second = summarise(second.samples_ns);
  entry.difference = compare_paired(second.samples_ns, first.samples_ns);
  entry.first_ulp = first.replay.largest_ulp;
  entry.second_ulp = second.replay.largest_ulp;
  entry.predicted_first_ns = first.predicted_ns;
  entry.predicted_second_ns = second.predicted_ns;
  return entry;
}

}  // namespace

Result<AgainstReport> measure_against(const Plan& first, const Plan& second,
                                      const MeasureOptions& options, Communicator& communicator,
                                      Device& device) {
  auto first_ranks = ranks_for(first, communicator);
  if (!first_ranks) return first_ranks.error();
  auto second_ranks = ranks_for(second, communicator);
  if (!second_ranks) return second_ranks.error();
  if (auto known = check_ids(first, second, options.replay.only_ids); !known) return known.error();
  AgainstReport report{empty_report(first, options, communicator),
                       empty_report(second, options, communicator),
                       {},
                       {},
                       {},
                       {}};
  const auto facts =
      or_abort(communicator, communicator.describe(Clock::now() + options.replay.step_deadline));
  if (!facts) return facts.error();
  report.first.environment = report.second.environment = *facts;
  const auto ours = alone_of(first, options.replay);
  const auto theirs = alone_of(second, options.replay);
  add_bundles(first, options.replay.only_ids, report.bundles);
  add_bundles(second, options.replay.only_ids, report.bundles);
  auto named = [](const auto& list, const std::string& id) {
    return std::find_if(list.begin(), list.end(),
                        [&](const PlannedRedistribution* r) { return r->request.id == id; });
  };
  for (const PlannedRedistribution* r : theirs) {
    if (named(ours, r->request.id) == ours.end()) report.only_second.push_back(r->request.id);
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string& id = ours[i]->request.id;
    if (options.replay.progress) options.replay.progress(i, ours.size(), id);
    const auto other = named(theirs, id);
    if (other == theirs.end()) {
      report.only_first.push_back(id);
      continue;
    }
    device.reset();
    auto a = make_ready(first, *ours[i], *first_ranks, options, communicator, device);
    if (!a) return a.error();
    auto b = make_ready(second, **other, *second_ranks, options, communicator, device);
    if (!b) return b.error();
    if (auto timed = or_abort(communicator, time_in_turns(*a, *b, options, communicator, device));
        !timed)
      return timed.error();
    report.entries.push_back(entry_of(id, a->times, b->times));
    report.first.redistributions.push_back(std::move(a->times));
    report.second.redistributions.push_back(std::move(b->times));
  }
  return report;
}

}  // namespace meshplan
