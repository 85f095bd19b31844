// Whether a bundle moves its data right, found the plain way: tensor by tensor, every element
// followed from rank to rank. Nothing here is quick, and nothing is shared with the library but
// boxes and coordinates.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "verify/exchange_oracle.h"

namespace meshplan::test {

class BundleFollower {
 public:
  BundleFollower(const Plan& plan, const PlannedBundle& bundle) : plan_(plan), bundle_(bundle) {}

 protected:
  struct OracleStep {
    const Mesh* from = nullptr;
    const Mesh* to = nullptr;
    const State* before = nullptr;
    const Step* step = nullptr;
    bool across = false;
    bool talks = false;
  };
  // A box that goes to a rank, or that it keeps, by global ids.
  struct Sent {
    int64_t from = 0;
    int64_t to = 0;
    Box box;
    size_t contribution = 0;
  };
  struct OracleMember {
    const PlannedRedistribution* planned = nullptr;
    std::vector<OracleStep> steps;
    std::map<size_t, std::vector<Sent>> sent;  // of exchanges
    std::map<size_t, size_t> contributions;
  };
  using Runs = std::map<std::pair<size_t, int64_t>, size_t>;  // step and piece -> round
  // Elements that a rank has in a buffer: which contributions to each.
  using Buffer = std::map<int64_t, std::map<int64_t, uint64_t>>;

  [[nodiscard]] const Request& request_of(size_t member) const { return plan_.redistributions[member].request; }

  std::string find_problem() {
    if (auto problem = read_members(); !problem.empty()) return problem;
    for (size_t r = 0; r < bundle_.rounds.size(); ++r) {
      if (auto problem = look_at_round(r); !problem.empty()) return "round " + std::to_string(r) + ": " + problem;
    }
    set_waves();
    for (const auto& [at, member] : members_) {
      for (int64_t t = 0; t < request_of(at).count; ++t) {
        if (auto problem = follow(at, t); !problem.empty())
          return "tensor " + std::to_string(t) + " of " + request_of(at).id + ": " + problem;
      }
    }
    return "";
  }

  std::string read_members() {
    const BundleRequest& request = bundle_.request;
    if (request.count < 1 || request.max_messages < 1 || request.max_staging_bytes < 0) return "limits";
    int64_t tensors = 0;
    for (size_t i = 0; i < request.members.size(); ++i) {
      if (request.members[i] >= plan_.redistributions.size()) return "no such member";
      if (i > 0 && request.members[i] <= request.members[i - 1]) return "order of members";
      OracleMember& member = members_[request.members[i]];
      member.planned = &plan_.redistributions[request.members[i]];
      tensors += member.planned->request.count;
      list_steps(member);
      for (const OracleStep& step : member.steps) {
        if (step.step->phases != 1) return "two phases";
      }
    }
    return tensors == bundle_.tensors ? "" : "tensors";
  }

  void list_steps(OracleMember& member) const {
    const Request& request = member.planned->request;
    const bool across = request.src_mesh != request.dst_mesh;
    const Mesh* at = &plan_.meshes.meshes[request.src_mesh];
    const State* before = &request.src;
    for (const Step& step : member.planned->steps) {
      const Mesh* from = at;
      if (across && step.mesh == plan_.meshes.meshes[request.dst_mesh].name) at = &plan_.meshes.meshes[request.dst_mesh];
      int64_t group = 1;
      for (const SubAxis& sub_axis : step.mesh_dims) group *= sub_axis.size;
      const bool talks = !is_local(step.op) && (step.op == Op::exchange || group > 1);
      member.steps.push_back({from, at, before, &step, across, talks});
      before = &step.state;
    }
    for (size_t s = 0; s < member.steps.size(); ++s) {
      if (member.steps[s].step->op == Op::exchange) list_sent(member, s);
    }
  }

