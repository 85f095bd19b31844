// meshplan check SPEC [PLAN]...: checks that specs can be planned, committed plans are current, and
// budgets are met.
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/start_threads.h"
#include "base/utf8.h"
#include "cli/check_item.h"
#include "cli/commands.h"
#include "cli/junit.h"
#include "cli/planning.h"
#include "diag/outcome_codes.h"
#include "diag/render.h"
#include "json/document_kind.h"

namespace meshplan {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// NAME.plan.json for NAME.json.
std::string plan_beside(const std::string& spec) {
  const std::string_view end = ".json";
  return ends_with(spec, end) ? spec.substr(0, spec.size() - end.size()) + ".plan.json"
                              : std::string();
}

// NAME.json for NAME.plan.json.
std::string spec_beside(const std::string& plan) {
  const std::string_view end = ".plan.json";
  return ends_with(plan, end) ? plan.substr(0, plan.size() - end.size()) + ".json" : std::string();
}

// Specs of a folder, each with NAME.plan.json if it exists. A NAME.plan.json without its spec is an
// item without spec.
Status add_folder(Context& context, const std::string& folder, std::vector<CheckItem>& items) {
  const auto files = context.system.list_json(folder);
  if (!files) return files.error();
  for (const std::string& file : *files) {
    const auto text = context.system.read_file(file);
    if (!text) return text.error();
    const auto kind = document_kind(*text);
    CheckItem item;
    if (kind == DocumentKind::plan && ends_with(file, ".plan.json") &&
        !std::binary_search(files->begin(), files->end(), spec_beside(file))) {
      item.plan = file;
      items.push_back(std::move(item));
    }
    if (kind != DocumentKind::spec) continue;
    item.spec = file;
    const std::string beside = plan_beside(file);
    if (std::binary_search(files->begin(), files->end(), beside)) item.plan = beside;
    items.push_back(std::move(item));
  }
  return Done{};
}

bool lacks_spec(const CheckItem& item) { return item.spec.empty(); }

// A plan belongs to the spec before it on the command line; a file named *.plan.json is a plan even
// if unreadable. A spec without a plan uses the one next to it, if any, as in a folder.
Status collect(Context& context, const std::vector<std::string>& inputs,
               std::vector<CheckItem>& items) {
  for (const std::string& input : inputs) {
    if (input != "-" && context.system.is_folder(input)) {
      const auto before = std::ssize(items);
      if (const auto added = add_folder(context, input, items); !added) return added.error();
      if (std::all_of(items.begin() + before, items.end(), lacks_spec))
        return bad_input("no specs in folder " + input);
      continue;
    }
    bool is_plan = ends_with(input, ".plan.json");
    if (!is_plan && !items.empty()) {
      const auto text = context.peek_input(input);
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
  for (CheckItem& item : items) {
    const std::string beside = plan_beside(item.spec);
    if (item.plan.empty() && !beside.empty() && context.system.read_file(beside))
      item.plan = beside;
  }
  return Done{};
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
int combined_code(const std::vector<CheckItem>& items) {
  int code = 0;
  for (const CheckItem& item : items) {
    if (item.code == 0) continue;
    if (code == 0 || code == 1) {
      code = item.code;
    } else if (item.code != 1) {
      code = std::min(code, item.code);
    }
  }
  return code;
}

// A plan whose spec is gone, which nothing can keep current.
void report_lost(CheckItem& item) {
  const std::string spec = spec_beside(item.plan);
  item.code = 1;
  item.result = "its spec is gone";
  Diagnostic diagnostic =
      diagnostic_of(whole_file(item.plan),
                    bad_input("the spec of this plan, " + spec +
                              ", is gone; remove the plan, or rename it as its spec is named"));
  diagnostic.code = code_not_current;
  item.diagnostics.add(std::move(diagnostic));
}

// In as many threads as there are cores.
void check_all(Context& context, const Arguments& arguments, std::vector<CheckItem>& items) {
  const size_t wanted = arguments.jobs > 0
                            ? static_cast<size_t>(arguments.jobs)
                            : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  const size_t workers = std::min({items.size(), wanted, size_t{256}});
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> broken(items.size());
  const auto work = [&] {
    for (size_t i = next++; i < items.size(); i = next++) {
      try {
        if (lacks_spec(items[i])) {
          report_lost(items[i]);
        } else {
          check_item(context, arguments, items[i]);
        }
      } catch (...) {
        broken[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads = start_threads(std::max<size_t>(workers, 1) - 1, work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : broken) {
    if (error) std::rethrow_exception(error);
  }
}

const std::string& name_of(const CheckItem& item) {
  return lacks_spec(item) ? item.plan : item.spec;
}

// The lines of an item on stdout: its result, and what differs.
std::string lines_of(const CheckItem& item) {
  std::string text = item.code == 0 ? "ok    " : "fails ";
  text += one_line(name_of(item) + ": " + item.result) + "\n";
  for (size_t at = 0; at < item.detail.size();) {
    const size_t end = item.detail.find('\n', at);
    text += "      " + item.detail.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace

int check_command(Context& context, const Arguments& arguments) {
  std::vector<CheckItem> items;
  if (const auto collected = collect(context, arguments.inputs, items); !collected)
    return context.fail("", collected.error());
  if (arguments.record && items.size() != 1) {
    return context.fail(
        "", bad_input("--record takes one spec, and got " + std::to_string(items.size())));
  }
  for (CheckItem& item : items) item.flags = planning_words(arguments.words);
  check_all(context, arguments, items);

  std::string text;
  std::vector<JunitCase> cases;
  for (const CheckItem& item : items) {
    text += lines_of(item);
    for (const std::string& line : item.said) context.say("  " + line);
    std::string reasons;
    for (const Diagnostic& diagnostic : item.diagnostics.sorted()) {
      reasons += render_text(diagnostic);
      context.diagnostics.add(diagnostic);
    }
    cases.push_back({name_of(item), item.code == 0 ? "" : item.result,
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
