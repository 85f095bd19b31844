#include "cost/wave_times.h"

#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "cost/round_time.h"
#include "plan/firsts.h"
#include "transfer/listed_transfers.h"
#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

class WaveTimer {
 public:
  WaveTimer(const Plan& plan, const PlannedBundle& bundle)
      : plan_(plan),
        bundle_(bundle),
        ranks_(make_rank_table(plan.meshes)),
        counter_(ranks_, plan.topology),
        transfers_(plan, ranks_, [this](size_t member) {
          return held_boxes_of(plan_, plan_.redistributions[member], ranks_);
        }) {
    const std::vector<size_t>& members = bundle.request.members;
    const std::vector<size_t> firsts = firsts_of(plan.redistributions, members);
    for (size_t m = 0; m < members.size(); ++m) first_of_.emplace(members[m], members[firsts[m]]);
  }

  // Of rounds that run at the same time.
  Result<int64_t> time_of(const std::vector<size_t>& rounds) {
    if (rounds.size() == 1) return bundle_.rounds[rounds.front()].predicted_ps;
    RoundLoad exchanges(counter_.ranks(), counter_.levels());
    WaveCollectives collectives;
    for (const size_t r : rounds) {
      if (bundle_.rounds[r].op != Op::exchange) {
        add_collective(bundle_.rounds[r], collectives);
        continue;
      }
      const auto load = load_of(r);
      if (!load) return load.error();
      exchanges.add(*load);
    }
    return wave_ps(plan_.topology, exchanges, collectives);
  }

 private:
  void add_collective(const BundleRound& round, WaveCollectives& to) const {
    // All are of one group, which several meshes may have.
    std::set<std::pair<size_t, bool>> seen;
    for (const RoundPart& part : round.parts) {
      const PlannedRedistribution& r = plan_.redistributions[part.member];
      const auto step = static_cast<size_t>(part.step);
      const bool crosses = r.request.src_mesh != r.request.dst_mesh;
      const int64_t ps = seen.empty() ? round.predicted_ps : 0;
      if (!seen.insert({mesh_of_collective(plan_, r, step), crosses}).second) continue;
      to.add(ps, ranks_of_collective(plan_, ranks_, r, step), levels_of_collective(plan_, r, step),
             counter_.ranks());
    }
  }

  // Members that repeat one another exchange the same.
  Result<RoundLoad> load_of(size_t index) {
    std::map<std::array<int64_t, 4>, int64_t> tensors;  // by member, step, piece and pieces
    for (const RoundPart& part : bundle_.rounds[index].parts) {
      const auto first = first_of_.find(part.member);
      const size_t member = first == first_of_.end() ? part.member : first->second;
      add_up(tensors[{static_cast<int64_t>(member), part.step, part.piece, part.pieces}],
             part.to - part.from);
    }
    for (const auto& [what, times] : tensors) {
      const auto member = static_cast<size_t>(what[0]);
      const auto step = static_cast<size_t>(what[1]);
      const auto made = transfers_.of_part({member, what[1], 0, 1, what[2], what[3]},
                                           "round " + std::to_string(index));
      if (!made) return made.error();
      const std::vector<HeldBoxes>& held = transfers_.held(member);
      counter_.add(pairs_of(**made, held[step], held[step + 1]),
                   wire_element_bytes(plan_.redistributions[member], step), times);
    }
    return counter_.take();
  }

  const Plan& plan_;
  const PlannedBundle& bundle_;
  RankTable ranks_;
  RoundCounter counter_;
  MemberTransfers transfers_;
  std::unordered_map<size_t, size_t> first_of_;  // of the members
};

}  // namespace

Result<std::vector<int64_t>> wave_times_ps(const Plan& plan, const PlannedBundle& bundle) {
  const std::vector<int64_t> wave_of = waves_of(bundle.rounds);
  std::vector<std::vector<size_t>> in_wave;
  for (size_t r = 0; r < wave_of.size(); ++r) {
    const auto wave = static_cast<size_t>(wave_of[r]);
    if (in_wave.size() <= wave) in_wave.resize(wave + 1);
    in_wave[wave].push_back(r);
  }
  WaveTimer timer(plan, bundle);
  std::vector<int64_t> times;
  for (const std::vector<size_t>& rounds : in_wave) {
    const auto ps = timer.time_of(rounds);
    if (!ps) return ps.error();
    times.push_back(*ps);
  }
  return times;
}

}  // namespace meshplan
