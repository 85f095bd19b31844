// The diff as JSON: sorted keys, one redistribution a line.
#include "diff/diff.h"
#include "json/write.h"

namespace meshplan {
namespace {

void write_totals(JsonWriter& w, const char* name, const std::optional<Totals>& totals) {
  w.key(name);
  if (totals) {
    write_totals(w, *totals);
  } else {
    w.value(std::nullopt);
  }
}

void write_redistribution(JsonWriter& w, const RedistributionDiff& d) {
  w.open('{');
  w.fields({{"bundle", d.bundle.empty() ? std::nullopt : std::optional(d.bundle)},
            {"causes", d.causes},
            {"change", to_text(d.kind)},
            {"id", d.id},
            {"module", d.module.empty() ? std::nullopt : std::optional(d.module)}});
  write_totals(w, "new", d.new_totals);
  w.fields({{"new_count", d.new_count},
            {"new_trace", d.new_trace},
            {"numerics", d.numerics.empty() ? std::nullopt : std::optional(d.numerics)}});
  write_totals(w, "old", d.old_totals);
  w.fields({{"old_count", d.old_count},
            {"old_id", d.old_id.empty() ? d.id : d.old_id},
            {"old_trace", d.old_trace},
            {"severity", to_text(d.severity)},
            {"source", d.source.empty() ? std::nullopt : std::optional(d.source)}});
  w.list("steps", Breaks::compact, d.steps, [&](const StepDiff& step) {
    w.object({{"change", to_text(step.kind)}, {"text", step.text}});
  });
  w.close();
}

void write_warnings(JsonWriter& w, const char* name, const std::vector<WarningDiff>& list) {
  w.list(name, Breaks::compact, list, [&](const WarningDiff& warning) {
    w.object({{"code", warning.code}, {"id", warning.id}, {"message", warning.message}});
  });
}

}  // namespace

std::string diff_json(const PlanDiff& diff, bool failed) {
  JsonWriter w(2, Breaks::compact);
  w.open('{', Breaks::lines);
  w.field("declarations", diff.declarations);
  w.key("digests");
  w.object({{"new", diff.new_digest}, {"old", diff.old_digest}});
  w.list("redistributions", Breaks::lines, diff.redistributions,
         [&](const RedistributionDiff& d) { write_redistribution(w, d); });
  w.field("schema", "meshplan/diff/1");
  w.key("totals");
  w.open('{');
  write_totals(w, "new", diff.new_totals);
  write_totals(w, "old", diff.old_totals);
  w.close();
  w.key("verdict");
  w.object({{"dearer", holds(diff, "slower")},
            {"different", !same(diff)},
            {"failed", failed},
            {"numerics", holds(diff, "numerics")},
            {"severity", to_text(diff.severity)},
            {"warnings", holds(diff, "warnings")}});
  w.key("warnings");
  w.open('{');
  write_warnings(w, "gone", diff.gone_warnings);
  write_warnings(w, "new", diff.new_warnings);
  w.close();
  w.close();
  return w.take();
}

}  // namespace meshplan