  void list_sent(OracleMember& member, size_t s) const {
    const OracleStep& step = member.steps[s];
    verification::ExchangeView view;
    view.topology = &plan_.topology;
    view.src_mesh = step.from;
    view.dst_mesh = step.to;
    view.shape = member.planned->request.tensor.shape;
    view.src = step.before;
    view.dst = &step.step->state;
    view.whole_pieces = step.step->whole_pieces;
    std::map<std::vector<int64_t>, size_t> contributions;
    for (int64_t copy = 0; copy < (step.across ? 1 : mesh_copies(*step.from)); ++copy) {
      const std::vector<OracleRank> ranks = oracle_ranks(view, copy);
      const auto contribution_of = [&](size_t rank) {
        return contributions.emplace(ranks[rank].reduced, contributions.size()).first->second;
      };
      for (const OracleMessage& m : oracle_messages(view, ranks))
        member.sent[s].push_back({ranks[m.from].id, ranks[m.to].id, m.box, contribution_of(m.from)});
      for (size_t r = 0; r < ranks.size(); ++r) {
        if (!ranks[r].holds || !ranks[r].wants) continue;
        const Box kept = intersect(ranks[r].held, ranks[r].wanted);
        if (volume(kept) > 0) member.sent[s].push_back({ranks[r].id, ranks[r].id, kept, contribution_of(r)});
      }
    }
    member.contributions[s] = std::max<size_t>(1, contributions.size());
  }

  [[nodiscard]] bool may_be_cut(const OracleMember& member, size_t step) const {
    if (member.planned->request.tensor.shape.empty()) return false;
    for (size_t s = 0; s <= step; ++s) {
      if (member.steps[s].step->op != Op::exchange || member.steps[s].step->reduce_op) return false;
    }
    return true;
  }

  std::string look_at_round(size_t r) {
    const BundleRound& round = bundle_.rounds[r];
    if (round.stream < 0) return "stream";
    for (size_t i = 0; i < round.after.size(); ++i) {
      if (round.after[i] >= r || (i > 0 && round.after[i] <= round.after[i - 1])) return "after";
    }
    if (round.parts.empty()) return "no parts";
    std::set<std::string> groups;
    std::set<std::vector<SubAxis>> dims;
    for (const RoundPart& part : round.parts) {
      const auto found = members_.find(part.member);
      if (found == members_.end()) return "member";
      const OracleMember& member = found->second;
      const auto steps = static_cast<int64_t>(member.steps.size());
      if (part.step < 0 || part.step >= steps) return "step";
      const OracleStep& step = member.steps[static_cast<size_t>(part.step)];
      if (!step.talks || step.step->op != round.op) return "op";
      if (part.from < 0 || part.from >= part.to || part.to > member.planned->request.count) return "tensors";
      if (part.pieces < 1 || part.piece < 0 || part.piece >= part.pieces) return "piece";
      if (part.pieces > 1 && !may_be_cut(member, static_cast<size_t>(part.step))) return "cut";
      groups.insert(step.step->group);
      dims.insert(step.step->mesh_dims);
    }
    if (round.group != (groups.size() == 1 ? *groups.begin() : "")) return "group";
    if (round.op != Op::exchange && (groups.size() > 1 || dims.size() > 1)) return "collectives";
    return "";
  }

  void set_waves() {
    waves_.clear();
    awaited_.clear();
    for (size_t r = 0; r < bundle_.rounds.size(); ++r) {
      int64_t wave = 0;
      std::set<size_t> awaited;
      for (size_t before = 0; before < r; ++before) {
        const std::vector<size_t>& after = bundle_.rounds[r].after;
        const bool named = std::find(after.begin(), after.end(), before) != after.end();
        if (!named && bundle_.rounds[before].stream != bundle_.rounds[r].stream) continue;
        wave = std::max(wave, waves_[before] + 1);
        awaited.insert(before);
        awaited.insert(awaited_[before].begin(), awaited_[before].end());
      }
      waves_.push_back(wave);
      awaited_.push_back(std::move(awaited));
    }
  }

  // How many later steps that may be cut leave dim d as the first has it, before one does not.
  [[nodiscard]] size_t steps_that_leave(const OracleMember& member, size_t d) const {
    size_t s = 1;
    while (s < member.steps.size() && may_be_cut(member, s) &&
           member.steps[s].step->state.shards[d] == member.steps[0].step->state.shards[d])
      ++s;
    return s - 1;
  }

  // Whether no dim is left by more of them; of those that none leaves only where there are none.
  [[nodiscard]] bool is_steady(const OracleMember& member, size_t d) const {
    const size_t own = steps_that_leave(member, d);
    for (size_t other = 0; other < member.steps[0].step->state.shards.size(); ++other) {
      if (steps_that_leave(member, other) > own) return false;
    }
    return own > 0 || member.steps.size() == 1 || !may_be_cut(member, 1);
  }

