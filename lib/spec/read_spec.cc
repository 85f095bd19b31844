#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/utf8.h"
#include "json/reader.h"
#include "json/scan.h"
#include "json/write.h"
#include "spec/extended_file.h"
#include "spec/read_budgets.h"
#include "spec/read_bundles.h"
#include "spec/read_meshes.h"
#include "spec/read_redistributions.h"
#include "spec/read_topology.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

constexpr std::string_view schema_name = "meshplan/spec/1";

// Whether the document says that it is a spec of this version. If not, nothing else is checked.
bool check_schema(Reader& reader, uint32_t index) {
  const auto given = reader.text(index, "\"schema\"");
  if (!given || *given == schema_name) return true;
  const std::string name(*given);
  Reader::More more;
  more.help = "write \"" + std::string(schema_name) + "\"";
  more.fix = Fix{"\"" + std::string(schema_name) + "\"", false};
  const std::string_view family = schema_name.substr(0, schema_name.rfind('/') + 1);
  if (name.substr(0, family.size()) == family) {
    reader.error("E0207", index,
                 "spec version " + quote(name.substr(family.size())) +
                     " is not read by this meshplan, which reads version \"1\"",
                 more);
    return false;
  }
  if (name.substr(0, 9) == "meshplan/") {
    more.help = "this command takes a spec, whose schema is \"" + std::string(schema_name) + "\"";
    more.fix.reset();
  }
  reader.error(
      "E0207", index,
      "the schema is " + quote(name) + "; a spec's is \"" + std::string(schema_name) + "\"", more);
  return false;
}

void read_options(Reader& reader, uint32_t index, GivenOptions& options) {
  constexpr std::array<KeyRule, 6> rules{{{"planner"},
                                          {"rules"},
                                          {"groups"},
                                          {"max_memory_bytes"},
                                          {"one_reduction"},
                                          {"world_group"}}};
  const auto found = reader.members(index, rules, "\"options\"");
  if (!found) return;
  const auto [planner, rule_set, groups, memory, one_reduction, world_group] = *found;
  if (planner != 0) {
    constexpr std::array kinds{PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal};
    if (const auto chosen = reader.choice(planner, "planner", {"greedy", "graph", "optimal"}))
      options.planner = kinds[*chosen];
  }
  if (rule_set != 0) {
    if (const auto chosen = reader.choice(rule_set, "rules", {"dtensor", "native"}))
      options.rules = *chosen == 0 ? Rules::dtensor : Rules::native;
  }
  if (groups != 0) {
    if (const auto chosen = reader.choice(groups, "groups", {"declared", "any"}))
      options.groups = *chosen == 0 ? GroupPolicy::declared : GroupPolicy::any;
  }
  if (memory != 0) options.max_memory_bytes = reader.integer(memory, "\"max_memory_bytes\"", -1);
  if (one_reduction != 0)
    options.one_reduction = reader.boolean(one_reduction, "\"one_reduction\"");
  if (world_group != 0) {
    if (const auto chosen = reader.choice(world_group, "world group", {"init", "skip"}))
      options.world_group = *chosen == 0 ? WorldGroup::init : WorldGroup::skip;
  }
}

// What the files of a spec add up to, from the one that holds the redistributions outward.
struct Reading {
  const SpecText* again = nullptr;  // a recording in place of that file's own
  Spec spec;
  ReadMeshes made;
  ReadRedistributions known;
  std::vector<std::shared_ptr<const std::string>> texts;  // that ids are views of
};

// The values of a spec's keys; 0 where absent.
struct Keys {
  uint32_t schema, mesh, meshes, topology, redistributions, options, budgets, allow, bundles,
      extends;
};

std::optional<Keys> read_keys(Reader& reader) {
  constexpr std::array<KeyRule, 10> rules{{{"schema", true},
                                           {"mesh"},
                                           {"meshes"},
                                           {"topology"},
                                           {"redistributions"},
                                           {"options"},
                                           {"budgets"},
                                           {"allow"},
                                           {"bundles"},
                                           {"extends"}}};
  const auto found = reader.members(0, rules, "the spec");
  if (!found) return std::nullopt;
  const auto [schema, mesh, meshes, topology, redistributions, options, budgets, allow, bundles,
              extends] = *found;
  return Keys{schema,  mesh,    meshes, topology, redistributions,
              options, budgets, allow,  bundles,  extends};
}

void read_recorded_part(Reader& reader, const Keys& keys, Reading& to) {
  to.made.names_lost = true;
  if (keys.mesh != 0 && keys.meshes != 0) {
    reader.error_at_key("E0208", keys.meshes, "\"meshes\" beside \"mesh\"",
                        {"keep one of them", {}, keys.mesh, "the simple form"});
  } else if (keys.mesh != 0) {
    to.made = read_simple_mesh(reader, keys.mesh);
  } else if (keys.meshes != 0) {
    to.made = read_meshes(reader, keys.meshes);
  } else if (!reader.misspelt("mesh") && !reader.misspelt("meshes") &&
             !reader.misspelt("extends")) {
    reader.error("E0202", 0, "the spec lacks the key \"mesh\"",
                 {"give \"mesh\", \"meshes\" for several, or \"extends\" for those of another file",
                  {},
                  0,
                  {}});
  }
  to.known = read_redistributions(reader, keys.redistributions, to.made,
                                  keys.meshes == 0 || keys.mesh != 0);
}

