// meshplan_pricer against the plans of the same questions.
#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/meshplan.h"

namespace {

using meshplan::test::Answer;
using nlohmann::json;
using Pricer = std::unique_ptr<meshplan_pricer, decltype(&meshplan_pricer_free)>;

const std::string mesh_part = R"x({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 2}, {"name": "b", "size": 4}]})x";

Pricer make(const std::string& spec, const char* topology = nullptr) {
  meshplan_pricer* made = nullptr;
  const Answer answer(meshplan_pricer_make(spec.data(), spec.size(), nullptr, topology, &made), meshplan_free);
  CHECK((meshplan_code(answer.get()) == 0) == (made != nullptr));
  if (made != nullptr) CHECK(json::parse(meshplan_text(answer.get())) == json{{"dims", {"a", "b"}}});
  return {made, meshplan_pricer_free};
}

struct Batch {
  std::vector<int64_t> shapes;
  std::vector<int32_t> dtypes;
  std::vector<int64_t> src;
  std::vector<int64_t> dst;
};

Answer ask(const Pricer& pricer, const Batch& batch, std::vector<int64_t>& ns) {
  const meshplan_questions questions{batch.dtypes.size(), batch.shapes.size() / batch.dtypes.size(),
                                     batch.shapes.data(), batch.dtypes.data(),
                                     batch.src.data(),    batch.dst.data()};
  ns.assign(batch.dtypes.size(), -7);
  return {meshplan_pricer_ask(pricer.get(), &questions, ns.data()), meshplan_free};
}

int64_t predicted_ns(const std::string& redistribution, const char* topology) {
  const std::string spec = mesh_part + ", \"redistributions\": [" + redistribution + "]}";
  const Answer answer(meshplan_plan(spec.data(), spec.size(), topology), meshplan_free);
  REQUIRE(meshplan_code(answer.get()) == 0);
  return json::parse(meshplan_text(answer.get()))["totals"]["predicted_ns"];
}

}  // namespace

TEST_CASE("a batch is priced as its plans are") {
  // [4096, 96] float32 P(sum)S(0) -> RR; [5003, 16] bfloat16 S(0)[1]S(0)[0] -> RS(1)
  const Batch batch{{4096, 96, 5003, 16}, {1, 2}, {-2, 0, 256, 0}, {-1, -1, -1, 1}};
  for (const char* topology : {static_cast<const char*>(nullptr), "h100"}) {
    const Pricer pricer = make(mesh_part + "}", topology);
    REQUIRE(pricer);
    std::vector<int64_t> ns;
    for (int times = 0; times < 2; ++times) {
      REQUIRE(meshplan_code(ask(pricer, batch, ns).get()) == 0);
      CHECK(ns[0] == predicted_ns(R"x({"id": "x", "tensor": {"shape": [4096, 96], "dtype": "float32"},
                                       "src": ["P(sum)", "S(0)"], "dst": ["R", "R"]})x",
                                  topology));
      CHECK(ns[1] == predicted_ns(R"x({"id": "x", "tensor": {"shape": [5003, 16], "dtype": "bfloat16"},
                              "src": ["S(0)", "S(0)"], "dst": ["R", "S(1)"],
                              "src_order": [{"tensor_dim": 0, "mesh_dims": ["b", "a"]}]})x",
                                  topology));
    }
  }
}

TEST_CASE("a scalar has no dims; what no plan does is -1") {
  const Pricer pricer = make(mesh_part + "}");
  std::vector<int64_t> ns;
  REQUIRE(meshplan_code(ask(pricer, {{}, {1, 1}, {-2, -2, -2, -2}, {-1, -1, -5, -5}}, ns).get()) == 0);
  CHECK(ns[0] == predicted_ns(R"x({"id": "x", "tensor": {"shape": [], "dtype": "float32"},
                                   "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"]})x",
                              nullptr));
  CHECK(ns[1] == -1);
}

TEST_CASE("bad input makes no pricer, and names the question") {
  CHECK(!make("{}"));
  CHECK(!make(mesh_part + "}", "h1000"));
  const Pricer pricer = make(mesh_part + "}");
  std::vector<int64_t> ns;
  const Answer answer = ask(pricer, {{8, 8, 8, 8}, {1, 1}, {-1, 0, -1, 2}, {-1, -1, -1, -1}}, ns);
  CHECK(meshplan_code(answer.get()) == 2);
  CHECK(json::parse(meshplan_diagnostics(answer.get()))["diagnostics"][0]["message"] ==
        "question 1: S(2) shards tensor dim 2; the tensor has 2 dims");
  CHECK(meshplan_code(ask(pricer, {{8}, {12}, {-1, -1}, {-1, -1}}, ns).get()) == 2);
}
