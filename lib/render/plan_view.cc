#include "render/plan_view.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/int_math.h"
#include "base/text.h"
#include "plan/firsts.h"
#include "plan/notes.h"
#include "plan/step_mesh.h"

namespace meshplan {

std::string time_text(int64_t ps) { return human_ns(ns_of_ps(ps)); }

StepQuestion step_question(const Plan& plan, const PlannedRedistribution& r, size_t index) {
  StepQuestion question;
  question.topology = &plan.topology;
  question.src_mesh = &mesh_before(plan.meshes, r, index);
  question.dst_mesh = &mesh_after(plan.meshes, r.request, r.steps[index]);
  question.tensor = &r.request.tensor;
  question.reduce_dtype = r.request.reduce_dtype;
  question.before = index == 0 ? &r.request.src : &r.steps[index - 1].state;
  question.step = &r.steps[index];
  return question;
}

namespace {

// The name of the outermost topology level that a step reaches; "" where it is local.
std::string step_level(const Plan& plan, const PlannedRedistribution& r, size_t step) {
  const StepCost cost = price_step(step_question(plan, r, step));
  if (cost.level < 0 || cost.level >= std::ssize(plan.topology.levels)) return {};
  const TopologyLevel& level = plan.topology.levels[cost.level];
  return level.name.empty() ? "level " + std::to_string(cost.level) : level.name;
}

}  // namespace

std::string step_name(const Step& step) {
  std::string name = to_text(step.op);
  if (step.phases > 1) name += ", " + std::to_string(step.phases) + " phases";
  name += way_text(step);
  return name;
}

std::string step_arithmetic(const Step& step) {
  std::string text = step.reduce_op ? to_text(*step.reduce_op) : "";
  if (step.scale_divisor != 1)
    text += (text.empty() ? "x 1/" : ", x 1/") + std::to_string(step.scale_divisor);
  return text;
}

namespace {

// Collectives and bytes of a redistribution if no steps were merged, from its unmerged trace;
// nullopt where that trace has steps over several mesh dims.
std::optional<Totals> unmerged_totals(const Plan& plan, const PlannedRedistribution& r) {
  if (r.unmerged_trace == r.trace) return r.totals;
  if (r.request.src_mesh != r.request.dst_mesh) return std::nullopt;
  const Mesh& mesh = plan.meshes.meshes[r.request.src_mesh];
  const std::vector<int64_t> shape = mesh_shape(mesh);
  Totals totals;
  std::optional<State> before;
  for (const std::string_view text : texts_of_states(r.unmerged_trace)) {
    auto after = parse_state(text, shape, r.request.tensor.shape.size());
    if (!after || !has_whole_dims(*after, shape)) return std::nullopt;
    if (before) {
      const auto from = placements_of(*before, shape);
      const auto to = placements_of(*after, shape);
      Step step;
      for (size_t m = 0; m < shape.size(); ++m) {
        if (from[m] == to[m]) continue;
        if (!step.mesh_dims.empty()) return std::nullopt;
        step.mesh_dims.push_back({static_cast<int32_t>(m), 1, shape[m]});
        step.op = op_between(from[m], to[m]);
        if (is_partial(from[m])) step.reduce_op = from[m].op;
      }
      if (step.mesh_dims.empty()) return std::nullopt;
      step.state = *after;
      StepQuestion question;
      question.topology = &plan.topology;
      question.src_mesh = question.dst_mesh = &mesh;
      question.tensor = &r.request.tensor;
      question.reduce_dtype = r.request.reduce_dtype;
      question.before = &*before;
      question.step = &step;
      const StepCost cost = price_step(question);
      if (!is_local(step.op) && step.mesh_dims[0].size > 1) ++totals.collectives;
      totals.wire_bytes = saturating_add(totals.wire_bytes, cost.wire_bytes);
      totals.predicted_ps = saturating_add(totals.predicted_ps, cost.predicted_ps);
      totals.peak_bytes = std::max(totals.peak_bytes, cost.peak_bytes);
    }
    before = std::move(after).value();
  }
  return totals;
}

// The same for the file, count-weighted.
std::optional<Totals> unmerged_totals(const Plan& plan) {
  const std::vector<size_t> firsts = firsts_of(plan.redistributions);
  std::vector<Totals> known(firsts.size());  // of those that repeat none
  Totals sum;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    if (firsts[i] == i) {
      const auto totals = unmerged_totals(plan, r);
      if (!totals) return std::nullopt;
      known[i] = *totals;
    }
    add_weighted(sum, known[firsts[i]], r.request.count);
  }
  return sum;
}

}  // namespace

