#include "torch_rules/torch_case.h"

#include <fstream>
#include <stdexcept>

namespace meshplan::test {
namespace {

State state_from(const nlohmann::json& side, std::span<const int64_t> mesh_shape, size_t tensor_rank) {
  std::vector<Placement> placements;
  for (const auto& text : side.at("placements")) placements.push_back(parse_placement(text.get<std::string>()).value());
  std::vector<ShardOrder> orders;
  if (side.contains("shard_order")) {
    for (const auto& [tensor_dim, mesh_dims] : side.at("shard_order").items()) {
      orders.push_back({std::stoi(tensor_dim), mesh_dims.get<std::vector<int32_t>>()});
    }
  }
  return make_state(placements, mesh_shape, tensor_rank, orders).value();
}

}  // namespace

nlohmann::json read_vectors(const std::string& name) { return read_json(std::string(MESHPLAN_TESTDATA) + "/vectors/" + name); }

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

TorchCase torch_case(const nlohmann::json& json) {
  TorchCase c;
  const auto& mesh = json.at("mesh");
  const auto shape = mesh.at("shape").get<std::vector<int64_t>>();
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t world = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    dims.emplace_back(mesh.at("dim_names").at(i).get<std::string>(), shape[i]);
    world *= shape[i];
  }
  (void)add_root(c.meshes, "mesh", world, {}, dims).value();
  for (const auto& flat : mesh.at("flattened")) {
    (void)declare_flatten(c.meshes, "mesh", flat.get<std::vector<std::string>>()).value();
  }
  c.request.id = "case";
  c.request.tensor.shape = json.at("tensor").at("shape").get<std::vector<int64_t>>();
  c.request.tensor.dtype = parse_dtype(json.at("tensor").at("dtype").get<std::string>()).value();
  c.request.src = state_from(json.at("src"), shape, c.request.tensor.shape.size());
  c.request.dst = state_from(json.at("dst"), shape, c.request.tensor.shape.size());
  return c;
}

nlohmann::json steps_json(const State& src, const std::vector<Step>& steps, std::span<const int64_t> mesh_shape) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<Placement> before = placements_of(src, mesh_shape);
  for (const Step& step : steps) {
    const std::vector<Placement> after = placements_of(step.state, mesh_shape);
    nlohmann::json entry;
    const auto first = static_cast<size_t>(step.mesh_dims.front().mesh_dim);
    for (const SubAxis& sub_axis : step.mesh_dims) entry["mesh_dims"].push_back(sub_axis.mesh_dim);
    // PyTorch calls the source of a scaled reduction P(sum).
    entry["src"] = step.scale_divisor > 1 ? "P(sum)" : to_text(before[first]);
    entry["dst"] = to_text(after[first]);
    entry["logical_shape"] = step.logical_shape;
    if (step.scale_divisor > 1) entry["avg_scale"] = step.scale_divisor;
    list.push_back(std::move(entry));
    before = after;
  }
  return list;
}

nlohmann::json warnings_json(const std::vector<Warning>& warnings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Warning& warning : warnings) {
    nlohmann::json entry = {{"collective", to_text(warning.collective)}, {"operations", warning.operations}};
    switch (warning.kind) {
      case WarningKind::missing_flatten:
        entry["reason"] = "no_flattened_mesh";
        entry["dims"] = warning.dims;
        break;
      case WarningKind::uneven_shape:
        entry["reason"] = "uneven_tensor_shape";
        break;
      case WarningKind::non_ascending:
        entry["reason"] = "non_ascending_mesh_dims";
        break;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

bool executable(const nlohmann::json& planner_entry) {
  for (const auto& step : planner_entry.at("steps")) {
    const auto src = step.at("src").get<std::string>();
    const auto dst = step.at("dst").get<std::string>();
    if (dst[0] == 'P' && src[0] != 'R' && !(src[0] == 'S' && dst == "P(sum)")) return false;
  }
  return true;
}

}  // namespace meshplan::test
