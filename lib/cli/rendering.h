// The forms that a plan is printed in, by the names that --format takes.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/context.h"
#include "plan/plan.h"
#include "render/plan_view.h"

namespace meshplan {

// What the flags and the terminal come to.
[[nodiscard]] ShowOptions show_options(Context& context, const Arguments& arguments);

// Error: a redistribution named by --id that the plan has not.
[[nodiscard]] Result<std::string> render_as(Context& context, const std::string& format,
                                            const Plan& plan, const Arguments& arguments);

}  // namespace meshplan
