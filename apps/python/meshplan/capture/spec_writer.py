"""What a recorder counted, as a spec."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any, Optional

import torch
import torch.distributed as dist

from meshplan.capture.mesh_layout import flattened_of, root_of
from meshplan.capture.placements import (
    asked_backward,
    normalised,
    partial_names,
    state_of,
    tensor_of,
)
from meshplan.capture.universes import Universes, universes_of
from meshplan.recorded_ids import ids_of
from meshplan.recorded_spec import NotCovered, kind_of

FIELDS = (
    "mesh",
    "src_mesh",
    "dst_mesh",
    "tensor",
    "src",
    "dst",
    "src_order",
    "dst_order",
    "direction",
    "count",
)


def roots_of(meshes):
    """The root of every mesh, each once, in order."""
    roots = []
    for mesh in meshes:
        if not any(root_of(mesh) is r for r in roots):
            roots.append(root_of(mesh))
    return roots


def spec_of(recorder, incomplete: Optional[str] = None) -> dict[str, Any]:
    """The spec of a recording. `incomplete`: the error that ended the program, if one did."""
    world = dist.get_world_size() if dist.is_initialized() else 1
    used = []
    for asked in (recorder, *recorder.bundles):
        for key in asked.counts:
            if not isinstance(key[0], str):
                used += [key[0].mesh, key[1].mesh]
        for _, source, target, _, _ in asked.reshards:
            used += [source.mesh, target.mesh]
    # Without DTensors the meshes that the program made say what its groups are.
    roots = roots_of(used) or roots_of(recorder.seen_meshes)
    universes = universes_of(roots, world)
    flat = [(ranks, [("world", len(ranks))]) for ranks, _ in universes]
    try:
        writer = SpecWriter(recorder, Universes(universes, world), last=universes == flat)
        return writer.write(roots, incomplete)
    except NotCovered:  # some mesh is no view of a root of several dims: start from flat worlds
        return SpecWriter(recorder, Universes(flat, world), last=True).write(roots, incomplete)


class SpecWriter:
    """Writes a recording over given universes of ranks. Where they are not the `last` ones to try,
    a mesh that has no place in them ends the writing with NotCovered."""

    def __init__(self, recorder, meshes: Universes, last: bool) -> None:
        self.recorder, self.meshes, self.last = recorder, meshes, last
        self.entries, self.not_covered = {}, {}
        self.bundle: Optional[int] = None  # index of the one that is written

    def write(self, roots, incomplete: Optional[str]) -> dict[str, Any]:
        self.declare_meshes(roots)
        for index, asked in enumerate((self.recorder, *self.recorder.bundles)):
            self.bundle = index - 1 if index else None
            self.add_all(asked)
        return self.document(incomplete)

    def add_all(self, asked) -> None:
        """What a recorder or a bundle counted."""
        for key, count in asked.counts.items():
            notes = dict(asked.first[key])
            try:
                if key[0] == "refused":
                    self.refuse(key[1], key[2], count, notes)
                elif key[0] == "collective":
                    self.add_collective(key, count, notes)
                else:
                    self.add_redistribution(key, count, notes)
            except NotCovered as reason:
                what = "redistribute" if not isinstance(key[0], str) else key[1]
                self.refuse(what, str(reason), count, notes)
        for label, source, target, count, notes in asked.reshards:
            try:
                self.add_reshard(label, source, target, count, notes)
            except NotCovered as reason:
                self.refuse(f"reshard {label}", str(reason), count, notes)

    def declare_meshes(self, roots) -> None:
        meshes = self.meshes
        for root in roots:
            meshes.name_on_its_ranks(root)
        # Views first: flattens are made of their dims.
        for mesh in sorted(self.recorder.seen_meshes, key=lambda m: -m.ndim):
            root = root_of(mesh)
            if mesh.ndim > 1 and any(root is r for r in roots) and root is not mesh:
                home = meshes.home(mesh)
                if home is not None and math.prod(mesh.shape) == len(home.ranks):
                    with contextlib.suppress(NotCovered):
                        meshes.name(mesh)
        for root in roots:
            for name, mesh in flattened_of(root).items():
                try:
                    meshes.declare_flatten(root, name, mesh)
                except NotCovered as reason:
                    self.refuse(f"flattened mesh {name}", str(reason), 1, {})

    def refuse(self, what: str, reason: str, count: int, notes) -> None:
        if not self.last and ("mesh" in reason or "ranks" in reason):
            raise NotCovered(reason)
        new = {"what": what, "reason": reason, "count": 0, **notes}
        self.not_covered.setdefault((what, reason), new)["count"] += count

    def add(self, entry, notes, count: int, label: str) -> None:
        key = json.dumps({**entry, "id": notes.get("id"), "bundle": self.bundle}, sort_keys=True)
        if key in self.entries:
            self.entries[key]["count"] += count
            return
        self.entries[key] = {**entry, "count": count, **notes, "label": label}
        if self.bundle is not None:
            self.entries[key]["bundle"] = self.bundle

    def add_collective(self, key, count: int, notes) -> None:
        _, name, (label, *ranks), tensor, src, dst, phase = key
        if len(ranks) == 1:
            return
        entry = {
            "mesh": self.meshes.group(label, ranks),
            "tensor": json.loads(tensor),
            "src": [src],
            "dst": [dst],
            "x-phase": phase,
            "x-asked-by": name,
        }
        self.add(entry, notes, count, kind_of([src], [dst]))

    def add_redistribution(self, key, count: int, notes) -> None:
        current, target, phase, origin, gradient, is_weight, place = key
        if current.mesh.get_coordinate() is None:
            return  # a mesh that the recording rank has no part in: PyTorch does nothing there
        (src, src_order), (dst, dst_order) = state_of(current), state_of(target)
        if gradient:
            dst = asked_backward(current, dst)
        if src == dst and src_order == dst_order:
            return
        tensor = tensor_of(current.shape, current.tensor_meta.dtype)
        entry = {"mesh": self.meshes.name(current.mesh), "tensor": tensor, "src": src, "dst": dst}
        self.add_orders(entry, src_order, dst_order, "mesh", "mesh")
        named = partial_names(current, target, tensor)
        if (
            named
        ):  # part of what tells entries apart: a norm's partial is not the plain sum beside it
            entry["x-partial"] = named
        # What a planner would normalise further is not said to go backward.
        if gradient and dst == normalised(src, dst):
            entry["direction"] = "backward"
        entry["x-phase"], entry["x-asked-by"] = phase, origin
        # Layers share an entry, other modules do not.
        entry["weight" if is_weight else "module"] = place
        self.add(entry, notes, count, kind_of(src, dst))

    def add_reshard(self, label: str, source, target, count: int, notes) -> None:
        (src, src_order), (dst, dst_order) = state_of(source), state_of(target)
        src_mesh = self.meshes.name_on_its_ranks(source.mesh)
        dst_mesh = self.meshes.name_on_its_ranks(target.mesh)
        if src_mesh == dst_mesh:  # within one mesh every copy of it would do the same
            src_mesh = dst_mesh = self.meshes.name_alone(source.mesh)
        entry = {
            "src_mesh": src_mesh,
            "dst_mesh": dst_mesh,
            "tensor": tensor_of(source.shape, source.tensor_meta.dtype),
            "src": src,
            "dst": dst,
        }
        self.add_orders(entry, src_order, dst_order, "src_mesh", "dst_mesh")
        self.add(entry, {**notes, "id": label}, count, "reshard")

    def add_orders(self, entry, src_order, dst_order, src_mesh: str, dst_mesh: str) -> None:
        fields = (("src_order", src_order, src_mesh), ("dst_order", dst_order, dst_mesh))
        for field, orders, mesh in fields:
            names = [n for n, _ in self.meshes.table(entry[mesh])]
            if orders:
                entry[field] = [
                    {"tensor_dim": d, "mesh_dims": [names[m] for m in dims]} for d, dims in orders
                ]

    def document(self, incomplete: Optional[str]) -> dict[str, Any]:
        entries = list(self.entries.values())
        rank = dist.get_rank() if dist.is_initialized() else 0
        recorded = {
            "by": "meshplan.capture",
            "torch": torch.__version__,
            "world": self.meshes.rank_count(),
            "rank": rank,
            **self.recorder.notes,
        }
        spec = {"schema": "meshplan/spec/1", "x-recorded": recorded}
        if incomplete:
            spec["x-incomplete"] = incomplete
        simple = self.simple_mesh(entries)
        if simple is not None:
            spec["mesh"] = simple
        else:
            spec["meshes"] = self.meshes.operations()
        out = []
        for name, entry in zip(ids_of(entries), entries):
            fields = [f for f in FIELDS if f in entry and (simple is None or f != "mesh")]
            notes = sorted(k for k in entry if k.startswith("x-"))
            out.append({"id": name, **{k: entry[k] for k in (*fields, *notes)}})
        spec["redistributions"] = out
        bundles = self.bundles(entries, [r["id"] for r in out])
        if bundles:
            spec["bundles"] = bundles
        if self.not_covered:
            spec["x-not-covered"] = list(self.not_covered.values())
        return spec

    def bundles(self, entries, ids: list[str]) -> list[dict[str, Any]]:
        """The bundles that have members, by names that are taken once."""
        found, taken = [], set()
        for index, asked in enumerate(self.recorder.bundles):
            members = [name for name, e in zip(ids, entries) if e.get("bundle") == index]
            if not members:
                continue
            name, n = asked.name, 1
            while name in taken:
                n += 1
                name = f"{asked.name}.{n}"
            taken.add(name)
            found.append(
                {
                    "id": name,
                    "redistributions": members,
                    "count": asked.count,
                    **asked.limits,
                    "x-recorded": True,
                }
            )
        return found

    def simple_mesh(self, entries) -> Optional[dict[str, Any]]:
        """The `mesh` form, where everything happens on one root and the only other meshes are its
        flattens."""
        if len(self.meshes.writers) > 1:
            return None
        writer = self.meshes.writers[0]
        root, *views = writer.operations
        if any(e.get("mesh") != writer.root for e in entries):
            return None
        if any(o.get("of") != writer.root or "flatten" not in o for o in views):
            return None
        mesh = {"dims": root.get("dims", [{"name": writer.root, "size": root["world"]}])}
        if "ranks" in root:
            mesh["ranks"] = root["ranks"]
        if views:
            mesh["flattened"] = [{"dims": o["flatten"], "name": o["name"]} for o in views]
        return mesh
