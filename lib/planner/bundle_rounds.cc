#include "planner/bundle_rounds.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/int_math.h"
#include "transfer/piece_transfers.h"

namespace meshplan {
namespace {

// A tensor of less than this part of a unit of the buckets' shares is not cut: buckets differ by
// little without.
constexpr int64_t small_parts = 16;
// A kind of less than this part of a unit, all its tensors together, is not spread.
constexpr int64_t smallest_parts = 256;
// Into so many pieces at least a tensor is cut that lies between two buckets.
constexpr int64_t cuts_between = 4;
// A tensor by itself has so many buckets at least: its steps overlap with each other only.
constexpr int64_t least_alone = 8;
// Kinds of more tensors share buckets: so many rounds are of no use to anyone.
constexpr int64_t most_alone = 512;

// Bytes of a tensor of the kind, wherever they lie.
int64_t tensor_bytes(const Way& way) {
  const TensorMeta& tensor = way.planned.request.tensor;
  int64_t bytes = element_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) bytes = saturating_mul(bytes, extent);
  return bytes;
}

// Whether the step that communicates runs piece by piece: of an exchange in two phases both do,
// where no other step is before it.
bool is_cut(const Way& way, size_t step) {
  const WayStep& at = way.steps[step];
  if (at.phase == 0) return goes_in_pieces(way.planned, at.index);
  return at.index == way.steps.front().index && !way.planned.request.tensor.shape.empty();
}

// The pieces of each of so many tensors that are spread over so many units of `unit_bytes`.
int64_t pieces_of(int64_t tensors, const Way& way, int64_t units, int64_t unit_bytes) {
  if (units == 1 || saturating_mul(tensor_bytes(way), small_parts) <= unit_bytes) return 1;
  if (!is_cut(way, 0)) return 1;
  const int64_t each = floor_div(units, tensors);
  if (each * tensors == units) return each;
  return std::max(cuts_between, 2 * (each + 1));
}

// Whether a kind of so many bytes in all goes through one bucket, the first: that takes no longer,
// and the others save its launches, and its messages where those come behind a collective.
bool is_small(int64_t bytes, int64_t bucket_bytes) {
  return saturating_mul(bytes, smallest_parts) <= bucket_bytes;
}

// Tensors [tensors.lo, tensors.hi) of a kind.
struct KindShare {
  size_t kind = 0;
  Interval tensors;
};

// What one launch runs: op, group, and mesh with mesh dims.
using LaunchKey = std::tuple<Op, std::string, std::string>;

LaunchKey key_of(const Step& step) {
  std::string key = step.mesh;
  if (step.op == Op::exchange) return {step.op, step.group, key};
  for (const SubAxis& a : step.mesh_dims) {
    key += ' ' + std::to_string(a.mesh_dim) + ':' + std::to_string(a.before) + 'x' +
           std::to_string(a.size);
  }
  if (step.reduce_op) key += to_text(*step.reduce_op);
  return {step.op, step.group, key};
}

// The first of so many buckets, then the sum of the shares up to each.
std::vector<int64_t> ends_of_shares(int64_t buckets, const std::vector<int64_t>& shares) {
  std::vector<int64_t> ends{0};
  for (int64_t b = 0; b < buckets; ++b)
    ends.push_back(ends.back() + (shares.empty() ? 1 : shares[static_cast<size_t>(b)]));
  return ends;
}

// Rounds of what shares so many buckets: of each step one of all exchanges, and one of all
// collectives that may be launched together.
class Buckets {
 public:
  // `ends`: of the share of each bucket, in units.
  Buckets(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
          const RoundLimits& limits, const std::vector<KindShare>& shares,
          std::vector<int64_t> ends)
      : kinds_(kinds),
        chosen_(chosen),
        tensors_a_launch_(limits.tensors_a_launch),
        beside_(limits.beside),
        buckets_(static_cast<int64_t>(ends.size()) - 1),
        ends_(std::move(ends)) {
    int64_t bytes = 0;
    for (const KindShare& share : shares) bytes = saturating_add(bytes, bytes_of(share));
    unit_bytes_ = floor_div(bytes, ends_.back());
    delay(shares);
    for (const KindShare& share : shares) add(share);
  }

  [[nodiscard]] std::vector<KindRound> take() {
    std::map<std::pair<size_t, LaunchKey>, int64_t> streams;
    for (const auto& [where, parts] : parts_) streams[{where.step, where.launch}] = 0;
    int64_t next = 0;
    for (auto& [launch, stream] : streams) stream = next++;
    std::vector<KindRound> rounds;
    std::map<size_t, size_t> last;  // round of each kind in the bucket
    int64_t bucket = 0;
    for (auto& [where, parts] : parts_) {
      if (where.bucket != bucket) last.clear();
      bucket = where.bucket;
      const size_t first = rounds.size();
      const bool exchanges = std::get<Op>(where.launch) == Op::exchange;
      add_rounds(std::move(parts), streams.at({where.step, where.launch}),
                 exchanges ? INT64_MAX : tensors_a_launch_, rounds);
      for (size_t r = first; r < rounds.size(); ++r) {
        for (const KindPart& part : rounds[r].parts) {
          if (const auto before = last.find(part.kind); before != last.end())
            rounds[r].after.push_back(before->second);
        }
        std::sort(rounds[r].after.begin(), rounds[r].after.end());
        rounds[r].after.erase(std::unique(rounds[r].after.begin(), rounds[r].after.end()),
                              rounds[r].after.end());
      }
      for (size_t r = first; r < rounds.size(); ++r) {
        for (const KindPart& part : rounds[r].parts) last[part.kind] = r;
      }
    }
    return rounds;
  }