std::string tensor_text(const TensorMeta& tensor) {
  std::string text = std::string(to_text(tensor.dtype)) + "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

std::string change_text(const Plan& plan, const PlannedRedistribution& r) {
  const Mesh& src = plan.meshes.meshes[r.request.src_mesh];
  const Mesh& dst = plan.meshes.meshes[r.request.dst_mesh];
  const std::string from = to_text(r.request.src, mesh_shape(src));
  const std::string to = to_text(r.dst, mesh_shape(dst));
  if (r.request.src_mesh == r.request.dst_mesh) return from + " -> " + to;
  return from + " on " + src.name + " -> " + to + " on " + dst.name;
}

std::string redistribution_title(const Plan& plan, const PlannedRedistribution& r) {
  return r.request.id + (r.request.count > 1 ? " x" + with_commas(r.request.count) : "") + "  " +
         tensor_text(r.request.tensor) + "  " + change_text(plan, r);
}

std::string notes_text(const Plan& plan, const PlannedRedistribution& r) {
  std::string text = where_text(r.request);
  const std::vector<std::string> names = partial_names(r.request);
  const Mesh& mesh = plan.meshes.meshes[r.request.src_mesh];
  for (size_t i = 0; i < names.size() && i < mesh.dims.size(); ++i) {
    if (!names[i].empty())
      text += (text.empty() ? "" : "; ") + names[i] + " on " + mesh.dims[i].name;
  }
  return text;
}

std::string mesh_text(const Plan& plan, const Mesh& mesh) {
  const int64_t ranks = mesh_size(mesh);
  const int64_t copies = mesh_copies(mesh);
  std::string text = to_text(mesh) + ", " + counted(ranks, "rank") +
                     (copies > 1 ? " (" + with_commas(copies) + " copies)" : "");
  if (!has_several_universes(plan.meshes)) return text;
  const Mesh& root = root_of(plan.meshes, mesh);
  return text +
         (&root == &mesh ? ": " + rank_runs(*mesh.universe) : ", in the universe of " + root.name);
}

std::vector<size_t> chosen_redistributions(const Plan& plan, const ShowOptions& options) {
  std::vector<size_t> chosen(plan.redistributions.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  if (options.top <= 0) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) {
    const Totals x = weighted(plan.redistributions[a]);
    const Totals y = weighted(plan.redistributions[b]);
    return std::pair(x.predicted_ps, x.wire_bytes) > std::pair(y.predicted_ps, y.wire_bytes);
  });
  if (chosen.size() > static_cast<size_t>(options.top))
    chosen.resize(static_cast<size_t>(options.top));
  return chosen;
}

std::vector<size_t> repeated_by(const Plan& plan, const std::vector<size_t>& chosen) {
  const std::vector<size_t> firsts = firsts_of(plan.redistributions);
  std::unordered_map<size_t, size_t> shown;  // by first of the file
  std::vector<size_t> repeated;
  repeated.reserve(chosen.size());
  for (const size_t index : chosen)
    repeated.push_back(shown.try_emplace(firsts[index], index).first->second);
  return repeated;
}

