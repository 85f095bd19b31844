// Specs: what a user asks for, read strictly and with positions (schemas/spec.schema.json).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost/topology.h"
#include "diag/diagnostic.h"
#include "mesh/mesh_table.h"
#include "plan/bundle.h"
#include "tensor/request.h"

namespace meshplan {

struct Limit {
  int64_t most = 0;
  Place place;  // where a file gives it
};

// Limits of the plan, of one redistribution or of one bundle.
struct Budget {
  std::string id;       // empty: the file's total
  bool bundle = false;  // the id is a bundle's
  std::optional<Limit> wire_bytes;
  std::optional<Limit> collectives;
  std::optional<Limit> predicted_ns;
  std::optional<Limit> peak_bytes;
};

// A warning silenced, with a reason.
struct Allow {
  std::string code;
  std::string id;  // empty: every redistribution
  std::string reason;
};

// A file of a spec: its name as places give it ("specs/recorded.json"), and its text.
struct SpecText {
  std::string file;
  std::shared_ptr<const std::string> text;
};

// What a recorder says of a recording that was cut short: why, and where it says so.
struct CutShort {
  std::string why;  // "KeyError: 'layers'"
  Place place;
};

// What a file says, or several: one with "extends" (an overlay) adds to the file that it names.
//   - Meshes and redistributions are those of the extended file, and the overlay has none.
//   - The overlay's topology takes the place of the other; so do single options, single limits of a
//     budget with the same id, and whole bundles with the same id.
//   - Budgets and bundles with other ids, and everything in "allow", are added.
struct Spec {
  MeshTable meshes;                  // in the simple form the mesh is called "mesh"
  std::optional<Topology> topology;  // as given; nullopt: uniform
  std::vector<Request> requests;
  GivenOptions options;
  std::vector<Budget> budgets;
  std::vector<Allow> allow;
  std::vector<BundleRequest> bundles;
  std::map<std::string, Place> bundle_places;  // of the bundles, by id: where a file gives it
  // "sha256:..." over the compact canonical JSON of the comment-free spec; of an overlay, followed
  // by the digest of what it extends.
  std::string digest;
  // The file whose redistributions these are; nullopt: the one that was read.
  std::optional<SpecText> extended;
  std::optional<CutShort> cut_short;  // "x-incomplete" of the file whose redistributions these are
  bool recorded = false;              // "x-recorded" of that file
  std::vector<Diagnostic> warnings;   // of reading: what becomes of them is -W's (api/warnings.h)
  // Byte range of each request in the text, for `locate` (diag/diagnostic.h): where a warning or
  // failure of the planner is shown.
  std::vector<std::pair<size_t, size_t>> request_spans;
};

// Reads a file named in the spec ({"file": ...}, "extends"), relative to the spec's folder.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Reads a whole spec; every problem goes to `diagnostics` and the result is empty if there was an
// error. Never throws on any byte sequence.
// `again`: a recording that takes the place of the meshes, redistributions and recorded bundles
// (those with "x-recorded": true) of the file where they stand; what else is in that file is read
// as if it extended the recording.
[[nodiscard]] std::optional<Spec> read_spec(std::string_view text, const std::string& file,
                                            const FileReader& read_file, Diagnostics& diagnostics,
                                            const SpecText* again = nullptr);

// A topology file (`--topology FILE`): the object that "topology" of a spec may be, read as
// strictly.
[[nodiscard]] std::optional<Topology> read_topology_file(std::string_view text,
                                                         const std::string& file,
                                                         Diagnostics& diagnostics);

}  // namespace meshplan
