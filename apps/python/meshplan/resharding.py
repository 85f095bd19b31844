"""Many tensors from their layouts to other ones, on any meshes, as one bundle.

    meshplan.reshard(trained, serving)        # dicts of DTensors with the same keys

All tensors move by one schedule, which libmeshplan plans and lists: rounds with one packed message
from a rank to a peer, as large as `max_staging_bytes` allows, in waves whose rounds are in flight
together; a tensor that is larger goes in pieces. Tensors that ask the same question are planned
once, and a call that was made before is not planned again.
"""
from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from typing import Any, Mapping, Optional, Sequence, Union

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor

from meshplan.arrivals import Arrivals
from meshplan.capture.mesh_layout import root_of
from meshplan.execute import DTYPE_NAMES, Groups, waited
from meshplan.following import (LeftToTorch, PlanLike, dtype_name, layout_of, mesh_text,
                                plan_document, ranks_of)
from meshplan.layouts import Layout, PlanMeshes, layout_of_text, whole_entries
from meshplan.library import bundle_transfers
from meshplan.library import plan as plan_of_spec
from meshplan.memory import check_apart, held_of
from meshplan.recording import recorder, uncounted
from meshplan.rounds import BundleRoute, Buffer, bundle_named, bundle_route
from meshplan.routes import tag_of
from meshplan.run_rounds import Run
from meshplan.timing import Span

Tensors = Union[DTensor, Sequence[DTensor], Mapping[str, DTensor]]
STAGING_BYTES = 2 << 30  # default limit, as a spec's bundles have it
PLANNED = "reshard"  # the bundle of a plan that is made on the spot


@dataclasses.dataclass
class Resharded:
    """What a reshard did on this rank."""

    tensors: int = 0
    rounds: int = 0
    messages: int = 0       # received
    wire_bytes: int = 0     # received in messages, packed
    collectives: int = 0    # beside messages
    # The most that lay in packed messages, sent and received, and in boxes between two steps.
    staging_bytes: int = 0
    span: Optional[Span] = None  # none: nothing ran

    @property
    def seconds(self) -> float:
        """Of its work on the device; waits for its end."""
        return self.span.seconds if self.span else 0.0

    def __str__(self) -> str:
        def several(number: int, what: str) -> str:
            return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"

        beside = f" beside {several(self.collectives, 'collective')}" if self.collectives else ""
        return (f"resharded {several(self.tensors, 'tensor')} in {several(self.rounds, 'round')}: "
                f"{self.seconds * 1e3:,.3f} ms, {several(self.wire_bytes, 'byte')} received in "
                f"{several(self.messages, 'message')}{beside}, at most "
                f"{several(self.staging_bytes, 'byte')} staged")


def reshard(before: Tensors, after: Tensors, plan: Optional[PlanLike] = None,
            max_staging_bytes: Optional[int] = None, topology: Optional[str] = None,
            bundle: Optional[str] = None) -> Resharded:
    """Fills the DTensors of `after` with the data of those of `before`, which stay as they are.

    Both are a DTensor, a list, or a dict with the same keys; each pair has one shape and dtype, its
    meshes may be any, also on other ranks. Every rank of any of the meshes calls this with the same
    pairs in the same order; a rank outside of a tensor's mesh has the DTensor without data. Ranks
    that ask differently get a RuntimeError where they have not asked before; later they wait for
    each other until PyTorch's timeout, as in collectives that differ, unless they are told to
    compare each time: by TORCH_DISTRIBUTED_DEBUG=DETAIL, as PyTorch compares its collectives.
    A part of a mesh, `mesh["tp"]`, is other ranks in each process, so that two ends on different
    parts, or on a part and its whole mesh, are no one question, and a RuntimeError each time: give
    such a tensor on the whole mesh, with Replicate() on the other dims.

    Without a `plan` the pairs are planned as one bundle when they are asked for first:
    `max_staging_bytes` (default 2 GiB; 0: no limit) bounds what a rank holds in packed messages and
    between two steps, beside the tensors, and `topology` is the name of a preset. A `plan` (a path,
    a text or a dict) has a bundle that moves these tensors and no others, by its own limit;
    `bundle` names it where there are several. Keys that are ids of its members, or end them
    ("wq" of "sync.wq"), choose among those that ask the same.
    """
    pairs = _pairs(before, after)
    if plan is not None and (max_staging_bytes, topology) != (None, None):
        raise ValueError("max_staging_bytes and topology are the plan's: leave them out")
    if plan is None and bundle is not None:
        raise ValueError(f"bundle {bundle!r} is one of a plan, which is not given: give it as "
                         "plan=")
    limit = STAGING_BYTES if max_staging_bytes is None else max_staging_bytes
    if _only_recorded(pairs, limit) or not pairs:
        return Resharded(len(pairs))
    locals_of = [[waited(t._local_tensor) for t in side] for side in zip(*(p[1:] for p in pairs))]
    _check_memory(pairs, locals_of)
    device = _device_of(pairs)
    with uncounted():
        prepared = _prepare(pairs, plan, bundle, {"max_staging_bytes": limit, "topology": topology},
                            device)
    done, span = Resharded(len(pairs)), Span(device)
    if prepared is not None:
        _check_sizes(prepared, pairs)
        with torch.no_grad(), uncounted():
            counted = Run(prepared, locals_of[0], locals_of[1], _groups, device).all()
        done.rounds, done.messages = prepared.rounds, counted.messages
        done.wire_bytes, done.collectives = counted.wire_bytes, counted.collectives
        done.staging_bytes = counted.staging_bytes
    done.span = span.stop()
    return done


