#include "torch_rules/dtensor_cost.h"

#include "base/int_math.h"

namespace meshplan {

DtensorCost::DtensorCost(CostModel model, std::span<const int64_t> mesh_shape,
                         const TensorMeta& tensor, int64_t ranks_per_host)
    : model_(model), links_(mesh_shape.size()), bytes_(static_cast<double>(tensor_bytes(tensor))) {
  int64_t inwards = 1;
  for (size_t i = mesh_shape.size(); i-- > 0;) {
    inwards = saturating_mul(inwards, mesh_shape[i]);
    links_[i] = {mesh_shape[i], 87.7, 0.6};
    if (inwards > ranks_per_host) {
      links_[i].bandwidth *= 0.22;
      links_[i].latency = 2.7;
    }
  }
}

double DtensorCost::collective(const Link& link, double gib, int64_t hops) {
  const double count = static_cast<double>(hops);
  const double latency = 6.6 + count * link.latency;
  const double seconds = gib * count / static_cast<double>(link.ranks) / link.bandwidth;
  return latency + seconds * 1e6;
}

double DtensorCost::step(Op op, size_t mesh_dim, int64_t shards) const {
  if (is_local(op)) return 0;
  const OpRow& row = row_of(op);
  if (model_ == CostModel::unit) return row.torch_units;
  const Link& link = links_[mesh_dim];
  double gib = bytes_ / static_cast<double>(shards) / 1024 / 1024 / 1024;
  if (row.piece == OpPiece::box_before) gib *= static_cast<double>(link.ranks);
  const double us = collective(link, gib, row.rounds * (link.ranks - 1));
  return row.pays_per_peer ? us + 1.0 : us;
}

double DtensorCost::path(std::span<const Placement> src,
                         std::span<const Transition> transitions) const {
  int64_t shards = 1;
  for (size_t i = 0; i < src.size(); ++i) {
    if (is_shard(src[i])) shards = saturating_mul(shards, links_[i].ranks);
  }
  double total = 0;
  for (const Transition& t : transitions) {
    const auto dim = static_cast<size_t>(t.mesh_dim);
    total += step(op_between(t.src, t.dst), dim, shards);
    if (is_shard(t.src)) shards /= links_[dim].ranks;
    if (is_shard(t.dst)) shards = saturating_mul(shards, links_[dim].ranks);
  }
  return total;
}

}  // namespace meshplan
