#include "cli/rendering.h"

#include <algorithm>

#include "plan/asked_ids.h"
#include "render/graphs.h"
#include "render/html.h"
#include "render/plan_text.h"
#include "render/svg.h"
#include "render/torch.h"

namespace meshplan {
namespace {

// The plan with these redistributions only, and their totals.
Result<Plan> only(const Plan& plan, const std::vector<std::string>& ids) {
  if (auto known = check_asked_ids(plan, ids, AskedIds::of_redistributions); !known)
    return known.error();
  Plan part = plan;
  part.redistributions.clear();
  part.bundles.clear();  // their members may be gone
  for (const PlannedRedistribution& r : plan.redistributions) {
    if (std::find(ids.begin(), ids.end(), r.request.id) != ids.end())
      part.redistributions.push_back(r);
  }
  part.totals = total_of(part.redistributions);
  return part;
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
    Arguments rest = arguments;
    rest.only.clear();
    return render_as(context, format, *part, rest);
  }
  const ShowOptions options = show_options(context, arguments);
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

}  // namespace meshplan
