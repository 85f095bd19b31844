// Work, counted instead of timed: the same question takes the same number of units on every
// machine, so that a budget of them ends every search at the same place.
//
// A unit is at most about 10 ns of one core, 5 in the middle on a fast one. What is counted, at
// about what it takes (fitted to the times of 430 realistic questions of 2 ms and more, and of 390
// across meshes; tests/bench/plan_specs.cc prints both):
//     a move listed, a state met, an aim looked at       the constants below
//     an exchange priced by closed forms                 price
//     an exchange priced rank by rank                    its ranks times the pieces that they look
//                                                        at
//     a bound or a floor on uneven states                the ranks that it lists, and the units
#pragma once

#include <cstdint>

namespace meshplan::work {

constexpr int64_t key = 2;             // an aim of a sorted list passed by
constexpr int64_t aim = 8;             // a state looked at as the aim of an exchange
constexpr int64_t move = 9;            // a move listed and met as a state
constexpr int64_t settle = 45;         // a state taken up
constexpr int64_t bound = 30;          // a bound by closed forms
constexpr int64_t between = 4;         // a bound between two states, beside what it lists
constexpr int64_t price = 50;          // an exchange or a collective priced by closed forms
constexpr int64_t price_shared = 250;  // the same of an exchange in two phases
constexpr int64_t state = 300;         // a state written out in full
constexpr int64_t problem = 4'500;     // a question set up as sub-axes and groups, and its proof
constexpr int64_t step = 400;          // a step priced as the plan prices it
constexpr int64_t floors = 7;          // what an exchange takes at least, beside what it lists
constexpr int64_t packed_floors = 20;  // the same by closed forms, of an aim from one state
constexpr int64_t outer_step = 1;      // the same of one step over the outer links, of classes
constexpr int64_t peers = 10;          // the peers that an exchange has at least
constexpr int64_t rank_side = 3;       // what a rank holds and wants
constexpr int64_t list_pair = 4;       // the same of two lists: a rank or a unit
constexpr int64_t unit_bound = 12;     // a unit that a bound looks at
constexpr int64_t unit_floor = 4;      // a unit that a floor looks at
constexpr int64_t unit_need = 40;      // what a unit needs, beside its boxes
constexpr int64_t listed = 3;          // a shard that a box wanted in a unit meets, listed
constexpr int64_t listed_rank = 4;     // a rank set up for that
constexpr int64_t steps_a_unit = 2;    // ranks against shards whose turns are counted (TurnTable)

// What a question may still take, counted down.
struct Budget {
  int64_t left = 0;
  [[nodiscard]] bool used_up() const { return left <= 0; }
  void spend(int64_t units) { left -= units; }
};
// Runs one part of a question on its share of the budget.
template <typename Part>
auto on_share(Budget& budget, int64_t percent, Part part) {
  Budget share{budget.left / 100 * percent};
  const int64_t given = share.left;
  auto result = part(share);
  budget.spend(given - share.left);
  return result;
}

// What each part of a question may take of what is left when its turn comes, in percent.
constexpr int64_t search_percent = 90;
constexpr int64_t settling_percent = 60;  // of the whole: a plan with sets that advice names
constexpr int64_t advice_percent = 40;
constexpr int64_t alternatives_percent = 50;
constexpr int64_t audit_percent = 90;
constexpr int64_t everything_percent = 50;  // of advice: the plan with every set declared
constexpr int64_t sets_percent = 10;        // then the plans with one set; the rest: with several
constexpr int64_t landing_percent = 20;  // across meshes: the target mesh's steps from one landing

}  // namespace meshplan::work
