#include "spec/mesh_parts.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/int_math.h"

namespace meshplan {
namespace {

// More than 62 dims of size 2 or more have more ranks than an int64 counts.
constexpr size_t most_dims = 64;

}  // namespace

void report_failure(Reader& reader, const char* code, uint32_t index, const Error& error) {
  const size_t cut = error.message.rfind("; ");
  if (cut == std::string::npos) {
    reader.error(code, index, error.message);
  } else {
    reader.error(code, index, error.message.substr(0, cut),
                 {error.message.substr(cut + 2), {}, 0, {}});
  }
}

std::optional<NamedSizes> read_dims(Reader& reader, uint32_t index) {
  const auto list = reader.elements(index, "\"dims\"");
  if (!list) return std::nullopt;
  if (list->empty()) {
    reader.error("E0211", index, "\"dims\" is empty", {"a mesh has one dim or more", {}, 0, {}});
    return std::nullopt;
  }
  if (list->size() > most_dims) {
    reader.error("E0212", index,
                 "a mesh of " + std::to_string(list->size()) + " dims; at most " +
                     std::to_string(most_dims) + " are read");
    return std::nullopt;
  }
  constexpr std::array<KeyRule, 2> rules{{{"name", true}, {"size", true}}};
  const size_t before = reader.errors();
  NamedSizes dims;
  std::vector<uint32_t> name_nodes;
  int64_t product = 1;
  for (const uint32_t entry : *list) {
    const auto found = reader.members(entry, rules, "a dim of the mesh");
    if (!found) continue;
    const auto [name_node, size_node] = *found;
    const auto name = reader.name(name_node, "a dim's \"name\"");
    const int64_t size = reader.integer(size_node, "a dim's \"size\"", 1).value_or(1);
    if (name) {
      const auto same = std::find_if(dims.begin(), dims.end(),
                                     [&](const auto& dim) { return dim.first == *name; });
      if (same != dims.end()) {
        reader.error("E0304", name_node, "two dims are called " + quote(*name),
                     {"give each its own name",
                      {},
                      name_nodes[static_cast<size_t>(same - dims.begin())],
                      "first given here"});
      }
    }
    const auto next = checked_mul(product, size);
    if (!next) {
      reader.error("E0301", size_node,
                   "the sizes of the dims multiply to more than 64 bits hold: " +
                       std::to_string(product) + " * " + std::to_string(size));
    }
    product = next.value_or(0);
    dims.emplace_back(name.value_or(""), size);
    name_nodes.push_back(name_node != 0 ? name_node : entry);
  }
  if (reader.errors() > before) return std::nullopt;
  return dims;
}

int64_t product_of(const NamedSizes& dims) {
  int64_t product = 1;
  for (const auto& [name, size] : dims) product *= size;
  return product;
}

std::optional<std::vector<int64_t>> read_ranks(Reader& reader, uint32_t index, int64_t world) {
  const auto list = reader.elements(index, "\"ranks\"");
  if (!list) return std::nullopt;
  const size_t before = reader.errors();
  std::vector<int64_t> ranks;
  ranks.reserve(list->size());
  for (const uint32_t entry : *list) {
    if (const auto rank = reader.integer(entry, "a rank", 0)) ranks.push_back(*rank);
  }
  if (reader.errors() > before) return std::nullopt;
  if (std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end()) {
    std::unordered_map<int64_t, size_t> seen;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto [first, fresh] = seen.emplace(ranks[i], i);
      if (fresh) continue;
      reader.error("E0303", (*list)[i], "rank " + std::to_string(ranks[i]) + " is listed twice",
                   {"every position of the mesh has its own rank",
                    {},
                    (*list)[first->second],
                    "first listed here"});
    }
  }
  if (world >= 0 && static_cast<int64_t>(ranks.size()) != world) {
    reader.error("E0302", index,
                 "\"ranks\" lists " + std::to_string(ranks.size()) + " ranks; the mesh has " +
                     std::to_string(world));
  }
  if (reader.errors() > before) return std::nullopt;
  return ranks;
}

bool descends(const Mesh& mesh, const std::vector<size_t>& dims) {
  Layout joined;
  for (const size_t i : dims)
    joined.modes.insert(joined.modes.end(), mesh.dims[i].layout.modes.begin(),
                        mesh.dims[i].layout.modes.end());
  return is_sorted(joined);
}

std::vector<std::string> names_at(const Mesh& mesh, const std::vector<size_t>& dims) {
  std::vector<std::string> names;
  names.reserve(dims.size());
  for (const size_t i : dims) names.push_back(mesh.dims[i].name);
  return names;
}

}  // namespace meshplan
