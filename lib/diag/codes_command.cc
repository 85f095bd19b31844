#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> command_codes() {
  const auto budget = [](const std::string& bytes) {
    const std::string gather = redistribution_of(
        R"~("tensor": {"shape": [4096, 1024], "dtype": "float16"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~");
    return gather.substr(0, gather.size() - 2) +
           ",\n  \"budgets\": {\"total\": {\"wire_bytes\": " + bytes + "}}\n}";
  };
  // Plans of one spec for a faster and a slower machine.
  const std::string two_plans =
      "meshplan plan spec.json --topology h100 -o fast.plan.json\nmeshplan plan spec.json --topology a100 -o slow.plan.json\n";
  return {
      {"E0501", "bad_plan", "a plan file that cannot be read",
       "The file is not a plan, has another major version, or was changed after it was written "
       "(its digest covers all other content). Plan again from the spec.",
       "meshplan verify spec.json",
       "meshplan plan spec.json -o plan.json\nmeshplan verify plan.json"},
      {"E0502", "wrong_data", "verification or replay found wrong data",
       "After some step of the plan a rank does not have the data that the state requires. The "
       "message names the redistribution, the step, and for a replay the rank and the first wrong "
       "element. An unchanged plan written by meshplan passes; if it does not, please report a bug.",
       "meshplan run plan.json --backend host --inject 0:1:flip",
       "meshplan run plan.json --backend host"},
      {"E0601", "bad_usage", "a wrong command line, or a file that cannot be read or written",
       "The message names the word or path and, if there is a close match, a suggestion. meshplan "
       "--help lists the commands, meshplan COMMAND --help the options of one.",
       "meshplan plna spec.json", "meshplan plan spec.json"},
      {"E0602", "environment", "something is missing on this machine",
       "A replay over MPI or NCCL needs a build with that backend, its libraries and enough ranks "
       "or GPUs. The host backend runs everywhere. What is written needs space on its disk.",
       "meshplan run plan.json --backend nccl", "meshplan run plan.json --backend host"},
      {"E0603", "not_current", "a committed plan that is out of date",
       "The spec, its options or meshplan changed after the plan was written. The message lists "
       "the first differences; the help gives the command that updates the plan. meshplan diff "
       "shows all differences.",
       "meshplan check changed-spec.json plan.json",
       "meshplan plan changed-spec.json -o plan.json\nmeshplan check changed-spec.json plan.json"},
      {"E0604", "over_budget", "a budget that the plan exceeds",
       "The plan exceeds a limit in the \"budgets\" of the spec: bytes, collectives, predicted "
       "time or peak memory, of the file or of one redistribution. Fix the regression, or raise "
       "the budget.",
       budget("4194304"), budget("8388608"), "meshplan check spec.json"},
      {"E0605", "drifted", "a recorded spec that its program no longer produces",
       "Recorded again by check --record, the program asked for other redistributions, other counts "
       "or other meshes than the committed recording has. The message lists the differences; "
       "moved lines of the program do not count. Record it again, plan it and commit both.",
       "meshplan check spec.json --record 'cp changed-spec.json $MESHPLAN_RECORD'",
       "meshplan check changed-spec.json --record 'cp changed-spec.json $MESHPLAN_RECORD'"},
      {"E0699", "internal", "a bug in meshplan",
       "An internal check failed. No input should cause this; please report it with the input and the printed message.",
       "", ""},
      {"N0701", "no_plan", "no plan exists",
       "No sequence of steps reaches the target (a partial of one kind cannot become one of "
       "another), or none fits the memory limit; or a bundle has no rounds within its "
       "max_staging_bytes and max_messages. The message says which, and of a limit what is enough.",
       redistribution_of(
           R"~("tensor": {"shape": [4096], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["P(max)", "R"])~"),
       redistribution_of(
           R"~("tensor": {"shape": [4096], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["R", "R"])~")},
      {"W0801", "diff_dearer", "a redistribution that became more expensive",
       "diff found a higher predicted time or, at equal time, more bytes. The message gives both "
       "values and the cause: a flatten that is no longer declared, another mesh, planner or "
       "topology.",
       two_plans + "meshplan diff fast.plan.json slow.plan.json --format github --fail-on slower",
       "meshplan diff slow.plan.json fast.plan.json --format github --fail-on slower"},
      {"W0802", "diff_numerics", "a reduction whose order or nesting changed",
       "diff found that values are reduced in another order, nesting or dtype, so results may differ in the last bits.",
       "meshplan plan spec.json --planner greedy -o old.plan.json\nmeshplan plan spec.json --planner greedy --no-merge -o new.plan.json\n"
       "meshplan diff old.plan.json new.plan.json --format github --fail-on numerics",
       "meshplan plan spec.json --planner greedy -o new.plan.json\n"
       "meshplan diff old.plan.json new.plan.json --format github --fail-on numerics"},
      {"W0803", "diff_other", "another change of a redistribution or declaration",
       "diff found a change that costs nothing: a cheaper plan, other steps at the same cost, something declared and not used.",
       two_plans + "meshplan diff slow.plan.json fast.plan.json --format github",
       "meshplan diff fast.plan.json fast.plan.json --format github"},
  };
}

}  // namespace meshplan
