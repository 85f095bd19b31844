// The arithmetic of a step in words: what explain_cost prints.
#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cost/collective_time.h"
#include "cost/exchange.h"
#include "cost/protocols.h"
#include "cost/step_figures.h"

namespace meshplan {
namespace {

std::string fraction(int64_t bytes, int64_t denominator) {
  const bool whole = bytes % denominator == 0;
  return whole ? with_commas(bytes / denominator) + " B"
               : with_commas(bytes) + "/" + with_commas(denominator) + " B";
}

std::string ps_text(int64_t ps) { return with_commas(ps) + " ps"; }

// What of an exchange is far and what is held to a peer's rate; `slowest` is raised by them.
std::string held_text(const TopologyLevel& level, const Traffic& traffic, size_t l,
                      int64_t& slowest) {
  std::string out;
  if (const int64_t far = far_bytes(traffic.bytes[l], traffic.denominator, level.near_bytes)) {
    const int64_t far_ps = transfer_ps(far, traffic.denominator, level.far_mb_per_s);
    slowest = std::max(slowest, far_ps);
    out += ", " + fraction(far, traffic.denominator) + " beyond the near ones / " +
           with_commas(level.far_mb_per_s) + " MB/s = " + ps_text(far_ps);
  }
  const int64_t held = held_to_peer_rate(level, traffic, l);
  if (held == 0) return out;
  const int64_t one = saturating_mul(traffic.denominator, traffic.peers[l]);
  const int64_t held_ps = transfer_ps(held, one, level.peer_mb_per_s);
  slowest = std::max(slowest, held_ps);
  return out + ", " + fraction(held, one) + " a peer / " + with_commas(level.peer_mb_per_s) +
         " MB/s = " + ps_text(held_ps);
}

// What protocols hold an exchange to.
std::string exchange_way_line(const Topology& topology, const Traffic& traffic, int64_t copied) {
  const ProtocolWay way = fastest_exchange(topology, traffic, copied);
  return "at least by the protocol " + one_line(way.protocol->name) + ": start " +
         with_commas(way.start_ns) + " ns + peers " + with_commas(latency_ns(way) - way.start_ns) +
         " ns + its bytes" + (copied > 0 ? " and copies" : "") + " = " +
         ps_text(way_ps(topology, way, copied)) + "\n";
}

// One line a level that is used, then the sum.
std::string traffic_lines(const Topology& topology, const Traffic& traffic, bool exchange,
                          int64_t copied, const std::string& before) {
  std::string out;
  int64_t latency = 0;
  int64_t peers = 0;
  int64_t slowest = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (traffic.bytes[l] == 0 && traffic.peers[l] == 0) continue;
    const TopologyLevel& level = topology.levels[l];
    int64_t bandwidth = level.mb_per_s;
    int64_t scale = by_mb;
    std::string share;
    if (exchange && level.exchange_percent != 100) {
      share = " x " + std::to_string(level.exchange_percent) + " %";
      bandwidth *= level.exchange_percent;
      scale = by_mb_percent;
    }
    const int64_t ps = transfer_ps(traffic.bytes[l], traffic.denominator, bandwidth, scale);
    slowest = std::max(slowest, ps);
    latency = level.latency_ns;
    out += before + "over " + one_line(level.name) + ": " +
           fraction(traffic.bytes[l], traffic.denominator) + " a rank / " +
           with_commas(level.mb_per_s) + " MB/s" + share + " = " + ps_text(ps);
    if (exchange) {
      peers = saturating_add(peers, saturating_mul(level.per_peer_ns, traffic.peers[l]));
      out += ", " + with_commas(traffic.peers[l]) +
             (traffic.peers[l] == 1 ? " peer x " : " peers x ") + with_commas(level.per_peer_ns) +
             " ns";
      out += held_text(level, traffic, l, slowest);
    }
    out += "\n";
  }
  const int64_t copy =
      topology.copy_mb_per_s > 0 ? transfer_ps(copied, 1, topology.copy_mb_per_s) : 0;
  if (exchange && by_protocols(topology, Op::exchange))
    out += before + exchange_way_line(topology, traffic, copied);
  out += before + "latency " + with_commas(latency) + " ns";
  if (exchange) out += " + peers " + with_commas(peers) + " ns";
  out += " + slowest level " + ps_text(slowest);
  if (topology.copy_mb_per_s > 0)
    out += " + copies " + with_commas(copied) + " B / " + with_commas(topology.copy_mb_per_s) +
           " MB/s = " + ps_text(copy);
  const Peers peers_counted = exchange ? Peers::number_and_rate : Peers::none;
  out += " = " + ps_text(traffic_ps(topology, traffic, peers_counted, copied)) + "\n";
  return out;
}

std::string members_text(const Topology& topology, const GroupShape& shape) {
  std::string out;
  for (size_t l = 0; l < shape.members.size(); ++l) {
    if (l != 0) out += ", ";
    if (shape.uniform) {
      out +=
          std::to_string(shape.members[l]) + " in one unit of " + one_line(topology.levels[l].name);
    } else {
      out += "up to " + std::to_string(shape.reach[l]) + " more at " +
             one_line(topology.levels[l].name);
    }
  }
  return out;
}

std::string way_name(const ProtocolWay& way) {
  switch (way.pattern) {
    case Pattern::ring:
      return way.protocol->name + " ring";
    case Pattern::tree:
      return way.protocol->name + " tree";
    case Pattern::switches:
      break;
  }
  return way.protocol->name + ", reduced by switches";
}

// The fastest way of a collective: a line a level that is used, then the sum.
std::string way_lines(const Topology& topology, const std::vector<int64_t>& members,
                      const CollectiveBytes& bytes) {
  const ProtocolWay way = fastest_way(topology, members, bytes);
  std::string out = "fastest of the protocols: " + one_line(way_name(way)) + "\n";
  int64_t slowest = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (way.traffic.bytes[l] == 0 && way.traffic.peers[l] == 0) continue;
    const int64_t ps = transfer_ps(way.traffic.bytes[l], way.traffic.denominator, way.mb_per_s[l]);
    slowest = std::max(slowest, ps);
    out += "over " + one_line(topology.levels[l].name) + ": " +
           fraction(way.traffic.bytes[l], way.traffic.denominator) + " a rank / " +
           with_commas(way.mb_per_s[l]) + " MB/s = " + ps_text(ps);
    if (way.far_mb_per_s[l] > 0) {
      const int64_t far =
          far_bytes(way.traffic.bytes[l], way.traffic.denominator, way.protocol->near_bytes);
      const int64_t far_ps = transfer_ps(far, way.traffic.denominator, way.far_mb_per_s[l]);
      slowest = std::max(slowest, far_ps);
      out += ", " + fraction(far, way.traffic.denominator) + " beyond the near ones / " +
             with_commas(way.far_mb_per_s[l]) + " MB/s = " + ps_text(far_ps);
    }
    if (way.steps[l] > 0)
      out += ", " + with_commas(way.steps[l]) + (way.steps[l] == 1 ? " hop x " : " hops x ") +
             with_commas(way.step_ns[l]) + " ns";
    out += "\n";
  }
  out += "start " + with_commas(way.start_ns) + " ns + hops " +
         with_commas(latency_ns(way) - way.start_ns) + " ns + slowest level " + ps_text(slowest);
  if (topology.copy_mb_per_s > 0)
    out += " + copies " + with_commas(bytes.copied) + " B / " +
           with_commas(topology.copy_mb_per_s) + " MB/s";
  return out + " = " + ps_text(way_ps(topology, way, bytes.copied)) + "\n";
}

