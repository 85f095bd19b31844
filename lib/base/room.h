// Room for many small values, which stay where they are until the last copy of the room is gone:
// thousands of them take one allocation. A copy shares what stands there so far, and what it adds
// is its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace meshplan {

class Room {
 public:
  Room() = default;
  Room(const Room& other) : chunks_(other.chunks_) {}
  Room(Room&& other) noexcept
      : chunks_(std::move(other.chunks_)), free_(std::exchange(other.free_, {})) {}
  Room& operator=(Room other) noexcept {
    chunks_.swap(other.chunks_);
    free_ = std::exchange(other.free_, {});
    return *this;
  }
  ~Room() = default;

  template <class Value>
  [[nodiscard]] std::span<const Value> keep(std::span<const Value> values) {
    static_assert(std::is_trivially_copyable_v<Value> && alignof(Value) <= alignment);
    if (values.empty()) return {};
    std::byte* const to = take(values.size_bytes());
    std::memcpy(to, values.data(), values.size_bytes());
    return {reinterpret_cast<const Value*>(to), values.size()};
  }
  template <class Value>
  [[nodiscard]] const Value* keep(const Value& value) {
    return keep(std::span(&value, 1)).data();
  }

 private:
  static constexpr size_t alignment = alignof(std::max_align_t);
  static constexpr size_t least_chunk = 4'096;  // bytes
  static constexpr size_t most_chunk = 65'536;

  std::byte* take(size_t bytes) {
    const size_t whole = (bytes + alignment - 1) / alignment * alignment;
    if (free_.size() < whole) {
      const size_t next = std::min(most_chunk, least_chunk << std::min<size_t>(chunks_.size(), 4));
      const size_t chunk = std::max(whole, next);
      chunks_.emplace_back(new std::byte[chunk]);
      free_ = {chunks_.back().get(), chunk};
    }
    std::byte* const at = free_.data();
    free_ = free_.subspan(whole);
    return at;
  }

  std::vector<std::shared_ptr<std::byte[]>> chunks_;
  std::span<std::byte> free_;  // of the last chunk, which no copy has
};

}  // namespace meshplan
