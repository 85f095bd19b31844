#include "cost/exchange_phase.h"

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "plan/plan.h"
#include "plan/protocol.h"

namespace meshplan {

int64_t phase_ps(const Topology& topology, const ExchangeTraffic& traffic, size_t phase,
                 Peers peers) {
  const int64_t copied = saturating_mul(2, traffic.received[phase]);
  return traffic_ps(topology, traffic.phase[phase], peers, copied);
}

PhaseTime phase_time(const Topology& topology, const Traffic& traffic, Peers peers) {
  Traffic messages = traffic;
  messages.bytes = {};
  const int64_t latency = traffic_ps(topology, messages, peers, 0);
  return {latency, saturating_add(traffic_ps(topology, traffic, peers, 0), -latency)};
}

namespace {

// What one chunk takes in a phase.
int64_t chunk_ps(const Topology& topology, Traffic traffic, int64_t chunks) {
  traffic.denominator = saturating_mul(traffic.denominator, chunks);
  return traffic_ps(topology, traffic, Peers::number_and_rate, 0);
}

}  // namespace

int64_t in_chunks_ps(const Topology& topology, const ExchangeTraffic& traffic, int64_t chunks) {
  const auto& [first, second] = traffic.phase;
  int64_t ps =
      rounds_ps(chunk_ps(topology, first, chunks), chunk_ps(topology, second, chunks), chunks);
  if (topology.copy_mb_per_s > 0) {
    for (const int64_t received : traffic.received)
      ps = saturating_add(ps, transfer_ps(saturating_mul(2, received), 1, topology.copy_mb_per_s));
  }
  return ps;
}

namespace {

// Looks for the multiple of so many stages that takes the least time.
class ChunkSearch {
 public:
  ChunkSearch(const Topology& topology, const ExchangeTraffic& traffic, int64_t stages)
      : topology_(topology),
        traffic_(traffic),
        stages_(stages),
        least_(ceil_div(2, stages)),
        most_(floor_div(most_chunks, stages)) {}

  // At so many chunks, or the multiples around them.
  void look_at(int64_t chunks) {
    const int64_t each = floor_div(chunks, stages_);
    (void)ps_of(each);
    if (each * stages_ != chunks) (void)ps_of(each + 1);
  }
  // In any number from the first on, below the end, where the time is convex in it.
  void look_between(int64_t first, int64_t end) {
    int64_t low = std::max(least_, ceil_div(first, stages_));
    int64_t high = std::min(most_, ceil_div(end, stages_) - 1);
    if (low > high || least_ps(low, high) >= best_.ps) return;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (ps_of(middle + 1) < ps_of(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    (void)ps_of(low);
  }
  [[nodiscard]] const InChunks& best() const { return best_; }

 private:
  int64_t ps_of(int64_t each) {
    if (each < least_ || each > most_) return INT64_MAX;
    const int64_t chunks = each * stages_;
    const int64_t ps = in_chunks_ps(topology_, traffic_, chunks);
    if (ps < best_.ps || (ps == best_.ps && chunks < best_.chunks)) best_ = {chunks, ps};
    return ps;
  }
  // Chunks take no longer where there are more of them.
  [[nodiscard]] int64_t least_ps(int64_t low, int64_t high) const {
    const int64_t fetch = chunk_ps(topology_, traffic_.phase[0], high * stages_);
    const int64_t share = chunk_ps(topology_, traffic_.phase[1], high * stages_);
    return rounds_ps(fetch, share, low * stages_);
  }

  const Topology& topology_;
  const ExchangeTraffic& traffic_;
  int64_t stages_;
  int64_t least_;  // multiples
  int64_t most_;
  InChunks best_;
};

// visit(bytes of a chunk above which they count otherwise, those that all chunks have together).
template <class Visit>
void for_changes(const Topology& topology, const Traffic& traffic, Visit visit) {
  int64_t moved = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const TopologyLevel& level = topology.levels[l];
    const int64_t bytes = traffic.bytes[l];
    moved = saturating_add(moved, bytes);
    if (bytes == 0) continue;
    visit(level.near_bytes, bytes);
    if (level.peer_mb_per_s > 0) visit(saturating_mul(level.peer_bytes, traffic.peers[l]), bytes);
    for (const Protocol& protocol : topology.protocols) {
      if (serves(protocol, Op::exchange)) visit(protocol.near_bytes, bytes);
    }
  }
  for (const Protocol& protocol : topology.protocols) {
    if (serves(protocol, Op::exchange)) visit(protocol.most_bytes, moved);
  }
}

bool counts_alike(const Topology& topology) {
  const bool protocols =
      std::any_of(topology.protocols.begin(), topology.protocols.end(),
                  [](const Protocol& protocol) { return serves(protocol, Op::exchange); });
  return !protocols && std::none_of(topology.levels.begin(), topology.levels.end(),
                                    [](const TopologyLevel& level) {
                                      return level.near_bytes > 0 ||
                                             (level.peer_mb_per_s > 0 && level.peer_bytes > 0);
                                    });
}

}  // namespace

InChunks best_in_chunks(const Topology& topology, const ExchangeTraffic& traffic, int64_t stages) {
  const PhaseTime fetch = phase_time(topology, traffic.phase[0], Peers::number_and_rate);
  const PhaseTime share = phase_time(topology, traffic.phase[1], Peers::number_and_rate);
  const int64_t likely = std::max<int64_t>(2, best_chunks(fetch, share));
  ChunkSearch search(topology, traffic, stages);
  search.look_at(likely);
  if (counts_alike(topology)) return search.best();
  std::vector<int64_t> changes{2, most_chunks + 1};
  for (const Traffic& phase : traffic.phase) {
    for_changes(topology, phase, [&](int64_t most_bytes, int64_t bytes) {
      if (most_bytes == 0) return;
      const int64_t chunks = ceil_div(bytes, saturating_mul(most_bytes, phase.denominator));
      if (chunks > 2 && chunks <= most_chunks) changes.push_back(chunks);
    });
  }
  std::sort(changes.begin(), changes.end());
  for (size_t i = 0; i + 1 < changes.size(); ++i) search.look_between(changes[i], changes[i + 1]);
  return search.best();
}

}  // namespace meshplan
