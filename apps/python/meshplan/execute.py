"""Moves the data of one rank along a route: messages, packing, collectives and reductions, with
torch.distributed. Every rank of the redistribution calls this at the same time.
"""
from __future__ import annotations

import collections
import contextlib
import hashlib
import math
import weakref
from typing import Any, Callable, Iterator, Optional

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

from meshplan.routes import FETCHED, HELD, PACKED, Message, Part, Phase, Route, StepRoute
from meshplan.timing import Span

TORCH_DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16,
                "float16": torch.float16, "float8_e4m3": torch.float8_e4m3fn,
                "float8_e5m2": torch.float8_e5m2, "int64": torch.int64, "int32": torch.int32,
                "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8,
                "bool": torch.bool}
DTYPE_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}
COMBINE: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.add, "product": torch.mul, "min": torch.minimum, "max": torch.maximum}

# PyTorch 2.15 calls them so; before, they were all_gather_tensor and reduce_scatter_tensor.
ALL_GATHER = getattr(funcol, "all_gather_single", None) or funcol.all_gather_tensor
REDUCE_SCATTER = getattr(funcol, "reduce_scatter_single", None) or funcol.reduce_scatter_tensor

Buffers = dict[str, torch.Tensor]  # flat, by name
Clock = Callable[[StepRoute, Span], None]


class StepError(RuntimeError):
    """A step of a plan failed on this rank; the message names it, `__cause__` says why."""


class Groups:
    """The process groups that collectives run on, by their ranks: those that the program has
    already, and new ones."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def prepare(self, ranks: tuple[int, ...]) -> None:
        """Finds or makes the group; every one of the ranks calls this, in the same order of groups.
        Nobody else needs to."""
        if ranks in self._found or len(ranks) < 2:
            return
        group = next((g for g, members in _existing() if members == ranks), None)
        if group is None:
            with _by_members(ranks):
                group = dist.new_group(list(ranks), use_local_synchronization=True)
        self._found[ranks] = group

    def __getitem__(self, ranks: tuple[int, ...]) -> dist.ProcessGroup:
        return self._found[ranks]


def _existing() -> list[tuple[dist.ProcessGroup, tuple[int, ...]]]:
    """The groups of the program that serve every device of its default one by the same backend,
    with their ranks. One of gloo beside NCCL's would take tensors of a GPU too, by the host."""
    default = dist.distributed_c10d._get_default_group()
    wanted = _backends(default)
    known = getattr(dist.distributed_c10d._world, "pg_group_ranks", {default: {}})
    return [(group, tuple(sorted(dist.get_process_group_ranks(group)))) for group in known
            if isinstance(group, dist.ProcessGroup) and wanted <= _backends(group)]


def _backends(group: dist.ProcessGroup) -> set[str]:
    """{"cpu:gloo", "cuda:nccl"}"""
    return set(str(dist.get_backend_config(group)).split(","))


# By the default group of a world: how many groups of which ranks were made in it. A process that
# joins the next world has made none either.
_made: weakref.WeakKeyDictionary[dist.ProcessGroup, collections.Counter[tuple[int, ...]]] = (
    weakref.WeakKeyDictionary())


@contextlib.contextmanager
def _by_members(ranks: tuple[int, ...]) -> Iterator[None]:
    """While it lasts a new group is made by its members alone, for which PyTorch's
    use_local_synchronization is not enough. It names the group by how many others the rank is in,
    which members may differ in, and then wait for each other under different names; and a default
    group that is bound to a device (`device_id` of init_process_group) has it split off, which
    waits for all of its ranks."""
    c10d = dist.distributed_c10d
    default = c10d._get_default_group()
    made = _made.setdefault(default, collections.Counter())
    made[ranks] += 1
    if not hasattr(c10d, "_process_group_name"):
        raise RuntimeError(f"PyTorch {torch.__version__} names its groups in a way that meshplan "
                           "does not know: no distributed_c10d._process_group_name")
    bound, name_of = getattr(default, "bound_device_id", None), c10d._process_group_name
    digest = hashlib.sha1(repr(ranks).encode(), usedforsecurity=False).hexdigest()
    name = f"meshplan_{digest}_{made[ranks]}"
    try:
        c10d._process_group_name = lambda *_, **__: name
        if bound is not None:
            default.bound_device_id = None
        yield
    finally:
        c10d._process_group_name = name_of
        if bound is not None:
            default.bound_device_id = bound


