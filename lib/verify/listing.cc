#include "verify/listing.h"

#include <algorithm>

#include "base/int_math.h"
#include "verify/coverage.h"

namespace meshplan::verification {
namespace {

// For every rank of a mesh, row-major, the sum over the mesh dims of `part(mesh dim, coordinate)`.
template <class Number, class Part>
std::vector<Number> sums(std::span<const int64_t> mesh_shape, Part part) {
  size_t ranks = 1;
  for (const int64_t size : mesh_shape) ranks *= static_cast<size_t>(size);
  std::vector<Number> all;
  all.reserve(ranks);
  all.push_back(0);
  std::vector<Number> parts;
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    parts.clear();
    for (int64_t c = 0; c < mesh_shape[m]; ++c) parts.push_back(part(m, c));
    // In place, from the back: a sum is read before what follows from it is written over it.
    const size_t before = all.size();
    all.resize(before * parts.size());
    for (size_t i = before; i-- > 0;) {
      const Number sum = all[i];
      for (size_t c = parts.size(); c-- > 0;) all[i * parts.size() + c] = sum + parts[c];
    }
  }
  return all;
}

// For every rank its number in the mixed radix of some digits, the first the most major.
std::vector<size_t> digit_numbers(const Digits& digits, std::span<const uint8_t> list,
                                  std::span<const int64_t> mesh_shape) {
  std::vector<int64_t> strides(list.size(), 1);
  for (size_t i = list.size(); i-- > 1;) strides[i - 1] = strides[i] * digits.list[list[i]].size;
  return sums<size_t>(mesh_shape, [&](size_t m, int64_t coordinate) {
    int64_t number = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const Digit& digit = digits.list[list[i]];
      if (static_cast<size_t>(digit.mesh_dim) != m) continue;
      number += coordinate / (digit.mesh_dim_size / (digit.before * digit.size)) % digit.size *
                strides[i];
    }
    return static_cast<size_t>(number);
  });
}

Meetings meetings_of(const std::vector<Interval>& before, const std::vector<Interval>& after) {
  Meetings meetings;
  meetings.begin.reserve(after.size() + 1);
  for (const Interval& wanted : after) {
    meetings.begin.push_back(meetings.list.size());
    if (width(wanted) == 0) continue;
    auto held = std::upper_bound(before.begin(), before.end(), wanted.lo,
                                 [](int64_t at, const Interval& i) { return at < i.hi; });
    for (; held != before.end() && held->lo < wanted.hi; ++held) {
      const int64_t shared = std::min(held->hi, wanted.hi) - std::max(held->lo, wanted.lo);
      if (shared > 0) meetings.list.push_back({static_cast<size_t>(held - before.begin()), shared});
    }
  }
  meetings.begin.push_back(meetings.list.size());
  return meetings;
}

Layout whole_layout(const Mesh& mesh) {
  std::vector<size_t> all(mesh.dims.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return group_layout(mesh, all);
}

std::vector<int64_t> offsets_of(const Mesh& mesh) {
  return sums<int64_t>(mesh_shape(mesh), [&](size_t m, int64_t coordinate) {
    return offset_at(mesh.dims[m].layout, coordinate);
  });
}

}  // namespace

std::optional<Listing::Boxes> Listing::boxes_of(const State& state, std::span<const int64_t> shape,
                                                std::span<const int64_t> mesh_shape) {
  const State* const states[] = {&state};
  Digits digits;
  if (!make_digits(mesh_shape, states, {}, digits)) return std::nullopt;
  DigitState in_digits;
  to_digits(state, digits, in_digits);
  Boxes boxes;
  for (size_t d = 0; d < shape.size(); ++d) {
    const ShardList list = in_digits.shard_list(d);
    auto chunks = chunks_of(digits, list, shape[d]);
    if (!chunks) return std::nullopt;
    boxes.chunks.push_back(std::move(*chunks));
    boxes.chunk_of.push_back(digit_numbers(digits, {list.digits, list.count}, mesh_shape));
  }
  return boxes;
}

bool Listing::list_pending(std::span<const int64_t> mesh_shape) {
  const bool crosses = view_->dst_mesh != view_->src_mesh;
  const auto pending = pending_digits(mesh_shape, *view_->src, crosses ? State{} : *view_->dst);
  if (!pending) return false;
  std::vector<uint8_t> kept;
  std::vector<uint8_t> reduced;
  for (size_t i = 0; i < pending->digits.count; ++i) {
    if (!has(pending->before.pending, i)) continue;
    (has(pending->after.pending, i) ? kept : reduced).push_back(static_cast<uint8_t>(i));
  }
  kept_of_ = digit_numbers(pending->digits, kept, mesh_shape);
  reduced_of_ = digit_numbers(pending->digits, reduced, mesh_shape);
  for (const uint8_t digit : reduced)
    contributions_ *= static_cast<size_t>(pending->digits.list[digit].size);
  return true;
}

