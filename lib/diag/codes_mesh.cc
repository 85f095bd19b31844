#include "diag/code_parts.h"

namespace meshplan {
namespace {

// A spec with a universe of dp 2 x cp 2 x tp 4 and more mesh operations.
std::string meshes_of(const std::string& operations) {
  return spec_of(
      "\"meshes\": [\n"
      "    {\"name\": \"root\", \"world\": 16,\n"
      "     \"dims\": [{\"name\": \"dp\", \"size\": 2}, {\"name\": \"cp\", \"size\": 2}, {\"name\": \"tp\", \"size\": 4}]},\n    " +
      operations + "\n  ]");
}

std::string mesh_of(const std::string& members) { return spec_of("\"mesh\": {" + members + "}"); }

std::string topology_of(const std::string& topology) {
  return spec_of("\"mesh\": {\"dims\": [{\"name\": \"dp\", \"size\": 2}]},\n  \"topology\": " +
                 topology);
}

}  // namespace

std::vector<CodeEntry> mesh_codes() {
  const std::string dims = R"~("dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}])~";
  return {
      {"E0301", "world_overflow", "more ranks than fit in 64 bits",
       "The sizes of the dims multiply to the number of ranks, which must fit in a signed 64-bit integer.",
       mesh_of(
           R"~("dims": [{"name": "dp", "size": 4294967296}, {"name": "tp", "size": 4294967296}])~"),
       mesh_of(dims)},
      {"E0302", "wrong_world", "the number of ranks does not match the dims",
       "The sizes of the dims multiply to the world, and a list of ranks has one entry per position.",
       mesh_of(dims + R"~(, "ranks": [0, 1, 2])~"), mesh_of(dims + R"~(, "ranks": [0, 1, 2, 3])~")},
      {"E0303", "repeated_rank", "a rank listed twice",
       "Each position of the mesh is a different device, so every global rank is listed once.",
       mesh_of(dims + R"~(, "ranks": [0, 1, 2, 2])~"),
       mesh_of(dims + R"~(, "ranks": [0, 1, 2, 3])~")},
      {"E0304", "duplicate_dim", "two dims of one mesh with the same name",
       "Placements, flattens and messages refer to mesh dims by name, so names must be unique within a mesh.",
       mesh_of(R"~("dims": [{"name": "dp", "size": 2}, {"name": "dp", "size": 2}])~"),
       mesh_of(dims)},
      {"E0305", "unknown_mesh", "a mesh that does not exist",
       "Operations refer to meshes earlier in the list, redistributions to any mesh of the file. "
       "The only mesh of the simple form is called mesh.",
       meshes_of(R"~({"name": "data", "of": "rot", "slice": ["dp", "cp"]})~"),
       meshes_of(R"~({"name": "data", "of": "root", "slice": ["dp", "cp"]})~")},
      {"E0306", "unknown_dim", "a mesh dim that does not exist",
       "The mesh has no dim of this name. The message suggests the closest one or lists them all.",
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "pt"]}])~"),
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "tp"]}])~")},
      {"E0307", "repeated_dim", "a mesh dim listed twice",
       "A slice, a flatten, a transpose and a shard order list every dim at most once.",
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "dp"]}])~"),
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "tp"]}])~")},
      {"E0308", "wrong_order", "dims whose strides do not descend",
       "Slices, and the flattened of the simple form, list dims outermost first, as PyTorch requires: "
       "the strides of their layouts descend, ignoring dims of size 1. For another order, use transpose.",
       mesh_of(dims + R"~(, "flattened": [{"dims": ["tp", "dp"]}])~"),
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "tp"]}])~")},
      {"E0309", "name_taken", "a name that is already used",
       "Mesh names are unique, and the name of a flattened dim is unique in its universe: it may "
       "be declared again for the same ranks, but not for others, and not under the name of a dim "
       "of the universe.",
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "tp"], "name": "tp"}])~"),
       mesh_of(dims + R"~(, "flattened": [{"dims": ["dp", "tp"], "name": "world"}])~")},
      {"E0310", "overlap", "meshes that share ranks cannot be joined",
       "A concatenation takes the dims of several meshes as the dims of one. Each rank then has "
       "one coordinate on every dim, which is impossible if two of the dims vary over the same "
       "ranks. Likewise a slice that names a flattened dim and one that it is made of.",
       meshes_of(R"~({"name": "a", "of": "root", "slice": ["cp", "tp"]},
    {"name": "b", "of": "root", "flatten": ["dp", "cp"]},
    {"name": "c", "concatenate": ["a", "b"]})~"),
       meshes_of(R"~({"name": "a", "of": "root", "slice": ["tp"]},
    {"name": "b", "of": "root", "flatten": ["dp", "cp"]},
    {"name": "c", "concatenate": ["a", "b"]})~")},
      {"E0311", "wrong_sizes", "sizes that do not multiply to the size of a dim",
       "An unflatten splits a dim into parts whose sizes multiply to its size, with one name per part.",
       meshes_of(
           R"~({"name": "split", "of": "root", "unflatten": "tp", "sizes": [2, 3], "dims": ["tp_o", "tp_i"]})~"),
       meshes_of(
           R"~({"name": "split", "of": "root", "unflatten": "tp", "sizes": [2, 2], "dims": ["tp_o", "tp_i"]})~")},
      {"E0312", "universe", "no universe, or two where one is expected",
       "A universe is made by an entry with world and its ranks, or by parallel_dims; views follow "
       "it. A file may hold several, on the same ranks or on others. Each view is of one: what goes "
       "from one to another is a redistribution with src_mesh and dst_mesh.",
       meshes_of(R"~({"name": "other", "world": 8, "ranks": "16-23"},
    {"name": "both", "concatenate": ["root", "other"]})~"),
       meshes_of(R"~({"name": "other", "world": 8, "ranks": "16-23"},
    {"name": "all", "of": "root", "flatten": ["dp", "cp", "tp"]})~")},
      {"E0313", "parallel_dims", "degrees of parallelism that do not fill the world",
       "pp * dp_replicate * dp_shard * cp * tp must be the world, where a dp_shard of -1 is "
       "computed from the others; etp is tp or 1, and ep * etp divides dp_shard * cp * tp.",
       spec_of(
           R"~("meshes": [{"parallel_dims": {"world": 64, "dp_replicate": 2, "dp_shard": 5, "tp": 8}}])~"),
       spec_of(
           R"~("meshes": [{"parallel_dims": {"world": 64, "dp_replicate": 2, "dp_shard": 4, "tp": 8}}])~")},
      {"E0314", "topology", "levels that do not nest",
       "Levels are listed from the innermost to the outermost: the ranks of each are a multiple of "
       "those of the previous one; the outermost holds every rank, whatever its ranks says. The "
       "points of a measured table ascend.",
       topology_of(
           R"~({"levels": [{"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000},
                          {"name": "leaf", "ranks": 36, "gb_per_s": 50, "latency_ns": 20000},
                          {"name": "ib", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000}]})~"),
       topology_of(
           R"~({"levels": [{"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000},
                          {"name": "leaf", "ranks": 32, "gb_per_s": 50, "latency_ns": 20000},
                          {"name": "ib", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000}]})~")},
      {"E0315", "topology_file", "a topology file that cannot be read",
       "The path is relative to the folder of the spec. The file contains the object that topology would contain, with levels.",
       topology_of(R"~({"file": "no-such-file.json"})~"), topology_of(R"~("h100")~")},
  };
}

}  // namespace meshplan
