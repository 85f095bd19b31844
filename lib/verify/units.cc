#include "verify/units.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/int_math.h"

namespace meshplan::verification {
namespace {

// Cuts one mode at the units, minor part first; false where it is not clean.
bool cut_mode(const Mode& mode, const Units& units, std::vector<LevelPart>& minor_first) {
  int64_t size = mode.size;
  int64_t stride = mode.stride;
  for (size_t l = 0; l + 1 < units.levels() && size > 1; ++l) {
    const int64_t unit = units.ranks(l);
    if (stride % unit == 0) continue;
    if (unit % stride != 0) return false;
    const int64_t places = unit / stride;  // of this stride in one unit
    const int64_t inside = std::min(size, places);
    if (inside == size ? places % size != 0 : size % inside != 0) return false;
    minor_first.push_back({1, inside, l});
    size /= inside;
    stride = saturating_mul(stride, inside);
  }
  if (size > 1) minor_first.push_back({1, size, units.levels() - 1});
  return true;
}

}  // namespace

Units::Units(const Universe& universe, const Topology& topology) : universe_(&universe) {
  for (const TopologyLevel& level : topology.levels)
    ranks_.push_back(std::max<int64_t>(1, level.ranks));
  if (ranks_.empty()) ranks_.push_back(1);
  ranks_.back() = std::numeric_limits<int64_t>::max();
  for (size_t l = 0; l + 1 < ranks_.size() && period_ != 0; ++l) {
    const int64_t unit = ranks_[l];
    const int64_t repeats = saturating_mul(period_ / std::gcd(period_, unit), unit);
    period_ = repeats > longest_period ? 0 : repeats;
  }
  if (universe.ranks.empty() || ranks_.size() == 1) return;
  const int64_t first = universe.ranks.front();
  for (size_t l = 0; l + 1 < ranks_.size(); ++l) plain_ = plain_ && first % ranks_[l] == 0;
  for (size_t i = 0; i < universe.ranks.size() && plain_; ++i)
    plain_ = universe.ranks[i] - first == static_cast<int64_t>(i);
}

std::optional<std::vector<LevelPart>> Units::parts_of(const Layout& layout) const {
  std::vector<LevelPart> minor_first;
  if (ranks_.size() > 1 && !plain_) return std::nullopt;
  for (size_t i = layout.modes.size(); i-- > 0;) {
    if (!cut_mode(layout.modes[i], *this, minor_first)) return std::nullopt;
  }
  std::vector<LevelPart> parts;
  int64_t before = 1;
  for (size_t i = minor_first.size(); i-- > 0;) {
    const LevelPart& part = minor_first[i];
    if (part.size == 1) continue;
    if (!parts.empty() && parts.back().level == part.level) {
      parts.back().size *= part.size;
    } else {
      parts.push_back({before, part.size, part.level});
    }
    before *= part.size;
  }
  return parts;
}

// `ids`: the members' places, which are sorted here.
GroupPattern Units::pattern_of(std::vector<int64_t>& ids) const {
  std::sort(ids.begin(), ids.end());
  GroupPattern pattern;
  // Members that each sees in its unit of the level inside.
  std::vector<int64_t> inside(ids.size(), 1);
  for (size_t l = 0; l < ranks_.size(); ++l) {
    for (size_t i = 0; i < ids.size();) {
      size_t end = i;
      const int64_t unit = floor_div(ids[i], ranks_[l]);
      while (end < ids.size() && floor_div(ids[end], ranks_[l]) == unit) ++end;
      const auto here = static_cast<int64_t>(end - i);
      if (i == 0) pattern.members[l] = here;
      pattern.alike = pattern.alike && here == pattern.members[l];
      for (; i < end; ++i) {
        pattern.more[l] = std::max(pattern.more[l], here - inside[i]);
        inside[i] = here;
      }
    }
  }
  return pattern;
}

std::optional<std::vector<GroupPattern>> Units::patterns(const Layout& group) const {
  const int64_t ranks = size(group);
  if (const auto parts = parts_of(group)) {
    GroupPattern pattern;
    int64_t members = 1;
    for (size_t l = 0; l < ranks_.size(); ++l) {
      for (const LevelPart& part : *parts) members *= part.level == l ? part.size : 1;
      pattern.members[l] = members;
    }
    return std::vector<GroupPattern>{pattern};
  }
  const auto bases = distinct_bases(group);
  if (!bases || saturating_mul(std::ssize(*bases), ranks) > most_listed) return std::nullopt;
  const std::vector<int64_t> members = offsets(group);
  std::vector<GroupPattern> patterns;
  std::vector<int64_t> ids(members.size());
  for (const int64_t base : *bases) {
    for (size_t i = 0; i < members.size(); ++i)
      ids[i] = plain_ ? base + members[i] : rank_at(*universe_, base + members[i]);
    patterns.push_back(pattern_of(ids));
  }
  return patterns;
}

std::optional<std::vector<int64_t>> Units::distinct_bases(const Layout& layout) const {
  const auto others = complement(layout, universe_->world);
  if (!others) return std::nullopt;
  if (!plain_) {
    if (size(*others) > most_listed) return std::nullopt;
    return offsets(*others);
  }
  if (period_ == 0) return std::nullopt;
  std::vector<int64_t> bases{0};
  std::vector<bool> met(static_cast<size_t>(period_), false);
  met[0] = true;
  for (const Mode& mode : others->modes) {
    // Along one mode the cuts repeat after as many steps as it takes to come back to a multiple of
    // the period.
    const int64_t steps = std::min(mode.size, period_ / std::gcd(period_, mode.stride));
    const size_t known = bases.size();
    for (int64_t j = 1; j < steps; ++j) {
      for (size_t i = 0; i < known; ++i) {
        const int64_t base = bases[i] + j * mode.stride;
        const auto at = static_cast<size_t>(base % period_);
        if (met[at]) continue;
        met[at] = true;
        bases.push_back(base);
      }
    }
  }
  return bases;
}

}  // namespace meshplan::verification
