#include "replay/executor.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <thread>

#include "base/int_math.h"
#include "base/sha256.h"
#include "base/text.h"
#include "replay/arithmetic.h"
#include "replay/number.h"
#include "replay/shrink.h"

namespace meshplan {
namespace {

// What processes must share to replay together; raised whenever the meaning of a step or of the data changes.
constexpr const char* replay_version = "1";

// Data tables are the same for many redistributions of a plan; the last few are kept.
std::shared_ptr<const DataTable> table_for(const DataQuestion& question) {
  thread_local std::map<DataQuestion, std::shared_ptr<const DataTable>> known;
  auto at = known.find(question);
  if (at != known.end()) return at->second;
  if (known.size() > 32) known.clear();
  return known.emplace(question, std::make_shared<const DataTable>(question)).first->second;
}

std::string place_of(const PlannedRedistribution& r, size_t step) {
  return "redistribution '" + r.request.id + "', step " + std::to_string(step);
}

// The target's pending reductions, completed: what a target with pending reductions means.
Step completing_step(const State& state) {
  Step step;
  step.op = Op::all_reduce;
  step.mesh_dims = partial_atoms(state);
  std::sort(step.mesh_dims.begin(), step.mesh_dims.end());
  step.state = state;
  step.state.partial.clear();
  ReduceOp op = state.partial.front().op;
  for (const PendingAtom& p : state.partial) {
    if (p.op == ReduceOp::sum) op = ReduceOp::sum;
  }
  if (op == ReduceOp::sum) {
    for (const PendingAtom& p : state.partial) {
      if (p.op == ReduceOp::avg) step.scale_divisor *= p.atom.size;
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
  for (const PendingAtom& p : r.request.src.partial) {
    q.contributions *= p.atom.size;
    if (p.op == ReduceOp::avg) q.divisor *= p.atom.size;
    sums = sums || p.op == ReduceOp::sum;
    q.op = p.op;
  }
  if (sums) q.op = ReduceOp::sum;
  if (r.request.src.partial.empty()) {
    for (const Step& s : r.steps) {
      if (!s.state.partial.empty()) q.op = s.state.partial.front().op;
    }
  }
  // An average that a step sets up over equal values adds each to itself.
  const State* before = &r.request.src;
  for (const Step& s : r.steps) {
    if (s.op == Op::to_partial) {
      for (const PendingAtom& p : s.state.partial) {
        const bool had = std::find(before->partial.begin(), before->partial.end(), p) != before->partial.end();
        if (!had && p.op == ReduceOp::avg) q.growth = saturating_mul(q.growth, p.atom.size);
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

std::string encode(const RedistributionReport& report) {
  std::string out = std::to_string(report.checked) + " " + std::to_string(report.wrong) + " " + std::to_string(report.largest_ulp) + " " +
                    std::to_string(report.largest_relative) + "\n";
  for (const Difference& d : report.differences) {
    out += "d " + std::to_string(d.rank) + " " + std::to_string(d.step) + " " + d.expected + " " + d.found;
    for (int64_t i : d.index) out += " " + std::to_string(i);
    out += "\n";
  }
  for (const Overrun& o : report.overruns) out += "o " + std::to_string(o.rank) + " " + std::to_string(o.step) + "\n";
  return out;
}

// Adds what another process found.
void add_encoded(const std::string& text, RedistributionReport& report) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::istringstream head(line);
  int64_t checked = 0;
  int64_t wrong = 0;
  double ulp = 0;
  double relative = 0;
  head >> checked >> wrong >> ulp >> relative;
  report.checked += checked;
  report.wrong += wrong;
  report.largest_ulp = std::max(report.largest_ulp, ulp);
  report.largest_relative = std::max(report.largest_relative, relative);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "o") {
      Overrun o;
      words >> o.rank >> o.step;
      report.overruns.push_back(o);
      continue;
    }
    Difference d;
    words >> d.rank >> d.step >> d.expected >> d.found;
    for (int64_t i = 0; words >> i;) d.index.push_back(i);
    report.differences.push_back(std::move(d));
  }
}

}  // namespace

struct RedistributionRun::Inside {
  Question q;
  const PlannedRedistribution* r = nullptr;
  DType dtype = DType::float32;
  int64_t size = 4;  // of an element
  std::vector<int64_t> shape;
  bool shrunk = false;
  std::vector<Stand> stands;  // the source, after each step, and after the completing step
  std::vector<StepFlow> flows;
  std::vector<PreparedStep> programs;
  std::optional<Step> completing;
  std::vector<std::byte*> source;  // by slot of the first stand
  std::vector<int32_t> locals;
  std::vector<int32_t> local_number;
  std::shared_ptr<const DataTable> table;
  std::string digest_text;
  uint64_t salt = 0;  // from the id
  bool recorded = false;
  std::vector<std::vector<size_t>> local_slots;  // by stand: slots that this process plays

  [[nodiscard]] Deadline deadline() const { return std::chrono::steady_clock::now() + q.options->step_deadline; }
  [[nodiscard]] const std::vector<std::byte*>& held(size_t stand) const { return stand == 0 ? source : programs[stand - 1].after; }
  [[nodiscard]] int64_t global_id(int32_t rank) const { return q.ranks->global_ids[static_cast<size_t>(rank)]; }
  [[nodiscard]] int64_t copy_of(const Stand& stand, size_t slot) const { return static_cast<int64_t>(slot) / stand.size; }
  // Differs between redistributions and copies of the mesh, not between machines.
  [[nodiscard]] int64_t shift_of(const Stand& stand, size_t slot) const {
    return table->shift_for(mix(salt, static_cast<uint64_t>(copy_of(stand, slot))));
  }

  const Mesh& mesh_named(const std::string& name, size_t fallback) const {
    if (!name.empty()) {
      if (auto at = find_mesh(q.plan->meshes, name)) return q.plan->meshes.meshes[*at];
    }
    return q.plan->meshes.meshes[fallback];
  }

  Status make_stands();
  Status make_programs();
  Status fill_source();
  Status check_stand(size_t stand, int64_t step, RedistributionReport& report) const;
  Status check_middle(size_t stand, RedistributionReport& report, bool& known) const;
  Status check_guards(size_t stand, RedistributionReport& report) const;
  Status poison(size_t stand) const;
  Status inject(size_t stand) const;
  Status run_program(const PreparedStep& program) const;
  Status run_all() const;
  Status run_recorded();
  Status check_recorded(RedistributionReport& report);
  Status find_first_wrong(RedistributionReport& report) const;
  Result<int64_t> everyones_sum(int64_t value) const;
  void act_as_told(size_t step) const;
  [[nodiscard]] int64_t contribution_of(const Stand& stand, int64_t index) const;
  void add_difference(RedistributionReport& report, int64_t rank, int64_t step, const Box& box, int64_t at, const std::byte* expected,
                      const std::byte* found) const;
};

RedistributionRun::RedistributionRun(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
RedistributionRun::~RedistributionRun() = default;
RedistributionRun::RedistributionRun(RedistributionRun&&) noexcept = default;
size_t RedistributionRun::steps() const { return inside_->r->steps.size(); }
const std::vector<int64_t>& RedistributionRun::replay_shape() const { return inside_->shape; }

Status RedistributionRun::Inside::make_stands() {
  const Request& request = r->request;
  const Mesh& src = q.plan->meshes.meshes[request.src_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  // A redistribution across meshes is between copy 0 of each; on one mesh every copy does it at once.
  const int64_t copies = crosses ? 1 : mesh_copies(src);
  std::vector<const Mesh*> meshes{&src};
  std::vector<const State*> states{&request.src};
  for (const Step& s : r->steps) {
    meshes.push_back(crosses ? &mesh_named(s.mesh, s.mesh.empty() ? request.src_mesh : request.dst_mesh) : &src);
    states.push_back(&s.state);
  }
  if (!states.back()->partial.empty()) {
    completing = completing_step(*states.back());
    meshes.push_back(meshes.back());
    states.push_back(&completing->state);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i]->shards.size() != request.tensor.shape.size()) {
      return wrong_data("redistribution '" + request.id + "': a state has " + std::to_string(states[i]->shards.size()) +
                        " tensor dims, the tensor has " + std::to_string(request.tensor.shape.size()));
    }
  }

  // The shape: as planned, or an alike smaller one.
  shape = request.tensor.shape;
  std::vector<StateOnMesh> on_meshes;
  double factor = 0;  // elements held over all ranks and states, for one element of the tensor
  for (size_t i = 0; i < states.size(); ++i) {
    on_meshes.push_back({states[i], mesh_shape(*meshes[i])});
    double shards = 1;
    for (const Atom& a : shard_atoms(*states[i])) shards *= static_cast<double>(a.size);
    factor += static_cast<double>(copies) * static_cast<double>(mesh_size(*meshes[i])) / shards;
  }
  std::vector<StateOnMesh> distinct;
  for (const StateOnMesh& s : on_meshes) {
    const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const StateOnMesh& o) {
      return o.mesh_shape == s.mesh_shape && o.state->shards == s.state->shards;
    });
    if (!known) distinct.push_back(s);
  }
  double total = factor * static_cast<double>(size);
  for (int64_t extent : shape) total *= static_cast<double>(extent);
  if (q.options->shrink) {
    shape = shrink_shape(shape, distinct, 1);
  } else if (!q.options->full_size && total > static_cast<double>(q.options->shrink_above_bytes)) {
    shape = shrink_shape(shape, distinct,
                         static_cast<int64_t>(static_cast<double>(q.options->shrink_above_bytes) / (factor * static_cast<double>(size))));
  }
  shrunk = shape != request.tensor.shape;
  for (size_t i = 0; i < states.size(); ++i) stands.push_back(make_stand(*meshes[i], *states[i], shape, copies, *q.ranks));
  for (const Stand& stand : stands) {
    std::vector<size_t> slots;
    for (size_t s = 0; s < stand.ranks.size(); ++s) {
      if (local_number[static_cast<size_t>(stand.ranks[s])] >= 0) slots.push_back(s);
    }
    local_slots.push_back(std::move(slots));
  }
  return Done{};
}

Status RedistributionRun::Inside::make_programs() {
  source.assign(stands[0].ranks.size(), nullptr);
  for (size_t s : local_slots[0]) {
    auto data = q.device->allocate(stands[0].ranks[s], volume(box_of_slot(stands[0], static_cast<int64_t>(s))) * size);
    if (!data) return data.error();
    source[s] = *data;
  }
  for (size_t i = 0; i + 1 < stands.size(); ++i) {
    const bool completes = i == r->steps.size();
    const Step& step = completes ? *completing : r->steps[i];
    const std::string place = completes ? "redistribution '" + r->request.id + "', completing the target's reductions" : place_of(*r, i);
    if (q.fault != nullptr && q.fault->kind == FaultKind::memory && q.fault->step == static_cast<int64_t>(i)) {
      const auto rank = std::find_if(locals.begin(), locals.end(), [&](int32_t l) { return global_id(l) == q.fault->rank; });
      if (rank != locals.end())
        return environment(place + ": rank " + std::to_string(q.fault->rank) + " lacks memory for its buffers (injected)");
    }
    FlowQuestion flow_question{&stands[i], &stands[i + 1], &step, q.ranks, &q.plan->topology, place};
    auto flow = make_flow(flow_question);
    if (!flow) return flow.error();
    flows.push_back(std::move(*flow));
    ProgramQuestion program_question;
    program_question.before = &stands[i];
    program_question.after = &stands[i + 1];
    program_question.flow = &flows.back();
    program_question.dtype = dtype;
    program_question.reduce_dtype = r->request.reduce_dtype;
    program_question.held = &held(i);
    program_question.local_number = &local_number;
    program_question.locals = static_cast<int64_t>(locals.size());
    program_question.device = q.device;
    program_question.place = place;
    auto program = prepare_step(program_question);
    if (!program) return program.error();
    programs.push_back(std::move(*program));
    digest_text += place + " " + to_text(step.op) + " " + to_text(dtype) + " " + std::to_string(flows.back().divisor) + " " +
                   (flows.back().reduce_op ? to_text(*flows.back().reduce_op) : "-") + " phases " + std::to_string(step.phases) + " boxes ";
    for (const Box& box : stands[i + 1].boxes) digest_text += std::to_string(volume(box)) + ",";
    for (const auto& group : programs.back().groups) digest_text += " group " + text_of({group->begin(), group->end()});
    digest_text += "\n";
  }
  return Done{};
}

Result<RedistributionRun> RedistributionRun::prepare(const Question& question) {
  auto inside = std::make_unique<Inside>();
  inside->q = question;
  inside->r = question.redistribution;
  inside->dtype = question.redistribution->request.tensor.dtype;
  inside->size = element_bytes(inside->dtype);
  inside->locals = question.communicator->local_ranks();
  inside->local_number.assign(question.ranks->global_ids.size(), -1);
  for (size_t i = 0; i < inside->locals.size(); ++i) {
    if (static_cast<size_t>(inside->locals[i]) < inside->local_number.size()) {
      inside->local_number[static_cast<size_t>(inside->locals[i])] = static_cast<int32_t>(i);
    }
  }
  inside->table = table_for(data_question(*question.redistribution, *question.options));
  for (char c : question.redistribution->request.id) inside->salt = mix(inside->salt, static_cast<unsigned char>(c));
  inside->digest_text = question.plan->digest + "\n";
  if (auto done = inside->make_stands(); !done) return done.error();
  if (auto done = inside->make_programs(); !done) return done.error();
  return RedistributionRun(std::move(inside));
}

Status RedistributionRun::agree(Result<RedistributionRun>& prepared, const Question& q) {
  const Deadline deadline = std::chrono::steady_clock::now() + q.options->step_deadline;
  const std::string place = "redistribution '" + q.redistribution->request.id + "', step 0";
  // Errors that other processes do not share end them too.
  auto alone = [&](const Error& error) {
    const Error located{error.fault, error.message.rfind(place, 0) == 0 ? error.message : place + ": " + error.message};
    q.communicator->abort(located);
    return located;
  };
  std::string said;
  if (!prepared) {
    said = "error " + std::to_string(exit_code(prepared.error().fault)) + " " + prepared.error().message;
  } else {
    const Inside& in = *prepared->inside_;
    const bool ours =
        q.fault != nullptr && std::any_of(in.locals.begin(), in.locals.end(), [&](int32_t l) { return in.global_id(l) == q.fault->rank; });
    // Version and steps apart, so that the message can say which differs.
    std::string version = replay_version;
    std::string text = in.digest_text;
    if (ours && q.fault->kind == FaultKind::version) version += "-injected";
    if (ours && q.fault->kind == FaultKind::plan) text += "injected";
    said = "ready " + version + " " + sha256_hex(text);
  }
  auto all = q.communicator->tell_all(said, deadline);
  if (!all) return alone(all.error());
  for (const std::string& text : *all) {
    if (text.rfind("error ", 0) != 0) continue;
    const int code = text[6] - '0';
    for (Fault fault : {Fault::bad_input, Fault::no_plan, Fault::wrong_data, Fault::environment}) {
      if (exit_code(fault) == code) return Error{fault, text.substr(8)};
    }
  }
  for (size_t p = 1; p < all->size(); ++p) {
    const std::string& first = (*all)[0];
    const std::string& other = (*all)[p];
    if (first == other) continue;
    auto version_in = [](const std::string& text) { return text.substr(6, text.find(' ', 6) - 6); };
    const std::string who = place + ": the process of rank " +
                            (p < q.ranks->global_ids.size() ? std::to_string(q.ranks->global_ids[p]) : "number " + std::to_string(p));
    if (version_in(first) != version_in(other)) {
      return environment(who + " replays by version " + version_in(other) + " and the first process by " + version_in(first) +
                         "; start the same meshplan everywhere");
    }
    return wrong_data(who + " would run other steps than the first process; give every process the same plan and options");
  }
  // Communicators, in the order of the steps: the same on every process.
  Inside& in = *prepared->inside_;
  for (const PreparedStep& program : in.programs) {
    if (program.groups.empty()) continue;
    std::vector<std::vector<int32_t>> groups;
    for (const auto& group : program.groups) groups.push_back(*group);
    if (auto done = q.communicator->prepare(groups, deadline); !done) return alone(done.error());
  }
  auto filled = in.fill_source();
  return filled ? filled : Status(alone(filled.error()));
}

int64_t RedistributionRun::Inside::contribution_of(const Stand& stand, int64_t index) const {
  const std::vector<int64_t> coordinates = coordinates_of(index, stand.mesh_shape);
  int64_t k = 0;
  for (const PendingAtom& p : r->request.src.partial) {
    const auto m = static_cast<size_t>(p.atom.mesh_dim);
    k = k * p.atom.size + atom_coordinate(p.atom, stand.mesh_shape[m], coordinates[m]);
  }
  return k;
}

Status RedistributionRun::Inside::fill_source() {
  const Stand& stand = stands[0];
  int64_t bytes = 0;
  for (size_t s : local_slots[0]) bytes += volume(box_of_slot(stand, static_cast<int64_t>(s))) * size;
  return q.device->for_each(static_cast<int64_t>(local_slots[0].size()), bytes, [&](int64_t i) -> Status {
    const size_t s = local_slots[0][static_cast<size_t>(i)];
    const Box& box = box_of_slot(stand, static_cast<int64_t>(s));
    if (auto done = q.device->guard(stand.ranks[s], source[s], volume(box) * size); !done) return done;
    const int64_t k = contribution_of(stand, static_cast<int64_t>(s) % stand.size);
    return q.device->fill(stand.ranks[s], source[s], box, shape, *table, table->source_start(k, shift_of(stand, s)));
  });
}

Status RedistributionRun::Inside::poison(size_t stand) const {
  const Stand& at = stands[stand];
  return q.device->for_each(static_cast<int64_t>(local_slots[stand].size()), programs[stand - 1].local_bytes, [&](int64_t i) -> Status {
    const size_t s = local_slots[stand][static_cast<size_t>(i)];
    return q.device->poison(at.ranks[s], held(stand)[s], volume(box_of_slot(at, static_cast<int64_t>(s))) * size);
  });
}

Status RedistributionRun::Inside::run_program(const PreparedStep& program) const {
  for (const Phase& phase : program.phases) {
    const bool works = std::any_of(phase.work.begin(), phase.work.end(), [](const auto& ops) { return !ops.empty(); });
    if (works) {
      auto done = q.device->for_each(static_cast<int64_t>(phase.work.size()), program.local_bytes, [&](int64_t i) -> Status {
        const auto& ops = phase.work[static_cast<size_t>(i)];
        return ops.empty() ? Status(Done{}) : q.device->work(locals[static_cast<size_t>(i)], ops);
      });
      if (!done) return done;
    }
    if (phase.call) {
      if (auto done = q.communicator->run(*phase.call, deadline()); !done) return done;
    }
  }
  return Done{};
}

const Call* RedistributionRun::bare_call(size_t step) const {
  for (const Phase& phase : inside_->programs[step].phases) {
    if (phase.call) return &*phase.call;
  }
  return nullptr;
}

Status RedistributionRun::run_recorded() { return inside_->run_recorded(); }
Status RedistributionRun::run_step(size_t step) { return inside_->run_program(inside_->programs[step]); }

Status RedistributionRun::Inside::inject(size_t stand) const {
  if (q.fault == nullptr || q.fault->step + 1 != static_cast<int64_t>(stand)) return Done{};
  const Stand& at = stands[stand];
  for (size_t s : local_slots[stand]) {
    if (global_id(at.ranks[s]) != q.fault->rank) continue;
    const int64_t n = volume(box_of_slot(at, static_cast<int64_t>(s)));
    if (n == 0) {
      return bad_input("--inject " + to_text(*q.fault) + ": rank " + std::to_string(q.fault->rank) + " holds nothing after " +
                       place_of(*r, static_cast<size_t>(q.fault->step)) + "; choose another rank");
    }
    std::byte* data = held(stand)[s];
    std::vector<std::byte> copy(static_cast<size_t>(n * size));
    if (auto done = q.device->read(at.ranks[s], data, copy.data(), n * size); !done) return done;
    if (q.fault->kind == FaultKind::flip) {
      // The highest bit but one: of a float it is the top of the exponent, so that no later rounding hides it.
      const size_t top = static_cast<size_t>(n / 2 * size + size - 1);
      copy[top] ^= dtype == DType::boolean ? std::byte{1} : std::byte{0x40};
    } else if (q.fault->kind == FaultKind::drop) {
      for (int64_t i = n / 2 * size; i < n * size; ++i) copy[static_cast<size_t>(i)] = std::byte{0xdb};
    } else if (q.fault->kind == FaultKind::swap) {
      for (int64_t i = 1; i < n; ++i) {
        auto a = copy.begin();
        auto b = copy.begin() + i * size;
        if (std::equal(a, a + size, b)) continue;
        std::swap_ranges(a, a + size, b);
        break;
      }
    } else if (q.fault->kind == FaultKind::overrun) {
      const std::vector<std::byte> more(static_cast<size_t>(size), std::byte{0});
      return q.device->write(at.ranks[s], more.data(), data + n * size, size);
    } else {
      return Done{};
    }
    return q.device->write(at.ranks[s], copy.data(), data, n * size);
  }
  return Done{};
}

void RedistributionRun::Inside::add_difference(RedistributionReport& report, int64_t rank, int64_t step, const Box& box, int64_t at,
                                               const std::byte* expected, const std::byte* found) const {
  if (report.differences.size() >= q.options->keep_differences) return;
  report.differences.push_back({rank, step, index_at(box, at), element_text(dtype, expected), element_text(dtype, found)});
}

Status RedistributionRun::Inside::check_guards(size_t stand, RedistributionReport& report) const {
  const Stand& at = stands[stand];
  for (size_t s : local_slots[stand]) {
    auto whole = q.device->guards_whole(at.ranks[s], held(stand)[s], volume(box_of_slot(at, static_cast<int64_t>(s))) * size);
    if (!whole) return whole.error();
    if (!*whole) report.overruns.push_back({global_id(at.ranks[s]), static_cast<int64_t>(stand) - 1});
  }
  return Done{};
}

// Every element of a stand that has no pending reductions, against the answer.
Status RedistributionRun::Inside::check_stand(size_t stand, int64_t step, RedistributionReport& report) const {
  const Stand& at = stands[stand];
  const size_t n = local_slots[stand].size();
  std::vector<Comparison> found(n);
  std::vector<ErrorMeasure> errors(n);
  int64_t bytes = 0;
  for (size_t s : local_slots[stand]) bytes += volume(box_of_slot(at, static_cast<int64_t>(s))) * size;
  const bool random = q.options->data == DataKind::random;
  auto done = q.device->for_each(static_cast<int64_t>(n), bytes, [&](int64_t i) -> Status {
    const size_t s = local_slots[stand][static_cast<size_t>(i)];
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    if (!random) {
      auto compared = q.device->compare(at.ranks[s], held(stand)[s], box, shape, *table, shift_of(at, s), q.options->keep_differences);
      if (!compared) return compared.error();
      found[static_cast<size_t>(i)] = std::move(*compared);
      return Done{};
    }
    std::vector<std::byte> copy(static_cast<size_t>(volume(box) * size));
    if (auto read = q.device->read(at.ranks[s], held(stand)[s], copy.data(), static_cast<int64_t>(copy.size())); !read) return read;
    errors[static_cast<size_t>(i)] = measure_error(copy.data(), box, shape, *table, shift_of(at, s), q.options->keep_differences);
    found[static_cast<size_t>(i)] = errors[static_cast<size_t>(i)].beyond;
    return Done{};
  });
  if (!done) return done;
  for (size_t i = 0; i < n; ++i) {
    const size_t s = local_slots[stand][i];
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    report.checked += volume(box);
    report.wrong += found[i].wrong;
    report.largest_ulp = std::max(report.largest_ulp, errors[i].ulp);
    report.largest_relative = std::max(report.largest_relative, errors[i].relative);
    for (int64_t element : found[i].first) {
      std::byte value[8];
      if (auto read = q.device->read(at.ranks[s], held(stand)[s] + element * size, value, size); !read) return read;
      const int64_t number = offset_in(
          [&] {
            Box one;
            for (int64_t x : index_at(box, element)) one.push_back({x, x + 1});
            return one;
          }(),
          full_box(shape));
      const int64_t position = (shift_of(at, s) + number) % table->period();
      add_difference(report, global_id(at.ranks[s]), step, box, element, table->answer() + position * size, value);
    }
  }
  return Done{};
}

// A stand on the way: what each rank should hold, from the source's contributions; `known` is false where a step has set up new reductions.
Status RedistributionRun::Inside::check_middle(size_t stand, RedistributionReport& report, bool& known) const {
  const Stand& at = stands[stand];
  const Stand& first = stands[0];
  known = true;
  if (at.state.partial.empty()) return check_stand(stand, static_cast<int64_t>(stand) - 1, report);
  auto added = atoms_without(partial_atoms(at.state), partial_atoms(r->request.src), at.mesh_shape);
  if (at.mesh != first.mesh || !added || !added->empty() || q.options->data == DataKind::random) {
    known = false;
    return Done{};
  }
  auto reduced = atoms_without(partial_atoms(r->request.src), partial_atoms(at.state), at.mesh_shape);
  if (!reduced) return reduced.error();
  int64_t divisor = 1;
  for (const Atom& a : *reduced) {
    for (const PendingAtom& p : r->request.src.partial) {
      if (p.atom.mesh_dim == a.mesh_dim && p.op == ReduceOp::avg) divisor *= a.size;
    }
  }
  const DigitSet free(*reduced, at.mesh_shape);
  const ReduceOp op = table->question().op;
  for (size_t s : local_slots[stand]) {
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    const int64_t n = volume(box);
    const int64_t index = static_cast<int64_t>(s) % at.size;
    std::vector<std::byte> expected(static_cast<size_t>(n * size));
    std::vector<std::byte> one(expected.size());
    bool begun = false;
    // Contributions of the ranks that differ on the reduced digits only, in row-major order.
    for (int64_t other = 0; other < at.size; ++other) {
      if (other - free.part(other) != index - free.part(index)) continue;
      const int64_t k = contribution_of(at, other);
      fill_box(begun ? one.data() : expected.data(), box, shape, table->source(), table->period(), table->source_start(k, shift_of(at, s)),
               size);
      if (begun) combine(dtype, op, expected.data(), one.data(), n);
      begun = true;
    }
    divide_by(dtype, expected.data(), n, divisor);
    std::vector<std::byte> found(expected.size());
    if (auto read = q.device->read(at.ranks[s], held(stand)[s], found.data(), n * size); !read) return read;
    for (int64_t i = 0; i < n; ++i) {
      const std::byte* a = expected.data() + i * size;
      const std::byte* b = found.data() + i * size;
      if (std::equal(a, a + size, b)) continue;
      ++report.wrong;
      add_difference(report, global_id(at.ranks[s]), static_cast<int64_t>(stand) - 1, box, i, a, b);
    }
  }
  return Done{};
}

// The injected faults that are a process's behaviour, before the step.
void RedistributionRun::Inside::act_as_told(size_t step) const {
  if (q.fault == nullptr || q.fault->step != static_cast<int64_t>(step)) return;
  const bool ours = std::any_of(locals.begin(), locals.end(), [&](int32_t l) { return global_id(l) == q.fault->rank; });
  if (!ours) return;
  if (q.fault->kind == FaultKind::exit) std::_Exit(5);
  if (q.fault->kind == FaultKind::hang) {
    // Long past every deadline, yet not for ever.
    std::this_thread::sleep_for(std::chrono::minutes(10));
    std::_Exit(5);
  }
}

Status RedistributionRun::Inside::run_all() const {
  for (size_t i = 0; i < programs.size(); ++i) {
    act_as_told(i);
    if (auto done = q.communicator->roll_call(i < r->steps.size() ? place_of(*r, i) : "redistribution '" + r->request.id + "', its end",
                                              deadline());
        !done) {
      return done;
    }
    if (auto done = poison(i + 1); !done) return done;
    if (auto done = run_program(programs[i]); !done) return done;
    if (auto done = inject(i + 1); !done) return done;
  }
  return Done{};
}

Status RedistributionRun::Inside::run_recorded() {
  if (!recorded) {
    auto made = q.device->record([&]() -> Status {
      for (const PreparedStep& program : programs) {
        if (auto done = run_program(program); !done) return done;
      }
      return Done{};
    });
    if (!made) return made.error();
    if (!*made) {
      return bad_input("--graph: the " + q.communicator->name() + " backend cannot record a graph here; leave it out");
    }
    recorded = true;
  }
  return q.device->run_recorded();
}

// The same steps once more, as a graph, into poisoned buffers.
Status RedistributionRun::Inside::check_recorded(RedistributionReport& report) {
  for (size_t i = 1; i < stands.size(); ++i) {
    if (auto done = poison(i); !done) return done;
  }
  if (auto done = q.device->synchronise(); !done) return done;
  if (auto done = run_recorded(); !done) return done;
  if (auto done = q.communicator->barrier(deadline()); !done) return done;
  if (auto done = check_guards(stands.size() - 1, report); !done) return done;
  return check_stand(stands.size() - 1, static_cast<int64_t>(r->steps.size()) - 1, report);
}

Result<int64_t> RedistributionRun::Inside::everyones_sum(int64_t value) const {
  auto all = q.communicator->tell_all(std::to_string(value), deadline());
  if (!all) return all.error();
  int64_t sum = 0;
  for (const std::string& text : *all) sum += parse_int(text).value_or(0);
  return sum;
}

// Runs again, step by step, until the data of some rank is wrong; what is found there replaces what was found at the end.
Status RedistributionRun::Inside::find_first_wrong(RedistributionReport& report) const {
  for (size_t i = 0; i <= r->steps.size() && i < stands.size(); ++i) {
    if (i > 0) {
      if (auto done = poison(i); !done) return done;
      if (auto done = run_program(programs[i - 1]); !done) return done;
      if (auto done = inject(i); !done) return done;
    }
    RedistributionReport here;
    bool known = true;
    if (auto done = check_middle(i, here, known); !done) return done;
    auto wrong = everyones_sum(here.wrong);
    if (!wrong) return wrong.error();
    if (*wrong == 0) continue;
    report.differences = std::move(here.differences);
    return Done{};
  }
  return Done{};
}

Result<RedistributionReport> RedistributionRun::run_and_check() {
  Inside& in = *inside_;
  RedistributionReport report;
  report.id = in.r->request.id;
  report.shape = in.r->request.tensor.shape;
  report.replay_shape = in.shape;
  report.shrunk = in.shrunk;
  report.steps = static_cast<int64_t>(in.r->steps.size());
  report.weak = in.table->question().kind == DataKind::exact && in.table->all_zero();
  std::vector<int32_t> ranks;
  for (const Stand& stand : in.stands) ranks.insert(ranks.end(), stand.ranks.begin(), stand.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  report.ranks = std::unique(ranks.begin(), ranks.end()) - ranks.begin();

  if (auto done = in.run_all(); !done) return done.error();
  for (size_t i = 0; i < in.stands.size(); ++i) {
    if (auto done = in.check_guards(i, report); !done) return done.error();
  }
  if (auto done = in.check_stand(in.stands.size() - 1, report.steps - 1, report); !done) return done.error();
  auto wrong = in.everyones_sum(report.wrong);
  if (!wrong) return wrong.error();
  if (*wrong > 0) {
    if (auto done = in.find_first_wrong(report); !done) return done.error();
  } else if (in.q.options->graph) {
    if (auto done = in.check_recorded(report); !done) return done.error();
  }
  auto all = in.q.communicator->tell_all(encode(report), in.deadline());
  if (!all) return all.error();
  if (all->size() > 1) {
    report.checked = report.wrong = 0;
    report.differences.clear();
    report.overruns.clear();
    for (const std::string& text : *all) add_encoded(text, report);
  }
  std::stable_sort(report.differences.begin(), report.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.rank < b.rank; });
  if (report.differences.size() > in.q.options->keep_differences) report.differences.resize(in.q.options->keep_differences);
  return report;
}

Result<ReplayReport> replay(const Plan& plan, const ReplayOptions& options, Communicator& communicator, Device& device) {
  if (!plan.meshes.universe) return bad_input("the plan has no mesh; make it again with meshplan plan");
  const RankTable ranks = make_rank_table(*plan.meshes.universe);
  const auto world = static_cast<int64_t>(ranks.global_ids.size());
  if (communicator.world() < world) {
    return environment("the plan needs " + std::to_string(world) + " ranks and there are " + std::to_string(communicator.world()) +
                       "; start as many processes");
  }
  std::vector<const PlannedRedistribution*> chosen;
  for (const std::string& id : options.only_ids) {
    const bool known =
        std::any_of(plan.redistributions.begin(), plan.redistributions.end(), [&](const auto& r) { return r.request.id == id; });
    if (known) continue;
    std::vector<std::string> ids;
    for (const PlannedRedistribution& r : plan.redistributions) ids.push_back(r.request.id);
    std::string message = "the plan has no redistribution '" + id + "'";
    if (auto near = nearest(id, ids)) message += "; did you mean '" + *near + "'?";
    return bad_input(message);
  }
  for (const PlannedRedistribution& r : plan.redistributions) {
    const bool wanted =
        options.only_ids.empty() || std::find(options.only_ids.begin(), options.only_ids.end(), r.request.id) != options.only_ids.end();
    if (wanted) chosen.push_back(&r);
  }
  // Each fault goes into the first redistribution that has its step.
  std::map<const PlannedRedistribution*, const InjectedFault*> faults;
  for (const InjectedFault& fault : options.faults) {
    if (!std::binary_search(ranks.global_ids.begin(), ranks.global_ids.end(), fault.rank)) {
      return bad_input("--inject " + to_text(fault) + ": the plan has no rank " + std::to_string(fault.rank));
    }
    if (needs_process(fault.kind) && communicator.local_ranks().size() > 1) {
      return bad_input("--inject " + to_text(fault) + ": the " + communicator.name() +
                       " backend has one process for all ranks; use --backend mpi" + (communicator.name() == "nccl" ? " or --launch" : ""));
    }
    auto target = std::find_if(chosen.begin(), chosen.end(), [&](const PlannedRedistribution* r) {
      return static_cast<int64_t>(r->steps.size()) > fault.step && faults.find(r) == faults.end();
    });
    if (target == chosen.end()) {
      return bad_input("--inject " + to_text(fault) + ": no redistribution left has a step " + std::to_string(fault.step));
    }
    faults[*target] = &fault;
  }
  ReplayReport report;
  report.backend = communicator.name();
  report.ranks = world;
  report.speaks = communicator.speaks();
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
    RedistributionRun::Question question{
        &plan, &r, &options, &ranks, &communicator, &device, fault == faults.end() ? nullptr : fault->second};
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
