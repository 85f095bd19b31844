#include "verify/bundle_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/int_math.h"

namespace meshplan::verification {
namespace {

// One part of a member, and where it stands.
struct PartRun {
  const RoundPart* part = nullptr;
  size_t round = 0;
  int64_t wave = 0;
};

// What runs one step of the tensors at hand: the pieces so far, by number.
struct StepRuns {
  size_t step = 0;
  bool two_phases = false;  // its odd pieces need the even ones before them
  bool behind = false;      // of two phases: right behind steps that go in pieces
  int64_t pieces = 0;       // of those that run; 0: none does
  std::map<int64_t, const PartRun*> runs;
  std::multiset<int64_t> waves;
  bool touched = true;
};

// A box between two steps: of the tensors since `begin`. It exists from the first wave of the one
// communicating step to the last wave of the other.
struct OpenBox {
  size_t step = 0;     // which leaves it
  size_t written = 0;  // index of the communicating step that writes it, or runs in the same wave
  size_t used = 0;     // and of the one that uses it last
  int64_t begin = 0;
  int64_t first = -1;
  int64_t last = -1;
};

// Which rounds a round waits for, by way of others too: of every stream all up to some round.
class Waits {
 public:
  // Nothing is known where there is not enough work left.
  Waits(const std::vector<BundleRound>& rounds, WorkLeft& work) {
    std::unordered_map<int64_t, size_t> number;
    for (const BundleRound& round : rounds)
      stream_.push_back(number.try_emplace(round.stream, number.size()).first->second);
    streams_ = number.size();
    if (!work.take(saturating_mul(32 * std::ssize(rounds), std::ssize(number)))) return;
    upto_.assign(rounds.size() * streams_, 0);
    std::vector<size_t> last(streams_, 0);  // round so far, by stream; counted from 1, 0: none
    for (size_t r = 0; r < rounds.size(); ++r) {
      if (!work.take(saturating_mul(std::ssize(rounds[r].after), std::ssize(number)))) return;
      for (const size_t before : rounds[r].after) wait_for(r, before);
      size_t& own = last[stream_[r]];
      if (own > 0) wait_for(r, own - 1);
      own = r + 1;
    }
  }

  [[nodiscard]] bool include(size_t round, size_t before) const {
    return upto_[round * streams_ + stream_[before]] > before;
  }

 private:
  void wait_for(size_t round, size_t before) {
    for (size_t s = 0; s < streams_; ++s) {
      uint32_t& upto = upto_[round * streams_ + s];
      upto = std::max(upto, upto_[before * streams_ + s]);
    }
    uint32_t& own = upto_[round * streams_ + stream_[before]];
    own = std::max(own, static_cast<uint32_t>(before + 1));
  }

  std::vector<size_t> stream_;  // its number, by round
  size_t streams_ = 0;
  std::vector<uint32_t> upto_;  // by round and stream: the rounds waited for are below it
};

class MemberOrder {
 public:
  MemberOrder(const BundleView& view, size_t at, const Waits& waits, WorkLeft& work,
              std::vector<BoxLife>& lives)
      : view_(view), at_(at), waits_(waits), work_(work), lives_(lives) {
    const std::vector<BundleStep>& steps = view.steps_of(at);
    for (size_t s = 0; s < steps.size(); ++s) {
      if (!steps[s].communicates) continue;
      steps_.emplace_back().step = s;
      steps_.back().two_phases = steps[s].step->phases == 2;
      steps_.back().behind = phases_go_behind(view, view.kind[at], s);
    }
    list_boxes(steps);
  }

  // From the first tensor on: at each border parts end and begin.
  Problem check(std::vector<PartRun>& runs) {
    const int64_t count = view_.member(at_).request.count;
    std::vector<const PartRun*> begins;
    std::vector<const PartRun*> ends;
    for (const PartRun& run : runs) {
      begins.push_back(&run);
      ends.push_back(&run);
    }
    std::stable_sort(begins.begin(), begins.end(), [](const PartRun* a, const PartRun* b) {
      return a->part->from < b->part->from;
    });
    std::stable_sort(ends.begin(), ends.end(),
                     [](const PartRun* a, const PartRun* b) { return a->part->to < b->part->to; });
    size_t begun = 0;
    size_t ended = 0;
    for (int64_t tensor = 0; tensor < count;) {
      for (; ended < ends.size() && ends[ended]->part->to == tensor; ++ended) remove(*ends[ended]);
      const size_t first = begun;
      for (; begun < begins.size() && begins[begun]->part->from == tensor; ++begun) {
        if (auto problem = add(*begins[begun], tensor)) return problem;
      }
      if (auto problem = check_tensor(tensor)) return problem;
      for (size_t i = first; i < begun; ++i) {
        if (auto problem = check_waves(*begins[i], tensor)) return problem;
        if (auto problem = check_phases(*begins[i], tensor)) return problem;
      }
      update_boxes(tensor);
      if (work_.used_up()) return std::nullopt;
      int64_t next = count;
      if (ended < ends.size()) next = std::min(next, ends[ended]->part->to);
      if (begun < begins.size()) next = std::min(next, begins[begun]->part->from);
      tensor = next;
    }
    for (OpenBox& box : boxes_) close(box, count);
    return std::nullopt;
  }

