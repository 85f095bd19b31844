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

}  // namespace

std::vector<CodeEntry> advice_codes() {
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
       "", ""},
  };
}

}  // namespace meshplan
