// How long the optimal planner takes, pair by pair: every pair timed once in a warm process, no
// memo, by the thread's processor time. Prints medians and percentiles, and the pairs whose plan may
// take a tenth more than the cheapest.
//
// usage: bench_plan_pairs [SEED [PART OF A WORLD'S NAME [BUDGET]]]     units of work a search may take
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "search/optimal.h"
#include "verify/verify.h"

using namespace meshplan;

namespace {

// Processor time of this thread, so that other work on the machine does not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<Clock>;
  static time_point now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

struct World {
  const char* name;
  std::vector<int64_t> sizes;
  size_t tensor_rank;
  int64_t inside;  // ranks a host
  size_t pairs;    // 0: all
  bool pending;
};

State random_state(const std::vector<int64_t>& sizes, size_t rank, bool pending, std::mt19937_64& random) {
  State s;
  s.shards.resize(rank);
  for (size_t m = 0; m < sizes.size(); ++m) {
    SubAxis sub_axis{static_cast<int32_t>(m), 1, sizes[m]};
    size_t choice = random() % (rank + 1 + (pending ? 1 : 0));
    if (choice < rank) {
      auto& order = s.shards[choice];
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random() % (order.size() + 1)), sub_axis);
    } else if (choice == rank + 1) {
      s.partial.push_back({sub_axis, ReduceOp::sum});
    }
  }
  return s;
}

// What reading the clock twice takes: a system call.
double clock_us() {
  static const double cost = [] {
    std::vector<double> times;
    for (int i = 0; i < 1001; ++i) {
      auto start = Clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + 500, times.end());
    return times[500];
  }();
  return cost;
}

