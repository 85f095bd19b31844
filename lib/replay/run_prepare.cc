#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "base/utf8.h"
#include "replay/agreement.h"
#include "replay/run_inside.h"
#include "replay/shrink.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// Many redistributions of a plan use the same data table, so the last few are cached.
std::shared_ptr<const DataTable> table_for(const DataQuestion& question) {
  thread_local std::map<DataQuestion, std::shared_ptr<const DataTable>> known;
  auto at = known.find(question);
  if (at != known.end()) return at->second;
  if (known.size() > 32) known.clear();
  return known.emplace(question, std::make_shared<const DataTable>(question)).first->second;
}

// A step that completes the pending reductions of the target, to check what they reduce to.
Step completing_step(const State& state) {
  Step step;
  step.op = Op::all_reduce;
  step.mesh_dims = partial_sub_axes(state);
  std::sort(step.mesh_dims.begin(), step.mesh_dims.end());
  step.state = state;
  step.state.partial.clear();
  ReduceOp op = state.partial.front().op;
  for (const PendingSubAxis& p : state.partial) {
    if (p.op == ReduceOp::sum) op = ReduceOp::sum;
  }
  if (op == ReduceOp::sum) {
    for (const PendingSubAxis& p : state.partial) {
      if (p.op == ReduceOp::avg) step.scale_divisor *= p.sub_axis.size;
    }
  }
  step.reduce_op = op;
  return step;
}

DataQuestion data_question(const PlannedRedistribution& r, const ReplayOptions& options) {
  DataQuestion q;
  q.dtype = r.request.tensor.dtype;
  q.reduce_dtype = r.request.reduce_dtype.value_or(q.dtype);
  q.kind = options.data;
  q.seed = options.seed;
  bool sums = false;
  for (const PendingSubAxis& p : r.request.src.partial) {
    q.contributions *= p.sub_axis.size;
    if (p.op == ReduceOp::avg) q.divisor *= p.sub_axis.size;
    sums = sums || p.op == ReduceOp::sum;
    q.op = p.op;
  }
  if (sums) q.op = ReduceOp::sum;
  if (r.request.src.partial.empty()) {
    for (const Step& s : r.steps) {
      if (!s.state.partial.empty()) q.op = s.state.partial.front().op;
    }
  }
  // Averaging equal values sums each value several times before the division.
  const State* before = &r.request.src;
  for (const Step& s : r.steps) {
    if (s.op == Op::to_partial) {
      for (const PendingSubAxis& p : s.state.partial) {
        const bool had =
            std::find(before->partial.begin(), before->partial.end(), p) != before->partial.end();
        if (!had && p.op == ReduceOp::avg) q.growth = saturating_mul(q.growth, p.sub_axis.size);
      }
    }
    before = &s.state;
  }
  return q;
}

std::string text_of(const std::vector<int64_t>& values) {
  std::string out;
  for (int64_t v : values) out += std::to_string(v) + ",";
  return out;
}

// Each pair of mesh and shards once.
std::vector<StateOnMesh> distinct_of(const std::vector<StateOnMesh>& states) {
  std::vector<StateOnMesh> distinct;
  for (const StateOnMesh& s : states) {
    const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const StateOnMesh& o) {
      return o.mesh_shape == s.mesh_shape && o.state->shards == s.state->shards;
    });
    if (!known) distinct.push_back(s);
  }
  return distinct;
}

// So many elements that a shape has to replay, at most. `bytes`: over all ranks and states, per
// element of the tensor.
int64_t most_elements(const std::vector<int64_t>& shape, double bytes,
                      const ReplayOptions& options) {
  if (options.shrink) return 1;
  double total = bytes;
  for (int64_t extent : shape) total *= static_cast<double>(extent);
  const auto limit = static_cast<double>(options.shrink_above_bytes);
  if (options.full_size || total <= limit) return INT64_MAX;
  return static_cast<int64_t>(limit / bytes);
}

}  // namespace

std::string place_of(const PlannedRedistribution& r) {
  return "redistribution '" + one_line(r.request.id) + "'";
}

std::string place_of(const PlannedRedistribution& r, size_t step) {
  return place_of(r) + ", step " + std::to_string(step);
}

