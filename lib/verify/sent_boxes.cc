#include "verify/sent_boxes.h"

#include <algorithm>

#include "base/in_order_of.h"
#include "base/int_math.h"
#include "verify/listing.h"

namespace meshplan::verification {

size_t longest_dim(std::span<const Interval> box) {
  size_t longest = 0;
  for (size_t d = 1; d < box.size(); ++d) {
    if (width(box[d]) > width(box[longest])) longest = d;
  }
  return longest;
}

Interval part_of(const Interval& whole, int64_t parts, int64_t index) {
  const int64_t each = width(whole) / parts;
  const int64_t longer = width(whole) % parts;
  const int64_t lo = whole.lo + index * each + std::min(index, longer);
  return {lo, lo + each + (index < longer ? 1 : 0)};
}

namespace {

// A dim narrower than this is not preferred for pieces: they could be empty.
constexpr int64_t least_steady = 16;

size_t dim_of_pieces(std::span<const Interval> box, const std::vector<bool>& steady) {
  std::optional<size_t> best;
  for (size_t d = 0; d < steady.size(); ++d) {
    if (steady[d] && width(box[d]) >= least_steady && (!best || width(box[d]) > width(box[*best])))
      best = d;
  }
  return best ? *best : longest_dim(box);
}

class Lister {
 public:
  Lister(const ExchangeView& view, Listing& listing, const BundleRanks& ranks, SentBoxes& out)
      : view_(view), listing_(listing), ranks_(ranks), out_(out) {}

  // False: too many, or the work is used up.
  bool list_copy(int64_t base, WorkLeft& work) {
    listing_.list_copy(base);
    if (!work.take(static_cast<int64_t>(listing_.ranks().size() + listing_.shards()))) return false;
    asked_.assign(listing_.shards(), 0);
    for (const ListedRank& rank : listing_.ranks()) {
      if (rank.dst == nowhere) continue;
      const uint32_t to = ranks_.number_of(rank.id);
      int64_t looked = 0;
      listing_.each_overlap(rank, [&](size_t shard, const Box& box) {
        ++looked;
        if (looked > work.left || std::ssize(out_) > most_sent_boxes) return;
        if (shard == rank.shard) {
          add(to, to, box);
        } else {
          send(shard, rank, to, box);
        }
      });
      if (!work.take(looked) || std::ssize(out_) > most_sent_boxes) return false;
    }
    return true;
  }

 private:
  void send(size_t shard, const ListedRank& rank, uint32_t to, const Box& box) {
    const NearestHolders near = listing_.nearest(shard, rank.id);
    const auto holder = [&](int64_t i) {
      return ranks_.number_of(listing_.holder_at(near.first + static_cast<size_t>(i)));
    };
    if (view_.whole_pieces) {
      add(holder(asked_[shard]++ % near.count), to, box);
      return;
    }
    if (box.empty()) {  // a scalar is one slice
      add(holder(0), to, box);
      return;
    }
    const size_t cut = longest_dim(box);
    Box part = box;
    for (int64_t i = 0; i < std::min(near.count, width(box[cut])); ++i) {
      part[cut] = part_of(box[cut], near.count, i);
      add(holder(i), to, part);
    }
  }

  void add(uint32_t from, uint32_t to, const Box& box) {
    out_.from.push_back(from);
    out_.to.push_back(to);
    out_.sides.insert(out_.sides.end(), box.begin(), box.end());
  }

  const ExchangeView& view_;
  Listing& listing_;
  const BundleRanks& ranks_;
  SentBoxes& out_;
  std::vector<int64_t> asked_;  // by shard: ranks so far that miss part of it
};

// Bytes from rank to rank, and what they are to each rank.
class PairBytes {
 public:
  PairBytes(int64_t element_bytes, const BundleRanks& ranks)
      : element_bytes_(element_bytes), ranks_(ranks) {}

  void add(uint32_t from, uint32_t to, int64_t elements) {
    if (elements <= 0 || from == to) return;
    list_.emplace_back(uint64_t{from} << 32 | to, saturating_mul(elements, element_bytes_));
    if (list_.size() < room_) return;
    join_pairs();
    room_ = std::max(room_, 2 * list_.size());
  }

  PieceTraffic traffic() {
    join_pairs();
    PieceTraffic traffic;
    for (const auto& [pair, bytes] : list_) {
      traffic.pairs.push_back(pair);
      const auto from = static_cast<uint32_t>(pair >> 32);
      const auto to = static_cast<uint32_t>(pair);
      const auto level = static_cast<uint32_t>(ranks_.level_of(from, to));
      traffic.shares.push_back({from, level, 0, bytes});
      traffic.shares.push_back({to, level, bytes, 0});
    }
    join(traffic.shares);
    return traffic;
  }

