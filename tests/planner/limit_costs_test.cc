// What a memory limit is said to cost is what planning with the peak that is named saves.
#include "planner/limit_costs.h"

#include <doctest/doctest.h>

#include "../cost/all_states.h"
#include "cost/topology.h"
#include "planner/one_mesh.h"

using namespace meshplan;

namespace {

PlanOptions audited(int64_t max_memory_bytes) {
  PlanOptions options;
  options.audit = true;
  options.max_memory_bytes = max_memory_bytes;
  return options;
}

const AuditFinding* found_in(const PlannedRedistribution& planned) { return test::finding_of(planned, "A0410"); }

// Questions on one mesh of h100.
class OnOneMesh : public test::OneMesh {
 public:
  explicit OnOneMesh(const std::vector<int64_t>& sizes) : OneMesh(sizes, *topology_preset("h100")) {}
  [[nodiscard]] PlannedRedistribution plan(const Request& request, const PlanOptions& options) const {
    return OneMesh::plan(request, options).redistributions.front();
  }
};

}  // namespace

TEST_CASE("a small tensor: the finding, the plan without a limit and the one with the peak that it names agree") {
  const OnOneMesh asked({6, 16});
  const Request request = asked.request({8192}, "RS(0)", "S(0)[0]S(0)[1]");
  const PlannedRedistribution planned = asked.plan(request, audited(0));
  const AuditFinding* found = found_in(planned);
  REQUIRE(found != nullptr);
  CHECK(found->kind == "limit_costs");
  CHECK(found->step == -1);
  CHECK(found->message ==
        "with a peak of 37.3 KiB a rank the plan takes 24.1 us; within the memory limit 70.8 us, with a peak of 4.39 KiB; plan with "
        "--max-memory 38232 or more for its steps");
  CHECK(found->predicted_ps == planned.totals.predicted_ps);
  CHECK(found->wire_bytes == planned.totals.wire_bytes);
  for (const int64_t limit : {int64_t{-1}, int64_t{38232}}) {
    const PlannedRedistribution free = asked.plan(request, audited(limit));
    CHECK(found_in(free) == nullptr);
    CHECK(found->better_predicted_ps == free.totals.predicted_ps);
    CHECK(found->better_wire_bytes == free.totals.wire_bytes);
    CHECK(found->better_trace.rfind("RS(0)->RR->", 0) == 0);  // then slices, one by one or both at once
  }
  // A limit that is given costs time as the default one does.
  const PlannedRedistribution given = asked.plan(request, audited(5000));
  REQUIRE(found_in(given) != nullptr);
  CHECK(found_in(given)->better_predicted_ps == found->better_predicted_ps);
}

TEST_CASE("nothing is said of a limit where nothing is gained without, of rules that know none, nor unasked") {
  const OnOneMesh asked({6, 16});
  CHECK(found_in(asked.plan(asked.request({8192, 4096}, "S(0)S(1)", "S(1)S(0)"), audited(0))) == nullptr);
  const Request small = asked.request({8192}, "RS(0)", "S(0)[0]S(0)[1]");
  PlanOptions torch = audited(0);
  torch.planner = PlannerKind::greedy;
  torch.rules = Rules::dtensor;
  CHECK(found_in(asked.plan(small, torch)) == nullptr);
  PlanOptions unasked = audited(0);
  unasked.audit = false;
  CHECK(found_in(asked.plan(small, unasked)) == nullptr);
}

TEST_CASE("planned with the peak that is named no plan takes more than is said, nor more memory") {
  int found = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 6}, {12}, {3, 2, 8}}) {
    const OnOneMesh asked(sizes);
    const auto states = all_states(sizes, 2, {ReduceOp::sum});
    const size_t stride = sizes.size() > 2 ? 131 : 2;
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = i % stride; j < states.size(); j += stride) {
        if (i == j || !states[j].partial.empty()) continue;
        const Request request = OnOneMesh::request({96, 50}, states[i], states[j]);
        const PlannedRedistribution planned = asked.plan(request, audited(0));
        const AuditFinding* finding = found_in(planned);
        const int64_t free_ps = asked.plan(request, audited(-1)).totals.predicted_ps;
        CAPTURE(planned.trace);
        if (finding == nullptr) {
          // What the model may be wrong by is all there is to gain, or less.
          CHECK(planned.totals.predicted_ps - free_ps <= planned.totals.predicted_ps / 2);
          continue;
        }
        ++found;
        const std::string named = "--max-memory ";
        const int64_t peak = std::stoll(finding->message.substr(finding->message.find(named) + named.size()));
        const PlannedRedistribution again = asked.plan(request, audited(peak));
        CHECK(finding->better_predicted_ps < finding->predicted_ps);
        CHECK(finding->better_predicted_ps == free_ps);
        CHECK(again.totals.predicted_ps == free_ps);
        CHECK(again.totals.peak_bytes <= peak);
        CHECK(found_in(again) == nullptr);
      }
    }
  }
  CHECK(found > 30);
}
