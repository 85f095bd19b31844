#include "spec/read_redistributions.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "json/write.h"
#include "plan/notes.h"
#include "spec/read_placements.h"

namespace meshplan {
namespace {

constexpr size_t most_tensor_dims = 64;

class RedistributionList {
 public:
  RedistributionList(Reader& reader, const ReadMeshes& meshes, bool simple)
      : reader_(reader), meshes_(meshes), simple_(simple) {
    for (const Mesh& known : meshes.table.meshes) shapes_.push_back(mesh_shape(known));
  }

  ReadRedistributions read(uint32_t index) {
    if (index == 0) return std::move(made_);
    const auto list = reader_.elements(index, "\"redistributions\"");
    if (!list) {
      made_.ids_lost = true;
      return std::move(made_);
    }
    made_.requests.reserve(list->size());
    made_.spans.reserve(list->size());
    made_.ids.reserve(list->size());
    for (const uint32_t entry : *list) read_entry(entry);
    return std::move(made_);
  }

 private:
  enum Key : size_t {
    id,
    tensor,
    src,
    dst,
    mesh,
    src_mesh,
    dst_mesh,
    src_order,
    dst_order,
    direction,
    reduce_dtype,
    count,
    keys
  };
  using Members = std::array<uint32_t, keys>;

  void read_entry(uint32_t entry) {
    static constexpr std::array<KeyRule, keys> rules{{{"id", true},
                                                      {"tensor", true},
                                                      {"src", true},
                                                      {"dst", true},
                                                      {"mesh"},
                                                      {"src_mesh"},
                                                      {"dst_mesh"},
                                                      {"src_order"},
                                                      {"dst_order"},
                                                      {"direction"},
                                                      {"reduce_dtype"},
                                                      {"count"}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(entry, rules, "a redistribution");
    if (!found) {
      made_.ids_lost = true;
      return;
    }
    const Members& at = *found;
    Request request;
    const auto meshes = read_mesh_names(entry, at);
    read_id(at[id], request);
    const bool whole_tensor = at[tensor] != 0 && read_tensor(at[tensor], request.tensor);
    const TensorMeta* meta = whole_tensor ? &request.tensor : nullptr;
    if (at[count] != 0) read_count(at[count], request, meta);
    if (at[direction] != 0) {
      const auto chosen = reader_.choice(at[direction], "direction", {"forward", "backward"});
      if (chosen) request.direction = *chosen == 0 ? Direction::forward : Direction::backward;
    }
    if (at[reduce_dtype] != 0) read_reduce_dtype(at[reduce_dtype], request, meta);
    const uint32_t dst_order_node = read_any_order(at[dst_order], request);
    StateContext from{nullptr, nullptr, meta, 0};
    StateContext to{nullptr, nullptr, meta, request.any_dst_order ? at[dst_order] : 0};
    if (meshes) {
      request.src_mesh = meshes->first;
      request.dst_mesh = meshes->second;
      from.mesh = &meshes_.table.meshes[meshes->first];
      from.mesh_shape = &shapes_[meshes->first];
      to.mesh = &meshes_.table.meshes[meshes->second];
      to.mesh_shape = &shapes_[meshes->second];
    }
    if (at[src] != 0)
      keep(read_state(reader_, at[src], at[src_order], "\"src\"", from), request.src);
    if (at[dst] != 0)
      keep(read_state(reader_, at[dst], dst_order_node, "\"dst\"", to), request.dst);
    read_notes(entry, request);
    if (reader_.errors() > before || !meshes) return;
    made_.requests.push_back(std::move(request));
    made_.spans.emplace_back(reader_.node(entry).begin, reader_.node(entry).end);
  }

  // What the plan carries, where it is a text or a list of texts and nulls; anything else is a note
  // of the spec alone.
  void read_notes(uint32_t entry, Request& request) {
    const JsonDocument& document = reader_.document();
    std::string buffer;
    for (uint32_t at = entry + 1; at < reader_.node(entry).next; at = reader_.node(at).next) {
      const JsonNode& note = reader_.node(at);
      if (note.keyless || note.repeated) continue;
      const std::string key(key_of(document, note, buffer));
      bool plain =
          is_carried_note(key) && (note.kind == JsonKind::string || note.kind == JsonKind::array);
      for (uint32_t in = at + 1; plain && in < note.next; ++in) {
        const JsonKind kind = reader_.node(in).kind;
        plain = kind == JsonKind::string || kind == JsonKind::null;
      }
      if (plain) request.notes.push_back({key, canonical_text(document, at)});
    }
    std::sort(request.notes.begin(), request.notes.end(),
              [](const Note& a, const Note& b) { return a.key < b.key; });
  }

  static void keep(std::optional<State> read, State& into) {
    if (read) into = std::move(*read);
  }

  void read_id(uint32_t index, Request& request) {
    const auto given = index == 0 ? std::nullopt : reader_.name(index, "\"id\"");
    if (!given) {
      made_.ids_lost = true;
      return;
    }
    request.id = *given;
    std::string_view key = raw(reader_.document(), reader_.node(index));
    key = key.substr(1, key.size() - 2);
    if (reader_.node(index).escaped) key = made_.escaped.emplace_back(*given);
    const auto [known, fresh] = made_.ids.emplace(key, index);
    if (fresh) return;
    reader_.error("E0210", index,
                  "a redistribution with the id " + quote(*given) + " exists already",
                  {"give this one another id, or raise the count of the first",
                   {},
                   known->second,
                   "first given here"});
  }

  // Source and target mesh. No value: reported, or a consequence of a broken mesh.
  std::optional<std::pair<size_t, size_t>> read_mesh_names(uint32_t entry, const Members& at) {
    if (at[mesh] != 0 && (at[src_mesh] != 0 || at[dst_mesh] != 0)) {
      const uint32_t other = at[src_mesh] != 0 ? at[src_mesh] : at[dst_mesh];
      reader_.error_at_key(
          "E0208", at[mesh],
          std::string("\"mesh\" beside ") +
              (other == at[src_mesh] ? "\"src_mesh\"" : "\"dst_mesh\""),
          {"name one mesh, or both \"src_mesh\" and \"dst_mesh\"", {}, other, "the other"});
      return std::nullopt;
    }
    if (at[mesh] != 0) {
      const auto index = read_mesh_name(reader_, at[mesh], "\"mesh\"", meshes_);
      if (!index) return std::nullopt;
      return std::pair{*index, *index};
    }
    if (at[src_mesh] != 0 || at[dst_mesh] != 0) {
      std::optional<size_t> from;
      std::optional<size_t> to;
      if (at[src_mesh] != 0) from = read_mesh_name(reader_, at[src_mesh], "\"src_mesh\"", meshes_);
      if (at[dst_mesh] != 0) to = read_mesh_name(reader_, at[dst_mesh], "\"dst_mesh\"", meshes_);
      if ((at[src_mesh] == 0 && !reader_.misspelt("src_mesh")) ||
          (at[dst_mesh] == 0 && !reader_.misspelt("dst_mesh"))) {
        reader_.error("E0202", entry,
                      std::string("a redistribution across meshes lacks the key ") +
                          (at[src_mesh] == 0 ? "\"src_mesh\"" : "\"dst_mesh\""));
      }
      if (!from || !to) return std::nullopt;
      return std::pair{*from, *to};
    }
    if (simple_) {
      if (meshes_.table.meshes.empty()) return std::nullopt;
      return std::pair{size_t{0}, size_t{0}};
    }
    if (reader_.misspelt("mesh")) return std::nullopt;
    reader_.error("E0202", entry, "a redistribution lacks the key \"mesh\"",
                  {"name one of the meshes of \"meshes\"", {}, 0, {}});
    return std::nullopt;
  }

  // Elements and bytes must fit in 64 bits, with empty dims counted as one: an empty tensor has
  // strides too.
  bool read_tensor(uint32_t index, TensorMeta& tensor_meta) {
    static constexpr std::array<KeyRule, 2> rules{{{"shape", true}, {"dtype", true}}};
    const size_t before = reader_.errors();
    const auto found = reader_.members(index, rules, "a tensor");
    if (!found) return false;
    const auto [shape, dtype] = *found;
    if (dtype != 0) {
      const auto given = reader_.text(dtype, "\"dtype\"");
      const auto parsed = given ? parse_dtype(*given) : std::nullopt;
      if (parsed) tensor_meta.dtype = *parsed;
      if (given && !parsed)
        reader_.error("E0206", dtype, "unknown dtype " + quote(*given),
                      suggestion(*given, dtype_names(), "expected one of "));
    }
    if (shape != 0) read_shape(shape, tensor_meta, dtype != 0);
    return reader_.errors() == before && shape != 0 && dtype != 0;
  }

  void read_shape(uint32_t index, TensorMeta& tensor_meta, bool has_dtype) {
    if (reader_.node(index).kind != JsonKind::array) {
      reader_.wrong_type(index, "\"shape\"", "a list of sizes");
      return;
    }
    const uint32_t dims = reader_.node(index).count;
    if (dims > most_tensor_dims) {
      reader_.error("E0212", index,
                    "a tensor of " + std::to_string(dims) + " dims; at most " +
                        std::to_string(most_tensor_dims) + " are read");
      return;
    }
    const size_t before = reader_.errors();
    tensor_meta.shape.reserve(dims);
    std::optional<int64_t> bytes = has_dtype ? element_bytes(tensor_meta.dtype) : 1;
    for (uint32_t child = index + 1; child < reader_.node(index).next;
         child = reader_.node(child).next) {
      const int64_t extent = reader_.integer(child, "a size of \"shape\"", 0).value_or(1);
      tensor_meta.shape.push_back(extent);
      if (bytes) bytes = checked_mul(*bytes, std::max<int64_t>(1, extent));
    }
    if (!bytes && reader_.errors() == before) {
      reader_.error("E0410", index, "the tensor has more bytes than fit 64 bits",
                    {"no machine holds it; check the sizes", {}, 0, {}});
    }
  }

  void read_count(uint32_t index, Request& request, const TensorMeta* meta) {
    const auto given = reader_.integer(index, "\"count\"", 1);
    if (!given) return;
    request.count = *given;
    if (meta != nullptr && !checked_mul(*given, tensor_bytes(*meta))) {
      reader_.error("E0410", index,
                    "\"count\" is " + std::to_string(*given) + "; times " +
                        std::to_string(tensor_bytes(*meta)) + " bytes it does not fit 64 bits");
    }
  }

  void read_reduce_dtype(uint32_t index, Request& request, const TensorMeta* meta) {
    const auto given = reader_.text(index, "\"reduce_dtype\"");
    if (!given) return;
    const auto parsed = parse_dtype(*given);
    if (!parsed) {
      reader_.error("E0206", index, "unknown dtype " + quote(*given),
                    suggestion(*given, dtype_names(), "expected one of "));
      return;
    }
    request.reduce_dtype = parsed;
    if (meta == nullptr) return;
    if (is_floating(*parsed) != is_floating(meta->dtype) ||
        ((*parsed == DType::boolean) != (meta->dtype == DType::boolean))) {
      reader_.error(
          "E0409", index,
          std::string("reductions of ") + to_text(meta->dtype) + " values cannot run in " +
              to_text(*parsed),
          {is_floating(meta->dtype) ? "use a floating dtype" : "use a dtype of the same kind",
           {},
           0,
           {}});
    }
  }

  // "any" for dst_order; returns the node of the order to read, 0 for none.
  uint32_t read_any_order(uint32_t index, Request& request) {
    if (index == 0 || reader_.node(index).kind != JsonKind::string) return index;
    if (reader_.choice(index, "order", {"any"})) request.any_dst_order = true;
    return 0;
  }

  Reader& reader_;
  const ReadMeshes& meshes_;
  bool simple_;
  std::vector<std::vector<int64_t>> shapes_;  // of every mesh
  ReadRedistributions made_;
};

}  // namespace

ReadRedistributions read_redistributions(Reader& reader, uint32_t index, const ReadMeshes& meshes,
                                         bool simple) {
  return RedistributionList(reader, meshes, simple).read(index);
}

}  // namespace meshplan
