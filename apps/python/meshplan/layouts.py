"""What a plan's layouts are on real ranks: the ranks of its meshes, of the groups that its steps
run on, and the question that each redistribution answers. Needs the plan's document, no PyTorch.

    meshes = PlanMeshes(document)
    meshes.copies("tp")              # [(0, 1), (2, 3)]: row-major global ranks of every copy
    meshes.groups("mesh", ["dp"])    # [(0, 2), (1, 3)]: who differs on these dims only
"""
from __future__ import annotations

import functools
import itertools
import math
import re
from typing import Any, Mapping, NamedTuple, Optional

Ranks = tuple[int, ...]
Order = tuple[tuple[int, tuple[int, ...]], ...]  # (tensor dim, mesh dims from major to minor)


class Layout(NamedTuple):
    """Placements, one text a mesh dim, and the shard orders that are not the ascending ones."""

    placements: tuple[str, ...]
    order: Order

    def __str__(self) -> str:
        turned = dict(self.order)
        texts = []
        for dim, text in enumerate(self.placements):
            dims = turned.get(int(text[2:-1])) if text[0] == "S" else None
            texts.append(f"{text}[{dims.index(dim)}]" if dims else text)
        return "".join(texts)

    def plain(self, mesh_shape: tuple[int, ...]) -> "Layout":
        """With R on mesh dims of one rank, whatever is said of them there: the same boxes, as the
        states of a plan's steps have them."""
        texts = tuple("R" if size == 1 else text for size, text in zip(mesh_shape, self.placements))
        kept = ((d, tuple(m for m in dims if mesh_shape[m] > 1)) for d, dims in self.order)
        return Layout(texts, tuple((d, dims) for d, dims in kept if list(dims) != sorted(dims)))


class Question(NamedTuple):
    """What a redistribution asks, without the mesh: equal plain questions move the same boxes."""

    shape: tuple[int, ...]
    dtype: str
    mesh_shape: tuple[int, ...]
    source: Layout
    target: Layout

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} {self.source} -> {self.target}"

    def plain(self) -> "Question":
        ends = (layout.plain(self.mesh_shape) for layout in (self.source, self.target))
        return Question(self.shape, self.dtype, self.mesh_shape, *ends)


def layout_of_text(text: str) -> Layout:
    """Of a state's text: "S(0)[1]RS(0)[0]" is S(0) R S(0) with dim 2 before dim 0."""
    found = re.findall(r"(R|[SP]\(\w+\))(?:\[(\d+)\])?", text)
    positions: dict[int, list[tuple[int, int]]] = {}
    for dim, (placement, position) in enumerate(found):
        if placement[0] == "S" and position:
            positions.setdefault(int(placement[2:-1]), []).append((int(position), dim))
    orders = ((d, tuple(m for _, m in sorted(at))) for d, at in sorted(positions.items()))
    turned = tuple((d, dims) for d, dims in orders if list(dims) != sorted(dims))
    return Layout(tuple(placement for placement, _ in found), turned)