  // The part of a box that is its piece: along its longest dim, the lowest of them; of the steady
  // dims where one is 16 wide.
  [[nodiscard]] Box piece_of(const OracleMember& member, const Box& box, int64_t piece, int64_t pieces) const {
    if (pieces == 1) return box;
    std::vector<size_t> wide;
    for (size_t d = 0; d < box.size(); ++d) {
      if (is_steady(member, d) && width(box[d]) >= 16) wide.push_back(d);
    }
    if (wide.empty()) {
      for (size_t d = 0; d < box.size(); ++d) wide.push_back(d);
    }
    size_t along = wide.front();
    for (const size_t d : wide) {
      if (width(box[d]) > width(box[along])) along = d;
    }
    Box part = box;
    for (int64_t i = 0; i <= piece; ++i) {
      part[along].lo = i == 0 ? box[along].lo : part[along].hi;
      part[along].hi = part[along].lo + oracle_part(width(box[along]), pieces, i);
    }
    return part;
  }

  // The row-major numbers of the elements of a box.
  [[nodiscard]] static std::vector<int64_t> elements_of(const Box& box, const std::vector<int64_t>& shape) {
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < volume(box); ++i) {
      const std::vector<int64_t> index = index_at(box, i);
      int64_t number = 0;
      for (size_t d = 0; d < shape.size(); ++d) number = number * shape[d] + index[d];
      elements.push_back(number);
    }
    return elements;
  }

  // One element from rank to rank in a piece of a step.
  struct Hop {
    int64_t from = 0;
    int64_t to = 0;
    int64_t element = 0;
    size_t contribution = 0;
  };
  // Of a later step, an element is of the piece in which its sender got it.
  const std::vector<Hop>& hops(size_t at, size_t step, int64_t piece, int64_t pieces) {
    const auto [found, added] = hops_.try_emplace({at, step, piece, pieces});
    if (!added) return found->second;
    OracleMember& member = members_.at(at);
    const std::vector<int64_t>& shape = member.planned->request.tensor.shape;
    std::set<std::pair<int64_t, int64_t>> got;
    if (step > 0 && pieces > 1) {
      for (const Hop& hop : hops(at, step - 1, piece, pieces)) got.insert({hop.to, hop.element});
    }
    std::vector<Hop> list;
    for (const Sent& sent : member.sent[step]) {
      const Box box = step == 0 ? piece_of(member, sent.box, piece, pieces) : sent.box;
      for (const int64_t e : elements_of(box, shape)) {
        if (step > 0 && pieces > 1 && got.count({sent.from, e}) == 0) continue;
        list.push_back({sent.from, sent.to, e, sent.contribution});
      }
    }
    return hops_[{at, step, piece, pieces}] = std::move(list);
  }

