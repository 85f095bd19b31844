#include "diff/diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/enum_names.h"
#include "base/int_math.h"
#include "base/text.h"
#include "diff/bundles.h"
#include "diff/declarations.h"
#include "plan/firsts.h"
#include "plan/notes.h"
#include "plan/step_mesh.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// Where a step goes: over mesh dims, or from one mesh to another.
std::string dims_text(const Plan& plan, const PlannedRedistribution& r, size_t index) {
  const Step& step = r.steps[index];
  const Mesh& mesh = mesh_after(plan.meshes, r.request, step);
  const Mesh& before = mesh_before(plan.meshes, r, index);
  if (&before != &mesh) return " from " + before.name + " to " + mesh.name;
  const auto names = dim_names(mesh);
  const auto shape = mesh_shape(mesh);
  std::vector<std::string> dims;
  for (const SubAxis& sub_axis : step.mesh_dims) dims.push_back(to_text(sub_axis, names, shape));
  return " on " + join(dims, " and ");
}

// What a step is, without its place, its reason and the state it leaves: equal texts are the same
// step.
std::string step_text(const Plan& plan, const PlannedRedistribution& r, size_t index) {
  const Step& step = r.steps[index];
  std::string text = to_text(step.op);
  if (step.phases > 1) text += " in " + std::to_string(step.phases) + " phases";
  text += way_text(step);
  if (step.reduce_op) text += std::string(" ") + to_text(*step.reduce_op);
  if (step.scale_divisor != 1) text += " x 1/" + std::to_string(step.scale_divisor);
  text += dims_text(plan, r, index);
  if (!is_local(step.op)) text += ", " + counted(step_ranks(plan, r, step), "rank");
  if (step.src && step.dst) text += ", " + to_text(*step.src) + " to " + to_text(*step.dst);
  if (is_local(step.op)) return text;
  return text + ": " + human_bytes(step.wire_bytes) + ", " + human_ns(ns_of_ps(step.predicted_ps));
}

std::vector<std::string> step_texts(const Plan& plan, const PlannedRedistribution& r) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < r.steps.size(); ++i) texts.push_back(step_text(plan, r, i));
  return texts;
}

// Longest common run of step texts; what is in both but out of order has moved.
std::vector<StepDiff> compare_steps(const std::vector<std::string>& before,
                                    const std::vector<std::string>& after) {
  const size_t n = before.size();
  const size_t m = after.size();
  std::vector<std::vector<size_t>> longest(n + 1, std::vector<size_t>(m + 1));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      longest[i][j] = before[i] == after[j] ? longest[i + 1][j + 1] + 1
                                            : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  std::vector<StepDiff> lines;
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && before[i] == after[j]) {
      lines.push_back({StepDiff::Kind::same, after[j]});
      ++i, ++j;
    } else if (i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1])) {
      lines.push_back({StepDiff::Kind::removed, before[i++]});
    } else {
      lines.push_back({StepDiff::Kind::added, after[j++]});
    }
  }
  for (StepDiff& gone : lines) {
    if (gone.kind != StepDiff::Kind::removed) continue;
    const auto come = std::find_if(lines.begin(), lines.end(), [&](const StepDiff& line) {
      return line.kind == StepDiff::Kind::added && line.text == gone.text;
    });
    if (come == lines.end()) continue;
    come->kind = StepDiff::Kind::moved;
    gone.text.clear();
  }
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const StepDiff& line) { return line.text.empty(); }),
              lines.end());
  return lines;
}

// The reductions in the order in which they happen: which ranks, how, in which dtype. Equal texts
// give equal bits up to the order inside one collective, which no plan decides.
std::vector<std::string> reductions_of(const Plan& plan, const PlannedRedistribution& r) {
  std::vector<std::string> reductions;
  const Mesh& mesh = plan.meshes.meshes[r.request.src_mesh];
  const auto names = dim_names(mesh);
  const auto shape = mesh_shape(mesh);
  const State* before = &r.request.src;
  for (const Step& step : r.steps) {
    // The state of a step that crosses meshes speaks of the other one, where nothing is pending.
    const bool crosses = &mesh_after(plan.meshes, r.request, step) != &mesh;
    const std::vector<PendingSubAxis> reduced =
        reduced_between(*before, crosses ? State{} : step.state, shape);
    before = &step.state;
    if (!step.reduce_op) continue;
    std::vector<std::string> dims;
    int64_t ranks = 1;
    for (const PendingSubAxis& p : reduced) {
      dims.push_back(to_text(p.sub_axis, names, shape));
      ranks = saturating_mul(ranks, p.sub_axis.size);
    }
    std::string text =
        join(dims, "+") + " (" + with_commas(ranks) + " ranks, " + to_text(*step.reduce_op);
    if (step.scale_divisor != 1) text += " x 1/" + std::to_string(step.scale_divisor);
    if (r.request.reduce_dtype) text += std::string(" in ") + to_text(*r.request.reduce_dtype);
    if (step.op == Op::exchange) text += ", in rank order";  // a collective chooses its own order
    reductions.push_back(text + ")");
  }
  return reductions;
}

