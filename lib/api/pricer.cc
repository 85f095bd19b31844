#include "api/pricer.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/utf8.h"
#include "diag/outcome_codes.h"
#include "planner/settle_options.h"

namespace meshplan {
namespace {

constexpr int64_t no_plan_ns = -1;
constexpr size_t most_tensor_dims = 64;
constexpr int64_t reduce_ops = static_cast<int64_t>(ReduceOp::product) + 1;

struct DecodedPlacement {
  Placement placement;
  int64_t place = 0;  // in the shard order
};

Result<DecodedPlacement> decode(PlacementCode code, const TensorMeta& tensor) {
  if (code == -1) return DecodedPlacement{replicate()};
  if (code < 0) {
    if (code < -1 - reduce_ops) return bad_input(std::to_string(code) + " is not a placement");
    const auto op = static_cast<ReduceOp>(-2 - code);
    if ((op == ReduceOp::avg && !is_floating(tensor.dtype)) ||
        (op == ReduceOp::product && tensor.dtype == DType::boolean)) {
      return bad_input(to_text(partial(op)) + " of " + to_text(tensor.dtype) +
                       " values has no meaning");
    }
    return DecodedPlacement{partial(op)};
  }
  DecodedPlacement decoded{shard(static_cast<int32_t>(code % 256)), code / 256 % 256};
  if (static_cast<size_t>(decoded.placement.tensor_dim) >= tensor.shape.size()) {
    return bad_input(to_text(decoded.placement) + " shards tensor dim " +
                     std::to_string(decoded.placement.tensor_dim) + "; the tensor has " +
                     std::to_string(tensor.shape.size()) + " dims");
  }
  const int64_t split_factor = code / 65'536;
  if (split_factor > 0) {
    decoded.placement.kind = Placement::Kind::strided_shard;
    decoded.placement.split_factor = split_factor;
    if (decoded.place > 0) {
      return bad_input("the strided shard " + to_text(decoded.placement) +
                       " already is an order and cannot be part of another");
    }
  }
  return decoded;
}

// The orders of the tensor dims for which some place is not 0.
Result<std::vector<ShardOrder>> orders_by_place(const std::vector<DecodedPlacement>& decoded,
                                                size_t tensor_dims) {
  std::vector<ShardOrder> orders;
  for (size_t dim = 0; dim < tensor_dims; ++dim) {
    ShardOrder order{static_cast<int32_t>(dim), {}};
    std::vector<int64_t> places;
    for (size_t i = 0; i < decoded.size(); ++i) {
      const Placement& placement = decoded[i].placement;
      if (is_shard(placement) && placement.tensor_dim == order.tensor_dim) {
        order.mesh_dims.push_back(static_cast<int32_t>(i));
        places.push_back(decoded[i].place);
      }
    }
    if (std::all_of(places.begin(), places.end(), [](int64_t place) { return place == 0; }))
      continue;
    std::vector<int32_t> by_place(places.size(), -1);
    for (size_t i = 0; i < places.size(); ++i) {
      const auto place = static_cast<size_t>(places[i]);
      if (place >= places.size() || by_place[place] >= 0) {
        return bad_input("the places of the mesh dims that shard tensor dim " +
                         std::to_string(dim) + " are not 0 to " +
                         std::to_string(places.size() - 1));
      }
      by_place[place] = order.mesh_dims[i];
    }
    order.mesh_dims = std::move(by_place);
    orders.push_back(std::move(order));
  }
  return orders;
}

Result<State> state_of(const PlacementCode* codes, const std::vector<int64_t>& mesh_shape,
                       const TensorMeta& tensor) {
  std::vector<DecodedPlacement> decoded;
  std::vector<Placement> placements;
  for (size_t i = 0; i < mesh_shape.size(); ++i) {
    auto one = decode(codes[i], tensor);
    if (!one) return one.error();
    placements.push_back(one->placement);
    decoded.push_back(*one);
  }
  const auto orders = orders_by_place(decoded, tensor.shape.size());
  if (!orders) return orders.error();
  return make_state(placements, mesh_shape, tensor.shape.size(), *orders);
}

Result<TensorMeta> tensor_of(const PriceBatch& batch, size_t row) {
  TensorMeta tensor;
  const int32_t dtype = batch.dtypes[row];
  if (dtype < 0 || dtype > static_cast<int32_t>(DType::boolean))
    return bad_input(std::to_string(dtype) + " is not a dtype");
  tensor.dtype = static_cast<DType>(dtype);
  const int64_t* shape = batch.shapes + row * batch.tensor_dims;
  tensor.shape.assign(shape, shape + batch.tensor_dims);
  std::optional<int64_t> bytes = element_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) return bad_input("a size of " + std::to_string(extent));
    if (bytes) bytes = checked_mul(*bytes, std::max<int64_t>(1, extent));
  }
  if (!bytes) return bad_input("the tensor has more bytes than fit 64 bits");
  return tensor;
}

