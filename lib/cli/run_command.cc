// meshplan run PLAN
#include "base/text.h"
#include "cli/codes.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "measure/measure.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"

namespace meshplan {
namespace {

Result<ReplayOptions> replay_options(const Arguments& arguments, Progress& progress) {
  ReplayOptions options;
  options.only_ids = arguments.only;
  options.data = arguments.random_data ? DataKind::random : DataKind::exact;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.shrink = arguments.shrink;
  options.full_size = arguments.full_size;
  if (options.shrink && options.full_size) return bad_input("--shrink and --full-size exclude each other");
  for (const std::string& text : arguments.inject) {
    const auto fault = parse_fault(text);
    if (!fault) return bad_input("--inject: " + fault.error().message);
    options.faults.push_back(*fault);
  }
  options.progress = [&progress](size_t done, size_t all, const std::string& id) { progress.update(done, all, "replaying " + id); };
  return options;
}

// What a run came to, whatever kind it was.
struct Outcome {
  bool speaks = true;
  std::string text;    // for people
  std::string report;  // JSON
  int64_t wrong = 0;
  int64_t checked = 0;
  bool right = true;
};

void add_replay(Outcome& outcome, const ReplayReport& replay) {
  outcome.speaks = outcome.speaks && replay.speaks;
  outcome.wrong += wrong_elements(replay);
  outcome.checked += checked_elements(replay);
  outcome.right = outcome.right && all_right(replay);
}

Result<Outcome> run_plan(const Plan& plan, const std::optional<Plan>& against, const ReplayOptions& options, const Arguments& arguments) {
  BackendQuestion question;
  question.world = plan.meshes.universe->world;
  question.global_ids = make_rank_table(*plan.meshes.universe).global_ids;
  question.threads = options.threads;
  question.deadline = options.step_deadline;
  if (!arguments.buffers.empty()) question.register_buffers = arguments.buffers;
  auto backend = open_backend(arguments.backend, question);
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
  if (arguments.repeat > 0) measuring.repetitions = arguments.repeat;
  if (!against) {
    const auto measured = measure(plan, measuring, *backend->communicator, *backend->device);
    if (!measured) return measured.error();
    add_replay(outcome, replay_part(*measured));
    outcome.text = to_text(*measured);
    outcome.report = write_report(*measured);
    return outcome;
  }
  const auto compared = measure_against(plan, *against, measuring, *backend->communicator, *backend->device);
  if (!compared) return compared.error();
  add_replay(outcome, replay_part(compared->first));
  add_replay(outcome, replay_part(compared->second));
  outcome.text = to_text(*compared);
  outcome.report = write_report(*compared);
  return outcome;
}

// --launch: the same command under mpirun. Comes back only where there is no mpirun.
Error launch(Context& context, const Arguments& arguments) {
  if (arguments.backend != "mpi") {
    return bad_input("--launch starts the ranks of the mpi backend; the " + arguments.backend + " backend needs no launcher here");
  }
  std::vector<std::string> command = {"mpirun", "-n", std::to_string(arguments.launch), context.system.own_path()};
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    if (arguments.words[i] == "--launch") {
      ++i;
    } else if (arguments.words[i].rfind("--launch=", 0) != 0) {
      command.push_back(arguments.words[i]);
    }
  }
  return context.system.become(command);
}

}  // namespace

int run_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  if (arguments.launch > 0) return context.fail(path, launch(context, arguments));
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  std::optional<Plan> against;
  if (!arguments.against.empty()) {
    against = load_plan(context, arguments.against, code);
    if (!against) return code;
  }
  Progress progress(context);
  const auto options = replay_options(arguments, progress);
  if (!options) return context.fail(path, options.error());
  const auto outcome = run_plan(*plan, against, *options, arguments);
  progress.clear();
  if (!outcome) {
    // Under a launcher every process knows the error and the first one says it.
    let_the_speaker_finish();
    return process_speaks() ? context.fail(path, outcome.error()) : exit_code(outcome.error().fault);
  }
  if (outcome->speaks) {
    if (!arguments.report.empty()) {
      if (const auto written = context.write_output(arguments.report, outcome->report); !written) return context.fail("", written.error());
    }
    if (arguments.report != "-") {
      if (const auto written = context.write_output("-", outcome->text); !written) return context.fail("", written.error());
    }
  }
  if (outcome->right) return 0;
  const Error error =
      wrong_data(with_commas(outcome->wrong) + " of " + with_commas(outcome->checked) + " elements are not where or what they should be");
  if (outcome->speaks) return context.fail(path, error);
  let_the_speaker_finish();
  return exit_code(error.fault);
}

}  // namespace meshplan