// The least or greatest of the same values is the same bits however it is taken; a reduction in
// another dtype may round them.
bool order_matters(const PlannedRedistribution& r) {
  return std::any_of(r.steps.begin(), r.steps.end(), [&](const Step& step) {
    if (!step.reduce_op) return false;
    const bool picks = *step.reduce_op == ReduceOp::min || *step.reduce_op == ReduceOp::max;
    return !picks || r.request.reduce_dtype.has_value();
  });
}

std::set<ReduceOp> ops_of(const PlannedRedistribution& r) {
  std::set<ReduceOp> ops;
  for (const PendingSubAxis& pending : r.request.src.partial) ops.insert(pending.op);
  return ops;
}

std::string nesting_text(const std::vector<std::string>& reductions) {
  return reductions.empty() ? "nothing" : join(reductions, ", then ");
}

// The redistribution without its id, count and figures.
std::string content_text(const Plan& plan, const PlannedRedistribution& r) {
  std::string text = request_text(plan, r);
  for (const std::string& step : step_texts(plan, r)) text += "; " + step;
  return text;
}

// Everything a plan says of a redistribution but for id and count, as the file writes it.
std::string whole_text(const Plan& plan, const PlannedRedistribution& r) {
  Plan one;
  // For their names; nothing else of the table is compared.
  one.meshes.meshes = {plan.meshes.meshes[r.request.src_mesh]};
  one.redistributions = {r};
  one.redistributions[0].request.src_mesh = one.redistributions[0].request.dst_mesh = 0;
  if (r.request.dst_mesh != r.request.src_mesh) {
    one.meshes.meshes.push_back(plan.meshes.meshes[r.request.dst_mesh]);
    one.redistributions[0].request.dst_mesh = 1;
  }
  one.redistributions[0].request.id.clear();
  one.redistributions[0].request.count = 1;
  one.redistributions[0].request.notes.clear();
  const std::string text = canonical_json(one);
  const size_t begin = text.find("\"redistributions\":[");
  return text.substr(begin, text.rfind("],\"schema\":") - begin);
}

DiffSeverity cost_severity(const Totals& before, const Totals& after) {
  if (costs_more(before, after)) return DiffSeverity::dearer;
  if (costs_more(after, before)) return DiffSeverity::cheaper;
  return DiffSeverity::cosmetic;
}

// What decides whether a left-over redistribution was renamed: its content and its count. Those
// that repeat one another share the content.
class ContentKeys {
 public:
  ContentKeys(const Plan& plan, const std::vector<size_t>& firsts) : plan_(plan), firsts_(firsts) {}

  std::string of(size_t i) {
    const auto [at, is_new] = texts_.try_emplace(firsts_[i]);
    if (is_new) at->second = content_text(plan_, plan_.redistributions[firsts_[i]]);
    return at->second + " x" + std::to_string(plan_.redistributions[i].request.count);
  }
  // What it asks for, without count and answer.
  std::string question_of(size_t i) {
    const auto [at, is_new] = questions_.try_emplace(firsts_[i]);
    if (is_new) at->second = request_text(plan_, plan_.redistributions[firsts_[i]]);
    return at->second;
  }

 private:
  const Plan& plan_;
  const std::vector<size_t>& firsts_;
  std::unordered_map<size_t, std::string> texts_;  // by first, as the next
  std::unordered_map<size_t, std::string> questions_;
};

// What differs between two redistributions beside id and count.
struct Change {
  bool any = false;
  std::string numerics;  // of RedistributionDiff, as the others
  std::vector<StepDiff> steps;
  std::vector<std::string> causes;
};

