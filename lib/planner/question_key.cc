#include "planner/question_key.h"

#include <optional>
#include <type_traits>
#include <vector>

namespace meshplan {
namespace {

class KeyWriter {
 public:
  void add(const Request& request) {
    const auto& [id, src_mesh, dst_mesh, tensor, src, dst, any_dst_order, direction, reduce_dtype,
                 count] = request;
    static_cast<void>(id);
    static_cast<void>(count);
    add_all(src_mesh, dst_mesh, tensor, src, dst, any_dst_order, direction, reduce_dtype);
  }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
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
  void add(const PendingAtom& pending) {
    const auto& [atom, op] = pending;
    add_all(atom, op);
  }
  void add(const Atom& atom) {
    const auto& [mesh_dim, before, size] = atom;
    add_all(mesh_dim, before, size);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& entry : list) add(entry);
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

  std::string bytes_;
};

}  // namespace

std::string question_key(const Request& request) {
  KeyWriter writer;
  writer.add(request);
  return std::move(writer).take();
}

}  // namespace meshplan
