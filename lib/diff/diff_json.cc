// The diff as JSON: sorted keys, one redistribution a line.
#include "diff/diff.h"
#include "plan/json.h"

namespace meshplan {
namespace {

Json text(std::string value) { return {std::move(value)}; }
Json number(int64_t value) { return {value}; }
Json flag(bool value) { return {value}; }

Json texts(const std::vector<std::string>& values) {
  JsonList list;
  for (const std::string& value : values) list.push_back(text(value));
  return {std::move(list)};
}

Json totals(const Totals& t) {
  return {JsonObject{{"collectives", number(t.collectives)},
                     {"lower_bound_bytes", number(t.lower_bound_bytes)},
                     {"lower_bound_ns", number(ns_of_ps(t.lower_bound_ps))},
                     {"peak_bytes", number(t.peak_bytes)},
                     {"predicted_ns", number(ns_of_ps(t.predicted_ps))},
                     {"wire_bytes", number(t.wire_bytes)}}};
}

Json optional_totals(const std::optional<Totals>& t) { return t ? totals(*t) : Json{}; }

Json redistribution(const RedistributionDiff& d) {
  JsonList steps;
  for (const StepDiff& step : d.steps) {
    steps.push_back({JsonObject{{"change", text(to_text(step.kind))}, {"text", text(step.text)}}});
  }
  JsonObject object{{"causes", texts(d.causes)},
                    {"change", text(to_text(d.kind))},
                    {"id", text(d.id)},
                    {"new", optional_totals(d.new_totals)},
                    {"new_count", number(d.new_count)},
                    {"new_trace", text(d.new_trace)},
                    {"numerics", d.numerics.empty() ? Json{} : text(d.numerics)},
                    {"old", optional_totals(d.old_totals)},
                    {"old_count", number(d.old_count)},
                    {"old_id", text(d.old_id.empty() ? d.id : d.old_id)},
                    {"old_trace", text(d.old_trace)},
                    {"severity", text(to_text(d.severity))},
                    {"steps", {std::move(steps)}}};
  return {std::move(object)};
}

Json warnings(const std::vector<WarningDiff>& list) {
  JsonList all;
  for (const WarningDiff& w : list) all.push_back({JsonObject{{"code", text(w.code)}, {"id", text(w.id)}, {"message", text(w.message)}}});
  return {std::move(all)};
}

}  // namespace

std::string diff_json(const PlanDiff& diff, bool failed) {
  std::string out = "{\n  \"declarations\": ";
  append_json(out, texts(diff.declarations));
  out += ",\n  \"digests\": ";
  append_json(out, {JsonObject{{"new", text(diff.new_digest)}, {"old", text(diff.old_digest)}}});
  out += ",\n  \"redistributions\": [";
  for (size_t i = 0; i < diff.redistributions.size(); ++i) {
    out += i > 0 ? ",\n    " : "\n    ";
    append_json(out, redistribution(diff.redistributions[i]));
  }
  out += diff.redistributions.empty() ? "]" : "\n  ]";
  out += ",\n  \"schema\": \"meshplan/diff/1\",\n  \"totals\": ";
  append_json(out, {JsonObject{{"new", totals(diff.new_totals)}, {"old", totals(diff.old_totals)}}});
  out += ",\n  \"verdict\": ";
  append_json(out, {JsonObject{{"dearer", flag(holds(diff, "dearer"))},
                               {"different", flag(!same(diff))},
                               {"failed", flag(failed)},
                               {"numerics", flag(holds(diff, "numerics"))},
                               {"severity", text(to_text(diff.severity))},
                               {"warnings", flag(holds(diff, "warnings"))}}});
  out += ",\n  \"warnings\": ";
  append_json(out, {JsonObject{{"gone", warnings(diff.gone_warnings)}, {"new", warnings(diff.new_warnings)}}});
  return out + "\n}\n";
}

}  // namespace meshplan
