#include "cost/calibrate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/fit_numbers.h"
#include "cost/seed_protocols.h"
#include "plan/topology_limits.h"

namespace meshplan {
namespace {

// All but size and time: what one curve of times over sizes has in common.
auto curve_key(const MeasuredRow& row) { return std::tie(row.op, row.members, row.traffic.peers); }
bool same_curve(const MeasuredRow& a, const MeasuredRow& b) { return curve_key(a) == curve_key(b); }

auto sort_key(const MeasuredRow& row) {
  return std::tie(row.op, row.members, row.traffic.peers, row.size_bytes, row.traffic.bytes,
                  row.traffic.denominator);
}

Status check_row(const Topology& base, const MeasuredRow& row) {
  if (is_local(row.op) || row.size_bytes < 1 || row.ns < 1 || row.members.empty() ||
      row.members.back() < 2)
    return bad_input(row.place + ": nothing that communicates was measured");
  if (row.members.size() == base.levels.size()) return Done{};
  return bad_input(row.place + ": a group over " + std::to_string(row.members.size()) +
                   " levels, and the topology has " + std::to_string(base.levels.size()) +
                   "; calibrate with the topology that the plan was made for (--topology)");
}

// What the row moves over each level: of a collective as in the model of levels.
Traffic traffic_of(const MeasuredRow& row) {
  if (row.op == Op::exchange) return row.traffic;
  CollectiveBytes bytes;
  bytes.op = row.op;
  bytes.whole = row.size_bytes;
  return collective_traffic(row.members, bytes);
}

double bytes_over(const Traffic& traffic, size_t level) {
  return static_cast<double>(traffic.bytes[level]) / static_cast<double>(traffic.denominator);
}

// The level over which the row takes longest.
size_t slowest_level(const Topology& topology, const Traffic& traffic) {
  size_t slowest = 0;
  double most = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const double ns = bytes_over(traffic, l) / static_cast<double>(topology.levels[l].mb_per_s);
    if (ns > most) {
      most = ns;
      slowest = l;
    }
  }
  return slowest;
}

// The curve with most sizes of these rows, the largest group of several.
std::vector<MeasuredRow> longest_curve(const std::vector<MeasuredRow>& rows) {
  std::vector<MeasuredRow> longest;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && same_curve(rows[i], rows[end])) ++end;
    if (end - i >= longest.size())
      longest.assign(rows.begin() + static_cast<int64_t>(i),
                     rows.begin() + static_cast<int64_t>(end));
    i = end;
  }
  return longest;
}

std::vector<MeasuredRow> rows_of(const std::vector<MeasuredRow>& rows, Op op) {
  std::vector<MeasuredRow> some;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(some),
               [op](const MeasuredRow& row) { return row.op == op; });
  return some;
}

// As a topology may have it: a time that a log rounds to nothing gives any rate.
int64_t as_bandwidth(double mb_per_s) {
  return std::llround(std::clamp(mb_per_s, 1.0, static_cast<double>(max_mb_per_s)));
}

// The fastest that rows have moved bytes over each level: a bandwidth to begin with.
void seed_bandwidths(Topology& topology, const std::vector<MeasuredRow>& rows) {
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    double most = 0;
    for (const MeasuredRow& row : rows)
      most = std::max(most, bytes_over(traffic_of(row), l) * 1000 / static_cast<double>(row.ns));
    if (most >= 1) topology.levels[l].mb_per_s = as_bandwidth(most);
  }
}

std::vector<CurvePoint> points_of(const std::vector<MeasuredRow>& curve, size_t level) {
  std::vector<CurvePoint> points;
  for (const MeasuredRow& row : curve) {
    const double bytes = bytes_over(traffic_of(row), level);
    if (points.empty() || bytes > points.back().bytes)
      points.push_back({bytes, static_cast<double>(row.ns), row.size_bytes});
  }
  return points;
}

