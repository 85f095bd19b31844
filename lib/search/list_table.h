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
    if (after < rows_.size() && rows_[after].size != 0) {
      const Row& row = rows_[after];
      Slot& slot = slots_[row.begin + (before & (row.size - 1))];
      if (slot.list == before + 1) return slot.value;
    }
    return look_for(after, before);
  }
  void clear() {
    rows_.clear();
    slots_.clear();
  }

 private:
  struct Slot {
    uint32_t list = 0;  // 1 + the number of the one before; 0: the slot is free
    Value value{};
  };
  // Open addressing: numbers that are near one another are asked for together.
  struct Row {
    size_t begin = 0;
    uint32_t size = 0;  // slots, a power of two; 0: none yet
    uint32_t taken = 0;
  };
  // Seldom: most have the first place that they may have.
  [[gnu::noinline]] Value& look_for(size_t after, size_t before) {
    if (rows_.size() <= after) rows_.resize(after + 1);
    Row& row = rows_[after];
    if (row.size < 2 * (row.taken + 1)) grow(row);
    Slot& slot = slots_[place(row, before)];
    if (slot.list == 0) {
      slot.list = static_cast<uint32_t>(before + 1);
      ++row.taken;
    }
    return slot.value;
  }
  [[nodiscard]] size_t place(const Row& row, size_t before) const {
    const size_t mask = row.size - 1;
    size_t i = before & mask;
    while (slots_[row.begin + i].list != 0 && slots_[row.begin + i].list != before + 1)
      i = (i + 1) & mask;
    return row.begin + i;
  }
  // A row that outgrows its slots leaves them: all left are fewer than those in use.
  void grow(Row& row) {
    const Row fewer = row;
    row.begin = slots_.size();
    row.size = fewer.size == 0 ? 8 : fewer.size * 2;
    slots_.resize(slots_.size() + row.size);
    for (size_t i = fewer.begin; i < fewer.begin + fewer.size; ++i) {
      if (slots_[i].list != 0) slots_[place(row, slots_[i].list - 1)] = slots_[i];
    }
  }
  std::vector<Row> rows_;
  std::vector<Slot> slots_;  // of all rows, as they were made
};

}  // namespace meshplan