// By the digits that both orders of a tensor dim begin with, cutting alike and evenly.
void Listing::list_classes(std::span<const int64_t> mesh_shape) {
  class_of_.assign(static_cast<size_t>(mesh_size(*view_->src_mesh)), 0);
  const State* const states[] = {view_->src, view_->dst};
  Digits digits;
  if (view_->dst_mesh != view_->src_mesh || !make_digits(mesh_shape, states, {}, digits)) return;
  DigitState before;
  DigitState after;
  to_digits(*view_->src, digits, before);
  to_digits(*view_->dst, digits, after);
  std::vector<uint8_t> common;
  for (size_t d = 0; d < view_->shape.size(); ++d) {
    const ShardList a = before.shard_list(d);
    const ShardList b = after.shard_list(d);
    const auto continues = [](const ShardList& list, size_t i) {
      return i < list.count && (list.continues >> i & 1) != 0;
    };
    size_t count = 0;
    while (count < a.count && count < b.count && a.digits[count] == b.digits[count] &&
           continues(a, count) == continues(b, count))
      ++count;
    // A run cuts as one.
    while (count > 0 && (continues(a, count) || continues(b, count))) --count;
    const ShardList head{a.digits, count, a.continues, 0};
    if (count == 0 || !cuts_evenly(digits, head, view_->shape[d])) continue;
    common.insert(common.end(), head.digits, head.digits + count);
  }
  if (common.empty()) return;
  class_of_ = digit_numbers(digits, common, mesh_shape);
  for (const uint8_t digit : common) classes_ *= static_cast<size_t>(digits.list[digit].size);
}

std::vector<bool> Listing::unlike_before() {
  std::vector<bool> unlike(ranks_.size(), true);
  if (classes_ == 1) return unlike;
  std::vector<std::vector<size_t>> classes(classes_);
  for (size_t i = 0; i < ranks_.size(); ++i) classes[class_of_[ranks_[i].src]].push_back(i);
  // Members of each class by their index, which has the same order on all other digits in every
  // class: a rank's place in it is its index but for those digits.
  std::vector<size_t> place(ranks_.size());
  std::vector<size_t> next(classes.size(), 0);
  for (size_t index = 0; index < class_of_.size(); ++index) place[index] = next[class_of_[index]]++;
  for (const std::vector<size_t>& members : classes) {
    std::vector<size_t> look;
    look.reserve(2 * members.size());
    const ListedRank* last = nullptr;
    for (const size_t i : members) {
      size_t begins = 0;
      for (size_t l = 0; l + 1 < units_.levels(); ++l) {
        const bool here =
            last == nullptr || last->id / units_.ranks(l) != ranks_[i].id / units_.ranks(l);
        begins = 2 * begins + (here ? 1 : 0);
      }
      look.push_back(place[ranks_[i].src]);
      look.push_back(begins);
      last = &ranks_[i];
    }
    if (seen_.insert(std::move(look)).second) continue;
    for (const size_t i : members) unlike[i] = false;
  }
  return unlike;
}

std::optional<Listing> Listing::of(const ExchangeView& view) {
  if (mesh_size(*view.src_mesh) > most_pieces || mesh_size(*view.dst_mesh) > most_pieces)
    return std::nullopt;
  Listing listing(view);
  const std::vector<int64_t> src_shape = mesh_shape(*view.src_mesh);
  auto before = boxes_of(*view.src, view.shape, src_shape);
  auto after = boxes_of(*view.dst, view.shape, mesh_shape(*view.dst_mesh));
  if (!before || !after || !listing.list_pending(src_shape)) return std::nullopt;
  listing.list_classes(src_shape);
  listing.strides_.assign(view.shape.size(), 1);
  for (size_t d = view.shape.size(); d-- > 0;) {
    listing.strides_[d] = listing.boxes_;
    listing.boxes_ *= before->chunks[d].size();
  }
  for (size_t d = 0; d < view.shape.size(); ++d)
    listing.meetings_.push_back(meetings_of(before->chunks[d], after->chunks[d]));
  listing.before_ = std::move(*before);
  listing.after_ = std::move(*after);
  listing.src_offsets_ = offsets_of(*view.src_mesh);
  if (view.dst_mesh != view.src_mesh) listing.dst_offsets_ = offsets_of(*view.dst_mesh);
  return listing;
}