// Latencies and bandwidths of exchanges and all_to_alls, of each level from the longest curve that
// it is slowest in, else from the longest of all.
void seed_levels(Topology& topology, const std::vector<MeasuredRow>& rows) {
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    std::vector<MeasuredRow> own;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(own), [&](const MeasuredRow& row) {
      return slowest_level(topology, traffic_of(row)) == l;
    });
    const std::vector<MeasuredRow> curve = longest_curve(own.empty() ? rows : own);
    if (curve.empty()) return;
    const Traffic traffic = traffic_of(curve.back());
    const size_t slowest = slowest_level(topology, traffic);
    const std::vector<CurvePiece> pieces = cut_curve(points_of(curve, slowest), 1);
    const CurvePiece& piece = pieces.front();
    int64_t peers = 0;
    for (const int64_t here : traffic.peers) peers += here;
    TopologyLevel& level = topology.levels[l];
    level.latency_ns = std::llround(piece.start_ns / 2);
    level.per_peer_ns =
        std::llround(piece.start_ns / 2 / static_cast<double>(std::max<int64_t>(1, peers)));
    const double mb_per_s = std::min(1000 / piece.slope, 1e9);
    level.mb_per_s = std::max<int64_t>(level.mb_per_s, std::llround(mb_per_s));
    level.exchange_percent = std::clamp<int64_t>(
        std::llround(mb_per_s * 100 / static_cast<double>(level.mb_per_s)), 1, 100);
    level.peer_mb_per_s = level.peer_bytes = 0;
    if (l != slowest || piece.near == 0) continue;
    level.near_bytes = std::max<int64_t>(1, std::llround(piece.near));
    level.far_mb_per_s = as_bandwidth(1000 / piece.far_slope);
  }
}

int64_t whole_share_of(double slope, int64_t mb_per_s) {
  const double share = 1000 / slope / static_cast<double>(mb_per_s) * whole_share;
  return static_cast<int64_t>(std::clamp(share, 1.0, static_cast<double>(whole_share)));
}

// Protocols of one op from its longest curve; the start is half base and half hops.
void seed_op(Topology& topology, const std::vector<MeasuredRow>& rows, Op op) {
  constexpr int most_pieces = 4;
  const std::vector<MeasuredRow> curve = longest_curve(rows_of(rows, op));
  if (curve.empty()) return;
  const size_t slowest = slowest_level(topology, traffic_of(curve.back()));
  int64_t hops = (curve.front().members.back() - 1) * row_of(op).rounds;
  if (op == Op::exchange) {
    hops = 0;
    for (const int64_t peers : curve.back().traffic.peers) hops += peers;
  }
  int number = 0;
  for (const CurvePiece& piece : cut_curve(points_of(curve, slowest), most_pieces)) {
    Protocol protocol;
    protocol.name = std::string(to_text(op)) + " " + std::to_string(++number);
    protocol.ops = bit_of(op);
    protocol.base_ns = std::llround(piece.start_ns / 2);
    protocol.most_bytes = piece.most_size;
    protocol.near_bytes = std::llround(piece.near);
    for (const TopologyLevel& level : topology.levels) {
      ProtocolLevel at;
      at.hop_ns =
          std::llround(piece.start_ns / 2 / static_cast<double>(std::max<int64_t>(1, hops)));
      at.share = whole_share_of(piece.slope, level.mb_per_s);
      if (protocol.near_bytes > 0) at.far_share = whole_share_of(piece.far_slope, level.mb_per_s);
      protocol.levels.push_back(at);
    }
    topology.protocols.push_back(std::move(protocol));
  }
}

// Ops that were not measured take the protocols of one that was.
void serve_all(Topology& topology, const std::vector<MeasuredRow>& rows) {
  Op most = Op::all_reduce;
  size_t longest = 0;
  for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather}) {
    const size_t count = rows_of(rows, op).size();
    if (count > longest) {
      longest = count;
      most = op;
    }
  }
  if (longest == 0) {
    topology.protocols.clear();
    return;
  }
  for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather}) {
    if (!rows_of(rows, op).empty()) continue;
    for (Protocol& protocol : topology.protocols) {
      if (serves(protocol, most)) protocol.ops |= bit_of(op);
    }
  }
}

// What one peer reaches, where exchanges with one peer a rank are slower than the level: up to the
// size from which on they are not.
void seed_peer_rates(Topology& topology, const std::vector<MeasuredRow>& pairs) {
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    TopologyLevel& level = topology.levels[l];
    double least = 0;
    int64_t held = 0;
    int64_t most = 0;
    for (const MeasuredRow& row : pairs) {
      if (row.traffic.peers[l] != 1 || slowest_level(topology, row.traffic) != l) continue;
      const double rate = bytes_over(row.traffic, l) * 1000 / static_cast<double>(row.ns);
      if (least == 0 || row.size_bytes < most) least = rate;
      if (rate <= least * 1.15) held = std::max(held, row.size_bytes);
      most = std::max(most, row.size_bytes);
    }
    if (least < 1 || least > 0.9 * static_cast<double>(level.mb_per_s)) continue;
    level.near_bytes = level.far_mb_per_s = 0;
    level.exchange_percent = 100;
    level.peer_mb_per_s = as_bandwidth(least);
    level.peer_bytes = held == most ? 0 : held;
  }
}

