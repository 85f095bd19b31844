// meshplan mesh SPEC
#include "cli/commands.h"
#include "cli/planning.h"
#include "render/mesh_view.h"

namespace meshplan {

int mesh_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  int code = 0;
  const auto spec = load_spec(context, path, code);
  if (!spec) return code;
  MeshViewOptions options;
  options.ranks = arguments.ranks;
  options.rank = arguments.rank;
  options.color = arguments.output.empty() && context.color(Stream::out);
  if (context.columns() > 0) options.width = context.columns();
  options.world_group = spec->options.world_group.value_or(options.world_group);
  const auto text = arguments.format == "json" ? mesh_view_json(spec->meshes, options)
                                               : mesh_view_text(spec->meshes, options);
  if (!text) return context.fail(path, text.error());
  return context.finish(arguments.output, *text);
}

}  // namespace meshplan
