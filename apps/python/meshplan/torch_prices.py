"""Our prices inside PyTorch: where DTensor chooses how an operator is sharded, and where Inductor
asks how long a collective takes.

    with meshplan.torch_prices.use("h100"):
        step()                # operators are sharded by our prices
        compiled = torch.compile(step)

DTensor's own model has hard-coded bandwidths, prices every mesh dim by itself and puts an
all-to-all at the price of an all-gather. Needs PyTorch; written for 2.15, which passes one function
(`redistribute_cost`) for all choices. Nothing stays replaced behind the block.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from typing import Any, Iterator, Optional

import torch
import torch._inductor.config
import torch.distributed as dist
import torch.distributed.tensor._collective_utils as collective_utils
from torch.distributed.tensor.debug import _clear_sharding_prop_cache
from torch.fx.operator_schemas import normalize_function

from meshplan.capture.placements import tensor_of
from meshplan.prices import Pricer, Topology
from meshplan.recorded_spec import NotCovered

# op of torch.ops._c10d_functional -> placements before and after, and elements a rank holds in both
# together, of as many as the whole tensor has
COLLECTIVES = {
    "all_gather_into_tensor": ("S(0)", "R", lambda ranks: (1 + ranks, ranks)),
    "reduce_scatter_tensor": ("P(sum)", "S(0)", lambda ranks: (1 + ranks, ranks)),
    "all_reduce": ("P(sum)", "R", lambda ranks: (2, 1)),
    "all_to_all_single": ("S(1)", "S(0)", lambda ranks: (2, ranks)),
}


class TorchPrices:
    """Prices of DTensor's and Inductor's questions on a topology. `asked`: how many questions came;
    `refused`: how many went to PyTorch's own model, because a spec does not have what they ask."""

    def __init__(self, topology: Topology, followed: bool) -> None:
        self.topology = topology
        # What PyTorch does by itself, or what a plan that is followed does.
        self.options = None if followed else {"planner": "greedy"}
        self.asked = self.refused = 0
        self._pricers: dict[Any, Pricer] = {}
        self._own_cost = collective_utils.redistribute_cost

    def redistribute_cost(self, current_spec: Any, target_spec: Any) -> float:
        """Microseconds, as PyTorch's function of this name: infinity for what DTensor must not
        insert by itself."""
        self.asked += 1
        mesh, before, after = current_spec.mesh, current_spec.placements, target_spec.placements
        if mesh != target_spec.mesh:
            return float("inf")
        if before == after and current_spec.shard_order == target_spec.shard_order:
            return 0.0
        if current_spec.is_replicated() or not mesh._is_current_rank_part_of_mesh():
            return 0.0
        if current_spec.shard_order is None or target_spec.shard_order is None:
            return float("inf")
        for old, new in zip(before, after):
            if new.is_partial() and old != new and not old.is_replicate():
                return float("inf")
        try:
            tensor = tensor_of(current_spec.shape, current_spec.tensor_meta.dtype)
            pricer = self._pricer(mesh)
            orders = [_order_of(current_spec), _order_of(target_spec)]
            return pricer.cost(before, after, tensor["shape"], tensor["dtype"], *orders)
        except NotCovered:
            self.refused += 1
            return self._own_cost(current_spec, target_spec)

    def estimate(self, node: torch.fx.Node, override_size: Optional[int] = None) -> Optional[float]:
        """Milliseconds of a collective of a graph; None for other nodes and for what has no price,
        which Inductor then estimates by itself. `override_size`: bytes of its inputs and outputs
        together, in place of the node's own."""
        name = getattr(node.target, "_schema", None) and node.target._schema.name
        kind = (
            COLLECTIVES.get(name.removeprefix("_c10d_functional::").removesuffix("_out"))
            if name
            else None
        )
        if kind is None or not name.startswith("_c10d_functional::"):
            return None
        self.asked += 1
        value, kwargs = node.meta.get("val"), _arguments(node)
        try:
            ranks = tuple(dist.get_process_group_ranks(_group(kwargs["group_name"])))
            dtype = tensor_of((1,), value.dtype)["dtype"]
            size = _bytes_of(node) if override_size is None else override_size
        except (NotCovered, AttributeError, KeyError, TypeError, RuntimeError, ValueError):
            self.refused += 1
            return None
        src, dst, parts = kind
        if len(ranks) == 1 or size == 0:
            return 0.0
        if src == "P(sum)" and kwargs.get("reduce_op") in ("avg", "max", "min", "product"):
            src = f"P({kwargs['reduce_op']})"
        both, whole = parts(len(ranks))
        elements = max(1, size * whole // both // value.dtype.itemsize)
        rows = -(-elements // len(ranks))
        shape = (len(ranks), rows) if name.endswith("all_to_all_single") else (elements,)
        return self._pricer(ranks).cost((src,), (dst,), shape, dtype) / 1000

    def _pricer(self, mesh: Any) -> Pricer:
        """On a DeviceMesh, or on the ranks of a group."""
        pricer = self._pricers.get(mesh)
        if pricer is None:
            given = mesh
            if isinstance(mesh, tuple):
                given = {"dims": [{"name": "group", "size": len(mesh)}], "ranks": list(mesh)}
            pricer = self._pricers[mesh] = Pricer(given, self.topology, options=self.options)
        return pricer


def _order_of(spec: Any) -> Optional[dict[int, list[int]]]:
    """Of a DTensorSpec whose shard order is not the ascending one."""
    orders = {int(e.tensor_dim): list(e.mesh_dims) for e in spec.shard_order or ()}
    orders = {dim: dims for dim, dims in orders.items() if dims != sorted(dims)}
    return orders or None


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    found = normalize_function(
        node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True
    )
    return {} if found is None else found[1]


def _group(name: Any) -> Any:
    return (
        name
        if isinstance(name, dist.ProcessGroup)
        else dist.distributed_c10d._resolve_process_group(name)
    )


def _bytes_of(node: torch.fx.Node) -> int:
    from torch._inductor.comm_analysis import estimate_fx_collective_size

    return estimate_fx_collective_size(node)


def _check_signature() -> None:
    """RuntimeError where this PyTorch asks for prices in another way than the one known here."""
    known = ["current_spec", "target_spec"]
    found = list(inspect.signature(collective_utils.redistribute_cost).parameters)
    if found != known:
        raise RuntimeError(
            f"PyTorch {torch.__version__}: redistribute_cost takes {found}, not {known}; "
            "meshplan.torch_prices knows PyTorch 2.15"
        )


@contextlib.contextmanager
def use(topology: Topology = None, followed: bool = False) -> Iterator[TorchPrices]:
    """Inside the block DTensor chooses sharding strategies, and Inductor schedules, by our prices
    on a topology (a preset's name, a spec's "topology" object or a file). `followed`: price the
    best plan, for a program that runs under `meshplan.follow`; else the steps that PyTorch runs by
    itself. What DTensor remembers of choices is forgotten on the way in and out."""
    _check_signature()
    Pricer({"ranks": 1}, topology)  # a topology that is none fails here, not within an operator
    prices, saved = TorchPrices(topology, followed), []
    original = collective_utils.redistribute_cost
    tap = lambda current_spec, target_spec: prices.redistribute_cost(current_spec, target_spec)
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if isinstance(space, dict):
            for name in [n for n, v in space.items() if v is original]:
                saved.append((module, name))
                setattr(module, name, tap)
    inductor = torch._inductor.config.aten_distributed_optimizations
    estimation = inductor.custom_runtime_estimation
    inductor.custom_runtime_estimation = prices.estimate
    _clear_sharding_prop_cache()
    try:
        yield prices
    finally:
        for module in list(sys.modules.values()):  # those imported meanwhile hold the tap too
            space = getattr(module, "__dict__", None)
            if isinstance(space, dict):
                saved += [(module, n) for n, v in space.items() if v is tap]
        for module, name in saved:
            setattr(module, name, original)
        inductor.custom_runtime_estimation = estimation
        _clear_sharding_prop_cache()