// Levels that exchanges take no less than, well below what was measured.
void leave_room(Topology& topology) {
  for (TopologyLevel& level : topology.levels) {
    level.latency_ns /= 2;
    level.per_peer_ns /= 2;
    level.exchange_percent = 100;
    level.near_bytes = level.far_mb_per_s = 0;
  }
}

// What the first numbers are made with, each of which may fit better or worse.
struct Variant {
  bool apart = false;  // exchanges and all_to_alls have protocols; else levels price them
  bool peer_rates = false;
};

void seed_protocols(Topology& topology, const std::vector<MeasuredRow>& rows, Variant variant) {
  const bool apart = variant.apart;
  seed_bandwidths(topology, rows);
  std::vector<MeasuredRow> pairs = rows_of(rows, Op::exchange);
  const std::vector<MeasuredRow> swaps = rows_of(rows, Op::all_to_all);
  pairs.insert(pairs.end(), swaps.begin(), swaps.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const MeasuredRow& a, const MeasuredRow& b) {
    return sort_key(a) < sort_key(b);
  });
  seed_levels(topology, pairs);
  if (apart) leave_room(topology);
  if (variant.peer_rates) seed_peer_rates(topology, rows_of(rows, Op::exchange));
  if (!apart) fit_numbers(topology, pairs, true);
  for (const Op op :
       {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all, Op::exchange}) {
    if (apart || !row_of(op).pays_per_peer) seed_op(topology, rows, op);
  }
  serve_all(topology, rows);
}

// Rows from which to fit where every other size of a curve is held out; its smallest and its
// largest stay in.
std::vector<MeasuredRow> every_other(const std::vector<MeasuredRow>& rows,
                                     std::vector<bool>& held_out) {
  std::vector<MeasuredRow> kept;
  held_out.assign(rows.size(), false);
  size_t number = 0;
  for (size_t i = 0; i < rows.size(); ++i, ++number) {
    if (i == 0 || !same_curve(rows[i - 1], rows[i])) number = 0;
    const bool last = i + 1 == rows.size() || !same_curve(rows[i], rows[i + 1]);
    held_out[i] = number % 2 == 1 && !last;
    if (!held_out[i]) kept.push_back(rows[i]);
  }
  return kept;
}

// As a spec may have it, at the same prices: less than 1 MB/s is priced as 1.
Topology with_least_shares(Topology topology) {
  for (Protocol& protocol : topology.protocols) {
    for (size_t l = 0; l < protocol.levels.size(); ++l) {
      ProtocolLevel& at = protocol.levels[l];
      const int64_t least = least_share(topology.levels[l].mb_per_s);
      for (int64_t* share : {&at.share, &at.tree_share, &at.far_share})
        *share = std::max(*share, least);
    }
  }
  return topology;
}

// Levels that no row moves anything over: nothing was learned of them.
std::vector<size_t> levels_not_reached(const Topology& topology,
                                       const std::vector<MeasuredRow>& rows) {
  std::vector<size_t> levels;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const bool reached = std::any_of(rows.begin(), rows.end(), [&](const MeasuredRow& row) {
      const Traffic traffic = traffic_of(row);
      return traffic.bytes[l] > 0 || traffic.peers[l] > 0;
    });
    if (!reached) levels.push_back(l);
  }
  return levels;
}

// They keep the numbers of the base, and are so in the protocols that were made: a hop takes the
// latency, at the level's whole bandwidth.
void keep_levels(const Topology& base, const std::vector<size_t>& levels, Topology& topology) {
  for (const size_t l : levels) {
    topology.levels[l] = base.levels[l];
    for (Protocol& protocol : topology.protocols) {
      protocol.levels[l] = {};
      protocol.levels[l].hop_ns = base.levels[l].latency_ns;
    }
  }
}

Topology fitted(const Topology& base, const std::vector<MeasuredRow>& rows) {
  Topology topology = base;
  topology.tables.clear();
  topology.copy_mb_per_s = 0;  // measured times hold what is copied
  topology.name.clear();
  topology.source = "calibrated by meshplan from " + std::to_string(rows.size()) + " measured rows";
  if (!topology.protocols.empty()) {
    fit_numbers(topology, rows, false);
    return with_least_shares(std::move(topology));
  }
  std::optional<Topology> best;
  double least = 0;
  for (const Variant& variant :
       {Variant{}, Variant{false, true}, Variant{true, false}, Variant{true, true}}) {
    Topology one = topology;
    seed_protocols(one, rows, variant);
    // Protocols of exchanges must be worth their numbers.
    const double loss = fit_numbers(one, rows, false) + (variant.apart ? 0.3 : 0.0);
    if (best && loss >= least) continue;
    best = std::move(one);
    least = loss;
  }
  keep_levels(base, levels_not_reached(base, rows), *best);
  return with_least_shares(*std::move(best));
}

