// meshplan run PLAN
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "diag/outcome_codes.h"
#include "measure/measure.h"
#include "replay/executor.h"
#include "replay_host/launch.h"
#include "replay_host/open_backend.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

Result<ReplayOptions> replay_options(const Arguments& arguments, Progress& progress) {
  ReplayOptions options;
  options.only_ids = arguments.only;
  options.data = arguments.random_data ? DataKind::random : DataKind::exact;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.shrink = arguments.shrink;
  options.full_size = arguments.full_size;
  if (options.shrink && options.full_size)
    return bad_input("--shrink and --full-size are mutually exclusive");
  for (const std::string& text : arguments.inject) {
    const auto fault = parse_fault(text);
    if (!fault) return bad_input("--inject: " + fault.error().message);
    options.faults.push_back(*fault);
  }
  options.graph = arguments.graph;
  if (options.graph && arguments.backend != "nccl")
    return bad_input("--graph records CUDA graphs: it needs --backend nccl");
  const bool registers = !arguments.buffers.empty() && arguments.buffers != "none";
  if (registers && arguments.backend != "nccl")
    return bad_input("--register registers buffers with NCCL: it needs --backend nccl");
  if (arguments.deadline > 0) options.step_deadline = std::chrono::seconds(arguments.deadline);
  if (!arguments.measure && !(arguments.timeline.empty() && arguments.nccl_tests.empty())) {
    return bad_input("--timeline and --nccl-tests write measured times: they need --measure");
  }
  if (!arguments.inject.empty() && (arguments.measure || !arguments.against.empty()))
    return bad_input(
        "--inject strikes a replay that is checked, not timed: omit --measure, --against");
  if (arguments.alone && !arguments.measure)
    return bad_input("--alone times the members of bundles: it needs --measure");
  options.progress = [&progress](size_t done, size_t all, const std::string& id) {
    progress.update(done, all, "replaying " + id);
  };
  return options;
}

// Result of a run of any kind.
struct Outcome {
  bool is_root = true;
  std::string text;    // for people
  std::string report;  // JSON
  std::string timeline;
  std::string nccl_tests;
  std::string wrong;  // what is; empty: nothing
};

void add_replay(Outcome& outcome, const ReplayReport& replay) {
  outcome.is_root = outcome.is_root && replay.is_root;
  const std::string wrong = what_is_wrong(replay);
  outcome.wrong += (outcome.wrong.empty() || wrong.empty() ? "" : "; ") + wrong;
}

// The host backend plays the ranks of PLAN.
Status check_ranks(const Plan& plan, const Plan& against, const Arguments& arguments) {
  const int64_t ranks = rank_count(plan.meshes);
  const int64_t others = rank_count(against.meshes);
  if (arguments.backend != "host" || others <= ranks) return Done{};
  return bad_input("--against " + arguments.against + ": it has " + with_commas(others) +
                   " ranks, the plan has " + with_commas(ranks) +
                   "; compare plans for the same ranks");
}

Result<Outcome> run_plan(const Plan& plan, const std::optional<Plan>& against,
                         const ReplayOptions& options, const Arguments& arguments) {
  if (against) {
    if (auto fits = check_ranks(plan, *against, arguments); !fits) return fits.error();
  }
  auto question = backend_question(arguments.backend, plan, options);
  if (!question) return question.error();
  if (!arguments.buffers.empty()) question->register_buffers = arguments.buffers;
  question->measures = arguments.measure || against;
  auto backend = open_backend(arguments.backend, *question);
  if (!backend) return backend.error();

  Outcome outcome;
  if (!arguments.measure && !against) {
    const auto replayed = replay(plan, options, *backend->communicator, *backend->device);
    if (!replayed) return replayed.error();
    add_replay(outcome, *replayed);
    outcome.text = to_text(*replayed);
    if (!arguments.report.empty()) outcome.report = write_report(untimed(plan, options, *replayed));
    return outcome;
  }
  MeasureOptions measuring;
  measuring.replay = options;
  measuring.alone = arguments.alone;
  if (arguments.repeat > 0) measuring.repetitions = arguments.repeat;
  if (!against) {
    const auto measured = measure(plan, measuring, *backend->communicator, *backend->device);
    if (!measured) return measured.error();
    add_replay(outcome, replay_part(*measured));
    outcome.text = to_text(*measured);
    outcome.report = write_report(*measured);
    outcome.timeline = write_timeline(*measured);
    outcome.nccl_tests = write_nccl_tests_json(*measured);
    return outcome;
  }
  const auto compared =
      measure_against(plan, *against, measuring, *backend->communicator, *backend->device);
  if (!compared) return compared.error();
  add_replay(outcome, replay_part(compared->first));
  add_replay(outcome, replay_part(compared->second));
  outcome.text = to_text(*compared);
  outcome.report = write_report(*compared);
  return outcome;
}

