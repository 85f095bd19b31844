#include "planner/question_key.h"

#include "tensor/key_writer.h"

namespace meshplan {

std::string question_key(const Request& request) {
  const auto& [id, src_mesh, dst_mesh, tensor, src, dst, any_dst_order, direction, reduce_dtype,
               count, notes] = request;
  static_cast<void>(id);
  static_cast<void>(count);
  static_cast<void>(notes);
  KeyWriter writer;
  writer.add_all(src_mesh, dst_mesh, tensor, src, dst, any_dst_order, direction, reduce_dtype);
  return std::move(writer).take();
}

}  // namespace meshplan
