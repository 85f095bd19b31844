// boxes_of_phase of sent_boxes.h: unit by unit (recount_exchange.h has the rules).
#include <algorithm>
#include <map>
#include <tuple>

#include "verify/listing.h"
#include "verify/sent_boxes.h"

namespace meshplan::verification {
namespace {

// Where a box that members want meets a shard that the unit misses.
struct MissingBox {
  size_t wanted = 0;  // which box of those that the unit wants, in the order of the first member
  size_t shard = 0;
  Box box;
};

class PhaseLister {
 public:
  PhaseLister(PhaseBoxes which, const Listing& listing, const BundleRanks& ranks, WorkLeft& work,
              SentBoxes& out)
      : which_(which), listing_(listing), ranks_(ranks), work_(work), out_(out) {}

  // False: too many, or the work is used up.
  bool list_copy() {
    // Ranks that differ on what stays pending have units of their own.
    std::map<std::pair<size_t, int64_t>, std::vector<const ListedRank*>> units;
    for (const ListedRank& rank : listing_.ranks()) {
      const int64_t unit = rank.id / listing_.units().ranks(0);
      units[{listing_.kept_at(rank), unit}].push_back(&rank);
    }
    for (const auto& [key, members] : units) {
      list_unit(members);
      if (work_.used_up() || std::ssize(out_) > most_sent_boxes) return false;
    }
    return true;
  }

 private:
  using Members = std::vector<const ListedRank*>;

  // Its members in rank order.
  void list_unit(const Members& members) {
    std::vector<MissingBox> missing;
    std::map<size_t, size_t> numbers;  // of wanted boxes, in the order of their first member
    std::vector<Members> wanting;      // by that number
    for (const ListedRank* rank : members) {
      if (rank->dst == nowhere) continue;
      std::optional<size_t> wanted;
      bool first = false;
      listing_.each_overlap(*rank, [&](size_t shard, const Box& box) {
        if (!work_.take(1)) return;
        if (!wanted) {
          const auto [at, added] = numbers.try_emplace(listing_.wanted_at(*rank), numbers.size());
          wanted = at->second;
          first = added;
          if (added) wanting.emplace_back();
          wanting[*wanted].push_back(rank);
        }
        const NearestHolders near = listing_.nearest(shard, rank->id);
        if (near.level > 0) {
          if (first) missing.push_back({*wanted, shard, box});
        } else if (which_ == PhaseBoxes::all_others || which_ == PhaseBoxes::all_but_passed_on) {
          pass_inside(shard, *rank, near, box);
        }
      });
    }
    std::stable_sort(missing.begin(), missing.end(), [&](const MissingBox& a, const MissingBox& b) {
      if (a.wanted != b.wanted) return a.wanted < b.wanted;
      return listing_.first_holder(a.shard) < listing_.first_holder(b.shard);
    });
    for (size_t begin = 0; begin < missing.size();) {
      size_t end = begin;
      while (end < missing.size() && missing[end].wanted == missing[begin].wanted) ++end;
      share_out({missing.data() + begin, end - begin}, wanting[missing[begin].wanted]);
      begin = end;
    }
  }

  // What a member of the unit holds: kept, or by the even cut.
  void pass_inside(size_t shard, const ListedRank& rank, const NearestHolders& near,
                   const Box& box) {
    const uint32_t to = ranks_.number_of(rank.id);
    if (shard == rank.shard) {
      add(to, to, box);
      return;
    }
    const int64_t parts = box.empty() ? 1 : near.count;
    for (int64_t i = 0; i < parts; ++i)
      add(number_at(near.first + static_cast<size_t>(i)), to, cut(box, parts, i));
  }

  // The parts of what is missing of one wanted box, in order: every fetcher has a stretch of them.
  void share_out(std::span<const MissingBox> missing, const Members& fetchers) {
    const auto boxes = std::ssize(missing);
    const auto k = std::ssize(fetchers);
    const int64_t parts = parts_of_missing(boxes, k);
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = j * boxes * parts / k; i < (j + 1) * boxes * parts / k; ++i) {
        const MissingBox& one = missing[i % boxes];
        if (one.box.empty() && i / boxes > 0) continue;  // a scalar is one part
        const Box part = cut(one.box, one.box.empty() ? 1 : parts, i / boxes);
        if (is_nothing(part)) continue;
        fetch(one.shard, parts, *fetchers[j], part, fetchers);
      }
    }
  }

  void fetch(size_t shard, int64_t parts, const ListedRank& fetcher, const Box& part,
             const Members& wanting) {
    const uint32_t to = ranks_.number_of(fetcher.id);
    if (!work_.take(std::ssize(wanting))) return;
    if (which_ == PhaseBoxes::fetched || which_ == PhaseBoxes::all_but_passed_on) {
      const NearestHolders near = listing_.nearest(shard, fetcher.id);
      const int64_t turn = turns_[{near.level, near.first, parts}]++ % near.count;
      add(number_at(near.first + static_cast<size_t>(turn)), to, part);
      return;
    }
    for (const ListedRank* rank : wanting) {
      if (rank != &fetcher) add(to, ranks_.number_of(rank->id), part);
    }
  }

  [[nodiscard]] uint32_t number_at(size_t place) const {
    return ranks_.number_of(listing_.holder_at(place));
  }

  static bool is_nothing(const Box& box) {
    return std::any_of(box.begin(), box.end(),
                       [](const Interval& side) { return width(side) <= 0; });
  }

  static Box cut(Box box, int64_t parts, int64_t index) {
    if (parts > 1) {
      Interval& side = box[longest_dim(box)];
      side = part_of(side, parts, index);
    }
    return box;
  }

  void add(uint32_t from, uint32_t to, const Box& box) {
    if (is_nothing(box)) return;
    out_.from.push_back(from);
    out_.to.push_back(to);
    out_.sides.insert(out_.sides.end(), box.begin(), box.end());
  }

  PhaseBoxes which_;
  const Listing& listing_;
  const BundleRanks& ranks_;
  WorkLeft& work_;
  SentBoxes& out_;
  // Level and first place of a set of nearest holders, and into how many parts a box is cut: how
  // many such parts were asked of it so far.
  std::map<std::tuple<size_t, size_t, int64_t>, int64_t> turns_;
};

}  // namespace

std::optional<SentBoxes> boxes_of_phase(const ExchangeView& view, PhaseBoxes which,
                                        const std::vector<int64_t>& bases, const BundleRanks& ranks,
                                        WorkLeft& work) {
  SentBoxes out;
  out.dims = view.shape.size();
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; }))
    return out;
  auto listing = Listing::of(view);
  if (!listing) return std::nullopt;
  for (const int64_t base : bases) {
    listing->list_copy(base);
    if (!work.take(static_cast<int64_t>(listing->ranks().size() + listing->shards())) ||
        !PhaseLister(which, *listing, ranks, work, out).list_copy())
      return std::nullopt;
  }
  return out;
}

}  // namespace meshplan::verification
