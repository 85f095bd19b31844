#include "spec/mesh_parts.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/int_math.h"
#include "base/text.h"

namespace meshplan {
namespace {

// More than 62 dims of size 2 or more have more ranks than an int64 counts.
constexpr size_t most_dims = 64;
// Ranks that a list may name, by runs too: more are not held in memory.
constexpr size_t most_listed_ranks = size_t{1} << 24;

// "8-15", first and last.
std::optional<std::pair<int64_t, int64_t>> read_run(Reader& reader, uint32_t index) {
  const auto text = reader.text(index, "\"ranks\"");
  if (!text) return std::nullopt;
  const size_t dash = text->find('-');
  if (dash == std::string_view::npos) {
    reader.wrong_type(index, "a rank", "a number, or a run such as \"8-15\"");
    return std::nullopt;
  }
  const auto first = parse_int(text->substr(0, dash));
  const auto last = parse_int(text->substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > last_rank) {
    reader.error("E0206", index, quote(*text) + " is not a run of ranks",
                 {"write the first and the last, ascending: \"8-15\"", {}, 0, {}});
    return std::nullopt;
  }
  return std::pair{*first, *last};
}

// Ranks as listed, and where each stands.
struct ListedRanks {
  std::vector<int64_t> ranks;
  std::vector<uint32_t> places;
};

// Adds the rank or run at `entry`; false where the list becomes longer than is read.
bool add_ranks(Reader& reader, uint32_t entry, ListedRanks& list) {
  std::optional<std::pair<int64_t, int64_t>> run;
  if (reader.node(entry).kind == JsonKind::string) {
    run = read_run(reader, entry);
  } else if (const auto rank = reader.integer(entry, "a rank", 0, last_rank)) {
    run = {*rank, *rank};
  }
  if (!run) return true;
  const auto [first, last] = *run;
  if (static_cast<uint64_t>(last - first) >= most_listed_ranks - list.ranks.size()) return false;
  for (int64_t behind = 0; behind <= last - first; ++behind) {  // first + behind: any int64
    list.ranks.push_back(first + behind);
    list.places.push_back(entry);
  }
  return true;
}

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
        reader.error(
            "E0304", name_node, "two dims are called " + quote(*name),
            {"give each its own name", {}, name_nodes[same - dims.begin()], "first given here"});
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
  const size_t before = reader.errors();
  const bool alone = reader.node(index).kind == JsonKind::string;
  const auto entries = alone ? std::vector<uint32_t>{index} : reader.elements(index, "\"ranks\"");
  if (!entries) return std::nullopt;
  ListedRanks listed;
  listed.ranks.reserve(entries->size());
  for (const uint32_t entry : *entries) {
    if (add_ranks(reader, entry, listed)) continue;
    reader.error("E0212", entry,
                 "\"ranks\" lists more than " + with_commas(most_listed_ranks) + " ranks",
                 {"leave it out for 0 to world-1", {}, 0, {}});
    return std::nullopt;
  }
  if (reader.errors() > before) return std::nullopt;
  const std::vector<int64_t>& ranks = listed.ranks;
  if (std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end()) {
    std::unordered_map<int64_t, size_t> seen;
    uint32_t last = 0;  // the entry reported last: a run is told once
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto [first, fresh] = seen.emplace(ranks[i], i);
      if (fresh || listed.places[i] == last) continue;
      last = listed.places[i];
      reader.error("E0303", last, "rank " + std::to_string(ranks[i]) + " is listed twice",
                   {"every position of the mesh has its own rank",
                    {},
                    listed.places[first->second],
                    "first listed here"});
    }
  }
  if (world >= 0 && std::ssize(ranks) != world) {
    reader.error("E0302", index,
                 "\"ranks\" lists " + std::to_string(ranks.size()) + " ranks; the mesh has " +
                     std::to_string(world));
  }
  if (reader.errors() > before) return std::nullopt;
  return std::move(listed.ranks);
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