  // The ranks of a mesh that take part, with their boxes of the state.
  [[nodiscard]] std::vector<std::pair<int64_t, Box>> boxes_of(const OracleMember& member, const Mesh& mesh, const State& state) const {
    const Request& request = member.planned->request;
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    std::vector<std::pair<int64_t, Box>> boxes;
    const int64_t copies = request.src_mesh != request.dst_mesh ? 1 : mesh_copies(mesh);
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (int64_t i = 0; i < mesh_size(mesh); ++i) {
        boxes.emplace_back(rank_at(*mesh.universe, position_of(mesh, copy, i)),
                           box_of(state, request.tensor.shape, sizes, coordinates_of(i, sizes)));
      }
    }
    return boxes;
  }

  // Whether the ranks have all of the state's boxes in the buffer, and nothing else.
  [[nodiscard]] bool is_whole(const OracleMember& member, const Mesh& mesh, const State& state, const Buffer& buffer,
                              size_t contributions) const {
    const std::vector<int64_t>& shape = member.planned->request.tensor.shape;
    Buffer whole;
    for (const auto& [id, box] : boxes_of(member, mesh, state)) {
      for (const int64_t e : elements_of(box, shape)) whole[id][e] = (uint64_t{1} << contributions) - 1;
    }
    return whole == buffer;
  }
  [[nodiscard]] Buffer whole_buffer(const OracleMember& member, const Mesh& mesh, const State& state) const {
    Buffer whole;
    for (const auto& [id, box] : boxes_of(member, mesh, state)) {
      for (const int64_t e : elements_of(box, member.planned->request.tensor.shape)) whole[id][e] = 1;
    }
    return whole;
  }

  // Runs one tensor's parts wave by wave.
  std::string follow(size_t at, int64_t tensor) {
    const OracleMember& member = members_.at(at);
    Runs runs;
    std::map<size_t, int64_t> pieces;
    for (size_t r = 0; r < bundle_.rounds.size(); ++r) {
      for (const RoundPart& part : bundle_.rounds[r].parts) {
        if (part.member != at || tensor < part.from || tensor >= part.to) continue;
        const auto step = static_cast<size_t>(part.step);
        if (!pieces.emplace(step, part.pieces).second && pieces[step] != part.pieces) return "two cuts";
        if (!runs.emplace(std::pair{step, part.piece}, r).second) return "runs twice";
      }
    }
    if (auto problem = check_runs(member, runs, pieces); !problem.empty()) return problem;
    return move_elements(at, runs, pieces);
  }

  std::string check_runs(const OracleMember& member, const Runs& runs, std::map<size_t, int64_t>& pieces) const {
    std::optional<size_t> before;
    for (size_t s = 0; s < member.steps.size(); ++s) {
      if (!member.steps[s].talks) continue;
      if (pieces.count(s) == 0) return "does not run";
      for (int64_t i = 0; i < pieces[s]; ++i) {
        if (runs.count({s, i}) == 0) return "a piece does not run";
        if (!before) continue;
        const bool cut = pieces[s] > 1;
        if (cut && pieces[s] != pieces[*before]) return "other pieces";
        for (int64_t j = 0; j < pieces[*before]; ++j) {
          if (cut && i != j) continue;
          if (waves_[runs.at({*before, j})] >= waves_[runs.at({s, i})]) return "too early";
          if (awaited_[runs.at({s, i})].count(runs.at({*before, j})) == 0) return "not awaited";
        }
      }
      before = s;
    }
    return "";
  }

  std::string move_elements(size_t at, const Runs& runs, std::map<size_t, int64_t>& pieces) {
    const OracleMember& member = members_.at(at);
    std::vector<Buffer> buffers(member.steps.size() + 1);
    const Request& request = member.planned->request;
    buffers[0] = whole_buffer(member, plan_.meshes.meshes[request.src_mesh], request.src);
    size_t done = 0;  // local steps up to here
    const auto run_locals = [&](size_t upto) {
      for (; done < upto; ++done) {
        const OracleStep& step = member.steps[done];
        if (!step.talks) buffers[done + 1] = whole_buffer(member, *step.to, step.step->state);
      }
    };
    const int64_t last = waves_.empty() ? 0 : *std::max_element(waves_.begin(), waves_.end());
    for (int64_t wave = 0; wave <= last; ++wave) {
      std::vector<std::pair<size_t, Hop>> arrive;
      for (const auto& [run, round] : runs) {
        if (waves_[round] != wave) continue;
        const auto [s, piece] = run;
        run_locals(s);
        const OracleStep& step = member.steps[s];
        if (step.step->op != Op::exchange) {
          const size_t needed = s == 0 ? 1 : contributions_before(member, s);
          if (!is_whole(member, *step.from, *step.before, buffers[s], needed)) return "a collective lacks elements";
          buffers[s + 1] = whole_buffer(member, *step.to, step.step->state);
          continue;
        }
        const uint64_t whole = (uint64_t{1} << contributions_before(member, s)) - 1;
        for (const Hop& hop : hops(at, s, piece, pieces[s])) {
          if (buffers[s][hop.from][hop.element] != whole) return "a sender lacks an element";
          arrive.emplace_back(s + 1, hop);
        }
      }
      for (const auto& [s, hop] : arrive) {
        uint64_t& there = buffers[s][hop.to][hop.element];
        const uint64_t bit = uint64_t{1} << hop.contribution;
        if ((there & bit) != 0) return "an element arrives twice";
        there |= bit;
      }
    }
    run_locals(member.steps.size());
    for (size_t s = 0; s < member.steps.size(); ++s) {
      const OracleStep& step = member.steps[s];
      if (!is_whole(member, *step.to, step.step->state, buffers[s + 1], contributions_before(member, s + 1)))
        return "an element does not arrive";
    }
    return "";
  }
  // To each element of the buffer that step `s` reads.
  [[nodiscard]] static size_t contributions_before(const OracleMember& member, size_t s) {
    if (s == 0) return 1;
    const auto found = member.contributions.find(s - 1);
    return found == member.contributions.end() ? 1 : found->second;
  }

  const Plan& plan_;
  const PlannedBundle& bundle_;
  std::map<size_t, OracleMember> members_;
  std::vector<int64_t> waves_;
  std::vector<std::set<size_t>> awaited_;  // by round, by way of others too
  std::map<std::tuple<size_t, size_t, int64_t, int64_t>, std::vector<Hop>> hops_;
};

}  // namespace meshplan::test