 private:
  // Lists have millions of pairs: a pass by receiver and one by sender, where ranks are fewer.
  void put_in_order() {
    if (list_.size() < ranks_.size()) return std::sort(list_.begin(), list_.end());
    const auto receiver = [](const auto& pair) {
      return size_t{static_cast<uint32_t>(pair.first)};
    };
    const auto sender = [](const auto& pair) { return static_cast<size_t>(pair.first >> 32); };
    list_ = in_order_of(std::move(list_), ranks_.size(), receiver);
    list_ = in_order_of(std::move(list_), ranks_.size(), sender);
  }
  void join_pairs() {
    put_in_order();
    size_t kept = 0;
    for (size_t i = 0; i < list_.size(); ++i) {
      if (kept > 0 && list_[kept - 1].first == list_[i].first) {
        list_[kept - 1].second = saturating_add(list_[kept - 1].second, list_[i].second);
      } else {
        list_[kept++] = list_[i];
      }
    }
    list_.resize(kept);
  }

  static void join(std::vector<RankShare>& shares) {
    std::sort(shares.begin(), shares.end(), [](const RankShare& a, const RankShare& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.level < b.level;
    });
    size_t kept = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      RankShare& last = shares[kept == 0 ? 0 : kept - 1];
      if (kept > 0 && last.rank == shares[i].rank && last.level == shares[i].level) {
        last.received = saturating_add(last.received, shares[i].received);
        last.sent = saturating_add(last.sent, shares[i].sent);
      } else {
        shares[kept++] = shares[i];
      }
    }
    shares.resize(kept);
    shares.shrink_to_fit();
  }

  int64_t element_bytes_;
  const BundleRanks& ranks_;
  std::vector<std::pair<uint64_t, int64_t>> list_;  // by pair once joined
  size_t room_ = size_t{1} << 20;                   // before those of one pair are joined
};

}  // namespace

std::optional<SentBoxes> sent_boxes(const ExchangeView& view, const std::vector<int64_t>& bases,
                                    const BundleRanks& ranks, WorkLeft& work) {
  SentBoxes out;
  out.dims = view.shape.size();
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; }))
    return out;
  auto listing = Listing::of(view);
  if (!listing) return std::nullopt;
  Lister lister(view, *listing, ranks, out);
  for (const int64_t base : bases) {
    if (!lister.list_copy(base, work)) return std::nullopt;
  }
  return out;
}

std::optional<SentBoxes> boxes_behind(const SentBoxes& before, const SentBoxes& step,
                                      const BundleRanks& ranks, WorkLeft& work) {
  if (!work.take(static_cast<int64_t>(before.size() + step.size() + ranks.size())))
    return std::nullopt;
  // By rank, the boxes that it got.
  std::vector<size_t> begin(ranks.size() + 1, 0);
  for (const uint32_t to : before.to) ++begin[to + 1];
  for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  std::vector<size_t> got(before.size());
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < before.size(); ++i) got[next[before.to[i]]++] = i;
  SentBoxes out;
  out.dims = step.dims;
  out.steady = before.steady;
  for (size_t i = 0; i < step.size(); ++i) {
    const uint32_t from = step.from[i];
    if (!work.take(static_cast<int64_t>(begin[from + 1] - begin[from])) ||
        std::ssize(out) > most_sent_boxes)
      return std::nullopt;
    for (size_t g = begin[from]; g < begin[from + 1]; ++g) {
      const std::span<const Interval> held = before.box(got[g]);
      const std::span<const Interval> sent = step.box(i);
      bool meet = true;
      for (size_t d = 0; d < out.dims && meet; ++d) meet = overlap_width(held[d], sent[d]) > 0;
      if (!meet) continue;
      out.from.push_back(from);
      out.to.push_back(step.to[i]);
      for (size_t d = 0; d < out.dims; ++d)
        out.sides.push_back({std::max(held[d].lo, sent[d].lo), std::min(held[d].hi, sent[d].hi)});
      const std::span<const Interval> cut = before.cut(got[g]);
      out.cuts.insert(out.cuts.end(), cut.begin(), cut.end());
    }
  }
  return out;
}

std::optional<PieceTraffic> piece_of(const SentBoxes& boxes, int64_t piece, int64_t pieces,
                                     int64_t element_bytes, const BundleRanks& ranks,
                                     WorkLeft& work) {
  if (!work.take(std::ssize(boxes))) return std::nullopt;
  PairBytes bytes(element_bytes, ranks);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const std::span<const Interval> cut = boxes.cut(i);
    const size_t along = dim_of_pieces(cut, boxes.steady);
    int64_t elements = 1;
    for (size_t d = 0; d < boxes.dims; ++d) {
      const Interval side = boxes.box(i)[d];
      const int64_t wide =
          d == along ? overlap_width(side, part_of(cut[d], pieces, piece)) : width(side);
      elements = saturating_mul(elements, wide);
    }
    bytes.add(boxes.from[i], boxes.to[i], elements);
  }
  return bytes.traffic();
}

}  // namespace meshplan::verification
