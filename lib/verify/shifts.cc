#include "verify/shifts.h"

#include <algorithm>

namespace meshplan::verification {
namespace {

constexpr size_t no_part = SIZE_MAX;

// What one rank has on one side: its parts by shift. Of a rank that has parts in many of the
// shifts, a place for each shift; of others a list, in the order of shifts. So all takes as much
// room as there are parts.
class PartsByShift {
 public:
  void make_room(int64_t parts, int64_t shifts) {
    if (parts * 8 >= shifts) places_.assign(static_cast<size_t>(shifts), no_part);
  }

  [[nodiscard]] size_t part_in(int64_t shift) const {
    if (!places_.empty()) return places_[static_cast<size_t>(shift)];
    const auto at = find(shift);
    return at != list_.end() && at->shift == shift ? at->part : no_part;
  }

  [[nodiscard]] int64_t lowest_free() {
    if (!places_.empty()) {
      while (places_[static_cast<size_t>(free_from_)] != no_part) ++free_from_;
      return free_from_;
    }
    // Shifts are not negative and all differ: up to the first gap each is its own index.
    const auto gap = std::partition_point(list_.begin(), list_.end(), [&](const InShift& in_shift) {
      return in_shift.shift == &in_shift - list_.data();
    });
    return gap - list_.begin();
  }

  // In place of what was there.
  void put(int64_t shift, size_t part) {
    if (!places_.empty()) {
      places_[static_cast<size_t>(shift)] = part;
      return;
    }
    const auto at = list_.begin() + (find(shift) - list_.begin());
    if (at != list_.end() && at->shift == shift) {
      at->part = part;
    } else {
      list_.insert(at, {shift, part});
    }
  }
  void take_out(int64_t shift) {
    if (places_.empty()) {
      list_.erase(find(shift));
      return;
    }
    places_[static_cast<size_t>(shift)] = no_part;
    free_from_ = std::min(free_from_, shift);
  }

 private:
  struct InShift {
    int64_t shift = 0;
    size_t part = 0;
  };
  [[nodiscard]] std::vector<InShift>::const_iterator find(int64_t shift) const {
    return std::lower_bound(
        list_.begin(), list_.end(), shift,
        [](const InShift& in_shift, int64_t other) { return in_shift.shift < other; });
  }
  std::vector<InShift> list_;
  std::vector<size_t> places_;  // by shift
  int64_t free_from_ = 0;       // of those, none below is free
};

class ShiftPlan {
 public:
  ShiftPlan(std::span<const FetchingPair> parts, size_t ranks)
      : parts_(parts), fetched_(ranks), served_(ranks) {
    std::vector<int64_t> fetched(ranks);
    std::vector<int64_t> served(ranks);
    for (const FetchingPair& part : parts)
      shifts_.count = std::max({shifts_.count, ++fetched[part.fetcher], ++served[part.holder]});
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (fetched[rank] > 0) fetched_[rank].make_room(fetched[rank], shifts_.count);
      if (served[rank] > 0) served_[rank].make_room(served[rank], shifts_.count);
    }
    shifts_.of.resize(parts.size());
  }

  // False: parts change places too often.
  bool put_all() {
    for (size_t part = 0; part < parts_.size(); ++part) {
      const int64_t shift = fetched_[parts_[part].fetcher].lowest_free();
      PartsByShift& served = served_[parts_[part].holder];
      if (served.part_in(shift) != no_part) clear(served, shift, served.lowest_free());
      if (changes_ > most_changes) return false;
      put(part, shift);
    }
    return true;
  }

  [[nodiscard]] Shifts shifts() && { return std::move(shifts_); }

 private:
  void put(size_t part, int64_t shift) {
    shifts_.of[part] = shift;
    fetched_[parts_[part].fetcher].put(shift, part);
    served_[parts_[part].holder].put(shift, part);
  }

  // Of a holder that has a part in `from` and none in `to`. Its place in `from` is then for the
  // part in turn.
  void clear(PartsByShift& holder, int64_t from, int64_t to) {
    path_.clear();
    PartsByShift* end = &holder;
    for (size_t next = end->part_in(from); next != no_part;
         next = end->part_in(path_.size() % 2 == 0 ? from : to)) {
      path_.push_back(next);
      const FetchingPair& pair = parts_[next];
      end = path_.size() % 2 == 1 ? &fetched_[pair.fetcher] : &served_[pair.holder];
    }
    changes_ += std::ssize(path_);
    // Each takes the place of the next at the rank that they share; the last leaves its own.
    for (const size_t part : path_) put(part, shifts_.of[part] == from ? to : from);
    end->take_out(path_.size() % 2 == 1 ? from : to);
  }

  std::span<const FetchingPair> parts_;
  std::vector<PartsByShift> fetched_;  // by rank
  std::vector<PartsByShift> served_;
  Shifts shifts_;
  std::vector<size_t> path_;
  int64_t changes_ = 0;
};

}  // namespace

std::optional<Shifts> shifts_of(std::span<const FetchingPair> parts, size_t ranks) {
  ShiftPlan plan(parts, ranks);
  if (!plan.put_all()) return std::nullopt;
  return std::move(plan).shifts();
}

}  // namespace meshplan::verification
