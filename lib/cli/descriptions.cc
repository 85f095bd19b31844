// All commands and flags with their help: the table behind help, completion, man page and
// suggestions.
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/system.h"
#include "cost/topology.h"
#include "diag/codes.h"
#include "json/scan.h"
#include "render/mesh_view.h"
#include "replay_host/open_backend.h"

namespace meshplan {
namespace {

std::vector<FlagDescription> with(std::vector<FlagDescription> own,
                                  const std::vector<std::vector<FlagDescription>>& shared) {
  for (const auto& list : shared) own.insert(own.end(), list.begin(), list.end());
  return own;
}

const std::vector<FlagDescription> planning = {
    {"--planner", "greedy|graph|optimal",
     "planning algorithm; greedy and graph follow PyTorch's rules (default: optimal)"},
    {"--rules", "dtensor|native",
     "allowed steps: PyTorch's or all (default: those of the planner)"},
    {"--groups", "declared|any", "communicators that a plan may use (default: declared)"},
    {"--cost-model", "topology|dtensor|unit", "cost model of the graph planner (default: dtensor)"},
    {"--topology", "NAME|FILE",
     "a preset (" + join(topology_preset_names(), " ") + ") or a topology file",
     topology_preset_names()},
    {"--ranks-per-host", "N", "ranks per host, for the dtensor cost model"},
    {"--max-memory", "BYTES",
     "limit of the peak of every step; 0: no state above the larger of source and target, -1: no limit"},
    {"--one-reduction", "",
     "reduce in a single collective, so that all replicas are bitwise equal"},
    {"--no-merge", "",
     "do not merge steps of neighbouring mesh dims into one (planners greedy and graph)"},
    {"--max-groups", "K",
     "name the K flattens that save most; with --groups any the plan runs on no others"},
};

const std::vector<FlagDescription> showing = {
    {"--detail", "summary|changes|full",
     "totals only, communicating steps, or everything (default: changes)"},
    {"--costs", "on|off",
     "off omits predicted times, for output that is independent of the cost model"},
    {"--top", "N", "show the N most expensive redistributions, the others in one line"},
};

}  // namespace

const std::vector<CommandDescription>& command_descriptions() {
  static const std::vector<CommandDescription> commands = {
      {"plan",
       "SPEC",
       "plan every redistribution of a spec, verify the plan and write it",
       {"meshplan plan spec.json -o plan.json",
        "meshplan plan spec.json --format text        # the table, nothing written",
        "meshplan plan spec.json --topology h100 --groups any",
        "meshplan plan spec.json --planner greedy     # what PyTorch does"},
       with({{"-o,--output", "PLAN", "output file, replaced atomically (default: stdout)"},
             {"--format", "json|text|markdown|torch|svg|html|mermaid|dot|perfetto",
              "output format (default: json, the plan file)"},
             {"--audit", "", "report where PyTorch's plan for the same request is worse or wrong"},
             {"--alternatives", "N", "list the best plan by each other first step, N at most"}},
            {planning, showing})},
      {"show",
       "PLAN",
       "render a plan",
       {"meshplan show plan.json", "meshplan show plan.json --detail full",
        "meshplan show plan.json --format html -o plan.html",
        "meshplan plan spec.json | meshplan show -"},
       with(
           {{"--format", "text|json|markdown|torch|svg|html|mermaid|dot|perfetto", "default: text"},
            {"-o,--output", "FILE", "output file (default: stdout)"},
            {"--id", "ID", "only this redistribution; may be repeated"}},
           {showing})},
      {"explain",
       "PLAN|CODE [ID]",
       "explain each step and its cost, or a diagnostic code",
       {"meshplan explain plan.json                    # every redistribution",
        "meshplan explain plan.json layers.wq.grad", "meshplan explain W0301"},
       {{"-o,--output", "FILE", "output file (default: stdout)"}}},
      {"diff",
       "OLD NEW",
       "compare two plans, or two specs, by meaning: exit 0 same, 1 different",
       {"meshplan diff old.plan.json new.plan.json",
        "meshplan diff old.json new.json                        # specs are planned first",
        "meshplan diff plan.json --against git:main:plan.json   # what this branch changes",
        "meshplan diff old.json new.json --fail-on slower=5% --format markdown"},
       with(
           {{"--format", "text|json|markdown|html|github|sarif", "default: text"},
            {"-o,--output", "FILE", "output file (default: stdout)"},
            {"--against", "git:REF:PATH",
             "take the old side from git; the new side is the only input"},
            {"-N,--new-file", "",
             "with --against: if the file is new in git, report everything as added; only --fail-on any fails"},
            {"--git-driver", "", "arguments are those of a git diff driver; always exit 0"},
            {"--fail-on",
             "slower[=N%]|numerics|warnings|any",
             "exit 1 only on this kind of change; may be repeated (default: any)",
             {"slower", "numerics", "warnings", "any"}},
            {"--only-if", "slower|numerics|warnings|any",
             "print only if there is this kind of change"}},
           {showing, planning})},
      {"check",
       "SPEC [PLAN]",
       "check that the committed plan is current and budgets are met",
       {"meshplan check spec.json plan.json",
        "meshplan check spec.json                     # with spec.plan.json, if it exists",
        "meshplan check specs/                        # every spec in a folder, likewise",
        "meshplan check a.json b.json --junit check.xml -W error",
        "meshplan check spec.json --record \"python train.py --its arguments\""},
       with(
           {{"--record", "COMMAND",
             "record the program again and compare: python runs under meshplan.capture, other commands write $MESHPLAN_RECORD"},
            {"--junit", "FILE", "also write the results as JUnit XML"},
            {"--jobs", "N", "files planned in parallel (default: number of cores, at most 16)"}},
           {planning})},
      {"verify",
       "PLAN",
       "prove a plan correct without planning",
       {"meshplan verify plan.json", "meshplan plan spec.json | meshplan verify -"},
       {}},
      {"run",
       "PLAN",
       "replay a plan on data and check every element of every rank",
       {"meshplan run plan.json                        # all ranks in this process",
        "meshplan run plan.json --shrink               # at a small shape with the same divisibility",
        "meshplan run plan.json --inject 0:3:flip      # an injected fault is detected and located",
        "meshplan run plan.json --measure --report report.json",
        "mpirun -n 8 meshplan run plan.json --backend mpi",
        "meshplan run plan.json --backend nccl --launch 8   # one process per GPU of this machine"},
       {{"--backend", "host|mpi|nccl",
         "communication backend (default: host, all ranks in this process, at most " +
             with_commas(max_host_ranks) + ")"},
        {"--shrink", "", "replay the smallest shape with the same divisibility and empty shards"},
        {"--full-size", "", "never shrink, regardless of the size"},
        {"--id", "ID", "only this redistribution, or bundle; may be repeated"},
        {"--data", "exact|random",
         "exact: bitwise; random: error against float64 (default: exact)"},
        {"--seed", "N", "seed of the data (default: 1)"},
        {"--inject", "STEP:RANK:KIND",
         "inject a fault, of a bundle in a round: flip, drop, swap, ...; may be repeated"},
        {"--launch", "N",
         "start N processes on this machine: with mpirun (mpi), or by itself (nccl)"},
        {"--deadline", "N",
         "time limit of a step in seconds, of the start ten times as long (default: 60)"},
        {"--measure", "", "time every step, and of bundles every wave of rounds"},
        {"--alone", "", "with --measure: time the members of bundles also one by one, in turns"},
        {"--repeat", "N", "measured repetitions (default: 20)"},
        {"--against", "PLAN", "also measure this plan, interleaved"},
        {"--report", "FILE", "write the report, with every sample, as JSON"},
        {"--timeline", "FILE", "write predicted and measured steps for Perfetto (with --measure)"},
        {"--nccl-tests", "FILE",
         "write the measured steps in nccl-tests' JSON form (with --measure)"},
        {"--register", "none|local|symmetric", "registration of buffers (nccl)"},
        {"--graph", "",
         "each redistribution as a CUDA graph, too; --measure times graphs, of steps as well (nccl)"}}},
      {"transfers",
       "PLAN [ID...]",
       "list what every rank sends and receives: box, peer, place in the buffers, bytes",
       {"meshplan transfers plan.json layers.wq.grad --format csv",
        "meshplan transfers plan.json --rank 3         # what rank 3 sends, receives and keeps",
        "meshplan transfers plan.json --bundle sync    # of a bundle, round by round",
        "meshplan transfers plan.json -o transfers.json"},
       {{"--format", "json|csv", "default: json; the columns: meshplan schema transfers"},
        {"--rank", "R", "only the rows in which this global rank sends, receives or keeps a box"},
        {"--bundle", "ID", "the rounds of this bundle, every tensor in its place in the messages"},
        {"-o,--output", "FILE", "output file, replaced atomically (default: stdout)"}}},
      {"compare",
       "PLAN",
       "compare what PyTorch really ran with what was planned: exit 0 as planned, 1 different",
       {"meshplan compare plan.json --ran flight-recorder-rank-0.json",
        "meshplan compare plan.json --ran rank*.json --repeat 10   # ten steps of the program",
        "meshplan compare plan.json --ran profiler-trace.json"},
       {{"--ran", "DUMP...",
         "JSON of the flight recorder, the profiler (Kineto) or the execution trace (Chakra), one file per rank"},
        {"--repeat", "N", "how often the planned program ran (default: 1)"},
        {"-o,--output", "FILE", "output file (default: stdout)"}}},
      {"calibrate",
       "REPORT...",
       "fit a topology to what was measured: reports, nccl-tests' logs, NCCL Inspector's records",
       {"meshplan calibrate report.json -o topology.json",
        "meshplan calibrate all_reduce.log all_gather.log -o topology.json",
        "meshplan plan spec.json --topology topology.json",
        "meshplan calibrate --topology topology.json --against all_reduce.log"},
       {{"-o,--output", "FILE",
         "write the topology here, the table to stdout (default: the topology to stdout)"},
        {"--topology", "NAME|FILE",
         "start from this one (default: the topology of the first report, or the hosts of the logs)",
         topology_preset_names()},
        {"--against", "LOG", "only compare a log with the topology given or calibrated"}}},
      {"mesh",
       "SPEC",
       "print layouts, groups and shared communicators of a spec's meshes",
       {"meshplan mesh spec.json", "meshplan mesh spec.json --ranks --format json",
        "meshplan mesh spec.json --rank 17"},
       {{"--format", "text|json", "default: text"},
        {"--ranks", "",
         "list the ranks of every mesh and communicator, for at most " +
             with_commas(max_listed_ranks) + " in all"},
        {"--rank", "R", "print the coordinates of one global rank"},
        {"-o,--output", "FILE", "output file (default: stdout)"}}},
      {"schema",
       "spec|plan|mesh|diff|report|transfers",
       "print a JSON Schema",
       {"meshplan schema spec > spec.schema.json"},
       {}},
      {"completion",
       "bash|zsh|fish",
       "print the completion script of a shell",
       {"meshplan completion bash > /etc/bash_completion.d/meshplan",
        "meshplan completion zsh > \"${fpath[1]}/_meshplan\"",
        "meshplan completion fish > ~/.config/fish/completions/meshplan.fish"},
       {}},
  };
  return commands;
}

std::vector<std::string> warning_words() {
  std::vector<std::string> words = {"error"};
  for (const std::string& kind : warning_kinds()) words.push_back("error=" + kind);
  for (const std::string& kind : warning_kinds()) words.push_back("no-" + kind);
  return words;
}

const std::vector<FlagDescription>& common_flag_descriptions() {
  static const std::vector<FlagDescription> flags = {
      {"-h,--help", "", "examples and flags"},
      {"--color", "auto|always|never",
       "colours (default: auto, on a terminal unless NO_COLOR is set)"},
      {"-q,--quiet", "", "print only errors and warnings"},
      {"-v,--verbose", "", "print more messages"},
      {"-W", "error|no-KIND|...",
       "error: treat warnings as errors; error=KIND; no-KIND hides a kind (" +
           join(warning_kinds(), ", ") + ")",
       warning_words()},
      {"--diagnostics", "text|json|github|sarif",
       "how errors and warnings are printed on stderr (default: text)"},
  };
  return flags;
}

namespace {

std::string flag_lines(const std::vector<FlagDescription>& flags) {
  std::string text;
  for (const FlagDescription& flag : flags) {
    std::string left = "  ";
    for (const char c : flag.names) left += c == ',' ? std::string(", ") : std::string(1, c);
    if (!flag.value.empty()) left += " " + flag.value;
    left += left.size() < 30 ? std::string(30 - left.size(), ' ') : "\n" + std::string(30, ' ');
    text += left + flag.help + "\n";
  }
  return text;
}

}  // namespace

std::string help_text(const std::string& command) {
  if (command.empty()) {
    std::string text =
        "Plans how sharded tensors move between layouts on a device mesh, and proves the plan by replay.\n\n"
        "Examples:\n"
        "  meshplan plan spec.json -o plan.json      # plan the redistributions of a spec\n"
        "  meshplan show plan.json                   # see the collectives, their bytes and times\n"
        "  meshplan run plan.json                    # replay it on data, checking every element\n"
        "  meshplan diff plan.json --against git:main:plan.json\n\n"
        "Usage: meshplan COMMAND [FLAGS]\n\nCommands:\n";
    for (const CommandDescription& each : command_descriptions()) {
      std::string left = "  " + each.name + " " + each.inputs;
      left += left.size() < 38 ? std::string(38 - left.size(), ' ') : " ";
      text += left + each.summary + "\n";
    }
    text += "\nFlags of every command:\n" + flag_lines(common_flag_descriptions());
    text += "\nWithout a command:\n" + flag_lines({{"--version", "", "print the version"},
                                                   {"--help-man", "", "print this as a man page"}});
    text +=
        "\n\"-\" means stdin or stdout in place of a file; files are limited to " +
        human_bytes(max_input_bytes) + ", specs to " + human_bytes(max_json_bytes) +
        ".\n"
        "Exit codes: 0 done; 1 a difference, a budget or --fail-on;\n"
        "2 bad usage or input; 3 no plan exists; 4 wrong data; 5 missing requirements; 70 a bug in meshplan.\n"
        "meshplan COMMAND --help shows more.\n";
    return text;
  }
  for (const CommandDescription& each : command_descriptions()) {
    if (each.name != command) continue;
    std::string text = "Examples:\n";
    for (const std::string& example : each.examples) text += "  " + example + "\n";
    text += "\nUsage: meshplan " + each.name + " " + each.inputs + " [FLAGS]\n\n";
    std::string summary = each.summary;
    summary[0] = static_cast<char>(summary[0] - 'a' + 'A');
    text += summary + ".\n\n";
    if (!each.flags.empty()) text += "Flags:\n" + flag_lines(each.flags) + "\n";
    return text + "Flags of every command:\n" + flag_lines(common_flag_descriptions());
  }
  return {};
}

std::string version_text() { return std::string("meshplan ") + MESHPLAN_VERSION + "\n"; }

}  // namespace meshplan
