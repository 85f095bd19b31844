#include "spec/read_placements.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "spec/read_meshes.h"

namespace meshplan {
namespace {

std::string quoted_names(const Mesh& mesh, const std::vector<int32_t>& dims) {
  std::vector<std::string> names;
  names.reserve(dims.size());
  for (const int32_t dim : dims) names.push_back(printable(mesh.dims[dim].name));
  return "[" + join(names, ", ") + "]";
}

std::string dims_text(size_t rank) {
  return rank == 0 ? "the tensor is a scalar"
                   : "the tensor has " + std::to_string(rank) + (rank == 1 ? " dim" : " dims");
}

std::string range_text(size_t rank) {
  if (rank == 0) return "a scalar has no dims to shard";
  return rank == 1 ? "its only tensor dim is 0"
                   : "its tensor dims are 0 to " + std::to_string(rank - 1);
}

// One state on its way from the document.
class StateReader {
 public:
  StateReader(Reader& reader, std::string_view what, const StateContext& context)
      : reader_(reader), what_(what), context_(context) {}

  std::optional<State> read(uint32_t placements, uint32_t order) {
    const size_t before = reader_.errors();
    if (!(context_.mesh == nullptr ? read_each(placements) : read_placements(placements)))
      return std::nullopt;
    check_partials();
    check_any_order();
    if (reader_.errors() > before || context_.mesh == nullptr || context_.tensor == nullptr)
      return std::nullopt;
    const size_t rank = context_.tensor->shape.size();
    auto state = make_state(placements_, *context_.mesh_shape, rank);
    if (!state) {
      report_undecodable(state.error());
      return std::nullopt;
    }
    if (order == 0) return std::move(state).value();
    const auto orders = read_orders(order, *state);
    if (!orders) return std::nullopt;
    if (orders->empty()) return std::move(state).value();
    auto ordered = make_state(placements_, *context_.mesh_shape, rank, *orders);
    if (!ordered) {
      reader_.error("E0408", order, ordered.error().message);
      return std::nullopt;
    }
    return std::move(ordered).value();
  }

 private:
  const Mesh& mesh() const { return *context_.mesh; }

  void report_no_placements(uint32_t index) {
    reader_.wrong_type(index, what_,
                       "a list of placements, or an object from mesh dim to placement");
  }

  // The placements of an unknown mesh, of as many dims as there are. False: reported.
  bool read_each(uint32_t index) {
    const JsonNode& node = reader_.node(index);
    if (node.kind != JsonKind::object && node.kind != JsonKind::array) {
      report_no_placements(index);
      return false;
    }
    bool good = true;
    std::string buffer;
    for (uint32_t child = index + 1; child < node.next; child = reader_.node(child).next) {
      const JsonNode& member = reader_.node(child);
      if (member.repeated || member.keyless) continue;
      if (node.kind == JsonKind::object &&
          key_of(reader_.document(), member, buffer).substr(0, 2) == "x-")
        continue;
      const auto placement = read_placement(child);
      good = good && placement.has_value();
      if (!placement) continue;
      placements_.push_back(*placement);
      nodes_.push_back(child);
    }
    return good;
  }

  // Every mesh dim's placement with its node. False: reported.
  bool read_placements(uint32_t index) {
    const JsonNode& node = reader_.node(index);
    placements_.resize(mesh().dims.size());
    nodes_.assign(mesh().dims.size(), 0);
    if (node.kind == JsonKind::object) return read_by_name(index);
    if (node.kind != JsonKind::array) {
      report_no_placements(index);
      return false;
    }
    bool good = true;
    if (node.count != mesh().dims.size()) {
      reader_.error("E0402", index,
                    std::string(what_) + " has " + std::to_string(node.count) +
                        (node.count == 1 ? " placement" : " placements") + "; mesh " +
                        quote(mesh().name) + " has " + std::to_string(mesh().dims.size()) +
                        (mesh().dims.size() == 1 ? " dim" : " dims"),
                    {"give one for each of " + join(dim_names(mesh()), ", "), {}, 0, {}});
      good = false;
    }
    size_t i = 0;
    for (uint32_t child = index + 1; child < node.next; child = reader_.node(child).next, ++i) {
      const auto placement = read_placement(child);
      good = good && placement.has_value();
      if (!placement || i >= placements_.size()) continue;
      placements_[i] = *placement;
      nodes_[i] = child;
    }
    return good;
  }

