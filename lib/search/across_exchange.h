// The exchange of a plan across meshes: from a state of the source's mesh to one of the target's.
#pragma once

#include "plan/question.h"
#include "search/exchange_step.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

class AcrossExchange {
 public:
  // What all of it points at stays where it is. `levels`: of the source's mesh.
  AcrossExchange(const PlanQuestion& question, const LevelMap& levels, const Mesh& dst_mesh,
                 work::Budget& budget)
      : question_(question), levels_(levels), dst_mesh_(dst_mesh), budget_(budget) {}

  // The request between other states.
  [[nodiscard]] Request leg(const State& src, const State& dst) const;
  // What takes least time of these ways. A price above `most_ps` is of no use.
  ExchangeStep made(const State& src, const State& dst, const ExchangeWays& ways,
                    int64_t most_ps = INT64_MAX);

  struct Least {
    Step step;
    int64_t peak_bytes = INT64_MAX;
  };
  // What needs least memory of those that take least time of `ways` or of fewer of them.
  Least least_peak(const State& src, const State& dst, ExchangeWays ways);

 private:
  const PlanQuestion& question_;
  const LevelMap& levels_;
  const Mesh& dst_mesh_;
  work::Budget& budget_;
};

// Leaves out one of the ways by which this exchange goes, as without it another may need less
// memory: a far share, fetching by those that do not want it, or two phases. False: there is none.
[[nodiscard]] bool leave_out_way(const Step& exchange, ExchangeWays& ways);

}  // namespace meshplan
