// What zero-filled shards are said to save is what planning from the sums that they are of takes.
#include "planner/zero_filled_sums.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../cost/all_states.h"
#include "cost/topology.h"
#include "planner/one_mesh.h"
#include "tensor/largest_elements.h"
#include "verify/verify.h"

using namespace meshplan;

namespace {

// Questions on one mesh, asked with an audit.
class AuditedMesh : public test::OneMesh {
 public:
  explicit AuditedMesh(std::vector<int64_t> sizes, const char* topology = "h100") : OneMesh(std::move(sizes), *topology_preset(topology)) {
    options.audit = true;
  }
  [[nodiscard]] Plan plan(const Request& request) const { return OneMesh::plan(request, options); }
  [[nodiscard]] std::vector<std::string> filled(const Request& request, int64_t most_elements = INT64_MAX) const {
    std::vector<std::string> texts;
    for (const State& state : zero_filled(request, sizes(), most_elements)) texts.push_back(to_text(state, sizes()));
    return texts;
  }
  PlanOptions options;
};

const AuditFinding* found_in(const Plan& plan) { return test::finding_of(plan.redistributions.front(), "A0411"); }

int64_t time_of(const Plan& plan) { return plan.redistributions.front().totals.predicted_ps; }

}  // namespace

TEST_CASE("of every list the last whole mesh dims are filled up, but for those that stay") {
  const AuditedMesh asked({2, 3, 4});
  using Texts = std::vector<std::string>;
  CHECK(asked.filled(asked.request({96}, "S(0)RR", "RRR")) == Texts{"P(sum)RR"});
  CHECK(asked.filled(asked.request({96}, "S(0)[0]S(0)[1]R", "RRR")) == Texts{"P(sum)P(sum)R", "S(0)P(sum)R"});
  CHECK(asked.filled(asked.request({96}, "S(0)[1]S(0)[0]R", "RRR")) == Texts{"P(sum)P(sum)R", "P(sum)S(0)R"});
  CHECK(asked.filled(asked.request({96}, "S(0)[0]S(0)[1]R", "S(0)RR")) == Texts{"S(0)P(sum)R"});
  CHECK(asked.filled(asked.request({96, 8}, "S(0)S(1)P(sum)", "RRR")) ==
        Texts{"P(sum)P(sum)P(sum)", "P(sum)S(1)P(sum)", "S(0)P(sum)P(sum)"});
  CHECK(asked.filled(asked.request({96}, "S(0)RP(avg)", "RRR")) == Texts{"P(sum)RP(avg)"});
  CHECK(asked.filled(asked.request({96}, "RRR", "S(0)RR")).empty());
  CHECK(asked.filled(asked.request({96}, "S(0)RP(max)", "RRR")).empty());
  CHECK(asked.filled(asked.request({96}, "{S(0):2,R:1}RR", "RRR")) == Texts{"P(sum)RR"});
  CHECK(asked.filled(asked.request({96}, "RR{S(0):2,R:2}", "RRR")).empty());
  // A box of 96, and one of 48.
  CHECK(asked.filled(asked.request({96}, "S(0)[0]S(0)[1]R", "RRR"), 95) == Texts{"S(0)P(sum)R"});
}

TEST_CASE("what is summed in less is rounded, what is summed in more is not") {
  const AuditedMesh asked({2, 3, 4});
  Request request = asked.request({96}, "S(0)RR", "RRR");
  request.tensor.dtype = DType::bfloat16;
  for (const auto& [reduce, count] : {std::pair(DType::bfloat16, 1), {DType::float32, 1}, {DType::float16, 0}, {DType::float8_e4m3, 0}}) {
    request.reduce_dtype = reduce;
    CAPTURE(to_text(reduce));
    CHECK(zero_filled(request, asked.sizes(), INT64_MAX).size() == static_cast<size_t>(count));
  }
}