def connect() -> None:
    """Connects the default group for messages; every rank of the world calls this. The first call
    of a group of NCCL makes its communicator and waits for all ranks, also for those that have no
    message in it."""
    default = dist.distributed_c10d._get_default_group()
    for device in default._device_types:
        if type(default) is dist.ProcessGroup and default._get_backend(device).supports_coalescing:
            dist.all_reduce(torch.zeros(1, device=device))


def part_in(flat: torch.Tensor, part: Part) -> torch.Tensor:
    """The part of a flat buffer, as a view of it."""
    return flat.as_strided(part.sizes, part.strides, flat.storage_offset() + part.offset)


def run_route(route: Route, local: torch.Tensor, shape: tuple[int, ...], groups: Groups,
              clock: Optional[Clock] = None) -> torch.Tensor:
    """The rank's shard of `shape` after all steps, from its shard before; never an alias of it."""
    local = waited(local)
    dtype, flat = local.dtype, local.contiguous().view(-1)
    for step in route.steps:
        span = Span(flat.device) if clock is not None else None
        try:
            flat = run_step(step, flat, groups)
        except Exception as error:
            raise StepError(f"following the plan: {step.name}: {error}") from error
        if clock is not None and span is not None:
            clock(step, span.stop())
    if flat.untyped_storage().data_ptr() == local.untyped_storage().data_ptr():
        flat = flat.clone()
    return flat.to(dtype).view(shape)


def run_step(step: StepRoute, flat: torch.Tensor, groups: Groups) -> torch.Tensor:
    """The flat buffer after the step."""
    if step.before is not None and flat.numel() != math.prod(step.before):
        raise ValueError(f"this rank holds {flat.numel()} elements, the plan says "
                         f"{list(step.before)}")
    dtype = flat.dtype
    if step.wide is not None:
        flat = flat.to(TORCH_DTYPES[step.wide])
    if step.op in COLLECTIVES:
        out = COLLECTIVES[step.op](step, flat, groups[step.ranks])
    else:
        out = exchange(step, flat)
    if step.divisor != 1:
        out = out / step.divisor if out.is_floating_point() else out // step.divisor
    return out.to(dtype)


def held_after(step: StepRoute) -> int:
    """Elements that the rank holds after the step."""
    return 0 if step.after is None else math.prod(step.after)


# ---- messages

def exchange(step: StepRoute, flat: torch.Tensor) -> torch.Tensor:
    """One packed message a peer in every phase; while one phase's are on their way, the next one
    starts as soon as it has what it needs."""
    buffers = {HELD: flat, FETCHED: flat.new_empty(step.fetched)}
    after = {HELD: flat.new_empty(held_after(step)), FETCHED: buffers[FETCHED]}
    combine = COMBINE[step.reduce_op or "sum"]
    under_way: list[tuple[Phase, list[Any], torch.Tensor, Any]] = []
    for phase in step.phases:
        if phase.fills:
            after[HELD].fill_(identity(step.reduce_op, flat.dtype))
        if phase.number == 2:  # it passes on what the first phase fetches
            for begun in under_way:
                if begun[0].number == 1:
                    finish(begun, buffers, after, combine)
            under_way = [begun for begun in under_way if begun[0].number == 2]
        under_way.append((phase, *start(phase, buffers, after, step.tag)))
    for begun in under_way:
        finish(begun, buffers, after, combine)
    return after[HELD]


def start(phase: Phase, buffers: Buffers, after: Buffers,
          tag: int) -> tuple[list[Any], torch.Tensor, list[torch.Tensor]]:
    """Sends and receives under way: (works, what arrives packed, what must live until then)."""
    whole = sum(message.count for message in phase.receives if not message.direct)
    arrives, at, operations, alive = buffers[HELD].new_empty(whole), 0, [], []
    for message in phase.receives:
        if message.direct:
            buffer, part = message.parts[0]
            target = after[buffer].narrow(0, part.offset, part.count)
        else:
            target = arrives.narrow(0, at, message.count)
            at += message.count
        operations.append(dist.P2POp(dist.irecv, as_bytes(target), message.peer, tag=tag))
    for message in phase.sends:
        alive.append(outgoing(message, buffers))
        operations.append(dist.P2POp(dist.isend, as_bytes(alive[-1]), message.peer, tag=tag))
    return dist.batch_isend_irecv(operations) if operations else [], arrives, alive


def as_bytes(flat: torch.Tensor) -> torch.Tensor:
    """The same memory: what is only moved may be of any dtype, also of those that a backend does
    not know, as NCCL does not know int16."""
    return flat.view(torch.uint8)


