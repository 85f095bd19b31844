#include "planner/bundle_rounds.h"

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "planner/bundle_buckets.h"

namespace meshplan {
namespace {

// A tensor by itself has so many buckets at least: its steps overlap with each other only.
constexpr int64_t least_alone = 8;
// Kinds of more tensors share buckets: so many rounds are of no use to anyone.
constexpr int64_t most_alone = 512;

// A kind by itself goes through as many more buckets, in percent, where that is evenly.
constexpr int64_t more_for_even_percent = 25;

// The first of so many buckets, then the sum of the shares up to each.
std::vector<int64_t> ends_of_shares(int64_t buckets, const std::vector<int64_t>& shares) {
  std::vector<int64_t> ends{0};
  for (int64_t b = 0; b < buckets; ++b)
    ends.push_back(ends.back() + (shares.empty() ? 1 : shares[static_cast<size_t>(b)]));
  return ends;
}

// A bucket of kinds that also run collectives, step by step: those of one op and group together.
class StepByStep {
 public:
  StepByStep(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
             const RoundLimits& limits)
      : kinds_(kinds), chosen_(chosen), limits_(limits) {}

  // Its steps [begin, end), as far as there are.
  void add(const KindShare& share, size_t begin, size_t end) {
    const Way& way = kinds_[share.kind].ways[chosen_[share.kind]];
    for (size_t s = begin; s < std::min(end, way.steps.size()); ++s) {
      const Step& step = way.planned.steps[way.steps[s].index];
      launches_[{s, key_of(step)}].push_back(share);
    }
  }

  void take(std::vector<KindRound>& rounds) {
    for (const auto& [key, shares] : launches_) {
      const auto& [step, launch] = key;
      const int64_t most = std::get<Op>(launch) == Op::exchange
                               ? limits_.tensors_a_round
                               : std::min(limits_.tensors_a_round, limits_.tensors_a_launch);
      KindRound round;
      int64_t room = most;
      int64_t messages = 0;
      const auto flush = [&] {
        if (!round.parts.empty()) rounds.push_back(std::move(round));
        round = {};
        room = most;
        messages = 0;
      };
      for (const KindShare& share : shares) {
        const int64_t more = kinds_[share.kind].ways[chosen_[share.kind]].steps[step].messages;
        if (more > limits_.messages_a_round - messages) flush();
        messages += more;
        for (int64_t from = share.tensors.lo; from < share.tensors.hi;) {
          if (room == 0) {
            flush();
            messages = more;
          }
          const int64_t to = from + std::min(room, share.tensors.hi - from);
          round.parts.push_back({share.kind, step, from, to, 0, 1});
          room -= to - from;
          from = to;
        }
      }
      flush();
    }
  }