int64_t Listing::work() const {
  int64_t all = mesh_size(*view_->src_mesh);
  const auto ranks = static_cast<size_t>(mesh_size(*view_->dst_mesh));
  for (size_t r = 0; r < ranks; ++r) {
    auto here = static_cast<int64_t>(contributions_);
    for (size_t d = 0; d < meetings_.size(); ++d) {
      const size_t chunk = after_.chunk_of[d][r];
      here = saturating_mul(
          here, static_cast<int64_t>(meetings_[d].begin[chunk + 1] - meetings_[d].begin[chunk]));
    }
    all = saturating_add(all, here);
  }
  return all;
}

std::optional<std::vector<int64_t>> Listing::copies() const {
  const std::vector<MeshDim>& dims = view_->src_mesh->dims;
  const bool alike = std::all_of(dims.begin(), dims.end(), [&](const MeshDim& dim) {
    return units_.parts_of(dim.layout).has_value();
  });
  // Between meshes the first copies of both take part.
  if (alike || view_->dst_mesh != view_->src_mesh) return std::vector<int64_t>{0};
  return units_.distinct_bases(whole_layout(*view_->src_mesh));
}

size_t Listing::shard_of(size_t src) const {
  size_t box = 0;
  for (size_t d = 0; d < strides_.size(); ++d) box += before_.chunk_of[d][src] * strides_[d];
  return (kept_of_[src] * contributions_ + reduced_of_[src]) * boxes_ + box;
}

void Listing::list_copy(int64_t base) {
  const bool crosses = view_->dst_mesh != view_->src_mesh;
  const auto by_id = [](const ListedRank& a, const ListedRank& b) { return a.id < b.id; };
  ranks_.clear();
  for (size_t i = 0; i < src_offsets_.size(); ++i) {
    ranks_.push_back({rank_at(*view_->src_mesh->universe, base + src_offsets_[i]), i,
                      crosses ? nowhere : i, shard_of(i), 0});
  }
  std::sort(ranks_.begin(), ranks_.end(), by_id);
  const size_t sources = ranks_.size();
  for (size_t i = 0; i < dst_offsets_.size(); ++i) {
    const ListedRank rank{rank_at(*view_->dst_mesh->universe, dst_offsets_[i]), nowhere, i, nowhere,
                          0};
    const auto end = ranks_.begin() + static_cast<std::ptrdiff_t>(sources);
    const auto same = std::lower_bound(ranks_.begin(), end, rank, by_id);
    if (same != end && same->id == rank.id) {
      same->dst = rank.dst;
    } else {
      ranks_.push_back(rank);
    }
  }
  if (ranks_.size() > sources) std::sort(ranks_.begin(), ranks_.end(), by_id);
  list_holders();
}

void Listing::list_holders() {
  size_t most = 0;
  for (const ListedRank& rank : ranks_) {
    if (rank.src != nowhere) most = std::max(most, rank.shard);
  }
  begin_.assign(most + 2, 0);
  for (const ListedRank& rank : ranks_) {
    if (rank.src != nowhere) ++begin_[rank.shard + 1];
  }
  for (size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
  std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
  holders_.assign(begin_.back(), 0);
  for (ListedRank& rank : ranks_) {
    if (rank.src == nowhere) continue;
    rank.place = next[rank.shard]++;
    holders_[rank.place] = rank.id;
  }
}

Listing::UnitsOf Listing::units_of(int64_t id) const {
  UnitsOf units;
  for (size_t l = 0; l + 1 < units_.levels(); ++l) {
    units.begin[l] = id / units_.ranks(l) * units_.ranks(l);
    units.end[l] = saturating_add(units.begin[l], units_.ranks(l));
  }
  return units;
}

NearestHolders Listing::nearest(size_t shard, const UnitsOf& units) const {
  for (size_t l = 0; l + 1 < units_.levels(); ++l) {
    if (const NearestHolders here = inside(shard, units, l); here.count > 0) return here;
  }
  return inside(shard, units, units_.levels() - 1);
}

NearestHolders Listing::inside(size_t shard, const UnitsOf& units, size_t l) const {
  const auto begin = holders_.begin() + static_cast<std::ptrdiff_t>(begin_[shard]);
  const auto end = holders_.begin() + static_cast<std::ptrdiff_t>(begin_[shard + 1]);
  if (l + 1 == units_.levels()) return {l, begin_[shard], end - begin};
  const auto low = std::lower_bound(begin, end, units.begin[l]);
  const auto high = std::lower_bound(low, end, units.end[l]);
  return {l, static_cast<size_t>(low - holders_.begin()), high - low};
}

size_t Listing::kept_at(const ListedRank& rank) const {
  return view_->src_mesh == view_->dst_mesh ? kept_of_[rank.src] : 0;
}

size_t Listing::wanted_at(const ListedRank& rank) const {
  size_t number = 0;
  for (size_t d = 0; d < meetings_.size(); ++d)
    number = number * after_.chunks[d].size() + after_.chunk_of[d][rank.dst];
  return number;
}

}  // namespace meshplan::verification