def _pairs(before: Tensors, after: Tensors) -> list[tuple[str, DTensor, DTensor]]:
    if isinstance(before, DTensor) and isinstance(after, DTensor):
        before, after = [before], [after]
    for tensors in (before, after):
        if not isinstance(tensors, (Sequence, Mapping)):
            raise ValueError("before and after are DTensors, lists or dicts of them, not a "
                             f"{type(tensors).__name__}")
    if isinstance(before, Mapping) != isinstance(after, Mapping):
        raise ValueError("before and after are not both dicts or both lists")
    if isinstance(before, Mapping):
        assert isinstance(after, Mapping)
        if set(before) != set(after):
            odd = sorted(set(before) ^ set(after))
            raise ValueError(f"only in one of before and after: {', '.join(map(str, odd[:8]))}")
        pairs = [(str(key), before[key], after[key]) for key in before]
    else:
        if len(before) != len(after):
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
    if source.dtype not in DTYPE_NAMES:
        raise ValueError(f"{name}: {source.dtype}, which no plan has")
    devices = [str(tensor._local_tensor.device.type) for tensor in (source, target)]
    if "meta" in devices:
        raise ValueError(f"{name}: on {devices[0]} before and {devices[1]} after: it has no data")


def _check_memory(pairs: list[tuple[str, DTensor, DTensor]],
                  locals_of: list[list[torch.Tensor]]) -> None:
    """Sources may share memory, as tied weights do; rounds fill targets while others are read."""
    check_apart([held_of(f"{name} {end}", tensor, end == "after")
                 for end, side in zip(("before", "after"), locals_of)
                 for (name, _, _), tensor in zip(pairs, side) if tensor.numel()])


def _device_of(pairs: list[tuple[str, DTensor, DTensor]]) -> torch.device:
    """Where messages are made. A rank outside of a mesh holds what no backend of its own may take:
    an operator's result there is an empty tensor on the CPU."""
    held = (t._local_tensor for _, *ends in pairs for t in ends)
    kind = pairs[0][2].device_mesh.device_type
    return next((t.device for t in held if t.numel()), torch.device(kind))


def _only_recorded(pairs: list[tuple[str, DTensor, DTensor]], max_staging_bytes: int) -> bool:
    """Tells a recording at work; True where tensors have no data, so that this is all."""
    running = recorder()
    if running is not None:
        running.reshard({name: source for name, source, _ in pairs},
                        {name: target for name, _, target in pairs},
                        max_staging_bytes=(
                            max_staging_bytes if max_staging_bytes != STAGING_BYTES else None))
    return any(isinstance(source._local_tensor, FakeTensor) for _, source, _ in pairs)


# ---- questions, and plans that answer them

