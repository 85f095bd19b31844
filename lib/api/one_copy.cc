#include "api/one_copy.h"

#include <algorithm>

#include "api/warnings.h"
#include "base/text.h"
#include "diag/outcome_codes.h"

namespace meshplan {
namespace {

// Of a universe for a message that lists ranks.
constexpr int64_t most_listed_ranks = 1 << 20;

std::string runs_of(std::vector<int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const auto world = static_cast<int64_t>(ranks.size());
  return std::string(world == 1 ? "rank " : "ranks ") + rank_runs({world, std::move(ranks)});
}

// The ranks of all copies but the first.
std::vector<int64_t> ranks_left_out(const Mesh& mesh) {
  const Universe& universe = *mesh.universe;
  std::vector<bool> taken(universe.world);
  for (int64_t i = 0; i < mesh_size(mesh); ++i) taken[position_of(mesh, 0, i)] = true;
  std::vector<int64_t> ranks;
  for (int64_t position = 0; position < universe.world; ++position) {
    if (!taken[position]) ranks.push_back(rank_at(universe, position));
  }
  return ranks;
}

}  // namespace

std::vector<OneCopy> ends_on_one_copy(const Spec& spec) {
  std::vector<OneCopy> ends;
  if (spec.recorded) return ends;
  for (size_t i = 0; i < spec.requests.size(); ++i) {
    const Request& request = spec.requests[i];
    if (request.src_mesh == request.dst_mesh) continue;
    for (const bool target : {false, true}) {
      const size_t mesh = target ? request.dst_mesh : request.src_mesh;
      if (mesh_copies(spec.meshes.meshes[mesh]) == 1 ||
          is_allowed(spec.allow, code_one_copy, request.id))
        continue;
      auto found = std::find_if(ends.begin(), ends.end(), [&](const OneCopy& end) {
        return end.mesh == mesh && end.target == target;
      });
      if (found == ends.end()) found = ends.insert(ends.end(), {mesh, target, {}, i});
      found->ids.push_back(request.id);
    }
  }
  return ends;
}

std::string message_of(const Spec& spec, const OneCopy& end) {
  const Mesh& mesh = spec.meshes.meshes[end.mesh];
  const bool one = end.ids.size() == 1;
  const std::string who =
      one ? "'" + end.ids[0] + "'"
          : with_commas(std::ssize(end.ids)) + " redistributions (the first '" + end.ids[0] + "')";
  const std::string way = end.target ? one ? " goes to" : " go to"
                          : one      ? " comes from"
                                     : " come from";
  const std::string text =
      who + way + " one copy of " + with_commas(mesh_copies(mesh)) + " of mesh '" + mesh.name + "'";
  const std::string lack = end.target ? " get nothing" : " send nothing";
  if (mesh.universe->world > most_listed_ranks)
    return text + ", the one with the first rank of its universe: the others" + lack;
  const std::vector<int64_t> others = ranks_left_out(mesh);
  return text + ", on " + runs_of(materialise(mesh)) + ": " + runs_of(others) +
         (others.size() == 1 ? end.target ? " gets nothing" : " sends nothing" : lack);
}

}  // namespace meshplan
