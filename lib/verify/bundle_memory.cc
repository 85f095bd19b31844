#include "verify/bundle_memory.h"

#include <algorithm>

namespace meshplan::verification {
namespace {

// Bytes of so many tensors, at most INT64_MAX.
int64_t bytes_of(int128 tensors, int64_t bytes) {
  return saturating_mul(saturated(tensors), bytes);
}

}  // namespace

BundleMemory::BundleMemory(const BundleView& view, const std::vector<BoxLife>& lives,
                           BundleTraffic& traffic, const BundleRanks& ranks)
    : live_(ranks.size(), 0),
      packed_(ranks.size(), 0),
      ends_(ranks.size(), 0),
      most_(ranks.size(), 0) {
  std::map<std::pair<size_t, size_t>, size_t> known;
  for (const BoxLife& life : lives) {
    const auto [found, added] = known.try_emplace({life.kind, life.step}, boxes_.size());
    if (added) {
      const BundleStep& step = view.steps[life.kind][life.step];
      boxes_.push_back({traffic.boxes(life.kind, step.step->state, *step.to), 0});
    }
    changes_.push_back({life.first, found->second, life.tensors});
    changes_.push_back({life.last + 1, found->second, -int128{life.tensors}});
  }
  // What changes twice between two waves changes once.
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return a.wave != b.wave ? a.wave < b.wave : a.box < b.box;
  });
  std::map<size_t, int128> tensors;  // by kind
  for (size_t at = 0; at < view.kind.size(); ++at)
    tensors[view.kind[at]] += view.member(at).request.count;
  for (const auto& [kind, count] : tensors) {
    const Request& request = view.member(kind).request;
    const std::vector<Mesh>& meshes = view.plan->meshes.meshes;
    for (const bool is_source : {true, false}) {
      const State& state = is_source ? request.src : view.member(kind).dst;
      const Mesh& mesh = meshes[is_source ? request.src_mesh : request.dst_mesh];
      for (const RankBytes& box : traffic.boxes(kind, state, mesh))
        ends_[box.rank] = saturating_add(ends_[box.rank], bytes_of(count, box.bytes));
    }
  }
}

void BundleMemory::go_to(int64_t wave) {
  while (done_ < changes_.size() && changes_[done_].wave <= wave) {
    LiveBox& box = boxes_[changes_[done_].box];
    const int128 before = box.tensors;
    const int64_t at = changes_[done_].wave;
    for (const size_t which = changes_[done_].box;
         done_ < changes_.size() && changes_[done_].wave == at && changes_[done_].box == which;
         ++done_)
      box.tensors += changes_[done_].tensors;
    for (const RankBytes& rank : box.bytes)
      live_[rank.rank] += int128{bytes_of(box.tensors, rank.bytes)} - bytes_of(before, rank.bytes);
  }
  std::fill(packed_.begin(), packed_.end(), 0);
  for (uint32_t rank = 0; rank < live_.size(); ++rank) count(rank, 0);
}

void BundleMemory::count(uint32_t rank, int64_t packed) {
  packed_[rank] = saturating_add(packed_[rank], packed);
  const int64_t all = saturated(live_[rank] + packed_[rank]);
  most_[rank] = std::max(most_[rank], all);
  staging_ = std::max(staging_, all);
}

void BundleMemory::add_packed(const RankLoad& load) {
  for (const uint32_t rank : load.touched()) count(rank, load.packed(rank));
}

void BundleMemory::add_packed(const std::vector<uint32_t>& ranks, int64_t packed_by_each) {
  for (const uint32_t rank : ranks) count(rank, packed_by_each);
}

int64_t BundleMemory::peak() const {
  int64_t peak = 0;
  for (size_t rank = 0; rank < ends_.size(); ++rank)
    peak = std::max(peak, saturating_add(ends_[rank], most_[rank]));
  return peak;
}

}  // namespace meshplan::verification