  bool read_by_name(uint32_t index) {
    const JsonNode& node = reader_.node(index);
    bool good = true;
    bool named = true;  // every key was readable and known, so that a dim without one is missing
    std::string buffer;
    for (uint32_t child = index + 1; child < node.next; child = reader_.node(child).next) {
      if (reader_.node(child).repeated || reader_.node(child).keyless) {
        named = false;
        continue;
      }
      const std::string_view key = key_of(reader_.document(), reader_.node(child), buffer);
      const auto dim = find_dim(mesh(), key);
      if (!dim && key.substr(0, 2) == "x-") continue;
      if (!dim) {
        reader_.error_at_key("E0306", child,
                             "mesh " + quote(mesh().name) + " has no dim " + quote(key),
                             suggestion(key, dim_names(mesh()), "its dims are "));
        named = false;
        continue;
      }
      const auto placement = read_placement(child);
      nodes_[*dim] = child;
      good = good && placement.has_value();
      if (placement) placements_[*dim] = *placement;
    }
    std::vector<std::string> missing;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] == 0) missing.push_back(printable(mesh().dims[i].name));
    }
    if (named && !missing.empty()) {
      reader_.error("E0403", index,
                    std::string(what_) + " gives no placement for mesh dim" +
                        (missing.size() == 1 ? " " : "s ") + join(missing, ", "),
                    {"name every mesh dim; R where all ranks hold the same", {}, 0, {}});
    }
    return good && named && missing.empty();
  }

  std::optional<Placement> read_placement(uint32_t index) {
    const auto given = reader_.text(index, "a placement");
    if (!given) return std::nullopt;
    const auto placement = parse_placement(*given);
    if (!placement) {
      report_unreadable(index, std::string(*given));
      return std::nullopt;
    }
    if (context_.tensor == nullptr) return *placement;
    const size_t rank = context_.tensor->shape.size();
    const bool shards = placement->kind == Placement::Kind::shard ||
                        placement->kind == Placement::Kind::strided_shard;
    if (shards && static_cast<size_t>(placement->tensor_dim) >= rank) {
      reader_.error("E0404", index,
                    quote(*given) + " shards tensor dim " + std::to_string(placement->tensor_dim) +
                        "; " + dims_text(rank),
                    {range_text(rank), {}, 0, {}});
      return std::nullopt;
    }
    if (is_partial(*placement) && !check_reduction(index, *placement)) return std::nullopt;
    return *placement;
  }

  bool check_reduction(uint32_t index, const Placement& placement) {
    const DType dtype = context_.tensor->dtype;
    if (placement.op == ReduceOp::avg && !is_floating(dtype)) {
      reader_.error("E0409", index,
                    std::string("P(avg) of ") + to_text(dtype) +
                        " values: an average of integers need not be one",
                    {"use P(sum) and divide afterwards, or a floating dtype", {}, 0, {}});
      return false;
    }
    if (placement.op == ReduceOp::product && dtype == DType::boolean) {
      reader_.error("E0409", index, "P(product) of bool values has no meaning",
                    {"use P(min): all of them", {}, 0, {}});
      return false;
    }
    return true;
  }

  void report_unreadable(uint32_t index, const std::string& given) {
    std::string lower = given.substr(0, 60);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower.find("mask") != std::string::npos) {
      reader_.error(
          "E0407", index,
          quote(given) +
              " is a mask partial, which has no meaning outside of the operator that made it",
          {"reduce it first, or use P(sum)", {}, 0, {}});
      return;
    }
    Reader::More more;
    const int64_t rank = context_.tensor == nullptr ? -1 : std::ssize(context_.tensor->shape);
    const auto meant = placement_meant(given, rank);
    if (meant) {
      more.help = "did you mean " + quote(*meant) + "?";
      more.fix = Fix{"\"" + *meant + "\"", false};
    } else {
      more.help =
          "write R, S(tensor dim), P(sum|avg|min|max|product) or SS(tensor dim,split factor)";
    }
    reader_.error("E0401", index, quote(given) + " is not a placement", std::move(more));
  }

  // Partials that may not be pending together: the first pair.
  void check_partials() {
    for (size_t i = 0; i < placements_.size(); ++i) {
      for (size_t j = 0; j < i && is_partial(placements_[i]); ++j) {
        if (!is_partial(placements_[j]) || may_mix(placements_[i].op, placements_[j].op)) continue;
        reader_.error("E0405", nodes_[i],
                      to_text(placements_[i]) + " beside " + to_text(placements_[j]) +
                          ": the order of their reductions would decide the result",
                      {"only P(sum) and P(avg) may be pending together; reduce one of them first",
                       {},
                       nodes_[j],
                       to_text(placements_[j])});
        return;
      }
    }
  }

  // A strided shard is an order, so that none is left to choose.
  void check_any_order() {
    if (context_.any_order == 0) return;
    for (size_t i = 0; i < placements_.size(); ++i) {
      if (placements_[i].kind != Placement::Kind::strided_shard) continue;
      report_two_orders("any order is asked for beside the strided shard ", context_.any_order, i,
                        "leave the order to the planner");
      return;
    }
  }

  // `text` names the other order, at `index`, before the strided shard of mesh dim i.
  void report_two_orders(std::string text, uint32_t index, size_t i, std::string_view to_do) {
    reader_.error(
        "E0408", index, std::move(text) + to_text(placements_[i]),
        {"a strided shard already is an order; write S(" +
             std::to_string(placements_[i].tensor_dim) + ") where you " + std::string(to_do),
         {},
         nodes_[i],
         "the strided shard"});
  }

  // The strided shard that no shard order decodes. Mesh dims are decoded from the last to the
  // first, so it is the last one with which decoding fails.
  void report_undecodable(const Error& error) {
    std::vector<Placement> tail(placements_.size(), replicate());
    for (size_t i = placements_.size(); i-- > 0;) {
      tail[i] = is_partial(placements_[i]) ? replicate() : placements_[i];
      if (make_state(tail, *context_.mesh_shape, context_.tensor->shape.size())) continue;
      const Placement& strided = placements_[i];
      reader_.error(
          "E0406", nodes_[i],
          to_text(strided) +
              " fits no shard order: no run of the later mesh dims that shard tensor dim " +
              std::to_string(strided.tensor_dim) + " multiplies to " +
              std::to_string(strided.split_factor),
          {"write S(" + std::to_string(strided.tensor_dim) +
               ") and give the order as src_order or dst_order",
           {},
           0,
           {}});
      return;
    }
    reader_.error("E0406", nodes_.empty() ? 0 : nodes_[0], error.message);
  }

  // [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}, ...]
  std::optional<std::vector<ShardOrder>> read_orders(uint32_t index, const State& state) {
    const auto list = reader_.elements(index, "a shard order");
    if (!list) return std::nullopt;
    constexpr std::array<KeyRule, 2> rules{{{"tensor_dim", true}, {"mesh_dims", true}}};
    const size_t before = reader_.errors();
    std::vector<ShardOrder> orders;
    std::vector<uint32_t> places(state.shards.size(), 0);
    for (const uint32_t entry : *list) {
      const auto found = reader_.members(entry, rules, "an entry of a shard order");
      if (!found || (*found)[0] == 0 || (*found)[1] == 0) continue;
      const auto dim =
          reader_.integer((*found)[0], "\"tensor_dim\"", std::numeric_limits<int64_t>::min());
      const auto dims = read_dim_list(reader_, (*found)[1], "\"mesh_dims\"", mesh());
      if (!dim) continue;
      const size_t rank = state.shards.size();
      if (*dim < 0 || static_cast<size_t>(*dim) >= rank) {
        reader_.error("E0404", (*found)[0],
                      "the order of tensor dim " + std::to_string(*dim) + "; " + dims_text(rank),
                      {range_text(rank), {}, 0, {}});
        continue;
      }
      uint32_t& place = places[*dim];
      if (place != 0) {
        reader_.error("E0408", (*found)[0],
                      "tensor dim " + std::to_string(*dim) + " has an order already",
                      {"give one order for each tensor dim", {}, place, "first given here"});
        continue;
      }
      place = (*found)[0];
      if (!dims) continue;
      ShardOrder order{static_cast<int32_t>(*dim), {}};
      for (const size_t i : *dims) order.mesh_dims.push_back(static_cast<int32_t>(i));
      if (check_order(order, (*found)[1], state)) orders.push_back(std::move(order));
    }
    if (reader_.errors() > before) return std::nullopt;
    return orders;
  }

  bool check_order(const ShardOrder& order, uint32_t index, const State& state) {
    std::vector<int32_t> sharding;
    for (const SubAxis& sub_axis : state.shards[order.tensor_dim])
      sharding.push_back(sub_axis.mesh_dim);
    std::sort(sharding.begin(), sharding.end());
    std::vector<int32_t> listed = order.mesh_dims;
    std::sort(listed.begin(), listed.end());
    if (listed != sharding) {
      reader_.error("E0408", index,
                    "the order of tensor dim " + std::to_string(order.tensor_dim) + " lists " +
                        quoted_names(mesh(), order.mesh_dims) + "; the placements shard it on " +
                        quoted_names(mesh(), sharding),
                    {"list exactly those, major to minor", {}, 0, {}});
      return false;
    }
    for (const int32_t dim : listed) {
      const auto i = static_cast<size_t>(dim);
      if (placements_[i].kind != Placement::Kind::strided_shard) continue;
      report_two_orders(
          "tensor dim " + std::to_string(order.tensor_dim) + " has an order and the strided shard ",
          index, i, "give one");
      return false;
    }
    return true;
  }

  Reader& reader_;
  std::string_view what_;
  const StateContext& context_;
  std::vector<Placement> placements_;
  std::vector<uint32_t> nodes_;
};

}  // namespace

std::optional<State> read_state(Reader& reader, uint32_t placements, uint32_t order,
                                std::string_view what, const StateContext& context) {
  return StateReader(reader, what, context).read(placements, order);
}

}  // namespace meshplan