class PlanMeshes:
    """The meshes of a plan's document, on global ranks."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._meshes: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for universe in document.get("universes") or [document["mesh"]]:
            for mesh in universe["meshes"]:
                self._meshes[mesh["name"]] = (universe, mesh)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(dim["size"] for dim in self._meshes[name][1]["dims"])

    def dim_names(self, name: str) -> list[str]:
        return [dim["name"] for dim in self._meshes[name][1]["dims"]]

    def ranks(self) -> set[int]:
        """Every rank that the plan knows."""
        return {rank for universe, _ in self._meshes.values() for rank in _ranks_of(universe)}

    @functools.lru_cache(maxsize=None)
    def copies(self, name: str) -> list[Ranks]:
        """Row-major global ranks of every copy, by ascending first position."""
        universe, mesh = self._meshes[name]
        ranks, offsets = _ranks_of(universe), [0]
        for dim in mesh["dims"]:
            steps = _offsets(dim["layout"])
            offsets = [a + b for a in offsets for b in steps]
        found, taken = [], set()
        for base in range(len(ranks)):
            if base not in taken:
                taken.update(base + offset for offset in offsets)
                found.append(tuple(ranks[base + offset] for offset in offsets))
        return found

    @functools.lru_cache(maxsize=None)
    def copy_of(self, name: str) -> dict[Ranks, int]:
        return {ranks: index for index, ranks in enumerate(self.copies(name))}

    def groups(self, name: str, mesh_dims: list[str]) -> list[Ranks]:
        """The communicators over these dims of a mesh, of all copies; each ascending. A dim may be
        a part: "b:(2)4" is the factor 4 below the factor 2 of b."""
        shape, names = self.shape(name), self.dim_names(name)
        parts = []
        for text in mesh_dims:
            match = re.fullmatch(r"(.*):\((\d+)\)(\d+)", text)
            if match and match[1] in names:
                parts.append((names.index(match[1]), int(match[2]), int(match[3])))
            else:
                parts.append((names.index(text), 1, shape[names.index(text)]))
        found = []
        for ranks in self.copies(name):
            by_rest: dict[tuple[int, ...], list[int]] = {}
            for rank, place in zip(ranks, itertools.product(*(range(size) for size in shape))):
                rest = list(place)
                for dim, before, size in parts:
                    tail = shape[dim] // (before * size)
                    rest[dim] -= rest[dim] // tail % size * tail
                by_rest.setdefault(tuple(rest), []).append(rank)
            found += [tuple(sorted(members)) for members in by_rest.values()]
        return found


def _ranks_of(universe: Mapping[str, Any]) -> list[int]:
    return universe.get("ranks") or list(range(universe["world"]))


def _offsets(layout: str) -> list[int]:
    """What a layout's text yields: "(2,4):(8,1)" is 0 1 2 3 8 9 10 11."""
    sizes, strides = ([int(n) for n in re.findall(r"\d+", part)] for part in layout.split(":"))
    offsets = [0]
    for size, stride in zip(sizes, strides):
        offsets = [a + i * stride for a in offsets for i in range(size)]
    return offsets


def question_of(entry: Mapping[str, Any], meshes: PlanMeshes) -> Optional[Question]:
    """What an entry of a plan answers; None for one that goes from mesh to mesh."""
    if "mesh" not in entry:
        return None
    names = meshes.dim_names(entry["mesh"])
    order = tuple((turned["tensor_dim"], tuple(names.index(d) for d in turned["mesh_dims"]))
                  for turned in entry["src_order"])
    source = Layout(tuple(entry["src"]), order)
    target = layout_of_text(entry["steps"][-1]["state"]) if entry["steps"] else source
    tensor = entry["tensor"]
    return Question(tuple(tensor["shape"]), tensor["dtype"], meshes.shape(entry["mesh"]), source,
                    target)


def whole_entries(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The redistributions of a plan by id, each with its steps also where it repeats another."""
    found: dict[str, dict[str, Any]] = {}
    for entry in document["redistributions"]:
        first = found[entry["same_as"]] if "same_as" in entry else {}
        notes = {key for key in first if key.startswith("x-")}
        found[entry["id"]] = {**{k: v for k, v in first.items() if k not in notes}, **entry}
    return found


def step_ranks(entry: Mapping[str, Any], step: Mapping[str, Any],
               meshes: PlanMeshes) -> list[Ranks]:
    """Who works together in a step, ascending: of an exchange everyone of a mesh, or of both."""
    if step["op"] in ("slice", "to_partial"):
        return []
    if step["op"] != "exchange":
        return meshes.groups(step.get("mesh") or entry.get("mesh") or entry["src_mesh"],
                             step["mesh_dims"])
    if "mesh" in entry:
        return [tuple(sorted(ranks)) for ranks in meshes.copies(entry["mesh"])]
    ends = {*meshes.copies(entry["src_mesh"])[0], *meshes.copies(entry["dst_mesh"])[0]}
    return [tuple(sorted(ends))]


def element_count(box: list[list[int]]) -> int:
    return math.prod(end - first for first, end in box)
