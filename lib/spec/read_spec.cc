#include <algorithm>
#include <map>

#include "base/sha256.h"
#include "base/text.h"
#include "diag/codes.h"
#include "json/reader.h"
#include "json/scan.h"
#include "json/write.h"
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

// Reports an id that no redistribution has.
void check_id(Reader& reader, uint32_t index, const std::string& id,
              const ReadRedistributions& known) {
  if (known.ids_lost || known.ids.contains(id)) return;
  std::vector<std::string> ids;
  ids.reserve(known.ids.size());
  for (const auto& [name, node] : known.ids) ids.emplace_back(name);
  std::sort(ids.begin(), ids.end());
  reader.error("E0411", index, "there is no redistribution " + quote(id),
               suggestion(id, ids, "its redistributions are "));
}

void read_limits(Reader& reader, const std::array<uint32_t, 4>& nodes, Budget& budget) {
  constexpr std::array<std::string_view, 4> names{"\"wire_bytes\"", "\"collectives\"",
                                                  "\"predicted_ns\"", "\"peak_bytes\""};
  std::optional<int64_t>* const limits[] = {&budget.wire_bytes, &budget.collectives,
                                            &budget.predicted_ns, &budget.peak_bytes};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] != 0) *limits[i] = reader.integer(nodes[i], names[i], 0);
  }
}

// Of redistributions, or of bundles; `check` reports an id that there is none of.
template <class Check>
void read_budgets_of(Reader& reader, uint32_t list, bool bundles, const Check& check, Spec& spec) {
  const std::string what = bundles ? "the budgets of bundles" : "the budgets of redistributions";
  const std::string each = bundles ? "the budget of a bundle" : "the budget of a redistribution";
  std::map<std::string, uint32_t> seen;
  for (const uint32_t entry : reader.elements(list, what).value_or(std::vector<uint32_t>{})) {
    constexpr std::array<KeyRule, 5> limits{
        {{"id", true}, {"wire_bytes"}, {"collectives"}, {"predicted_ns"}, {"peak_bytes"}}};
    const auto nodes = reader.members(entry, limits, each);
    if (!nodes) continue;
    const auto [id, wire, collectives, predicted, peak] = *nodes;
    Budget budget;
    budget.bundle = bundles;
    read_limits(reader, {wire, collectives, predicted, peak}, budget);
    const auto name = id != 0 ? reader.name(id, "\"id\"") : std::nullopt;
    if (!name) continue;
    check(id, *name);
    const auto [first, fresh] = seen.emplace(*name, id);
    if (!fresh) {
      reader.error("E0210", id, "a budget for " + quote(*name) + " exists already",
                   {"keep one of them", {}, first->second, "first given here"});
    }
    budget.id = *name;
    spec.budgets.push_back(std::move(budget));
  }
}

// The spec's bundles are read.
void read_budgets(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec) {
  constexpr std::array<KeyRule, 3> rules{{{"total"}, {"redistributions"}, {"bundles"}}};
  const auto found = reader.members(index, rules, "\"budgets\"");
  if (!found) return;
  const auto [total, list, bundles] = *found;
  if (total != 0) {
    constexpr std::array<KeyRule, 4> limits{
        {{"wire_bytes"}, {"collectives"}, {"predicted_ns"}, {"peak_bytes"}}};
    if (const auto nodes = reader.members(total, limits, "the total budget")) {
      Budget budget;
      read_limits(reader, *nodes, budget);
      spec.budgets.push_back(std::move(budget));
    }
  }
  if (list != 0) {
    read_budgets_of(
        reader, list, false,
        [&](uint32_t id, const std::string& name) { check_id(reader, id, name, known); }, spec);
  }
  if (bundles == 0) return;
  std::vector<std::string> ids;
  for (const BundleRequest& bundle : spec.bundles) ids.push_back(bundle.id);
  read_budgets_of(
      reader, bundles, true,
      [&](uint32_t id, const std::string& name) {
        if (std::find(ids.begin(), ids.end(), name) != ids.end()) return;
        reader.error("E0411", id, "there is no bundle " + quote(name),
                     suggestion(name, ids, "its bundles are "));
      },
      spec);
}

