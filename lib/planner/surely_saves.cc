#include "planner/surely_saves.h"

#include <vector>

#include "base/int_math.h"
#include "cost/worth.h"

namespace meshplan {
namespace {

bool same_work(const Step& a, const Step& b) {
  return a.op == b.op && a.mesh_dims == b.mesh_dims && a.predicted_ps == b.predicted_ps;
}

// The time of those steps of `a` that `b` does not have.
int64_t time_apart(std::span<const Step> a, std::span<const Step> b) {
  std::vector<bool> met(b.size(), false);
  int64_t ps = 0;
  for (const Step& step : a) {
    size_t i = 0;
    while (i < b.size() && (met[i] || !same_work(step, b[i]))) ++i;
    if (i < b.size()) {
      met[i] = true;
    } else {
      ps = saturating_add(ps, step.predicted_ps);
    }
  }
  return ps;
}

}  // namespace

bool surely_saves(const Topology& topology, std::span<const Step> without,
                  std::span<const Step> with) {
  return time_apart(without, with) / model_error_percent(topology) >
         time_apart(with, without) / 100;
}

}  // namespace meshplan
