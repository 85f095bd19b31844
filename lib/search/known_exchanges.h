// How well it is known what an exchange between two states takes at least. The searches of one
// question, which differ in the collectives that may run, ask for the same exchanges: what one has
// come to know of them serves the next.
//
//     declared sets alone      floors of 40,000 pairs of 600 states, 300 prices
//     every set declared       the same pairs but for a few: nothing is asked anew
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "search/exchange_way.h"
#include "search/search_state_bytes.h"

namespace meshplan {

struct PlanProblem;

// Of a state or a step that is of no use; sums of two do not overflow.
constexpr int64_t too_long = INT64_MAX >> 5;

// Each takes more work than the one before.
enum class Known : uint8_t { latency, peers, boxes, floors, close_floors, price };

// What one exchange takes at least, in whichever way; one that does not run: too long.
class LeastExchange {
 public:
  LeastExchange() : LeastExchange(too_long, Known::price) {}
  LeastExchange(int64_t ps, Known known, bool of_less_held = false, bool of_more_wanted = false)
      : packed_(std::min(ps, too_long) << bits | int64_t{of_more_wanted} << (known_bits + 1) |
                int64_t{of_less_held} << known_bits | static_cast<int64_t>(known)) {}
  [[nodiscard]] int64_t ps() const { return packed_ >> bits; }
  [[nodiscard]] Known known() const {
    return static_cast<Known>(packed_ & ((1 << known_bits) - 1));
  }
  // Whether an exchange takes no less from a state that holds less, or to one that wants more: what
  // is sent there could be sent here. So it is of most that is told by what ranks miss and by peers
  // (AnyWayFloor); not by units, which count on shards to come from the nearest.
  [[nodiscard]] bool of_less_held() const { return (packed_ >> known_bits & 1) != 0; }
  [[nodiscard]] bool of_more_wanted() const { return (packed_ >> (known_bits + 1) & 1) != 0; }

 private:
  static constexpr int known_bits = 3;
  static constexpr int bits = known_bits + 2;
  int64_t packed_;
};

// The same in each way, by ExchangeWay.
struct LeastOfWays {
  static constexpr size_t ways = exchange_ways.size();
  std::array<int64_t, ways> ps{too_long, too_long, too_long};
  std::array<bool, ways> priced{true, true, true};
  std::array<bool, ways> exact{};
  bool close = false;  // floors
  [[nodiscard]] size_t sooner() const {
    return static_cast<size_t>(std::min_element(ps.begin(), ps.end()) - ps.begin());
  }
  [[nodiscard]] LeastExchange least() const {
    const Known floor = close ? Known::close_floors : Known::floors;
    return {ps[sooner()], priced[sooner()] ? Known::price : floor};
  }
};

// By numbers of states, which stay as they are. A copy knows nothing, as it may be of another
// question.
class KnownExchanges {
 public:
  KnownExchanges() = default;
  KnownExchanges(const KnownExchanges& /*other*/) {}
  KnownExchanges& operator=(const KnownExchanges& /*other*/) { return *this; }
  KnownExchanges(KnownExchanges&&) = default;
  KnownExchanges& operator=(KnownExchanges&&) = default;
  ~KnownExchanges() = default;

  [[nodiscard]] uint32_t number(const SearchState& s);
  // From every state that has a number to `to`, and from `from` to every one; `latency_ps`: what
  // exchanges take at least.
  void ask_to(const PlanProblem& p, uint32_t to, int64_t latency_ps);
  void ask_from(const PlanProblem& p, uint32_t from, int64_t latency_ps);
  // Of two states of which one was asked for. Valid until one is asked for.
  [[nodiscard]] LeastExchange& between(uint32_t from, uint32_t to) {
    return from < to_[to].size() ? to_[to][from] : from_[from][to];
  }
  // What is known of it so far; nullptr: it was not asked for.
  [[nodiscard]] const LeastExchange* find(uint32_t from, uint32_t to) const {
    if (from < to_[to].size()) return &to_[to][from];
    return to < from_[from].size() ? &from_[from][to] : nullptr;
  }
  [[nodiscard]] LeastOfWays& by_way(uint32_t from, uint32_t to) {
    return by_way_[uint64_t{from} << 32 | to];
  }

 private:
  [[nodiscard]] LeastExchange unknown(const PlanProblem& p, uint32_t from, uint32_t to,
                                      int64_t latency_ps) const;
  struct Hash {
    size_t operator()(const SearchState& s) const;
  };
  std::unordered_map<SearchState, uint32_t, Hash> numbers_;
  std::vector<SearchState> states_;
  // By where they lead, from each state; where that was not asked for, by where they begin.
  std::vector<std::vector<LeastExchange>> to_;
  std::vector<std::vector<LeastExchange>> from_;
  std::unordered_map<uint64_t, LeastOfWays> by_way_;
};

}  // namespace meshplan
