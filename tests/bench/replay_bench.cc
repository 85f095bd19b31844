// What replaying costs: packing beside memcpy, a replayed collective beside a
// bare loop of the same call, a whole replay of 64 MiB on 8 and on 512 ranks,
// side by side in one run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>

#include "one_step.h"
#include "replay/executor.h"
#include "replay/host_device.h"
#include "replay/join_copies.h"
#include "replay_host/host_communicator.h"

namespace {

using namespace meshplan;

// Of this thread, so that others' work counts as little as can be.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& run) {
  const double start = seconds_now();
  run();
  return seconds_now() - start;
}

// Two things in turns, each first every other time, then the rest for comparison. The ratio is that of the shortest times: what others take
// of the machine falls on both.
struct Named {
  const char* name;
  std::function<void()> run;
};
void in_turns(benchmark::State& state, const Named& one, const Named& other, const std::vector<Named>& rest = {}) {
  double least_one = 1e9;
  double least_other = 1e9;
  std::vector<double> least_rest(rest.size(), 1e9);
  bool first = true;
  for (auto _ : state) {
    if (first) least_one = std::min(least_one, seconds_of(one.run));
    least_other = std::min(least_other, seconds_of(other.run));
    if (!first) least_one = std::min(least_one, seconds_of(one.run));
    first = !first;
    for (size_t i = 0; i < rest.size(); ++i) least_rest[i] = std::min(least_rest[i], seconds_of(rest[i].run));
  }
  state.counters[one.name] = least_one * 1e6;
  state.counters[other.name] = least_other * 1e6;
  for (size_t i = 0; i < rest.size(); ++i) state.counters[rest[i].name] = least_rest[i] * 1e6;
  state.counters["ratio"] = least_one / least_other;
}

// Runs of `run` bytes out of rows of `parts` times as many, beside a memcpy of as much from and to the same buffers. The ratio is of times:
// 1.43 is 70 % of memcpy's speed. What the bare machine can do with such runs stands beside it: a loop of memcpy a run, and a loop that
// only reads a word of every line of the runs.
void packing(benchmark::State& state, bool packs) {
  const int64_t run = state.range(0);
  const int64_t bytes = state.range(1);
  const int64_t parts = state.range(2);
  const Box whole{{0, bytes / run}, {0, parts * run / 4}};
  const Box part{{0, bytes / run}, {0, run / 4}};
  HostDevice device(1);  // buffers as a replay has them
  std::byte* wide = device.allocate(0, parts * bytes).value();
  std::byte* narrow = device.allocate(0, bytes).value();
  std::memset(wide, 1, static_cast<size_t>(parts * bytes));
  std::memset(narrow, 2, static_cast<size_t>(bytes));
  const Region region = packs ? make_region(part, whole, part) : make_region(part, part, whole);
  const std::byte* from = packs ? wide : narrow;
  std::byte* to = packs ? narrow : wide;
  const bool past_cache = bytes > int64_t{16} << 20;  // as the executor decides
  const int64_t from_step = packs ? parts * run : run;
  const int64_t to_step = packs ? run : parts * run;
  uint64_t read = 0;
  in_turns(state, {"packed_us", [&] { copy_region(region, from, to, 4, past_cache); }},
           {"memcpy_us", [&] { std::memcpy(to, from, static_cast<size_t>(bytes)); }},
           {{"loop_us",
             [&] {
               for (int64_t i = 0; i < bytes / run; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(run));
             }},
            {"read_us", [&] {
               for (int64_t i = 0; i < bytes / run; ++i) {
                 for (int64_t at = 0; at < run; at += 64) {
                   uint64_t word = 0;
                   std::memcpy(&word, from + i * from_step + at, std::min<size_t>(8, static_cast<size_t>(run - at)));
                   read += word;
                 }
               }
             }}});
  benchmark::DoNotOptimize(read);
  state.SetBytesProcessed(state.iterations() * bytes);
}
void BM_pack(benchmark::State& state) { packing(state, true); }
void BM_unpack(benchmark::State& state) { packing(state, false); }
// 300 and 1000: runs that are no multiple of a cache line.
BENCHMARK(BM_pack)->ArgsProduct({{256, 300, 512, 1000, 1024, 4096, 65536}, {256 << 10, 2 << 20, 32 << 20}, {2, 8}})->Iterations(40);
BENCHMARK(BM_unpack)->ArgsProduct({{256, 300, 512, 1000, 1024, 4096, 65536}, {256 << 10, 2 << 20, 32 << 20}, {2, 8}})->Iterations(40);

