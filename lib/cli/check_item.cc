#include "cli/check_item.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "cli/planning.h"
#include "cli/record_again.h"
#include "diag/outcome_codes.h"
#include "diff/diff.h"
#include "render/diff_text.h"

namespace meshplan {
namespace {

struct Figure {
  const char* name;
  const std::optional<Limit>* budget;
  int64_t value;
};

// What budgets limit, by id; a bundle's rounds are its collectives.
class BudgetTotals {
 public:
  explicit BudgetTotals(const Plan& plan) : all_(plan.totals) {
    for (const PlannedBundle& bundle : plan.bundles) {
      const BundleTotals& totals = bundle.totals;
      bundles_.try_emplace(bundle.request.id, Totals{totals.rounds, totals.wire_bytes,
                                                     totals.peak_bytes, totals.predicted_ps});
    }
    for (const PlannedRedistribution& r : plan.redistributions)
      redistributions_.try_emplace(r.request.id, r.totals);
  }
  // nullptr: the plan has nothing of that id.
  [[nodiscard]] const Totals* of(const Budget& budget) const {
    if (budget.id.empty()) return &all_;
    const auto& known = budget.bundle ? bundles_ : redistributions_;
    const auto found = known.find(budget.id);
    return found == known.end() ? nullptr : &found->second;
  }

