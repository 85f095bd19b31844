// The planners' warnings of a whole file, each once, and where things stand in a spec.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/context.h"
#include "json/document.h"
#include "plan/plan.h"
#include "spec/spec.h"

namespace meshplan {

// One warning of the file: what the warnings of equal (kind, mesh, dims) come to.
struct MergedWarning {
  Warning warning;               // the first of them; saves_ps and saves_collectives are count-weighted sums
  int64_t times = 0;             // how often its redistributions happen
  std::vector<std::string> ids;  // of the redistributions, in order
  std::vector<Op> collectives;   // each once, in order
  size_t first = 0;              // index of the first
};

// In order of first appearance; those that the spec allows are left out.
[[nodiscard]] std::vector<MergedWarning> merge_warnings(const Plan& plan, const std::vector<Allow>& allow);

// The line to add to the spec that declares what the warning lacks; empty where there is no fix.
[[nodiscard]] std::string declaration_of(const Plan& plan, const Warning& warning);

// Where redistributions stand in a spec. The text is parsed when the first place is asked for, and must outlive this.
class SpecPlaces {
 public:
  SpecPlaces(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}
  // The whole file where it cannot be told, and after the first thousand asked for.
  [[nodiscard]] Place redistribution(size_t index);

 private:
  std::string_view text_;
  std::string path_;
  bool parsed_ = false;
  std::optional<JsonDocument> document_;
  std::vector<uint32_t> entries_;  // nodes of the redistributions
  size_t placed_ = 0;
};

// Adds the merged warnings to the diagnostics under the -W policy; true if one of them is an error by it.
bool report_warnings(Context& context, SpecPlaces& places, const Spec& spec, const Plan& plan);

}  // namespace meshplan