 private:
  void list_boxes(const std::vector<BundleStep>& steps) {
    uses_.resize(steps_.size());
    if (steps_.empty()) return;
    // The communicating step that each runs with: itself, the next one, or the last.
    std::vector<size_t> with(steps.size());
    size_t next = steps_.size();
    for (size_t s = steps.size(); s-- > 0;) {
      if (steps[s].communicates) --next;
      with[s] = std::min(next, steps_.size() - 1);
    }
    for (size_t s = 0; s + 1 < steps.size(); ++s) {
      OpenBox box;
      box.step = s;
      box.written = with[s];
      box.used = with[s + 1];
      uses_[box.written].push_back(boxes_.size());
      if (box.used != box.written) uses_[box.used].push_back(boxes_.size());
      boxes_.push_back(box);
    }
  }

  [[nodiscard]] StepRuns& runs_of(const PartRun& run) {
    const auto step = static_cast<size_t>(run.part->step);
    return *std::lower_bound(steps_.begin(), steps_.end(), step,
                             [](const StepRuns& a, size_t b) { return a.step < b; });
  }
  [[nodiscard]] std::string tensor_of(const StepRuns& runs, int64_t tensor) const {
    return "tensor " + std::to_string(tensor) + " of '" + view_.member(at_).request.id +
           "', step " + std::to_string(runs.step);
  }

  void remove(const PartRun& run) {
    StepRuns& of = runs_of(run);
    of.runs.erase(run.part->piece);
    of.waves.erase(of.waves.find(run.wave));
    of.touched = true;
    (void)work_.take(1);
  }

  Problem add(const PartRun& run, int64_t tensor) {
    StepRuns& of = runs_of(run);
    const RoundPart& part = *run.part;
    if (of.runs.empty()) of.pieces = part.pieces;
    if (of.pieces != part.pieces) {
      return place_of_round(run.round) + ": " + tensor_of(of, tensor) + " goes in " +
             std::to_string(part.pieces) + " pieces where " +
             place_of_round(of.runs.begin()->second->round) + " has it in " +
             std::to_string(of.pieces);
    }
    const auto [there, added] = of.runs.emplace(part.piece, &run);
    if (!added) {
      return place_of_round(run.round) + ": " + tensor_of(of, tensor) + ", piece " +
             std::to_string(part.piece) + " runs in " + place_of_round(there->second->round) +
             " already";
    }
    of.waves.insert(run.wave);
    of.touched = true;
    (void)work_.take(1);
    return std::nullopt;
  }

  // Whether all pieces of all steps run.
  Problem check_tensor(int64_t tensor) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const StepRuns& of = steps_[i];
      const auto there = std::ssize(of.runs);
      if (there == 0) return tensor_of(of, tensor) + " runs in no round, expected each piece once";
      if (there != of.pieces) {
        return tensor_of(of, tensor) + " runs in " + std::to_string(there) + " pieces of " +
               std::to_string(of.pieces);
      }
      if (i > 0 && of.pieces > 1 && !of.two_phases && of.pieces != steps_[i - 1].pieces) {
        return tensor_of(of, tensor) + " goes in " + std::to_string(of.pieces) + " pieces where " +
               "step " + std::to_string(steps_[i - 1].step) + " goes in " +
               std::to_string(steps_[i - 1].pieces);
      }
    }
    if (!steps_.empty()) (void)work_.take(std::ssize(steps_));
    return std::nullopt;
  }

  // Piece by piece behind a step that goes in the same pieces, of two phases each for one of that
  // step: how many. 0: behind all of it.
  [[nodiscard]] static int64_t pieces_each(const StepRuns& before, const StepRuns& after) {
    if (after.two_phases) return after.behind && after.pieces == 2 * before.pieces ? 2 : 0;
    return after.pieces > 1 && after.pieces == before.pieces ? 1 : 0;
  }

