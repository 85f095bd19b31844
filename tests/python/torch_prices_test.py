#!/usr/bin/env python3
"""meshplan.torch_prices in PyTorch, on a fake world of 64 ranks: DTensor's choice of strategies and Inductor's estimates use our prices inside
the block, and nothing does behind it. Needs PyTorch, and PYTHONPATH and MESHPLAN_LIBRARY as ctest sets them; exits with 77 and says so where
PyTorch is missing.

usage: torch_prices_test.py
"""
import importlib.util
import math
import sys

TOPOLOGY = "h100"


def specs_on(mesh, shape, *placements):
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    import torch
    meta = TensorMeta(torch.Size(shape), (shape[1], 1), torch.bfloat16)
    return [DTensorSpec(mesh, tuple(p), tensor_meta=meta) for p in placements]


def check_redistribute_cost(mesh):
    """The prices of the steps that PyTorch runs, or of the best plan; infinity and zero where PyTorch has them."""
    import torch.distributed.tensor._ops.utils as ops
    from torch.distributed.tensor import Partial, Replicate, Shard
    import meshplan
    from meshplan import torch_prices
    dims = {"dp": 8, "tp": 8}
    before, after, partial, shard = specs_on(mesh, (5003, 96), [Shard(0), Shard(1)], [Replicate(), Shard(0)], [Partial(), Shard(1)], [Shard(0), Replicate()])
    theirs = ops.redistribute_cost(before, after)
    words = [["S(0)", "S(1)"], ["R", "S(0)"], (5003, 96), "bfloat16"]
    for followed, options in ((False, {"planner": "greedy"}), (True, None)):
        with torch_prices.use(TOPOLOGY, followed) as prices:
            ours = ops.redistribute_cost(before, after)
            assert ours == meshplan.Pricer(dims, TOPOLOGY, options=options).cost(*words) != theirs, (ours, theirs)
            assert ops.redistribute_cost(shard, partial) == math.inf  # what DTensor does not insert by itself
            assert ops.redistribute_cost(before, before) == 0
            assert (prices.asked, prices.refused) == (3, 0), (prices.asked, prices.refused)
    assert ops.redistribute_cost(before, after) == theirs


def check_restored(mesh):
    """Choices made inside are forgotten outside, also after an exception; Inductor's hook is what it was."""
    import torch
    import torch._inductor.config as config
    import torch.distributed.tensor._collective_utils as utils
    from torch.distributed.tensor import DTensor, Shard
    import meshplan
    from meshplan import torch_prices
    original = [utils.redistribute_cost]
    def product():
        make = lambda: DTensor.from_local(torch.ones(8, 64), mesh, [Shard(0), Shard(0)], run_check=False)
        return (make() @ make().t()).placements
    outside = product()
    try:
        with torch_prices.use(TOPOLOGY) as prices:
            assert config.aten_distributed_optimizations.custom_runtime_estimation == prices.estimate
            product()
            assert prices.asked > 0, "DTensor asked for no price"
            asked = prices.asked
            raise KeyError("the program fails")
    except KeyError:
        pass
    try:
        with torch_prices.use("h101"):
            raise AssertionError("entered")
    except meshplan.MeshplanError as error:
        assert 'no preset "h101"' in str(error), str(error)
    assert utils.redistribute_cost is original[0] and config.aten_distributed_optimizations.custom_runtime_estimation is None
    assert product() == outside and prices.asked == asked
    holders = [m.__name__ for m in list(sys.modules.values()) if vars(m).get("redistribute_cost", original[0]) is not original[0]]
    assert holders == [], holders


def check_estimates(mesh):
    """Collectives of a graph, in milliseconds, as a plan of the same collective predicts; other nodes are Inductor's."""
    import torch
    import torch.distributed as dist
    from torch.fx.experimental.proxy_tensor import make_fx
    import meshplan
    from meshplan import torch_prices
    group = mesh.get_group("tp")
    ranks = dist.get_process_group_ranks(group)
    ops, name = torch.ops._c10d_functional, group.group_name
    def program(x):
        whole = ops.wait_tensor(ops.all_gather_into_tensor(x, 8, name))
        part = ops.wait_tensor(ops.reduce_scatter_tensor(whole, "sum", 8, name))
        total = ops.wait_tensor(ops.all_reduce(part, "max", name))
        return ops.wait_tensor(ops.all_to_all_single(total, [4] * 8, [4] * 8, name)) + 1
    graph = make_fx(program, tracing_mode="fake")(torch.empty(32, 64, dtype=torch.bfloat16)).graph
    spec = {"dims": [{"name": "tp", "size": 8}], "ranks": ranks}
    pricer = meshplan.Pricer(spec, TOPOLOGY, options={"planner": "greedy"})
    wanted = {"all_gather_into_tensor": (["S(0)"], ["R"], (8 * 2048,)), "reduce_scatter_tensor": (["P(sum)"], ["S(0)"], (8 * 2048,)),
              "all_reduce": (["P(max)"], ["R"], (2048,)), "all_to_all_single": (["S(1)"], ["S(0)"], (8, 2048))}
    with torch_prices.use(TOPOLOGY) as prices:
        found = {}
        for node in graph.nodes:
            estimate = prices.estimate(node, None)
            if estimate is not None:
                found[node.target._schema.name.split("::")[1]] = (estimate, prices.estimate(node, 1 << 24))
        assert prices.refused == 0
    assert set(found) == set(wanted), found
    for op, question in wanted.items():
        exact, larger = found[op]
        assert exact == pricer.cost(*question, "bfloat16") / 1000, (op, exact, pricer.cost(*question, "bfloat16"))
        assert larger > exact


def main():
    if importlib.util.find_spec("torch") is None:
        print("torch_prices_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=64)
    mesh = init_device_mesh("cpu", (8, 8), mesh_dim_names=("dp", "tp"))
    for check in (check_redistribute_cost, check_restored, check_estimates):
        check(mesh)
        print(f"{check.__name__}: ok", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
