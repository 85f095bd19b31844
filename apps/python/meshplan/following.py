"""DTensor moves data as a plan says, for as long as a `with` lasts.

    with meshplan.follow("plan.json") as followed:
        train_step()
    print(followed)          # followed 64 of 76 redistributions ...

Every redistribution of a DTensor, asked for by the program or inserted by an operator, forward or
backward, eager or compiled, passes one function of PyTorch. While the `with` lasts another one
stands in its place: it looks the question up in the plan (ranks of the mesh, shape, dtype,
placements, shard orders: all must be equal) and executes the plan's steps. What a plan cannot
say, such as the partial of a mask, PyTorch does as ever, and the summary says so.

Put the `with` around the whole loop of a compiled program: entering and leaving it drop what
torch.compile has compiled, since that code is for one way to move data.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import torch
import torch.distributed as dist
import torch.distributed.tensor
import torch.distributed.tensor._redistribute as torch_redistribute
from torch.distributed._functional_collectives import _are_we_tracing
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from meshplan.execute import DTYPE_NAMES, Groups, connect, run_route
from meshplan.layouts import Layout, PlanMeshes, Question, question_of, step_ranks, whole_entries
from meshplan.library import MeshplanError, transfers, verify
from meshplan.recording import recorder, uncounted
from meshplan.routes import Route, StepRoute, route_of, tag_of
from meshplan.summary import Summary

# Of redistribute_local_tensor, in the versions of PyTorch that are known; a new one may mean
# something else by what it adds.
POSITIONAL = ("local_tensor", "current_spec", "target_spec")
KEYWORDS = {"async_op", "is_backward", "use_graph_based_transform", "is_explicit"}

PlanLike = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class NotInPlan(RuntimeError):
    """A redistribution that the plan does not have, under strict=True."""


class LeftToTorch(Exception):
    """A redistribution that no plan can say; the message is why."""


def follow(plan: PlanLike, strict: bool = True) -> "Follower":
    """A context manager in which DTensor moves data as `plan` says.

    `plan` is a path of a plan file, its text, or a dict read from one. Every rank of the world
    enters and leaves at the same place of the program. With `strict` a redistribution that the plan
    does not have is a NotInPlan, and so is a plan for ranks that this world lacks; without, and in
    a recording, of which the next plan is made, PyTorch does it, and the summary lists it. The
    value of the `with` prints as the summary.
    """
    return Follower(plan_document(plan), strict)


def plan_document(plan: PlanLike) -> Mapping[str, Any]:
    """A plan as a dict, from a path, a text or a dict. ValueError for what is none, or is wrong:
    here, on every rank, rather than within a step on some of them."""
    if isinstance(plan, Mapping):
        if plan.get("digest") not in _VERIFIED:
            _verify("the dict", json.dumps(plan))
            _VERIFIED.add(plan["digest"])
        return plan
    if isinstance(plan, str) and plan.lstrip().startswith("{"):
        return _document("the text", plan)
    if not plan or not isinstance(plan, (str, os.PathLike)):
        shown = repr(plan) if len(repr(plan)) < 40 else f"a {type(plan).__name__}"
        raise ValueError(f"{shown} is not a plan: give a plan file's path, its text, or a dict")
    with open(plan, encoding="utf-8") as file:
        return _document(os.fspath(plan), file.read())


_VERIFIED: set[str] = set()  # digests of dicts; one that was changed fails when it is first asked


@functools.lru_cache(maxsize=8)
def _document(name: str, text: str) -> Mapping[str, Any]:
    _verify(name, text)
    return json.loads(text)


def _verify(name: str, text: str) -> None:
    try:
        verify(text)
    except (MeshplanError, ValueError) as error:
        raise ValueError(f"{name} is not a plan to follow: {str(error).splitlines()[0]}") from error


class Follower:
    """A plan at work. `summary` counts; `str()` is its text."""

    def __init__(self, document: Mapping[str, Any], strict: bool) -> None:
        self.document, self.strict, self.summary = document, strict, Summary(document)
        self.meshes, self.groups = PlanMeshes(document), Groups()
        self._entries = whole_entries(document)
        self._by_question: dict[Question, list[Mapping[str, Any]]] = {}
        for entry in self._entries.values():
            question = question_of(entry, self.meshes)
            if question is not None:
                self._by_question.setdefault(question.plain(), []).append(entry)
        self._matched: dict[Any, Union[Followed, Exception]] = {}
        self._restore: Optional[contextlib.ExitStack] = None

    def __str__(self) -> str:
        return str(self.summary)

    def __enter__(self) -> "Follower":
        global _running
        if _running is not None:
            raise RuntimeError("a plan is followed already: leave that `with` first")
        self._check_world()
        with uncounted():
            connect()
            self._make_groups()
        with contextlib.ExitStack() as stack:
            stack.callback(_set_running, None)
            _running = self
            stack.enter_context(_own_compilations(self.document.get("digest", "")))
            stack.enter_context(_replaced(self._redistribute))
            self._restore = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._restore is None:
            raise RuntimeError("this `with` was not entered")
        self._restore.close()

    def _check_world(self) -> None:
        if not dist.is_initialized():
            raise RuntimeError("follow() needs torch.distributed.init_process_group first")
        missing = sorted(self.meshes.ranks() - set(range(dist.get_world_size())))
        if missing and self._strict_now():
            raise NotInPlan(f"the plan is for ranks up to {missing[-1]}, and this world has "
                            f"{dist.get_world_size()}: plan what this world asks for, or follow "
                            "with strict=False")
        self.summary.world_missing = len(missing)

    def _strict_now(self) -> bool:
        return self.strict and recorder() is None

    def _make_groups(self) -> None:
        """The communicators of all collectives that this rank has a part in, in the plan's
        order."""
        rank, wanted = dist.get_rank(), []
        if self.summary.world_missing:
            return  # no mesh of this world is the plan's whole one; groups are made when asked for
        for entry in self._entries.values():
            for step in entry["steps"]:
                if step["op"] in ("all_gather", "reduce_scatter", "all_reduce"):
                    ranks = step_ranks(entry, step, self.meshes)
                    wanted += [members for members in ranks if rank in members]
        for members in dict.fromkeys(wanted):
            self.groups.prepare(members)

    # ---- one redistribution

    def _redistribute(self, original: Callable[..., torch.Tensor], local_tensor: torch.Tensor,
                      current_spec: Any, target_spec: Any, **keywords: Any) -> torch.Tensor:
        if not _has_part(current_spec.mesh) or _same(current_spec, target_spec):
            return original(local_tensor, current_spec, target_spec, **keywords)
        found = self._match(current_spec, target_spec)
        if isinstance(found, NotInPlan) and self._strict_now():
            raise found
        tracing = _are_we_tracing()
        if isinstance(found, Exception):
            self.summary.left(str(found), tracing)
            return original(local_tensor, current_spec, target_spec, **keywords)
        if tracing:
            return torch.ops.meshplan.redistribute(local_tensor, found.key)
        self.summary.asked_async += bool(keywords.get("async_op"))
        return found.run(local_tensor)

    def _match(self, current: Any, target: Any) -> Union["Followed", Exception]:
        try:
            key = (current, target)
            found = self._matched.get(key)
        except TypeError:  # sizes that torch.compile leaves open have no hash
            return NotInPlan(f"sizes that depend on data: {current} -> {target}; compile with "
                             "dynamic=False")
        if found is None:
            with _real_tensors():
                try:
                    found = self._find(current, target)
                except (LeftToTorch, NotInPlan) as reason:
                    found = reason
            self._matched[key] = found
        return found

    def _find(self, current: Any, target: Any) -> "Followed":
        """The plan's answer to a request. NotInPlan where it has none, LeftToTorch where no plan
        says it."""
        ranks, power = ranks_of(current.mesh), norm_of(current, target)
        question = Question(_shape_of(current), dtype_name(current.tensor_meta.dtype),
                            tuple(current.mesh.shape), layout_of(current, norms=True),
                            layout_of(target, norms=True))
        entries = self._by_question.get(question.plain(), [])
        entry = next((e for e in entries if ranks in self.meshes.copy_of(e["mesh"])), None)
        if entry is None and 0 in question.shape:
            raise LeftToTorch(f"a tensor without elements: {list(question.shape)}")
        if entry is None:
            raise NotInPlan(f"not in the plan: {question}, on mesh {mesh_text(current.mesh)}"
                            + self._nearest(question, entries))
        # All ranks of the mesh ask this, whatever the entry's id in the plan of each.
        tag = tag_of(f"{ranks} {question.plain()}")
        return self._followed(entry, ranks, power, target, tag)

    def _nearest(self, question: Question, entries: list[Mapping[str, Any]]) -> str:
        if entries:
            return f"; '{entries[0]['id']}' asks this on other ranks"
        moved = lambda q: (q.source, q.target, q.mesh_shape)  # noqa: E731
        like = [e for q, found in self._by_question.items() for e in found
                if moved(q) == moved(question.plain())]
        if not like:
            return ""
        tensor = like[0]["tensor"]
        return f"; '{like[0]['id']}' asks it for {tensor['dtype']}{tensor['shape']}"

    def _followed(self, entry: Mapping[str, Any], mesh: tuple[int, ...],
                  power: Optional[float], target: Any, tag: int) -> "Followed":
        rank = dist.get_rank()
        listed = transfers(self.document, entry["id"], rank)["redistributions"][0]
        together = []
        for step in entry["steps"]:
            ranks = step_ranks(entry, step, self.meshes)
            together.append(next((members for members in ranks if rank in members), ()))
        route = route_of(listed, entry, rank, together, tag)
        for step in route.steps:
            if step.op in ("all_gather", "reduce_scatter", "all_reduce"):
                self.groups.prepare(step.ranks)
        key = f"{self.document.get('digest', '')}/{mesh}/{entry['id']}/{rank}/{power}"
        _FOLLOWED[key] = Followed(self, key, route, local_shape(route, target), power)
        return _FOLLOWED[key]


class Followed:
    """A redistribution that a plan has, for this rank. `power`: p where it sums parts of a p-norm,
    which are its plain sum between x**p and x**(1/p)."""

    def __init__(self, follower: Follower, key: str, route: Route, shape: tuple[int, ...],
                 power: Optional[float]) -> None:
        self.follower, self.key, self.route, self.shape = follower, key, route, shape
        self.power = power

    def run(self, local: torch.Tensor) -> torch.Tensor:
        summary = self.follower.summary
        summary.begin(self.route)
        clock: Callable[[StepRoute, float], None] = summary.step
        held = local if self.power is None else local ** self.power
        out = run_route(self.route, held, self.shape, self.follower.groups, clock)
        return out if self.power is None else out ** (1.0 / self.power)


_running: Optional[Follower] = None
_FOLLOWED: dict[str, Followed] = {}  # by key, which compiled code has; of the last follower


def _set_running(value: Optional[Follower]) -> None:
    global _running
    _running = value


# Compiled code has a redistribution as this one opaque operator, whatever it does inside: parts of
# it, seen by themselves, would be moved or dropped on some ranks and not on others.
@torch.library.custom_op("meshplan::redistribute", mutates_args=())
def _operator(local: torch.Tensor, key: str) -> torch.Tensor:
    return _FOLLOWED[key].run(local)


@_operator.register_fake
def _(local: torch.Tensor, key: str) -> torch.Tensor:
    return local.new_empty(_FOLLOWED[key].shape)


torch.fx.node.has_side_effect(torch.ops.meshplan.redistribute.default)


# ---- requests in a plan's words

def norm_of(current: Any, target: Any) -> Optional[float]:
    """p where the redistribution sums parts of a p-norm; None where it sums none. LeftToTorch where
    they are mixed with other sums, or are made."""
    ends = list(zip(current.placements, target.placements))
    if any(_is_norm(there) and there != here for here, there in ends):
        raise LeftToTorch("_NormPartial is more than its reduction where it is made")
    powers = {here.norm_type for here, there in ends if _is_norm(here) and here != there}
    if not powers:
        return None
    if len(powers) > 1 or any(p.is_partial() and not _is_norm(p) for p in current.placements):
        raise LeftToTorch("_NormPartial is more than its reduction beside another one")
    return powers.pop()


def _is_norm(placement: Any) -> bool:
    return type(placement).__name__ == "_NormPartial" and placement.reduce_op == "sum"


def placement_text(placement: Any, norms: bool = False) -> str:
    """`R`, `S(1)`, `P(sum)`. LeftToTorch for what is none of these, such as a mask's partial.
    `norms`: a norm's partial is `P(sum)`, which whoever asks knows to be between powers."""
    if placement.is_replicate():
        return "R"
    if placement.is_partial():
        if norms and _is_norm(placement):
            return "P(sum)"
        if type(placement) is not torch.distributed.tensor.Partial:
            raise LeftToTorch(f"{type(placement).__name__} is more than its reduction")
        return f"P({placement.reduce_op})"
    if hasattr(placement, "dim"):  # a strided shard says its order by shard_order
        return f"S({placement.dim})"
    raise LeftToTorch(f"placement {placement}")