@dataclasses.dataclass(frozen=True)
class Mesh:
    """Row-major global ranks, shape and names of dims, which tell no two apart."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    names: tuple[str, ...] = dataclasses.field(compare=False)

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

    def __str__(self) -> str:
        ends = [f"{layout} on ranks {str(mesh.ranks[:8])[:-1]}{', ...)' if mesh.ranks[8:] else ')'}"
                for layout, mesh in zip(self.layouts, self.meshes)]
        return f"{self.dtype}{list(self.shape)} {' -> '.join(ends)}"

    def plain(self) -> "Question":
        """With R on mesh dims of one rank: equal ones move the same boxes."""
        source, target = (x.plain(mesh.shape) for x, mesh in zip(self.layouts, self.meshes))
        return dataclasses.replace(self, layouts=(source, target))

    @staticmethod
    def of(source: DTensor, target: DTensor) -> "Question":
        return Question(tuple(source.shape), dtype_name(source.dtype),
                        (Mesh.of(source.device_mesh), Mesh.of(target.device_mesh)),
                        (layout_of(source._spec), layout_of(target._spec)))


def _question(name: str, source: DTensor, target: DTensor) -> Question:
    try:
        return Question.of(source, target)
    except LeftToTorch as reason:
        raise ValueError(f"{name}: {reason}, so no plan moves it") from None


def spec_of(questions: Sequence[tuple[Question, int]], max_staging_bytes: int,
            topology: Optional[str]) -> dict[str, Any]:
    """A spec of distinct questions and how many tensors ask each: `q0`, `q1`, ..., one bundle;
    every mesh is a universe of its own."""
    meshes = list(dict.fromkeys(mesh for question, _ in questions for mesh in question.meshes))
    rows = []
    for index, (question, count) in enumerate(questions):
        ends = [meshes.index(mesh) for mesh in question.meshes]
        row: dict[str, Any] = {"id": f"q{index}", "count": count,
                               "tensor": {"shape": list(question.shape), "dtype": question.dtype}}
        row.update({"mesh": f"mesh{ends[0]}"} if ends[0] == ends[1] else
                   {"src_mesh": f"mesh{ends[0]}", "dst_mesh": f"mesh{ends[1]}"})
        for end, mesh, layout in zip(("src", "dst"), question.meshes, question.layouts):
            row[end] = list(layout.placements)
            if layout.order:
                names = meshes[meshes.index(mesh)].names
                row[end + "_order"] = [
                    {"tensor_dim": dim, "mesh_dims": [names[d] for d in dims]}
                    for dim, dims in layout.order]
        rows.append(row)
    spec = {"schema": "meshplan/spec/1",
            "meshes": [{"name": f"mesh{index}", "world": len(mesh.ranks),
                        "ranks": list(mesh.ranks),
                        "dims": [{"name": n, "size": s} for n, s in zip(mesh.names, mesh.shape)]}
                       for index, mesh in enumerate(meshes)],
            "redistributions": rows,
            "bundles": [{"id": PLANNED, "redistributions": ["*"],
                         "max_staging_bytes": max_staging_bytes}]}
    return spec if topology is None else {**spec, "topology": topology}


_PREPARED: dict[str, Optional[BundleRoute]] = {}  # by what was asked, and the plan's digest
_groups = Groups()
_arrivals = Arrivals()
_world: Optional[dist.ProcessGroup] = None  # the default group that both are of


def _forget_other_worlds() -> None:
    """Groups are gone with the world that they were made in; another one may have other ranks."""
    global _world, _groups, _arrivals
    default = dist.distributed_c10d._get_default_group()
    if default is not _world:
        _PREPARED.clear()
        _groups, _arrivals, _world = Groups(), Arrivals(), default


def _prepare(pairs: list[tuple[str, DTensor, DTensor]], plan: Optional[PlanLike],
             bundle: Optional[str], limits: dict[str, Any],
             device: torch.device) -> Optional[BundleRoute]:
    """The rank's route; None where it has no part in any of the pairs."""
    _forget_other_worlds()
    questions = [_question(*pair) for pair in pairs]
    document = None if plan is None else plan_document(plan)
    distinct = list(dict.fromkeys(questions))
    order = [distinct.index(question) for question in questions]
    asked = [spec_of([(q, order.count(i)) for i, q in enumerate(distinct)], **limits), order]
    if document is not None:
        asked += [[name for name, _, _ in pairs], bundle, document.get("digest")]
    text = json.dumps(asked)
    meshes = {mesh for question in distinct for mesh in question.meshes}
    everyone = tuple(sorted({rank for mesh in meshes for rank in mesh.ranks}))
    # Each time it would take as long as a small reshard, and on a GPU wait for it.
    if text not in _PREPARED or dist.get_debug_level() == dist.DebugLevel.DETAIL:
        _agree(text, pairs, everyone, device)
    if text not in _PREPARED:
        if document is None:
            document = json.loads(plan_of_spec(asked[0]))
            counts = [0] * len(distinct)
            numbers = {}
            for number, question in enumerate(order):
                numbers[f"q{question}", counts[question]] = number
                counts[question] += 1
            found = bundle_named(document, None)
        else:
            found = bundle_named(document, bundle)
            numbers = _members_of(document, found, [name for name, _, _ in pairs], questions)
        _PREPARED[text] = _route(document, found, numbers, everyone, tag_of(text))
    return _PREPARED[text]


def _route(document: Mapping[str, Any], bundle: Mapping[str, Any],
           numbers: dict[tuple[str, int], int],
           everyone: tuple[int, ...], tag: int) -> Optional[BundleRoute]:
    rank = dist.get_rank()
    if rank not in everyone:
        return None
    listed = bundle_transfers(document, bundle["id"], rank)
    route = bundle_route(document, bundle, listed, numbers, rank)
    route.everyone, route.tag = everyone, tag
    for ranks in route.groups:
        _groups.prepare(ranks)
    return route


