#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/text.h"
#include "replay/agreement.h"
#include "replay/gather_reports.h"
#include "replay/run_inside.h"
#include "replay/strike.h"

namespace meshplan {
namespace {

std::string encode(const RedistributionReport& report) {
  std::ostringstream head;  // significant digits, which std::to_string does not keep
  head << report.checked << ' ' << report.wrong << ' ' << report.largest_ulp << ' '
       << report.largest_relative << '\n';
  std::string out = head.str();
  for (const Difference& d : report.differences) {
    out += "d " + std::to_string(d.rank) + " " + std::to_string(d.step) + " " + d.expected + " " +
           d.found;
    for (int64_t i : d.index) out += " " + std::to_string(i);
    out += "\n";
  }
  for (const Overrun& o : report.overruns)
    out += "o " + std::to_string(o.rank) + " " + std::to_string(o.step) + "\n";
  return out;
}

// Adds the results of another process.
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

Status do_local_work(Device& device, const std::vector<int32_t>& locals,
                     const std::vector<std::vector<LocalOp>>& work, int64_t bytes) {
  if (std::all_of(work.begin(), work.end(), [](const auto& ops) { return ops.empty(); }))
    return Done{};
  return device.for_each(std::ssize(work), bytes, [&](int64_t i) -> Status {
    return work[i].empty() ? Status(Done{}) : device.work(locals[i], work[i]);
  });
}

RedistributionRun::RedistributionRun(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
RedistributionRun::~RedistributionRun() = default;
RedistributionRun::RedistributionRun(RedistributionRun&&) noexcept = default;
size_t RedistributionRun::steps() const { return inside_->r->steps.size(); }
std::string RedistributionRun::place() const { return place_of(*inside_->r); }
std::string RedistributionRun::place(size_t step) const { return place_of(*inside_->r, step); }
const std::vector<int64_t>& RedistributionRun::replay_shape() const { return inside_->shape; }

Status RedistributionRun::Inside::poison(size_t state) const {
  const HeldBoxes& at = held_boxes[state];
  return q.device->for_each(
      std::ssize(local_slots[state]), prepared[state - 1].local_bytes, [&](int64_t i) -> Status {
        const size_t s = local_slots[state][i];
        return q.device->poison(at.ranks[s], held(state)[s],
                                volume(box_of_slot(at, static_cast<int64_t>(s))) * size);
      });
}

Status RedistributionRun::Inside::run_prepared(const PreparedStep& step) const {
  for (const Phase& phase : step.phases) {
    if (auto done = do_local_work(*q.device, locals, phase.work, step.local_bytes); !done)
      return done;
    if (phase.call) {
      if (auto done = q.communicator->run(*phase.call, deadline()); !done) return done;
    }
  }
  return Done{};
}

const Call* RedistributionRun::bare_call(size_t step) const {
  for (const Phase& phase : inside_->prepared[step].phases) {
    if (phase.call) return &*phase.call;
  }
  return nullptr;
}

Status RedistributionRun::run_recorded() {
  return inside_->run_recorded(inside_->prepared, inside_->recorded);
}
Status RedistributionRun::run_recorded_step(size_t step) {
  inside_->recorded_steps.resize(steps());
  const std::string place = place_of(*inside_->r, step);
  auto started =
      inside_->run_recorded({&inside_->prepared[step], 1}, inside_->recorded_steps[step]);
  return started ? inside_->q.communicator->wait_for_recorded(place, inside_->deadline()) : started;
}
Status RedistributionRun::run_step(size_t step) {
  return inside_->run_prepared(inside_->prepared[step]);
}

Status RedistributionRun::Inside::inject(size_t state) const {
  if (q.fault == nullptr || q.fault->step + 1 != static_cast<int64_t>(state)) return Done{};
  const HeldBoxes& at = held_boxes[state];
  for (size_t s : local_slots[state]) {
    if (global_id(at.ranks[s]) != q.fault->rank) continue;
    const int64_t n = volume(box_of_slot(at, static_cast<int64_t>(s)));
    if (n == 0) break;
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    const auto struck =
        strike_box({at.ranks[s], held(state)[s], n, dtype}, q.fault->kind, all, *q.device);
    if (!struck) return struck.error();
    if (*struck) return Done{};
    return changes_nothing(*q.fault, place_of(*r, static_cast<size_t>(q.fault->step)));
  }
  // Its box is empty, or it is on the other mesh.
  if (needs_process(q.fault->kind) || q.fault->kind == FaultKind::memory) return Done{};
  if (!is_ours(*q.fault, *q.ranks, *q.communicator)) return Done{};
  return bad_input("--inject " + to_text(*q.fault) + ": rank " + std::to_string(q.fault->rank) +
                   " has no data after " + place_of(*r, static_cast<size_t>(q.fault->step)) +
                   "; choose another rank");
}

// Injected faults of the process itself, before the step.
void RedistributionRun::Inside::act_as_told(size_t step) const {
  if (q.fault == nullptr || q.fault->step != static_cast<int64_t>(step)) return;
  if (is_ours(*q.fault, *q.ranks, *q.communicator)) strike_process(q.fault->kind);
}

Status RedistributionRun::Inside::run_all() const {
  for (size_t i = 0; i < prepared.size(); ++i) {
    act_as_told(i);
    if (auto done = q.communicator->barrier_with_deadline(
            i < r->steps.size() ? place_of(*r, i) : place_of(*r) + ", after the last step",
            deadline());
        !done) {
      return done;
    }
    if (auto done = poison(i + 1); !done) return done;
    if (auto done = run_prepared(prepared[i]); !done) return done;
    if (auto done = inject(i + 1); !done) return done;
  }
  return Done{};
}

Status RedistributionRun::Inside::run_recorded(std::span<const PreparedStep> steps,
                                               std::optional<int64_t>& number) const {
  if (!number) {
    const auto made = q.device->record([&]() -> Status {
      for (const PreparedStep& step : steps) {
        if (auto done = run_prepared(step); !done) return done;
      }
      return Done{};
    });
    if (!made) return made.error();
    if (!*made) {
      return bad_input("--graph: the " + q.communicator->name() +
                       " backend does not support graphs here; omit it");
    }
    number = *made;
  }
  return q.device->run_recorded(*number);
}

// Run the same steps again as a graph, into poisoned buffers.
Status RedistributionRun::Inside::check_recorded(RedistributionReport& report) {
  for (size_t i = 1; i < held_boxes.size(); ++i) {
    if (auto done = poison(i); !done) return done;
  }
  if (auto done = q.device->synchronise(); !done) return done;
  if (auto done = run_recorded(prepared, recorded); !done) return done;
  if (auto done = q.communicator->barrier(place_of(*r) + ", as a graph", deadline()); !done)
    return done;
  if (auto done = check_guards(held_boxes.size() - 1, report); !done) return done;
  return check_state(held_boxes.size() - 1, std::ssize(r->steps) - 1, report);
}

Result<int64_t> RedistributionRun::Inside::everyones_sum(int64_t value) const {
  auto all = q.communicator->tell_all(std::to_string(value), deadline());
  if (!all) return all.error();
  int64_t sum = 0;
  for (const std::string& text : *all) sum += parse_int(text).value_or(0);
  return sum;
}

// Runs again step by step until some rank has wrong data; these findings replace those of the final
// check.
Status RedistributionRun::Inside::find_first_wrong(RedistributionReport& report) const {
  for (size_t i = 0; i <= r->steps.size() && i < held_boxes.size(); ++i) {
    if (i > 0) {
      if (auto done = poison(i); !done) return done;
      if (auto done = run_prepared(prepared[i - 1]); !done) return done;
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
  report.steps = std::ssize(in.r->steps);
  report.weak = in.table->question().kind == DataKind::exact && in.table->all_zero();
  std::vector<int32_t> ranks;
  for (const HeldBoxes& at : in.held_boxes)
    ranks.insert(ranks.end(), at.ranks.begin(), at.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  report.ranks = std::unique(ranks.begin(), ranks.end()) - ranks.begin();

  if (auto done = in.run_all(); !done) return done.error();
  for (size_t i = 0; i < in.held_boxes.size(); ++i) {
    if (auto done = in.check_guards(i, report); !done) return done.error();
  }
  if (auto done = in.check_state(in.held_boxes.size() - 1, report.steps - 1, report); !done)
    return done.error();
  auto wrong = in.everyones_sum(report.wrong);
  if (!wrong) return wrong.error();
  if (*wrong > 0) {
    if (auto done = in.find_first_wrong(report); !done) return done.error();
  } else if (in.q.options->graph) {
    if (auto done = in.check_recorded(report); !done) return done.error();
  }
  if (auto done = gather_reports(*in.q.communicator, in.deadline(), in.q.options->keep_differences,
                                 report, encode, add_encoded);
      !done)
    return done.error();
  return report;
}

}  // namespace meshplan