def layout_of(spec: Any, norms: bool = False) -> Layout:
    """Placements and shard orders of a DTensorSpec, strided shards decoded; `norms` as for
    placement_text."""
    texts = tuple(placement_text(p, norms) for p in spec.placements)
    orders = getattr(spec, "shard_order", None)
    if any(type(p).__name__ == "_StridedShard" for p in spec.placements):
        decode = getattr(type(spec), "_maybe_convert_StridedShard_to_shard_order", None)
        orders = None if decode is None else decode(spec.placements, spec.mesh)
        if orders is None:
            raise LeftToTorch(f"strided shards {spec.placements} that no shard order says")
    turned = [(int(o.tensor_dim), tuple(o.mesh_dims)) for o in orders or ()]
    return Layout(texts, tuple((d, dims) for d, dims in turned if list(dims) != sorted(dims)))


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in DTYPE_NAMES:
        raise LeftToTorch(f"dtype {dtype}")
    return DTYPE_NAMES[dtype]


def _shape_of(spec: Any) -> tuple[int, ...]:
    if not all(type(size) is int for size in spec.shape):
        raise NotInPlan(f"sizes that depend on data: {spec.shape}; compile with dynamic=False")
    return tuple(spec.shape)


def ranks_of(mesh: Any) -> tuple[int, ...]:
    """Row-major global ranks of a DeviceMesh, also where tensors are fake."""
    with _real_tensors():
        return tuple(int(rank) for rank in mesh.mesh.clone().flatten().tolist())


