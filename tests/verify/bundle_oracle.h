// Whether a bundle is right (bundle_follower.h), and what its figures are, counted tensor by tensor
// with the prices of cost/, which verify does not include.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cost/collective_time.h"
#include "cost/step_figures.h"
#include "transfer/level_map.h"
#include "verify/bundle_follower.h"

namespace meshplan::test {

struct JudgedBundle {
  std::string problem;              // empty: it is right but for its figures
  std::vector<BundleRound> rounds;  // with the figures that they should have
  BundleTotals totals;              // the same; no bound
};

class BundleOracle : private BundleFollower {
 public:
  BundleOracle(const Plan& plan, const PlannedBundle& bundle) : BundleFollower(plan, bundle) {}

  JudgedBundle judge() {
    judged_.rounds = bundle_.rounds;
    judged_.problem = find_problem();
    if (judged_.problem.empty()) count();
    return judged_;
  }

 private:
  [[nodiscard]] int64_t bytes_on_the_way(const OracleMember& member, size_t s) const {
    const Request& request = member.planned->request;
    const bool reduced = member.steps[s].step->reduce_op && request.reduce_dtype;
    return element_bytes(reduced ? *request.reduce_dtype : request.tensor.dtype);
  }

  using Pairs = std::map<std::pair<int64_t, int64_t>, int64_t>;  // bytes, by sender and receiver
  Pairs pairs_of(const BundleRound& round) {
    Pairs pairs;
    for (const RoundPart& part : round.parts) {
      const auto s = static_cast<size_t>(part.step);
      const int64_t bytes = bytes_on_the_way(members_.at(part.member), s);
      for (const Hop& hop : hops(part.member, s, part.piece, part.pieces)) {
        if (hop.from != hop.to) pairs[{hop.from, hop.to}] += bytes * (part.to - part.from);
      }
    }
    return pairs;
  }

  struct Load {
    std::vector<int64_t> in = std::vector<int64_t>(8, 0);  // bytes by level
    std::vector<int64_t> out = in;
    std::vector<int64_t> from = in;  // peers
    std::vector<int64_t> to = in;
  };
  using Loads = std::map<int64_t, Load>;
  void add(Loads& loads, const Pairs& pairs) const {
    for (const auto& [pair, bytes] : pairs) {
      const size_t level = oracle_level(plan_.topology, pair.first, pair.second);
      loads[pair.first].out[level] += bytes;
      loads[pair.first].to[level] += 1;
      loads[pair.second].in[level] += bytes;
      loads[pair.second].from[level] += 1;
    }
  }
  static int64_t sum(const std::vector<int64_t>& list) {
    int64_t all = 0;
    for (const int64_t x : list) all += x;
    return all;
  }
  [[nodiscard]] int64_t time_of(const Loads& loads) const {
    Traffic traffic;
    int64_t received = 0;
    for (const auto& [id, load] : loads) {
      received = std::max(received, sum(load.in));
      for (size_t l = 0; l < plan_.topology.levels.size(); ++l) {
        traffic.bytes[l] = std::max({traffic.bytes[l], load.in[l], load.out[l]});
        traffic.peers[l] = std::max({traffic.peers[l], load.from[l], load.to[l]});
      }
    }
    return traffic_ps(plan_.topology, traffic, Peers::number_and_rate, 2 * received);
  }

  // The collectives of a wave: what they take one after another, their ranks by id, and the levels
  // on which two ranks of a group meet.
  struct Collectives {
    int64_t ps = 0;
    std::set<int64_t> ids;
    std::set<size_t> levels;
  };

  // Groups of the step, rank by rank: those that differ on its mesh dims alone.
  [[nodiscard]] std::set<size_t> levels_of_groups(const OracleStep& step) const {
    const std::vector<int64_t> sizes = mesh_shape(*step.from);
    std::map<std::pair<int64_t, std::vector<int64_t>>, std::vector<int64_t>> groups;  // ids
    const int64_t copies = step.across ? 1 : mesh_copies(*step.from);
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (int64_t i = 0; i < mesh_size(*step.from); ++i) {
        std::vector<int64_t> rest = coordinates_of(i, sizes);
        for (const SubAxis& sub_axis : step.step->mesh_dims) {
          const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
          const int64_t stride = sizes[dim] / sub_axis.before / sub_axis.size;
          rest[dim] -= rest[dim] / stride % sub_axis.size * stride;
        }
        const int64_t position = position_of(*step.from, copy, i);
        groups[{copy, rest}].push_back(rank_at(*step.from->universe, position));
      }
    }
    std::set<size_t> met;
    for (const auto& [where, ids] : groups) {
      for (const int64_t one : ids) {
        for (const int64_t other : ids) {
          if (one != other) met.insert(oracle_level(plan_.topology, one, other));
        }
      }
    }
    return met;
  }