std::string explain_exchange(const LevelMap& levels, const StepQuestion& q) {
  const Topology& topology = *q.topology;
  const ExchangeCost cost = price_exchange(exchange_question(levels, q));
  const ExchangeTraffic& moved = cost.traffic;
  std::string out = "a rank receives at most " + with_commas(cost.wire_bytes) +
                    " B and sends at most " + with_commas(cost.sent_bytes) + " B" +
                    (cost.exact ? "" : " (an estimate: too many pairs of ranks to list)") + "\n";
  const bool held_up = cost.least.op != Op::exchange && cost.least.price.ps == cost.predicted_ps;
  const std::string floor = !held_up ? std::string()
                                     : std::string("not less than the ") + to_text(cost.least.op) +
                                           " that moves the same boxes, by the " +
                                           cost.least.price.tier +
                                           " tier: " + ps_text(cost.least.price.ps) + "\n";
  if (q.step->phases == 2) {
    out +=
        std::string("first phase, ") + (q.step->fetched_by_all ? "all ranks of " : "") +
        "each host " + (q.step->fetched_by_all ? "fetch" : "fetches") + " what it misses" +
        (q.step->laps > 1 ? ", in " + std::to_string(q.step->laps) + " laps" : std::string()) +
        ":\n" +
        traffic_lines(topology, moved.phase[0], true, saturating_mul(2, moved.received[0]), "  ");
    out +=
        "second phase, inside the host:\n" +
        traffic_lines(topology, moved.phase[1], true, saturating_mul(2, moved.received[1]), "  ");
    if (cost.chunks > 1) {
      out += "in " + std::to_string(cost.chunks) + " chunks" +
             (cost.at_once > 0 ? " from " + std::to_string(cost.at_once) +
                                     " ranks at once, all counted as the fullest"
                               : std::string()) +
             ", each shared while the next is fetched: " + ps_text(cost.predicted_ps) + "\n";
    }
    return out + floor;
  }
  if (q.step->far_64ths > 0) {
    out += "of what ranks hold inside a host and outside, " + std::to_string(q.step->far_64ths) +
           "/64 come from outside\n";
  }
  return out +
         traffic_lines(topology, moved.phase[0], true, saturating_mul(2, moved.received[0]), "") +
         floor;
}

