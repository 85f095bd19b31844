"""Many tensors from their layouts to other ones, on any meshes, as one exchange.

    meshplan.reshard(trained, serving)        # dicts of DTensors with the same keys

All tensors move at the same time: in every round a rank sends each peer one packed message with
what that peer needs of all of them. Rounds are as large as `max_staging_bytes` allows; a tensor
that is larger goes in slices. Tensors that ask the same question are planned once.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import sys
import time
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor

from meshplan.execute import COMBINE, TORCH_DTYPES, Groups, held_after, identity, part_in
from meshplan.following import PlanLike, dtype_name, layout_of, plan_document, ranks_of
from meshplan.layouts import Layout, PlanMeshes, layout_of_text, whole_entries
from meshplan.library import plan as plan_of_spec
from meshplan.library import transfers
from meshplan.routes import FETCHED, HELD, PACKED, Part, Phase, Route, StepRoute, route_of

Tensors = Union[DTensor, Sequence[DTensor], Mapping[str, DTensor]]
STAGING_BYTES = 2 << 30  # default limit, as a spec's bundles have it
ALIGNMENT = 16  # bytes, of every part in a packed message
# Steps cost so much that a plan of one exchange is always the cheapest: these go together.
ONE_STEP = {"levels": [{"name": "flat", "ranks": 1048576, "gb_per_s": 100,
                        "latency_ns": 1_000_000_000}]}


@dataclasses.dataclass
class Resharded:
    """What a reshard did on this rank."""

    tensors: int = 0
    rounds: int = 0
    messages: int = 0       # received
    wire_bytes: int = 0     # received, packed
    staging_bytes: int = 0  # the most that lay in packed messages, sent and received, at a time
    seconds: float = 0.0

    def __str__(self) -> str:
        return (f"resharded {self.tensors:,} tensors in {self.rounds:,} rounds: "
                f"{self.seconds * 1e3:,.3f} ms, {self.wire_bytes:,} bytes received in "
                f"{self.messages:,} messages, at most {self.staging_bytes:,} bytes staged")


def reshard(before: Tensors, after: Tensors, plan: Optional[PlanLike] = None,
            max_staging_bytes: int = STAGING_BYTES) -> Resharded:
    """Fills the DTensors of `after` with the data of those of `before`, which stay as they are.

    Both are a DTensor, a list, or a dict with the same keys; each pair has one shape and dtype, its
    meshes may be any, also on other ranks. Every rank of any of the meshes calls this with the same
    pairs in the same order; a rank outside of a tensor's mesh has the DTensor without data. `plan`
    is a plan that has these redistributions; without it they are planned once and remembered.
    `max_staging_bytes` bounds what a rank holds in packed messages beside the tensors.
    """
    pairs = _pairs(before, after)
    if _only_recorded(pairs, max_staging_bytes):
        return Resharded(len(pairs))
    device = pairs[0][1]._local_tensor.device if pairs else torch.device("cpu")
    prepared = _prepare([Question.of(source, target) for _, source, target in pairs], plan, device)
    done, started = Resharded(len(pairs)), time.perf_counter()
    with torch.no_grad(), _inside_recording():
        for bucket in prepared.buckets(max_staging_bytes):
            _run_bucket([(pairs[index], route, slices) for index, route, slices in bucket], done)
    done.seconds = time.perf_counter() - started
    return done


def _pairs(before: Tensors, after: Tensors) -> list[tuple[str, DTensor, DTensor]]:
    if isinstance(before, DTensor) and isinstance(after, DTensor):
        before, after = [before], [after]
    if isinstance(before, Mapping) != isinstance(after, Mapping):
        raise ValueError("before and after are not both dicts or both lists")
    if isinstance(before, Mapping):
        assert isinstance(after, Mapping)
        if set(before) != set(after):
            odd = sorted(set(before) ^ set(after))
            raise ValueError(f"only in one of before and after: {', '.join(map(str, odd[:8]))}")
        pairs = [(str(key), before[key], after[key]) for key in before]
    else:
        if len(before) != len(after):  # type: ignore[arg-type]
            raise ValueError(f"{len(before)} tensors before, {len(after)} after")
        pairs = [(str(i), *pair) for i, pair in enumerate(zip(before, after))]  # type: ignore
    for name, source, target in pairs:
        _check_pair(name, source, target)
    return pairs


def _check_pair(name: str, source: DTensor, target: DTensor) -> None:
    if not isinstance(source, DTensor) or not isinstance(target, DTensor):
        raise ValueError(f"{name}: not a DTensor on both sides")
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(f"{name}: {source.dtype}{list(source.shape)} before, "
                         f"{target.dtype}{list(target.shape)} after")
    if isinstance(source._local_tensor, FakeTensor):
        return
    memory = [t._local_tensor.untyped_storage().data_ptr() for t in (source, target)]
    if memory[0] == memory[1] and source._local_tensor.numel():
        raise ValueError(f"{name}: before and after share their memory")


def _only_recorded(pairs: list[tuple[str, DTensor, DTensor]], max_staging_bytes: int) -> bool:
    """Tells a recording at work; True where tensors have no data, so that this is all."""
    running = getattr(sys.modules.get("meshplan.capture.recorder"), "running", None)
    if running is not None:
        running.reshard({name: source for name, source, _ in pairs},
                        {name: target for name, _, target in pairs},
                        max_staging_bytes=(
                            max_staging_bytes if max_staging_bytes != STAGING_BYTES else None))
    return any(isinstance(source._local_tensor, FakeTensor) for _, source, _ in pairs)


@contextlib.contextmanager
def _inside_recording() -> Iterator[None]:
    """What is sent meanwhile is the reshard's own: a recording at work has it already."""
    running = getattr(sys.modules.get("meshplan.capture.recorder"), "running", None)
    if running is None:
        yield
        return
    running.depth += 1
    try:
        yield
    finally:
        running.depth -= 1


