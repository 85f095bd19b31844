#include "mesh/parallel_dims.h"

#include <array>

#include "base/int_math.h"
#include "base/text.h"

namespace meshplan {
namespace {

struct Degree {
  const char* name;
  int64_t value;
};

// "pp 4 * cp 1 * tp 8"
std::string product_text(const std::vector<Degree>& degrees) {
  std::vector<std::string> factors;
  factors.reserve(degrees.size());
  for (const Degree& degree : degrees)
    factors.push_back(degree.name + (" " + std::to_string(degree.value)));
  return join(factors, " * ");
}

std::optional<int64_t> product_of(const std::vector<Degree>& degrees) {
  int64_t product = 1;
  for (const Degree& degree : degrees) {
    const auto next = checked_mul(product, degree.value);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

}  // namespace

Result<ParallelDims> resolve(const ParallelDims& given) {
  ParallelDims dims = given;
  if (dims.world < 1)
    return bad_input("parallel_dims over a world of " + std::to_string(dims.world) +
                     " ranks; expected 1 or more");
  const std::array<Degree, 7> degrees{{{"pp", dims.pp},
                                       {"dp_replicate", dims.dp_replicate},
                                       {"dp_shard", dims.dp_shard},
                                       {"cp", dims.cp},
                                       {"tp", dims.tp},
                                       {"ep", dims.ep},
                                       {"etp", dims.etp}}};
  for (const Degree& degree : degrees) {
    const bool rest = &degree == &degrees[2] && degree.value == -1;
    if (degree.value < 1 && !rest) {
      return bad_input(std::string("parallel_dims has ") + degree.name + " " +
                       std::to_string(degree.value) +
                       "; degrees must be 1 or more (dp_shard may be -1: the remaining ranks)");
    }
  }
  if (dims.dp_shard == -1) {
    const std::vector<Degree> others{
        {"pp", dims.pp}, {"dp_replicate", dims.dp_replicate}, {"cp", dims.cp}, {"tp", dims.tp}};
    const auto product = product_of(others);
    if (!product || dims.world % *product != 0) {
      return bad_input("parallel_dims cannot compute dp_shard: " + product_text(others) + " = " +
                       (product ? std::to_string(*product) : "more than 64 bits") +
                       " does not divide the world of " + std::to_string(dims.world));
    }
    dims.dp_shard = dims.world / *product;
  }
  const std::vector<Degree> dense{{"pp", dims.pp},
                                  {"dp_replicate", dims.dp_replicate},
                                  {"dp_shard", dims.dp_shard},
                                  {"cp", dims.cp},
                                  {"tp", dims.tp}};
  const auto product = product_of(dense);
  if (!product || *product != dims.world) {
    return bad_input("parallel_dims does not fill the world: " + product_text(dense) + " = " +
                     (product ? std::to_string(*product) : "more than 64 bits") + ", not " +
                     std::to_string(dims.world));
  }
  if (dims.etp != dims.tp && dims.etp != 1) {
    return bad_input("parallel_dims has etp " + std::to_string(dims.etp) + " with tp " +
                     std::to_string(dims.tp) + "; etp must be equal to tp or 1");
  }
  const std::vector<Degree> shared{{"dp_shard", dims.dp_shard}, {"cp", dims.cp}, {"tp", dims.tp}};
  const std::vector<Degree> expert{{"ep", dims.ep}, {"etp", dims.etp}};
  const int64_t ranks = *product_of(shared);  // within the world
  const auto experts = product_of(expert);
  if (!experts || ranks % *experts != 0) {
    return bad_input("parallel_dims has no integral edp: " + product_text(shared) + " = " +
                     std::to_string(ranks) + " is not divisible by " + product_text(expert) +
                     " = " + (experts ? std::to_string(*experts) : "more than 64 bits"));
  }
  return dims;
}

Status add_parallel_dims(MeshTable& table, const ParallelDims& given, std::string group_options) {
  const auto dims = resolve(given);
  if (!dims) return dims.error();
  const auto [world, pp, dp_replicate, dp_shard, cp, tp, ep, etp] = *dims;
  MeshTable made = table;
  Status status = add_root(made, "world", world, {}, {}, std::move(group_options));
  const auto unflatten = [&](const char* name, const std::vector<int64_t>& sizes,
                             const std::vector<std::string>& names) {
    if (status) status = add_unflatten(made, name, "world", "world", sizes, names);
  };
  const auto flatten = [&](const char* name, const std::vector<std::string>& names) {
    if (status) status = add_flatten(made, name, "dense", names, name);
  };
  unflatten("data", {pp, dp_replicate * dp_shard, cp, tp}, {"pp", "batch", "cp", "tp"});
  unflatten("dense", {pp, dp_replicate, dp_shard, cp, tp},
            {"pp", "dp_replicate", "dp_shard", "cp", "tp"});
  unflatten("sparse", {pp, dp_replicate, dp_shard * cp * tp / (ep * etp), ep, etp},
            {"pp", "dp_replicate", "edp", "ep", "etp"});
  flatten("batch", {"dp_replicate", "dp_shard"});
  flatten("fsdp", {"dp_shard", "cp"});
  flatten("loss", {"dp_replicate", "dp_shard", "cp"});
  if (status) table = std::move(made);
  return status;
}

}  // namespace meshplan
