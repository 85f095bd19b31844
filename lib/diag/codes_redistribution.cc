#include "diag/code_parts.h"

namespace meshplan {
namespace {

// A redistribution of a [4096, 4096] tensor with these placements, followed by `more`.
std::string placed(const std::string& src, const std::string& dst,
                   const std::string& dtype = "bfloat16", const std::string& more = {}) {
  return redistribution_of("\"tensor\": {\"shape\": [4096, 4096], \"dtype\": \"" + dtype +
                           "\"},\n    \"src\": " + src + ", \"dst\": " + dst + more);
}

}  // namespace

std::vector<CodeEntry> redistribution_codes() {
  const std::string gather = placed(R"~(["R", "S(0)"])~", R"~(["R", "R"])~");
  const std::string eight =
      placed(R"~(["R", "S(0)"])~", R"~(["R", "R"])~", "bfloat16", ", \"count\": 8");
  const std::string eight_gathers = eight.substr(0, eight.size() - 2);
  return {
      {"E0401", "bad_placement", "text that is not a placement",
       "A placement is R (all ranks have the same data), S(d) (tensor dim d is sharded), P(op) "
       "with op one of sum, avg, min, max and product (the tensor is the reduction over the "
       "ranks), or on input PyTorch's strided shard SS(d,split factor).",
       placed(R"~(["Replicate()", "Shard(0)"])~", R"~(["R", "R"])~"), gather},
      {"E0402", "placement_count", "a list of placements that does not fit the mesh",
       "A list has one placement for each mesh dim, in the order of the mesh.",
       placed(R"~(["S(0)"])~", R"~(["R", "R"])~"), gather},
      {"E0403", "missing_placement", "a mesh dim without a placement",
       "If placements are given by mesh dim, every dim of the mesh must be named. R means that all "
       "ranks of the dim have the same data.",
       placed(R"~({"tp": "S(0)"})~", R"~(["R", "R"])~"),
       placed(R"~({"dp": "R", "tp": "S(0)"})~", R"~(["R", "R"])~")},
      {"E0404", "tensor_dim", "a tensor dim that the tensor does not have",
       "Tensor dims count from 0. A scalar (shape []) has none, so it can only be replicated or partial.",
       placed(R"~(["R", "S(2)"])~", R"~(["R", "R"])~"), gather},
      {"E0405", "mixed_partials", "partials that may not be pending together",
       "Reductions of different kinds do not commute: the maximum of sums is not the sum of "
       "maxima. Only sum and avg may be pending together, since an average is a sum and a division.",
       placed(R"~(["P(sum)", "P(max)"])~", R"~(["R", "R"])~"),
       placed(R"~(["P(sum)", "P(avg)"])~", R"~(["R", "R"])~")},
      {"E0406", "strided_shard", "a strided shard without an equivalent shard order",
       "SS(d,f) on a mesh dim means that later mesh dims whose sizes multiply to f shard tensor "
       "dim d before this one. If no run of the later mesh dims that shard d multiplies to f, "
       "there is no such shard order. With later mesh dims of size 4 the factor is 1 or 4.",
       placed(R"~(["SS(0,2)", "S(0)"])~", R"~(["R", "R"])~"),
       placed(R"~(["SS(0,4)", "S(0)"])~", R"~(["R", "R"])~")},
      {"E0407", "mask_partial", "a mask partial",
       "PyTorch's sharded embedding produces a partial that only its operator can reduce, with a "
       "mask. It cannot be redistributed by itself; reduce it in the operator.",
       placed(R"~(["R", "P(mask)"])~", R"~(["R", "R"])~"),
       placed(R"~(["R", "P(sum)"])~", R"~(["R", "R"])~")},
      {"E0408", "shard_order", "a shard order that does not match the placements",
       "An order lists exactly the mesh dims that shard its tensor dim, major to minor, once for "
       "each tensor dim. A strided shard implies an order, so only one of the two may be given.",
       placed(R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~", "bfloat16",
              ",\n    \"src_order\": [{\"tensor_dim\": 0, \"mesh_dims\": [\"tp\"]}]"),
       placed(R"~(["S(0)", "S(0)"])~", R"~(["R", "R"])~", "bfloat16",
              ",\n    \"src_order\": [{\"tensor_dim\": 0, \"mesh_dims\": [\"tp\", \"dp\"]}]")},
      {"E0409", "reduction_dtype", "a reduction that is not defined for its dtype",
       "The average of integers may not be an integer, bools have no product, and the reduction "
       "dtype must be of the same kind as the dtype of the tensor.",
       placed(R"~(["P(avg)", "R"])~", R"~(["R", "R"])~", "int32"),
       placed(R"~(["P(sum)", "R"])~", R"~(["R", "R"])~", "int32")},
      {"E0410", "tensor_overflow", "more bytes or time than fit in 64 bits",
       "The bytes of the tensor, and those of all its repetitions together, must fit in a signed 64-bit integer; so must the picoseconds that "
       "all redistributions of a file take, repetitions included.",
       redistribution_of(
           R"~("tensor": {"shape": [4294967296, 4294967296], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~"),
       redistribution_of(
           R"~("tensor": {"shape": [4096, 4096], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~")},
      {"E0411", "unknown_id", "a redistribution that does not exist",
       "Budgets and silenced warnings refer to redistributions by id. The message suggests the closest one or lists them all.",
       gather.substr(0, gather.size() - 2) +
           ",\n  \"budgets\": {\"redistributions\": [{\"id\": \"wk.grad\", \"wire_bytes\": 0}]}\n}",
       gather.substr(0, gather.size() - 2) +
           ",\n  \"budgets\": {\"redistributions\": [{\"id\": \"wq.grad\", \"wire_bytes\": 0}]}\n}"},
      {"E0412", "not_a_warning", "a code that cannot be silenced",
       "allow takes codes of warnings. Errors cannot be silenced.",
       gather.substr(0, gather.size() - 2) +
           ",\n  \"allow\": [{\"code\": \"E0203\", \"reason\": \"we know\"}]\n}",
       gather.substr(0, gather.size() - 2) +
           ",\n  \"allow\": [{\"code\": \"W0301\", \"reason\": \"measured: no gain\"}]\n}"},
      {"E0413", "in_two_bundles", "a redistribution in two bundles",
       "The members of a bundle are moved by one schedule, so a redistribution is in at most one.",
       eight_gathers +
           ",\n  \"bundles\": [{\"id\": \"step\", \"redistributions\": [\"wq.grad\"]}, {\"id\": "
           "\"all\", \"redistributions\": [\"w*\"]}]\n}",
       eight_gathers + ",\n  \"bundles\": [{\"id\": \"step\", \"redistributions\": [\"w*\"]}]\n}"},
  };
}

}  // namespace meshplan