# ---- questions, and plans that answer them

@dataclasses.dataclass(frozen=True)
class Mesh:
    """Row-major global ranks, shape and names of dims."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    names: tuple[str, ...]

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(mesh: Any) -> "Mesh":
        names = mesh.mesh_dim_names or tuple(f"dim_{i}" for i in range(mesh.ndim))
        return Mesh(ranks_of(mesh), tuple(mesh.shape), tuple(names))


@dataclasses.dataclass(frozen=True)
class Question:
    """What one pair asks: equal ones have one plan."""

    shape: tuple[int, ...]
    dtype: str
    meshes: tuple[Mesh, Mesh]
    layouts: tuple[Layout, Layout]

    @staticmethod
    def of(source: DTensor, target: DTensor) -> "Question":
        return Question(tuple(source.shape), dtype_name(source.dtype),
                        (Mesh.of(source.device_mesh), Mesh.of(target.device_mesh)),
                        (layout_of(source._spec), layout_of(target._spec)))


def spec_of(questions: Sequence[Question]) -> dict[str, Any]:
    """A spec of distinct questions, `q0`, `q1`, ..., every mesh a universe of its own."""
    meshes = list(dict.fromkeys(mesh for question in questions for mesh in question.meshes))
    rows = []
    for index, question in enumerate(questions):
        ends = [meshes.index(mesh) for mesh in question.meshes]
        row: dict[str, Any] = {"id": f"q{index}",
                               "tensor": {"shape": list(question.shape), "dtype": question.dtype}}
        row.update({"mesh": f"mesh{ends[0]}"} if ends[0] == ends[1] else
                   {"src_mesh": f"mesh{ends[0]}", "dst_mesh": f"mesh{ends[1]}"})
        for end, mesh, layout in zip(("src", "dst"), question.meshes, question.layouts):
            row[end] = list(layout.placements)
            if layout.order:
                row[end + "_order"] = [
                    {"tensor_dim": dim, "mesh_dims": [mesh.names[d] for d in dims]}
                    for dim, dims in layout.order]
        rows.append(row)
    return {"schema": "meshplan/spec/1", "topology": ONE_STEP,
            "meshes": [{"name": f"mesh{index}", "world": len(mesh.ranks),
                        "ranks": list(mesh.ranks),
                        "dims": [{"name": n, "size": s} for n, s in zip(mesh.names, mesh.shape)]}
                       for index, mesh in enumerate(meshes)],
            "redistributions": rows}


class Prepared:
    """The routes of this rank for a list of questions, and how much each stages."""

    def __init__(self, routes: list[Optional[Route]], staging: list[int]) -> None:
        self.routes, self.staging = routes, staging  # staging: the most of any rank, in bytes

    def buckets(self, limit: int) -> Iterator[list[tuple[int, Optional[Route], tuple[int, int]]]]:
        """(tensor, route, (slice, slices)) that go in one round each, the same on every rank."""
        bucket: list[tuple[int, Optional[Route], tuple[int, int]]] = []
        filled = 0
        for index, (route, staged) in enumerate(zip(self.routes, self.staging)):
            slices = max(1, -(-staged // max(limit, 1)))
            for piece in range(slices):
                need = -(-staged // slices)
                if bucket and (filled + need > limit or bucket[-1][0] == index):
                    yield bucket
                    bucket, filled = [], 0
                bucket.append((index, route, (piece, slices)))
                filled += need
        if bucket:
            yield bucket


_PREPARED: dict[str, Prepared] = {}  # by what was asked, and the plan's digest
_groups = Groups()


def _prepare(questions: list[Question], plan: Optional[PlanLike],
             device: torch.device) -> Prepared:
    distinct = list(dict.fromkeys(questions))
    order = [distinct.index(question) for question in questions]
    document = None if plan is None else plan_document(plan)
    text = json.dumps([spec_of(distinct), order, document and document.get("digest")])
    if text not in _PREPARED:
        _PREPARED[text] = _prepare_anew(distinct, order, document, text, device)
    return _PREPARED[text]


def _prepare_anew(distinct: list[Question], order: list[int],
                  document: Optional[Mapping[str, Any]], text: str,
                  device: torch.device) -> Prepared:
    everyone = tuple(sorted({r for q in distinct for mesh in q.meshes for r in mesh.ranks}))
    if document is None:
        document = json.loads(plan_of_spec(spec_of(distinct)))
        ids = [f"q{index}" for index in range(len(distinct))]
    else:
        ids = [_id_in(document, question) for question in distinct]
    rank = dist.get_rank()
    routes: list[Optional[Route]] = [None] * len(distinct)
    if rank in everyone:
        rows = {row["id"]: row for row in transfers(document, None, rank)["redistributions"]}
        entries = whole_entries(document)
        for index, name in enumerate(ids):
            listed = rows[rows[name].get("same_as", name)]
            together: list[tuple[int, ...]] = [() for _ in entries[name]["steps"]]
            routes[index] = route_of(listed, entries[name], rank, together)
    staging = _agreed([staged_bytes(route) for route in routes], everyone, text, device)
    return Prepared([routes[i] for i in order], [staging[i] for i in order])


def _id_in(document: Mapping[str, Any], question: Question) -> str:
    """The entry of a plan that answers the question."""
    meshes = PlanMeshes(document)
    for name, entry in whole_entries(document).items():
        ends = [entry.get("src_mesh", entry.get("mesh")), entry.get("dst_mesh", entry.get("mesh"))]
        if not entry["steps"] or any(meshes.copies(end)[0] != mesh.ranks or
                                     meshes.shape(end) != mesh.shape
                                     for end, mesh in zip(ends, question.meshes)):
            continue
        names = meshes.dim_names(ends[0])
        order = tuple((turned["tensor_dim"], tuple(names.index(d) for d in turned["mesh_dims"]))
                      for turned in entry["src_order"])
        layouts = (Layout(tuple(entry["src"]), order), layout_of_text(entry["steps"][-1]["state"]))
        tensor = entry["tensor"]
        if layouts == question.layouts and tensor["dtype"] == question.dtype and (
                tuple(tensor["shape"]) == question.shape):
            return name
    source, target = question.layouts
    raise ValueError(f"the plan has no {question.dtype}{list(question.shape)} {source} -> {target} "
                     f"from ranks {question.meshes[0].ranks[:8]} to {question.meshes[1].ranks[:8]}")


def _agreed(staging: list[int], everyone: tuple[int, ...], text: str,
            device: torch.device) -> list[int]:
    """The most that any rank stages, of each question; RuntimeError where ranks ask differently."""
    if len(everyone) < 2 or dist.get_rank() not in everyone:
        return staging
    _groups.prepare(everyone)
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
    agreed = torch.tensor([digest, -digest, len(staging), -len(staging)], device=device)
    dist.all_reduce(agreed, dist.ReduceOp.MAX, group=_groups[everyone])
    if agreed[0] != -agreed[1] or agreed[2] != -agreed[3]:
        raise RuntimeError("reshard: the ranks do not ask for the same tensors in the same order")
    values = torch.tensor(staging, device=device)
    dist.all_reduce(values, dist.ReduceOp.MAX, group=_groups[everyone])
    return [int(value) for value in values.tolist()]


def staged_bytes(route: Optional[Route]) -> int:
    """What a tensor's packed messages take at a time, sent and received, alignment included."""
    most = 0
    for step, phase in stages_of(route):
        element = wire_dtype(route, step).itemsize  # type: ignore[arg-type]
        parts = [part for message in (*phase.sends, *phase.receives) for _, part in message.parts]
        most = max(most, sum(aligned(part.count * element) for part in parts))
    return most


