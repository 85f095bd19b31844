#include "cli/idle_flags.h"

#include <algorithm>

#include "base/text.h"

namespace meshplan {
namespace {

using Formats = std::vector<std::string>;

// Flags of what is shown, against the formats that show it.
std::optional<std::string> unshown(const Arguments& arguments) {
  const bool diff = arguments.command == "diff";
  if (!diff && arguments.command != "plan" && arguments.command != "show") return std::nullopt;
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
    return std::string(shown.flag) + " has no effect with --format " + format +
           (arguments.format.empty() ? ", the default of " + arguments.command : "") +
           "; omit it, or write --format " + join(shown.by, "|");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> idle_flag(const Arguments& arguments) {
  const bool against = !arguments.against.empty();
  if (arguments.repeat > 0 && !arguments.measure && !against)
    return "--repeat counts measured repetitions and has no effect without --measure or --against";
  if (arguments.command == "run" && arguments.alone && against)
    return "--alone times members of bundles one by one, which --against does anyhow";
  if (arguments.new_file && !against && !arguments.git_driver)
    return "--new-file is for a file that git does not have yet, and has no effect without "
           "--against";
  return unshown(arguments);
}

std::optional<std::string> idle_planning_flag(const PlanningFlags& flags) {
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
    if (!is_given) continue;
    return std::string(flag) +
           " says how specs are planned, and has no effect on plans; omit it, or compare the specs";
  }
  return std::nullopt;
}

Status refuse_empty_files(const Arguments& arguments) {
  if (arguments.command == "run" && !arguments.against.empty() &&
      (!arguments.timeline.empty() || !arguments.nccl_tests.empty()))
    return bad_input(
        "--timeline and --nccl-tests write the steps of one plan: omit them, or --against");
  return Done{};
}

}  // namespace meshplan