std::string explain_collective(const LevelMap& levels, const StepQuestion& q, int64_t group) {
  const Topology& topology = *q.topology;
  const Step& step = *q.step;
  const StepFigures f = step_figures(*q.before, step.state, q.tensor->shape, levels, step.op, group,
                                     wire_element_bytes(q));
  std::string out;
  const OpRow& row = row_of(step.op);
  const std::string ranks = std::to_string(group);
  const std::string whole = with_commas(f.bytes.whole) + " B";
  if (row.piece == OpPiece::share_of_box) {
    out += "input " + whole + ", " + std::to_string(row.rounds) + " x " +
           std::to_string(group - 1) + "/" + ranks + " of it received";
  } else {
    const std::string name = row.piece_name;
    out += ranks + " x largest " + name + " " + with_commas(f.bytes.piece) + " B = " + whole +
           ", all but one " + name + " received";
  }
  out += ": " + with_commas(f.wire) + " B\n";
  std::string tier;
  const auto& shapes = levels.shapes(step.mesh_dims);
  const int64_t total = finer_ps(topology, shapes, f.bytes, tier);
  // The slowest of the groups decides; they all look alike unless ranks are permuted or levels cut
  // them differently.
  const GroupShape* slowest = &shapes.front();
  for (const GroupShape& shape : shapes) {
    if (collective_ps(topology, shape, f.bytes) > collective_ps(topology, *slowest, f.bytes))
      slowest = &shape;
  }
  out += "members: " + members_text(topology, *slowest) + "\n";
  // An all_to_all that levels hold back is explained by them.
  if (tier == "protocols" && slowest->uniform &&
      way_ps(topology, fastest_way(topology, slowest->members, f.bytes), f.bytes.copied) == total)
    return out + way_lines(topology, slowest->members, f.bytes);
  if (tier == "measured") return out + "priced by the measured tier: " + ps_text(total) + "\n";
  if (!slowest->uniform) {
    Traffic traffic;
    for (size_t l = 0; l < slowest->reach.size(); ++l) {
      traffic.bytes[l] = saturating_mul(f.bytes.piece, slowest->reach[l]);
      traffic.peers[l] = slowest->reach[l];
    }
    out += "units hold different numbers of members: priced as ";
    if (!row.pays_per_peer && by_protocols(topology, f.bytes.op)) {
      const std::vector<int64_t> apart = members_apart(*slowest);
      if (protocols_ps(topology, apart, f.bytes) == total)
        return out + "if the links of the outermost level joined them all\n" +
               way_lines(topology, apart, f.bytes);
    }
    out += "an exchange of the padded pieces";
    out += row.rounds == 2 ? ", twice\n" : "\n";
    return out + traffic_lines(topology, traffic, true, f.bytes.copied, "");
  }
  return out + traffic_lines(topology, collective_traffic(slowest->members, f.bytes),
                             row.pays_per_peer, f.bytes.copied, "");
}

}  // namespace

std::string explain_cost(const StepQuestion& q) {
  const Step& step = *q.step;
  if (is_local(step.op)) return "local: no bytes, no time\n";
  const LevelMap levels(*q.src_mesh, *q.topology);
  if (step.op == Op::exchange) return explain_exchange(levels, q);
  int64_t group = 1;
  for (const SubAxis& sub_axis : step.mesh_dims) group *= sub_axis.size;
  if (group == 1) return "one rank per group: no bytes, no time\n";
  return explain_collective(levels, q, group);
}

}  // namespace meshplan
