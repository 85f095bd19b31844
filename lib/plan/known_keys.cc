#include "plan/known_keys.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

KeyForm ascending(std::vector<std::pair<std::string_view, const KeyForm*>> keys) {
  std::sort(keys.begin(), keys.end());
  return {std::move(keys)};
}

// Those whose values have no keys.
KeyForm plain(const std::vector<std::string_view>& names) {
  std::vector<std::pair<std::string_view, const KeyForm*>> keys;
  for (const std::string_view name : names) keys.emplace_back(name, nullptr);
  return ascending(std::move(keys));
}

KeyForm operator+(const KeyForm& some, const KeyForm& more) {
  std::vector<std::pair<std::string_view, const KeyForm*>> keys = some.keys;
  keys.insert(keys.end(), more.keys.begin(), more.keys.end());
  return ascending(std::move(keys));
}

[[noreturn]] void refuse(std::string_view key, const Value& value, const KeyForm& form) {
  std::vector<std::string> known;
  for (const auto& [name, inside] : form.keys) known.emplace_back(name);
  const auto near = nearest(key, known);
  value.fail("unknown key \"" + one_line(key) + "\"" +
             (near ? "; did you mean \"" + *near + "\"?"
                   : "; leave it out, or make it a note: \"x-...\""));
}

struct Forms {
  KeyForm totals = plain({"collectives", "lower_bound_bytes", "lower_bound_ns", "peak_bytes",
                          "predicted_ns", "wire_bytes"});
  KeyForm move = plain({"dst", "mesh_dim", "src"});
  KeyForm step = plain({"at_once",    "chunks",       "dst",    "far_64ths",  "fetched_by_all",
                        "group",      "laps",         "merged", "mesh",       "logical_shape",
                        "mesh_dims",  "op",           "phases", "peak_bytes", "predicted_ns",
                        "reduce_op",  "scale",        "src",    "state",      "tensor_dim",
                        "wire_bytes", "whole_pieces", "why"}) +
                 ascending({{"moves", &move}});
  KeyForm fix = plain({"dims", "name", "torch"});
  KeyForm warning = plain({"code", "collective", "dims", "kind", "mesh", "message", "operations",
                           "saves_collectives", "saves_ns"}) +
                    ascending({{"fix", &fix}});
  KeyForm finding = plain({"better_predicted_ns", "better_trace", "better_wire_bytes", "code",
                           "kind", "message", "predicted_ns", "step", "wire_bytes"});
  KeyForm alternative = plain({"trace"}) + ascending({{"totals", &totals}});
  KeyForm reduction = plain({"collectives", "dims", "nesting"});
  KeyForm tensor = plain({"dtype", "shape"});
  KeyForm order = plain({"mesh_dims", "tensor_dim"});
  KeyForm redistribution = plain({"count", "direction", "dst", "dst_mesh", "id", "mesh", "planner",
                                  "proven_gap_ns", "reached", "reduce_dtype", "rules", "shortcuts",
                                  "src", "src_mesh", "trace", "unmerged_trace"}) +
                           ascending({{"alternatives", &alternative},
                                      {"audit", &finding},
                                      {"dst_order", &order},
                                      {"reductions", &reduction},
                                      {"src_order", &order},
                                      {"steps", &step},
                                      {"tensor", &tensor},
                                      {"totals", &totals},
                                      {"warnings", &warning}});

  KeyForm group =
      plain({"count", "declared", "dims", "id", "layout", "mesh", "size", "universes", "used_by"});
  KeyForm flatten = plain({"dims", "group_options", "layout", "name", "of"});
  KeyForm dim = plain({"group_options", "layout", "name", "size"});
  KeyForm mesh = plain({"group_options", "name"}) + ascending({{"dims", &dim}});
  KeyForm universe =
      plain({"name", "ranks", "world"}) + ascending({{"flattened", &flatten}, {"meshes", &mesh}});
  KeyForm options = plain({"cost_model", "groups", "max_groups", "max_memory_bytes", "merge",
                           "one_reduction", "planner", "ranks_per_host", "rules", "world_group"});
  KeyForm level =
      plain({"exchange_percent", "far_mb_per_s", "latency_ns", "mb_per_s", "name", "near_bytes",
             "peer_bytes", "peer_mb_per_s", "per_peer_ns", "ranks", "switch_mb_per_s"});
  KeyForm protocol = plain({"base_ns", "far_share", "hop_ns", "most_bytes", "name", "near_bytes",
                            "ops", "share", "switch_ns", "tree_ns", "tree_share", "trees"});
  KeyForm table = plain({"level", "op", "points", "ranks"});
  KeyForm topology = plain({"copy_mb_per_s", "model", "name", "source"}) +
                     ascending({{"levels", &level}, {"protocols", &protocol}, {"tables", &table}});
  KeyForm member = plain({"id", "through"});
  KeyForm part = plain({"from", "id", "piece", "pieces", "step", "through", "to"});
  KeyForm round = plain({"after", "group", "messages", "op", "predicted_ns", "staging_bytes",
                         "stream", "wire_bytes"}) +
                  ascending({{"parts", &part}});
  KeyForm bundle_totals = plain({"lower_bound_ns", "messages", "peak_bytes", "predicted_ns",
                                 "rounds", "staging_bytes", "wire_bytes"});
  KeyForm bundle =
      plain({"alone_ns", "count", "id", "max_messages", "max_staging_bytes", "proven_gap_ns",
             "tensors"}) +
      ascending({{"members", &member}, {"rounds", &round}, {"totals", &bundle_totals}});
  KeyForm plan = plain({"digest", "redistributions", "schema", "spec_digest"}) +
                 ascending({{"bundles", &bundle},
                            {"groups", &group},
                            {"mesh", &universe},
                            {"options", &options},
                            {"topology", &topology},
                            {"totals", &totals},
                            {"universes", &universe}});
};

const Forms& forms() {
  static const Forms all;
  return all;
}

}  // namespace

void check_keys(const Value& value, const KeyForm& form) {
  if (value.kind() == JsonKind::array)
    value.each([&](const Value& element) { check_keys(element, form); });
  if (value.kind() != JsonKind::object) return;
  value.each_member([&](std::string_view key, const Value& member) {
    const auto known = std::lower_bound(
        form.keys.begin(), form.keys.end(), key,
        [](const auto& entry, std::string_view name) { return entry.first < name; });
    if (known != form.keys.end() && known->first == key) {
      if (known->second != nullptr) check_keys(member, *known->second);
    } else if (key.substr(0, 2) != "x-") {
      refuse(key, member, form);
    }
  });
}

const KeyForm& form_of_plan() { return forms().plan; }
const KeyForm& form_of_redistribution() { return forms().redistribution; }

}  // namespace meshplan