namespace {

// "wq x32  bfloat16[32, 8192]  S(0)R -> RR  (at least 1.00 MiB, 20.5 us)  [layers.0.wq, train.py:9]"
std::string heading_of(const Plan& plan, const PlannedRedistribution& r,
                       const PlannedRedistribution* first, bool communicates,
                       const ShowOptions& options) {
  std::string heading =
      r.request.id + (r.request.count > 1 ? " x" + with_commas(r.request.count) : "") + "  ";
  if (first != nullptr) {
    heading += "the same as " + first->request.id;
  } else {
    heading += tensor_text(r.request.tensor) + "  " + change_text(plan, r);
    if (communicates) {
      heading += "  (at least " + human_bytes(r.totals.lower_bound_bytes) +
                 (options.costs ? ", " + time_text(r.totals.lower_bound_ps) : std::string()) + ")";
    }
  }
  const std::string notes = notes_text(plan, r);
  return notes.empty() ? heading : heading + "  [" + notes + "]";
}

}  // namespace

Table step_table(const Plan& plan, const ShowOptions& options) {
  Table table;
  table.columns = {{"op"},
                   {"group"},
                   {"ranks", true, false, true},
                   {"wire bytes", true},
                   {"link", false, false, true},
                   {"predicted", true},
                   {"peak", true, false, true},
                   {"why", false, true}};
  if (!options.costs) table.columns.erase(table.columns.begin() + 4, table.columns.begin() + 6);
  size_t shown = 0;
  const std::vector<size_t> chosen = chosen_redistributions(plan, options);
  const std::vector<size_t> repeated = repeated_by(plan, chosen);
  for (size_t c = 0; c < chosen.size(); ++c) {
    const PlannedRedistribution& r = plan.redistributions[chosen[c]];
    const bool communicates = std::any_of(r.steps.begin(), r.steps.end(),
                                          [](const Step& step) { return !is_local(step.op); });
    if (!communicates && options.detail != Detail::full) continue;
    ++shown;
    const bool repeats = repeated[c] != chosen[c];
    table.rows.push_back(
        {{},
         heading_of(plan, r, repeats ? &plan.redistributions[repeated[c]] : nullptr, communicates,
                    options)});
    if (repeats) continue;
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const Step& step = r.steps[i];
      if (is_local(step.op) && options.detail != Detail::full) continue;
      const std::string arithmetic = step_arithmetic(step);
      const bool local = is_local(step.op);
      std::vector<std::string> cells = {
          step_name(step) + (arithmetic.empty() ? "" : " " + arithmetic),
          step.group,
          std::to_string(step_ranks(plan, r, step)),
          local ? "0 B" : human_bytes(step.wire_bytes),
          step_level(plan, r, i),
          local ? "0 ns" : time_text(step.predicted_ps),
          human_bytes(step.peak_bytes),
          step.why};
      if (!options.costs) cells.erase(cells.begin() + 4, cells.begin() + 6);
      table.rows.push_back({std::move(cells), {}});
    }
  }
  const size_t left = plan.redistributions.size() - shown;
  if (left > 0) {
    table.rows.push_back({{},
                          std::to_string(left) + (shown > 0 ? " more" : "") +
                              (left == 1 ? " redistribution" : " redistributions") +
                              (options.top > 0 ? "" : " without communication")});
  }
  return table;
}

namespace {

// The rows of a summary.
class SummaryRows {
 public:
  SummaryRows(const Plan& plan, const ShowOptions& options, Table& table)
      : all_ps_(plan.totals.predicted_ps), costs_(options.costs), table_(table) {}

  // What a bundle runs has no share of the time by itself.
  void add(std::string name, int64_t count, const Totals& totals, std::string trace,
           bool bundled = false) {
    std::vector<std::string> cells = {
        std::move(name), with_commas(count), with_commas(totals.collectives),
        human_bytes(totals.wire_bytes), human_bytes(totals.lower_bound_bytes)};
    if (costs_) {
      cells.push_back(time_text(totals.predicted_ps));
      cells.push_back(time_text(totals.lower_bound_ps));
      cells.push_back(bundled ? "in bundle" : share_of(totals.predicted_ps));
    }
    cells.push_back(std::move(trace));
    table_.rows.push_back({std::move(cells), {}});
  }

