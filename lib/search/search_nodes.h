// What a search knows of each state that it met.
#pragma once

#include <vector>

#include "search/exchange_way.h"
#include "search/search.h"

namespace meshplan {

// A state and the cheapest way to it so far.
struct SearchNode {
  SearchState at;
  PlanCost g;
  int64_t h = -1;      // what is left at least, ps (rest_floor_ps); -1: not asked yet
  int64_t bound = -1;  // of that, what the bound alone says
  int64_t bytes = -1;  // of the largest box
  int32_t parent = -1;
  // Exchanges from here have been looked at by which a plan takes up to so long, ps; -1: none yet.
  int64_t looked_to = -1;
  bool closed = false;
  bool reached = false;
  Edge edge;  // from the parent
};

// An entry of the heap of nodes still to take up; it is stale where the node has been reached for
// less since.
struct OpenNode {
  PlanCost f;
  int32_t node;  // negative: a candidate's number, as ~number
  PlanCost g;
};
// An exchange that is not priced yet, as that takes listing its ranks: it stands in the heap by
// what a plan through it takes at least, and is priced when it comes up.
struct Candidate {
  int32_t from = 0;
  ExchangeWay way = ExchangeWay::one_phase;
  PlanCost g;  // of `from` when it was looked at
  int64_t left = 0;
  SearchState to;
  PlanCost least;  // the cost at `to` at least
};
struct OpensLater {
  bool operator()(const OpenNode& a, const OpenNode& b) const {
    return a.f != b.f ? a.f > b.f : a.node > b.node;
  }
};

// Interned states of one question; storage is kept between questions of a thread, slots are told
// apart by the question's number.
class NodeTable {
 public:
  void clear() {
    nodes.clear();
    if (++question_ == 0) slots_.assign(slots_.size(), {});
    if (question_ == 0) question_ = 1;
  }
  [[nodiscard]] int32_t find(const SearchState& s) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash_of(s) & mask; !slots_.empty(); i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.question != question_) return -1;
      if (nodes[static_cast<size_t>(slot.node)].at == s) return slot.node;
    }
    return -1;
  }
  int32_t intern(const SearchState& s) {
    if (slots_.size() < 2 * (nodes.size() + 1)) grow();
    size_t mask = slots_.size() - 1;
    for (size_t i = hash_of(s) & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.question != question_) {
        slot = {question_, static_cast<int32_t>(nodes.size())};
        nodes.emplace_back().at = s;
        return slot.node;
      }
      if (nodes[static_cast<size_t>(slot.node)].at == s) return slot.node;
    }
  }
  std::vector<SearchNode> nodes;

 private:
  struct Slot {
    uint32_t question = 0;
    int32_t node = -1;
  };
  void grow() {
    slots_.assign(std::max<size_t>(1024, slots_.size() * 4), {});
    size_t mask = slots_.size() - 1;
    for (size_t n = 0; n < nodes.size(); ++n) {
      size_t i = hash_of(nodes[n].at) & mask;
      while (slots_[i].question == question_) i = (i + 1) & mask;
      slots_[i] = {question_, static_cast<int32_t>(n)};
    }
  }
  std::vector<Slot> slots_;
  uint32_t question_ = 1;
};

}  // namespace meshplan