def stages_of(route: Optional[Route]) -> list[tuple[StepRoute, Phase]]:
    return [] if route is None else [(s, phase) for s in route.steps for phase in s.phases]


def wire_dtype(route: Route, step: StepRoute) -> torch.dtype:
    return TORCH_DTYPES[step.wide or route.dtype]


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


# ---- one round

class Member:
    """A tensor, or a slice of one, on its way through a round."""

    def __init__(self, name: str, source: DTensor, target: DTensor, route: Route,
                 piece: tuple[int, int]) -> None:
        self.name, self.route, self.piece, self.target = name, route, piece, target
        self.stages = stages_of(route)
        self.held = source._local_tensor.contiguous().view(-1)
        self.step: Optional[StepRoute] = None
        self.fetched = self.after = self.held

    def enter(self, index: int) -> Phase:
        """Buffers for the stage; the phase."""
        step, phase = self.stages[index]
        if step is not self.step:
            if self.step is not None:
                self.leave()
            self.step, dtype = step, wire_dtype(self.route, step)
            self.held = self.held.to(dtype)
            self.fetched = self.held.new_empty(step.fetched)
            self.after = self._target(step)
        if phase.fills:
            self.after.fill_(identity(step.reduce_op, self.after.dtype))
        return phase

    def _target(self, step: StepRoute) -> torch.Tensor:
        """The target's own memory in the last step, where it can be."""
        count, local = held_after(step), self.target._local_tensor
        if step is self.route.steps[-1]:
            if local.numel() != count:
                raise ValueError(f"{self.name}: this rank holds {local.numel()} elements of the "
                                 f"target, the plan says {count}")
            if local.is_contiguous() and local.dtype == self.held.dtype:
                return local.view(-1)
            if self.piece[1] > 1:  # what earlier slices have brought stays
                return local.contiguous().view(-1)
        return self.held.new_empty(count)

    def leave(self) -> None:
        """Ends the step: what it made is what the next one holds."""
        assert self.step is not None
        out = self.after
        if self.step.divisor != 1:
            out = out.div_(self.step.divisor) if out.is_floating_point() else (
                out.floor_divide_(self.step.divisor))
        self.held = out.to(TORCH_DTYPES[self.route.dtype])

    def finish(self) -> None:
        local = self.target._local_tensor
        if self.step is not None:
            self.leave()
        if self.held.data_ptr() != local.data_ptr() and local.numel():
            local.copy_(self.held.view(local.shape))

    def buffers(self) -> dict[str, torch.Tensor]:
        return {HELD: self.held, FETCHED: self.fetched}

    def cut(self, part: Part) -> Optional[Part]:
        """The part's share in this slice, the same on both sides: along its longest dim."""
        piece, pieces = self.piece
        if pieces == 1:
            return part
        if not part.sizes:
            return part if piece == 0 else None
        dim = part.sizes.index(max(part.sizes))
        first = part.sizes[dim] * piece // pieces
        length = part.sizes[dim] * (piece + 1) // pieces - first
        if length == 0:
            return None
        sizes = part.sizes[:dim] + (length,) + part.sizes[dim + 1:]
        return Part(sizes, part.strides, part.offset + first * part.strides[dim])


