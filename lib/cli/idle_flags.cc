#include "cli/idle_flags.h"

#include <algorithm>

#include "base/text.h"

namespace meshplan {
namespace {

using Formats = std::vector<std::string>;

// Flags of what is shown, against the formats that show it.
Status refuse_unshown(const Arguments& arguments) {
  const bool diff = arguments.command == "diff";
  if (!diff && arguments.command != "plan" && arguments.command != "show") return Done{};
  const std::string usual = arguments.command == "plan" ? "json" : "text";
  const std::string& format = arguments.format.empty() ? usual : arguments.format;
  const Formats texts = {"text", "markdown", "html"};
  const Formats pictures = {"text", "markdown", "html", "svg", "mermaid", "dot"};
  const Formats lists = {"text", "markdown", "html", "svg", "mermaid", "dot", "perfetto"};
  struct Shown {
    const char* flag;
    bool given;
    const Formats& by;
  };
  for (const Shown& shown : {Shown{"--detail", !arguments.detail.empty(), texts},
                             Shown{"--costs", !arguments.costs, diff ? texts : pictures},
                             Shown{"--top", arguments.top > 0, diff ? texts : lists}}) {
    if (!shown.given || std::find(shown.by.begin(), shown.by.end(), format) != shown.by.end())
      continue;
    return bad_input(std::string(shown.flag) + " has no effect with --format " + format +
                     (arguments.format.empty() ? ", the default of " + arguments.command : "") +
                     "; omit it, or write --format " + join(shown.by, "|"));
  }
  return Done{};
}

Status refuse_unmeasured(const Arguments& arguments) {
  if (arguments.repeat > 0 && !arguments.measure && arguments.against.empty())
    return bad_input("--repeat counts measured repetitions: it needs --measure or --against");
  if (arguments.against.empty()) return Done{};
  if (!arguments.timeline.empty() || !arguments.nccl_tests.empty())
    return bad_input(
        "--timeline and --nccl-tests write the steps of one plan: omit them, or --against");
  if (arguments.alone)
    return bad_input(
        "--alone times members of bundles, which --against leaves out: omit one of them");
  return Done{};
}

}  // namespace

Status refuse_idle_flags(const Arguments& arguments) {
  if (arguments.common.quiet && arguments.common.verbose)
    return bad_input("--quiet and --verbose are mutually exclusive; give one");
  if (arguments.command == "run") return refuse_unmeasured(arguments);
  if (arguments.new_file && arguments.against.empty() && !arguments.git_driver)
    return bad_input("--new-file is for a file that git does not have yet: it needs --against");
  return refuse_unshown(arguments);
}

Status refuse_planning_flags(const PlanningFlags& flags) {
  const GivenOptions& given = flags.options;
  const std::pair<const char*, bool> all[] = {
      {"--topology", !flags.topology.empty()},
      {"--planner", given.planner.has_value()},
      {"--rules", given.rules.has_value()},
      {"--groups", given.groups.has_value()},
      {"--cost-model", given.cost_model.has_value()},
      {"--ranks-per-host", given.ranks_per_host.has_value()},
      {"--max-memory", given.max_memory_bytes.has_value()},
      {"--one-reduction", given.one_reduction.has_value()},
      {"--no-merge", given.merge.has_value()},
      {"--max-groups", given.max_groups.has_value()},
  };
  for (const auto& [flag, is_given] : all) {
    if (is_given)
      return bad_input(std::string(flag) +
                       " says how specs are planned, and plans are compared as they are; omit it, "
                       "or compare the specs");
  }
  return Done{};
}

}  // namespace meshplan