def mesh_text(mesh: Any) -> str:
    names = mesh.mesh_dim_names or [f"dim_{i}" for i in range(mesh.ndim)]
    ranks = ranks_of(mesh)
    shown = " ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")
    return " x ".join(f"{n} {s}" for n, s in zip(names, mesh.shape)) + f" of ranks {shown}"


def _has_part(mesh: Any) -> bool:
    return mesh.get_coordinate() is not None


def _same(current: Any, target: Any) -> bool:
    return current.placements == target.placements and (
        getattr(current, "shard_order", None) == getattr(target, "shard_order", None))


@contextlib.contextmanager
def _real_tensors() -> Iterator[None]:
    """A mesh's ranks are real also while a program is traced with fake tensors."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    from torch.utils._python_dispatch import _disable_current_modes
    with _disable_current_modes(), unset_fake_temporarily(), disable_proxy_modes_tracing():
        yield


def local_shape(route: Route, target: Any) -> tuple[int, ...]:
    """Of this rank's shard after the last step."""
    if route.steps and route.steps[-1].after is not None:
        return route.steps[-1].after
    shape, _ = compute_local_shape_and_global_offset(target.shape, target.mesh, target.placements)
    if not route.steps or 0 in shape:
        return tuple(shape)
    cut = {p.dim for p in target.placements if hasattr(p, "dim")}  # PyTorch's own is another
    return tuple(0 if dim in cut else size for dim, size in enumerate(shape))