// mpirun as root and with more ranks than cores, as in containers: Open MPI (4, then 5 and its
// PRRTE) refuses both unless told; what the user has set holds, and other MPIs read none of these.
const Variables mpi_defaults = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
                                {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"}};

// Runs the command under mpirun. A process of meshplan ends with one of its exit codes, which
// mpirun hands on; any other code, 1 above all, is mpirun's own.
int launch_mpi(Context& context, const std::string& path, std::vector<std::string> command,
               int64_t ranks) {
  const std::string number = std::to_string(ranks);
  command.insert(command.begin(), {"mpirun", "-n", number});
  const auto code = context.system.run_attached(command, mpi_defaults);
  if (!code) {
    return context.fail(path,
                        environment(code.error().message +
                                    "; install an MPI (Debian: openmpi-bin), or "
                                    "start the processes with your launcher and without --launch"));
  }
  const std::initializer_list<int> own = {0, 2, 3, 4, 5, internal_error};
  if (std::find(own.begin(), own.end(), *code) != own.end()) return *code;
  return context.fail(
      path, environment("mpirun -n " + number + " failed with exit code " + std::to_string(*code) +
                        ", its message is above; its settings are its own environment variables, "
                        "such as OMPI_MCA_..., or start the processes without --launch"));
}

// --launch with fewer ranks than the plan has: told before any starts. What can be read once only,
// as a pipe, is left to the processes. NCCL's one process plays all ranks.
std::optional<int> refuse_too_few(Context& context, const std::string& path,
                                  const Arguments& arguments) {
  if (path == "-" || context.system.may_wait(path)) return std::nullopt;
  if (arguments.backend == "nccl" && arguments.launch == 1) return std::nullopt;
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  const int64_t ranks = rank_count(plan->meshes);
  if (arguments.launch >= ranks) return std::nullopt;
  return context.fail(path, environment("the plan needs " + with_commas(ranks) +
                                        " ranks, --launch starts " + with_commas(arguments.launch) +
                                        "; run it with --launch " + std::to_string(ranks)));
}

// --launch: runs the same command in N processes, under mpirun or started directly; returns the
// exit code.
int launch(Context& context, const std::string& path, const Arguments& arguments) {
  if (arguments.backend == "host") {
    return context.fail(
        path,
        bad_input(
            "--launch starts the ranks of the mpi and nccl backends; the host backend plays all ranks in one process"));
  }
  if (const auto allowed = may_launch(arguments.launch); !allowed)
    return context.fail(path, allowed.error());
  if (const auto refused = refuse_too_few(context, path, arguments)) return *refused;
  std::vector<std::string> command = {context.system.own_path()};
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    if (arguments.words[i] == "--launch") {
      ++i;
    } else if (arguments.words[i].rfind("--launch=", 0) != 0) {
      command.push_back(arguments.words[i]);
    }
  }
  if (arguments.backend == "mpi") return launch_mpi(context, path, command, arguments.launch);
  std::string messages;
  const auto code = context.system.launch(command, arguments.launch, messages);
  for (size_t at = 0; at < messages.size();) {
    const size_t end = std::min(messages.find('\n', at), messages.size());
    context.say(messages.substr(at, end - at));
    at = end + 1;
  }
  return code ? *code : context.fail(path, code.error());
}

// Verify first: an incorrect plan is not started.
std::optional<int> refuse_unproven(Context& context, const std::string& path, const Plan& plan) {
  const auto proven = verify_plan(plan);
  if (proven) return std::nullopt;
  wait_for_root_output();
  return is_root_process() ? context.fail(path, proven.error()) : exit_code(proven.error().fault);
}

}  // namespace

int run_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  if (arguments.launch > 0) return launch(context, path, arguments);
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  if (const auto refused = refuse_unproven(context, path, *plan)) return *refused;
  std::optional<Plan> against;
  if (!arguments.against.empty()) {
    against = load_plan(context, arguments.against, code);
    if (!against) return code;
    if (const auto refused = refuse_unproven(context, arguments.against, *against)) return *refused;
  }
  Progress progress(context);
  const auto options = replay_options(arguments, progress);
  if (!options) return context.fail(path, options.error());
  const auto outcome = run_plan(*plan, against, *options, arguments);
  progress.clear();
  if (!outcome) {
    // Under a launcher every process has the error and the root prints it.
    wait_for_root_output();
    return is_root_process() ? context.fail(path, outcome.error())
                             : exit_code(outcome.error().fault);
  }
  if (outcome->is_root) {
    for (const auto& [file, text] : {std::pair{&arguments.report, &outcome->report},
                                     std::pair{&arguments.timeline, &outcome->timeline},
                                     std::pair{&arguments.nccl_tests, &outcome->nccl_tests}}) {
      if (file->empty()) continue;
      if (const auto written = context.write_output(*file, *text); !written)
        return context.fail("", written.error());
    }
    if (arguments.report != "-" && arguments.timeline != "-" && arguments.nccl_tests != "-") {
      if (const auto written = context.write_output("-", outcome->text); !written)
        return context.fail("", written.error());
    }
  }
  if (outcome->wrong.empty()) return 0;
  const Error error = wrong_data(outcome->wrong);
  if (outcome->is_root) return context.fail(path, error);
  wait_for_root_output();
  return exit_code(error.fault);
}

}  // namespace meshplan
