#include "planner/bundle_buckets.h"

#include <algorithm>
#include <map>
#include <utility>

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

// Whether the step that communicates runs piece by piece: of an exchange in two phases both do,
// where no other step is before it, or such that do.
bool is_cut(const Way& way, size_t step) {
  const WayStep& at = way.steps[step];
  if (at.phase == 0) return goes_in_pieces(way.planned, at.index);
  if (phases_go_in_pieces(way.planned, at.index)) return true;
  return at.index == way.steps.front().index && !way.planned.request.tensor.shape.empty();
}

// The pieces of each of so many tensors that are spread over so many units of `unit_bytes`.
int64_t pieces_of(int64_t tensors, const Way& way, int64_t units, int64_t unit_bytes) {
  if (units == 1 || saturating_mul(tensor_bytes(way), small_parts) <= unit_bytes) return 1;
  // Collectives go whole: they would all be in the bucket of the last piece.
  if (!is_cut(way, 0) || !way.only_exchanges()) return 1;
  const int64_t each = floor_div(units, tensors);
  if (each * tensors == units) return each;
  return std::max(cuts_between, 2 * (each + 1));
}

// Whether a kind of so many bytes in all goes through one bucket, the first: that takes no longer,
// and the others save its launches, and its messages where those come behind a collective.
bool is_small(int64_t bytes, int64_t bucket_bytes) {
  return saturating_mul(bytes, smallest_parts) <= bucket_bytes;
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
    loads_.resize(static_cast<size_t>(buckets_), 0);
    for (const bool lone : {false, true}) {
      for (const KindShare& share : shares) {
        if (is_lone(share) == lone) add(share);
      }
    }
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

  [[nodiscard]] int64_t pieces_of_each(const KindShare& share) const {
    return pieces_of(share.tensors.hi - share.tensors.lo, way_of(share.kind), ends_.back(),
                     unit_bytes_);
  }

  // One tensor that goes whole beside collectives: through the bucket that has least of others.
  [[nodiscard]] bool is_lone(const KindShare& share) const {
    return beside_ && share.tensors.hi - share.tensors.lo == 1 && pieces_of_each(share) == 1;
  }

  void add(const KindShare& share) {
    const Way& way = way_of(share.kind);
    const int64_t tensors = share.tensors.hi - share.tensors.lo;
    const int64_t pieces = pieces_of_each(share);
    const int64_t items = saturating_mul(tensors, pieces);
    const int64_t first = share.tensors.lo * pieces;
    if (is_lone(share)) {
      const auto lightest = std::min_element(loads_.begin(), loads_.end());
      add_items(share.kind, way, lightest - loads_.begin(), pieces, {first, first + items});
      return;
    }
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
    int64_t& load = loads_[static_cast<size_t>(bucket)];
    load = saturating_add(
        load, saturating_mul(floor_div(tensor_bytes(way), pieces), items.hi - items.lo));
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
  std::vector<int64_t> loads_;       // bytes, by bucket
  int64_t next_ = 0;
  std::map<Where, std::vector<KindPart>> parts_;
};

}  // namespace

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

int64_t tensor_bytes(const Way& way) {
  const TensorMeta& tensor = way.planned.request.tensor;
  int64_t bytes = element_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) bytes = saturating_mul(bytes, extent);
  return bytes;
}

std::vector<KindRound> rounds_of_buckets(const std::vector<Kind>& kinds,
                                         const std::vector<size_t>& chosen,
                                         const RoundLimits& limits,
                                         const std::vector<KindShare>& shares,
                                         std::vector<int64_t> ends) {
  return Buckets(kinds, chosen, limits, shares, std::move(ends)).take();
}

}  // namespace meshplan
