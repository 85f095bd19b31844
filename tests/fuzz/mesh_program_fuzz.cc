// Programs of mesh operations made from bytes. Whatever is accepted must be a mesh: its copies tile the world, coordinates and positions
// are inverse to each other, its groups are in the group table, and it prints in both forms; whatever is refused leaves the table as it
// was.
#include <fuzzer/FuzzedDataProvider.h>

#include "base/int_math.h"
#include "mesh/build.h"
#include "mesh/coordinates.h"
#include "mesh/groups.h"
#include "mesh/parallel_dims.h"
#include "render/mesh_view.h"

namespace meshplan {
namespace {

class Program {
 public:
  explicit Program(FuzzedDataProvider& bytes) : bytes_(bytes) {}

  void run() {
    if (!start()) return;
    check(0);
    for (int steps = 0; steps < 12 && bytes_.remaining_bytes() > 0; ++steps) {
      const size_t meshes = table_.meshes.size();
      const size_t flattens = table_.flattens.size();
      const Status status = step();
      if (status.ok()) {
        for (size_t i = meshes; i < table_.meshes.size(); ++i) check(i);
      } else {
        MESHPLAN_CHECK(table_.meshes.size() == meshes && table_.flattens.size() == flattens, "a refused operation leaves the table alone");
        MESHPLAN_CHECK(!status.error().message.empty() && status.error().message.find('\n') == std::string::npos, "messages have one line");
      }
    }
    print();
  }

 private:
  bool start() {
    if (bytes_.ConsumeBool()) {
      ParallelDims dims;
      dims.world = extent();
      dims.pp = small();
      dims.dp_replicate = small();
      dims.dp_shard = bytes_.ConsumeBool() ? -1 : small();
      dims.cp = small();
      dims.tp = small();
      dims.ep = small();
      dims.etp = small();
      return add_parallel_dims(table_, dims).ok();
    }
    std::vector<std::pair<std::string, int64_t>> dims;
    int64_t world = 1;
    const int count = bytes_.ConsumeIntegralInRange<int>(0, 5);
    for (int i = 0; i < count; ++i) {
      dims.emplace_back(name(), extent());
      if (__builtin_mul_overflow(world, dims.back().second, &world)) world = 7;
    }
    if (dims.empty() || bytes_.ConsumeBool()) world = extent();
    std::vector<int64_t> ranks;
    if (bytes_.ConsumeBool()) {
      // Worlds as large as they get count too: held at the ends, never past them.
      for (int64_t i = 0; i < std::min<int64_t>(world, 512); ++i)
        ranks.push_back(saturating_add(world - i, bytes_.ConsumeIntegralInRange<int>(-1, 1)));
    }
    return add_root(table_, name(), world, std::move(ranks), dims).ok();
  }

  Status step() {
    switch (bytes_.ConsumeIntegralInRange<int>(0, 6)) {
      case 0:
        return add_slice(table_, name(), mesh(), names());
      case 1:
        return add_flatten(table_, name(), mesh(), names(), name(), options());
      case 2:
        return add_unflatten(table_, name(), mesh(), name(), sizes(), names());
      case 3:
        return add_concatenate(table_, name(), names(), options());
      case 4:
        return add_transpose(table_, name(), mesh(), names(), options());
      case 5:
        return declare_flatten(table_, mesh(), names(), name());
      default: {
        const Mesh& some = table_.meshes[bytes_.ConsumeIntegralInRange<size_t>(0, table_.meshes.size() - 1)];
        const size_t dim = bytes_.ConsumeIntegralInRange<size_t>(0, some.dims.size() - 1);
        const std::string of = some.name;
        const std::string what = some.dims[dim].name;
        const int64_t whole = some.dims[dim].size;
        const int64_t factor = small();
        return add_unflatten(table_, name(), of, what, {whole / factor, factor}, {name(), name()});
      }
    }
  }

