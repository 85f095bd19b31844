#include "verify/claims.h"

#include <algorithm>
#include <unordered_set>

#include "base/int_math.h"
#include "tensor/largest_elements.h"
#include "verify/bundle.h"
#include "verify/figures.h"
#include "verify/recount.h"
#include "verify/traffic.h"

namespace meshplan::verification {

std::string numbers(const char* what, int64_t said, const char* where, int64_t is) {
  return std::string(what) + " is " + std::to_string(said) + ", " + where + " " +
         std::to_string(is);
}

namespace {

// A total that was rounded up from a sum of picoseconds, of which each part is known rounded up,
// `times` over.
struct RoundedSum {
  int64_t most = 0;   // nanoseconds
  int64_t below = 0;  // the total is above most - below
  void add(int64_t ns, int64_t times) {
    most = saturating_add(most, saturating_mul(ns, times));
    if (ns > 0) below = saturating_add(below, times);
  }
  [[nodiscard]] bool allows(int64_t ns) const {
    return ns <= most && (ns == most || most - ns < below);
  }
};

}  // namespace

std::optional<WrongFigure> check_figures(const Plan& plan,
                                         const PlannedRedistribution& redistribution,
                                         Figures& figures) {
  const Request& request = redistribution.request;
  const Mesh& src_mesh = plan.meshes.meshes[request.src_mesh];
  const Mesh& dst_mesh = plan.meshes.meshes[request.dst_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  StepView view{&plan,        &src_mesh, &src_mesh, &request.tensor, request.reduce_dtype,
                &request.src, nullptr};
  figures.ps = 0;
  for (size_t i = 0; i < redistribution.steps.size(); ++i) {
    const Step& step = redistribution.steps[i];
    view.step = &step;
    if (crosses && step.mesh == dst_mesh.name) view.dst_mesh = &dst_mesh;
    const Counted counted = recount(view);
    if (!counted.wrong.empty()) return WrongFigure{i, counted.wrong};
    const auto wrong = [&](const char* what, int64_t said, int64_t is) {
      return WrongFigure{i, numbers(what, said, "counted from the states it is", is)};
    };
    if (counted.wire_bytes && *counted.wire_bytes != step.wire_bytes)
      return wrong("wire_bytes", step.wire_bytes, *counted.wire_bytes);
    if (counted.peak_bytes && *counted.peak_bytes != step.peak_bytes)
      return wrong("peak_bytes", step.peak_bytes, *counted.peak_bytes);
    const int64_t said_ns = ns_of_ps(step.predicted_ps);
    if (counted.ps && ns_of_ps(*counted.ps) != said_ns)
      return wrong("predicted_ns", said_ns, ns_of_ps(*counted.ps));
    if (counted.least_ps && ns_of_ps(*counted.least_ps) > said_ns)
      return WrongFigure{i,
                         numbers("predicted_ns", said_ns, "counted from the states it is at least",
                                 ns_of_ps(*counted.least_ps))};
    if (counted.most_ps && ns_of_ps(*counted.most_ps) < said_ns)
      return WrongFigure{i,
                         numbers("predicted_ns", said_ns, "counted from the states it is at most",
                                 ns_of_ps(*counted.most_ps))};
    figures.ps = figures.ps && counted.ps ? std::optional(saturating_add(*figures.ps, *counted.ps))
                                          : std::nullopt;
    if (!counted.left_out.empty()) {
      figures.left_out.push_back("step " + std::to_string(i) + " (" + to_text(step.op) +
                                 "): " + counted.left_out);
    }
    view.src_mesh = view.dst_mesh;
    view.before = &step.state;
  }
  if (!figures.ps || ns_of_ps(*figures.ps) == ns_of_ps(redistribution.totals.predicted_ps))
    return std::nullopt;
  return WrongFigure{std::nullopt, numbers("its total of predicted_ns",
                                           ns_of_ps(redistribution.totals.predicted_ps),
                                           "counted from its states it is", ns_of_ps(*figures.ps))};
}

namespace {

// Without a limit of its own a searched plan passes no state that is larger than both its ends.
std::optional<WrongFigure> check_states_on_the_way(const Plan& plan,
                                                   const PlannedRedistribution& redistribution) {
  const Request& request = redistribution.request;
  const Mesh& src_mesh = plan.meshes.meshes[request.src_mesh];
  const std::vector<int64_t> src_sizes = mesh_shape(src_mesh);
  const std::vector<int64_t> dst_sizes = mesh_shape(plan.meshes.meshes[request.dst_mesh]);
  const int64_t ends = std::max(largest_bytes(request.src, request.tensor, src_sizes),
                                largest_bytes(redistribution.dst, request.tensor, dst_sizes));
  for (size_t i = 0; i < redistribution.steps.size(); ++i) {
    const Step& step = redistribution.steps[i];
    const bool at_src = step.mesh.empty() || step.mesh == src_mesh.name;
    const int64_t bytes = largest_bytes(step.state, request.tensor, at_src ? src_sizes : dst_sizes);
    if (bytes <= ends) continue;
    return WrongFigure{i,
                       numbers("its box in bytes", bytes,
                               "max_memory_bytes is 0, and the larger end of the plan has", ends)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<WrongFigure> check_options(const Plan& plan,
                                         const PlannedRedistribution& redistribution) {
  const PlanOptions& options = plan.options;
  const bool searched = redistribution.planner == PlannerKind::optimal;
  if (searched && options.max_memory_bytes == 0) {
    if (auto wrong = check_states_on_the_way(plan, redistribution)) return wrong;
  }
  for (size_t i = 0; i < redistribution.steps.size(); ++i) {
    const Step& step = redistribution.steps[i];
    if (options.max_memory_bytes > 0 && step.peak_bytes > options.max_memory_bytes) {
      return WrongFigure{i, numbers("peak_bytes", step.peak_bytes, "max_memory_bytes allows",
                                    options.max_memory_bytes)};
    }
    if (redistribution.rules == Rules::dtensor && step.op == Op::exchange) {
      return WrongFigure{i, "the dtensor rules have no exchange"};
    }
    if (!searched && !options.merge && step.merged > 1)
      return WrongFigure{i, numbers("merged", step.merged, "the options say not to merge, so", 1)};
    if (options.groups != GroupPolicy::declared || step.op == Op::exchange || step.group.empty())
      continue;
    const auto group = std::find_if(plan.groups.begin(), plan.groups.end(),
                                    [&](const PlanGroup& g) { return g.id == step.group; });
    if (group != plan.groups.end() && is_declared_layout(plan.meshes, *group)) continue;
    return WrongFigure{i, "it runs on group '" + step.group +
                              "', which no mesh declares, and only declared groups are allowed"};
  }
  return std::nullopt;
}

namespace {

// `room`: predicted less bound. A gap stands where something was left out, and is all of the room
// but where the search ended with a bound of its own.
Problem check_gap(const PlannedRedistribution& redistribution, int64_t room) {
  const int64_t gap = ns_of_ps(redistribution.proven_gap_ps);
  const Shortcuts& shortcuts = redistribution.shortcuts;
  if (shortcuts.none() || redistribution.planner != PlannerKind::optimal) {
    if (gap == 0 && shortcuts.none()) return std::nullopt;
    return "its " + numbers("proven_gap_ns", gap, "as nothing was left out it should be", 0);
  }
  Shortcuts work_alone;
  work_alone.add(Shortcut::work_budget);
  const bool bounded = shortcuts == work_alone && gap > 0 && gap <= room;
  if (bounded || (gap == room && gap > 0)) return std::nullopt;
  return "its " +
         numbers("proven_gap_ns", gap, "its predicted_ns less its lower_bound_ns is", room);
}

}  // namespace

bool has_gap_of_its_own(const PlannedRedistribution& redistribution) {
  return redistribution.proven_gap_ps > 0 && ns_of_ps(redistribution.proven_gap_ps) !=
                                                 ns_of_ps(redistribution.totals.predicted_ps) -
                                                     ns_of_ps(redistribution.totals.lower_bound_ps);
}

Problem check_bounds(const PlannedRedistribution& redistribution) {
  const Totals& totals = redistribution.totals;
  const auto above = [](const char* bound, int64_t least, const char* total,
                        int64_t is) -> Problem {
    if (least <= is) return std::nullopt;
    return "its " + numbers(bound, least,
                            ("above its own total of " + std::string(total) + ",").c_str(), is);
  };
  if (auto problem =
          above("lower_bound_bytes", totals.lower_bound_bytes, "wire_bytes", totals.wire_bytes))
    return problem;
  const int64_t least = ns_of_ps(totals.lower_bound_ps);
  const int64_t predicted = ns_of_ps(totals.predicted_ps);
  if (auto problem = above("lower_bound_ns", least, "predicted_ns", predicted)) return problem;
  return check_gap(redistribution, predicted - least);
}

std::string out_of_range(const std::string& place, const char* what, int64_t is,
                         const std::string& range) {
  return "topology, " + place + ": " + what + " is " + std::to_string(is) + ", expected " + range;
}

Problem check_protocols(const Topology& topology) {
  for (const Protocol& protocol : topology.protocols) {
    const std::string place = "protocol '" + protocol.name + "'";
    const auto levels = std::ssize(protocol.levels);
    if (protocol.levels.size() != topology.levels.size())
      return out_of_range(place, "levels", levels, std::to_string(topology.levels.size()));
    for (const int64_t bytes : {protocol.near_bytes, protocol.most_bytes}) {
      if (bytes < 0) return out_of_range(place, "limit of bytes", bytes, "at least 0");
    }
    if (protocol.base_ns < 0) return out_of_range(place, "base_ns", protocol.base_ns, "at least 0");
    for (const ProtocolLevel& level : protocol.levels) {
      for (const int64_t ns : {level.hop_ns, level.tree_ns}) {
        if (ns < 0) return out_of_range(place, "time of a hop", ns, "at least 0");
      }
      for (const int64_t share : {level.share, level.tree_share, level.far_share}) {
        if (share < 1 || share > whole_share)
          return out_of_range(place, "share", share, "1 to " + std::to_string(whole_share));
      }
    }
  }
  return std::nullopt;
}

Problem check_topology_numbers(const Topology& topology) {
  if (topology.levels.empty() || topology.levels.size() > most_levels) {
    return "topology: " + std::to_string(topology.levels.size()) + " levels, expected 1 to " +
           std::to_string(most_levels);
  }
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const TopologyLevel& level = topology.levels[l];
    const std::string place = "level " + std::to_string(l);
    const int64_t inside = l == 0 ? 1 : topology.levels[l - 1].ranks;
    if (level.ranks < inside)
      return out_of_range(place, "ranks", level.ranks, "at least " + std::to_string(inside));
    if (level.mb_per_s < 1) return out_of_range(place, "mb_per_s", level.mb_per_s, "at least 1");
    if (level.latency_ns < 0)
      return out_of_range(place, "latency_ns", level.latency_ns, "at least 0");
    if (level.per_peer_ns < 0)
      return out_of_range(place, "per_peer_ns", level.per_peer_ns, "at least 0");
    if (level.exchange_percent < 1 || level.exchange_percent > 100) {
      return out_of_range(place, "exchange_percent", level.exchange_percent, "1 to 100");
    }
    if (level.peer_mb_per_s < 0)
      return out_of_range(place, "peer_mb_per_s", level.peer_mb_per_s, "at least 0");
    if (level.peer_bytes < 0)
      return out_of_range(place, "peer_bytes", level.peer_bytes, "at least 0");
    if (level.near_bytes < 0)
      return out_of_range(place, "near_bytes", level.near_bytes, "at least 0");
    if (level.near_bytes > 0 && level.far_mb_per_s < 1)
      return out_of_range(place, "far_mb_per_s", level.far_mb_per_s, "at least 1");
    if (level.switch_mb_per_s < 0)
      return out_of_range(place, "switch_mb_per_s", level.switch_mb_per_s, "at least 0");
  }
  if (topology.copy_mb_per_s < 0)
    return out_of_range("copies", "copy_mb_per_s", topology.copy_mb_per_s, "at least 0");
  if (auto problem = check_protocols(topology)) return problem;
  for (size_t t = 0; t < topology.tables.size(); ++t) {
    const MeasuredTable& table = topology.tables[t];
    const std::string place = "table " + std::to_string(t);
    if (table.level < 0 || table.level >= std::ssize(topology.levels)) {
      return out_of_range(place, "level", table.level,
                          "below " + std::to_string(topology.levels.size()));
    }
    if (table.ranks < 2) return out_of_range(place, "ranks", table.ranks, "at least 2");
    for (size_t i = 0; i < table.points.size(); ++i) {
      const auto [bytes, ns] = table.points[i];
      const auto [least_bytes, least_ns] =
          i == 0 ? std::pair<int64_t, int64_t>{1, 0} : table.points[i - 1];
      if (bytes < least_bytes + (i == 0 ? 0 : 1))
        return out_of_range(place, "bytes", bytes, "ascending points");
      if (ns < least_ns) return out_of_range(place, "time", ns, "times that never fall");
    }
  }
  return std::nullopt;
}

Problem check_names(const Plan& plan) {
  std::unordered_set<std::string_view> ids;
  ids.reserve(plan.redistributions.size());
  for (const PlannedRedistribution& redistribution : plan.redistributions) {
    if (redistribution.request.id.empty()) return "a redistribution has an empty id";
    if (!ids.insert(redistribution.request.id).second)
      return "two redistributions are called '" + redistribution.request.id + "'";
    if (redistribution.request.count < 1) {
      return "redistribution '" + redistribution.request.id +
             "': " + numbers("count", redistribution.request.count, "expected at least", 1);
    }
  }
  for (const Flatten& flatten : plan.meshes.flattens) {
    const std::string name = "flattened '" + flatten.name + "'";
    const auto index = find_mesh(plan.meshes, flatten.of);
    if (!index) return name + " is of mesh '" + flatten.of + "', which the plan lacks";
    const Mesh& mesh = plan.meshes.meshes[*index];
    std::vector<size_t> dims;
    for (const std::string& dim : flatten.dims) {
      const auto at = find_dim(mesh, dim);
      if (!at) return name + " is over '" + dim + "', which mesh '" + mesh.name + "' lacks";
      dims.push_back(*at);
    }
    const Layout layout = group_layout(mesh, dims);
    if (layout != flatten.layout) {
      return name + " has layout " + to_text(flatten.layout) + " where its dims have " +
             to_text(layout);
    }
    if (mesh.universe != flatten.universe)
      return name + " is of mesh '" + flatten.of + "', which is in another universe";
  }
  return std::nullopt;
}

namespace {

// The times of a file, added up by what they are of.
struct FileTimes {
  RoundedSum predicted;
  RoundedSum bound;
  int64_t exact = 0;
  bool all_counted = true;
  void add(int64_t predicted_ps, int64_t bound_ps, int64_t count, std::optional<int64_t> counted) {
    predicted.add(ns_of_ps(predicted_ps), count);
    bound.add(ns_of_ps(bound_ps), count);
    all_counted = all_counted && counted;
    if (counted) exact = saturating_add(exact, saturating_mul(*counted, count));
  }
};

// What the file may say that ranks must receive.
struct LeastBytes {
  int64_t least = 0;
  int64_t most = 0;
};

// Of a bundle the tensors of one member at least, and at most those of all of them, each member's
// on the same rank: no more than it moves.
LeastBytes least_bytes_of_file(const Plan& plan) {
  LeastBytes bytes;
  const auto bytes_of = [](const PlannedRedistribution& r) {
    return saturating_mul(r.totals.lower_bound_bytes, r.request.count);
  };
  const std::vector<bool> in_bundle = bundled(plan);
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    if (in_bundle[i]) continue;
    bytes.least = saturating_add(bytes.least, bytes_of(plan.redistributions[i]));
    bytes.most = saturating_add(bytes.most, bytes_of(plan.redistributions[i]));
  }
  for (const PlannedBundle& bundle : plan.bundles) {
    int64_t one = 0;
    int64_t all = 0;
    for (const size_t at : bundle.request.members) {
      one = std::max(one, bytes_of(plan.redistributions[at]));
      all = saturating_add(all, bytes_of(plan.redistributions[at]));
    }
    const int64_t wire = bundle.totals.wire_bytes;
    const int64_t count = bundle.request.count;
    bytes.least = saturating_add(bytes.least, saturating_mul(std::min(one, wire), count));
    bytes.most = saturating_add(bytes.most, saturating_mul(std::min(all, wire), count));
  }
  return bytes;
}

}  // namespace

Problem check_file_times(const Plan& plan, const CountedTimes& ps, const CountedTimes& bundle_ps) {
  FileTimes times;
  const std::vector<bool> in_bundle = bundled(plan);
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    if (in_bundle[i]) continue;
    const PlannedRedistribution& redistribution = plan.redistributions[i];
    times.add(redistribution.totals.predicted_ps, redistribution.totals.lower_bound_ps,
              redistribution.request.count, ps[i]);
  }
  for (size_t b = 0; b < plan.bundles.size(); ++b) {
    const PlannedBundle& bundle = plan.bundles[b];
    const int64_t count = bundle.request.count;
    times.add(bundle.totals.predicted_ps, bundle.totals.lower_bound_ps, count, bundle_ps[b]);
  }
  const auto wrong = [](const char* what, int64_t said, int64_t is) {
    return "the file's total of " + numbers(what, said, "its redistributions have", is);
  };
  const int64_t said = ns_of_ps(plan.totals.predicted_ps);
  const int64_t exact = ns_of_ps(times.exact);
  if (times.all_counted && said != exact) return wrong("predicted_ns", said, exact);
  if (!times.all_counted && !times.predicted.allows(said))
    return wrong("predicted_ns", said, times.predicted.most);
  const LeastBytes bytes = least_bytes_of_file(plan);
  if (plan.totals.lower_bound_bytes < bytes.least)
    return wrong("lower_bound_bytes", plan.totals.lower_bound_bytes, bytes.least);
  if (plan.totals.lower_bound_bytes > bytes.most)
    return wrong("lower_bound_bytes", plan.totals.lower_bound_bytes, bytes.most);
  const int64_t least = ns_of_ps(plan.totals.lower_bound_ps);
  if (!times.bound.allows(least)) return wrong("lower_bound_ns", least, times.bound.most);
  return std::nullopt;
}

}  // namespace meshplan::verification
