// What the communicating steps of a plan take at least between them, whichever they are.
//
//     8 ranks of a host, S(0) -> R by protocols: each rank must come to know 8 ranks' shards
//     one ring of 8            a base and 7 hops, and the bytes at the protocol's bandwidth
//     a ring of 4, one of 2    two bases and 4 hops, and the bytes in either
//
// A step over f ranks makes what a rank knows of grow f times at most: then it knows of what its
// group knew of. Steps that bring the shards of F ranks to one have f1 * f2 * ... >= F. Each is of
// a kind, with a latency that grows with f and a bandwidth: the rings and trees of a protocol, the
// switches of a level, exchanges. Bytes that several steps share go no sooner than by the fastest
// of them alone, so a plan takes at least
//
//     the least over kinds of (the least latency of such steps, one of which is of the kind)
//                             + bytes / the bandwidth of the kind
//
// Levels alone are one kind, whose latency does not grow.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "transfer/traffic.h"

namespace meshplan {

class LeastTimes {
 public:
  LeastTimes() = default;
  // `reduces`: something is pending at either end, so that trees and switches may help.
  LeastTimes(const Topology& topology, bool reduces);

  bool operator==(const LeastTimes& other) const {
    return unit_ranks_ == other.unit_ranks_ && kinds_ == other.kinds_;
  }
  [[nodiscard]] size_t kinds() const { return kinds_.size(); }
  // Whether steps over more ranks may take longer.
  [[nodiscard]] bool grow() const { return kinds_.size() > 1; }
  // MB/s of a level in steps of a kind.
  [[nodiscard]] int64_t mb_per_s(size_t kind, size_t level) const {
    return kinds_[kind].mb_per_s[level];
  }
  // Of steps by which a rank comes to know of so many ranks, itself among them (what one step does
  // at least: 2), one of which is of the kind.
  struct Asked {
    int64_t ranks = 2;
    int level = 0;           // that some step reaches, or one further out
    bool kind_does = false;  // the one of the kind
    bool several = false;    // two steps or more
    bool operator==(const Asked&) const = default;
  };
  // By kind.
  [[nodiscard]] std::vector<int64_t> latencies_ns(const Asked& asked) const;
  // ps of such steps that move bytes / carriers over links of the levels of a set (bit l: level l).
  [[nodiscard]] int64_t ps(const Asked& asked, int64_t bytes, int64_t carriers,
                           uint32_t levels) const;

 private:
  enum class Growth : uint8_t { none, hops, peers, doubling };
  struct Kind {
    Growth growth = Growth::none;
    std::array<int64_t, max_levels> base_ns{};   // of a step that reaches the level, or further
    int64_t rank_ns = 0;                         // a further rank, or twice as many
    std::array<int64_t, max_levels> outer_ns{};  // more than that outside of units of level 0
    int64_t alike = 1;                           // so many ranks count as one
    std::array<int64_t, max_levels> mb_per_s{};
    bool operator==(const Kind&) const = default;
  };
  // A latency, and the bandwidth that the kind with it reaches over the links asked for.
  struct Line {
    int64_t latency_ps = 0;
    int64_t mb_per_s = 0;
  };
  // What was asked before, of which links, and where the lines that may be the least for some bytes
  // are: latencies ascend, and so do bandwidths.
  struct Known {
    Asked asked;
    uint32_t levels = 0;
    uint32_t begin = 0;
    uint32_t end = 0;  // 0: nothing was asked
  };
  // Shared by all questions of a thread on topologies that are alike.
  struct Memory {
    int64_t unit_ranks = 1;
    std::vector<Kind> kinds;
    std::map<std::pair<int64_t, int>, int64_t> steps;
    std::vector<Known> slots;  // open addressing
    size_t known = 0;
    std::vector<Line> lines;
  };
  void remember();
  void add_protocol(const Topology& topology, const Protocol& protocol, bool reduces);
  void add_exchanges(const Topology& topology);
  [[nodiscard]] static int64_t outside_ns(const Kind& kind, int64_t ranks, int level);
  [[nodiscard]] int64_t step_ns(const Kind& kind, int64_t ranks, int level) const;
  // Of steps of any kinds; 0 for one rank where no level must be reached.
  [[nodiscard]] int64_t steps_ns(int64_t ranks, int level) const;
  // The least of a step of the kind and those that are left after it.
  [[nodiscard]] int64_t with_step_ns(const Kind& kind, const Asked& asked, int64_t below_ns) const;
  [[nodiscard]] int64_t latency_ns(const Kind& kind, const Asked& asked) const;
  // Valid until the next call.
  [[nodiscard]] std::span<const Line> lines_of(const Asked& asked, uint32_t levels) const;
  void add_lines(Known& known) const;
  [[nodiscard]] static int64_t bandwidth(const Kind& kind, uint32_t levels);
  void make_room() const;

  std::vector<Kind> kinds_;
  int64_t unit_ranks_ = 1;  // of level 0
  std::shared_ptr<Memory> memory_;
};

}  // namespace meshplan