TEST_CASE("on many ranks a small tensor is sooner summed: as planned from the sum, in steps that are proven right") {
  const AuditedMesh asked({500});
  const Request request = asked.request({4099}, "S(0)", "R");
  const Plan plan = asked.plan(request);
  const AuditFinding* found = found_in(plan);
  REQUIRE(found != nullptr);
  CHECK(found->kind == "zeros_save");
  CHECK(found->step == -1);
  CHECK(found->predicted_ps == time_of(plan));
  CHECK(found->better_trace == "S(0)->P(sum)->R");
  CHECK(found->message.find("; fill them up and ask from P(sum) for its steps, if -0.0 may become 0.0") != std::string::npos);
  Plan sums = asked.plan(asked.request({4099}, "P(sum)", "R"));
  CHECK(found->better_predicted_ps == time_of(sums));
  CHECK(found->better_predicted_ps * 2 < found->predicted_ps);
  CHECK(found_in(sums) == nullptr);
  PlannedRedistribution& whole = *sums.redistributions.begin();
  std::vector<Step> steps = filling_steps(request, asked.mesh(), whole.request.src);
  steps.insert(steps.end(), whole.steps.begin(), whole.steps.end());
  whole.request = request;
  whole.steps = std::move(steps);
  whole.trace = whole.unmerged_trace = found->better_trace;
  const Status right = verify_redistribution(sums, whole);
  CHECK_MESSAGE(right.ok(), (right.ok() ? "" : right.error().message));
  // Of whole numbers nothing changes.
  Request integers = request;
  integers.tensor.dtype = DType::int32;
  REQUIRE(found_in(asked.plan(integers)) != nullptr);
  CHECK(found_in(asked.plan(integers))->message.find("-0.0") == std::string::npos);
}

TEST_CASE("it is said within the limit, of native plans on one mesh, and where it is asked for") {
  AuditedMesh asked({500});
  const Request request = asked.request({4099}, "S(0)", "R");
  asked.options.max_memory_bytes = 1 << 20;
  CHECK(found_in(asked.plan(request)) != nullptr);
  asked.options.max_memory_bytes = 0;
  asked.options.audit = false;
  CHECK(found_in(asked.plan(request)) == nullptr);
  asked.options.audit = true;
  asked.options.planner = PlannerKind::greedy;
  asked.options.rules = Rules::dtensor;
  CHECK(found_in(asked.plan(request)) == nullptr);
  const AuditedMesh uniform({500}, "uniform");
  CHECK(found_in(uniform.plan(request)) == nullptr);
}

TEST_CASE("the best of all sums is said, with what it takes, wherever it surely saves") {
  int found = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{96}, {12, 16}, {3, 2, 48}, {2, 100}}) {
    const AuditedMesh asked(sizes);
    const auto states = all_states(sizes, 2, {});
    const size_t stride = sizes.size() > 2 ? 13 : 1;
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = i % stride; j < states.size(); j += stride) {
        if (i == j) continue;
        const Request request = AuditedMesh::request({16, 50}, states[i], states[j]);
        const int64_t most = std::max(largest_elements(states[i], std::vector<int64_t>{16, 50}, sizes),
                                      largest_elements(states[j], std::vector<int64_t>{16, 50}, sizes));
        const Plan plan = asked.plan(request);
        const AuditFinding* finding = found_in(plan);
        int64_t best_ps = INT64_MAX;
        for (const State& filled : zero_filled(request, sizes, most))
          best_ps = std::min(best_ps, time_of(asked.plan(AuditedMesh::request({16, 50}, filled, states[j]))));
        CAPTURE(plan.redistributions.front().trace);
        CAPTURE(best_ps);
        if (finding == nullptr) {
          // What the model may be wrong by is all there is to gain, or less.
          CHECK(time_of(plan) - std::min(best_ps, time_of(plan)) <= time_of(plan) / 2);
          continue;
        }
        ++found;
        CHECK(finding->better_predicted_ps == best_ps);
        CHECK(finding->better_predicted_ps < finding->predicted_ps);
      }
    }
  }
  CHECK(found > 30);
}
