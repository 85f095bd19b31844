// The mesh table of a training job at 64 and at 1,048,576 ranks: the same work, since nothing enumerates ranks.
#include <benchmark/benchmark.h>

#include "mesh/coordinates.h"
#include "mesh/groups.h"
#include "mesh/parallel_dims.h"

namespace {

using meshplan::MeshTable;

MeshTable job(int64_t world) {
  MeshTable table;
  const meshplan::Status built =
      add_parallel_dims(table, {.world = world, .pp = 2, .dp_replicate = 2, .dp_shard = -1, .cp = 2, .tp = 4, .ep = 4});
  if (!built) std::abort();
  return table;
}

void build_table(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(job(state.range(0)));
}
BENCHMARK(build_table)->Arg(64)->Arg(1 << 20);

void count_groups(benchmark::State& state) {
  const MeshTable table = job(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(counts_with_world_group(table));
}
BENCHMARK(count_groups)->Arg(64)->Arg(1 << 20);

void find_flattens(benchmark::State& state) {
  const MeshTable table = job(state.range(0));
  const meshplan::Mesh& dense = table.meshes[*find_mesh(table, "dense")];
  for (auto _ : state) {
    for (size_t i = 0; i < dense.dims.size(); ++i) {
      for (size_t j = i + 1; j < dense.dims.size(); ++j) benchmark::DoNotOptimize(find_flatten(table, dense, {i, j}));
    }
  }
}
BENCHMARK(find_flattens)->Arg(64)->Arg(1 << 20);

void coordinates_of_last_rank(benchmark::State& state) {
  const MeshTable table = job(state.range(0));
  const meshplan::Mesh& dense = table.meshes[*find_mesh(table, "dense")];
  for (auto _ : state) benchmark::DoNotOptimize(coordinates_at(dense, state.range(0) - 1));
}
BENCHMARK(coordinates_of_last_rank)->Arg(64)->Arg(1 << 20);

}  // namespace
