#include "transfer/sub_axes.h"

#include <algorithm>

namespace meshplan {

CoordinatesOn::CoordinatesOn(std::span<const SubAxis> sub_axes,
                             std::span<const int64_t> mesh_shape) {
  for (const SubAxis& sub_axis : sub_axes) {
    const auto m = static_cast<size_t>(sub_axis.mesh_dim);
    int64_t below = mesh_shape[m] / (sub_axis.before * sub_axis.size);
    for (size_t inner = m + 1; inner < mesh_shape.size(); ++inner) below *= mesh_shape[inner];
    digits_.push_back({below, sub_axis.size});
    count_ *= sub_axis.size;
  }
}

std::vector<int32_t> numbers_on(std::span<const SubAxis> sub_axes,
                                std::span<const int64_t> mesh_shape) {
  size_t ranks = 1;
  for (const int64_t size : mesh_shape) ranks *= static_cast<size_t>(size);
  std::vector<int32_t> numbers;
  if (sub_axes.empty()) {
    numbers.assign(ranks, 0);
    return numbers;
  }
  numbers.reserve(ranks);
  numbers.push_back(0);
  std::vector<int32_t> parts;  // what a coordinate on the mesh dim at hand adds
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    parts.assign(static_cast<size_t>(mesh_shape[m]), 0);
    int64_t weight = 1;
    for (size_t a = sub_axes.size(); a-- > 0; weight *= sub_axes[a].size) {
      const SubAxis& sub_axis = sub_axes[a];
      if (static_cast<size_t>(sub_axis.mesh_dim) != m) continue;
      const int64_t below = mesh_shape[m] / (sub_axis.before * sub_axis.size);
      for (size_t c = 0; c < parts.size(); ++c) {
        const int64_t digit = floor_mod(floor_div(static_cast<int64_t>(c), below), sub_axis.size);
        parts[c] += static_cast<int32_t>(digit * weight);
      }
    }
    // In place, from the back: a number is read before what follows from it is written over it.
    const size_t before = numbers.size();
    numbers.resize(before * parts.size());
    for (size_t i = before; i-- > 0;) {
      const int32_t number = numbers[i];
      for (size_t c = parts.size(); c-- > 0;) numbers[i * parts.size() + c] = number + parts[c];
    }
  }
  return numbers;
}

namespace {

// The factors at which the sub-axis is cut by others of its mesh dim, its own ends included.
std::vector<int64_t> cuts_of(const SubAxis& sub_axis, const std::vector<SubAxis>& others) {
  const int64_t end = sub_axis.before * sub_axis.size;
  std::vector<int64_t> cuts{sub_axis.before, end};
  for (const SubAxis& other : others) {
    if (other.mesh_dim != sub_axis.mesh_dim) continue;
    for (int64_t cut : {other.before, other.before * other.size}) {
      if (cut > sub_axis.before && cut < end) cuts.push_back(cut);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace

Result<std::vector<SubAxis>> sub_axes_without(const std::vector<SubAxis>& a,
                                              const std::vector<SubAxis>& b,
                                              const std::vector<int64_t>& mesh_shape) {
  std::vector<SubAxis> left;
  for (const SubAxis& sub_axis : a) {
    const int64_t size = mesh_shape[static_cast<size_t>(sub_axis.mesh_dim)];
    const std::vector<int64_t> cuts = cuts_of(sub_axis, b);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i + 1] % cuts[i] != 0 || size % cuts[i + 1] != 0) {
        return wrong_data("parts of mesh dim " + std::to_string(sub_axis.mesh_dim) +
                          " overlap at factors " + std::to_string(cuts[i]) + " and " +
                          std::to_string(cuts[i + 1]) + " of " + std::to_string(size));
      }
      const bool covered = std::any_of(b.begin(), b.end(), [&](const SubAxis& other) {
        return other.mesh_dim == sub_axis.mesh_dim && other.before <= cuts[i] &&
               other.before * other.size >= cuts[i + 1];
      });
      if (!covered) left.push_back({sub_axis.mesh_dim, cuts[i], cuts[i + 1] / cuts[i]});
    }
  }
  return left;
}

std::vector<PendingSubAxis> reduced_between(const State& before, const State& after,
                                            const std::vector<int64_t>& mesh_shape) {
  std::vector<PendingSubAxis> reduced;
  const std::vector<SubAxis> kept = partial_sub_axes(after);
  for (const PendingSubAxis& p : before.partial) {
    if (std::find(kept.begin(), kept.end(), p.sub_axis) != kept.end()) continue;
    const auto rest = sub_axes_without({p.sub_axis}, kept, mesh_shape);
    if (!rest) {  // parts that do not nest: no step has these states at its ends
      reduced.push_back(p);
      continue;
    }
    for (const SubAxis& sub_axis : *rest) reduced.push_back({sub_axis, p.op});
  }
  return reduced;
}

std::vector<SubAxis> every_dim(std::span<const int64_t> mesh_shape) {
  std::vector<SubAxis> sub_axes;
  for (size_t m = 0; m < mesh_shape.size(); ++m)
    sub_axes.push_back({static_cast<int32_t>(m), 1, mesh_shape[m]});
  return sub_axes;
}

std::vector<SubAxis> partial_sub_axes(const State& state) {
  std::vector<SubAxis> sub_axes;
  for (const PendingSubAxis& p : state.partial) sub_axes.push_back(p.sub_axis);
  return sub_axes;
}

std::vector<SubAxis> shard_sub_axes(const State& state) {
  std::vector<SubAxis> sub_axes;
  for (const auto& order : state.shards)
    sub_axes.insert(sub_axes.end(), order.begin(), order.end());
  return sub_axes;
}

}  // namespace meshplan
