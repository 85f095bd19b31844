#include "cli/cli.h"

#include <optional>
#include <ostream>
#include <system_error>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/idle_flags.h"
#include "cost/topology.h"
#include "diag/outcome_codes.h"
#include "replay_host/open_backend.h"

namespace meshplan {
namespace {

int dispatch(Context& context, const Arguments& arguments) {
  static constexpr std::pair<std::string_view, int (*)(Context&, const Arguments&)> commands[] = {
      {"plan", plan_command},           {"schema", schema_command},
      {"explain", explain_command},     {"check", check_command},
      {"calibrate", calibrate_command}, {"completion", completion_command},
      {"show", show_command},           {"diff", diff_command},
      {"verify", verify_command},       {"run", run_command},
      {"mesh", mesh_command},           {"transfers", transfers_command},
      {"compare", compare_command},
  };
  for (const auto& [name, command] : commands) {
    if (name == arguments.command) return command(context, arguments);
  }
  MESHPLAN_CHECK(false, "every command that the parser knows has a function, and " +
                            arguments.command + " has none");
}

// The outputs, which must not overwrite inputs or each other. That one cannot be written is told
// before anything is computed, by the process that writes.
Result<std::vector<std::pair<std::string, std::string>>> checked_outputs(
    System& system, const Arguments& arguments) {
  const auto is_file = [](const std::string& path) { return !path.empty() && path != "-"; };
  std::vector<std::string> inputs = arguments.inputs;
  inputs.push_back(arguments.against);
  inputs.insert(inputs.end(), arguments.ran.begin(), arguments.ran.end());
  if (!topology_preset(arguments.planning.topology)) inputs.push_back(arguments.planning.topology);
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const auto& [flag, path] :
       {std::pair<const char*, const std::string&>{"--output", arguments.output},
        {"--report", arguments.report},
        {"--timeline", arguments.timeline},
        {"--nccl-tests", arguments.nccl_tests},
        {"--junit", arguments.junit}}) {
    if (!is_file(path)) continue;
    for (const std::string& input : inputs) {
      if (is_file(input) && system.same_file(input, path)) {
        return bad_input(std::string(flag) + " " + path + " would overwrite the input " + input +
                         "; write to another file");
      }
    }
    for (const auto& [other, written] : outputs) {
      if (written == path || system.same_file(written, path)) {
        return bad_input(std::string(flag) + " " + path + " would overwrite what " + other +
                         " writes; write to another file");
      }
    }
    if (arguments.command != "run" || is_root_process()) {
      if (auto may = system.may_write(path); !may) return may.error();
    }
    outputs.emplace_back(flag, path);
  }
  return outputs;
}

// --diagnostics and --color hold for bad usage as well, where they could not be parsed with the
// rest.
CommonFlags flags_of_bad_usage(const std::vector<std::string>& words) {
  CommonFlags flags;
  const auto value = [&](const std::string& name) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == name && i + 1 < words.size()) return words[i + 1];
      if (words[i].rfind(name + "=", 0) == 0) return words[i].substr(name.size() + 1);
    }
    return std::string();
  };
  flags.diagnostics =
      parse_diagnostic_format(value("--diagnostics")).value_or(DiagnosticFormat::text);
  if (value("--color") == "always") flags.color = ColorChoice::always;
  if (value("--color") == "never") flags.color = ColorChoice::never;
  return flags;
}

void print_diagnostics(Context& context) {
  DiagnosticRendering rendering;
  rendering.format = context.flags.diagnostics;
  rendering.color = context.color(Stream::err);
  rendering.tool_version = MESHPLAN_VERSION;
  context.err << render(context.diagnostics, rendering) << std::flush;
}

int run_checked(Context& context, const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  int code = 0;
  if (!arguments) {
    context.flags = flags_of_bad_usage(words);
    code = context.fail("", arguments.error(), code_bad_usage);
  } else if (const auto filled = refuse_empty_files(*arguments); !filled) {
    context.flags = flags_of_bad_usage(words);
    code = context.fail("", filled.error(), code_bad_usage);
  } else {
    context.flags = arguments->common;
    if (arguments->answer) {
      const auto written = context.write_output("-", *arguments->answer);
      code = written ? 0 : context.fail("", written.error());
    } else if (const auto outputs = checked_outputs(context.system, *arguments); !outputs) {
      code = context.fail("", outputs.error());
    } else {
      context.outputs = *outputs;
      if (const auto idle = idle_flag(*arguments); idle && is_root_process()) context.say(*idle);
      code = dispatch(context, *arguments);
    }
  }
  print_diagnostics(context);
  return code;
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, System& system, std::istream& in,
            std::ostream& out, std::ostream& err) {
  Context context(system, in, out, err);
  std::string what;
  std::optional<Error> lacking;
  try {
    return run_checked(context, arguments);
  } catch (const std::bad_alloc&) {
    lacking = out_of_memory();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) lacking = out_of_threads();
    what = error.what();
  } catch (const std::exception& error) {
    what = error.what();
  }
  try {
    if (lacking) {
      const int code = context.fail("", *lacking);
      print_diagnostics(context);
      return code;
    }
    context.diagnostics.add(diagnostic_of_bug(MESHPLAN_VERSION, what));
    print_diagnostics(context);
  } catch (const std::exception&) {
    return internal_error;
  }
  return internal_error;
}

}  // namespace meshplan