  void add(const PlannedBundle& bundle) {
    add("bundle " + bundle.request.id, bundle.request.count, weighted(bundle),
        counted(bundle.totals.rounds, "round"));
    // A file has what it must receive in its own totals alone.
    if (bundle.totals.lower_bound_bytes == 0) table_.rows.back().cells[4].clear();
  }

 private:
  // Tenths of a percent, in integers: the share of the whole.
  [[nodiscard]] std::string share_of(int64_t ps) const {
    const auto share = all_ps_ > 0 ? static_cast<int64_t>(int128{ps} * 1000 / all_ps_) : 0;
    return std::to_string(share / 10) + "." + std::to_string(share % 10) + " %";
  }

  int64_t all_ps_;
  bool costs_;
  Table& table_;
};

}  // namespace

Table summary_table(const Plan& plan, const ShowOptions& options) {
  Table table;
  table.columns = {{"redistribution"},
                   {"count", true},
                   {"collectives", true, false, true},
                   {"wire bytes", true},
                   {"at least", true, false, true},
                   {"predicted", true},
                   {"at least", true, false, true},
                   {"share", true, false, true},
                   {"trace", false, true}};
  if (!options.costs) table.columns.erase(table.columns.begin() + 5, table.columns.begin() + 8);
  SummaryRows rows(plan, options, table);
  const std::vector<bool> bundled = run_by_bundles(plan);
  std::vector<bool> shown(plan.redistributions.size());
  for (const size_t index : chosen_redistributions(plan, options)) {
    const PlannedRedistribution& r = plan.redistributions[index];
    shown[index] = true;
    rows.add(r.request.id, r.request.count, weighted(r), r.trace, bundled[index]);
  }
  // Members that are not shown are in the rows of their bundles.
  Totals others;
  int64_t others_count = 0;
  int64_t left_out = 0;
  int64_t count = 0;
  for (size_t i = 0; i < shown.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    count = saturating_add(count, r.request.count);
    if (shown[i] || bundled[i]) continue;
    add_weighted(others, r.totals, r.request.count);
    others_count = saturating_add(others_count, r.request.count);
    ++left_out;
  }
  if (left_out > 0) rows.add("Others (" + std::to_string(left_out) + ")", others_count, others, "");
  for (const PlannedBundle& bundle : plan.bundles) rows.add(bundle);
  rows.add("TOTAL", count, plan.totals, "");
  return table;
}

std::string summary_line(const Plan& plan, const ShowOptions& options) {
  const Totals& totals = plan.totals;
  auto unmerged = unmerged_totals(plan);
  if (!plan.bundles.empty()) unmerged.reset();  // a round has steps of several redistributions
  if (unmerged && unmerged->collectives == totals.collectives &&
      unmerged->wire_bytes == totals.wire_bytes)
    unmerged.reset();
  std::string text = counted(totals.collectives, "collective");
  if (unmerged) text += " (" + with_commas(unmerged->collectives) + " unmerged)";
  text += ", " + human_bytes(totals.wire_bytes) + " received by a rank (";
  if (unmerged) text += human_bytes(unmerged->wire_bytes) + " unmerged, ";
  text += "at least " + human_bytes(totals.lower_bound_bytes) + ")";
  if (options.costs)
    text += ", " + time_text(totals.predicted_ps) + " predicted (at least " +
            time_text(totals.lower_bound_ps) + ")";
  text += ", peak " + human_bytes(totals.peak_bytes);
  return options.totals_note.empty() ? text : text + "; " + options.totals_note;
}

