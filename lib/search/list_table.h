// Values by two lists of sub-axes that shard a tensor dim before and after, told by their numbers
// (RankSides::Sides::list). Of thousands of lists few pairs are asked for, most of them by one list
// after in turn: those stand close together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace meshplan {

template <class Value>
class ListTable {
 public:
  // Value{} where it was not asked for before. Valid until the next call.
  [[nodiscard]] Value& at(size_t after, size_t before) {
    if (after < rows_.size() && !rows_[after].slots.empty()) {
      Slot& slot = rows_[after].slots[before & (rows_[after].slots.size() - 1)];
      if (slot.list == before + 1) return slot.value;
    }
    return look_for(after, before);
  }
  void clear() { rows_.clear(); }

 private:
  struct Slot {
    uint32_t list = 0;  // 1 + the number of the one before; 0: the slot is free
    Value value{};
  };
  // Open addressing: numbers that are near one another are asked for together.
  struct Row {
    std::vector<Slot> slots;
    size_t taken = 0;
  };
  // Seldom: most have the first place that they may have.
  [[gnu::noinline]] Value& look_for(size_t after, size_t before) {
    if (rows_.size() <= after) rows_.resize(after + 1);
    Row& row = rows_[after];
    if (row.slots.size() < 2 * (row.taken + 1)) grow(row);
    Slot& slot = row.slots[place(row, before)];
    if (slot.list == 0) {
      slot.list = static_cast<uint32_t>(before + 1);
      ++row.taken;
    }
    return slot.value;
  }
  static size_t place(const Row& row, size_t before) {
    const size_t mask = row.slots.size() - 1;
    size_t i = before & mask;
    while (row.slots[i].list != 0 && row.slots[i].list != before + 1) i = (i + 1) & mask;
    return i;
  }
  static void grow(Row& row) {
    const std::vector<Slot> fewer = std::move(row.slots);
    row.slots.assign(fewer.empty() ? 8 : fewer.size() * 2, {});
    for (const Slot& slot : fewer) {
      if (slot.list != 0) row.slots[place(row, slot.list - 1)] = slot;
    }
  }
  std::vector<Row> rows_;
};

}  // namespace meshplan
