#include "planner/question_key.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <vector>

using namespace meshplan;

TEST_CASE("requests that differ in more than name and count are different questions") {
  Request request;
  request.tensor.shape = {8, 300};
  request.src.shards = {{{0, 1, 2}}, {}};
  request.dst.shards = {{}, {}};
  request.dst.partial = {{{0, 1, 2}, ReduceOp::sum}};
  const std::vector<std::function<void(Request&)>> changes = {
      [](Request&) {},
      [](Request& r) { r.src_mesh = 1; },
      [](Request& r) { r.dst_mesh = 1; },
      [](Request& r) {
        r.tensor.shape = {8, 301};
      },
      [](Request& r) {
        r.tensor.shape = {8, 300, 1};
      },
      [](Request& r) { r.tensor.dtype = DType::bfloat16; },
      [](Request& r) {
        r.src.shards = {{}, {{0, 1, 2}}};
      },
      [](Request& r) { r.src.shards[0][0].before = 2; },
      [](Request& r) { r.src.shards[0][0].size = 300; },
      [](Request& r) { r.dst.partial[0].op = ReduceOp::avg; },
      [](Request& r) { r.dst.partial[0].sub_axis.mesh_dim = 1; },
      [](Request& r) { r.any_dst_order = true; },
      [](Request& r) { r.direction = Direction::backward; },
      [](Request& r) { r.reduce_dtype = static_cast<DType>(0); },
      [](Request& r) { r.reduce_dtype = static_cast<DType>(1); },
  };
  std::set<std::string> keys;
  for (const auto& change : changes) {
    Request changed = request;
    change(changed);
    CHECK(keys.insert(question_key(changed)).second);
    changed.id = "another";
    changed.count = 7;
    CHECK_FALSE(keys.insert(question_key(changed)).second);
  }
}