  // Sizes are mostly small and sometimes as large as they get.
  int64_t small() { return bytes_.ConsumeIntegralInRange<int64_t>(1, 12); }
  int64_t extent() {
    switch (bytes_.ConsumeIntegralInRange<int>(0, 7)) {
      case 0:
        return bytes_.ConsumeIntegral<int64_t>();
      case 1:
        return int64_t{1} << bytes_.ConsumeIntegralInRange<int>(0, 62);
      case 2:
        return bytes_.ConsumeIntegralInRange<int64_t>(-1, 2);
      default:
        return small();
    }
  }
  // One of few names, so that programs refer to what exists.
  std::string name() {
    const int number = bytes_.ConsumeIntegralInRange<int>(0, 19);
    if (number == 0) return {};
    if (number == 1) return bytes_.ConsumeRandomLengthString(4);
    return {static_cast<char>('a' + number - 2)};
  }
  std::string mesh() {
    return bytes_.ConsumeBool() ? name() : table_.meshes[bytes_.ConsumeIntegralInRange<size_t>(0, table_.meshes.size() - 1)].name;
  }
  std::vector<std::string> names() {
    if (bytes_.ConsumeBool()) return dim_names(table_.meshes[bytes_.ConsumeIntegralInRange<size_t>(0, table_.meshes.size() - 1)]);
    std::vector<std::string> list;
    const int count = bytes_.ConsumeIntegralInRange<int>(0, 4);
    for (int i = 0; i < count; ++i) list.push_back(name());
    return list;
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> list;
    const int count = bytes_.ConsumeIntegralInRange<int>(0, 4);
    for (int i = 0; i < count; ++i) list.push_back(extent());
    return list;
  }
  std::string options() { return bytes_.ConsumeBool() ? "" : "{\"x\":1}"; }

  void check(size_t index) const {
    const Mesh& mesh = table_.meshes[index];
    const int64_t world = mesh.universe->world;
    const auto copies = complement(whole_layout(mesh), world);
    MESHPLAN_CHECK(copies.ok(), "an accepted mesh tiles its world");
    MESHPLAN_CHECK(size(*copies) == mesh_copies(mesh) && mesh_copies(mesh) * mesh_size(mesh) == world, "copies times size is the world");
    for (const MeshDim& dim : mesh.dims) {
      MESHPLAN_CHECK(dim.layout == coalesce(dim.layout) && size(dim.layout) == dim.size, "dims hold canonical layouts of their size");
      const auto again = parse_layout(to_text(dim.layout));
      MESHPLAN_CHECK(again.ok() && *again == dim.layout, "layouts print as they parse");
    }
    for (const int64_t position : {int64_t{0}, world / 3, world / 2, world - 1}) {
      const Coordinates at = coordinates_at(mesh, position);
      int64_t row_major = 0;
      for (size_t i = 0; i < mesh.dims.size(); ++i) row_major = row_major * mesh.dims[i].size + at.along[i];
      MESHPLAN_CHECK(position_of(mesh, at.copy, row_major) == position, "coordinates lead back to their position");
    }
    const std::vector<Group> groups = group_table(table_);
    for (const MeshDim& dim : mesh.dims)
      MESHPLAN_CHECK(group_of(groups, mesh, dim).count * dim.size == world, "communicators partition the world");
  }

  void print() const {
    const Universe& last = *table_.meshes.back().universe;
    bool ranks = true;
    for (const auto& universe : universes_of(table_)) ranks = ranks && universe->world <= 256;
    MESHPLAN_CHECK(mesh_view_text(table_, {.ranks = ranks}).ok(), "every table prints");
    MESHPLAN_CHECK(mesh_view_json(table_, {.ranks = ranks}).ok(), "every table prints");
    const int64_t rank = rank_at(last, last.world - 1);
    MESHPLAN_CHECK(mesh_view_text(table_, {.rank = rank}).ok(), "every rank is found");
    MESHPLAN_CHECK(mesh_view_json(table_, {.rank = rank}).ok(), "every rank is found");
  }

  FuzzedDataProvider& bytes_;
  MeshTable table_;
};

}  // namespace
}  // namespace meshplan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t length) {
  FuzzedDataProvider bytes(data, length);
  const std::string text = bytes.ConsumeRandomLengthString(64);
  if (const auto layout = meshplan::parse_layout(text)) {
    (void)meshplan::is_injective(*layout);
    (void)meshplan::complement(*layout, meshplan::cosize(*layout));
    (void)meshplan::left_inverse(*layout);
    (void)meshplan::right_inverse(*layout);
    (void)meshplan::composition(*layout, *layout);
  }
  meshplan::Program(bytes).run();
  return 0;
}