def _run_bucket(bucket: list[tuple[tuple[str, DTensor, DTensor], Optional[Route],
                                   tuple[int, int]]], done: Resharded) -> None:
    members = [Member(*pair, route, piece) for pair, route, piece in bucket
               if route is not None]
    for member in members:
        steps = member.route.steps
        if member.piece[1] > 1 and (len(steps) > 1 or steps[0].reduce_op):
            raise ValueError(f"{member.name} is larger than max_staging_bytes and goes in several "
                             "steps or is summed, which slices cannot: raise the limit")
    for index in range(max((len(member.stages) for member in members), default=0)):
        at_work = [member for member in members if index < len(member.stages)]
        _run_stage([(member, member.enter(index)) for member in at_work], done)
    for member in members:
        member.finish()
    done.rounds += 1


def _run_stage(stage: list[tuple[Member, Phase]], done: Resharded) -> None:
    """One packed message a peer for all members; then everything goes to its place."""
    outgoing: dict[int, list[torch.Tensor]] = {}
    incoming: dict[int, int] = {}
    arrivals: list[tuple[Member, str, Part, int, int, int]] = []  # ..., contribution, peer, bytes
    for member, phase in stage:
        for message in phase.sends:
            for buffer, part in message.parts:
                share = member.cut(part)
                if share is not None:
                    outgoing.setdefault(message.peer, []).append(
                        part_in(member.buffers()[buffer], share))
        for message in phase.receives:
            for (buffer, part), contribution in zip(message.parts, message.contributions):
                share = member.cut(part)
                if share is not None:
                    at = incoming.get(message.peer, 0)
                    arrivals.append((member, buffer, share, contribution, message.peer, at))
                    incoming[message.peer] = at + aligned(share.count *
                                                          member.held.element_size())
    packed = _exchange(outgoing, incoming, stage[0][0].held.device, done)
    moves: dict[int, list[tuple[int, str, Part, torch.Tensor]]] = {}
    for member, phase in stage:
        for move in phase.moves if member.piece[0] == 0 else ():
            if move.source_buffer != PACKED:
                source = part_in(member.buffers()[move.source_buffer], move.source)
                moves.setdefault(id(member), []).append(
                    (move.contribution, move.target_buffer, move.target, source))
    for member, buffer, share, contribution, peer, at in arrivals:
        size = share.count * member.held.element_size()
        source = packed[peer].narrow(0, at, size).view(member.held.dtype).view(share.sizes)
        moves.setdefault(id(member), []).append((contribution, buffer, share, source))
    for member, _ in stage:
        _place(member, sorted(moves.get(id(member), []), key=lambda move: move[0]))