class Comparison {
 public:
  Comparison(const Plan& before, const Plan& after)
      : old_(before),
        new_(after),
        old_firsts_(firsts_of(before.redistributions)),
        new_firsts_(firsts_of(after.redistributions)),
        declared_(compare_declarations(before, after)),
        bundle_causes_(before, after) {}

  PlanDiff run() {
    diff_.compared = new_.redistributions.size();
    diff_.old_totals = old_.totals;
    diff_.new_totals = new_.totals;
    diff_.old_digest = old_.digest;
    diff_.new_digest = new_.digest;
    for (const DeclarationChange& change : declared_) diff_.declarations.push_back(change.text);
    for (std::string& text : compare_bundles(old_, new_))
      diff_.declarations.push_back(std::move(text));
    match();
    for (size_t j = 0; j < new_.redistributions.size(); ++j) {
      if (partner_[j]) {
        compare(*partner_[j], j);
      } else {
        alone(new_, new_.redistributions[j], DiffKind::added);
      }
    }
    for (size_t i = 0; i < old_.redistributions.size(); ++i) {
      if (!taken_[i]) alone(old_, old_.redistributions[i], DiffKind::removed);
    }
    settle_severity();
    return std::move(diff_);
  }

 private:
  void match() {
    partner_.assign(new_.redistributions.size(), std::nullopt);
    taken_.assign(old_.redistributions.size(), false);
    std::unordered_map<std::string_view, size_t> by_id;
    for (size_t i = 0; i < old_.redistributions.size(); ++i)
      by_id.emplace(old_.redistributions[i].request.id, i);
    for (size_t j = 0; j < new_.redistributions.size(); ++j) {
      const auto found = by_id.find(new_.redistributions[j].request.id);
      if (found == by_id.end() || taken_[found->second]) continue;
      partner_[j] = found->second;
      taken_[found->second] = true;
    }
    ContentKeys old_keys(old_, old_firsts_);
    ContentKeys new_keys(new_, new_firsts_);
    match_by([&](size_t i) { return old_keys.of(i); }, [&](size_t j) { return new_keys.of(j); });
    match_by([&](size_t i) { return old_keys.question_of(i); },
             [&](size_t j) { return new_keys.question_of(j); });
  }

  // Pairs what is left over on both sides and has one key, in the order of the files.
  template <class OldKey, class NewKey>
  void match_by(const OldKey& old_key, const NewKey& new_key) {
    std::multimap<std::string, size_t> by_key;
    for (size_t i = 0; i < old_.redistributions.size(); ++i) {
      if (!taken_[i]) by_key.emplace(old_key(i), i);
    }
    if (by_key.empty()) return;
    for (size_t j = 0; j < new_.redistributions.size(); ++j) {
      if (partner_[j]) continue;
      const auto found = by_key.lower_bound(new_key(j));
      if (found == by_key.end() || found->first != new_key(j)) continue;
      partner_[j] = found->second;
      taken_[found->second] = true;
      by_key.erase(found);
    }
  }

  // What differs between old redistribution `i` and new redistribution `j`: for all that repeat the
  // same two once.
  const Change& change_of(size_t i, size_t j) {
    const auto [at, is_new] = changes_.try_emplace({old_firsts_[i], new_firsts_[j]});
    Change& change = at->second;
    if (!is_new) return change;
    PlannedRedistribution before = old_.redistributions[i];
    const PlannedRedistribution& after = new_.redistributions[j];
    before.request.id = after.request.id;
    before.request.count = after.request.count;
    change.any = whole_text(old_, before) != whole_text(new_, after);
    change.numerics = numerics_of(before, after);
    const std::vector<std::string> old_steps = step_texts(old_, before);
    const std::vector<std::string> new_steps = step_texts(new_, after);
    if (old_steps != new_steps) change.steps = compare_steps(old_steps, new_steps);
    change.causes = causes_of(before, after, !change.steps.empty());
    return change;
  }

