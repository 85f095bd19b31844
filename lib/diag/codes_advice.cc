#include "diag/code_parts.h"

namespace meshplan {
namespace {

std::string flattened(const std::string& declared, const std::string& shape, const std::string& src, const std::string& dst) {
  return spec_of("\"mesh\": {\"dims\": [{\"name\": \"dp\", \"size\": 2}, {\"name\": \"tp\", \"size\": 4}]" + declared +
                 "},\n"
                 "  \"options\": {\"planner\": \"greedy\"},\n"
                 "  \"redistributions\": [{\"id\": \"a\", \"tensor\": {\"shape\": " +
                 shape + ", \"dtype\": \"float32\"}, \"src\": " + src + ", \"dst\": " + dst + "}]");
}

// One redistribution on these mesh dims; `options` and `more` are members of the spec.
std::string planned(const std::string& mesh, const std::string& more, const std::string& shape, const std::string& src,
                    const std::string& dst) {
  return spec_of("\"mesh\": {" + mesh + "},\n" + more + "  \"redistributions\": [{\"id\": \"a\", \"tensor\": {\"shape\": " + shape +
                 ", \"dtype\": \"float32\"}, \"src\": " + src + ", \"dst\": " + dst + "}]");
}

// A topology whose hosts have so many ranks.
std::string hosts_of(const std::string& ranks) {
  return "  \"topology\": {\"levels\": [{\"name\": \"nvlink\", \"ranks\": " + ranks + ", \"gb_per_s\": 370, \"latency_ns\": 10000},\n" +
         "                          {\"name\": \"ib\", \"ranks\": 1048576, \"gb_per_s\": 45, \"latency_ns\": 25000}]},\n";
}

}  // namespace

std::vector<CodeEntry> advice_codes() {
  const std::string audit = "meshplan plan spec.json --audit";
  const std::string greedy = "  \"options\": {\"planner\": \"greedy\"},\n";
  const std::string graph = "  \"options\": {\"planner\": \"graph\"},\n";
  const std::string three_dims =
      R"~("dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}, {"name": "c", "size": 2}], "flattened": [{"dims": ["b", "c"]}])~";
  const std::string two_dims = R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}])~";
  const std::string declared = R"~(, "flattened": [{"dims": ["dp", "tp"]}])~";
  return {
      {"W0301", "missing_flatten", "a flattened mesh that is not declared would make a plan cheaper",
       "Several mesh dims take part in collectives of one kind one after the other. Where the mesh declares them flattened into one dim, "
       "one "
       "collective over one larger group does the same. The warning names the dims and what the declaration saves; its help is the text to "
       "write. Under the dtensor rules it stands as PyTorch gives it, even where nothing is saved.",
       flattened("", "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~")},
      {"W0302", "uneven_shape", "collectives that cannot be merged because the tensor does not divide evenly",
       "Several reduce_scatters could run as one over a flattened mesh, but the tensor dim is not divisible by the size of the merged "
       "group, "
       "and uneven chunks of nested shards lie elsewhere than those of one flat shard. Pad the tensor dim, or leave it so. The dtensor "
       "rules "
       "give this warning; the native ones merge where the boxes agree.",
       flattened(declared, "[1023]", R"~(["P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)"])~"),
       flattened(declared, "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)"])~")},
      {"W0303", "non_ascending", "collectives that cannot be merged because of the order of their mesh dims",
       "Several all_gathers or reduce_scatters could run as one over a flattened mesh, but their mesh dims come in an order whose pieces a "
       "flat "
       "group would put elsewhere. A default shard order on both sides avoids it. The dtensor rules give this warning; native plans take "
       "any "
       "order of a declared group.",
       planned(two_dims + declared, graph, "[1024]", R"~(["S(0)", "S(0)"],
    "src_order": [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}])~",
               R"~(["R", "R"])~"),
       planned(two_dims + declared, graph, "[1024]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~")},
      {"A0401", "merged_uneven_gather", "PyTorch gathers uneven nested shards as if they were flat",
       "10 elements cut in 2 and then in 2 are pieces of 3, 2, 3 and 2; cut in 4 at once they are 3, 3, 3 and 1. PyTorch merges the two "
       "all_gathers of the nested shards into one over the flattened mesh and reads the pieces as the flat ones: the result is wrong, on "
       "every rank alike, and nothing is raised. Plans of meshplan pack by the real boxes and are right. In PyTorch pad the tensor dim to "
       "a "
       "multiple of the merged group, or do not declare the flatten.",
       flattened(declared, "[10]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[16]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"), audit},
      {"A0402", "rank_dependent_merge", "PyTorch's ranks disagree about merging",
       "Whether reduce_scatters merge depends on whether the extent that a rank sees divides by the merged group. Where an outer mesh dim "
       "cuts the tensor dim unevenly, ranks see different extents: some enter one collective, the others several, and the program hangs or "
       "fails. Pad the tensor dim until the outer cut is even.",
       planned(three_dims, graph, "[7]", R"~(["S(0)", "P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)", "S(0)"])~"),
       planned(three_dims, graph, "[8]", R"~(["S(0)", "P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)", "S(0)"])~"), audit},
      {"A0403", "not_executable", "PyTorch plans a step that it cannot execute",
       "A pending reduction cannot become one of another kind, nor a shard a pending reduction other than sum. PyTorch's greedy planner "
       "plans such steps all the same and fails when it runs them. Under the dtensor rules that is no plan (exit 3); the audit of a native "
       "plan says it beside the plan that works.",
       planned(two_dims, "", "[8]", R"~(["S(0)", "R"])~", R"~(["P(max)", "R"])~"),
       planned(two_dims, "", "[8]", R"~(["R", "R"])~", R"~(["P(max)", "R"])~"), audit},
      {"A0404", "unit_dim_traffic", "a mesh dim of size 1 costs traffic",
       "A mesh dim of size 1 moves nothing itself, but PyTorch's rules see its placement: where it shards the target's tensor dim and not "
       "the source's, or the other way round, the shards inside it are gathered and cut again for nothing. Give it the same placement on "
       "both sides, or leave the dim out of the mesh.",
       planned(R"~("dims": [{"name": "a", "size": 1}, {"name": "b", "size": 4}])~", greedy, "[8]", R"~(["S(0)", "S(0)"])~",
               R"~(["R", "S(0)"])~"),
       planned(R"~("dims": [{"name": "b", "size": 4}])~", greedy, "[8]", R"~(["S(0)"])~", R"~(["S(0)"])~"), audit},
      {"A0405", "sequential_reductions", "a reduction that passes through several collectives",
       "Each collective may add in an order of its own, so that ranks that should hold the same values may differ in the last bits. One "
       "collective over a flattened mesh gives every replica the same. Declare the flatten, or plan with one_reduction.",
       flattened("", "[16]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[16]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"), audit},
      {"A0406", "whole_reduction", "more is reduced than the target keeps",
       "The target shards a tensor dim over mesh dims that are free during the reduction, or that are reduced themselves, and PyTorch "
       "slices "
       "only afterwards. A slice first, or a reduce_scatter, moves a fraction of the bytes.",
       flattened("", "[16, 16]", R"~(["P(sum)", "R"])~", R"~(["R", "S(0)"])~"),
       flattened("", "[16, 16]", R"~(["P(sum)", "S(0)"])~", R"~(["R", "S(0)"])~"), audit},
      {"A0407", "merged_costs_more", "a merged step that costs more than its parts",
       "PyTorch merges whenever a flatten is declared. Across hosts one collective over all ranks can take longer than one inside the "
       "hosts "
       "and one between them, which moves less over the slow links. The finding gives both times under the plan's topology.",
       planned(two_dims + declared, greedy + hosts_of("6"), "[268435456]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"),
       planned(two_dims + declared, greedy + hosts_of("4"), "[268435456]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"), audit},
  };
}

}  // namespace meshplan
