// What is left at least over the outer links, step by step, where bounds between two states say too
// little: they let the bytes of all steps go at once, and charge one latency for them.
//
//     64 MB on 2 x 2 x 2 hosts of 2 x 2 x 2, S(0) R P S(1) P P -> S(2) R S(0) S(2) R S(0)
//     bound        83 us: 2.5 MB a rank over the outer links, and one latency
//     one step    398 us: a host fetches all eight contributions to what it wants, 16 MB a rank
//     two steps   120 us: 1 MB to reduce what it has, then 2 MB of what the target cuts elsewhere
//
// What a step takes over the outer links is told by where outer digits stand before and after it,
// and by how many digits are pending inside of units: states that have them alike are one class.
// There are a thousand of these where there are ten thousands of states, so that the cheapest ways
// between them are soon known. To reduce inside of units alone is a step between classes as well:
// what is not reduced before shards cross hosts crosses as many times.
#pragma once

#include <vector>

#include "search/packed.h"

namespace meshplan {

// Of plans that lead from class to class in one step, and of those that do in two or more. Both 0
// where none has to.
struct OutsideLeft {
  int64_t one_ps = 0;
  int64_t several_ps = 0;
};

class LeastOutside {
 public:
  void clear();
  // Of these states a plan of use may go through. Law: what is said of one holds of all plans by
  // way of the states that were added. `before_ps`: what a plan takes at least until there.
  void add(const PackedWorld& world, const Packed& at, int64_t before_ps);
  // Works out what is left; beyond `most_work` (search/work.h) the rest stays as it is but for what
  // is known. Condition: nothing is pending in the target.
  void settle(const PlanProblem& p, PackedWorld& world, const Packed& target, int64_t most_ps,
              int64_t most_work);
  // Nothing is said of states that were not added, and before they are settled.
  [[nodiscard]] OutsideLeft left(const PackedWorld& world, const Packed& at) const;

 private:
  [[nodiscard]] size_t slot_of(const PackedWorld& world, const OuterPart& part) const;
  void make_room(const PackedWorld& world);
  // One step may take as little from a class as from where sums that join lead for nothing.
  void lower_by_joins();

  std::vector<OuterPart> parts_;
  std::vector<int64_t> before_ps_;  // the least of a part's states
  std::vector<OutsideLeft> left_;
  std::vector<uint32_t> slots_;  // 1 + the number of a part; open addressing
  bool settled_ = false;
};

}  // namespace meshplan
