// How long single redistributions of specs take to plan, advice and proof included, and how many are
// proven: each is planned once by itself in a warm process, by the thread's processor time.
//
// usage: bench_plan_specs [--top N] [--all] [--budget N] SPEC...     a file with one spec
//        ... | bench_plan_specs -                                   one spec a line
//
//     bench_plan_specs testdata/specs/*.json
//     tests/bench/slowest_plans.py --only factors --print | bench_plan_specs -
//     tests/bench/across_meshes.py | bench_plan_specs --all -
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "planner/settle_options.h"
#include "spec/spec.h"

using namespace meshplan;

namespace {

double thread_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

struct Row {
  double ms = 0;
  int64_t work = 0;  // units of search/work.h, the same on every machine
  double gap = 0;    // percent of the time predicted
  double us = 0;     // predicted
  double bound = 0;  // time predicted over the bound
  std::string what;
  std::string trace;
  std::string left_out;  // by the search
};

double at(const std::vector<double>& sorted, double share) {
  const auto count = static_cast<double>(sorted.size());
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * count))];
}

// `budget`: units of work a question may take (search/work.h); 0: the default.
void plan_each(const std::string& text, const std::string& name, int64_t budget, std::vector<Row>& rows) {
  Diagnostics diagnostics;
  const auto spec = read_spec(text, name, {}, diagnostics);
  if (!spec) {
    std::fprintf(stderr, "%s: not a spec\n", name.c_str());
    std::exit(2);
  }
  auto options = settle_options(spec->options, {});
  if (!options) std::exit(2);
  if (budget > 0) options->work_budget = budget;
  const Topology topology = spec->topology ? *spec->topology : uniform_topology();
  std::string mesh = name + " ";
  for (const MeshDim& dim : spec->meshes.meshes.front().dims) mesh += (mesh.back() == ' ' ? "" : "x") + std::to_string(dim.size);
  for (const Request& request : spec->requests) {
    const double before = thread_ms();
    const PlanOutcome outcome = plan_requests(spec->meshes, topology, {request}, *options, "");
    Row row;
    row.ms = thread_ms() - before;
    row.work = outcome.work;
    row.what = mesh + " " + request.id;
    if (!outcome.failures.empty()) {
      row.what += ": " + outcome.failures.front().error.message;
    } else {
      const PlannedRedistribution& planned = outcome.plan.redistributions.front();
      const Totals& totals = planned.totals;
      row.us = static_cast<double>(totals.predicted_ps) / 1e6;
      if (totals.predicted_ps > 0) row.gap = 100.0 * static_cast<double>(planned.proven_gap_ps) / static_cast<double>(totals.predicted_ps);
      if (totals.lower_bound_ps > 0) row.bound = static_cast<double>(totals.predicted_ps) / static_cast<double>(totals.lower_bound_ps);
      row.trace = planned.trace;
      if (row.gap > 0) row.left_out = " (" + to_text(planned.shortcuts) + ")";
    }
    rows.push_back(std::move(row));
  }
}

void print(const Row& row) {
  std::printf("  %9.3f ms  gap %6.2f %%  %.3f us, x%.3f of its bound  %s  %s%s  work %.3f\n", row.ms, row.gap, row.us, row.bound,
              row.what.c_str(), row.trace.c_str(), row.left_out.c_str(), static_cast<double>(row.work) / 1e5);
}

void print_summary(std::vector<Row> rows, size_t top) {
  if (rows.empty()) return;
  std::vector<double> ms;
  std::vector<double> work;
  double all = 0;
  size_t proven = 0;
  size_t wide = 0;
  for (const Row& row : rows) {
    ms.push_back(row.ms);
    work.push_back(static_cast<double>(row.work) / 1e5);
    all += row.ms;
    proven += row.gap == 0 ? 1 : 0;
    wide += row.gap > 5 ? 1 : 0;
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%zu redistributions, %.2f s: median %.3f ms, p90 %.3f, p99 %.3f, max %.3f\n", rows.size(), all / 1e3, at(ms, 0.5),
              at(ms, 0.9), at(ms, 0.99), ms.back());
  std::sort(work.begin(), work.end());
  std::printf("by their work: median %.3f ms, p90 %.3f, p99 %.3f, max %.3f\n", at(work, 0.5), at(work, 0.9), at(work, 0.99), work.back());
  std::printf("%.2f %% proven, %zu with a gap above 5 %%\n", 100.0 * static_cast<double>(proven) / static_cast<double>(rows.size()), wide);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
  std::printf("slowest\n");
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) print(rows[i]);
  std::erase_if(rows, [](const Row& row) { return row.gap == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.gap > b.gap; });
  std::printf("not proven\n");
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) print(rows[i]);
}

}  // namespace

int main(int argc, char** argv) {
  size_t top = 15;
  bool all = false;
  int64_t budget = 0;
  std::vector<Row> rows;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--top" && i + 1 < argc) {
      top = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--budget" && i + 1 < argc) {
      budget = std::strtoll(argv[++i], nullptr, 10);
    } else if (name == "--all") {
      all = true;
    } else if (name == "-") {
      std::string line;
      for (size_t n = 1; std::getline(std::cin, line); ++n) plan_each(line, "line " + std::to_string(n), budget, rows);
    } else {
      std::ifstream file(name);
      std::stringstream text;
      text << file.rdbuf();
      plan_each(text.str(), name.substr(name.rfind('/') + 1), budget, rows);
    }
  }
  if (all) {
    for (const Row& row : rows) print(row);
  }
  print_summary(std::move(rows), top);
  return 0;
}
