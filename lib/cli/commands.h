// The subcommands. Each reads as its pipeline and returns the exit code; what is wrong goes to
// context.diagnostics.
#pragma once

#include "cli/arguments.h"
#include "cli/context.h"

namespace meshplan {

int plan_command(Context& context, const Arguments& arguments);
int show_command(Context& context, const Arguments& arguments);
int explain_command(Context& context, const Arguments& arguments);
int diff_command(Context& context, const Arguments& arguments);
int check_command(Context& context, const Arguments& arguments);
int verify_command(Context& context, const Arguments& arguments);
int run_command(Context& context, const Arguments& arguments);
int transfers_command(Context& context, const Arguments& arguments);
int compare_command(Context& context, const Arguments& arguments);
int calibrate_command(Context& context, const Arguments& arguments);
int mesh_command(Context& context, const Arguments& arguments);
int schema_command(Context& context, const Arguments& arguments);
int completion_command(Context& context, const Arguments& arguments);

}  // namespace meshplan
