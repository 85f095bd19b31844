#include "diag/code_parts.h"

namespace meshplan {
namespace {

std::string flattened(const std::string& declared, const std::string& shape, const std::string& src,
                      const std::string& dst) {
  return spec_of(
      "\"mesh\": {\"dims\": [{\"name\": \"dp\", \"size\": 2}, {\"name\": \"tp\", \"size\": 4}]" +
      declared +
      "},\n"
      "  \"options\": {\"planner\": \"greedy\"},\n"
      "  \"redistributions\": [{\"id\": \"a\", \"tensor\": {\"shape\": " +
      shape + ", \"dtype\": \"float32\"}, \"src\": " + src + ", \"dst\": " + dst + "}]");
}

// A spec with one redistribution on these mesh dims; `more` are further members.
std::string planned(const std::string& mesh, const std::string& more, const std::string& shape,
                    const std::string& src, const std::string& dst) {
  return spec_of("\"mesh\": {" + mesh + "},\n" + more +
                 "  \"redistributions\": [{\"id\": \"a\", \"tensor\": {\"shape\": " + shape +
                 ", \"dtype\": \"float32\"}, \"src\": " + src + ", \"dst\": " + dst + "}]");
}

// A redistribution on these meshes, of dp 2 x tp 4 and its slice tp.
std::string to_mesh(const std::string& meshes, const std::string& dst) {
  return spec_of(
      R"~("meshes": [{"name": "all", "world": 8, "dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]},
             {"name": "row", "of": "all", "slice": ["tp"]}],
  "redistributions": [{"id": "a", )~" +
      meshes +
      R"~(, "tensor": {"shape": [8, 8], "dtype": "float32"}, "src": ["S(0)", "S(0)"], "dst": )~" +
      dst + "}]");
}

// Forty tensors moved together within so many bytes of staging.
std::string bundled(const std::string& staging) {
  return planned(
      R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}])~",
      "  \"bundles\": [{\"id\": \"b\", \"redistributions\": [\"a\"], \"max_staging_bytes\": " +
          staging + "}],\n",
      "[64, 64]", R"~(["S(0)", "R"])~", R"~(["S(1)", "R"])~");
}

constexpr const char* h100 = "  \"topology\": \"h100\",\n";

// A topology with this number of ranks per host.
std::string hosts_of(const std::string& ranks) {
  return "  \"topology\": {\"levels\": [{\"name\": \"nvlink\", \"ranks\": " + ranks +
         ", \"gb_per_s\": 370, \"latency_ns\": 10000},\n" +
         "                          {\"name\": \"ib\", \"ranks\": 1048576, \"gb_per_s\": 45, \"latency_ns\": 25000}]},\n";
}

}  // namespace

