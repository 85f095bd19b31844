// What replaying costs: packing beside memcpy, a replayed collective beside a
// bare loop of the same call, a whole replay of 64 MiB on 8 and on 512 ranks,
// side by side in one run.
#include <benchmark/benchmark.h>

#include <cstring>

#include "mesh/mesh_table.h"
#include "replay/executor.h"
#include "replay/host_device.h"
#include "replay_host/host_communicator.h"

namespace {

using namespace meshplan;

// A plan of one step on a mesh of one dim.
Plan one_step(int64_t ranks, std::vector<int64_t> shape, const char *before,
              const char *after, Op op) {
  Plan plan;
  Mesh mesh = make_mesh("mesh", {{"a", ranks}}).value();
  plan.meshes.universe = mesh.universe;
  plan.meshes.meshes.push_back(mesh);
  plan.topology.levels.push_back({"all", 1 << 20, 100000, 10000, 500, 100});
  PlannedRedistribution r;
  r.request.id = "bench";
  r.request.tensor = {shape, DType::float32};
  r.request.src =
      parse_state(before, std::vector<int64_t>{ranks}, shape.size()).value();
  Step step;
  step.op = op;
  step.mesh_dims = {{0, 1, ranks}};
  step.state =
      parse_state(after, std::vector<int64_t>{ranks}, shape.size()).value();
  if (op == Op::all_reduce || op == Op::reduce_scatter)
    step.reduce_op = ReduceOp::sum;
  r.steps.push_back(step);
  r.dst = r.request.dst = step.state;
  plan.redistributions.push_back(std::move(r));
  return plan;
}

// Runs of `run` bytes out of rows of twice as many: 32 MiB in all.
constexpr int64_t packed_bytes = int64_t{32} << 20;
void BM_pack(benchmark::State &state) {
  const int64_t run = state.range(0);
  const Box whole{{0, packed_bytes / run}, {0, 2 * run / 4}};
  const Box part{{0, packed_bytes / run}, {0, run / 4}};
  std::vector<std::byte> from(static_cast<size_t>(2 * packed_bytes),
                              std::byte{1});
  std::vector<std::byte> to(static_cast<size_t>(packed_bytes), std::byte{2});
  const Region region = make_region(part, whole, part);
  for (auto _ : state) {
    copy_region(region, from.data(), to.data(), 4);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * packed_bytes);
}
BENCHMARK(BM_pack)->Arg(16)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);

void BM_unpack(benchmark::State &state) {
  const int64_t run = state.range(0);
  const Box whole{{0, packed_bytes / run}, {0, 2 * run / 4}};
  const Box part{{0, packed_bytes / run}, {0, run / 4}};
  std::vector<std::byte> from(static_cast<size_t>(packed_bytes), std::byte{1});
  std::vector<std::byte> to(static_cast<size_t>(2 * packed_bytes),
                            std::byte{2});
  const Region region = make_region(part, part, whole);
  for (auto _ : state) {
    copy_region(region, from.data(), to.data(), 4);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * packed_bytes);
}
BENCHMARK(BM_unpack)->Arg(256)->Arg(4096);

void BM_memcpy(benchmark::State &state) {
  std::vector<std::byte> from(static_cast<size_t>(packed_bytes), std::byte{1});
  std::vector<std::byte> to(static_cast<size_t>(packed_bytes), std::byte{2});
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(packed_bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * packed_bytes);
}
BENCHMARK(BM_memcpy);

struct Ready {
  HostDevice device{1};
  Plan plan;
  ReplayOptions options;
  RankTable ranks;
  HostCommunicator communicator;
  std::optional<RedistributionRun> run;
  explicit Ready(Plan made)
      : plan(std::move(made)), ranks(make_rank_table(*plan.meshes.universe)),
        communicator(plan.meshes.universe->world, device) {
    options.full_size = true;
    const RedistributionRun::Question question{
        &plan,         plan.redistributions.data(),
        &options,      &ranks,
        &communicator, &device,
        nullptr};
    auto prepared = RedistributionRun::prepare(question);
    (void)RedistributionRun::agree(prepared, question).value();
    run.emplace(std::move(*prepared));
  }
};

// 4 MiB a rank on 4 ranks, as the executor runs it.
void BM_replayed(benchmark::State &state, const char *before, const char *after,
                 Op op, std::vector<int64_t> shape) {
  Ready ready(one_step(4, std::move(shape), before, after, op));
  for (auto _ : state)
    (void)ready.run->run_step(0).value();
}
// The same call by itself, on buffers of its own, in turns with the replayed
// one: the ratio is what replaying adds.
void BM_side_by_side(benchmark::State &state, const char *before,
                     const char *after, Op op, std::vector<int64_t> shape) {
  Ready ready(one_step(4, std::move(shape), before, after, op));
  const Call *call = ready.run->bare_call(0);
  const Deadline never = Deadline::max();
  double replayed = 0;
  double bare = 0;
  using Clock = std::chrono::steady_clock;
  for (auto _ : state) {
    const auto a = Clock::now();
    (void)ready.run->run_step(0).value();
    const auto b = Clock::now();
    (void)ready.communicator.run(*call, never).value();
    const auto c = Clock::now();
    replayed += std::chrono::duration<double>(b - a).count();
    bare += std::chrono::duration<double>(c - b).count();
  }
  state.counters["bare_us"] =
      bare / static_cast<double>(state.iterations()) * 1e6;
  state.counters["replayed_us"] =
      replayed / static_cast<double>(state.iterations()) * 1e6;
  state.counters["ratio"] = replayed / bare;
}
BENCHMARK_CAPTURE(BM_side_by_side, all_gather, "S(0)", "R", Op::all_gather,
                  {1024, 1024});
BENCHMARK_CAPTURE(BM_side_by_side, all_reduce, "P(sum)", "R", Op::all_reduce,
                  {1024, 1024});
BENCHMARK_CAPTURE(BM_side_by_side, reduce_scatter, "P(sum)", "S(0)",
                  Op::reduce_scatter, {1024, 1024});
BENCHMARK_CAPTURE(BM_replayed, all_to_all, "S(0)", "S(1)", Op::all_to_all,
                  {4096, 1024});

// The whole of it: prepared, filled, run, checked. 64 MiB over all ranks before
// and after the step.
void BM_whole_replay(benchmark::State &state) {
  const int64_t ranks = state.range(0);
  Plan plan = one_step(ranks, {4096, 4096}, "S(0)", "S(1)", Op::all_to_all);
  ReplayOptions options;
  options.full_size = true;
  HostDevice device(0);
  HostCommunicator communicator(ranks, device);
  for (auto _ : state) {
    auto report = replay(plan, options, communicator, device);
    if (!report.ok() || !all_right(*report))
      state.SkipWithError("wrong");
  }
}
BENCHMARK(BM_whole_replay)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512)
    ->Unit(benchmark::kMillisecond);

// The step alone.
void BM_step_of_64_mib(benchmark::State &state) {
  Ready ready(
      one_step(state.range(0), {4096, 4096}, "S(0)", "S(1)", Op::all_to_all));
  for (auto _ : state)
    (void)ready.run->run_step(0).value();
}
BENCHMARK(BM_step_of_64_mib)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512)
    ->Unit(benchmark::kMillisecond);

} // namespace
