#include "api/warnings.h"

#include <algorithm>

#include "api/one_copy.h"
#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cost/worth.h"
#include "diag/codes.h"
#include "diag/outcome_codes.h"
#include "json/scan.h"

namespace meshplan {
namespace {

// limit of places to locate; each takes time linear in the text before it, and only a few are shown
constexpr size_t max_placed = 1'000;

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// What the communicator of a missing flatten costs, beside what it saves in a run of the file.
std::string cost_text(const Plan& plan, const Warning& warning) {
  const auto mesh = find_mesh(plan.meshes, warning.mesh);
  if (warning.fix_name.empty() || warning.saves_ns <= 0 || !mesh) return "";
  int64_t ranks = 1;
  for (const std::string& dim : warning.dims) {
    const Mesh& its = plan.meshes.meshes[*mesh];
    if (const auto index = find_dim(its, dim)) ranks = saturating_mul(ranks, its.dims[*index].size);
  }
  const int64_t start_ps = communicator_start_ps(ranks);
  return "; its communicator of " + counted(ranks, "rank") + " takes about " +
         human_ns(start_ps / 1000) + " to start and " + human_bytes(communicator_bytes(ranks)) +
         ": repaid after " +
         counted(ceil_div(start_ps, saturating_mul(warning.saves_ns, 1000)), "run");
}

std::string message_of(const Plan& plan, const MergedWarning& merged) {
  const Warning& warning = merged.warning;
  // The message of the planner; the part after "; saves" is about a single redistribution.
  std::string text = warning.message.substr(0, warning.message.find("; saves "));
  text += " (" + (merged.ids.size() == 1 ? "'" + merged.ids[0] + "'"
                                         : counted(std::ssize(merged.ids), "redistribution"));
  for (size_t i = 1; i < merged.collectives.size(); ++i)
    text += std::string(i > 1 ? ", " : "; also for ") + to_text(merged.collectives[i]);
  if (merged.times > 1) text += ", " + with_commas(merged.times) + " times";
  if (warning.saves_ns > 0) {
    text += ", saves " + human_ns(warning.saves_ns) + (merged.more ? " more" : "");
    if (warning.saves_collectives > 0)
      text += " and " + counted(warning.saves_collectives, "collective");
    if (merged.times > 1) text += " in all";
  }
  return text + ")" + cost_text(plan, warning);
}

// The declaration to add to the spec as a fix; empty if there is none.
std::string declaration_of(const Plan& plan, const Warning& warning) {
  if (warning.fix_name.empty()) return {};
  const std::string dims = quoted_list(warning.dims);
  const bool simple = plan.meshes.meshes.size() == 1 && plan.meshes.meshes[0].name == "mesh";
  if (simple)
    return "{\"dims\": " + dims + ", \"name\": " + meshplan::quoted(warning.fix_name) + "}";
  return "{\"name\": " + meshplan::quoted(warning.fix_name) +
         ", \"of\": " + meshplan::quoted(warning.mesh) + ", \"flatten\": " + dims + "}";
}

}  // namespace

bool is_allowed(const std::vector<Allow>& allow, std::string_view code, const std::string& id) {
  return std::any_of(allow.begin(), allow.end(), [&](const Allow& entry) {
    return entry.code == code && (entry.id.empty() || entry.id == id);
  });
}

std::vector<MergedWarning> merge_warnings(const Plan& plan, const std::vector<Allow>& allow) {
  std::vector<MergedWarning> merged;
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    for (const Warning& warning : r.warnings) {
      if (is_allowed(allow, warning_code(warning.kind), r.request.id)) continue;
      auto found = std::find_if(merged.begin(), merged.end(), [&](const MergedWarning& other) {
        return other.warning.kind == warning.kind && other.warning.mesh == warning.mesh &&
               other.warning.dims == warning.dims;
      });
      if (found == merged.end()) {
        found = merged.insert(merged.end(), {warning, false, 0, {}, {}, i});
        found->warning.saves_ns = found->warning.saves_collectives = 0;
      }
      found->more = found->more || warning.message.ends_with(" more");
      found->times = saturating_add(found->times, r.request.count);
      if (found->ids.empty() || found->ids.back() != r.request.id)
        found->ids.push_back(r.request.id);
      if (std::find(found->collectives.begin(), found->collectives.end(), warning.collective) ==
          found->collectives.end()) {
        found->collectives.push_back(warning.collective);
      }
      add_weighted(found->warning.saves_ns, warning.saves_ns, r.request.count);
      add_weighted(found->warning.saves_collectives, warning.saves_collectives, r.request.count);
    }
  }
  return merged;
}