  // What changes in how it reduces; empty where nothing does.
  [[nodiscard]] std::string numerics_of(const PlannedRedistribution& before,
                                        const PlannedRedistribution& after) const {
    const auto old_reductions = reductions_of(old_, before);
    const auto new_reductions = reductions_of(new_, after);
    if (old_reductions != new_reductions &&
        (order_matters(before) || order_matters(after) || ops_of(before) != ops_of(after)))
      return "reduces " + nesting_text(new_reductions) + "; was " + nesting_text(old_reductions);
    const DType was = before.request.tensor.dtype;
    const DType is = after.request.tensor.dtype;
    if (was == is || !order_matters(after)) return {};
    return std::string("reduces in ") + to_text(is) + "; was " + to_text(was);
  }

  void compare(size_t i, size_t j) {
    const PlannedRedistribution& before = old_.redistributions[i];
    const PlannedRedistribution& after = new_.redistributions[j];
    compare_warnings(before, after);
    const Change& change = change_of(i, j);
    const bool renamed = before.request.id != after.request.id;
    const bool recounted = before.request.count != after.request.count;
    if (!change.any && !renamed && !recounted) return;
    RedistributionDiff d;
    d.id = after.request.id;
    d.kind = !renamed                  ? DiffKind::changed
             : recounted || change.any ? DiffKind::moved
                                       : DiffKind::renamed;
    if (renamed) d.old_id = before.request.id;
    note_place(d, after);
    d.old_count = before.request.count;
    d.new_count = after.request.count;
    d.old_totals = weighted(before);
    d.new_totals = weighted(after);
    d.bundle = common_bundle(old_, i, new_, j);
    d.old_trace = before.trace;
    d.new_trace = after.trace;
    d.severity = change.numerics.empty() ? cost_severity(*d.old_totals, *d.new_totals)
                                         : DiffSeverity::numerics;
    d.numerics = change.numerics;
    d.steps = change.steps;
    d.causes = renamed || recounted ? causes_of(before, after, !d.steps.empty()) : change.causes;
    if (d.causes.empty() && !d.steps.empty()) d.causes = bundle_causes_.of(i, j);
    if (d.causes.empty() && !d.steps.empty())
      d.causes = {"another version of meshplan: the declarations of the files are the same"};
    diff_.redistributions.push_back(std::move(d));
  }

  // None where steps differ and nothing else that the two say by themselves.
  [[nodiscard]] std::vector<std::string> causes_of(const PlannedRedistribution& before,
                                                   const PlannedRedistribution& after,
                                                   bool steps_differ) const {
    std::vector<std::string> causes = request_changes(old_, before, new_, after);
    for (const DeclarationChange& change : declared_) {
      if (concerns(change, old_, before, new_, after)) causes.push_back(change.text);
    }
    return causes.empty() && !steps_differ ? listing_changes(before, after) : causes;
  }

  void compare_warnings(const PlannedRedistribution& before, const PlannedRedistribution& after) {
    if (before.warnings == after.warnings) return;
    const auto key = [](const Warning& w) {
      return std::string(warning_code(w.kind)) + " " + join(w.dims, ",") + " " +
             to_text(w.collective);
    };
    std::multiset<std::string> old_keys;
    std::multiset<std::string> new_keys;
    for (const Warning& warning : before.warnings) old_keys.insert(key(warning));
    for (const Warning& warning : after.warnings) {
      new_keys.insert(key(warning));
      if (old_keys.count(key(warning)) == 0)
        diff_.new_warnings.push_back(
            {warning_code(warning.kind), after.request.id, warning.message});
    }
    for (const Warning& warning : before.warnings) {
      if (new_keys.count(key(warning)) == 0)
        diff_.gone_warnings.push_back(
            {warning_code(warning.kind), before.request.id, warning.message});
    }
  }

  static void note_place(RedistributionDiff& d, const PlannedRedistribution& r) {
    d.module = note_text(r.request, "x-module");
    d.source = note_text(r.request, "x-source");
  }

  void alone(const Plan& plan, const PlannedRedistribution& r, DiffKind kind) {
    RedistributionDiff d;
    d.id = r.request.id;
    d.kind = kind;
    note_place(d, r);
    const bool added = kind == DiffKind::added;
    (added ? d.new_count : d.old_count) = r.request.count;
    (added ? d.new_totals : d.old_totals) = weighted(r);
    (added ? d.new_trace : d.old_trace) = r.trace;
    const bool costs = r.totals.predicted_ps > 0 || r.totals.wire_bytes > 0;
    d.severity = !costs  ? DiffSeverity::cosmetic
                 : added ? DiffSeverity::dearer
                         : DiffSeverity::cheaper;
    d.causes = {added ? "the new spec asks for it" : "the new spec no longer asks for it"};
    for (std::string& step : step_texts(plan, r))
      d.steps.push_back({added ? StepDiff::Kind::added : StepDiff::Kind::removed, std::move(step)});
    for (const Warning& warning : r.warnings) {
      (added ? diff_.new_warnings : diff_.gone_warnings)
          .push_back({warning_code(warning.kind), r.request.id, warning.message});
    }
    diff_.redistributions.push_back(std::move(d));
  }