double at(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

// A pair of a world, by its number, with what was found and what it takes at least.
std::string found_text(const PlanProblem& p, const Found& found, size_t pair) {
  const auto us = [](int64_t ps) { return std::to_string(ps / 1'000'000) + "." + std::to_string(ps / 100'000 % 10) + " us"; };
  std::string way = to_text(to_state(p, p.source), p.mesh_sizes);
  for (const Edge& edge : found.edges) {
    way += " -> " + std::string(to_text(edge.op)) + (edge.phases > 1 ? "/2 " : " ") + to_text(to_state(p, edge.to), p.mesh_sizes) + " " +
           us(edge.cost.ps);
  }
  return "pair " + std::to_string(pair) + ": " + way + "; in all " + us(found.cost.ps) + ", at least " + us(found.least_ps);
}

// `budget`: units of work a search may take (search/work.h).
void run(const World& w, uint64_t seed, int64_t budget) {
  const Mesh mesh = test::mesh_of(w.sizes);
  const int64_t ranks = mesh_size(mesh);
  MeshTable meshes;
  meshes.meshes = {mesh};
  const Topology topology = test::two_levels(w.inside, 500);
  LevelMap levels(mesh, topology);
  PlanOptions options;
  options.groups = GroupPolicy::any;
  SearchOptions search_options;
  if (budget > 0) search_options.work_budget = budget;

  // 64 MB of float32, every extent a multiple of all sizes.
  Request request;
  request.tensor.dtype = DType::float32;
  int64_t left = 16'777'216;
  for (size_t d = 0; d < w.tensor_rank; ++d) {
    int64_t side = std::max<int64_t>(ranks, d + 1 == w.tensor_rank ? left : 64);
    side = (side + ranks - 1) / ranks * ranks;
    request.tensor.shape.push_back(side);
    left = std::max<int64_t>(1, left / side);
  }
  std::mt19937_64 random(seed);
  std::vector<std::pair<State, State>> pairs;
  if (w.pairs == 0) {
    std::vector<ReduceOp> ops;
    if (w.pending) ops.push_back(ReduceOp::sum);
    auto states = all_states(w.sizes, w.tensor_rank, ops);
    for (const State& a : states) {
      for (const State& b : states) {
        bool made = false;
        for (const PendingSubAxis& p : b.partial) made = made || std::find(a.partial.begin(), a.partial.end(), p) == a.partial.end();
        if (!(a == b) && !made) pairs.emplace_back(a, b);
      }
    }
    std::shuffle(pairs.begin(), pairs.end(), random);
  } else {
    while (pairs.size() < w.pairs) {
      State a = random_state(w.sizes, w.tensor_rank, w.pending, random);
      State b = random_state(w.sizes, w.tensor_rank, false, random);
      if (!(a == b)) pairs.emplace_back(a, b);
    }
  }
  PlanQuestion question{&meshes, &topology, &request, &options};
  // The process is warm: one pass over a few pairs that is not counted.
  for (size_t i = 0; i < std::min<size_t>(32, pairs.size()); ++i) {
    request.src = pairs[i].first;
    request.dst = pairs[i].second;
    auto problem = make_problem(levels, {&meshes, nullptr, &request, &options}, request, request.dst);
    (void)find_cheapest(*problem);
  }
  std::vector<double> search, without_search, with_search, whole, verified;
  size_t unproven = 0;
  double worst_gap = 0;
  std::vector<std::string> far_apart;  // pairs whose gap is above a tenth
  Plan plan;
  plan.meshes = meshes;
  plan.topology = topology;
  for (const auto& [src, dst] : pairs) {
    request.src = src;
    request.dst = dst;
    auto t0 = Clock::now();
    auto problem = make_problem(levels, {&meshes, nullptr, &request, &options}, request, request.dst);
    auto t1 = Clock::now();
    Found found = find_cheapest(*problem, search_options);
    auto t2 = Clock::now();
    auto us = [](auto a, auto b) { return std::max(0.0, std::chrono::duration<double, std::micro>(b - a).count() - clock_us()); };
    search.push_back(us(t1, t2));
    (found.settled <= 1 ? without_search : with_search).push_back(us(t1, t2));
    whole.push_back(us(t0, t2));
    const int64_t gap = found.shortcuts.none() ? 0 : found.cost.ps - found.least_ps;
    unproven += gap > 0;
    const double share = gap > 0 ? static_cast<double>(gap) / static_cast<double>(found.cost.ps) : 0;
    worst_gap = std::max(worst_gap, share);
    if (share > 0.1) far_apart.push_back(found_text(*problem, found, search.size() - 1));
  }
  // The whole answer as a file's planning gives it: states, steps, prices, proof.
  size_t some = std::min<size_t>(pairs.size(), 500);
  for (size_t i = 0; i < some; ++i) {
    request.src = pairs[i].first;
    request.dst = pairs[i].second;
    auto t0 = Clock::now();
    PlannedRedistribution planned;
    auto list = plan_optimal(question, levels);
    planned.request = request;
    planned.dst = list->dst;
    planned.steps = std::move(list->steps);
    price_redistribution(planned, meshes, topology);
    (void)verify_redistribution(plan, planned);
    verified.push_back(std::chrono::duration<double, std::micro>(Clock::now() - t0).count() - clock_us());
  }
  for (auto* v : {&search, &without_search, &with_search, &whole, &verified}) std::sort(v->begin(), v->end());
  auto line = [](const char* what, std::vector<double>& v) {
    if (v.empty()) return;
    std::printf("  %-34s %7zu   median %9.2f us   p90 %10.2f   p99 %10.2f   max %10.2f\n", what, v.size(), at(v, 0.5), at(v, 0.9),
                at(v, 0.99), v.back());
  };
  std::printf("%s\n", w.name);
  line("search", search);
  line("  of these answered at the source", without_search);
  line("  of these searched further", with_search);
  line("with sub-axes and groups set up", whole);
  line("with steps, prices and proof", verified);
  if (unproven > 0) std::printf("  %zu not proven, largest gap %.1f %%\n", unproven, 100 * worst_gap);
  for (const std::string& text : far_apart) std::printf("    %s\n", text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::string only = argc > 2 ? argv[2] : "";
  const int64_t budget = argc > 3 ? std::strtoll(argv[3], nullptr, 10) : 0;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf(
      "seed %llu, two levels (370 and 45 GB/s, 10 and 25 us), 64 MB float32, every group allowed, one core; the clock's own %.2f us taken "
      "off\n",
      static_cast<unsigned long long>(seed), clock_us());
  const std::vector<World> worlds{
      {"2x2x2, tensor rank 2, 4 ranks a host, all pairs", {2, 2, 2}, 2, 4, 0, false},
      {"2x2x2, tensor rank 2, 4 ranks a host, all pairs, pending sums too", {2, 2, 2}, 2, 4, 0, true},
      {"4x2x2, tensor rank 2, 4 ranks a host, all pairs", {4, 2, 2}, 2, 4, 0, false},
      {"2x3x2, tensor rank 2, 6 ranks a host, all pairs", {2, 3, 2}, 2, 6, 0, false},
      {"5 mesh dims of 2, tensor rank 3, 8 ranks a host, random pairs", {2, 2, 2, 2, 2}, 3, 8, 400, false},
      {"5 mesh dims of 8, tensor rank 3, 8 ranks a host, random pairs", {8, 8, 8, 8, 8}, 3, 8, 200, false},
      {"6 mesh dims of 2, tensor rank 4, 8 ranks a host, random pairs", {2, 2, 2, 2, 2, 2}, 4, 8, 100, false},
      {"6 mesh dims, 1,048,576 ranks, tensor rank 4, 8 ranks a host, random pairs", {16, 16, 64, 4, 2, 8}, 4, 8, 100, false},
      {"5 mesh dims, tensor rank 3, pending sums too", {2, 4, 2, 2, 4}, 3, 8, 100, true},
      {"5 mesh dims of 2, tensor rank 3, pending sums too", {2, 2, 2, 2, 2}, 3, 8, 100, true},
      {"6 mesh dims, tensor rank 4, pending sums too", {2, 4, 2, 2, 2, 4}, 4, 8, 60, true},
      {"6 mesh dims of 2, tensor rank 3, pending sums too", {2, 2, 2, 2, 2, 2}, 3, 8, 60, true},
  };
  for (const World& w : worlds) {
    if (std::string_view(w.name).find(only) != std::string_view::npos) run(w, seed, budget);
  }
  return 0;
}