namespace {

// Of a kind that is not silenced: an error or a warning. Returns whether it is an error.
bool add_warning(const WarningPolicy& policy, const std::string& name, Diagnostic diagnostic,
                 Diagnostics& diagnostics) {
  const bool is_error = policy.all_errors || names(policy.errors, name);
  diagnostic.severity = is_error ? Severity::error : Severity::warning;
  diagnostics.add(std::move(diagnostic));
  return is_error;
}

// Whether the spec allows a warning of its file, which is of no redistribution.
bool is_allowed_in_file(const Spec& spec, std::string_view code) {
  return std::any_of(spec.allow.begin(), spec.allow.end(),
                     [&](const Allow& entry) { return entry.code == code; });
}

bool report_reading(const WarningPolicy& policy, const Spec& spec, Diagnostics& diagnostics) {
  bool fails = false;
  for (const Diagnostic& diagnostic : spec.warnings) {
    const std::string name = warning_kind(diagnostic.code);
    if (is_allowed_in_file(spec, diagnostic.code) || names(policy.silenced, name)) continue;
    fails = add_warning(policy, name, diagnostic, diagnostics) || fails;
  }
  return fails;
}

bool report_cut_short(const WarningPolicy& policy, const Spec& spec, Diagnostics& diagnostics) {
  const std::string name = warning_kind(code_incomplete);
  if (!spec.cut_short || is_allowed_in_file(spec, code_incomplete) || names(policy.silenced, name))
    return false;
  Diagnostic diagnostic;
  diagnostic.code = std::string(code_incomplete);
  diagnostic.place = spec.cut_short->place;
  diagnostic.message = "the recording ends where its program failed with '" +
                       printable(spec.cut_short->why, 300) + "': later redistributions are missing";
  diagnostic.help = "record it again, to the end of the program";
  return add_warning(policy, name, std::move(diagnostic), diagnostics);
}

bool report_one_copy(const WarningPolicy& policy, SpecPlaces& places, const Spec& spec,
                     Diagnostics& diagnostics) {
  const std::string name = warning_kind(code_one_copy);
  if (names(policy.silenced, name)) return false;
  bool fails = false;
  for (const OneCopy& end : ends_on_one_copy(spec)) {
    Diagnostic diagnostic;
    diagnostic.code = std::string(code_one_copy);
    diagnostic.place = places.redistribution(end.first);
    diagnostic.message = message_of(spec, end);
    diagnostic.help =
        "declare a root mesh on the ranks meant; or, where all copies hold the same, name the whole "
        "mesh with R on its other dims";
    fails = add_warning(policy, name, std::move(diagnostic), diagnostics) || fails;
  }
  return fails;
}

// Whether rounds take so much of a limit that more of it would make fewer of them.
bool limits_bind(const PlannedBundle& bundle) {
  const int64_t staging = bundle.request.max_staging_bytes;
  if (staging > 0 && bundle.totals.staging_bytes > staging / 2) return true;
  return std::any_of(bundle.rounds.begin(), bundle.rounds.end(), [&](const BundleRound& round) {
    return round.messages > bundle.request.max_messages / 2;
  });
}

bool report_slower_bundles(const WarningPolicy& policy, const Spec& spec, const Plan& plan,
                           Diagnostics& diagnostics) {
  const std::string name = warning_kind(code_slower_bundle);
  if (names(policy.silenced, name)) return false;
  bool fails = false;
  for (const PlannedBundle& bundle : plan.bundles) {
    const int64_t alone_ns = ns_of_ps(bundle.alone_ps);
    const int64_t ns = ns_of_ps(bundle.totals.predicted_ps);
    const std::string& id = bundle.request.id;
    if (ns <= alone_ns || is_allowed(spec.allow, code_slower_bundle, id)) continue;
    Diagnostic diagnostic;
    diagnostic.code = std::string(code_slower_bundle);
    diagnostic.place = spec.bundle_places.at(id);
    const bool bind = limits_bind(bundle);
    diagnostic.message = "bundle '" + printable(id, 300) + "' takes " + human_ns(ns) +
                         ", its members one by one " + human_ns(alone_ns) +
                         (bind ? ": by its limits it is " + counted(bundle.totals.rounds, "round")
                               : ": by themselves they go in ways that rounds do not run");
    diagnostic.help =
        bind ? "raise its max_staging_bytes or its max_messages, or leave the bundle out"
             : "leave the bundle out, and its members are run one by one";
    diagnostic.weight = ns - alone_ns;
    fails = add_warning(policy, name, std::move(diagnostic), diagnostics) || fails;
  }
  return fails;
}

}  // namespace

bool report_warnings(const WarningPolicy& policy, SpecPlaces& places, const Spec& spec,
                     const Plan& plan, Diagnostics& diagnostics) {
  bool fails = report_reading(policy, spec, diagnostics);
  fails = report_cut_short(policy, spec, diagnostics) || fails;
  fails = report_one_copy(policy, places, spec, diagnostics) || fails;
  fails = report_slower_bundles(policy, spec, plan, diagnostics) || fails;
  for (const MergedWarning& merged : merge_warnings(plan, spec.allow)) {
    const std::string name = warning_kind(warning_code(merged.warning.kind));
    if (names(policy.silenced, name)) continue;
    Diagnostic diagnostic;
    diagnostic.code = warning_code(merged.warning.kind);
    diagnostic.place = places.redistribution(merged.first);
    diagnostic.message = message_of(plan, merged);
    diagnostic.weight = merged.warning.saves_ns;
    const std::string declaration = declaration_of(plan, merged.warning);
    if (!declaration.empty()) {
      const bool simple = declaration.rfind("{\"dims\"", 0) == 0;
      diagnostic.help = std::string("add to ") +
                        (simple ? "\"flattened\" of \"mesh\"" : "\"meshes\"") + ": " + declaration;
    }
    fails = add_warning(policy, name, std::move(diagnostic), diagnostics) || fails;
  }
  return fails;
}

Place SpecPlaces::redistribution(size_t index) {
  if (!parsed_) {
    parsed_ = true;
    Diagnostics reported_already(0);
    document_ = read_json(text_, path_, reported_already);
    const uint32_t list =
        document_ && !document_->nodes.empty() ? find_key(*document_, 0, "redistributions") : 0;
    if (list != 0 && document_->nodes[list].kind == JsonKind::array) {
      for (uint32_t node = list + 1; node < document_->nodes[list].next;
           node = document_->nodes[node].next)
        entries_.push_back(node);
    }
  }
  if (index >= entries_.size() || ++placed_ > max_placed) return whole_file(path_);
  const uint32_t id = find_key(*document_, entries_[index], "id");
  return place_of(*document_, id != 0 ? id : entries_[index]);
}

}  // namespace meshplan
