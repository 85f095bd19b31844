// The findings of all processes, put together in the report of each.
#pragma once

#include <algorithm>

#include "replay/communicator.h"
#include "replay/report.h"

namespace meshplan {

// Encode: std::string(const Report&); AddEncoded: void(const std::string&, Report&). At most `keep`
// differences are kept, those of the lowest ranks. Errors: tell_all's.
template <typename Report, typename Encode, typename AddEncoded>
Status gather_reports(Communicator& communicator, Deadline deadline, size_t keep, Report& report,
                      Encode encode, AddEncoded add_encoded) {
  auto all = communicator.tell_all(encode(report), deadline);
  if (!all) return all.error();
  if (all->size() > 1) {
    report.checked = report.wrong = 0;
    report.differences.clear();
    report.overruns.clear();
    for (const std::string& text : *all) add_encoded(text, report);
  }
  std::stable_sort(report.differences.begin(), report.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.rank < b.rank; });
  if (report.differences.size() > keep) report.differences.resize(keep);
  return Done{};
}

}  // namespace meshplan
