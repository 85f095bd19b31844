// Writes values to bytes, so that they can be the key of a map: keys that add the same kinds of
// values in the same order are equal where the values are.
//
// Structs are taken apart by structured bindings: a new field does not compile until it is named.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

class KeyWriter {
 public:
  template <class... Field>
  void add_all(const Field&... fields) {
    (add(fields), ...);
  }
  void add(const TensorMeta& tensor) {
    const auto& [shape, dtype] = tensor;
    add_all(shape, dtype);
  }
  void add(const State& state) {
    const auto& [shards, partial] = state;
    add_all(shards, partial);
  }
  void add(const PendingSubAxis& pending) {
    const auto& [sub_axis, op] = pending;
    add_all(sub_axis, op);
  }
  void add(const SubAxis& sub_axis) {
    const auto& [mesh_dim, before, size] = sub_axis;
    add_all(mesh_dim, before, size);
  }
  template <class T>
  void add(std::span<const T> list) {
    add(list.size());
    for (const T& entry : list) add(entry);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(std::span<const T>(list));
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  // Small numbers, which nearly all are, take one byte; 0x80 announces eight.
  template <class T>
  void add(const T& value) requires(std::is_integral_v<T> || std::is_enum_v<T>) {
    const auto number = static_cast<uint64_t>(value);
    if (number < 0x80) {
      bytes_ += static_cast<char>(number);
      return;
    }
    bytes_ += '\x80';
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(number >> shift & 0xff);
  }

  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace meshplan
