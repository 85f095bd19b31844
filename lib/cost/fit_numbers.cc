#include "cost/fit_numbers.h"

#include <algorithm>
#include <cmath>

#include "plan/topology_limits.h"

namespace meshplan {
namespace {

// One number of the topology that may move, with its range.
struct Movable {
  int64_t* number = nullptr;
  int64_t least = 0;
  int64_t most = 0;
  const Protocol* protocol = nullptr;  // whose it is; none: of a level
};

void list_protocol(Protocol& p, std::vector<Movable>& all) {
  const auto add = [&](int64_t& number, int64_t least, int64_t most) {
    all.push_back({&number, least, most, &p});
  };
  add(p.base_ns, 0, max_latency_ns);
  if (p.switch_ns > 0) add(p.switch_ns, 1, max_latency_ns);
  if (p.near_bytes > 0) add(p.near_bytes, 1, max_peer_bytes);
  for (ProtocolLevel& level : p.levels) {
    add(level.hop_ns, 0, max_latency_ns);
    add(level.share, 1, whole_share);
    if (p.near_bytes > 0) add(level.far_share, 1, whole_share);
    if (!p.trees && p.switch_ns == 0) continue;
    add(level.tree_ns, 0, max_latency_ns);
    add(level.tree_share, 1, whole_share);
  }
}

std::vector<Movable> movables(Topology& topology, bool only_levels) {
  std::vector<Movable> all;
  for (TopologyLevel& level : topology.levels) {
    const auto add = [&](int64_t& number, int64_t least, int64_t most) {
      all.push_back({&number, least, most, nullptr});
    };
    add(level.mb_per_s, 1, max_mb_per_s);
    add(level.latency_ns, 0, max_latency_ns);
    add(level.per_peer_ns, 0, max_per_peer_ns);
    add(level.exchange_percent, 1, 100);
    if (level.peer_mb_per_s > 0) add(level.peer_mb_per_s, 1, max_mb_per_s);
    if (level.peer_bytes > 0) add(level.peer_bytes, 1, max_peer_bytes);
    if (level.switch_mb_per_s > 0) add(level.switch_mb_per_s, 1, max_mb_per_s);
    if (level.near_bytes > 0) {
      add(level.near_bytes, 1, max_peer_bytes);
      add(level.far_mb_per_s, 1, max_mb_per_s);
    }
  }
  if (only_levels) return all;
  for (Protocol& protocol : topology.protocols) list_protocol(protocol, all);
  return all;
}

// Of each protocol the base and the hop of each level.
std::vector<std::pair<Movable, Movable>> starts_of(Topology& topology, bool only_levels) {
  std::vector<std::pair<Movable, Movable>> all;
  if (only_levels) return all;
  for (Protocol& protocol : topology.protocols) {
    for (ProtocolLevel& level : protocol.levels)
      all.push_back({{&protocol.base_ns, 0, max_latency_ns, &protocol},
                     {&level.hop_ns, 0, max_latency_ns, &protocol}});
  }
  return all;
}

class Fit {
 public:
  Fit(Topology& topology, const std::vector<MeasuredRow>& rows)
      : topology_(topology), rows_(rows), losses_(rows.size()) {
    for (size_t i = 0; i < rows.size(); ++i) losses_[i] = loss_of(rows[i]);
  }

  // Whether the number now is another one.
  bool move(const Movable& movable, double by) {
    const int64_t before = *movable.number;
    const int64_t after = moved(movable, by);
    if (after == before) return false;
    *movable.number = after;
    if (improved(movable.protocol)) return true;
    *movable.number = before;
    return false;
  }

  // The one by `by`, the other against it: what curves of one group say of their sum stays, and
  // other groups may be nearer.
  bool trade(const Movable& one, const Movable& other, double by) {
    const int64_t before = *one.number;
    const int64_t other_before = *other.number;
    *one.number = moved(one, by);
    *other.number = moved(other, 1 / by);
    const bool changed = *one.number != before || *other.number != other_before;
    if (changed && improved(one.protocol)) return true;
    *one.number = before;
    *other.number = other_before;
    return false;
  }

  [[nodiscard]] double sum() const {
    double all = 0;
    for (const double loss : losses_) all += loss;
    return all;
  }

 private:
  static int64_t moved(const Movable& movable, double by) {
    const int64_t before = *movable.number;
    int64_t after = std::llround(static_cast<double>(before) * by);
    if (after == before) after += by > 1 ? 1 : -1;
    if (before == 0 && by > 1) after = 100;
    return std::clamp(after, movable.least, movable.most);
  }
  [[nodiscard]] double loss_of(const MeasuredRow& row) const {
    const double e = std::abs(
        std::log(static_cast<double>(predicted_ns(topology_, row)) / static_cast<double>(row.ns)));
    return e + 2 * e * e;
  }
  // Whether the rows that the protocol prices (all, where it is a level's number) are nearer.
  bool improved(const Protocol* protocol) {
    after_.clear();
    double change = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (protocol != nullptr && !prices(*protocol, rows_[i].op)) continue;
      const double loss = loss_of(rows_[i]);
      change += loss - losses_[i];
      after_.emplace_back(i, loss);
    }
    if (change > -1e-7) return false;
    for (const auto& [i, loss] : after_) losses_[i] = loss;
    return true;
  }

  // An op that pays for each peer takes no less than an exchange of the same traffic.
  static bool prices(const Protocol& protocol, Op op) {
    return serves(protocol, op) || (serves(protocol, Op::exchange) && row_of(op).pays_per_peer);
  }

  Topology& topology_;
  const std::vector<MeasuredRow>& rows_;
  std::vector<double> losses_;
  std::vector<std::pair<size_t, double>> after_;
};

}  // namespace

double fit_numbers(Topology& topology, const std::vector<MeasuredRow>& rows, bool only_levels) {
  Fit fit(topology, rows);
  const std::vector<Movable> numbers = movables(topology, only_levels);
  const auto starts = starts_of(topology, only_levels);
  constexpr int most_rounds = 12;  // of each factor
  for (const double factor : {2.0, 1.4, 1.2, 1.1, 1.04, 1.015, 1.005}) {
    for (int round = 0; round < most_rounds; ++round) {
      bool moved = false;
      for (const Movable& number : numbers) {
        for (const double by : {factor, 1 / factor}) {
          while (fit.move(number, by)) moved = true;
        }
      }
      for (const auto& [base, hop] : starts) {
        for (const double by : {factor, 1 / factor}) {
          while (fit.trade(base, hop, by)) moved = true;
        }
      }
      if (!moved) break;
    }
  }
  return fit.sum();
}

}  // namespace meshplan