 private:
  [[nodiscard]] const Way& way_of(size_t kind) const { return kinds_[kind].ways[chosen_[kind]]; }

  [[nodiscard]] int64_t bytes_of(const KindShare& share) const {
    return saturating_mul(share.tensors.hi - share.tensors.lo, tensor_bytes(way_of(share.kind)));
  }

  // The step in which it meets others, and what they have in common: the first collective; of
  // exchanges alone the first over the outermost level that any of them uses.
  struct Meeting {
    size_t step = 0;
    LaunchKey launch;
  };
  [[nodiscard]] static Meeting meeting(const Way& way) {
    size_t outermost = 0;
    for (size_t s = 0; s < way.steps.size(); ++s) {
      const Step& step = way.planned.steps[way.steps[s].index];
      if (step.op != Op::exchange) return {s, key_of(step)};
      if (way.steps[s].level > way.steps[outermost].level) outermost = s;
    }
    return {outermost, {Op::exchange, "", std::to_string(way.steps[outermost].level)}};
  }

  // Lets ways begin so much later that they meet: one launch pays latency and peers once.
  //
  //     w   exchange inside hosts, then across   v   exchange across   v begins with step 1 of w
  void delay(const std::vector<KindShare>& shares) {
    std::map<LaunchKey, size_t> latest;  // step
    for (const KindShare& share : shares) {
      const Meeting own = meeting(way_of(share.kind));
      size_t& step = latest[own.launch];
      step = std::max(step, own.step);
    }
    for (const KindShare& share : shares) {
      const Meeting own = meeting(way_of(share.kind));
      delays_[share.kind] = latest.at(own.launch) - own.step;
    }
  }

  // A round in each bucket.
  struct Where {
    int64_t bucket = 0;
    size_t step = 0;
    LaunchKey launch;
    auto operator<=>(const Where&) const = default;
  };
  [[nodiscard]] Where where(size_t kind, const Way& way, int64_t bucket, size_t step) const {
    const Step& of = way.planned.steps[way.steps[step].index];
    return {bucket, step + delays_.at(kind),
            of.op == Op::exchange ? LaunchKey{Op::exchange, "", ""} : key_of(of)};
  }

  // One round, or several behind one another of so many tensors at most.
  static void add_rounds(std::vector<KindPart> parts, int64_t stream, int64_t most_tensors,
                         std::vector<KindRound>& rounds) {
    int64_t room = 0;
    for (KindPart& part : parts) {
      while (part.from < part.to) {
        if (room == 0) {
          rounds.emplace_back().stream = stream;
          room = most_tensors;
        }
        KindPart taken = part;
        taken.to = part.from + std::min(room, part.to - part.from);
        room -= taken.to - taken.from;
        part.from = taken.to;
        rounds.back().parts.push_back(taken);
      }
    }
  }

  void add(const KindShare& share) {
    const Way& way = way_of(share.kind);
    const int64_t tensors = share.tensors.hi - share.tensors.lo;
    const int64_t pieces = pieces_of(tensors, way, ends_.back(), unit_bytes_);
    const int64_t items = saturating_mul(tensors, pieces);
    const int64_t first = share.tensors.lo * pieces;
    if (beside_ && is_small(bytes_of(share), unit_bytes_)) {
      add_items(share.kind, way, 0, pieces, {first, first + items});
      return;
    }
    // Kinds of fewer tensors than buckets begin where the kind before them ended.
    const int64_t shift = pieces == 1 && items < buckets_ ? next_ : 0;
    if (shift != 0 || items < buckets_) next_ = (next_ + items) % buckets_;
    for (int64_t b = 0; b < buckets_; ++b) {
      const Interval in_bucket{first + share_of(items, b), first + share_of(items, b + 1)};
      if (in_bucket.lo < in_bucket.hi)
        add_items(share.kind, way, (b + shift) % buckets_, pieces, in_bucket);
    }
  }

  // Items of the buckets before this one.
  [[nodiscard]] int64_t share_of(int64_t items, int64_t bucket) const {
    const int64_t each = floor_div(items, ends_.back());
    const int64_t end = ends_[static_cast<size_t>(bucket)];
    return each * end + floor_div((items - each * ends_.back()) * end, ends_.back());
  }

