"""What redistributions cost, one by one or by the thousand: `meshplan.cost`, `meshplan.Pricer`.

    meshplan.cost({"dp": 2, "tp": 8}, ["P(sum)", "S(0)"], ["R", "S(0)"], (4096, 4096), "bfloat16")

is what `meshplan plan` predicts for that redistribution, in microseconds: planned, verified and
remembered, so that the same question costs a look-up when it is asked again.
"""

from __future__ import annotations

import array
import ctypes
import functools
import json
import os
import re
import threading
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from meshplan._library import Questions, ask, call, load

__all__ = ["DTYPES", "Pricer", "cost", "costs", "placement_code"]

# In the order of meshplan.h; a dtype is its index.
DTYPES = (
    "float64",
    "float32",
    "bfloat16",
    "float16",
    "float8_e4m3",
    "float8_e5m2",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
REDUCE_OPS = ("sum", "avg", "min", "max", "product")
_DTYPE_CODES = {name: i for i, name in enumerate(DTYPES)}
_PLACEMENT = re.compile(r"(?:S\((\d+)\)|P\((\w+)\)|SS\((\d+),\s*(\d+)\)|(R))")
_MOST_PRICERS = 64

Topology = Union[None, str, Mapping[str, Any], "os.PathLike[str]"]
Order = Union[Mapping[int, Sequence[Union[int, str]]], Sequence[Mapping[str, Any]]]


def placement_code(placement: Any) -> int:
    """A placement as the number that arrays hold, from its text ("R", "S(1)", "P(sum)", "SS(0,2)")
    or from a placement of PyTorch: R is -1, P(sum) P(avg) P(min) P(max) P(product) are -2 to -6,
    S(d) is d, SS(d,f) is d + 65536 f. Add 256 k for place k of a shard order that is not the
    default."""
    try:
        return _placement_code(placement)
    except TypeError:  # it has no hash
        return _placement_code.__wrapped__(placement)


@functools.lru_cache(maxsize=4096)
def _placement_code(placement: Any) -> int:
    if not isinstance(placement, str):
        from meshplan.capture.placements import placement_text

        placement = placement_text(placement)
    found = _PLACEMENT.fullmatch(placement)
    if found is None or (found[2] and found[2] not in REDUCE_OPS):
        raise ValueError(
            f"{placement!r} is not a placement: R, S(dim), P(sum|avg|min|max|product) "
            "or SS(dim,split factor)"
        )
    if found[1]:
        return int(found[1])
    if found[2]:
        return -2 - REDUCE_OPS.index(found[2])
    return -1 if found[5] else int(found[3]) + 65536 * int(found[4])


def dtype_code(dtype: Any) -> int:
    """The index of a dtype in DTYPES, from its name or from PyTorch's dtype."""
    name = dtype if isinstance(dtype, str) else str(dtype).replace("torch.", "")
    name = "float8_e4m3" if name == "float8_e4m3fn" else name
    if name not in _DTYPE_CODES:
        raise ValueError(f"{name!r} is not a dtype: {', '.join(DTYPES)}")
    return _DTYPE_CODES[name]


class Pricer:
    """Prices redistributions on one mesh, and remembers them.

    `mesh` is a dict from dim names to sizes, the "mesh" object of a spec ({"dims": [...],
    "flattened": [...]}), a whole spec (a dict or its text; `name` says which of its meshes), or a
    DeviceMesh of PyTorch, whose declared flattens count. `topology` is a preset's name, the
    "topology" object of a spec, or the path of a topology file; without it, the spec's own or
    "uniform". `options` are those of a spec. Threads may share a Pricer.
    """

    def __init__(
        self,
        mesh: Any,
        topology: Topology = None,
        name: Optional[str] = None,
        options: Optional[Mapping[str, Any]] = None,
    ) -> None:
        spec, name = _spec_of(mesh, name)
        preset = topology if isinstance(topology, str) else None
        if topology is not None and preset is None:
            spec["topology"] = _topology_object(topology)
        if options:
            spec["options"] = {**spec.get("options", {}), **options}
        self._library, self._lock, self._known = load(), threading.Lock(), {}
        made = ctypes.c_void_p()
        named = [None if text is None else text.encode() for text in (name, preset)]
        text, _ = ask("meshplan_pricer_make", json.dumps(spec), *named, ctypes.byref(made))
        self._pricer = made
        self.dims: tuple[str, ...] = tuple(json.loads(text)["dims"])  # of the mesh, in order

    def __del__(self) -> None:
        if getattr(self, "_pricer", None):
            self._library.meshplan_pricer_free(self._pricer)

    def cost(
        self,
        src: Sequence[Any],
        dst: Sequence[Any],
        shape: Sequence[int],
        dtype: Any,
        src_order: Optional[Order] = None,
        dst_order: Optional[Order] = None,
    ) -> float:
        """Microseconds of one redistribution: `predicted_ns` of its plan / 1000; infinity where no
        plan exists.

        `src`, `dst`: one placement a mesh dim, as texts or as PyTorch's. `shape`: of the whole
        tensor, in elements. `dtype`: a name ("bfloat16") or PyTorch's dtype. Orders: which mesh
        dims shard a tensor dim, major first, {0: ["tp", "dp"]} or as in a spec; without one,
        ascending. """
        if src_order is None and dst_order is None:
            return self.costs(((tuple(src), tuple(dst), tuple(shape), dtype),))[0]
        ends = (self._codes(src, src_order), self._codes(dst, dst_order))
        return self._price([(*ends, tuple(shape), dtype_code(dtype))], len(shape))[0]

    def costs(self, questions: Iterable[tuple]) -> list[float]:
        """Microseconds of many: `questions` are tuples (src, dst, shape, dtype) of tuples and names
        as `cost` takes them. A question that was asked before is a look-up in Python."""
        known, out, new = self._known, [], {}
        for question in questions:
            price = known.get(question)
            if price is None:
                new.setdefault(question, []).append(len(out))
            out.append(price)
        for question, price in zip(new, self._price_new(list(new))):
            known[question] = price
            for at in new[question]:
                out[at] = price
        return out

    def nanoseconds(
        self, shapes: Any, dtypes: Any, src: Any, dst: Any, tensor_dims: int
    ) -> array.array:
        """The batch form over arrays: int64 nanoseconds of each question, -1 where no plan exists.

        All are contiguous buffers (numpy arrays, array.array, memoryviews), a row a question:
        `shapes` int64 [n, tensor_dims] in elements, `dtypes` int32 [n] as indices into DTYPES,
        `src` and `dst` int64 [n, mesh dims] of placement codes (placement_code). MeshplanError
        names the first question that is bad input. """
        n = memoryview(dtypes).nbytes // 4
        held = [
            _buffer(values, size)
            for values, size in (
                (shapes, 8 * n * tensor_dims),
                (dtypes, 4 * n),
                (src, 8 * n * len(self.dims)),
                (dst, 8 * n * len(self.dims)),
            )
        ]
        pointers = [ctypes.cast(buffer, ctypes.c_void_p) for buffer in held]
        out = array.array("q", bytes(8 * n))
        if n:
            questions = Questions(n, tensor_dims, *pointers)
            address = (ctypes.c_int64 * n).from_buffer(out)
            with self._lock:
                call("meshplan_pricer_ask", self._pricer, ctypes.byref(questions), address)
        return out

    def _price_new(self, questions: list[tuple]) -> list[float]:
        """Of questions that were not asked before: grouped by tensor dims, in the order given."""
        prices, groups = [0.0] * len(questions), {}
        for at, (src, dst, shape, dtype) in enumerate(questions):
            row = (self._codes(src), self._codes(dst), shape, dtype_code(dtype))
            groups.setdefault(len(shape), []).append((at, row))
        for dims, rows in groups.items():
            for (at, _), price in zip(rows, self._price([row for _, row in rows], dims)):
                prices[at] = price
        return prices

    def _price(self, rows: list[tuple], dims: int) -> list[float]:
        shapes, src, dst = array.array("q"), array.array("q"), array.array("q")
        dtypes = array.array("i")
        for before, after, shape, dtype in rows:
            src.extend(before)
            dst.extend(after)
            shapes.extend(shape)
            dtypes.append(dtype)
        found = self.nanoseconds(shapes, dtypes, src, dst, dims)
        return [ns / 1000 if ns >= 0 else float("inf") for ns in found]

    def _codes(self, placements: Sequence[Any], order: Optional[Order] = None) -> list[int]:
        if len(placements) != len(self.dims):
            raise ValueError(
                f"{len(placements)} placements {list(map(str, placements))}; the mesh "
                f"has {len(self.dims)} dims: {', '.join(self.dims)}"
            )
        codes = [placement_code(p) for p in placements]
        if order is None:
            return codes
        if not isinstance(order, Mapping):
            order = {entry["tensor_dim"]: entry["mesh_dims"] for entry in order}
        for tensor_dim, mesh_dims in order.items():
            at = [self.dims.index(d) if isinstance(d, str) else d for d in mesh_dims]
            if sorted(at) != [i for i, code in enumerate(codes) if code == tensor_dim]:
                raise ValueError(
                    f"the order of tensor dim {tensor_dim} lists {list(mesh_dims)}, "
                    "which are not the mesh dims that shard it"
                )
            for place, i in enumerate(at):
                codes[i] += 256 * place
        return codes


def cost(
    mesh: Any,
    src: Sequence[Any],
    dst: Sequence[Any],
    shape: Sequence[int],
    dtype: Any,
    topology: Topology = None,
) -> float:
    """Microseconds of one redistribution on a mesh: see Pricer, which this makes once for a mesh
    and a topology, and Pricer.cost. Infinity where no plan exists."""
    return _pricer(mesh, topology).cost(src, dst, shape, dtype)


def costs(mesh: Any, questions: Iterable[tuple], topology: Topology = None) -> list[float]:
    """Microseconds of many redistributions on one mesh: tuples (src, dst, shape, dtype), as
    Pricer.costs takes them."""
    return _pricer(mesh, topology).costs(questions)


_pricers: dict[Any, Pricer] = {}  # the most recently made ones
_pricers_lock = threading.Lock()


def _pricer(mesh: Any, topology: Topology) -> Pricer:
    if isinstance(mesh, Mapping):
        simple = all(isinstance(size, int) for size in mesh.values())
        key = tuple(mesh.items()) if simple else json.dumps(mesh)
    else:
        key = mesh
    key = (key, json.dumps(topology) if isinstance(topology, Mapping) else topology)
    pricer = _pricers.get(key)
    if pricer is None:
        pricer = Pricer(mesh, topology)
        with _pricers_lock:
            while len(_pricers) >= _MOST_PRICERS:
                del _pricers[next(iter(_pricers))]
            _pricers[key] = pricer
    return pricer


def _spec_of(mesh: Any, name: Optional[str]) -> tuple[dict[str, Any], Optional[str]]:
    """The spec that has the mesh, without redistributions, and the mesh's name in it."""
    if isinstance(mesh, str):
        mesh = json.loads(mesh)
    if hasattr(mesh, "mesh_dim_names"):
        from meshplan.capture.universes import mesh_as_spec

        return mesh_as_spec(mesh)
    spec: dict[str, Any] = {"schema": "meshplan/spec/1"}
    if "mesh" in mesh or "meshes" in mesh:
        taken = ("mesh", "meshes", "topology", "options")
        spec.update({key: mesh[key] for key in taken if key in mesh})
    elif "dims" in mesh:
        spec["mesh"] = dict(mesh)
    else:
        spec["mesh"] = {"dims": [{"name": n, "size": int(s)} for n, s in mesh.items()]}
    return spec, name


def _topology_object(topology: Any) -> dict[str, Any]:
    if isinstance(topology, Mapping):
        return dict(topology)
    with open(topology, encoding="utf-8") as file:
        return json.load(file)


def _buffer(values: Any, size: int) -> Any:
    """The bytes of a contiguous buffer of that many, which the caller keeps alive."""
    view = memoryview(values)
    if view.nbytes != size or not view.c_contiguous:
        raise ValueError(f"a buffer of {view.nbytes} bytes where {size} are expected, contiguous")
    if view.readonly or size == 0:
        return ctypes.create_string_buffer(view.tobytes(), max(size, 1))
    return (ctypes.c_char * size).from_buffer(view.cast("B"))
