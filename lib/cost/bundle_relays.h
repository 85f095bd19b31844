// What a bundle takes whose targets lie on ranks that hold nothing at first: they pass on what the
// ranks of the sources give, in later waves (cost/relay_bound.h).
//
//     hosts of 8, one gives 128 MiB to 16       64 MiB out of 8 NICs for every 64 MiB into 128: a
//                                               wave in which it comes is lost for the others
//
// Takers are ranks, and the ranks of a unit of each level together. All of them need the same waves
// in which givers send, each of the latency of an exchange across; where takers alone send too,
// these have one latency more.
//
// One tensor by itself takes one step after the other: until a collective all of it goes by
// exchanges, and when it runs all has left the givers. So either no all_gather has several ranks in
// a group that want the same, and the law of cost/chain_bound.h holds; or the first one that has
// does as copy_lines.h says, behind all that the givers send. Of plans whose collectives run over
// whole mesh dims, and that add up nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cost/copy_lines.h"
#include "cost/relay_bound.h"
#include "cost/set_needs.h"
#include "cost/unit_counts.h"
#include "plan/plan.h"

namespace meshplan {

class BundleRelays {
 public:
  // `bound`: as bounds are taken in, by cost/protocols.h. All of it stays where it is.
  BundleRelays(const Topology& topology, const Topology& bound, const LevelUnits& units);

  // All ranks that hold something at first, before any member is added.
  void add_givers(const Mesh& mesh, int64_t copies);
  // A member that has nothing pending; `weight`: bytes that stand for an element.
  void add(const Participants& all, int64_t weight);

  // Of all ranks of the bundle.
  [[nodiscard]] std::vector<int64_t> takers(const std::set<int64_t>& ids) const;
  // Picoseconds, where exchanges alone come from outside of the takers; 0: they want nothing, or
  // latencies are 0. `bytes_ps`: what bytes take without latencies, whatever the waves are.
  // `lone`: of one tensor, which no collective brings anything of while givers send it.
  [[nodiscard]] int64_t ps(const std::vector<int64_t>& takers, int64_t bytes_ps, bool lone) const;
  // The same of a lone tensor: what its steps take one behind the other; 0 as there. `lines`: of
  // its target.
  [[nodiscard]] int64_t lone_ps(const std::vector<int64_t>& takers,
                                const std::vector<CopyLines>& lines) const;

 private:
  struct Sides {
    UnitCounts givers;
    UnitCounts takers;
    int64_t given_mb_per_s = 0;  // by all givers to all takers, at the rate of exchanges
  };
  struct Takers {
    std::vector<RelayNeed> needs;         // one for each m of the law
    std::vector<int64_t> among_mb_per_s;  // c, by the outermost level
  };
  struct Latencies {
    int64_t giving_ps = 0;          // of each wave in which givers send
    std::vector<int64_t> alone_ps;  // of others up to a level, by level
    int64_t longer_ps = 0;          // so much longer than exchanges may collectives of a wave send
  };
  [[nodiscard]] Sides sides_of(const std::vector<int64_t>& takers) const;
  [[nodiscard]] Takers takers_in_units(int level, const std::vector<int64_t>& takers,
                                       const Sides& sides) const;
  [[nodiscard]] int64_t given_mb_per_s(const std::vector<int64_t>& from,
                                       const UnitCounts& to) const;
  [[nodiscard]] int64_t giving_latency_ns(const std::vector<int64_t>& takers,
                                          const UnitCounts& givers) const;
  [[nodiscard]] Latencies latencies(const std::vector<int64_t>& takers, const UnitCounts& givers,
                                    bool lone) const;
  [[nodiscard]] int64_t least_latency_ps(int from, int to) const;
  [[nodiscard]] int64_t chain_ps(int level, const Sides& sides, const std::vector<Takers>& sets,
                                 int64_t giving_ps) const;
  [[nodiscard]] int64_t gathered_ps(const CopyLines& lines, const std::vector<Takers>& sets,
                                    int64_t giving_ps) const;
  [[nodiscard]] static int64_t waves_ps(const std::vector<Takers>& sets, int64_t waves,
                                        int outermost, int64_t longer_ps);

  const Topology& topology_;
  const Topology& bound_;
  const LevelUnits& units_;
  std::set<int64_t> givers_;
  // By level, 0 for ranks: bytes that so many takers want.
  std::vector<std::map<int64_t, int64_t>> wanted_;
  // By level, 0 for ranks: the most takers in a unit that want the same.
  std::vector<int64_t> in_unit_;
};

}  // namespace meshplan
