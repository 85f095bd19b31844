// Prices of many questions on one mesh, without texts on the way: arrays of numbers in, nanoseconds
// out. Each question is planned and verified once, as a redistribution of a spec is; a question
// that was asked before is looked up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/texts.h"
#include "planner/planner.h"
#include "spec/spec.h"

namespace meshplan {

// A placement as a number: -1 is R, -2 - op is P(op) with op in the order of ReduceOp; else the
// tensor dim, plus 256 x its place in the shard order, plus 65536 x the split factor of a strided
// shard. Places count from 0, the major one; all 0 is the default order.
//
//     R -1    P(sum) -2    P(avg) -3    S(0) 0    S(1) 1    S(0)[1] 256    SS(0,2) 131072
using PlacementCode = int64_t;

// Questions about tensors of as many dims each; rows one after the other.
struct PriceBatch {
  size_t questions = 0;
  size_t tensor_dims = 0;
  const int64_t* shapes = nullptr;     // questions x tensor_dims, elements
  const int32_t* dtypes = nullptr;     // questions; in the order of DType
  const PlacementCode* src = nullptr;  // questions x mesh dims
  const PlacementCode* dst = nullptr;
};

class Pricer {
 public:
  // `mesh`: index into the spec's meshes.
  Pricer(Spec spec, Topology topology, PlanOptions options, size_t mesh);
  Pricer(const Pricer&) = delete;
  Pricer& operator=(const Pricer&) = delete;

  [[nodiscard]] std::vector<std::string> dims() const { return dim_names(mesh()); }

  // Writes what each question takes to `ns`, nanoseconds as `predicted_ns` of a plan, -1 where no
  // plan exists. Bad input (a placement of a dim that the tensor lacks, a reduction that its dtype
  // does not allow) is an error that names the first such question; `ns` then holds nothing.
  [[nodiscard]] Status price(const PriceBatch& batch, int64_t* ns);

 private:
  [[nodiscard]] const Mesh& mesh() const { return spec_.meshes.meshes[mesh_]; }
  [[nodiscard]] Result<int64_t> price_row(const PriceBatch& batch, size_t row);

  Spec spec_;
  Topology topology_;
  PlanOptions options_;
  size_t mesh_;
  std::vector<int64_t> shape_;  // of the mesh
  QuestionPlanner planner_;
  std::unordered_map<std::string, int64_t> known_;  // by the bytes of a row
};

// The pricer of a mesh of a spec's text, with the spec's topology and options; its redistributions
// are not priced. `mesh`: its name; empty: the only mesh. What is wrong goes to `diagnostics`.
[[nodiscard]] std::unique_ptr<Pricer> make_pricer(const std::string& text,
                                                  const FileReader& read_file,
                                                  const SpecQuestion& question,
                                                  const std::string& mesh, Diagnostics& diagnostics,
                                                  int& code);

}  // namespace meshplan
