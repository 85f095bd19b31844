#include "search/exchange_plans.h"

#include "search/edge_steps.h"
#include "search/exchange_step.h"
#include "transfer/round_transfers.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

constexpr const char* brings_parts =
    "brings every copy of the target a part of its own, which they then share";
constexpr const char* moves_nearer =
    "moves boxes nearer to the ranks that need them, so that each sends to fewer others";
constexpr const char* shares_parts =
    "shares the parts of the copies that the exchange brought, packed with those of the other "
    "members";
constexpr const char* shares_own =
    "gathers the shards, in one launch with those of other tensors of the bundle that go so";
constexpr const char* spreads_in_units =
    "gives each rank of a unit one part of what the unit has, all of it inside";
constexpr const char* gathers_rails =
    "brings each rank the same part of what the other units have, packed with those of the other "
    "members";
constexpr const char* shares_fetching =
    "fetches once what the ranks of a unit lack together, then shares it inside, packed with "
    "boxes of the other members";

// An all_gather over the last sub-axis of the tensor dim that `to` cuts less than `from`.
Step gather_step(const Request& request, const State& from, const State& to, const Mesh& mesh,
                 const char* why) {
  Step step;
  step.op = Op::all_gather;
  for (size_t d = 0; d < to.shards.size(); ++d) {
    if (from.shards[d].size() > to.shards[d].size()) step.mesh_dims = {from.shards[d].back()};
  }
  step.merged = 1;
  step.state = to;
  if (request.src_mesh != request.dst_mesh) step.mesh = mesh.name;
  step.logical_shape = shape_apart(from, step.mesh_dims, request.tensor.shape, mesh_shape(mesh));
  describe_change(from, mesh, step);
  step.why = why;
  return step;
}

}  // namespace

void go_in_no_chunks(Step& step) {
  if (step.chunks > 1) step.why = shares_fetching;
  step.chunks = 1;
}

StepList gathers_through(const PlanQuestion& question, const Stops& stops, bool whole_pieces) {
  const Request& request = *question.request;
  const Mesh& dst_mesh = question.meshes->meshes[request.dst_mesh];
  PlanQuestion fetch = question;
  Request fetched = request;
  fetched.dst = stops.front();
  fetch.request = &fetched;
  StepList list;
  if (stops.size() == 1 || request.src_mesh != request.dst_mesh ||
      !same_on_ranks(request.src, stops.front()))
    list = exchanges_through(fetch, {stops.front()}, whole_pieces);
  const bool brought = !list.steps.empty();
  if (brought) list.steps.front().why = brings_parts;
  list.dst = request.dst;
  for (size_t i = 1; i < stops.size(); ++i) {
    list.steps.push_back(gather_step(request, stops[i - 1], stops[i], dst_mesh,
                                     brought ? shares_parts : shares_own));
  }
  add_partials(request, dst_mesh, stops.back(), list.steps);
  return list;
}

StepList gathers_by_rails(const PlanQuestion& question, const Rails& rails) {
  const Request& request = *question.request;
  const Mesh& src_mesh = question.meshes->meshes[request.src_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  Request spread = request;
  spread.dst_mesh = request.src_mesh;
  spread.dst = rails.before;
  PlanQuestion asked = question;
  asked.request = &spread;
  StepList list;
  if (rails.gathered.empty() || !same_on_ranks(request.src, rails.before))
    list = exchanges_through(asked, {rails.before}, false);
  for (Step& step : list.steps) {
    step.why = spreads_in_units;
    if (crosses) step.mesh = src_mesh.name;
  }
  const State* from = &rails.before;
  for (const State& to : rails.gathered) {
    list.steps.push_back(gather_step(request, *from, to, src_mesh, gathers_rails));
    from = &to;
  }
  Request shared = request;
  shared.src = rails.gathered.back();
  asked.request = &shared;
  StepList behind = exchanges_through(asked, {landing_of(shared)}, false);
  for (Step& step : behind.steps) list.steps.push_back(std::move(step));
  list.dst = request.dst;
  return list;
}

std::optional<Stops> stops_of_steps(const PlanQuestion& question, const std::vector<Step>& steps) {
  const Request& request = *question.request;
  if (!request.src.partial.empty() || !request.dst.partial.empty()) return std::nullopt;
  const bool crosses = request.src_mesh != request.dst_mesh;
  const std::string& dst_name = question.meshes->meshes[request.dst_mesh].name;
  Stops stops;
  for (const Step& step : steps) {
    if (crosses && step.mesh != dst_name) return std::nullopt;
    if (is_in_no_round(step)) {
      if (!stops.empty()) stops.back() = step.state;
    } else {
      stops.push_back(step.state);
    }
  }
  if (stops.empty() || !(stops.back() == request.dst)) return std::nullopt;
  return stops;
}

namespace {

// `stop`: the one of so many that the exchange ends at. `copies`: ranks of the target want one box.
const char* why_by_way_of_stops(const Step& step, size_t stop, size_t stops, bool copies) {
  if (step.phases == 2) return shares_fetching;
  if (stop + 1 < stops) return copies ? brings_parts : moves_nearer;
  if (stop == 0) {
    return "sends every rank just the boxes that it misses, packed with those of the other members";
  }
  return copies ? "shares what the step before brought among the copies of the target"
                : "puts in place what the steps before brought nearer";
}

}  // namespace

StepList exchanges_through(const PlanQuestion& question, const Stops& stops, bool whole_pieces,
                           int phases) {
  const Request& request = *question.request;
  const Mesh& dst_mesh = question.meshes->meshes[request.dst_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  StepList list;
  list.dst = request.dst;
  const State* before = &request.src;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (!(crosses && i == 0) && stops[i] == *before) continue;
    Step step;
    step.op = Op::exchange;
    step.mesh_dims = every_dim(mesh_shape(dst_mesh));
    step.state = stops[i];
    if (crosses) step.mesh = dst_mesh.name;
    step.logical_shape = request.tensor.shape;
    if (i == 0) set_reduction(step, question.meshes->meshes[request.src_mesh], *before, stops[i]);
    step.phases = i + 1 < stops.size() ? 1 : phases;
    step.whole_pieces = whole_pieces && step.phases == 1;
    step.why = why_by_way_of_stops(step, i, stops.size(), has_copies(request.dst, dst_mesh));
    if (!(crosses && i == 0)) describe_change(*before, dst_mesh, step);
    list.steps.push_back(std::move(step));
    before = &stops[i];
  }
  add_partials(request, dst_mesh, stops.back(), list.steps);
  return list;
}

}  // namespace meshplan