// A recorder's notes: that the file is its, and that its program failed, so that what it would have
// asked for then is not in the file.
void read_notes(const JsonDocument& document, Spec& spec) {
  spec.recorded = find_key(document, 0, "x-recorded") != 0;
  const uint32_t note = find_key(document, 0, "x-incomplete");
  if (note == 0 || document.nodes[note].kind != JsonKind::string) return;
  std::string buffer;
  spec.cut_short = {std::string(string_of(document, document.nodes[note], buffer)),
                    place_of(document, note)};
}

bool read_into(std::string_view text, const SpecFile& file, Diagnostics& diagnostics, Reading& to);

// Reads what a file adds to. What cannot be read of it is reported there; then nothing that refers
// to it is judged.
void read_beneath(const SpecText& beneath, const SpecFile& file, Diagnostics& diagnostics,
                  Reading& to) {
  to.texts.push_back(beneath.text);
  if (!read_into(*beneath.text, file, diagnostics, to)) {
    to.known.ids_lost = to.known.bundles_lost = true;
  } else if (!to.spec.extended) {
    to.spec.extended = beneath;
  }
}

void read_extended(Reader& reader, const Keys& keys, const SpecFile& file, Diagnostics& diagnostics,
                   Reading& to) {
  const auto only_there = [&](uint32_t key, std::string_view name) {
    if (key == 0) return;
    reader.error_at_key(
        "E0208", key, quote(name) + " beside \"extends\"",
        {"keep it in the file that this one extends", {}, keys.extends, "extends this"});
  };
  only_there(keys.mesh, "mesh");
  only_there(keys.meshes, "meshes");
  only_there(keys.redistributions, "redistributions");
  if (const auto extended = open_extended(reader, keys.extends, file)) {
    read_beneath({extended->file.name, extended->text}, extended->file, diagnostics, to);
  } else {
    to.known.ids_lost = to.known.bundles_lost = true;
  }
}

// What a person writes of a spec, and a recorder of bundles.
void read_added_part(Reader& reader, const Keys& keys, const SpecFile& file, bool recorded_again,
                     Diagnostics& diagnostics, Reading& to) {
  Spec& spec = to.spec;
  if (keys.topology != 0) {
    auto topology = read_topology(reader, keys.topology, file.read_file, diagnostics);
    if (topology) spec.topology = std::move(topology);
  }
  if (keys.options != 0) read_options(reader, keys.options, spec.options);
  if (keys.bundles != 0)
    read_bundles(reader, keys.bundles, to.known, recorded_again, spec.bundles, spec.bundle_places);
  if (keys.budgets != 0) read_budgets(reader, keys.budgets, to.known, spec);
  if (keys.allow != 0) read_allow(reader, keys.allow, to.known, spec);
}

// Adds a file to what those beneath it have added. False: there was an error in one of them.
bool read_into(std::string_view text, const SpecFile& file, Diagnostics& diagnostics, Reading& to) {
  const size_t errors = diagnostics.count(Severity::error);
  const auto document = read_json(text, file.name, diagnostics);
  if (!document) return false;
  Reader reader(*document, diagnostics);
  // Something else than a spec is told by its schema before any of its keys is called unknown.
  if (const uint32_t schema = find_key(*document, 0, "schema");
      schema != 0 && !check_schema(reader, schema))
    return false;
  const auto keys = read_keys(reader);
  if (!keys) return false;
  bool recorded_again = false;
  if (keys->extends != 0) {
    read_extended(reader, *keys, file, diagnostics, to);
  } else if (to.again != nullptr) {
    const SpecText again = *std::exchange(to.again, nullptr);
    SpecFile recording = file;
    recording.name = again.file;
    read_beneath(again, recording, diagnostics, to);
    recorded_again = true;
  } else {
    read_recorded_part(reader, *keys, to);
    read_notes(*document, to.spec);
  }
  if (to.spec.extended) to.known.where = " in " + printable(to.spec.extended->file, 300);
  read_added_part(reader, *keys, file, recorded_again, diagnostics, to);
  if (diagnostics.count(Severity::error) > errors) return false;
  to.spec.digest = "sha256:" + sha256_hex(canonical_text(*document) + to.spec.digest);
  return true;
}

}  // namespace

std::optional<Spec> read_spec(std::string_view text, const std::string& file,
                              const FileReader& read_file, Diagnostics& diagnostics,
                              const SpecText* again) {
  // Into a collector of its own: `diagnostics` drops repeated problems, which do not make the file
  // valid.
  Diagnostics own(diagnostics.cap());
  Reading reading;
  reading.again = again;
  const bool good = read_into(text, outermost_file(file, read_file), own, reading);
  std::vector<Diagnostic> warnings = own.take_warnings();
  diagnostics.add_all(own);
  if (!good || own.has_errors()) return std::nullopt;
  Spec spec = std::move(reading.spec);
  spec.warnings = std::move(warnings);
  spec.meshes = std::move(reading.made.table);
  spec.requests = std::move(reading.known.requests);
  spec.request_spans = std::move(reading.known.spans);
  return spec;
}

}  // namespace meshplan