def _place(member: Member, moves: list[tuple[int, str, Part, torch.Tensor]]) -> None:
    assert member.step is not None
    combine = COMBINE[member.step.reduce_op or "sum"]
    for contribution, buffer, part, source in moves:
        target = part_in(member.fetched if buffer == FETCHED else member.after, part)
        if contribution == 0:
            target.copy_(source)
        else:
            combine(target, source, out=target)


def _exchange(outgoing: dict[int, list[torch.Tensor]], incoming: dict[int, int],
              device: torch.device, done: Resharded) -> dict[int, torch.Tensor]:
    """Sends every peer its parts in one message; what came, by peer."""
    packed = {peer: torch.empty(size, dtype=torch.uint8, device=device)
              for peer, size in sorted(incoming.items())}
    operations = [dist.P2POp(dist.irecv, buffer, peer) for peer, buffer in packed.items()]
    staged = sum(incoming.values())
    for peer in sorted(outgoing):
        sizes = [part.numel() * part.element_size() for part in outgoing[peer]]
        message = torch.empty(sum(map(aligned, sizes)), dtype=torch.uint8, device=device)
        at = 0
        for part, size in zip(outgoing[peer], sizes):
            message.narrow(0, at, size).view(part.dtype).view(part.shape).copy_(part)
            at += aligned(size)
        staged += at
        operations.append(dist.P2POp(dist.isend, message, peer))
    for work in dist.batch_isend_irecv(operations) if operations else ():
        work.wait()
    done.messages += len(packed)
    done.wire_bytes += sum(incoming.values())
    done.staging_bytes = max(done.staging_bytes, staged)
    return packed