void append_bytes(std::string& key, const void* values, size_t bytes) {
  if (bytes > 0) key.append(static_cast<const char*>(values), bytes);
}

}  // namespace

Pricer::Pricer(Spec spec, Topology topology, PlanOptions options, size_t mesh)
    : spec_(std::move(spec)),
      topology_(std::move(topology)),
      options_(options),
      mesh_(mesh),
      shape_(mesh_shape(spec_.meshes.meshes[mesh])),
      planner_(spec_.meshes, topology_, options_) {}

Result<int64_t> Pricer::price_row(const PriceBatch& batch, size_t row) {
  Request request;
  request.id = "question " + std::to_string(row);
  request.src_mesh = request.dst_mesh = mesh_;
  auto tensor = tensor_of(batch, row);
  if (!tensor) return tensor.error();
  request.tensor = *std::move(tensor);
  auto src = state_of(batch.src + row * shape_.size(), shape_, request.tensor);
  if (!src) return src.error();
  request.src = *std::move(src);
  auto dst = state_of(batch.dst + row * shape_.size(), shape_, request.tensor);
  if (!dst) return dst.error();
  request.dst = *std::move(dst);
  const auto planned = planner_.answer(request);
  if (planned) return ns_of_ps(planned->totals.predicted_ps);
  if (planned.error().fault == Fault::no_plan) return no_plan_ns;
  return planned.error();
}

Status Pricer::price(const PriceBatch& batch, int64_t* ns) {
  if (batch.tensor_dims > most_tensor_dims) {
    return bad_input("tensors of " + std::to_string(batch.tensor_dims) + " dims; at most " +
                     std::to_string(most_tensor_dims) + " are priced");
  }
  std::string key;
  for (size_t row = 0; row < batch.questions; ++row) {
    key.assign(1, static_cast<char>(batch.tensor_dims));
    append_bytes(key, batch.dtypes + row, sizeof(int32_t));
    append_bytes(key, batch.shapes + row * batch.tensor_dims, batch.tensor_dims * sizeof(int64_t));
    append_bytes(key, batch.src + row * shape_.size(), shape_.size() * sizeof(PlacementCode));
    append_bytes(key, batch.dst + row * shape_.size(), shape_.size() * sizeof(PlacementCode));
    auto known = known_.find(key);
    if (known == known_.end()) {
      const auto priced = price_row(batch, row);
      if (!priced) {
        Error error = priced.error();
        error.message = "question " + std::to_string(row) + ": " + error.message;
        return error;
      }
      known = known_.emplace(key, *priced).first;
    }
    ns[row] = known->second;
  }
  return Done{};
}

std::unique_ptr<Pricer> make_pricer(const std::string& text, const FileReader& read_file,
                                    const SpecQuestion& question, const std::string& mesh,
                                    Diagnostics& diagnostics, int& code) {
  const auto refuse = [&](const Error& error) -> std::unique_ptr<Pricer> {
    diagnostics.add(diagnostic_of(whole_file(question.name), error));
    code = exit_code(error.fault);
    return nullptr;
  };
  auto spec = read_spec(text, question.name, read_file, diagnostics);
  if (!spec) {
    code = exit_code(Fault::bad_input);
    return nullptr;
  }
  auto options = settle_options(spec->options, question.options);
  if (!options) return refuse(options.error());
  options->audit = false;
  options->alternatives = 0;
  const auto& meshes = spec->meshes.meshes;
  if (mesh.empty() && meshes.size() != 1)
    return refuse(bad_input("the spec has " + std::to_string(meshes.size()) +
                            " meshes; name the one to price on"));
  const auto index = mesh.empty() ? std::optional<size_t>(0) : find_mesh(spec->meshes, mesh);
  if (!index) return refuse(bad_input("the spec has no mesh '" + one_line(mesh) + "'"));
  Topology topology = settled_topology(*spec, question);
  return std::make_unique<Pricer>(*std::move(spec), std::move(topology), *options, *index);
}

}  // namespace meshplan