namespace {

// Findings of one code.
struct Found {
  int64_t redistributions = 0;
  int64_t bytes = 0;  // more than the better plan, counts included
  int64_t ps = 0;
};

Found found_in(const Plan& plan, std::string_view code) {
  Found found;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const AuditFinding& finding : r.audit) {
      if (finding.code != code) continue;
      ++found.redistributions;
      add_weighted(found.bytes, finding.wire_bytes - finding.better_wire_bytes, r.request.count);
      add_weighted(found.ps, finding.predicted_ps - finding.better_predicted_ps, r.request.count);
    }
  }
  return found;
}

std::string found_text(std::string_view code, const Found& found) {
  return " (" + std::string(code) + ", " + counted(found.redistributions, "redistribution") + ")";
}

}  // namespace

std::vector<std::string> notes_below(const PlannedRedistribution& r, Detail detail) {
  std::vector<std::string> notes;
  for (const ReductionNote& note : r.reductions) {
    if (detail != Detail::full) break;
    notes.push_back("the reduction over " + join(note.dims, ", ") + " runs in " +
                    counted(note.collectives, "collective") + ": " + note.nesting);
  }
  for (const AuditFinding& finding : r.audit) notes.push_back(finding.code + " " + finding.message);
  for (const Alternative& other : r.alternatives) {
    notes.push_back("instead " + other.trace + ": " + human_bytes(other.totals.wire_bytes) + ", " +
                    human_ns(ns_of_ps(other.totals.predicted_ps)));
  }
  if (r.proven_gap_ps > 0 && detail == Detail::full) {
    notes.push_back("the search was limited (" + to_text(r.shortcuts) + "); the best is at most " +
                    human_ns(ns_of_ps(r.proven_gap_ps)) + " faster");
  }
  return notes;
}

std::vector<std::string> audit_lines(const Plan& plan, const ShowOptions& options) {
  std::vector<std::string> lines;
  if (const Found torch = found_in(plan, "A0408"); torch.redistributions > 0) {
    const std::string moves =
        torch.bytes < 0 ? human_bytes(-torch.bytes) + " less" : human_bytes(torch.bytes) + " more";
    const std::string takes =
        options.costs ? " and take " + human_ns(ns_of_ps(torch.ps)) + " longer" : std::string();
    lines.push_back("PyTorch's own plans move " + moves + " a rank" + takes +
                    found_text("A0408", torch));
  }
  const auto add_saving = [&](const char* code, const std::string& what) {
    const Found found = found_in(plan, code);
    if (found.redistributions == 0) return;
    const std::string saved = options.costs ? human_ns(ns_of_ps(found.ps)) : "time";
    lines.push_back(what + " would save " + saved + found_text(code, found));
  };
  add_saving("A0409", "split mesh dims");
  if (const Found limit = found_in(plan, "A0410"); limit.redistributions > 0) {
    const std::string costs = options.costs ? human_ns(ns_of_ps(limit.ps)) : "time";
    lines.push_back("the memory limit costs " + costs + found_text("A0410", limit));
  }
  add_saving("A0411", "sums of zero-filled shards");
  return lines;
}

namespace {

// A spec or a file of its own gave one without a name.
std::string topology_text(const Topology& topology) {
  if (!topology.name.empty()) return topology.name;
  return topology.source.empty() ? "of its own" : topology.source;
}

}  // namespace

std::string planning_line(const Plan& plan) {
  const PlanOptions& options = plan.options;
  std::string text = std::string("planner ") + to_text(options.planner) + ", rules " +
                     to_text(options.rules) + ", groups " + to_text(options.groups) +
                     ", topology " + topology_text(plan.topology);
  if (options.max_memory_bytes > 0)
    text += ", memory limit " + human_bytes(options.max_memory_bytes);
  if (options.max_memory_bytes < 0) text += ", no memory limit";
  if (options.one_reduction) text += ", one reduction";
  if (!options.merge) text += ", no merging";
  return text;
}

}  // namespace meshplan
