#include "verify/sentences.h"

#include <algorithm>

#include "base/text.h"
#include "verify/figures.h"

namespace meshplan::verification {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Marks where `part` stands in the text, inside a longer number apart.
void mark(std::string_view text, std::string_view part, std::vector<bool>& marked) {
  if (part.empty()) return;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    const size_t end = at + part.size();
    if (is_digit(part.front()) && at > 0 && is_digit(text[at - 1])) continue;
    if (is_digit(part.back()) && end < text.size() && is_digit(text[end])) continue;
    std::fill(marked.begin() + static_cast<std::ptrdiff_t>(at),
              marked.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
}

// "a and b and c", "a, b and c": as reasons join mesh dims.
std::vector<std::string> joined_dims(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return {"over " + join(names, " and "), "over " + list};
}

// The tensor dims that a mesh dim of a step goes from and to.
std::string tensor_dims_told(const Placement& src, const Placement& dst) {
  const auto dim = [](const Placement& placement) {
    return "tensor dim " + std::to_string(placement.tensor_dim);
  };
  if (is_shard(src) && is_shard(dst)) return "from " + dim(src) + " to " + dim(dst);
  return is_shard(src) ? dim(src) : is_shard(dst) ? dim(dst) : "";
}

}  // namespace

Problem check_numbers(std::string_view text, const std::vector<std::string>& said) {
  std::vector<bool> marked(text.size(), false);
  for (const std::string& part : said) mark(text, part, marked);
  for (size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at]) || marked[at]) continue;
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return "'" + std::string(text) + "' says " + std::string(text.substr(at, end - at)) +
           " at its character " + std::to_string(at + 1) +
           ", which is not a number of what it is about";
  }
  return std::nullopt;
}

std::string counted_noun(int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

Problem check_reason(const PlannedRedistribution& redistribution, const Step& step,
                     std::span<const std::string> dim_names, std::span<const int64_t> mesh_shape) {
  if (std::none_of(step.why.begin(), step.why.end(), is_digit)) return std::nullopt;
  std::vector<std::string> names;
  for (const SubAxis& sub_axis : step.mesh_dims)
    names.push_back(to_text(sub_axis, dim_names, mesh_shape));
  std::vector<std::string> said = joined_dims(names);
  // A collective of one rank says so, too.
  said.push_back(std::to_string(ranks_of_group(step)) + " ranks");
  said.push_back(std::to_string(step.merged) + " steps in one");
  said.push_back("divided by " + std::to_string(step.scale_divisor));
  if (step.src && step.dst) said.push_back(tensor_dims_told(*step.src, *step.dst));
  for (const Move& move : step.moves) said.push_back(tensor_dims_told(move.src, move.dst));
  for (size_t d = 0; d < redistribution.dst.shards.size(); ++d) {
    const auto& list = redistribution.dst.shards[d];
    const bool shards = std::any_of(list.begin(), list.end(), [&](const SubAxis& a) {
      return std::any_of(step.mesh_dims.begin(), step.mesh_dims.end(),
                         [&](const SubAxis& b) { return a.mesh_dim == b.mesh_dim; });
    });
    if (shards) said.push_back("becomes " + to_text(shard(static_cast<int32_t>(d))) + " below");
  }
  if (auto problem = check_numbers(step.why, said)) return "its reason " + *problem;
  return std::nullopt;
}

}  // namespace meshplan::verification
