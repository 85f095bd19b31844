#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> command_codes() {
  const auto budget = [](const std::string& bytes) {
    const std::string gather =
        redistribution_of(R"~("tensor": {"shape": [4096, 1024], "dtype": "float16"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~");
    return gather.substr(0, gather.size() - 2) + ",\n  \"budgets\": {\"total\": {\"wire_bytes\": " + bytes + "}}\n}";
  };
  // Plans for faster and for slower machines.
  const std::string two_plans =
      "meshplan plan spec.json --topology h100 -o fast.plan.json\nmeshplan plan spec.json --topology a100 -o slow.plan.json\n";
  return {
      {"E0501", "bad_plan", "a plan file that cannot be read",
       "The file is no plan, was written by a version with another major number, or was changed after it was written: its digest is over "
       "everything else in it. Plan again from the spec.",
       "meshplan verify spec.json", "meshplan plan spec.json -o plan.json\nmeshplan verify plan.json"},
      {"E0502", "wrong_data", "verification or replay found wrong data",
       "A step of the plan does not leave every rank with what its state says. The message names the redistribution, the step, and for a "
       "replay "
       "the rank and the first element. A plan that meshplan wrote and nobody changed passes; where it does not, that is a bug worth "
       "reporting.",
       "meshplan run plan.json --backend host --inject 0:1:flip", "meshplan run plan.json --backend host"},
      {"E0601", "bad_usage", "a command line that means nothing, or a file that cannot be read or written",
       "The message names the word or the path and, where one is near, what may have been meant. meshplan --help lists the commands, "
       "meshplan "
       "COMMAND --help what one takes.",
       "meshplan plna spec.json", "meshplan plan spec.json"},
      {"E0602", "environment", "something that is missing on this machine",
       "A replay over MPI or NCCL needs that backend built in, its libraries and enough ranks or GPUs. The host backend runs everywhere.",
       "meshplan run plan.json --backend nccl", "meshplan run plan.json --backend host"},
      {"E0603", "not_current", "a committed plan that its spec no longer gives",
       "The spec, its options or meshplan changed after the plan was written. The message names the first differences; the help has the "
       "command that writes the plan anew. meshplan diff shows all of it.",
       "meshplan check changed-spec.json plan.json",
       "meshplan plan changed-spec.json -o plan.json\nmeshplan check changed-spec.json plan.json"},
      {"E0604", "over_budget", "a budget that the plan exceeds",
       "The spec's \"budgets\" hold a figure that the plan is above: bytes, collectives, predicted time or peak memory of the file or of "
       "one "
       "redistribution. Either the plan got dearer by mistake, or the budget is to be raised.",
       budget("4194304"), budget("8388608"), "meshplan check spec.json"},
      {"E0699", "internal", "a bug in meshplan",
       "Something that must hold inside meshplan does not. No input should cause it; please report it with the input and the printed "
       "sentence.",
       "", ""},
      {"N0701", "no_plan", "no plan exists",
       "No sequence of steps makes this change (a partial of one kind cannot become one of another), or none fits the memory limit. The "
       "message "
       "says which, and for a limit the least peak that exists.",
       redistribution_of(R"~("tensor": {"shape": [4096], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["P(max)", "R"])~"),
       redistribution_of(R"~("tensor": {"shape": [4096], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["R", "R"])~")},
      {"W0801", "diff_dearer", "a redistribution that became dearer",
       "diff found more predicted time or, at equal time, more bytes. The message has both figures and the cause: a flatten that is no "
       "longer declared, another mesh, planner or topology.",
       two_plans + "meshplan diff fast.plan.json slow.plan.json --format github --fail-on dearer",
       "meshplan diff slow.plan.json fast.plan.json --format github --fail-on dearer"},
      {"W0802", "diff_numerics", "a reduction whose order or nesting changed",
       "diff found that values are reduced in another order, nesting or dtype, so that results may differ in the last bits.",
       "meshplan plan spec.json --planner greedy -o old.plan.json\nmeshplan plan spec.json --planner greedy --no-merge -o new.plan.json\n"
       "meshplan diff old.plan.json new.plan.json --format github --fail-on numerics",
       "meshplan plan spec.json --planner greedy -o new.plan.json\n"
       "meshplan diff old.plan.json new.plan.json --format github --fail-on numerics"},
      {"W0803", "diff_other", "a redistribution or declaration that changed otherwise",
       "diff found a change that makes nothing dearer: a cheaper plan, other steps at the same cost, something declared and not used.",
       two_plans + "meshplan diff slow.plan.json fast.plan.json --format github",
       "meshplan diff fast.plan.json fast.plan.json --format github"},
  };
}

}  // namespace meshplan