// A whole box packed for 8 others, as an all_to_all does: columns of `run` bytes each, joined and turned as the executor does it, beside a
// memcpy that reads and writes the same memory.
void BM_pack_for_all(benchmark::State& state) {
  const int64_t run = state.range(0);
  const int64_t bytes = state.range(1);
  constexpr int64_t others = 8;
  const int64_t rows = bytes / run / others;
  const Box whole{{0, rows}, {0, others * run / 4}};
  HostDevice device(1);
  std::byte* from = device.allocate(0, bytes).value();
  std::byte* to = device.allocate(0, bytes).value();
  std::memset(from, 1, static_cast<size_t>(bytes));
  std::memset(to, 2, static_cast<size_t>(bytes));
  LocalOp all;
  for (int64_t i = 0; i < others; ++i) {
    LocalOp op;
    op.from = from;
    op.to = to + i * rows * run;
    const Box part{{0, rows}, {i * run / 4, (i + 1) * run / 4}};
    op.region = make_region(part, whole, part);
    if (i == 0) {
      all = op;
    } else if (!join_copies(all, op)) {
      state.SkipWithError("not joined");
    }
  }
  all.past_cache = bytes > int64_t{16} << 20;
  if (all.past_cache) read_in_order(all);
  in_turns(state, {"packed_us", [&] { do_on_host(all); }}, {"memcpy_us", [&] { std::memcpy(to, from, static_cast<size_t>(bytes)); }});
}
BENCHMARK(BM_pack_for_all)->ArgsProduct({{256, 1024, 4096, 65536}, {512 << 10, 4 << 20, 32 << 20}})->Iterations(40);

struct Ready {
  HostDevice device{1};
  Plan plan;
  ReplayOptions options;
  RankTable ranks;
  HostCommunicator communicator;
  std::optional<RedistributionRun> run;
  explicit Ready(Plan made) : plan(std::move(made)), ranks(make_rank_table(plan.meshes)), communicator(rank_count(plan.meshes), device) {
    options.full_size = true;
    const RedistributionRun::Question question{&plan, plan.redistributions.data(), &options, &ranks, &communicator, &device, nullptr};
    auto prepared = RedistributionRun::prepare(question);
    (void)RedistributionRun::agree(prepared, question).value();
    run.emplace(std::move(*prepared));
  }
};

// 4 MiB a rank on 4 ranks: a step as the executor runs it, and a bare loop of the same call.
void BM_side_by_side(benchmark::State& state, const char* before, const char* after, Op op, const std::vector<int64_t>& shape) {
  Ready ready(one_step(4, shape, before, after, op));
  const Call* call = ready.run->bare_call(0);
  in_turns(state, {"replayed_us", [&] { (void)ready.run->run_step(0).value(); }},
           {"bare_us", [&] { (void)ready.communicator.run(*call, Deadline::max()).value(); }});
}
BENCHMARK_CAPTURE(BM_side_by_side, all_gather, "S(0)", "R", Op::all_gather, {4096, 1024})->Iterations(120);
BENCHMARK_CAPTURE(BM_side_by_side, all_reduce, "P(sum)", "R", Op::all_reduce, {1024, 1024})->Iterations(120);
BENCHMARK_CAPTURE(BM_side_by_side, reduce_scatter, "P(sum)", "S(0)", Op::reduce_scatter, {1024, 1024})->Iterations(120);
// One row a rank: parts that need no packing on either side.
BENCHMARK_CAPTURE(BM_side_by_side, all_to_all, "S(0)", "S(1)", Op::all_to_all, {4, 1 << 20})->Iterations(120);

// The whole of it: prepared, filled, run, checked. 64 MiB over all ranks before
// and after the step.
void BM_whole_replay(benchmark::State& state) {
  const int64_t ranks = state.range(0);
  Plan plan = one_step(ranks, {4096, 4096}, "S(0)", "S(1)", Op::all_to_all);
  ReplayOptions options;
  options.full_size = true;
  HostDevice device(0);
  HostCommunicator communicator(ranks, device);
  for (auto _ : state) {
    auto report = replay(plan, options, communicator, device);
    if (!report.ok() || !all_right(*report)) state.SkipWithError("wrong");
  }
}
BENCHMARK(BM_whole_replay)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

// The step alone.
void BM_step_of_64_mib(benchmark::State& state) {
  Ready ready(one_step(state.range(0), {4096, 4096}, "S(0)", "S(1)", Op::all_to_all));
  for (auto _ : state) (void)ready.run->run_step(0).value();
}
BENCHMARK(BM_step_of_64_mib)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