Status RedistributionRun::Inside::make_all_held_boxes() {
  const Request& request = r->request;
  const Mesh& src = q.plan->meshes.meshes[request.src_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  // Across meshes, copy 0 of each takes part; on one mesh, all copies run it simultaneously.
  const int64_t copies = crosses ? 1 : mesh_copies(src);
  std::vector<const Mesh*> meshes{&src};
  std::vector<const State*> states{&request.src};
  for (const Step& s : r->steps) {
    meshes.push_back(
        crosses ? &mesh_named(s.mesh, s.mesh.empty() ? request.src_mesh : request.dst_mesh) : &src);
    states.push_back(&s.state);
  }
  if (!states.back()->partial.empty()) {
    completing = completing_step(*states.back());
    meshes.push_back(meshes.back());
    states.push_back(&completing->state);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i]->shards.size() != request.tensor.shape.size()) {
      return wrong_data(place_of(*r) + ": a state has " + std::to_string(states[i]->shards.size()) +
                        " tensor dims, the tensor has " +
                        std::to_string(request.tensor.shape.size()));
    }
  }

  std::vector<StateOnMesh> on_meshes;
  double factor = 0;  // elements over all ranks and states per element of the tensor
  for (size_t i = 0; i < states.size(); ++i) {
    on_meshes.push_back({states[i], mesh_shape(*meshes[i])});
    double shards = 1;
    for (const SubAxis& a : shard_sub_axes(*states[i])) shards *= static_cast<double>(a.size);
    factor += static_cast<double>(copies) * static_cast<double>(mesh_size(*meshes[i])) / shards;
  }
  if (auto done = choose_shape(on_meshes, meshes, factor); !done) return done;
  for (const HeldBoxes& at : held_boxes) {
    std::vector<size_t> slots;
    for (size_t s = 0; s < at.ranks.size(); ++s) {
      if (local_number[at.ranks[s]] >= 0) slots.push_back(s);
    }
    local_slots.push_back(std::move(slots));
  }
  return Done{};
}

// The boxes at the shape as planned, or at a smaller one that moves the same pieces. Into how many
// stages an exchange in shifts is cut follows from sizes too: where the small shape has another
// number of them than the chunks were planned for, it is too small.
Status RedistributionRun::Inside::choose_shape(const std::vector<StateOnMesh>& states,
                                               const std::vector<const Mesh*>& meshes,
                                               double factor) {
  const std::vector<int64_t>& planned = r->request.tensor.shape;
  const bool crosses = r->request.src_mesh != r->request.dst_mesh;
  const int64_t copies = crosses ? 1 : mesh_copies(*meshes.front());
  const std::vector<StateOnMesh> distinct = distinct_of(states);
  const int64_t first = most_elements(planned, factor * static_cast<double>(size), *q.options);
  for (int64_t most = first;; most = saturating_mul(2, std::max(most, elements_of(shape)))) {
    shape = shrink_shape(planned, distinct, most);
    shrunk = shape != planned;
    held_boxes.clear();
    for (size_t i = 0; i < states.size(); ++i)
      held_boxes.push_back(make_held_boxes(*meshes[i], *states[i].state, shape, copies, *q.ranks));
    if (!shrunk && most == first) return Done{};  // nothing was smaller
    const Status fit = stages_fit();
    if (fit || !shrunk) return fit;
  }
}

Status RedistributionRun::Inside::stages_fit() const {
  for (size_t i = 0; i < r->steps.size(); ++i) {
    if (r->steps[i].at_once == 0) continue;
    const auto made = make_transfers({&held_boxes[i], &held_boxes[i + 1], &r->steps[i], q.ranks,
                                      &q.plan->topology, place_of(*r, i)});
    if (!made) return made.error();
  }
  return Done{};
}

Status RedistributionRun::Inside::prepare_steps() {
  source.assign(held_boxes[0].ranks.size(), nullptr);
  for (size_t s : local_slots[0]) {
    auto data = q.device->allocate(
        held_boxes[0].ranks[s], volume(box_of_slot(held_boxes[0], static_cast<int64_t>(s))) * size);
    if (!data) return at_place(place_of(*r) + ", source", data.error());
    source[s] = *data;
  }
  for (size_t i = 0; i + 1 < held_boxes.size(); ++i) {
    const bool completes = i == r->steps.size();
    const Step& step = completes ? *completing : r->steps[i];
    const std::string place =
        completes ? place_of(*r) + ", completing the reductions of the target" : place_of(*r, i);
    if (q.fault != nullptr && q.fault->kind == FaultKind::memory &&
        q.fault->step == static_cast<int64_t>(i)) {
      const auto rank = std::find_if(locals.begin(), locals.end(),
                                     [&](int32_t l) { return global_id(l) == q.fault->rank; });
      if (rank != locals.end())
        return environment(place + ": rank " + std::to_string(q.fault->rank) +
                           " cannot allocate its buffers (injected)");
    }
    TransferQuestion transfer_question{&held_boxes[i], &held_boxes[i + 1], &step,
                                       q.ranks,        &q.plan->topology,  place};
    auto made = make_transfers(transfer_question);
    if (!made) return made.error();
    transfers.push_back(std::move(*made));
    PrepareQuestion question;
    question.before = &held_boxes[i];
    question.after = &held_boxes[i + 1];
    question.transfers = &transfers.back();
    question.dtype = dtype;
    question.reduce_dtype = r->request.reduce_dtype;
    question.held = &held(i);
    question.local_number = &local_number;
    question.locals = std::ssize(locals);
    question.device = q.device;
    question.place = place;
    auto prepared_step = prepare_step(question);
    if (!prepared_step) return prepared_step.error();
    prepared.push_back(std::move(*prepared_step));
    digest_text += place + " " + to_text(step.op) + " " + to_text(dtype) + " " +
                   std::to_string(transfers.back().divisor) + " " +
                   (transfers.back().reduce_op ? to_text(*transfers.back().reduce_op) : "-") +
                   " phases " + std::to_string(step.phases) + " chunks " +
                   std::to_string(step.chunks) + " at once " + std::to_string(step.at_once) +
                   " boxes ";
    for (const Box& box : held_boxes[i + 1].boxes) digest_text += std::to_string(volume(box)) + ",";
    for (const auto& group : prepared.back().groups)
      digest_text += " group " + text_of({group->begin(), group->end()});
    digest_text += "\n";
  }
  return Done{};
}

