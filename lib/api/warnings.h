// Merges the warnings of the planners over a file, adds those of the file itself, and locates
// redistributions in a spec.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "diag/diagnostic.h"
#include "json/document.h"
#include "plan/plan.h"
#include "spec/spec.h"

namespace meshplan {

// What becomes of warnings (-W).
struct WarningPolicy {
  bool all_errors = false;            // -W error
  std::vector<std::string> errors;    // -W error=missing-flatten
  std::vector<std::string> silenced;  // -W no-missing-flatten
};

// Whether warnings of this code are allowed for a redistribution of this id.
[[nodiscard]] bool is_allowed(const std::vector<Allow>& allow, std::string_view code,
                              const std::string& id);

// All warnings of the file with the same kind, mesh and dims.
struct MergedWarning {
  // the first of them; saves_ns and saves_collectives are count-weighted sums
  Warning warning;
  bool more = false;             // some are saved beside what another warning saves
  int64_t times = 0;             // how often its redistributions happen
  std::vector<std::string> ids;  // of the redistributions, in order
  std::vector<Op> collectives;   // each once, in order
  size_t first = 0;              // index of the first
};

// In order of first appearance, without those that the spec allows.
[[nodiscard]] std::vector<MergedWarning> merge_warnings(const Plan& plan,
                                                        const std::vector<Allow>& allow);

// Places of redistributions in a spec. The text is parsed on first use and must outlive this.
class SpecPlaces {
 public:
  SpecPlaces(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}
  // The whole file if the place is unknown, and after the first thousand requests.
  [[nodiscard]] Place redistribution(size_t index);

 private:
  std::string_view text_;
  std::string path_;
  bool parsed_ = false;
  std::optional<JsonDocument> document_;
  std::vector<uint32_t> entries_;  // nodes of the redistributions
  size_t placed_ = 0;
};

// Adds the warnings of reading and the merged ones to the diagnostics under the policy, that a
// recording was cut short, which copies of meshes take no part (api/one_copy.h), and which bundles
// take longer than their members one by one; returns whether one of them is an error.
bool report_warnings(const WarningPolicy& policy, SpecPlaces& places, const Spec& spec,
                     const Plan& plan, Diagnostics& diagnostics);

}  // namespace meshplan
