// Random meshes, tensors and requests, the same for the same seed on every machine.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mesh/mesh_table.h"
#include "tensor/request.h"

namespace meshplan::test {

// std::mt19937_64 is the same everywhere; the standard distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  [[nodiscard]] int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  [[nodiscard]] bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  [[nodiscard]] const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  }

 private:
  std::mt19937_64 engine_;
};

struct WorldOptions {
  std::vector<int64_t> dim_sizes{1, 2, 2, 3, 4};
  int64_t max_dims = 3;
  int64_t max_world = 24;
  bool permuted_ranks = false;
};

inline MeshTable random_table(Random& random, const WorldOptions& options = {}) {
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t world = 1;
  const int64_t count = 1 + random.below(options.max_dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t size = random.pick(options.dim_sizes);
    if (world * size > options.max_world) size = 1;
    world *= size;
    dims.emplace_back(std::string(1, static_cast<char>('a' + i)), size);
  }
  std::vector<int64_t> ranks;
  if (options.permuted_ranks && random.one_in(2)) {
    for (int64_t r = 0; r < world; ++r) ranks.push_back(r);
    random.shuffle(ranks);
  }
  MeshTable table;
  REQUIRE(add_root(table, "mesh", world, ranks, dims).ok());
  for (int64_t set = 1; set < int64_t{1} << count; ++set) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      if ((set >> i & 1) != 0) names.push_back(dims[static_cast<size_t>(i)].first);
    }
    if (names.size() > 1 && random.one_in(2)) REQUIRE(declare_flatten(table, "mesh", names).ok());
  }
  return table;
}

// Placements of one pending kind (or sum with avg), with the orders shuffled one time in
// `shuffled_orders`; 0: never.
inline State random_state(Random& random, const std::vector<int64_t>& mesh_shape, size_t tensor_rank, int64_t kind,
                          int64_t shuffled_orders) {
  State state;
  state.shards.resize(tensor_rank);
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    const SubAxis sub_axis{static_cast<int32_t>(m), 1, mesh_shape[m]};
    const int64_t choice = random.below(tensor_rank == 0 ? 3 : 6);
    if (choice == 0 || choice == 1) continue;
    if (choice == 2) {
      const ReduceOp op = kind == 0 ? (random.one_in(3) ? ReduceOp::avg : ReduceOp::sum) : static_cast<ReduceOp>(kind + 1);
      state.partial.push_back({sub_axis, op});
    } else {
      state.shards[static_cast<size_t>(random.below(static_cast<int64_t>(tensor_rank)))].push_back(sub_axis);
    }
  }
  for (auto& list : state.shards) {
    if (shuffled_orders != 0 && random.one_in(shuffled_orders)) random.shuffle(list);
  }
  return state;
}

// A request between two random states of one kind of pending reduction: sum and avg, or one of min,
// max and product.
inline Request random_request(Random& random, const MeshTable& table, int64_t shuffled_orders) {
  const std::vector<int64_t> sizes = mesh_shape(table.meshes.front());
  Request request;
  request.id = "r";
  const int64_t rank = random.below(20) == 0 ? 0 : 1 + random.below(3);
  for (int64_t d = 0; d < rank; ++d) {
    static const std::vector<int64_t> extents{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 12, 16};
    request.tensor.shape.push_back(random.one_in(60) ? 0 : random.pick(extents));
  }
  const int64_t kind = random.one_in(2) ? 0 : random.below(4);
  request.src = random_state(random, sizes, static_cast<size_t>(rank), kind, shuffled_orders);
  request.dst = random_state(random, sizes, static_cast<size_t>(rank), kind, shuffled_orders);
  // Most targets have nothing pending, as most real ones.
  if (!random.one_in(4)) request.dst.partial.clear();
  return request;
}

}  // namespace meshplan::test
