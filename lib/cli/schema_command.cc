// meshplan schema NAME
#include "base/text.h"
#include "cli/commands.h"
#include "diag/schemas.h"

namespace meshplan {

int schema_command(Context& context, const Arguments& arguments) {
  const std::string& name = arguments.inputs[0];
  const auto text = schema_text(name);
  if (!text) {
    std::vector<std::string> names;
    for (std::string_view each : schema_names()) names.emplace_back(each);
    const auto near = nearest(name, names);
    return context.fail("", bad_input("unknown schema \"" + name + "\"" +
                                      (near ? "; did you mean " + *near + "?"
                                            : "; expected one of " + join(names, " "))));
  }
  return context.finish("-", std::string(*text));
}

}  // namespace meshplan
