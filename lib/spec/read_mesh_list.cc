#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "json/write.h"
#include "mesh/parallel_dims.h"
#include "spec/mesh_parts.h"
#include "spec/read_meshes.h"

namespace meshplan {
namespace {

// What all operations of "meshes" have in common, read before the operation itself.
struct Operation {
  uint32_t index = 0;
  std::optional<std::string> name;
  std::optional<size_t> of;
  std::string group_options;
};

constexpr std::array<std::string_view, 7> operation_keys{
    "world", "slice", "flatten", "unflatten", "concatenate", "transpose", "parallel_dims"};

// Which operation an entry is: the one key of operation_keys that it has.
std::optional<size_t> operation_of(Reader& reader, uint32_t index) {
  if (reader.node(index).kind != JsonKind::object) {
    reader.wrong_type(index, "an entry of \"meshes\"", "an object");
    return std::nullopt;
  }
  std::string buffer;
  std::optional<size_t> operation;
  uint32_t first = 0;
  for (uint32_t child = index + 1; child < reader.node(index).next;
       child = reader.node(child).next) {
    if (reader.node(child).repeated || reader.node(child).keyless)
      return std::nullopt;  // reported by the parser
    const std::string_view key = key_of(reader.document(), reader.node(child), buffer);
    const auto known = std::find(operation_keys.begin(), operation_keys.end(), key);
    if (known == operation_keys.end()) continue;
    if (operation && operation_keys[*operation] != key) {
      reader.error_at_key(
          "E0208", child, quote(key) + " beside " + quote(operation_keys[*operation]),
          {"an entry of \"meshes\" is one operation", {}, first, "the operation so far"});
      return std::nullopt;
    }
    operation = static_cast<size_t>(known - operation_keys.begin());
    first = child;
  }
  if (operation) return operation;
  bool is_view = false;
  bool has_ranks = false;
  for (uint32_t child = index + 1; child < reader.node(index).next;
       child = reader.node(child).next) {
    const std::string key(key_of(reader.document(), reader.node(child), buffer));
    is_view = is_view || key == "of";
    has_ranks = has_ranks || key == "dims" || key == "ranks";
    const auto near = nearest(key.substr(0, 100), {operation_keys.begin(), operation_keys.end()});
    if (!near || key == "name" || key == "of" || key == "dims" || key == "ranks" || key == "dim" ||
        key == "sizes")
      continue;
    reader.error_at_key(
        "E0203", child, "unknown key " + quote(key) + " in an entry of \"meshes\"",
        {"did you mean " + quote(*near) + "?", Fix{"\"" + *near + "\"", false}, 0, {}});
    return std::nullopt;
  }
  std::string help =
      "expected one of world, slice, flatten, unflatten, concatenate, transpose, parallel_dims";
  if (has_ranks && !is_view)
    help = "a mesh that is no view says how many ranks it has: {\"name\": ..., \"world\": 8, ...}";
  reader.error("E0202", index, "an entry of \"meshes\" names no operation",
               {std::move(help), {}, 0, {}});
  return std::nullopt;
}

class MeshList {
 public:
  explicit MeshList(Reader& reader) : reader_(reader) {}

  ReadMeshes read(uint32_t index) {
    const auto list = reader_.elements(index, "\"meshes\"");
    if (!list) {
      made_.names_lost = true;
      return std::move(made_);
    }
    if (list->empty())
      reader_.error("E0211", index, "\"meshes\" is empty",
                    {"begin with {\"name\": ..., \"world\": ...}", {}, 0, {}});
    for (const uint32_t entry : *list) read_entry(entry);
    return std::move(made_);
  }

 private:
  MeshTable& table() { return made_.table; }
  const Mesh& mesh(size_t index) const { return made_.table.meshes[index]; }

  void read_entry(uint32_t entry) {
    const auto operation = operation_of(reader_, entry);
    done_ = false;
    if (operation) {
      const bool root = *operation == 0 || *operation == 6;
      if (!root && !rooted_) {
        if (!unknown_) {  // else that entry may have been a universe
          reader_.error("E0312", entry, "a view before its universe",
                        {"begin with {\"name\": ..., \"world\": ...} or {\"parallel_dims\": ...}",
                         {},
                         0,
                         {}});
        }
      } else {
        rooted_ = true;
        (this->*readers[*operation])(entry);
      }
    }
    unknown_ = unknown_ || !operation;
    if (!done_) forget(entry, operation);
  }