std::vector<CodeEntry> advice_codes() {
  const std::string audit = "meshplan plan spec.json --audit";
  const std::string greedy = "  \"options\": {\"planner\": \"greedy\"},\n";
  const std::string graph = "  \"options\": {\"planner\": \"graph\"},\n";
  const std::string three_dims =
      R"~("dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}, {"name": "c", "size": 2}], "flattened": [{"dims": ["b", "c"]}])~";
  const std::string two_dims =
      R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}])~";
  const std::string declared = R"~(, "flattened": [{"dims": ["dp", "tp"]}])~";
  return {
      {"W0301", "missing_flatten", "declaring a flattened mesh would make the plan cheaper",
       "The plan runs several collectives of one kind in sequence, one per mesh dim. If the mesh "
       "declares these dims flattened into one, a single collective over the larger group does the "
       "same. The warning names the dims, the saving and what the new communicator costs (of NCCL); "
       "its help is the declaration to add. The sets of a file are priced together, each beside "
       "those before it (\"more\"): all of them declared save what they promise in sum. A set is "
       "not advised where the others bring the same, where it saves less than the model's own error "
       "of the steps that change, or where a million runs of the file do not repay its "
       "communicator. Under the dtensor rules the warning is given whenever PyTorch gives it, even "
       "if nothing is saved.",
       flattened("", "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~")},
      {"W0302", "uneven_shape",
       "collectives that cannot be merged because the tensor does not divide evenly",
       "Several reduce_scatters could run as one over a flattened mesh, but the tensor dim is not "
       "divisible by the size of the merged group, and the uneven chunks of nested shards differ "
       "from those of one flat shard. Pad the tensor dim, or accept the separate collectives. The "
       "dtensor rules give this warning; the native rules merge whenever the boxes agree.",
       flattened(declared, "[1023]", R"~(["P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)"])~"),
       flattened(declared, "[1024]", R"~(["P(sum)", "P(sum)"])~", R"~(["S(0)", "S(0)"])~")},
      {"W0303", "non_ascending",
       "collectives that cannot be merged because of the order of their mesh dims",
       "Several all_gathers or reduce_scatters could run as one over a flattened mesh, but the "
       "order of their mesh dims places the pieces differently than a flat group would. A default "
       "shard order on both sides avoids it. The dtensor rules give this warning; native plans "
       "accept any order of a declared group.",
       planned(two_dims + declared, graph, "[1024]", R"~(["S(0)", "S(0)"],
    "src_order": [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}])~",
               R"~(["R", "R"])~"),
       planned(two_dims + declared, graph, "[1024]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~")},
      {"W0304", "incomplete_recording", "a recording that was cut short",
       "The program that was recorded failed, which the recorder notes as x-incomplete. The file has "
       "the redistributions up to there; later ones are missing, in the plan and its totals "
       "too. Let the program run to the end of the recording and record it again. -W "
       "no-incomplete-recording hides the warning, -W error makes it an error.",
       planned(two_dims, "  \"x-incomplete\": \"KeyError: 'layers'\",\n", "[16]",
               R"~(["R", "S(0)"])~", R"~(["R", "R"])~"),
       planned(two_dims, "", "[16]", R"~(["R", "S(0)"])~", R"~(["R", "R"])~")},
      {"W0305", "one_copy", "copies of a mesh that take no part in what goes from mesh to mesh",
       "A slice of a mesh has as many copies as the other dims have coordinates: tp of dp 2 x tp 4 "
       "is ranks 0 to 3, and ranks 4 to 7. In a redistribution on one mesh all copies do the same "
       "at once. As src_mesh or dst_mesh of one that goes from mesh to mesh the name stands for "
       "one copy, the one with the first rank of the universe: the others send and get nothing, "
       "and the plan is verified and replayed without them. Where these ranks are meant, declare a "
       "root mesh on them ({\"name\", \"world\", \"ranks\", \"dims\"}). Where all copies hold the "
       "same, or shall, name the whole mesh, with R on its other dims. Recordings are not warned "
       "of: there the name stands for the ranks that the program had. -W no-one-copy hides the "
       "warning, -W error makes it an error.",
       to_mesh("\"src_mesh\": \"all\", \"dst_mesh\": \"row\"", R"~(["S(1)"])~"),
       to_mesh("\"mesh\": \"all\"", R"~(["R", "S(1)"])~")},
      {"W0306", "slower_bundle", "a bundle that takes longer than its members one by one",
       "A bundle moves its tensors together, so that what they send at the same time overlaps, within "
       "max_staging_bytes of buffers on a rank and max_messages of a rank in a round. Where these "
       "allow little, the tensors go in many small pieces, and every round has its latencies. Where "
       "they leave room, rounds lack what exchanges by themselves do: all ranks of a host fetch what "
       "some of them want, or part of it comes from other hosts. The warning gives both times, and "
       "which of the two it is. Raise the limits (a bundle's staging and rounds are in the plan), or "
       "leave the bundle out, and its members are run one by one. -W no-slower-bundle hides the "
       "warning, -W error makes it an error.",
       bundled("4096"), bundled("16777216"), ""},
      {"W0307", "outermost_ranks", "an outermost level that names too few ranks",
       "The outermost level of a topology holds every rank, whatever its ranks says. Where that is "
       "less than one unit of the level inside it, the list may have been written from the outside "
       "in, and its links would be taken for each other. Levels are listed from the inside out. "
       "-W no-outermost-ranks hides the warning, -W error makes it an error.",
       planned(
           two_dims,
           R"~(  "topology": {"levels": [{"name": "ib", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000},
                          {"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000}]},
)~",
           "[16]", R"~(["R", "S(0)"])~", R"~(["R", "R"])~"),
       planned(two_dims, hosts_of("8"), "[16]", R"~(["R", "S(0)"])~", R"~(["R", "R"])~")},
      {"A0401", "merged_uneven_gather", "PyTorch gathers uneven nested shards like a flat shard",
       "10 elements sharded over 2 and then over 2 are pieces of 3, 2, 3 and 2; sharded over 4 "
       "they are 3, 3, 3 and 1. PyTorch merges the two all_gathers of the nested shards into one "
       "over the flattened mesh and treats the pieces as a flat shard: the result is silently "
       "wrong, and the same on every rank. meshplan packs by the real boxes and is correct. In "
       "PyTorch pad the tensor dim to a multiple of the merged group, or do not declare the "
       "flatten.",
       flattened(declared, "[10]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[16]", R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~"), audit},
      {"A0402", "rank_dependent_merge", "PyTorch's ranks disagree on merging",
       "PyTorch merges reduce_scatters if the local extent is divisible by the size of the merged "
       "group. If an outer mesh dim shards the tensor dim unevenly, local extents differ: some "
       "ranks call one collective, others several, and the program hangs or fails. Pad the tensor "
       "dim so that the outer shards are equal.",
       planned(three_dims, graph, "[7]", R"~(["S(0)", "P(sum)", "P(sum)"])~",
               R"~(["S(0)", "S(0)", "S(0)"])~"),
       planned(three_dims, graph, "[8]", R"~(["S(0)", "P(sum)", "P(sum)"])~",
               R"~(["S(0)", "S(0)", "S(0)"])~"),
       audit},
      {"A0403", "not_executable", "PyTorch plans a step that it cannot execute",
       "A pending reduction cannot become one of another kind, nor a shard a pending reduction "
       "other than sum. PyTorch's greedy planner plans such steps anyway and fails when it runs "
       "them. Under the dtensor rules there is no plan (exit 3); the audit of a native plan "
       "reports it next to the plan that works.",
       planned(two_dims, "", "[8]", R"~(["S(0)", "R"])~", R"~(["P(max)", "R"])~"),
       planned(two_dims, "", "[8]", R"~(["R", "R"])~", R"~(["P(max)", "R"])~"), audit},
      {"A0404", "unit_dim_traffic", "a mesh dim of size 1 costs traffic",
       "A mesh dim of size 1 moves no data, but PyTorch's rules depend on its placement: if it "
       "shards a tensor dim only in the source or only in the target, the shards of the later mesh "
       "dims are gathered and cut again for nothing. Use the same placement on both sides, or "
       "remove the dim from the mesh.",
       planned(R"~("dims": [{"name": "a", "size": 1}, {"name": "b", "size": 4}])~", greedy, "[8]",
               R"~(["S(0)", "S(0)"])~", R"~(["R", "S(0)"])~"),
       planned(R"~("dims": [{"name": "b", "size": 4}])~", greedy, "[8]", R"~(["S(0)"])~",
               R"~(["S(0)"])~"),
       audit},
      {"A0405", "sequential_reductions", "a reduction in several collectives",
       "Each collective may add in its own order, so ranks that should have the same values may "
       "differ in the last bits. One collective over a flattened mesh gives all replicas the same "
       "result. Declare the flatten, or plan with one_reduction.",
       flattened("", "[16]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"),
       flattened(declared, "[16]", R"~(["P(sum)", "P(sum)"])~", R"~(["R", "R"])~"), audit},
      {"A0406", "whole_reduction", "more is reduced than the target needs",
       "The target shards a tensor dim over mesh dims that are replicated during the reduction or "
       "are reduced themselves, and PyTorch slices only afterwards. Slicing first, or a "
       "reduce_scatter, moves a fraction of the bytes.",
       flattened("", "[16, 16]", R"~(["P(sum)", "R"])~", R"~(["R", "S(0)"])~"),
       flattened("", "[16, 16]", R"~(["P(sum)", "S(0)"])~", R"~(["R", "S(0)"])~"), audit},
      {"A0407", "merged_costs_more", "a merged step that costs more than its parts",
       "PyTorch merges whenever a flatten is declared. Across hosts, one collective over all ranks "
       "can take longer than one inside the hosts and one between them, which sends less over the "
       "slow links. The finding gives both times under the topology of the plan.",
       planned(two_dims + declared, greedy + hosts_of("6"), "[268435456]", R"~(["S(0)", "S(0)"])~",
               R"~(["R", "R"])~"),
       planned(two_dims + declared, greedy + hosts_of("4"), "[268435456]", R"~(["S(0)", "S(0)"])~",
               R"~(["R", "R"])~"),
       audit},
      {"A0408", "torch_moves_more", "PyTorch's own plan costs more than this one",
       "PyTorch plans a redistribution mesh dim by mesh dim. Where that takes longer or moves more "
       "bytes than the plan in the file, the finding gives both, so that the saving shows without "
       "planning twice; below the table stands their sum, counts included.",
       planned(two_dims, "", "[16, 16]", R"~(["P(sum)", "R"])~", R"~(["R", "S(0)"])~"),
       planned(two_dims, "", "[16, 16]", R"~(["P(sum)", "R"])~", R"~(["S(0)", "R"])~"), audit},
      {"A0409", "split_saves",
       "part of a mesh dim as a group of its own would make the plan cheaper",
       "Hosts may cut a mesh dim unevenly, as 12 ranks on hosts of 8: a group of the whole dim then "
       "has 8 members in one host and 4 in the other, while groups of 4 lie inside of hosts. By "
       "both parts in turn less goes over the slow links, and no flatten says so. Exchanges over the "
       "whole mesh can go the same way; collectives on groups of the parts may take less. The finding "
       "names the factors and the groups, and gives both times: of the best plan with them, and of the "
       "best one on whole mesh dims with every flatten declared; given only where the saving is more "
       "than the model's own error. meshplan plan --groups any prints the steps. Make the groups with "
       "PyTorch's DeviceMesh._unflatten or torch.distributed.new_group, or split the dim in the "
       "mesh and keep the whole as a flatten of its parts.",
       planned(R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 12}])~", h100,
               "[8, 1536, 1024]", R"~(["S(0)", "P(sum)"])~", R"~(["S(0)", "S(1)"])~"),
       planned(
           R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp_o", "size": 3}, {"name": "tp_i", "size": 4}])~",
           h100, "[8, 1536, 1024]", R"~(["S(0)", "P(sum)", "P(sum)"])~",
           R"~(["S(0)", "S(1)", "S(1)"])~"),
       audit},
      {"A0410", "limit_costs", "the memory limit makes the plan dearer",
       "Without max_memory_bytes nothing on the way is larger on a rank than the larger of source "
       "and target. Of large tensors that is what they have room for. Of small ones gathering more "
       "than is needed and slicing it may be far sooner, and its peak is next to nothing. The "
       "finding gives the peak and the time of the best plan that may take more, given only where "
       "the saving is more than the model's own error. --max-memory (max_memory_bytes) of that "
       "peak allows it; it is the limit of all redistributions of the file, so those that need "
       "more want more, or a file of their own.",
       planned(R"~("dims": [{"name": "dp", "size": 6}, {"name": "tp", "size": 16}])~", h100,
               "[8192]", R"~(["R", "S(0)"])~", R"~(["S(0)", "S(0)"])~"),
       planned(R"~("dims": [{"name": "dp", "size": 6}, {"name": "tp", "size": 16}])~",
               std::string(h100) + "  \"options\": {\"max_memory_bytes\": 65536},\n", "[8192]",
               R"~(["R", "S(0)"])~", R"~(["S(0)", "S(0)"])~"),
       audit},
      {"A0411", "zeros_save", "shards are sooner summed than gathered",
       "A gather hears from every rank of its group, and on many ranks that takes longer than the "
       "bytes do; an all_reduce adds up on the way, along trees or in switches. So a small tensor "
       "may come together sooner where each rank puts its shard into a tensor of zeros and all of "
       "them are summed: adding 0 changes no value, but -0.0 becomes 0.0. The finding gives the "
       "best such plan, given only where the saving is more than the model's own error and what is "
       "summed is not rounded (reduce_dtype). To have it, fill the shards up in the program and "
       "write P(sum) for them in src.",
       planned(R"~("dims": [{"name": "dp", "size": 512}])~", h100, "[4096]", R"~(["S(0)"])~",
               R"~(["R"])~"),
       planned(R"~("dims": [{"name": "dp", "size": 512}])~", h100, "[4096]", R"~(["P(sum)"])~",
               R"~(["R"])~"),
       audit},
  };
}

}  // namespace meshplan