 private:
  const std::vector<Kind>& kinds_;
  const std::vector<size_t>& chosen_;
  const RoundLimits& limits_;
  std::map<std::pair<size_t, LaunchKey>, std::vector<KindShare>> launches_;  // by step
};

// What each bucket has of kinds that also run collectives.
std::vector<std::vector<KindShare>> shares_behind(const std::vector<Kind>& kinds,
                                                  const std::vector<size_t>& chosen,
                                                  const RoundLimits& limits) {
  const int64_t buckets =
      std::min({limits.buckets, limits.buckets_behind, most_behind(kinds, chosen)});
  std::vector<std::vector<KindShare>> all;
  for (int64_t b = 0; b < buckets; ++b) {
    all.emplace_back();
    int64_t next = 0;  // where kinds of fewer tensors than buckets begin
    for (size_t k = 0; k < kinds.size(); ++k) {
      const Way& way = kinds[k].ways[chosen[k]];
      if (way.steps.empty() || way.only_exchanges()) continue;
      const int64_t tensors = kinds[k].tensors;
      const int64_t at = (b + buckets - next) % buckets;
      if (tensors < buckets) next = (next + tensors) % buckets;
      const KindShare share{k,
                            {floor_div(saturating_mul(tensors, at), buckets),
                             floor_div(saturating_mul(tensors, at + 1), buckets)}};
      if (share.tensors.lo < share.tensors.hi) all.back().push_back(share);
    }
  }
  return all;
}

// Joins what follows one another.
void add_share(const KindShare& share, std::vector<KindShare>& shares) {
  for (KindShare& known : shares) {
    if (known.kind != share.kind || known.tensors.hi != share.tensors.lo) continue;
    known.tensors.hi = share.tensors.hi;
    return;
  }
  shares.push_back(share);
}

// Bucket by bucket; exchanges at first for several buckets.
void add_behind(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                const RoundLimits& limits, std::vector<KindRound>& rounds) {
  const auto buckets = shares_behind(kinds, chosen, limits);
  const auto ahead = static_cast<size_t>(limits.buckets_ahead);
  const auto first_of_rest = [&](const KindShare& share) -> size_t {
    const Way& way = kinds[share.kind].ways[chosen[share.kind]];
    return ahead > 1 && way.steps.front().op == Op::exchange ? 1 : 0;
  };
  for (size_t b = 0; b < buckets.size(); ++b) {
    if (ahead > 1 && b % ahead == 0) {
      std::vector<KindShare> brought;
      for (size_t i = b; i < std::min(b + ahead, buckets.size()); ++i) {
        for (const KindShare& share : buckets[i]) add_share(share, brought);
      }
      StepByStep exchanges(kinds, chosen, limits);
      for (const KindShare& share : brought) exchanges.add(share, 0, first_of_rest(share));
      exchanges.take(rounds);
    }
    StepByStep bucket(kinds, chosen, limits);
    for (const KindShare& share : buckets[b]) bucket.add(share, first_of_rest(share), SIZE_MAX);
    bucket.take(rounds);
  }
}

// What goes through buckets together, one section behind the other.
struct Section {
  std::vector<KindShare> shares;
  int64_t bytes = 0;   // of all tensors
  bool alone = false;  // whether it begins when nothing of the section before is on the way
};

// Into how many buckets each section goes. Tensors by themselves go into as large ones as the
// others; where buckets are alike so do kinds that do not share them, one kind into more where it
// goes evenly.
class SectionBuckets {
 public:
  SectionBuckets(const std::vector<Section>& sections, const RoundLimits& limits)
      : limits_(limits), several_(sections.size() > 1) {
    for (const Section& section : sections) {
      all_ = saturating_add(all_, section.bytes);
      largest_ = std::max(largest_, section.alone ? 0 : section.bytes);
    }
  }
  [[nodiscard]] int64_t of(const Section& section) const {
    if (!several_) return limits_.buckets;
    if (limits_.by_messages() && !limits_.alike && !section.alone) return limits_.buckets;
    if (section.alone || !limits_.by_messages()) {
      const int64_t bytes = std::max<int64_t>(1, ceil_div(all_, limits_.buckets));
      return std::max(section.alone ? least_alone : 1, floor_div(section.bytes, bytes));
    }
    const int64_t bytes = std::max<int64_t>(1, ceil_div(largest_, limits_.buckets));
    const int64_t buckets = std::max<int64_t>(1, ceil_div(section.bytes, bytes));
    if (section.shares.size() > 1) return buckets;
    const Interval& tensors = section.shares.front().tensors;
    const int64_t even = evenly(buckets, tensors.hi - tensors.lo);
    return even * 100 <= buckets * (100 + more_for_even_percent) ? even : buckets;
  }

 private:
  const RoundLimits& limits_;
  bool several_;
  int64_t all_ = 0;  // bytes
  int64_t largest_ = 0;
};

// Of a rank in a step that goes whole.
int64_t most_messages(const Way& way) {
  int64_t most = 0;
  for (const WayStep& step : way.steps) most = std::max(most, step.messages);
  return most;
}

std::vector<Section> sections_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                 const RoundLimits& limits) {
  std::vector<Section> sections(1);
  std::vector<Section> behind;
  int64_t messages = 0;  // of the last section's kinds
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Way& way = kinds[k].ways[chosen[k]];
    if (way.steps.empty() || (!way.only_exchanges() && !limits.beside)) continue;
    const int64_t each = tensor_bytes(way);
    if (may_go_alone(kinds[k]) && bytes_between(way) > limits.most_between) {
      for (int64_t t = 0; t < kinds[k].tensors; ++t)
        behind.push_back({{{k, {t, t + 1}}}, each, true});
      continue;
    }
    const int64_t more = most_messages(way);
    if (more > limits.messages_a_round - messages) {
      sections.emplace_back();
      messages = 0;
    }
    messages += more;
    Section& section = sections.back();
    section.shares.push_back({k, {0, kinds[k].tensors}});
    section.bytes = saturating_add(section.bytes, saturating_mul(kinds[k].tensors, each));
  }
  sections.insert(sections.end(), behind.begin(), behind.end());
  std::erase_if(sections, [](const Section& section) { return section.shares.empty(); });
  return sections;
}

