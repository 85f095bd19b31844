// What is said of split mesh dims is what their plan takes: on any groups, and on a mesh that has the
// parts as dims.
#include "planner/split_dims.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"

using namespace meshplan;

namespace {

PlannedRedistribution plan_one(const MeshTable& meshes, const Topology& topology, const Request& request, const PlanOptions& options) {
  const PlanOutcome outcome = plan_requests(meshes, topology, {request}, options, "");
  REQUIRE(outcome.failures.empty());
  return outcome.plan.redistributions.front();
}

PlanOptions audited(GroupPolicy groups) {
  PlanOptions options;
  options.audit = true;
  options.groups = groups;
  return options;
}

const AuditFinding* found_in(const PlannedRedistribution& planned) {
  const auto found = std::find_if(planned.audit.begin(), planned.audit.end(), [](const AuditFinding& f) { return f.code == "A0409"; });
  return found == planned.audit.end() ? nullptr : &*found;
}

MeshTable table_of(const std::vector<int64_t>& sizes) {
  MeshTable meshes;
  meshes.meshes = {test::mesh_of(sizes)};
  return meshes;
}

Request request_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& sizes, const std::string& src, const std::string& dst) {
  Request r;
  r.id = "a";
  r.tensor = {shape, DType::float32};
  r.src = parse_state(src, sizes, shape.size()).value();
  r.dst = parse_state(dst, sizes, shape.size()).value();
  return r;
}

}  // namespace

TEST_CASE("twelve ranks on hosts of eight: the finding, the plan on any groups and the split mesh agree") {
  const std::vector<int64_t> sizes{2, 12};
  const Topology topology = *topology_preset("h100");
  const Request request = request_of({8, 1536, 1024}, sizes, "S(0)P(sum)", "S(0)S(1)");
  const PlannedRedistribution planned = plan_one(table_of(sizes), topology, request, audited(GroupPolicy::declared));
  const AuditFinding* found = found_in(planned);
  REQUIRE(found != nullptr);
  CHECK(found->kind == "split_saves");
  CHECK(found->step == -1);
  CAPTURE(found->message);
  CHECK(found->message.find("with b split 3 x 4 the plan takes 222 us, with groups b:(3)4, b:(1)3; on whole mesh dims 273 us;") == 0);
  CHECK(found->predicted_ps == planned.totals.predicted_ps);
  CHECK(found->wire_bytes == planned.totals.wire_bytes);

  const PlannedRedistribution any = plan_one(table_of(sizes), topology, request, audited(GroupPolicy::any));
  CHECK(found_in(any) == nullptr);
  CHECK(found->better_predicted_ps == any.totals.predicted_ps);
  CHECK(found->better_wire_bytes == any.totals.wire_bytes);
  CHECK(found->better_trace == any.trace);

  const std::vector<int64_t> split{2, 3, 4};
  const Request on_parts = request_of({8, 1536, 1024}, split, "S(0)P(sum)P(sum)", "S(0)S(1)[0]S(1)[1]");
  const PlannedRedistribution parts = plan_one(table_of(split), topology, on_parts, audited(GroupPolicy::declared));
  CHECK(found->better_predicted_ps == parts.totals.predicted_ps);
  CHECK(found_in(parts) == nullptr);
}

TEST_CASE("nothing is said where whole mesh dims do as well") {
  const Topology topology = *topology_preset("h100");
  const auto says_of = [&](const std::vector<int64_t>& sizes, const std::string& src, const std::string& dst, PlanOptions options) {
    const PlannedRedistribution planned = plan_one(table_of(sizes), topology, request_of({8, 6144, 4096}, sizes, src, dst), options);
    return found_in(planned) != nullptr;
  };
  const PlanOptions native = audited(GroupPolicy::declared);
  CHECK(says_of({2, 12}, "S(0)P(sum)", "S(0)S(1)", native));
  // Hosts hold whole rows.
  CHECK_FALSE(says_of({3, 8}, "S(0)P(sum)", "S(0)S(1)", native));
  // A flatten is missing, no part.
  CHECK_FALSE(says_of({2, 4}, "P(sum)P(sum)", "RR", native));
  PlanOptions unasked = native;
  unasked.audit = false;
  CHECK_FALSE(says_of({2, 12}, "S(0)P(sum)", "S(0)S(1)", unasked));
  PlanOptions torch = native;
  torch.planner = PlannerKind::greedy;
  torch.rules = Rules::dtensor;
  CHECK_FALSE(says_of({2, 12}, "S(0)P(sum)", "S(0)S(1)", torch));
}

TEST_CASE("a finding never promises less than nothing, nor another plan than any groups have") {
  int found = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 6}, {4, 6}, {12}, {2, 12}, {10, 2}}) {
    const auto states = all_states(sizes, 2, {ReduceOp::sum});
    for (const int64_t ranks : {4, 8}) {
      Topology topology = *topology_preset("h100");
      topology.levels[0].ranks = ranks;
      for (size_t i = 0; i < states.size(); ++i) {
        for (size_t j = i % 2; j < states.size(); j += 2) {
          if (i == j || !states[j].partial.empty()) continue;
          Request r;
          r.id = "a";
          r.tensor = {{96, 100'000}, DType::bfloat16};
          r.src = states[i];
          r.dst = states[j];
          const PlannedRedistribution planned = plan_one(table_of(sizes), topology, r, audited(GroupPolicy::declared));
          const AuditFinding* finding = found_in(planned);
          if (finding == nullptr) continue;
          ++found;
          CAPTURE(planned.trace);
          CHECK(finding->better_predicted_ps < finding->predicted_ps);
          CHECK(finding->predicted_ps <= planned.totals.predicted_ps);
          const PlannedRedistribution any = plan_one(table_of(sizes), topology, r, audited(GroupPolicy::any));
          CHECK(finding->better_predicted_ps == any.totals.predicted_ps);
          CHECK(finding->better_trace == any.trace);
        }
      }
    }
  }
  CHECK(found > 50);
}