Result<Calibration> checked(const Topology& base, std::vector<MeasuredRow> rows) {
  for (const MeasuredRow& row : rows) {
    if (auto good = check_row(base, row); !good) return good.error();
  }
  if (rows.empty()) return bad_input("nothing that communicates was measured");
  Calibration calibration;
  for (MeasuredRow& row : merge_rows(std::move(rows)))
    calibration.rows.push_back({std::move(row), 0, std::nullopt});
  return calibration;
}

void predict_rows(Calibration& calibration) {
  std::vector<double> factors;
  for (CalibratedRow& row : calibration.rows) {
    row.predicted_ns = predicted_ns(calibration.topology, row.row);
    factors.push_back(factor_of(row.predicted_ns, row.row));
  }
  calibration.all = quality_of(factors);
}

}  // namespace

int64_t predicted_ns(const Topology& topology, const MeasuredRow& row) {
  int64_t ps = 0;
  if (row.op == Op::exchange) {
    ps = traffic_ps(topology, row.traffic, Peers::number_and_rate, 0);
  } else {
    GroupShape shape;
    shape.members = row.members;
    CollectiveBytes bytes;
    bytes.op = row.op;
    bytes.whole = row.size_bytes;
    bytes.piece = ceil_div(row.size_bytes, row.members.back());
    ps = collective_ps(topology, shape, bytes);
  }
  return std::max<int64_t>(1, ns_of_ps(ps));
}

double factor_of(int64_t predicted_ns, const MeasuredRow& row) {
  const double ratio = static_cast<double>(predicted_ns) / static_cast<double>(row.ns);
  return std::max(ratio, 1 / ratio);
}

FitQuality quality_of(std::vector<double> factors) {
  FitQuality quality;
  quality.rows = std::ssize(factors);
  if (factors.empty()) return quality;
  std::sort(factors.begin(), factors.end());
  const size_t n = factors.size();
  quality.median = n % 2 == 1 ? factors[n / 2] : (factors[n / 2 - 1] + factors[n / 2]) / 2;
  quality.largest = factors.back();
  double logs = 0;
  for (const double factor : factors) logs += std::log(factor);
  quality.mean = std::exp(logs / static_cast<double>(n));
  return quality;
}

std::vector<MeasuredRow> merge_rows(std::vector<MeasuredRow> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const MeasuredRow& a, const MeasuredRow& b) {
    return sort_key(a) < sort_key(b);
  });
  std::vector<MeasuredRow> merged;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    std::vector<int64_t> times;
    int64_t samples = 0;
    for (; end < rows.size() && sort_key(rows[i]) == sort_key(rows[end]); ++end) {
      times.push_back(rows[end].ns);
      samples = saturating_add(samples, rows[end].samples);
    }
    std::sort(times.begin(), times.end());
    const size_t half = times.size() / 2;
    MeasuredRow row = rows[i];
    row.ns = times.size() % 2 == 1 ? times[half] : times[half - 1] / 2 + times[half] / 2;
    row.ns = std::max<int64_t>(1, row.ns);
    row.samples = samples;
    merged.push_back(std::move(row));
    i = end;
  }
  return merged;
}

Result<Calibration> calibrate(const Topology& base, std::vector<MeasuredRow> rows) {
  auto calibration = checked(base, std::move(rows));
  if (!calibration) return calibration.error();
  std::vector<MeasuredRow> all;
  for (const CalibratedRow& row : calibration->rows) all.push_back(row.row);
  calibration->topology = fitted(base, all);
  predict_rows(*calibration);
  std::vector<bool> held_out;
  const std::vector<MeasuredRow> kept = every_other(all, held_out);
  if (kept.size() == all.size()) return calibration;
  const Topology half = fitted(base, kept);
  std::vector<double> factors;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!held_out[i]) continue;
    const int64_t ns = predicted_ns(half, all[i]);
    calibration->rows[i].held_out_ns = ns;
    factors.push_back(factor_of(ns, all[i]));
  }
  calibration->held_out = quality_of(factors);
  return calibration;
}

Result<Calibration> compare_rows(const Topology& topology, std::vector<MeasuredRow> rows) {
  auto calibration = checked(topology, std::move(rows));
  if (!calibration) return calibration.error();
  calibration->topology = topology;
  predict_rows(*calibration);
  return calibration;
}

}  // namespace meshplan