def _members_of(document: Mapping[str, Any], bundle: Mapping[str, Any], names: list[str],
                questions: list[Question]) -> dict[tuple[str, int], int]:
    """(member, like tensor) -> number of the pair: every tensor of the bundle, each once."""
    meshes, entries = PlanMeshes(document), whole_entries(document)
    asked = {name: _question_of(entries[name], meshes).plain() for name in bundle["members"]}
    wanted = [question.plain() for question in questions]
    left = {name: list(range(entries[name]["count"])) for name in bundle["members"]}
    numbers: dict[tuple[str, int], int] = {}

    def ends_alike(member: str, name: str) -> bool:
        return member == name or member.endswith("." + name)

    # Those that a key names first, so that no other tensor takes their place.
    named = [(number, next((m for m in left if ends_alike(m, name) and
                            asked[m] == wanted[number]), None))
             for number, name in enumerate(names)]
    for number, member in sorted(named, key=lambda found: found[1] is None):
        if member is None or not left[member]:
            member = next((m for m, tensors in left.items()
                           if tensors and asked[m] == wanted[number]), None)
        if member is None:
            raise ValueError(f"the plan's bundle {bundle['id']!r} has no place for {names[number]}:"
                             f" {questions[number]}")
        numbers[member, left[member].pop(0)] = number
    missing = [f"{name} ({len(tensors)})" for name, tensors in left.items() if tensors]
    if missing:
        raise ValueError(f"the plan's bundle {bundle['id']!r} moves tensors that are not given: "
                         f"{', '.join(missing[:8])}{', ...' if missing[8:] else ''}")
    return numbers


def _question_of(entry: Mapping[str, Any], meshes: PlanMeshes) -> Question:
    ends = [entry.get("src_mesh", entry.get("mesh")), entry.get("dst_mesh", entry.get("mesh"))]
    names = meshes.dim_names(ends[0])
    order = tuple((turned["tensor_dim"], tuple(names.index(d) for d in turned["mesh_dims"]))
                  for turned in entry["src_order"])
    source = Layout(tuple(entry["src"]), order)
    target = layout_of_text(entry["steps"][-1]["state"]) if entry["steps"] else source
    both = [Mesh(meshes.copies(end)[0], meshes.shape(end), ()) for end in ends]
    return Question(tuple(entry["tensor"]["shape"]), entry["tensor"]["dtype"], (both[0], both[1]),
                    (source, target))


def _check_sizes(route: BundleRoute, pairs: list[tuple[str, DTensor, DTensor]]) -> None:
    for number, (name, source, target) in enumerate(pairs):
        last = route.last[number]
        for tensor, index in ((source, 0), (target, last)):
            planned = route.sizes.get(Buffer(number, index))
            if planned is not None and planned != tuple(tensor._local_tensor.shape):
                raise ValueError(f"{name}: this rank has {list(tensor._local_tensor.shape)}, the "
                                 f"plan says {list(planned)}")


def _agree(text: str, pairs: list[tuple[str, DTensor, DTensor]], everyone: tuple[int, ...],
           device: torch.device) -> None:
    """RuntimeError where ranks ask differently, before any of them waits for another's message."""
    if len(everyone) < 2 or dist.get_rank() not in everyone:
        return
    differ = "reshard: the ranks do not ask for the same tensors in the same order"
    own_part = _on_own_part(pairs, everyone)
    if not _arrivals.enter(everyone, bool(own_part)):
        raise RuntimeError(differ + own_part)
    _groups.prepare(everyone)
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
    agreed = torch.tensor([digest, -digest], device=device)
    dist.all_reduce(agreed, dist.ReduceOp.MAX, group=_groups[everyone])
    _arrivals.leave()
    if agreed[0] != -agreed[1]:
        raise RuntimeError(differ + own_part)


def _on_own_part(pairs: list[tuple[str, DTensor, DTensor]], everyone: tuple[int, ...]) -> str:
    """Names a tensor on a part of a mesh, mesh["tp"], that is other ranks in other processes; "":
    there is none. What such a tensor is on the whole mesh only the program knows: its parts may
    hold the same or not, and from which of them to read is then not said."""
    for name, *ends in pairs:
        for end, tensor in zip(("before", "after"), ends):
            mesh = tensor.device_mesh
            whole = root_of(mesh)
            if set(everyone).intersection(ranks_of(whole)) <= set(ranks_of(mesh)):
                continue
            return (f": {name} {end} is on {mesh_text(mesh)} in this process and on other ranks of "
                    f"{mesh_text(whole)} in others; ask for it on that mesh with Replicate() on "
                    "the other dims (DTensor.from_local of its local tensor), where all parts hold "
                    "the same, or on a DeviceMesh of the ranks meant")
    return ""