def outgoing(message: Message, buffers: Buffers) -> torch.Tensor:
    buffer, part = message.parts[0]
    if message.direct:
        return buffers[buffer].narrow(0, part.offset, part.count)
    out, at = buffers[HELD].new_empty(message.count), 0
    for buffer, part in message.parts:
        out.narrow(0, at, part.count).view(part.sizes).copy_(part_in(buffers[buffer], part))
        at += part.count
    return out


def finish(begun: tuple[Phase, list[Any], torch.Tensor, Any], buffers: Buffers, after: Buffers,
           combine: Callable[..., torch.Tensor]) -> None:
    """Waits for a phase and puts what came, and what stays, to its place; sums in the order of
    contributions, which is the same on every rank."""
    phase, works, arrives, _ = begun
    for work in works:
        work.wait()
    sources = {**buffers, PACKED: arrives}
    for move in phase.moves:
        target = part_in(after[move.target_buffer], move.target)
        source = part_in(sources[move.source_buffer], move.source)
        if move.contribution == 0:
            target.copy_(source)
        else:
            combine(target, source, out=target)


def identity(reduce_op: Optional[str], dtype: torch.dtype) -> Any:
    """What changes nothing when it is combined."""
    if reduce_op in ("min", "max"):
        if dtype is torch.bool:
            return reduce_op == "min"
        if dtype.is_floating_point:
            return float("inf") if reduce_op == "min" else -float("inf")
        info = torch.iinfo(dtype)
        return info.max if reduce_op == "min" else info.min
    return 1 if reduce_op == "product" else 0


# ---- collectives

def waited(tensor: torch.Tensor) -> torch.Tensor:
    """What arrives in a tensor that a collective is still on its way to, once it has; any other
    tensor as it is."""
    return tensor.wait() if isinstance(tensor, funcol.AsyncCollectiveTensor) else tensor


def all_reduce(step: StepRoute, flat: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    return waited(funcol.all_reduce(flat, step.reduce_op, group))


def all_gather(step: StepRoute, flat: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """Shards padded to the largest, each then moved to its place."""
    phase, members = step.phases[0], dist.get_process_group_ranks(group)
    own = [move for move in phase.moves if move.source_buffer == HELD]
    largest = max([flat.numel()] + [message.count for message in phase.receives])
    padded = flat if flat.numel() == largest else torch.cat(
        [flat, flat.new_zeros(largest - flat.numel())])
    gathered = waited(ALL_GATHER(as_bytes(padded), 0, group)).view(flat.dtype)
    places = {message.peer: message.parts for message in phase.receives}
    places[dist.get_rank()] = tuple((HELD, move.target) for move in own)
    if all(_lies_at(places.get(rank, ()), index * largest, largest)
           for index, rank in enumerate(members)):
        return gathered
    after = flat.new_empty(held_after(step))
    for index, rank in enumerate(members):
        for _, part in places.get(rank, ()):
            shard = gathered.narrow(0, index * largest, part.count).view(part.sizes)
            part_in(after, part).copy_(shard)
    return after


def _lies_at(parts: tuple[tuple[str, Part], ...], offset: int, count: int) -> bool:
    return len(parts) == 1 and parts[0][1].in_one_piece and (
        parts[0][1].offset == offset and parts[0][1].count == count)


def reduce_scatter(step: StepRoute, flat: torch.Tensor,
                   group: dist.ProcessGroup) -> torch.Tensor:
    """One part for every member, padded to the largest."""
    phase, members = step.phases[0], dist.get_process_group_ranks(group)
    parts = {message.peer: message.parts[0][1] for message in phase.sends}
    own = next((move for move in phase.moves if move.source_buffer == HELD), None)
    if own is not None:
        parts[dist.get_rank()] = own.source
    largest = max((part.count for part in parts.values()), default=0)
    packed = flat
    if not all(_lies_at(((HELD, parts[rank]),) if rank in parts else (), index * largest, largest)
               for index, rank in enumerate(members)):
        full = len(parts) == len(members) and all(p.count == largest for p in parts.values())
        packed = (flat.new_empty if full else flat.new_zeros)(len(members) * largest)
        for index, rank in enumerate(members):
            if rank in parts:
                part = parts[rank]
                packed.narrow(0, index * largest, part.count).view(part.sizes).copy_(
                    part_in(flat, part))
    mine = waited(REDUCE_SCATTER(packed, step.reduce_op, 0, group))
    return mine.narrow(0, 0, held_after(step))


COLLECTIVES: dict[str, Callable[[StepRoute, torch.Tensor, dist.ProcessGroup], torch.Tensor]] = {
    "all_reduce": all_reduce, "all_gather": all_gather, "reduce_scatter": reduce_scatter}
