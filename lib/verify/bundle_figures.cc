#include "verify/bundle_figures.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/int_math.h"
#include "verify/bundle_memory.h"
#include "verify/bundle_ranks.h"
#include "verify/bundle_traffic.h"
#include "verify/rank_load.h"

namespace meshplan::verification {
namespace {

struct RoundFigures {
  int64_t wire = 0;
  int64_t staging = 0;
  int64_t messages = 0;
  TimeRange time;
};

Problem differs(const std::string& place, const char* what, int64_t said, int64_t is) {
  if (said == is) return std::nullopt;
  return place + what + " is " + std::to_string(said) + ", counted from its parts it is " +
         std::to_string(is);
}

// Nanoseconds, as a file has them.
Problem time_differs(const std::string& place, int64_t said_ps, const TimeRange& time) {
  const int64_t said = ns_of_ps(said_ps);
  const int64_t least = ns_of_ps(time.least_ps);
  const int64_t most = ns_of_ps(time.most_ps);
  if (least == most) return differs(place, "predicted_ns", said, least);
  if (said >= least && said <= most) return std::nullopt;
  return place + "predicted_ns is " + std::to_string(said) + ", counted from its parts it is " +
         (said < least ? "at least " : "at most ") + std::to_string(said < least ? least : most);
}

Problem exceeds(const std::string& place, const char* what, int64_t is, const char* limit,
                int64_t most) {
  if (is <= most) return std::nullopt;
  return place + what + " is " + std::to_string(is) + ", " + limit + " allows " +
         std::to_string(most);
}

// The ranks of any of them, each once.
std::vector<uint32_t> ranks_in(const std::set<const Slots*>& slots) {
  std::vector<uint32_t> ranks;
  for (const Slots* these : slots)
    ranks.insert(ranks.end(), these->ranks.begin(), these->ranks.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

class Counter {
 public:
  Counter(const BundleView& view, const BundleRanks& ranks, const std::vector<BoxLife>& lives,
          WorkLeft& work)
      : view_(view),
        ranks_(ranks),
        work_(work),
        traffic_(view, ranks, work),
        round_load_(ranks.size(), ranks.levels()),
        wave_load_(ranks.size(), ranks.levels()),
        memory_(view, lives, traffic_, ranks) {}

  BundleFigures count() {
    BundleFigures figures;
    const std::vector<size_t> order = in_order_of_waves();
    for (size_t i = 0; i < order.size() && !figures.problem && !refused_ && !work_.used_up();) {
      (void)work_.take(std::ssize(ranks_));
      figures.problem = count_wave(order, i, figures.left_out);
    }
    if (!figures.problem && !work_.used_up()) figures.problem = check_totals();
    // What was not counted to the end is not wrong.
    figures.refused = work_.used_up() || refused_;
    if (figures.refused) figures.problem.reset();
    if (total_.least_ps == total_.most_ps) figures.ps = total_.least_ps;
    return figures;
  }

 private:
  [[nodiscard]] const BundleRound& round_at(size_t round) const {
    return view_.bundle->rounds[round];
  }
  [[nodiscard]] bool is_exchange(size_t round) const { return round_at(round).op == Op::exchange; }
  [[nodiscard]] size_t kind_of(const RoundPart& part) const {
    return view_.kind[view_.place.at(part.member)];
  }

  [[nodiscard]] std::vector<size_t> in_order_of_waves() const {
    std::vector<size_t> order(view_.wave.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return view_.wave[a] < view_.wave[b]; });
    return order;
  }

  // What its collectives take one after another, whose ranks take part, and the levels on which
  // ranks of a group meet.
  struct Together {
    TimeRange time;
    std::set<uint32_t> ranks;
    std::set<size_t> levels;
  };

  // All rounds of the wave that begins at `i`, which is left behind.
  Problem count_wave(const std::vector<size_t>& order, size_t& i,
                     std::vector<std::string>& left_out) {
    const int64_t wave = view_.wave[order[i]];
    wave_load_.clear();
    Together collectives;
    memory_.go_to(wave);
    for (; i < order.size() && view_.wave[order[i]] == wave; ++i) {
      auto problem = is_exchange(order[i]) ? count_exchange(order[i])
                                           : count_collective(order[i], collectives, left_out);
      if (problem || refused_ || work_.used_up()) return problem;
    }
    const int64_t apart = time_of(wave_load_.most()).least_ps;
    const int64_t behind = time_of(wave_load_.most_over(collectives.levels, [&](uint32_t rank) {
                             return collectives.ranks.count(rank);
                           })).least_ps;
    const auto with = [&](int64_t ps) { return std::max(apart, saturating_add(ps, behind)); };
    add_time({with(collectives.time.least_ps), with(collectives.time.most_ps)});
    memory_.add_packed(wave_load_);
    return std::nullopt;
  }

  // Adds it to the wave's load.
  Problem count_exchange(size_t round) {
    if (!add_parts(round)) return std::nullopt;
    const MostLoad most = round_load_.most();
    const RoundFigures is{most.received, most.packed, most.messages, time_of(most)};
    if (auto problem = check_round(round, is)) return problem;
    (void)work_.take(static_cast<int64_t>(round_load_.touched().size() * ranks_.levels()));
    wave_load_.add(round_load_);
    return std::nullopt;
  }

  // False: it cannot be counted.
  bool add_parts(size_t round) {
    round_load_.clear();
    BundleTraffic::Together together;
    for (const RoundPart& part : round_at(round).parts) {
      NumberedTraffic piece = traffic_.piece(kind_of(part), part);
      if (piece.traffic == nullptr) return !(refused_ = true);
      if (!work_.take(std::ssize(piece.traffic->shares))) return false;
      round_load_.add(*piece.traffic, part.to - part.from);
      together.push_back(std::move(piece));
    }
    std::sort(together.begin(), together.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    together.erase(std::unique(together.begin(), together.end(),
                               [](const auto& a, const auto& b) { return a.number == b.number; }),
                   together.end());
    round_load_.add(traffic_.peers(together));
    return !work_.used_up();
  }

  [[nodiscard]] TimeRange time_of(const MostLoad& most) const {
    const int64_t ps =
        time_ps(view_.plan->topology, most.traffic, true, saturating_mul(2, most.received));
    return {ps, ps};
  }

  // Adds it to the wave's collectives.
  Problem count_collective(size_t round, Together& wave, std::vector<std::string>& left_out) {
    RoundFigures is;
    Moved all;
    std::set<const Slots*> slots;  // whose ranks take part, each once, be it in several views
    const std::vector<RoundPart>& parts = round_at(round).parts;
    for (const RoundPart& part : parts) {
      const BundleStep& step = view_.steps[kind_of(part)][part.step];
      slots.insert(&ranks_.slots(*step.from, step.across));
      const Collective& one = traffic_.collective(kind_of(part), static_cast<size_t>(part.step));
      const auto add = [&](int64_t& sum, int64_t more) {
        sum = saturating_add(sum, saturating_mul(more, part.to - part.from));
      };
      add(is.wire, one.wire);
      add(is.staging, one.staging);
      add(is.messages, 2);
      add(all.whole, one.moved.whole);
      add(all.piece, one.moved.piece);
      add(all.copied, one.moved.copied);
    }
    (void)work_.take(std::ssize(parts));
    const auto first = static_cast<size_t>(parts.front().step);
    const StepView one = step_view(view_, kind_of(parts.front()), first);
    const auto time = time_of_groups(one, all);
    const auto levels = levels_of_groups(one);
    if (!time || !levels) {
      refused_ = true;
      return std::nullopt;
    }
    is.time = *time;
    if (auto problem = check_round(round, is)) return problem;
    if (time->least_ps != time->most_ps) {
      left_out.push_back(place_of_round(round) +
                         ": predicted_ns, which lies between two points of a measured table");
    }
    wave.time.least_ps = saturating_add(wave.time.least_ps, time->least_ps);
    wave.time.most_ps = saturating_add(wave.time.most_ps, time->most_ps);
    wave.levels.insert(levels->begin(), levels->end());
    const std::vector<uint32_t> packing = ranks_in(slots);
    memory_.add_packed(packing, is.staging);
    wave.ranks.insert(packing.begin(), packing.end());
    return std::nullopt;
  }

  void add_time(const TimeRange& time) {
    total_.least_ps = saturating_add(total_.least_ps, time.least_ps);
    total_.most_ps = saturating_add(total_.most_ps, time.most_ps);
  }

  Problem check_round(size_t at, const RoundFigures& is) {
    const BundleRound& round = round_at(at);
    const std::string place = place_of_round(at) + ": ";
    if (auto problem = differs(place, "wire_bytes", round.wire_bytes, is.wire)) return problem;
    if (auto problem = differs(place, "staging_bytes", round.staging_bytes, is.staging))
      return problem;
    if (auto problem = differs(place, "messages", round.messages, is.messages)) return problem;
    if (auto problem = time_differs(place, round.predicted_ps, is.time)) return problem;
    wire_ = saturating_add(wire_, is.wire);
    messages_ = saturating_add(messages_, is.messages);
    return exceeds(place, "messages", is.messages, "max_messages",
                   view_.bundle->request.max_messages);
  }

  [[nodiscard]] Problem check_totals() const {
    const BundleTotals& said = view_.bundle->totals;
    const std::string place = "its total of ";
    if (auto problem = differs(place, "wire_bytes", said.wire_bytes, wire_)) return problem;
    if (auto problem = differs(place, "messages", said.messages, messages_)) return problem;
    if (auto problem = differs(place, "staging_bytes", said.staging_bytes, memory_.staging()))
      return problem;
    if (auto problem = differs(place, "peak_bytes", said.peak_bytes, memory_.peak()))
      return problem;
    if (auto problem = time_differs(place, said.predicted_ps, total_)) return problem;
    const int64_t most = view_.bundle->request.max_staging_bytes;
    return most == 0
               ? std::nullopt
               : exceeds(place, "staging_bytes", memory_.staging(), "max_staging_bytes", most);
  }

  const BundleView& view_;
  const BundleRanks& ranks_;
  WorkLeft& work_;
  BundleTraffic traffic_;
  RankLoad round_load_;
  RankLoad wave_load_;
  BundleMemory memory_;
  int64_t wire_ = 0;
  int64_t messages_ = 0;
  TimeRange total_;
  bool refused_ = false;
};

}  // namespace

BundleFigures count_bundle(const BundleView& view, const std::vector<BoxLife>& lives,
                           WorkLeft& work) {
  const auto ranks = BundleRanks::of(view);
  if (!ranks) {
    BundleFigures refused;
    refused.refused = true;
    return refused;
  }
  return Counter(view, *ranks, lives, work).count();
}

}  // namespace meshplan::verification
