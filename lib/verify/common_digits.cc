#include "verify/common_digits.h"

#include <algorithm>

#include "base/int_math.h"
#include "verify/coverage.h"

namespace meshplan::verification {
namespace {

// The products of the leading sizes of a list.
std::vector<int64_t> places_of(const Digits& digits, const ShardList& list) {
  std::vector<int64_t> places;
  int64_t product = 1;
  for (size_t i = 0; i < list.count; ++i)
    places.push_back(product *= digits.list[list.digits[i]].size);
  return places;
}

// Cuts the digit of `list` that `place` falls into, if it falls into one; false where it does not
// divide it.
bool cut_at(const Digits& digits, const ShardList& list, int64_t place,
            std::vector<SubAxis>& cuts) {
  int64_t reached = 1;
  for (size_t i = 0; i < list.count; ++i) {
    const Digit& digit = digits.list[list.digits[i]];
    const int64_t end = reached * digit.size;
    if (place <= reached) return true;
    if (place < end) {
      if (place % reached != 0 || end % place != 0) return false;
      cuts.push_back({digit.mesh_dim, digit.before, place / reached});
      return true;
    }
    reached = end;
  }
  return true;
}

}  // namespace

std::optional<CommonDigits> common_digits(const ExchangeView& view, const Units& units) {
  const std::vector<int64_t> sizes = mesh_shape(*view.src_mesh);
  const State* const states[] = {view.src, view.dst};
  std::vector<SubAxis> cuts;
  std::vector<std::vector<LevelPart>> parts;
  for (size_t m = 0; m < sizes.size(); ++m) {
    auto of_dim = units.parts_of(view.src_mesh->dims[m].layout);
    if (!of_dim) return std::nullopt;
    for (const LevelPart& part : *of_dim) {
      if (of_dim->size() > 1) cuts.push_back({static_cast<int32_t>(m), part.before, part.size});
    }
    parts.push_back(std::move(*of_dim));
  }
  CommonDigits common;
  for (size_t known = SIZE_MAX; known != cuts.size();) {
    known = cuts.size();
    if (!make_digits(sizes, states, cuts, common.digits)) return std::nullopt;
    to_digits(*view.src, common.digits, common.before);
    to_digits(*view.dst, common.digits, common.after);
    for (size_t d = 0; d < view.shape.size(); ++d) {
      const ShardList a = common.before.shard_list(d);
      const ShardList b = common.after.shard_list(d);
      for (const int64_t place : places_of(common.digits, a)) {
        if (!cut_at(common.digits, b, place, cuts)) return std::nullopt;
      }
      for (const int64_t place : places_of(common.digits, b)) {
        if (!cut_at(common.digits, a, place, cuts)) return std::nullopt;
      }
    }
  }
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (!cuts_evenly(common.digits, common.before.shard_list(d), view.shape[d]))
      return std::nullopt;
    if (!cuts_evenly(common.digits, common.after.shard_list(d), view.shape[d])) return std::nullopt;
  }
  for (size_t i = 0; i < common.digits.count; ++i) {
    const Digit& digit = common.digits.list[i];
    size_t level = 0;
    for (const LevelPart& part : parts[digit.mesh_dim]) {
      if (part.before <= digit.before && digit.before < part.before * part.size) level = part.level;
    }
    common.level.push_back(level);
  }
  return common;
}

Roles roles_of(const CommonDigits& common, const ExchangeView& view) {
  Roles roles;
  const DigitSet kept = common.before.pending & common.after.pending;
  roles.any = common.before.pending & ~kept;
  roles.forced = kept;
  roles.source = common.before.pending;
  roles.piece = view.element_bytes;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    const ShardList a = common.before.shard_list(d);
    const ShardList b = common.after.shard_list(d);
    const size_t both = std::min(a.count, b.count);
    int64_t side = view.shape[d];
    for (size_t i = 0; i < std::max(a.count, b.count); ++i) {
      side /= common.digits.list[i < a.count ? a.digits[i] : b.digits[i]].size;
      if (i < both) roles.forced |= digit_bit(b.digits[i]);
      if (i < both && a.digits[i] != b.digits[i])
        roles.crossed.push_back({a.digits[i], b.digits[i]});
      if (i >= both && i < a.count) roles.any |= digit_bit(a.digits[i]);
    }
    roles.source |= a.set;
    roles.piece = saturating_mul(roles.piece, side);
    roles.longest = std::max(roles.longest, side);
  }
  return roles;
}

int64_t product_of(const Digits& digits, DigitSet set) {
  int64_t product = 1;
  for (size_t i = 0; i < digits.count; ++i) {
    if (has(set, i)) product = saturating_mul(product, digits.list[i].size);
  }
  return product;
}

}  // namespace meshplan::verification
