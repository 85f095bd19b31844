#include "cost/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace meshplan {
namespace {

struct Pool {
  double ns = 0;
  double weight = 0;
  size_t points = 1;
};

// Times that never fall: neighbours out of order are pooled into their weighted mean, again and
// again.
std::vector<double> never_falling(const std::vector<std::pair<double, double>>& times) {
  std::vector<Pool> pools;
  for (const auto& [ns, weight] : times) {
    pools.push_back({ns, weight, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].ns > pools.back().ns) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& into = pools.back();
      into.ns = (into.ns * into.weight + last.ns * last.weight) / (into.weight + last.weight);
      into.weight += last.weight;
      into.points += last.points;
    }
  }
  std::vector<double> out;
  for (const Pool& p : pools) out.insert(out.end(), p.points, p.ns);
  return out;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Bytes that a rank receives over the level for a size (per rank, even groups).
double wire_bytes(const CalibrationPoint& p) {
  return bus_bytes(p.op, static_cast<double>(p.size_bytes), p.ranks);
}

struct Timed {
  double bytes = 0;
  double ns = 0;
  double for_peers = 0;  // of it
};
struct Line {
  double at_nothing = 0;  // ns
  double slope = 0;       // ns a byte
};

// How far the line is from the points, in parts of their times: the mean and the median added, so
// that most points are near and none is far.
double distance(const Line& line, const std::vector<Timed>& points) {
  std::vector<double> errors;
  double sum = 0;
  for (const Timed& p : points) {
    errors.push_back(std::abs((line.at_nothing + line.slope * p.bytes + p.for_peers) / p.ns - 1));
    sum += errors.back();
  }
  return sum / static_cast<double>(points.size()) + median_of(std::move(errors));
}

// Latency and bandwidth of one level: the nearest of the lines through two of the points, those
// alike taken as one.
void fit_line(TopologyLevel& level, const std::vector<Timed>& given) {
  std::map<std::pair<double, double>, std::vector<double>> alike;
  for (const Timed& p : given) alike[{p.bytes, p.for_peers}].push_back(p.ns);
  std::vector<Timed> points;
  for (auto& [key, times] : alike)
    points.push_back({key.first, median_of(std::move(times)), key.second});
  Line best;
  double least = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      const Timed& p = points[i];
      const Timed& q = points[j];
      if (p.bytes == q.bytes) continue;
      Line line;
      line.slope = (q.ns - q.for_peers - p.ns + p.for_peers) / (q.bytes - p.bytes);
      if (line.slope <= 0)
        continue;  // time does not grow with size: noise, no bandwidth to be had from it
      line.at_nothing = std::max(0.0, p.ns - p.for_peers - line.slope * p.bytes);
      const double here = distance(line, points);
      if (best.slope == 0 || here < least) {
        best = line;
        least = here;
      }
    }
  }
  if (best.slope == 0) return;
  level.mb_per_s = std::max<int64_t>(1, std::llround(1000.0 / best.slope));
  level.latency_ns = std::llround(best.at_nothing);
}

using BySize = std::map<int64_t, std::vector<const CalibrationPoint*>>;

// (bytes, nanoseconds), in the median of each size.
std::vector<std::pair<int64_t, int64_t>> points_of(const BySize& sizes) {
  std::vector<std::pair<double, double>> times;
  for (const auto& [bytes, group] : sizes) {
    std::vector<double> ns;
    double weight = 0;
    for (const CalibrationPoint* p : group) {
      ns.push_back(static_cast<double>(p->ns));
      weight += static_cast<double>(std::max<int64_t>(1, p->samples));
    }
    times.emplace_back(median_of(ns), weight);
  }
  const std::vector<double> rising = never_falling(times);
  std::vector<std::pair<int64_t, int64_t>> points;
  for (const auto& entry : sizes)
    points.emplace_back(entry.first, std::llround(rising[points.size()]));
  return points;
}

int64_t peers_of(const CalibrationPoint& p) { return p.peers >= 0 ? p.peers : p.ranks - 1; }

// From exchanges: what their peers cost is no latency.
void fit_exchanges(TopologyLevel& level, const std::vector<const CalibrationPoint*>& exchanges) {
  for (const CalibrationPoint* p : exchanges) {
    if (peers_of(*p) > 0) level.per_peer_ns = std::min(level.per_peer_ns, p->ns / peers_of(*p));
  }
  std::vector<Timed> points;
  for (const CalibrationPoint* p : exchanges) {
    points.push_back({wire_bytes(*p), static_cast<double>(p->ns),
                      static_cast<double>(level.per_peer_ns * peers_of(*p))});
  }
  fit_line(level, points);
}

}  // namespace

Result<Topology> calibrate(const Topology& base, const std::vector<CalibrationPoint>& points) {
  Topology out = base;
  std::map<std::tuple<Op, int64_t, int64_t>, BySize> by_table;
  std::map<int64_t, std::vector<const CalibrationPoint*>> exchanges;
  std::map<int64_t, std::vector<Timed>> collectives;
  for (const CalibrationPoint& p : points) {
    if (is_local(p.op) || p.ranks < 2 || p.size_bytes < 1 || p.ns < 1 || p.level < 0) continue;
    if (static_cast<size_t>(p.level) >= base.levels.size()) {
      return bad_input("a measured step uses level " + std::to_string(p.level) +
                       " and the topology has " + std::to_string(base.levels.size()) +
                       " levels; calibrate with the topology that the plan was made for");
    }
    if (p.op == Op::exchange) {
      exchanges[p.level].push_back(&p);
    } else {
      collectives[p.level].push_back({wire_bytes(p), static_cast<double>(p.ns), 0});
      by_table[{p.op, p.level, p.ranks}][p.size_bytes].push_back(&p);
    }
  }
  if (by_table.empty() && exchanges.empty()) {
    return bad_input(
        "the reports hold no timed step that communicates; measure with meshplan run PLAN --measure --report FILE");
  }
  for (size_t l = 0; l < out.levels.size(); ++l) {
    const auto level = static_cast<int64_t>(l);
    if (exchanges[level].size() >= 2) {
      fit_exchanges(out.levels[l], exchanges[level]);
    } else {
      fit_line(out.levels[l], collectives[level]);
    }
  }
  for (const auto& [key, sizes] : by_table) {
    MeasuredTable table{std::get<0>(key), std::get<1>(key), std::get<2>(key), points_of(sizes)};
    out.tables.erase(std::remove_if(out.tables.begin(), out.tables.end(),
                                    [&](const MeasuredTable& t) {
                                      return t.op == table.op && t.level == table.level &&
                                             t.ranks == table.ranks;
                                    }),
                     out.tables.end());
    out.tables.push_back(std::move(table));
  }
  out.name.clear();
  out.source = "measured by meshplan";
  return out;
}

}  // namespace meshplan
