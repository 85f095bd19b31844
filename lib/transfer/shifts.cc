#include "transfer/shifts.h"

#include <algorithm>

namespace meshplan {
namespace {

// So many are found again as soon as looked up.
constexpr int64_t few_changes = 1'000;

// The parts of every rank of one side, by shift.
class ShiftTable {
 public:
  // -1: none.
  [[nodiscard]] int32_t part(int32_t rank, int32_t shift) {
    const std::vector<int32_t>& parts = row(rank).parts;
    return static_cast<size_t>(shift) < parts.size() ? parts[static_cast<size_t>(shift)] : -1;
  }
  [[nodiscard]] int32_t lowest_free(int32_t rank) {
    Row& of = row(rank);
    while (static_cast<size_t>(of.free) < of.parts.size() &&
           of.parts[static_cast<size_t>(of.free)] >= 0)
      ++of.free;
    return of.free;
  }
  void set(int32_t rank, int32_t shift, int32_t part) {
    Row& of = row(rank);
    if (static_cast<size_t>(shift) >= of.parts.size())
      of.parts.resize(static_cast<size_t>(shift) + 1, -1);
    of.parts[static_cast<size_t>(shift)] = part;
    if (part < 0) of.free = std::min(of.free, shift);
  }
  // What the rank has in shift a it has in b then, and the reverse.
  void swap(int32_t rank, int32_t a, int32_t b) {
    const int32_t in_a = part(rank, a);
    set(rank, a, part(rank, b));
    set(rank, b, in_a);
  }

 private:
  struct Row {
    std::vector<int32_t> parts;
    int32_t free = 0;  // none below is free
  };
  Row& row(int32_t rank) {
    if (static_cast<size_t>(rank) >= rows_.size()) rows_.resize(static_cast<size_t>(rank) + 1);
    return rows_[static_cast<size_t>(rank)];
  }
  std::vector<Row> rows_;
};

int64_t most_of_one(std::span<const Fetch> parts, int32_t Fetch::*side) {
  std::vector<int64_t> parts_of;
  int64_t most = 0;
  for (const Fetch& part : parts) {
    const auto rank = static_cast<size_t>(part.*side);
    if (rank >= parts_of.size()) parts_of.resize(rank + 1, 0);
    most = std::max(most, ++parts_of[rank]);
  }
  return most;
}

// Gives every part of the path the other of two shifts: from the holder by its part in shift `a`,
// then that one's fetcher by its part in `b`, and so on. It never comes to a fetcher that has none
// in a, as a fetcher is come to by a part in a.
// Gives how many they are.
int64_t change_places(std::span<const Fetch> parts, int32_t holder, int32_t a, int32_t b,
                      ShiftTable& by_fetcher, ShiftTable& by_holder,
                      std::vector<int32_t>& shift_of) {
  int64_t changes = 0;
  int32_t part = by_holder.part(holder, a);
  by_holder.swap(holder, a, b);
  while (part >= 0) {
    ++changes;
    shift_of[static_cast<size_t>(part)] = b;
    const int32_t fetcher = parts[static_cast<size_t>(part)].fetcher;
    part = by_fetcher.part(fetcher, b);
    by_fetcher.swap(fetcher, a, b);
    if (part < 0) break;
    ++changes;
    shift_of[static_cast<size_t>(part)] = a;
    const int32_t next = parts[static_cast<size_t>(part)].holder;
    part = by_holder.part(next, a);
    by_holder.swap(next, a, b);
  }
  return changes;
}

// `changes`: how often parts changed places.
std::optional<Shifts> find_shifts(std::span<const Fetch> parts, int64_t most, int64_t& changes) {
  Shifts shifts;
  shifts.count = std::max(most_of_one(parts, &Fetch::fetcher), most_of_one(parts, &Fetch::holder));
  shifts.of.assign(parts.size(), -1);
  ShiftTable by_fetcher;
  ShiftTable by_holder;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = static_cast<int32_t>(i);
    const auto [fetcher, holder] = parts[i];
    const int32_t a = by_fetcher.lowest_free(fetcher);
    if (by_holder.part(holder, a) >= 0) {
      const int32_t b = by_holder.lowest_free(holder);
      changes += change_places(parts, holder, a, b, by_fetcher, by_holder, shifts.of);
      if (changes > most) return std::nullopt;
    }
    shifts.of[i] = a;
    by_fetcher.set(fetcher, a, part);
    by_holder.set(holder, a, part);
  }
  return shifts;
}

// What was found last, or not found. Tensors of other sizes that are spread alike are cut into the
// same parts, and finding their shifts takes most of what pricing them does.
class LastShifts {
 public:
  struct Known {
    std::vector<Fetch> parts;
    std::optional<Shifts> shifts;  // nullopt: parts change places more often
    int64_t changes = 0;
  };
  // nullptr: not known.
  [[nodiscard]] const Known* find(std::span<const Fetch> parts, int64_t most) const {
    for (const Known& known : known_) {
      const bool tells = known.shifts ? known.changes <= most : known.changes > most;
      if (tells && std::ranges::equal(known.parts, parts)) return &known;
    }
    return nullptr;
  }
  void keep(std::span<const Fetch> parts, const std::optional<Shifts>& shifts, int64_t changes) {
    if (parts.size() > most_parts) return;
    if (known_.size() < most_known) known_.emplace_back();
    known_[next_] = {{parts.begin(), parts.end()}, shifts, changes};
    next_ = (next_ + 1) % most_known;
  }

 private:
  static constexpr size_t most_known = 16;
  static constexpr size_t most_parts = size_t{1} << 18;  // of 16 lists: 48 MB at most
  std::vector<Known> known_;
  size_t next_ = 0;
};

}  // namespace

std::optional<Shifts> put_in_shifts(std::span<const Fetch> parts, int64_t most) {
  thread_local LastShifts last;
  if (const LastShifts::Known* const known = last.find(parts, most)) return known->shifts;
  int64_t changes = 0;
  auto found = find_shifts(parts, most, changes);
  if (changes > few_changes) last.keep(parts, found, changes);
  return found;
}

}  // namespace meshplan