  // What is passed on must be there.
  Problem check_phases(const PartRun& run, int64_t tensor) {
    const StepRuns& of = runs_of(run);
    const int64_t piece = run.part->piece;
    if (!of.two_phases) return std::nullopt;
    const PartRun& fetching = *of.runs.at(piece - piece % 2);
    const PartRun& passing = *of.runs.at(piece - piece % 2 + 1);
    return check_waits(passing, fetching, tensor);
  }

  // What runs needs what came before, and what comes behind may need it. Of several too early ones
  // those furthest off are told.
  Problem check_waves(const PartRun& run, int64_t tensor) {
    const auto at = static_cast<size_t>(&runs_of(run) - steps_.data());
    if (at > 0) {
      const StepRuns& before = steps_[at - 1];
      const int64_t each = pieces_each(before, steps_[at]);
      if (each > 0) {
        const PartRun& needed = *before.runs.at(run.part->piece / each);
        if (auto problem = check_waits(run, needed, tensor)) return problem;
      } else {
        (void)work_.take(std::ssize(before.runs));
        const PartRun* worst = nullptr;
        for (const auto& [piece, needed] : before.runs) {
          if (waits_.include(run.round, needed->round)) continue;
          if (worst == nullptr || needed->wave > worst->wave) worst = needed;
        }
        if (worst != nullptr) return check_waits(run, *worst, tensor);
      }
    }
    if (at + 1 < steps_.size()) {
      const StepRuns& after = steps_[at + 1];
      // Of two phases the first piece of either: what is passed on is later than what is fetched.
      const int64_t each = pieces_each(steps_[at], after);
      if (each > 0) return check_waits(*after.runs.at(run.part->piece * each), run, tensor);
      (void)work_.take(std::ssize(after.runs));
      const PartRun* worst = nullptr;
      for (const auto& [piece, needing] : after.runs) {
        if (waits_.include(needing->round, run.round)) continue;
        if (worst == nullptr || needing->wave < worst->wave) worst = needing;
      }
      if (worst != nullptr) return check_waits(*worst, run, tensor);
    }
    return std::nullopt;
  }

  // Waves may come out right where nothing waits: the round must wait, by `after` and by streams.
  [[nodiscard]] Problem check_waits(const PartRun& run, const PartRun& needed, int64_t tensor) {
    if (waits_.include(run.round, needed.round)) return std::nullopt;
    const std::string what = place_of_round(run.round) + ": " + tensor_of(runs_of(run), tensor);
    const std::string step = "step " + std::to_string(runs_of(needed).step);
    if (needed.wave >= run.wave) {
      return what + " runs in wave " + std::to_string(run.wave) + ", what it needs of " + step +
             " in wave " + std::to_string(needed.wave) + ", expected an earlier one";
    }
    return what + " needs " + step + " of " + place_of_round(needed.round) +
           ", which it does not wait for: expected that \"after\" and streams lead there";
  }

  void update_boxes(int64_t tensor) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!steps_[i].touched) continue;
      (void)work_.take(std::ssize(uses_[i]));
      for (const size_t b : uses_[i]) {
        OpenBox& box = boxes_[b];
        const int64_t first = *steps_[box.written].waves.begin();
        const int64_t last = *steps_[box.used].waves.rbegin();
        if (first == box.first && last == box.last) continue;
        close(box, tensor);
        box.begin = tensor;
        box.first = first;
        box.last = last;
      }
    }
    for (StepRuns& of : steps_) of.touched = false;
  }

  void close(const OpenBox& box, int64_t tensor) {
    if (box.first < 0 || tensor == box.begin) return;
    lives_.push_back({view_.kind[at_], box.step, box.first, box.last, tensor - box.begin});
  }

  const BundleView& view_;
  size_t at_;
  const Waits& waits_;
  WorkLeft& work_;
  std::vector<BoxLife>& lives_;
  std::vector<StepRuns> steps_;  // those that communicate
  std::vector<OpenBox> boxes_;
  std::vector<std::vector<size_t>> uses_;  // by communicating step, the boxes that its waves decide
};

}  // namespace

Problem check_order(const BundleView& view, WorkLeft& work, std::vector<BoxLife>& lives) {
  const std::vector<BundleRound>& rounds = view.bundle->rounds;
  std::vector<std::vector<PartRun>> by_member(view.kind.size());
  for (size_t r = 0; r < rounds.size(); ++r) {
    for (const RoundPart& part : rounds[r].parts)
      by_member[view.place.at(part.member)].push_back({&part, r, view.wave[r]});
  }
  const Waits waits(rounds, work);
  if (work.used_up()) return std::nullopt;
  for (size_t at = 0; at < by_member.size(); ++at) {
    if (auto problem = MemberOrder(view, at, waits, work, lives).check(by_member[at]))
      return problem;
    if (work.used_up()) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
