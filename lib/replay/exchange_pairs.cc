#include "replay/exchange_pairs.h"

#include "base/int_math.h"
#include "transfer/list_exchange.h"

namespace meshplan {

int64_t exchange_pairs(const Plan& plan, const PlannedRedistribution& r, size_t step) {
  const Request& request = r.request;
  const Mesh& src_mesh = plan.meshes.meshes[request.src_mesh];
  const Mesh& dst_mesh = plan.meshes.meshes[request.dst_mesh];
  bool arrived = false;  // on the target's mesh, before the step
  bool lands = false;    // by the step
  for (size_t i = 0; i <= step && request.src_mesh != request.dst_mesh; ++i) {
    arrived = arrived || lands;
    const std::string& on = r.steps[i].mesh;
    lands = !arrived && (on.empty() ? i + 1 == r.steps.size() : on == dst_mesh.name);
  }
  const LevelMap levels(arrived ? dst_mesh : src_mesh, plan.topology);
  ListQuestion q;
  q.levels = &levels;
  q.dst_mesh = lands ? &dst_mesh : nullptr;
  q.shape = request.tensor.shape;
  q.src = step == 0 ? &request.src : &r.steps[step - 1].state;
  q.dst = &r.steps[step].state;
  std::optional<ExchangeTraffic> traffic;
  if (r.steps[step].phases == 2) {
    q.fetchers = fetchers_of(r.steps[step]);
    traffic = list_exchange_in_two_phases(q);
  } else if (const int64_t far = r.steps[step].far_64ths; far > 0) {
    const auto use = [&](const FarShareLister& list) { traffic = list(far); };
    if (!list_far_shares(q, use)) return INT64_MAX;
  } else if (const auto listed = list_exchange(q)) {
    traffic = r.steps[step].whole_pieces ? listed->whole.value_or(listed->even) : listed->even;
  }
  if (!traffic) return INT64_MAX;
  int64_t peers = 0;
  for (const Traffic& phase : traffic->phase) {
    for (const int64_t of_level : phase.peers) peers = saturating_add(peers, of_level);
  }
  return saturating_mul(peers, rank_count(plan.meshes));
}

}  // namespace meshplan