std::unique_ptr<RedistributionRun::Inside> RedistributionRun::Inside::begin(
    const Question& question) {
  auto inside = std::make_unique<Inside>();
  inside->q = question;
  inside->r = question.redistribution;
  inside->dtype = question.redistribution->request.tensor.dtype;
  inside->size = element_bytes(inside->dtype);
  inside->locals = question.communicator->local_ranks();
  inside->local_number.assign(question.ranks->global_ids.size(), -1);
  for (size_t i = 0; i < inside->locals.size(); ++i) {
    if (static_cast<size_t>(inside->locals[i]) < inside->local_number.size()) {
      inside->local_number[inside->locals[i]] = static_cast<int32_t>(i);
    }
  }
  inside->table = table_for(data_question(*question.redistribution, *question.options));
  for (char c : question.redistribution->request.id)
    inside->salt = mix(inside->salt, static_cast<unsigned char>(c));
  if (question.tensor > 0) inside->salt = mix(inside->salt, static_cast<uint64_t>(question.tensor));
  return inside;
}

Result<RedistributionRun> RedistributionRun::prepare(const Question& question) {
  auto inside = Inside::begin(question);
  inside->digest_text = question.plan->digest + "\n";
  if (auto done = inside->make_all_held_boxes(); !done) return done.error();
  if (auto done = inside->prepare_steps(); !done) return done.error();
  return RedistributionRun(std::move(inside));
}

Status RedistributionRun::agree(Result<RedistributionRun>& prepared, const Question& q) {
  const AgreementQuestion agreement{place_of(*q.redistribution, 0), q.options, q.ranks,
                                    q.communicator, q.fault};
  const Error problem = prepared ? Error{} : prepared.error();
  auto same = agree_on(agreement, prepared ? nullptr : &problem,
                       prepared ? prepared->inside_->digest_text : "");
  if (!same) return same;
  // Create communicators in the order of the steps, which is the same on every process.
  const Deadline deadline = std::chrono::steady_clock::now() + q.options->step_deadline;
  Inside& in = *prepared->inside_;
  for (const PreparedStep& step : in.prepared) {
    if (step.groups.empty()) continue;
    std::vector<std::vector<int32_t>> groups;
    for (const auto& group : step.groups) groups.push_back(*group);
    if (auto done = q.communicator->prepare(groups, deadline); !done)
      return ended_alone(agreement, done.error());
  }
  auto filled = in.fill_source();
  return filled ? filled : Status(ended_alone(agreement, filled.error()));
}

Status RedistributionRun::Inside::fill_source() {
  const HeldBoxes& at = held_boxes[0];
  const CoordinatesOn contributions(partial_sub_axes(r->request.src), at.mesh_shape);
  int64_t bytes = 0;
  for (size_t s : local_slots[0]) bytes += volume(box_of_slot(at, static_cast<int64_t>(s))) * size;
  return q.device->for_each(std::ssize(local_slots[0]), bytes, [&](int64_t i) -> Status {
    const size_t s = local_slots[0][i];
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    if (auto done = q.device->guard(at.ranks[s], source[s], volume(box) * size); !done) return done;
    const int64_t k = contributions.number(static_cast<int64_t>(s) % at.size);
    return q.device->fill(at.ranks[s], source[s], box, shape, *table,
                          table->source_start(k, shift_of(at, s)));
  });
}

}  // namespace meshplan