  // The mesh of this entry could not be made: references to its name are not errors of their own.
  void forget(uint32_t entry, std::optional<size_t> operation) {
    if (reader_.node(entry).kind != JsonKind::object || operation == 6U) {
      made_.names_lost = true;
      return;
    }
    std::string buffer;
    for (const std::string_view wanted : {"name", "dim"}) {
      for (uint32_t child = entry + 1; child < reader_.node(entry).next;
           child = reader_.node(child).next) {
        if (key_of(reader_.document(), reader_.node(child), buffer) != wanted ||
            reader_.node(child).kind != JsonKind::string)
          continue;
        const std::string_view name = string_of(reader_.document(), reader_.node(child), buffer);
        made_.names_lost = made_.names_lost || name.empty();
        made_.broken.emplace(name);
        return;
      }
    }
    made_.names_lost = true;
  }

  // "name", "of" and "group_options", where the operation has them (node 0: it has not).
  Operation common(uint32_t entry, uint32_t name, uint32_t of, uint32_t options) {
    Operation operation;
    operation.index = entry;
    if (name != 0) operation.name = free_name(name);
    if (of != 0) operation.of = read_mesh_name(reader_, of, "\"of\"", made_);
    if (options != 0) {
      if (reader_.node(options).kind != JsonKind::object) {
        reader_.wrong_type(options, "\"group_options\"", "an object");
      } else if (reader_.node(options).count > 0) {
        operation.group_options = canonical_text(reader_.document(), options);
      }
    }
    return operation;
  }

  std::optional<std::string> free_name(uint32_t index) {
    auto name = reader_.name(index, "\"name\"");
    if (!name || (!find_mesh(table(), *name) && !made_.broken.contains(*name))) return name;
    const auto first = name_nodes_.find(*name);
    reader_.error("E0309", index, "a mesh called " + quote(*name) + " exists already",
                  {"give this one another name",
                   {},
                   first == name_nodes_.end() ? 0 : first->second,
                   "first given here"});
    return std::nullopt;
  }

  void finish(const Operation& operation, uint32_t name, const char* code, uint32_t place,
              const Status& status) {
    if (!status) {
      report_failure(reader_, code, place, status.error());
      return;
    }
    done_ = true;
    if (name != 0 && operation.name) name_nodes_.emplace(*operation.name, name);
  }