 private:
  Totals all_;
  std::unordered_map<std::string_view, Totals> bundles_;
  std::unordered_map<std::string_view, Totals> redistributions_;
};

// Adds an error for every exceeded budget; returns the number of budgets and of exceeded ones.
std::pair<int64_t, int64_t> check_budgets(Context& context, const PlannedSpec& planned) {
  int64_t given = 0;
  int64_t exceeded = 0;
  const BudgetTotals known(planned.plan);
  for (const Budget& budget : planned.spec.budgets) {
    const Totals* totals = known.of(budget);
    if (totals == nullptr) continue;  // unknown ids are rejected by the spec reader
    const Figure figures[] = {
        {"wire_bytes", &budget.wire_bytes, totals->wire_bytes},
        {"collectives", &budget.collectives, totals->collectives},
        {"predicted_ns", &budget.predicted_ns, ns_of_ps(totals->predicted_ps)},
        {"peak_bytes", &budget.peak_bytes, totals->peak_bytes}};
    const std::string of =
        budget.id.empty() ? ""
                          : (budget.bundle ? "bundle '" : "redistribution '") + budget.id + "': ";
    for (const Figure& figure : figures) {
      if (!*figure.budget) continue;
      ++given;
      const Limit& limit = **figure.budget;
      if (figure.value <= limit.most) continue;
      ++exceeded;
      context.fail_at(limit.place,
                      bad_input(of + figure.name + ": " + with_commas(figure.value) +
                                " exceeds budget " + with_commas(limit.most)),
                      code_over_budget);
    }
  }
  return {given, exceeded};
}

// A committed plan may list more than a spec asks for: what flags of `meshplan plan` that check
// does not have asked for. It is compared with a plan that lists the same.
void ask_for_as_much(const Plan& committed, PlanningFlags& planning, std::string& flags) {
  bool audit = false;
  int64_t alternatives = 0;
  for (const PlannedRedistribution& r : committed.redistributions) {
    audit = audit || !r.audit.empty();
    alternatives = std::max<int64_t>(alternatives, std::ssize(r.alternatives));
  }
  if (audit) {
    planning.options.audit = true;
    flags += " --audit";
  }
  if (alternatives > 0) {
    planning.options.alternatives = alternatives;
    flags += " --alternatives " + std::to_string(alternatives);
  }
}

struct Committed {
  std::string text;
  Plan plan;
};

// The committed plan; nothing where it cannot be read, which is reported.
std::optional<Committed> read_committed(Context& context, CheckItem& item) {
  auto text = context.read_input(item.plan, item.code);
  if (!text) return std::nullopt;
  auto plan = load_plan_text(context, item.plan, *text, item.code);
  if (!plan) return std::nullopt;
  return Committed{*std::move(text), *std::move(plan)};
}

// Whether the committed plan is current; if not, adds a diagnostic with the differences.
bool check_plan(Context& context, CheckItem& item, const Committed& committed, const Plan& fresh) {
  const std::string wanted = write_plan(fresh);
  if (committed.text == wanted) return true;
  if (write_plan(committed.plan) == wanted) return true;  // written in another form
  const auto normal = read_plan(wanted);
  MESHPLAN_CHECK(normal.ok(), "a written plan can be read");
  const PlanDiff diff = diff_plans(committed.plan, *normal);
  const std::string help =
      "; update it: meshplan plan " + item.spec + " -o " + item.plan + item.flags;
  const std::string what = same(diff) ? "the text of the spec changed, the plan did not"
                                      : "a " + std::string(to_text(diff.severity)) + " difference";
  item.code = 1;
  item.detail = render_diff_text(diff, {});
  context.fail(item.plan,
               bad_input("the plan is not current for " + item.spec + ": " + what + help),
               code_not_current);
  return false;
}

// What is committed.
struct Texts {
  std::string spec;
  std::optional<Committed> plan;  // none: there is no plan
};

// What check says of an item, in the parts of its result.
struct Findings {
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void find_budgets(Context& context, CheckItem& item, const PlannedSpec& planned,
                  Findings& findings) {
  const auto [budgets, exceeded] = check_budgets(context, planned);
  if (exceeded > 0) {
    item.code = 1;
    findings.bad.push_back(std::to_string(exceeded) + " of " + std::to_string(budgets) +
                           " budgets exceeded");
  } else if (budgets > 0) {
    findings.good.push_back(std::to_string(budgets) +
                            (budgets == 1 ? " budget met" : " budgets met"));
  }
}

// Whether the committed plan is current for the committed spec.
bool find_plan(Context& context, CheckItem& item, const Texts& texts, const Plan& fresh,
               Findings& findings) {
  if (!texts.plan) return true;
  const int before = item.code;
  item.code = 0;
  const bool current = check_plan(context, item, *texts.plan, fresh);
  if (!current) findings.bad.push_back(item.plan + " is not current");
  item.code = std::max(before, item.code);
  return current;
}

// In the form of a file: whole nanoseconds.
Plan as_read(const Plan& plan) {
  auto read = read_plan(write_plan(plan));
  MESHPLAN_CHECK(read.ok(), "a written plan can be read");
  return std::move(read).value();
}

// The plan of what the program does now; nothing where there is none, which is reported.
struct Recorded {
  std::string file;    // the committed recording
  std::string update;  // the command that writes it
  PlannedSpec now;
};
std::optional<Recorded> plan_recording(Context& context, const Arguments& arguments,
                                       const std::string& text, const PlannedSpec& committed,
                                       CheckItem& item, Findings& findings) {
  const SpecText recorded = committed.spec.extended.value_or(
      SpecText{item.spec, std::make_shared<const std::string>(text)});
  const RecordedBy by = recorded_by(*recorded.text, rank_count(committed.spec.meshes));
  const auto again = record_again(context.system, *arguments.record, recorded, by, item.said);
  if (!again) {
    item.code = context.fail(recorded.file, again.error());
    findings.bad.emplace_back("cannot be recorded again");
    return std::nullopt;
  }
  // Its warnings are those of the committed spec, or it differs from that.
  const WarningPolicy policy = context.flags.warnings;
  context.flags.warnings = {};
  context.flags.warnings.silenced = {"missing-flatten", "uneven-shape", "non-ascending"};
  auto now = plan_spec_text(context, item.spec, text, arguments.planning, item.code, &*again);
  context.flags.warnings = policy;
  if (!now) {
    findings.bad.emplace_back("what the program does now cannot be planned");
    return std::nullopt;
  }
  return Recorded{recorded.file, recording_command(*arguments.record, by, recorded.file),
                  *std::move(now)};
}

// Compares what the program does now with the committed spec, and with the plan of it.
void find_drift(Context& context, CheckItem& item, const Plan& committed, const Recorded& recorded,
                bool plan_is_current, Findings& findings) {
  const PlanDiff diff = diff_plans(as_read(committed), as_read(recorded.now.plan));
  if (same(diff)) {
    findings.good.push_back(recorded.file + " is what the program does");
    return;
  }
  item.code = std::max(item.code, 1);
  findings.bad.push_back(recorded.file + " is not what the program does");
  item.detail += "what the program does now, beside " + recorded.file + ":\n";
  item.detail += render_diff_text(diff, {});
  const std::string what = ": a " + std::string(to_text(diff.severity)) + " difference";
  context.fail(recorded.file,
               bad_input("the program no longer does what is recorded here" + what +
                         "; record it again: " + recorded.update),
               code_drifted);
  if (item.plan.empty() || !plan_is_current) return;
  findings.bad.push_back(item.plan + " is not current");
  context.fail(item.plan,
               bad_input("the plan is not current for what the program does now" + what +
                         "; once it is recorded again: meshplan plan " + item.spec + " -o " +
                         item.plan + item.flags),
               code_not_current);
}

void check_planned(Context& context, const Arguments& arguments, const Texts& texts,
                   const PlannedSpec& planned, CheckItem& item) {
  Findings findings;
  if (planned.warnings_fail) {
    item.code = 1;
    findings.bad.emplace_back("warnings");
  }
  std::optional<Recorded> recorded;
  if (arguments.record)
    recorded = plan_recording(context, arguments, texts.spec, planned, item, findings);
  find_budgets(context, item, recorded ? recorded->now : planned, findings);
  const bool current = find_plan(context, item, texts, planned.plan, findings);
  if (recorded) find_drift(context, item, planned.plan, *recorded, current, findings);
  if (current && !item.plan.empty()) findings.good.push_back(item.plan + " is current");
  item.result = findings.bad.empty() ? "plans" + std::string(findings.good.empty() ? "" : ", ") +
                                           join(findings.good, ", ")
                                     : join(findings.bad, ", ");
}

}  // namespace

void check_item(Context& outside, const Arguments& arguments, CheckItem& item) {
  std::ostringstream out;
  std::ostringstream err;
  Context context(outside.system, outside.in, out, err);
  // One item alone has stdin.
  if (item.spec == "-" || item.plan == "-") outside.hand_over(context);
  context.flags = arguments.common;
  context.flags.quiet = true;
  std::optional<PlannedSpec> planned;
  Arguments asked = arguments;
  Texts texts;
  if (const auto text = context.read_input(item.spec)) {
    texts.spec = *text;
    if (!item.plan.empty()) texts.plan = read_committed(context, item);
    if (texts.plan) ask_for_as_much(texts.plan->plan, asked.planning, item.flags);
    if (item.plan.empty() || texts.plan) {
      planned = plan_spec_text(context, item.spec, texts.spec, asked.planning, item.code);
    } else {  // told without planning, which may take long
      const bool good = load_spec_text(context, item.spec, texts.spec, item.code).has_value();
      item.result = std::string(good ? "" : "bad input, ") + item.plan + " cannot be read";
    }
  } else {
    item.code = context.fail(item.spec, text.error());
  }
  if (planned) {
    check_planned(context, asked, texts, *planned, item);
  } else if (item.result.empty()) {
    item.result = item.code == exit_code(Fault::no_plan) ? "no plan exists" : "bad input";
  }
  item.diagnostics = std::move(context.diagnostics);
}

}  // namespace meshplan