// The last of the first `count` rounds in every stream but 0, whose rounds the next one of stream 0
// waits for anyway.
std::vector<size_t> ends_of(const std::vector<KindRound>& rounds, size_t count) {
  std::map<int64_t, size_t> last;
  for (size_t i = 0; i < count; ++i) last[rounds[i].stream] = i;
  std::vector<size_t> ends;
  for (const auto& [stream, round] : last) {
    if (stream != 0) ends.push_back(round);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

}  // namespace

int64_t evenly(int64_t buckets, int64_t tensors) {
  if (buckets >= tensors) return saturating_mul(ceil_div(buckets, tensors), tensors);
  while (tensors % buckets != 0) ++buckets;
  return buckets;
}

bool may_go_alone(const Kind& kind) { return kind.tensors <= most_alone; }

int64_t bytes_between(const Way& way) {
  if (way.between.empty()) return 0;
  int64_t most = 0;
  for (size_t rank = 0; rank < way.between.front().size(); ++rank) {
    int64_t bytes = 0;
    for (const auto& boxes : way.between) bytes = saturating_add(bytes, boxes[rank]);
    most = std::max(most, bytes);
  }
  return most;
}

int64_t bytes_of(const Kind& kind, size_t way) {
  return saturating_mul(kind.tensors, tensor_bytes(kind.ways[way]));
}

int64_t least_messages(const Way& way) {
  if (!way.only_exchanges()) return most_messages(way);  // they go whole
  int64_t most = 0;
  for (const WayStep& step : way.steps) {
    // By length, which are few: the last pair, and messages by rank. Cuts are sorted by pair.
    struct Together {
      int32_t from = -1;
      int32_t to = -1;
      std::map<int32_t, int64_t> messages;
    };
    std::map<int64_t, Together> by_length;
    for (const StepCut& cut : step.cuts) {
      if (cut.lo > 0 || cut.hi <= 0 || cut.slice == 0) continue;
      Together& together = by_length[cut.length];
      if (together.from == cut.from && together.to == cut.to) continue;
      together.from = cut.from;
      together.to = cut.to;
      for (const int32_t rank : {cut.from, cut.to})
        most = std::max(most, ++together.messages[rank]);
    }
  }
  return most;
}

std::vector<KindRound> make_rounds(const std::vector<Kind>& kinds,
                                   const std::vector<size_t>& chosen, const RoundLimits& limits) {
  std::vector<KindRound> rounds;
  const std::vector<Section> sections = sections_of(kinds, chosen, limits);
  const SectionBuckets section_buckets(sections, limits);
  const std::vector<int64_t> even;
  for (const Section& section : sections) {
    const int64_t buckets = section_buckets.of(section);
    const size_t first = rounds.size();
    auto ends = ends_of_shares(buckets, buckets == limits.buckets ? limits.shares : even);
    for (KindRound& round :
         rounds_of_buckets(kinds, chosen, limits, section.shares, std::move(ends))) {
      for (size_t& before : round.after) before += first;
      rounds.push_back(std::move(round));
    }
    if (section.alone && first > 0) rounds[first].after = ends_of(rounds, first);
  }
  const size_t overlapping = rounds.size();
  if (!limits.beside) add_behind(kinds, chosen, limits, rounds);
  // A launch behind the buckets waits for all of them.
  if (overlapping > 0 && rounds.size() > overlapping)
    rounds[overlapping].after = ends_of(rounds, overlapping);
  return rounds;
}

int64_t most_behind(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen) {
  int64_t most = 0;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Way& way = kinds[k].ways[chosen[k]];
    if (!way.steps.empty() && !way.only_exchanges()) most = std::max(most, kinds[k].tensors);
  }
  return most;
}

int64_t launches_of_collectives(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                const RoundLimits& limits) {
  int64_t rounds = 0;
  const int64_t most = std::min(limits.tensors_a_round, limits.tensors_a_launch);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Way& way = kinds[k].ways[chosen[k]];
    if (way.only_exchanges()) continue;
    const auto collectives = std::count_if(way.steps.begin(), way.steps.end(),
                                           [](const WayStep& s) { return s.op != Op::exchange; });
    rounds = saturating_add(rounds, saturating_mul(collectives, floor_div(kinds[k].tensors, most)));
  }
  return rounds;
}

std::vector<RoundPart> parts_of(const KindPart& part, const Kind& kind, const Way& way,
                                const Plan& plan) {
  std::vector<RoundPart> parts;
  const auto behind = std::upper_bound(kind.firsts.begin(), kind.firsts.end(), part.from);
  for (size_t m = behind - kind.firsts.begin() - 1;
       m < kind.members.size() && kind.firsts[m] < part.to; ++m) {
    const size_t member = kind.members[m];
    const int64_t first = kind.firsts[m];
    const int64_t count = plan.redistributions[member].request.count;
    const int64_t from = std::max(part.from, first);
    const int64_t to = std::min(part.to, saturating_add(first, count));
    if (from >= to) continue;
    const WayStep& step = way.steps[part.step];
    RoundPart& out = parts.emplace_back();
    out = {member,     static_cast<int64_t>(step.index), from - first, to - first, part.piece,
           part.pieces};
    if (step.phase > 0) out.piece = 2 * part.piece + step.phase - 1;
    if (step.phase > 0) out.pieces = 2 * part.pieces;
  }
  return parts;
}

}  // namespace meshplan