  // Numerics of the file is the worst of its parts; its cost follows the totals.
  void settle_severity() {
    const bool anything = !diff_.declarations.empty() || !diff_.redistributions.empty();
    if (!anything) {
      if (canonical_content(old_) == canonical_content(new_)) return;
      diff_.declarations.emplace_back(
          "redistributions or declarations are in another order, or properties of groups differ");
    }
    diff_.severity = std::max(DiffSeverity::cosmetic, cost_severity(old_.totals, new_.totals));
    for (const RedistributionDiff& d : diff_.redistributions) {
      if (d.severity == DiffSeverity::numerics) diff_.severity = DiffSeverity::numerics;
    }
  }

  const Plan& old_;
  const Plan& new_;
  std::vector<size_t> old_firsts_;  // firsts_of
  std::vector<size_t> new_firsts_;
  std::vector<DeclarationChange> declared_;
  BundleCauses bundle_causes_;
  std::map<std::pair<size_t, size_t>, Change> changes_;  // by old first and new first
  std::vector<std::optional<size_t>> partner_;           // of each new redistribution
  std::vector<bool> taken_;                              // of each old one
  PlanDiff diff_;
};

}  // namespace

const char* to_text(DiffSeverity severity) {
  static constexpr EnumNames<DiffSeverity, 5> names{
      {"none", "cosmetic", "cheaper", "dearer", "numerics-changing"}};
  return names[severity];
}

const char* to_text(DiffKind kind) {
  static constexpr EnumNames<DiffKind, 5> names{
      {"changed", "added", "removed", "renamed", "moved"}};
  return names[kind];
}

const char* to_text(StepDiff::Kind kind) {
  static constexpr EnumNames<StepDiff::Kind, 4> names{{"same", "added", "removed", "moved"}};
  return names[kind];
}

PlanDiff diff_plans(const Plan& old_plan, const Plan& new_plan) {
  return Comparison(old_plan, new_plan).run();
}

bool costs_more(const Totals& before, const Totals& after, int64_t more_than_percent) {
  const int64_t was = ns_of_ps(before.predicted_ps);
  const int64_t is = ns_of_ps(after.predicted_ps);
  if (more_than_percent > 0)
    return int128{is} * 100 > int128{was} * (100 + int128{more_than_percent});
  return is != was ? is > was : after.wire_bytes > before.wire_bytes;
}

std::string percent_text(int64_t before, int64_t after) {
  if (before == after) return {};
  if (before == 0) return "from nothing";
  // Tenths of a percent, away from zero by the rule of halves, in integers.
  const int128 difference = int128{after} - before;
  const int128 magnitude = difference < 0 ? -difference : difference;
  const auto tenths = static_cast<int64_t>(
      std::min<int128>((magnitude * 2000 + before) / (int128{before} * 2), int128{1} << 62));
  if (tenths == 0) return difference < 0 ? "-<0.1 %" : "+<0.1 %";
  return (difference < 0 ? "-" : "+") + std::to_string(tenths / 10) + "." +
         std::to_string(tenths % 10) + " %";
}

bool holds(const PlanDiff& diff, const std::string& condition) {
  if (condition == "numerics") {
    return std::any_of(
        diff.redistributions.begin(), diff.redistributions.end(),
        [](const RedistributionDiff& d) { return d.severity == DiffSeverity::numerics; });
  }
  if (condition == "warnings") return !diff.new_warnings.empty();
  if (condition.rfind("slower", 0) == 0) {
    const size_t equals = condition.find('=');
    const auto percent =
        equals == std::string::npos
            ? 0
            : parse_int(condition.substr(equals + 1, condition.size() - equals - 2)).value_or(0);
    return costs_more(diff.old_totals, diff.new_totals, percent);
  }
  return !same(diff);
}

}  // namespace meshplan
