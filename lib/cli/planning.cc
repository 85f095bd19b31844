#include "cli/planning.h"

#include "base/text.h"
#include "cli/git_file.h"
#include "cost/topology.h"
#include "spec/extended_file.h"

namespace meshplan {
namespace {

// A file that a spec names: one that is at hand, where a pipe might never say anything, and stays.
Result<std::string> read_named(const Context& context, const std::string& file) {
  if (context.system.may_wait(file))
    return bad_input("cannot read " + file + ": is a pipe or a device; a spec names regular files");
  for (const auto& [flag, path] : context.outputs) {
    if (context.system.same_file(file, path))
      return bad_input(flag + " " + path + " would overwrite " + file + "; write to another file");
  }
  return context.system.read_file(file);
}

// Files that a spec names are relative to its folder; those of a spec of a git revision are that
// revision's.
FileReader reader_beside(Context& context, const std::string& path) {
  return [&context, path](const std::string& name) -> Result<std::string> {
    if (name.find('\0') != std::string::npos)
      return bad_input("cannot read " + name + ": a file name cannot contain a zero byte");
    if (name.empty() || name.front() == '/') return read_named(context, name);
    const std::string file = folder_of(path) + name;
    if (path.rfind("git:", 0) != 0) return read_named(context, file);
    auto text = read_from_git(context, file, false);
    if (!text) return text.error();
    return *std::move(text).value();
  };
}

std::optional<Spec> parse_spec(Context& context, const std::string& path, const std::string& text,
                               int& code, const SpecText* again = nullptr) {
  auto spec = read_spec(text, path, reader_beside(context, path), context.diagnostics, again);
  if (!spec) code = exit_code(Fault::bad_input);
  return spec;
}

}  // namespace

std::optional<Topology> settle_topology(Context& context, const std::string& path, Spec& spec,
                                        const PlanningFlags& flags, int& code) {
  if (flags.topology.empty()) return spec.topology ? *spec.topology : uniform_topology();
  if (auto preset = topology_preset(flags.topology)) return preset;
  const bool is_path =
      flags.topology.find_first_of("./") != std::string::npos || flags.topology == "-";
  if (!is_path) {
    const auto near = nearest(flags.topology, topology_preset_names());
    code = context.fail(
        path, bad_input("--topology: there is no preset \"" + flags.topology + "\"" +
                        (near ? "; did you mean " + *near + "?"
                              : "; the presets are " + join(topology_preset_names(), " "))));
    return std::nullopt;
  }
  const auto text = context.read_input(flags.topology);
  if (!text) {
    code = context.fail(path, bad_input("--topology: " + text.error().message));
    return std::nullopt;
  }
  Diagnostics own;
  auto topology = read_topology_file(*text, flags.topology, own);
  for (Diagnostic& warning : own.take_warnings()) spec.warnings.push_back(std::move(warning));
  context.diagnostics.add_all(own);
  if (!topology) code = exit_code(Fault::bad_input);
  return topology;
}

std::optional<PlannedSpec> plan_spec_text(Context& context, const std::string& path,
                                          const std::string& text, const PlanningFlags& flags,
                                          int& code, const SpecText* again) {
  auto spec = parse_spec(context, path, text, code, again);
  if (!spec) return std::nullopt;
  SpecQuestion question{path, flags.options, std::nullopt, context.flags.warnings};
  question.topology = settle_topology(context, path, *spec, flags, code);
  if (!question.topology) return std::nullopt;
  const int64_t start = context.system.now_ms();
  auto planned = plan_read_spec(*std::move(spec), text, question, context.diagnostics, code);
  context.explain(path + ": planned in " + std::to_string(context.system.now_ms() - start) + " ms");
  return planned;
}

std::optional<PlannedSpec> plan_spec(Context& context, const std::string& path,
                                     const PlanningFlags& flags, int& code) {
  const auto text = context.read_input(path, code);
  if (!text) return std::nullopt;
  return plan_spec_text(context, path, *text, flags, code);
}

std::optional<Spec> load_spec(Context& context, const std::string& path, int& code) {
  const auto text = context.read_input(path, code);
  if (!text) return std::nullopt;
  return parse_spec(context, path, *text, code);
}

std::optional<Spec> load_spec_text(Context& context, const std::string& path,
                                   const std::string& text, int& code) {
  return parse_spec(context, path, text, code);
}

std::optional<Plan> load_plan(Context& context, const std::string& path, int& code) {
  const auto text = context.read_input(path, code);
  if (!text) return std::nullopt;
  return load_plan_text(context, path, *text, code);
}

std::optional<Plan> load_plan_text(Context& context, const std::string& path,
                                   const std::string& text, int& code) {
  return load_plan_text(text, path, context.diagnostics, code);
}

}  // namespace meshplan
