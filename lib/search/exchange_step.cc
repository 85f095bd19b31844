#include "search/exchange_step.h"

#include <algorithm>

#include "search/edge_steps.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

bool is_in(const std::vector<PendingAtom>& list, const PendingAtom& pending) {
  return std::find(list.begin(), list.end(), pending) != list.end();
}

}  // namespace

State landing_of(const Request& request) {
  State landing = request.dst;
  const bool crosses = request.src_mesh != request.dst_mesh;
  std::erase_if(landing.partial,
                [&](const PendingAtom& p) { return crosses || !is_in(request.src.partial, p); });
  return landing;
}

void set_reduction(Step& step, const State& src, const State& landing) {
  int64_t averaged = 1;
  bool several = false;
  for (const PendingAtom& p : src.partial) {
    if (p.atom.size == 1 || is_in(landing.partial, p)) continue;
    if (step.reduce_op && (*step.reduce_op != p.op || p.op == ReduceOp::avg)) several = true;
    step.reduce_op = p.op;
    if (p.op == ReduceOp::avg) averaged *= p.atom.size;
  }
  if (!several) return;
  step.reduce_op = ReduceOp::sum;
  step.scale_divisor = averaged;
}

void add_partials(const Request& request, const Mesh& dst_mesh, State at,
                  std::vector<Step>& steps) {
  for (const PendingAtom& p : request.dst.partial) {
    if (is_in(at.partial, p)) continue;
    Step made;
    made.op = Op::to_partial;
    made.mesh_dims = {p.atom};
    State before = at;
    at.partial.push_back(p);
    std::sort(at.partial.begin(), at.partial.end(),
              [](const PendingAtom& a, const PendingAtom& b) { return a.atom < b.atom; });
    made.state = at;
    if (request.src_mesh != request.dst_mesh) made.mesh = dst_mesh.name;
    State others = before;
    for (auto& order : others.shards)
      std::erase_if(order, [&](const Atom& a) { return a.mesh_dim == p.atom.mesh_dim; });
    made.logical_shape = largest_box(others, request.tensor.shape, mesh_shape(dst_mesh));
    describe_change(before, dst_mesh, made);
    made.why = filled(row_of(made.op).why,
                      {{"dims", dst_mesh.dims[static_cast<size_t>(p.atom.mesh_dim)].name}});
    steps.push_back(std::move(made));
  }
}

}  // namespace meshplan
