#include "cli/rendering.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/utf8.h"
#include "plan/asked_ids.h"
#include "render/graphs.h"
#include "render/html.h"
#include "render/plan_text.h"
#include "render/svg.h"
#include "render/torch.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

// Counts the steps that name each group, and leaves out groups that none names.
void count_use(Plan& plan) {
  std::map<std::string_view, int64_t> uses;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const Step& step : r.steps) ++uses[step.group];
  }
  for (PlanGroup& group : plan.groups) group.used_by = uses[group.id];
  std::erase_if(plan.groups, [](const PlanGroup& group) { return group.used_by == 0; });
}

// A file holds whole nanoseconds, each rounded up, and its total is rounded once: what goes into
// the sum is counted anew where that can be, as verify does.
void make_exact(const Plan& plan, PlannedRedistribution& r) {
  if (!verify_redistribution(plan, r)) return;
  const auto counted = verify_figures(plan, r);
  if (counted && counted->ps) r.totals.predicted_ps = *counted->ps;
}

// The plan with these redistributions only, and their groups and totals: a plan by itself.
Result<Plan> only(const Plan& plan, const std::vector<std::string>& ids) {
  if (auto known = check_asked_ids(plan, ids, AskedIds::of_redistributions); !known)
    return known.error();
  Plan part = plan;
  part.redistributions.clear();
  part.bundles.clear();  // their members may be gone
  for (const PlannedRedistribution& r : plan.redistributions) {
    if (std::find(ids.begin(), ids.end(), r.request.id) == ids.end()) continue;
    part.redistributions.push_back(r);
    make_exact(plan, part.redistributions.back());
  }
  count_use(part);
  part.totals = total_of(part.redistributions);
  return part;
}

// What the totals of redistributions that --id names are of, where bundles move these with others.
std::string note_on_totals(const Plan& plan, const std::vector<std::string>& ids) {
  std::vector<std::string> bundles = bundles_that_move(plan, ids);
  for (std::string& id : bundles) id = one_line(id);
  if (bundles.empty()) return {};
  return std::string(ids.size() == 1 ? "by itself: it is" : "each by itself: they are") +
         " moved in bundle " + join(bundles, ", ");
}

Result<std::string> render(const std::string& format, const Plan& plan,
                           const ShowOptions& options) {
  if (format == "json") return write_plan(plan);
  if (format == "markdown") return render_plan_markdown(plan, options);
  if (format == "svg") return render_svg(plan, options);
  if (format == "html") return render_html(plan, options);
  if (format == "mermaid") return render_mermaid(plan, options);
  if (format == "dot") return render_dot(plan, options);
  if (format == "perfetto") return render_perfetto(plan, options);
  if (format == "torch") return render_torch(plan);
  return render_plan_text(plan, options);
}

}  // namespace

ShowOptions show_options(Context& context, const Arguments& arguments) {
  ShowOptions options;
  if (arguments.detail == "summary") options.detail = Detail::summary;
  if (arguments.detail == "full") options.detail = Detail::full;
  options.costs = arguments.costs;
  options.top = arguments.top;
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  options.width = to_stdout ? context.columns() : 0;
  options.color = to_stdout && context.color(Stream::out);
  options.unicode = context.unicode();
  return options;
}

Result<std::string> render_as(Context& context, const std::string& format, const Plan& plan,
                              const Arguments& arguments) {
  if (!arguments.only.empty()) {
    auto part = only(plan, arguments.only);
    if (!part) return part.error();
    ShowOptions options = show_options(context, arguments);
    options.totals_note = note_on_totals(plan, arguments.only);
    return render(format, *part, options);
  }
  return render(format, plan, show_options(context, arguments));
}

}  // namespace meshplan
