// meshplan check SPEC [PLAN]...: checks that specs can be planned, committed plans are current, and
// budgets are met.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <sstream>
#include <thread>

#include "api/warnings.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/junit.h"
#include "cli/planning.h"
#include "diag/outcome_codes.h"
#include "diff/diff.h"
#include "render/diff_text.h"

namespace meshplan {
namespace {

// One spec with its committed plan, and the result.
struct Item {
  std::string spec;
  std::string plan;   // empty: none
  std::string flags;  // " --planner greedy": flags to plan it again
  int code = 0;
  std::string result;  // one line
  std::string detail;  // what differs
  Diagnostics diagnostics;
};

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// NAME.plan.json for NAME.json.
std::string plan_beside(const std::string& spec) {
  const std::string_view end = ".json";
  return ends_with(spec, end) ? spec.substr(0, spec.size() - end.size()) + ".plan.json"
                              : std::string();
}

// Specs of a folder, each with NAME.plan.json if it exists.
Status add_folder(Context& context, const std::string& folder, std::vector<Item>& items) {
  const auto files = context.system.list_json(folder);
  if (!files) return files.error();
  for (const std::string& file : *files) {
    const auto text = context.system.read_file(file);
    if (!text) return text.error();
    if (document_kind(*text) != DocumentKind::spec) continue;
    Item item;
    item.spec = file;
    const std::string beside = plan_beside(file);
    if (std::binary_search(files->begin(), files->end(), beside)) item.plan = beside;
    items.push_back(std::move(item));
  }
  return Done{};
}

// A plan belongs to the spec before it on the command line; a file named *.plan.json is a plan even
// if unreadable. A spec without a plan uses the one next to it, if any, as in a folder.
Status collect(Context& context, const std::vector<std::string>& inputs, std::vector<Item>& items) {
  for (const std::string& input : inputs) {
    if (input != "-" && context.system.is_folder(input)) {
      const size_t before = items.size();
      if (const auto added = add_folder(context, input, items); !added) return added.error();
      if (items.size() == before) return bad_input("no specs in folder " + input);
      continue;
    }
    bool is_plan = ends_with(input, ".plan.json");
    if (!is_plan && input != "-" && !items.empty()) {
      const auto text = context.system.read_file(input);
      is_plan = text && document_kind(*text) == DocumentKind::plan;
    }
    if (is_plan) {
      if (items.empty()) return bad_input(input + " is a plan; give its spec before it");
      if (!items.back().plan.empty())
        return bad_input(input + " is a second plan of " + items.back().spec);
      items.back().plan = input;
      continue;
    }
    items.emplace_back();
    items.back().spec = input;
  }
  for (Item& item : items) {
    const std::string beside = plan_beside(item.spec);
    if (item.plan.empty() && !beside.empty() && context.system.read_file(beside))
      item.plan = beside;
  }
  return Done{};
}

struct Figure {
  const char* name;
  std::optional<int64_t> budget;
  int64_t value;
};

// What the budget limits; a bundle's rounds are its collectives.
std::optional<Totals> totals_for(const Plan& plan, const Budget& budget) {
  if (budget.id.empty()) return plan.totals;
  if (budget.bundle) {
    for (const PlannedBundle& bundle : plan.bundles) {
      const BundleTotals& totals = bundle.totals;
      if (bundle.request.id == budget.id)
        return Totals{totals.rounds, totals.wire_bytes, totals.peak_bytes, totals.predicted_ps};
    }
    return std::nullopt;
  }
  for (const PlannedRedistribution& r : plan.redistributions) {
    if (r.request.id == budget.id) return r.totals;
  }
  return std::nullopt;
}

// Adds an error for every exceeded budget; returns the number of budgets and of exceeded ones.
std::pair<int64_t, int64_t> check_budgets(Context& context, const std::string& path,
                                          const PlannedSpec& planned) {
  int64_t given = 0;
  int64_t exceeded = 0;
  for (const Budget& budget : planned.spec.budgets) {
    const std::optional<Totals> totals = totals_for(planned.plan, budget);
    if (!totals) continue;  // unknown ids are rejected by the spec reader
    const Figure figures[] = {{"wire_bytes", budget.wire_bytes, totals->wire_bytes},
                              {"collectives", budget.collectives, totals->collectives},
                              {"predicted_ns", budget.predicted_ns, ns_of_ps(totals->predicted_ps)},
                              {"peak_bytes", budget.peak_bytes, totals->peak_bytes}};
    for (const Figure& figure : figures) {
      if (!figure.budget) continue;
      ++given;
      if (figure.value <= *figure.budget) continue;
      ++exceeded;
      context.fail(
          path,
          bad_input((budget.id.empty()
                         ? std::string()
                         : (budget.bundle ? "bundle '" : "redistribution '") + budget.id + "': ") +
                    figure.name + ": " + with_commas(figure.value) + " exceeds budget " +
                    with_commas(*figure.budget)),
          code_over_budget);
    }
  }
  return {given, exceeded};
}

// Whether the committed plan is current; if not, adds a diagnostic with the differences.
bool check_plan(Context& context, Item& item, const Plan& fresh) {
  const auto text = context.read_input(item.plan);
  if (!text) {
    item.code = context.fail(item.plan, text.error());
    return false;
  }
  const std::string wanted = write_plan(fresh);
  if (*text == wanted) return true;
  const auto committed = load_plan_text(context, item.plan, *text, item.code);
  if (!committed) return false;
  if (write_plan(*committed) == wanted) return true;  // written in another form
  const auto normal = read_plan(wanted);
  MESHPLAN_CHECK(normal.ok(), "a written plan can be read");
  const PlanDiff diff = diff_plans(*committed, *normal);
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

void check_item(System& system, std::istream& in, const CommonFlags& flags,
                const PlanningFlags& planning, Item& item) {
  std::ostringstream out;
  std::ostringstream err;
  Context context(system, in, out, err);
  context.flags = flags;
  context.flags.quiet = true;
  auto planned = plan_spec(context, item.spec, planning, item.code);
  if (planned) {
    std::vector<std::string> good;
    std::vector<std::string> bad;
    if (planned->warnings_fail) {
      item.code = 1;
      bad.emplace_back("warnings");
    }
    const auto [budgets, exceeded] = check_budgets(context, item.spec, *planned);
    if (exceeded > 0) {
      item.code = 1;
      bad.push_back(std::to_string(exceeded) + " of " + std::to_string(budgets) +
                    " budgets exceeded");
    } else if (budgets > 0) {
      good.push_back(std::to_string(budgets) + (budgets == 1 ? " budget met" : " budgets met"));
    }
    if (!item.plan.empty()) {
      const int before = item.code;
      item.code = 0;
      if (check_plan(context, item, planned->plan)) {
        good.push_back(item.plan + " is current");
      } else {
        bad.push_back(item.plan + (item.code == 1 ? " is not current" : " cannot be read"));
      }
      item.code = std::max(before, item.code);
    }
    item.result = bad.empty() ? "plans" + std::string(good.empty() ? "" : ", ") + join(good, ", ")
                              : join(bad, ", ");
  } else {
    item.result = item.code == exit_code(Fault::no_plan) ? "no plan exists" : "bad input";
  }
  item.diagnostics = std::move(context.diagnostics);
}

// The words of the command line that planning hangs on, for a command that plans alike.
std::string planning_words(const std::vector<std::string>& words) {
  static const std::vector<std::string> switches = {"--one-reduction", "--no-merge"};
  static const std::vector<std::string> valued = {"--planner",    "--rules",     "--groups",
                                                  "--cost-model", "--topology",  "--ranks-per-host",
                                                  "--max-memory", "--max-groups"};
  const auto is_in = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const bool has_value = is_in(valued, name);
    if (!has_value && !is_in(switches, name)) continue;
    text += " " + words[i];
    if (has_value && name == words[i] && i + 1 < words.size()) text += " " + words[++i];
  }
  return text;
}

// Bad input first, then missing plans, then differences.
int combined_code(const std::vector<Item>& items) {
  int code = 0;
  for (const Item& item : items) {
    if (item.code == 0) continue;
    if (code == 0 || code == 1) {
      code = item.code;
    } else if (item.code != 1) {
      code = std::min(code, item.code);
    }
  }
  return code;
}

}  // namespace

int check_command(Context& context, const Arguments& arguments) {
  std::vector<Item> items;
  if (const auto collected = collect(context, arguments.inputs, items); !collected)
    return context.fail("", collected.error());
  for (Item& item : items) item.flags = planning_words(arguments.words);
  const size_t wanted = arguments.jobs > 0
                            ? static_cast<size_t>(arguments.jobs)
                            : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  const size_t workers = std::min({items.size(), wanted, size_t{256}});
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> broken(items.size());
  const auto work = [&] {
    for (size_t i = next++; i < items.size(); i = next++) {
      try {
        check_item(context.system, context.in, arguments.common, arguments.planning, items[i]);
      } catch (...) {
        broken[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : broken) {
    if (error) std::rethrow_exception(error);
  }

  std::string text;
  std::vector<JunitCase> cases;
  for (const Item& item : items) {
    const std::string result = item.spec + ": " + item.result;
    text += (item.code == 0 ? "ok    " : "fails ") + one_line(result) + "\n";
    for (size_t at = 0; at < item.detail.size();) {
      const size_t end = item.detail.find('\n', at);
      text += "      " + item.detail.substr(at, end - at) + "\n";
      at = end + 1;
    }
    std::string reasons;
    for (const Diagnostic& diagnostic : item.diagnostics.sorted()) {
      reasons += render_text(diagnostic);
      context.diagnostics.add(diagnostic);
    }
    cases.push_back({item.spec, item.code == 0 ? "" : item.result,
                     item.code == 0 ? "" : reasons + item.detail});
  }
  if (!arguments.junit.empty()) {
    if (const auto written =
            context.write_output(arguments.junit, junit_xml("meshplan check", cases));
        !written) {
      return context.fail("", written.error());
    }
  }
  if (arguments.junit != "-") {
    if (const auto written = context.write_output("-", text); !written)
      return context.fail("", written.error());
  }
  return combined_code(items);
}

}  // namespace meshplan