  // Items [from, to): pieces of tensors, those of one tensor behind one another.
  void add_items(size_t kind, const Way& way, int64_t bucket, int64_t pieces, Interval items) {
    const int64_t whole_from = ceil_div(items.lo, pieces);
    const int64_t whole_to = floor_div(items.hi, pieces);
    if (whole_from > whole_to) {  // inside of one tensor
      add_pieces(kind, way, bucket, pieces, items);
      return;
    }
    add_pieces(kind, way, bucket, pieces, {items.lo, whole_from * pieces});
    for (size_t s = 0; whole_from < whole_to && s < way.steps.size(); ++s)
      parts_[where(kind, way, bucket, s)].push_back({kind, s, whole_from, whole_to, 0, 1});
    add_pieces(kind, way, bucket, pieces, {whole_to * pieces, items.hi});
  }

  // Items of one tensor, not all of them. A step that does not go in pieces follows the last.
  void add_pieces(size_t kind, const Way& way, int64_t bucket, int64_t pieces, Interval items) {
    for (int64_t item = items.lo; item < items.hi; ++item) {
      const int64_t tensor = floor_div(item, pieces);
      const int64_t piece = item - tensor * pieces;
      for (size_t s = 0; s < way.steps.size(); ++s) {
        if (is_cut(way, s)) {
          parts_[where(kind, way, bucket, s)].push_back(
              {kind, s, tensor, tensor + 1, piece, pieces});
        } else if (piece + 1 == pieces) {
          parts_[where(kind, way, bucket, s)].push_back({kind, s, tensor, tensor + 1, 0, 1});
        }
      }
    }
  }

  const std::vector<Kind>& kinds_;
  const std::vector<size_t>& chosen_;
  int64_t tensors_a_launch_;
  bool beside_;
  int64_t buckets_;
  std::vector<int64_t> ends_;
  int64_t unit_bytes_ = 0;
  std::map<size_t, size_t> delays_;  // of kinds, in steps
  int64_t next_ = 0;
  std::map<Where, std::vector<KindPart>> parts_;
};

// A bucket of kinds that also run collectives, step by step: those of one op and group together.
class StepByStep {
 public:
  StepByStep(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
             const RoundLimits& limits)
      : kinds_(kinds), chosen_(chosen), limits_(limits) {}

  void add(const KindShare& share) {
    const Way& way = kinds_[share.kind].ways[chosen_[share.kind]];
    for (size_t s = 0; s < way.steps.size(); ++s) {
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
      const auto flush = [&] {
        if (!round.parts.empty()) rounds.push_back(std::move(round));
        round = {};
        room = most;
      };
      for (const KindShare& share : shares) {
        for (int64_t from = share.tensors.lo; from < share.tensors.hi;) {
          if (room == 0) flush();
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

// Kinds that also run collectives, bucket by bucket.
void add_behind(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                const RoundLimits& limits, std::vector<KindRound>& rounds) {
  const int64_t buckets =
      std::min({limits.buckets, limits.buckets_behind, most_behind(kinds, chosen)});
  for (int64_t b = 0; b < buckets; ++b) {
    StepByStep bucket(kinds, chosen, limits);
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
      if (share.tensors.lo < share.tensors.hi) bucket.add(share);
    }
    bucket.take(rounds);
  }
}

// What goes through buckets together, one section behind the other.
struct Section {
  std::vector<KindShare> shares;
  int64_t bytes = 0;   // of all tensors
  bool alone = false;  // whether it begins when nothing of the section before is on the way
};

std::vector<Section> sections_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                 const RoundLimits& limits) {
  std::vector<Section> sections(1);
  std::vector<Section> behind;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Way& way = kinds[k].ways[chosen[k]];
    if (way.steps.empty() || (!way.only_exchanges() && !limits.beside)) continue;
    const int64_t each = tensor_bytes(way);
    if (may_go_alone(kinds[k]) && bytes_between(way) > limits.most_between) {
      for (int64_t t = 0; t < kinds[k].tensors; ++t)
        behind.push_back({{{k, {t, t + 1}}}, each, true});
      continue;
    }
    Section& section = sections.back();
    section.shares.push_back({k, {0, kinds[k].tensors}});
    section.bytes = saturating_add(section.bytes, saturating_mul(kinds[k].tensors, each));
    if (limits.apart) sections.emplace_back();
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

std::vector<KindRound> make_rounds(const std::vector<Kind>& kinds,
                                   const std::vector<size_t>& chosen, const RoundLimits& limits) {
  std::vector<KindRound> rounds;
  const std::vector<Section> sections = sections_of(kinds, chosen, limits);
  int64_t all_bytes = 0;
  for (const Section& section : sections) all_bytes = saturating_add(all_bytes, section.bytes);
  const int64_t bucket_bytes = std::max<int64_t>(1, ceil_div(all_bytes, limits.buckets));
  const std::vector<int64_t> even;
  for (const Section& section : sections) {
    // Tensors by themselves are in buckets as large as the others.
    int64_t buckets = limits.buckets;
    if (section.alone || (!limits.apart && sections.size() > 1))
      buckets = std::max(section.alone ? least_alone : 1, floor_div(section.bytes, bucket_bytes));
    const size_t first = rounds.size();
    auto ends = ends_of_shares(buckets, buckets == limits.buckets ? limits.shares : even);
    for (KindRound& round :
         Buckets(kinds, chosen, limits, section.shares, std::move(ends)).take()) {
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