# ---- PyTorch's function replaced, and put back

def check_signature(function: Callable[..., Any]) -> None:
    """RuntimeError, naming PyTorch's version, where the function is not one that is known."""
    parameters = list(inspect.signature(function).parameters)
    unknown = [name for name in parameters[3:] if name not in KEYWORDS]
    if tuple(parameters[:3]) != POSITIONAL or unknown:
        raise RuntimeError(
            f"PyTorch {torch.__version__}: redistribute_local_tensor({', '.join(parameters)}) is "
            f"not what meshplan.follow knows{': ' + ', '.join(unknown) if unknown else ''}; "
            "a newer meshplan may")


@contextlib.contextmanager
def _replaced(new: Callable[..., torch.Tensor]) -> Iterator[None]:
    """While it lasts every module that holds redistribute_local_tensor has another function under
    that name, also modules that are imported meanwhile. In a recording they have its taps, which
    count what is asked for and then call what lies beneath: the other function, meanwhile."""
    running = recorder()
    original = (torch_redistribute.redistribute_local_tensor if running is None
                else running.beneath)
    check_signature(original)

    def redistribute_local_tensor(local_tensor: torch.Tensor, current_spec: Any, target_spec: Any,
                                  **keywords: Any) -> torch.Tensor:
        return new(original, local_tensor, current_spec, target_spec, **keywords)

    def exchange(old: Any, new: Any) -> None:
        if running is None:
            _exchange_everywhere(old, new)
        else:
            running.beneath = new

    exchange(original, redistribute_local_tensor)
    try:
        yield
    finally:
        exchange(redistribute_local_tensor, original)


def _exchange_everywhere(old: Any, new: Any) -> None:
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if isinstance(space, dict):
            for name in [n for n, value in space.items() if value is old]:
                setattr(module, name, new)


@contextlib.contextmanager
def _own_compilations(digest: str) -> Iterator[None]:
    """Code compiled inside is for this plan, outside for none: neither runs in the other's place,
    from memory or from a cache on disk."""
    config = torch.compiler.config
    before = getattr(config, "cache_key_tag", None)
    _forget_compiled()
    if before is not None:
        config.cache_key_tag = f"{before}meshplan {digest}"
    try:
        yield
    finally:
        if before is not None:
            config.cache_key_tag = before
        _forget_compiled()


def _forget_compiled() -> None:
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