  // What some ranks have over some levels.
  static Loads part_of(const Loads& loads, const Collectives& collectives) {
    Loads part;
    for (const auto& [id, load] : loads) {
      if (collectives.ids.count(id) == 0) continue;
      Load& own = part[id] = load;
      for (size_t l = 0; l < own.in.size(); ++l) {
        if (collectives.levels.count(l) == 0) own.in[l] = own.out[l] = own.from[l] = own.to[l] = 0;
      }
    }
    return part;
  }

  void count_collective(BundleRound& round, std::map<int64_t, int64_t>& packed, Collectives& collectives) {
    CollectiveBytes all{round.op, 0, 0, 0};
    const OracleStep* first = nullptr;
    for (const RoundPart& part : round.parts) {
      const OracleMember& member = members_.at(part.member);
      const OracleStep& step = member.steps[static_cast<size_t>(part.step)];
      if (first == nullptr) first = &step;
      int64_t group = 1;
      for (const SubAxis& sub_axis : step.step->mesh_dims) group *= sub_axis.size;
      const StepFigures one =
          step_figures(*step.before, step.step->state, member.planned->request.tensor.shape, LevelMap(*step.from, plan_.topology), round.op,
                       group, bytes_on_the_way(member, static_cast<size_t>(part.step)));
      for (int64_t t = part.from; t < part.to; ++t) {
        round.wire_bytes += one.wire;
        round.staging_bytes += one.staging;
        round.messages += 2;
        all.whole += one.bytes.whole;
        all.piece += one.bytes.piece;
        all.copied += one.bytes.copied;
      }
    }
    std::set<int64_t> of_round;
    for (const RoundPart& part : round.parts) {
      const OracleMember& member = members_.at(part.member);
      const OracleStep& step = member.steps[static_cast<size_t>(part.step)];
      for (const auto& [id, box] : boxes_of(member, *step.from, *step.before)) {
        of_round.insert(id);
        collectives.ids.insert(id);
      }
      collectives.levels.merge(levels_of_groups(step));
    }
    for (const int64_t id : of_round) packed[id] += round.staging_bytes;
    std::string tier;
    const LevelMap levels(*first->from, plan_.topology);
    round.predicted_ps = finer_ps(plan_.topology, levels.shapes(first->step->mesh_dims), all, tier);
    collectives.ps += round.predicted_ps;
  }

  void count() {
    BundleTotals& totals = judged_.totals;
    totals.rounds = static_cast<int64_t>(bundle_.rounds.size());
    const std::map<int64_t, int64_t> ends = bytes_at_ends();
    for (const auto& [id, bytes] : ends) totals.peak_bytes = std::max(totals.peak_bytes, bytes);
    const int64_t last = waves_.empty() ? -1 : *std::max_element(waves_.begin(), waves_.end());
    for (int64_t wave = 0; wave <= last; ++wave) {
      Loads all;
      Collectives collectives;
      std::map<int64_t, int64_t> packed;
      for (size_t r = 0; r < waves_.size(); ++r) {
        if (waves_[r] != wave) continue;
        BundleRound& round = judged_.rounds[r];
        round.wire_bytes = round.staging_bytes = round.messages = round.predicted_ps = 0;
        if (round.op != Op::exchange) {
          count_collective(round, packed, collectives);
        } else {
          const Pairs pairs = pairs_of(round);
          Loads loads;
          add(loads, pairs);
          add(all, pairs);
          for (const auto& [id, load] : loads) {
            const int64_t both = sum(load.in) + sum(load.out);
            packed[id] += both;
            round.wire_bytes = std::max(round.wire_bytes, sum(load.in));
            round.staging_bytes = std::max(round.staging_bytes, both);
            round.messages = std::max(round.messages, sum(load.from) + sum(load.to));
          }
          round.predicted_ps = time_of(loads);
        }
        totals.wire_bytes += round.wire_bytes;
        totals.messages += round.messages;
      }
      totals.predicted_ps +=
          collectives.ids.empty() ? time_of(all) : std::max(time_of(all), collectives.ps + time_of(part_of(all, collectives)));
      add_boxes(wave, packed);
      for (const auto& [id, bytes] : packed) {
        totals.staging_bytes = std::max(totals.staging_bytes, bytes);
        const auto end = ends.find(id);
        totals.peak_bytes = std::max(totals.peak_bytes, bytes + (end == ends.end() ? 0 : end->second));
      }
    }
  }