  void read_world(uint32_t entry) {
    constexpr std::array<KeyRule, 5> rules{
        {{"name", true}, {"world", true}, {"ranks"}, {"dims"}, {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "the universe");
    if (!found) return;
    const auto [name, world_node, ranks_node, dims_node, options] = *found;
    const Operation operation = common(entry, name, 0, options);
    const auto world = reader_.integer(world_node, "\"world\"", 1);
    const auto dims =
        dims_node != 0 ? read_dims(reader_, dims_node) : std::optional<NamedSizes>(NamedSizes{});
    if (world && dims && !dims->empty() && product_of(*dims) != *world) {
      reader_.error("E0302", dims_node,
                    "the dims multiply to " + std::to_string(product_of(*dims)) +
                        "; the world has " + std::to_string(*world) + " ranks",
                    {"", {}, world_node, "the world"});
    }
    const auto ranks = ranks_node != 0
                           ? read_ranks(reader_, ranks_node, world.value_or(-1))
                           : std::optional<std::vector<int64_t>>(std::vector<int64_t>{});
    if (reader_.errors() > before || !operation.name || !world || !dims || !ranks) return;
    finish(operation, name, "E0302", entry,
           add_root(table(), *operation.name, *world, *ranks, *dims, operation.group_options));
  }

  void read_slice(uint32_t entry) {
    const auto base = [this](const Mesh& of) { return with_flattened_dims(table(), of); };
    read_picked(entry, "slice", "a slice", base, add_slice);
  }
  void read_transpose(uint32_t entry) {
    const auto base = [](const Mesh& of) { return of; };
    read_picked(entry, "transpose", "a transpose", base, add_transpose);
  }

  // A view of some dims of a mesh, listed under `key`; `base_of` is the mesh with all that may be.
  template <class Base, class Add>
  void read_picked(uint32_t entry, const char* key, const char* what, Base base_of, Add add) {
    const std::array<KeyRule, 4> rules{
        {{"name", true}, {"of", true}, {key, true}, {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, what);
    if (!found) return;
    const auto [name, of, dims_node, options] = *found;
    const Operation operation = common(entry, name, of, options);
    if (!operation.of) return;
    const Mesh base = base_of(mesh(*operation.of));
    const auto dims = read_dim_list(reader_, dims_node, quote(key), base);
    if (reader_.errors() > before || !operation.name || !dims) return;
    finish(operation, name, dims_sharing_ranks(base, *dims) ? "E0310" : "E0308", dims_node,
           add(table(), *operation.name, std::string(base.name), names_at(base, *dims),
               operation.group_options));
  }

  void read_flatten(uint32_t entry) {
    constexpr std::array<KeyRule, 5> rules{
        {{"name"}, {"of", true}, {"flatten", true}, {"dim"}, {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "a flatten");
    if (!found) return;
    const auto [name_node, of, dims_node, dim_node, options] = *found;
    // The same flatten may be declared again under its own name: add_flatten checks the name.
    Operation operation = common(entry, 0, of, options);
    if (name_node != 0) operation.name = reader_.name(name_node, "\"name\"");
    const auto dim =
        dim_node != 0 ? reader_.name(dim_node, "\"dim\"") : std::optional<std::string>("");
    const auto dims = operation.of
                          ? read_dim_list(reader_, dims_node, "\"flatten\"", mesh(*operation.of))
                          : std::nullopt;
    if (reader_.errors() > before || !dims || !dim) return;
    const Mesh& base = mesh(*operation.of);
    const uint32_t label = name_node != 0 ? name_node : dim_node != 0 ? dim_node : dims_node;
    finish(operation, name_node, "E0309", label,
           add_flatten(table(), operation.name.value_or(""), std::string(base.name),
                       names_at(base, *dims), *dim, operation.group_options));
  }

  void read_unflatten(uint32_t entry) {
    constexpr std::array<KeyRule, 6> rules{{{"name", true},
                                            {"of", true},
                                            {"unflatten", true},
                                            {"sizes", true},
                                            {"dims", true},
                                            {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "an unflatten");
    if (!found) return;
    const auto [name, of, dim_node, sizes_node, dims_node, options] = *found;
    const Operation operation = common(entry, name, of, options);
    std::string dim;
    if (operation.of && dim_node != 0) {
      const Mesh& base = mesh(*operation.of);
      const auto known = read_dim_name(reader_, dim_node, base);
      if (known) dim = base.dims[*known].name;
    }
    std::vector<int64_t> sizes;
    for (const uint32_t size : list_or_none(sizes_node, "\"sizes\""))
      sizes.push_back(reader_.integer(size, "a size", 1).value_or(1));
    const std::vector<uint32_t> nodes = list_or_none(dims_node, "\"dims\"");
    const std::vector<std::string> names = read_new_names(nodes);
    if (reader_.errors() > before || !operation.name || dim.empty() || sizes_node == 0 ||
        dims_node == 0)
      return;
    const Mesh& base = mesh(*operation.of);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == dim || !find_dim(base, names[i])) continue;
      reader_.error("E0304", nodes[i],
                    "mesh " + quote(base.name) + " has a dim " + quote(names[i]) + " already",
                    {"give the part another name", {}, 0, {}});
      return;
    }
    finish(operation, name, "E0311", names.size() == sizes.size() ? sizes_node : dims_node,
           add_unflatten(table(), *operation.name, std::string(base.name), dim, sizes, names,
                         operation.group_options));
  }

  std::vector<uint32_t> list_or_none(uint32_t index, std::string_view what) {
    if (index == 0) return {};
    return reader_.elements(index, what).value_or(std::vector<uint32_t>{});
  }

  // Names of dims to make: each once.
  std::vector<std::string> read_new_names(const std::vector<uint32_t>& nodes) {
    std::vector<std::string> names;
    for (const uint32_t node : nodes) {
      const std::string made = reader_.name(node, "a dim's name").value_or("");
      const auto same = std::find(names.begin(), names.end(), made);
      if (same != names.end() && !made.empty()) {
        reader_.error(
            "E0304", node, "two dims are called " + quote(made),
            {"give each its own name", {}, nodes[same - names.begin()], "first given here"});
      }
      names.push_back(made);
    }
    return names;
  }

  void read_concatenate(uint32_t entry) {
    constexpr std::array<KeyRule, 3> rules{
        {{"name", true}, {"concatenate", true}, {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "a concatenation");
    if (!found) return;
    const auto [name, list_node, options] = *found;
    const Operation operation = common(entry, name, 0, options);
    const auto list = reader_.elements(list_node, "\"concatenate\"");
    if (!list) return;
    if (list->empty())
      reader_.error("E0211", list_node, "\"concatenate\" is empty",
                    {"name the meshes to join", {}, 0, {}});
    bool good = true;
    std::optional<size_t> first;
    std::vector<std::string> parts;
    std::vector<std::string> dims;
    for (const uint32_t part : *list) {
      const auto index = read_mesh_name(reader_, part, "a mesh to join", made_);
      good = good && index.has_value();
      if (!index) continue;
      if (!first) first = index;
      if (mesh(*index).universe != mesh(*first).universe) {
        reader_.error(
            "E0312", part,
            "mesh " + quote(mesh(*index).name) + " is not in the universe of " +
                quote(mesh(*first).name),
            {"join meshes of one universe, or make a root over the ranks of both", {}, 0, {}});
        good = false;
        continue;
      }
      for (const MeshDim& dim : mesh(*index).dims) {
        if (std::find(dims.begin(), dims.end(), dim.name) != dims.end()) {
          reader_.error("E0304", part, "two of the meshes have a dim called " + quote(dim.name),
                        {"give each its own name, by unflatten or another slice", {}, 0, {}});
        }
        dims.push_back(dim.name);
      }
      parts.push_back(mesh(*index).name);
    }
    if (reader_.errors() > before || !good || !operation.name) return;
    finish(operation, name, "E0310", list_node,
           add_concatenate(table(), *operation.name, parts, operation.group_options));
  }

  void read_parallel_dims(uint32_t entry) {
    constexpr std::array<KeyRule, 2> rules{{{"parallel_dims", true}, {"group_options"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "parallel_dims");
    if (!found) return;
    const auto [dims_node, options] = *found;
    const Operation operation = common(entry, 0, 0, options);
    constexpr std::array<KeyRule, 8> degrees{
        {{"world", true}, {"pp"}, {"dp_replicate"}, {"dp_shard"}, {"cp"}, {"tp"}, {"ep"}, {"etp"}}};
    const auto values = reader_.members(dims_node, degrees, "\"parallel_dims\"");
    if (!values) return;
    ParallelDims dims;
    int64_t* const fields[] = {&dims.world, &dims.pp, &dims.dp_replicate, &dims.dp_shard,
                               &dims.cp,    &dims.tp, &dims.ep,           &dims.etp};
    for (size_t i = 0; i < values->size(); ++i) {
      if ((*values)[i] == 0) continue;
      const bool rest = degrees[i].name == "dp_shard";
      const auto value = reader_.integer((*values)[i], quote(degrees[i].name), rest ? -1 : 1);
      if (value && *value == 0) {
        reader_.error("E0205", (*values)[i],
                      "\"dp_shard\" is 0; it must be 1 or more, or -1 for what the others leave");
      }
      if (value) *fields[i] = *value;
    }
    if (reader_.errors() > before || (*values)[0] == 0) return;
    const Status added = add_parallel_dims(table(), dims, operation.group_options);
    finish(operation, 0, "E0313", dims_node, added);
  }

  using EntryReader = void (MeshList::*)(uint32_t);
  static constexpr std::array<EntryReader, 7> readers{
      &MeshList::read_world,        &MeshList::read_slice,       &MeshList::read_flatten,
      &MeshList::read_unflatten,    &MeshList::read_concatenate, &MeshList::read_transpose,
      &MeshList::read_parallel_dims};

  Reader& reader_;
  ReadMeshes made_;
  bool rooted_ = false;   // some entry made a universe, or was to make one
  bool done_ = false;     // the operation at hand has made its mesh
  bool unknown_ = false;  // some entry could not be told to be any operation
  std::unordered_map<std::string, uint32_t> name_nodes_;
};

}  // namespace

ReadMeshes read_meshes(Reader& reader, uint32_t index) { return MeshList(reader).read(index); }

}  // namespace meshplan