// Only the planners' warnings can be silenced.
void check_silenced(Reader& reader, uint32_t index, const std::string& code) {
  const CodeEntry* entry = find_code(code);
  const auto planners = [](std::string_view known) { return known.substr(0, 3) == "W03"; };
  if (entry != nullptr && planners(code)) return;
  std::vector<std::string> warnings;
  for (const CodeEntry& known : code_table()) {
    if (planners(known.code)) warnings.emplace_back(known.code);
  }
  const std::string message =
      entry != nullptr
          ? quote(code) + " is not a warning of the planner, and only those can be silenced"
          : "there is no warning " + quote(code);
  reader.error("E0412", index, message, suggestion(code, warnings, "the warnings are "));
}

void read_allow(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec) {
  constexpr std::array<KeyRule, 3> rules{{{"code", true}, {"id"}, {"reason", true}}};
  for (const uint32_t entry :
       reader.elements(index, "\"allow\"").value_or(std::vector<uint32_t>{})) {
    const auto found = reader.members(entry, rules, "a silenced warning");
    if (!found) continue;
    const auto [code, id, reason] = *found;
    Allow allow;
    if (code != 0) {
      allow.code = reader.name(code, "\"code\"").value_or("");
      if (!allow.code.empty()) check_silenced(reader, code, allow.code);
    }
    if (id != 0) {
      allow.id = reader.name(id, "\"id\"").value_or("");
      if (!allow.id.empty()) check_id(reader, id, allow.id, known);
    }
    if (reason != 0) allow.reason = reader.name(reason, "\"reason\"").value_or("");
    spec.allow.push_back(std::move(allow));
  }
}

// `diagnostics` is empty before.
std::optional<Spec> read_alone(std::string_view text, const std::string& file,
                               const FileReader& read_file, Diagnostics& diagnostics) {
  const auto document = read_json(text, file, diagnostics);
  if (!document) return std::nullopt;
  Reader reader(*document, diagnostics);
  constexpr std::array<KeyRule, 9> rules{{{"schema", true},
                                          {"mesh"},
                                          {"meshes"},
                                          {"topology"},
                                          {"redistributions"},
                                          {"options"},
                                          {"budgets"},
                                          {"allow"},
                                          {"bundles"}}};
  // Something else than a spec is told by its schema before any of its keys is called unknown.
  if (const uint32_t schema = find_key(*document, 0, "schema");
      schema != 0 && !check_schema(reader, schema))
    return std::nullopt;
  const auto found = reader.members(0, rules, "the spec");
  if (!found) return std::nullopt;
  const auto [schema, mesh, meshes, topology, redistributions, options, budgets, allow, bundles] =
      *found;

  Spec spec;
  ReadMeshes made;
  made.names_lost = true;
  if (mesh != 0 && meshes != 0) {
    reader.error_at_key("E0208", meshes, "\"meshes\" beside \"mesh\"",
                        {"keep one of them", {}, mesh, "the simple form"});
  } else if (mesh != 0) {
    made = read_simple_mesh(reader, mesh);
  } else if (meshes != 0) {
    made = read_meshes(reader, meshes);
  } else if (!reader.misspelt("mesh") && !reader.misspelt("meshes")) {
    reader.error("E0202", 0, "the spec lacks the key \"mesh\"",
                 {"give \"mesh\", or \"meshes\" for several", {}, 0, {}});
  }
  if (topology != 0) spec.topology = read_topology(reader, topology, read_file, diagnostics);
  ReadRedistributions read =
      read_redistributions(reader, redistributions, made, meshes == 0 || mesh != 0);
  if (options != 0) read_options(reader, options, spec.options);
  if (bundles != 0) spec.bundles = read_bundles(reader, bundles, read);
  if (budgets != 0) read_budgets(reader, budgets, read, spec);
  if (allow != 0) read_allow(reader, allow, read, spec);
  if (diagnostics.has_errors()) return std::nullopt;

  spec.meshes = std::move(made.table);
  spec.requests = std::move(read.requests);
  spec.request_spans = std::move(read.spans);
  spec.digest = "sha256:" + sha256_hex(canonical_text(*document));
  return spec;
}

}  // namespace

std::optional<Spec> read_spec(std::string_view text, const std::string& file,
                              const FileReader& read_file, Diagnostics& diagnostics) {
  // Into a collector of its own: `diagnostics` drops repeated problems, which do not make the file
  // valid.
  Diagnostics own(diagnostics.cap());
  auto spec = read_alone(text, file, read_file, own);
  diagnostics.add_all(own);
  return spec;
}

}  // namespace meshplan
