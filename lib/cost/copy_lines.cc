#include "cost/copy_lines.h"

#include <algorithm>
#include <set>

namespace meshplan {
namespace {

bool cuts_wholly(const State& state, size_t mesh_dim, int64_t size) {
  int64_t parts = 1;
  for (const auto& order : state.shards) {
    for (const SubAxis& a : order) {
      if (static_cast<size_t>(a.mesh_dim) == mesh_dim) parts *= a.size;
    }
  }
  return parts == size;
}

CopyLines lines_of(const std::vector<int64_t>& ids, int64_t size, int64_t stride,
                   const LevelUnits& units) {
  CopyLines least(static_cast<size_t>(units.levels()), size);
  for (size_t first = 0; first < ids.size(); ++first) {
    if (static_cast<int64_t>(first) / stride % size != 0) continue;
    for (int level = 1; level < units.levels(); ++level) {
      std::set<int64_t> met;
      for (int64_t i = 0; i < size; ++i)
        met.insert(units.unit(ids[first + static_cast<size_t>(i * stride)], level - 1));
      int64_t& fewest = least[static_cast<size_t>(level)];
      fewest = std::min(fewest, static_cast<int64_t>(met.size()));
    }
  }
  return least;
}

}  // namespace

std::vector<CopyLines> copy_lines(const Mesh& mesh, const State& state, const LevelUnits& units) {
  std::vector<CopyLines> all;
  const std::vector<int64_t> ids = materialise(mesh);
  int64_t stride = 1;
  for (size_t m = mesh.dims.size(); m-- > 0;) {
    const int64_t size = mesh.dims[m].size;
    if (!cuts_wholly(state, m, size)) all.push_back(lines_of(ids, size, stride, units));
    stride *= size;
  }
  return all;
}

}  // namespace meshplan