  [[nodiscard]] std::map<int64_t, int64_t> bytes_at_ends() const {
    std::map<int64_t, int64_t> ends;
    for (const auto& [at, member] : members_) {
      const Request& request = request_of(at);
      const int64_t each = element_bytes(request.tensor.dtype) * request.count;
      const std::vector<Mesh>& meshes = plan_.meshes.meshes;
      for (const auto& [id, box] : boxes_of(member, meshes[request.src_mesh], request.src)) ends[id] += volume(box) * each;
      for (const auto& [id, box] : boxes_of(member, meshes[request.dst_mesh], member.planned->dst)) ends[id] += volume(box) * each;
    }
    return ends;
  }

  // The boxes between steps that exist in the wave, tensor by tensor.
  void add_boxes(int64_t wave, std::map<int64_t, int64_t>& bytes) const {
    for (const auto& [at, member] : members_) {
      for (int64_t t = 0; t < request_of(at).count; ++t) {
        // First and last wave of every step.
        std::vector<std::pair<int64_t, int64_t>> runs(member.steps.size(), {-1, -1});
        for (size_t r = 0; r < bundle_.rounds.size(); ++r) {
          for (const RoundPart& part : bundle_.rounds[r].parts) {
            if (part.member != at || t < part.from || t >= part.to) continue;
            auto& [first, last] = runs[static_cast<size_t>(part.step)];
            first = first < 0 ? waves_[r] : std::min(first, waves_[r]);
            last = std::max(last, waves_[r]);
          }
        }
        for (size_t s = member.steps.size(); s-- > 0;) {
          if (!member.steps[s].talks && s + 1 < runs.size()) runs[s] = {runs[s + 1].first, runs[s + 1].first};
        }
        for (size_t s = 1; s < member.steps.size(); ++s) {
          if (runs[s].first < 0) runs[s] = runs[s - 1];
        }
        for (size_t s = 0; s + 1 < member.steps.size(); ++s) {
          if (runs[s].first < 0 || wave < runs[s].first || wave > runs[s + 1].second) continue;
          const OracleStep& step = member.steps[s];
          for (const auto& [id, box] : boxes_of(member, *step.to, step.step->state))
            bytes[id] += volume(box) * element_bytes(request_of(at).tensor.dtype);
        }
      }
    }
  }

  JudgedBundle judged_;
};

// What one of its members must bring to some rank, the most of any.
inline int64_t most_of_a_member(const Plan& plan, const PlannedBundle& bundle) {
  int64_t most = 0;
  for (const size_t at : bundle.request.members) {
    const PlannedRedistribution& member = plan.redistributions[at];
    most = std::max(most, member.totals.lower_bound_bytes * member.request.count);
  }
  return std::min(most, bundle.totals.wire_bytes);
}

// Gives a bundle the figures that it should have, with a bound of half its time. What is wrong with
// it; empty where nothing is.
inline std::string fill_figures(const Plan& plan, PlannedBundle& bundle) {
  JudgedBundle judged = BundleOracle(plan, bundle).judge();
  if (!judged.problem.empty()) return judged.problem;
  bundle.rounds = std::move(judged.rounds);
  bundle.totals = judged.totals;
  bundle.totals.lower_bound_bytes = most_of_a_member(plan, bundle);
  bundle.totals.lower_bound_ps = bundle.totals.predicted_ps / 2;
  bundle.proven_gap_ps = 1000 * (ns_of_ps(bundle.totals.predicted_ps) - ns_of_ps(bundle.totals.lower_bound_ps));
  bundle.alone_ps = bundle.totals.predicted_ps;
  return "";
}

// Whether everything that it says is so.
inline bool is_right(const Plan& plan, const PlannedBundle& bundle) {
  const JudgedBundle judged = BundleOracle(plan, bundle).judge();
  if (!judged.problem.empty()) return false;
  for (size_t r = 0; r < bundle.rounds.size(); ++r) {
    const BundleRound& is = judged.rounds[r];
    const BundleRound& said = bundle.rounds[r];
    if (is.wire_bytes != said.wire_bytes || is.staging_bytes != said.staging_bytes || is.messages != said.messages ||
        ns_of_ps(is.predicted_ps) != ns_of_ps(said.predicted_ps) || is.messages > bundle.request.max_messages)
      return false;
  }
  const BundleTotals& is = judged.totals;
  const BundleTotals& said = bundle.totals;
  const int64_t limit = bundle.request.max_staging_bytes;
  const int64_t predicted = ns_of_ps(said.predicted_ps);
  const int64_t least = ns_of_ps(said.lower_bound_ps);
  return is.rounds == said.rounds && is.wire_bytes == said.wire_bytes && is.staging_bytes == said.staging_bytes &&
         is.peak_bytes == said.peak_bytes && is.messages == said.messages && ns_of_ps(is.predicted_ps) == predicted && least >= 0 &&
         least <= predicted && ns_of_ps(bundle.proven_gap_ps) == predicted - least && ns_of_ps(bundle.alone_ps) >= least &&
         (limit == 0 || is.staging_bytes <= limit);
}

}  // namespace meshplan::test
