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
import operator
import os
import re
import threading
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from meshplan._library import MeshplanError, Questions, ask, call, load
from meshplan.library import refuse_name

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
_MOST_TENSOR_DIMS = 64
_MOST_SPLIT = 1 << 32
_MOST_PRICERS = 64
# Formats of buffers, by the bytes of what is in them; bytes are taken as they are.
_FORMATS = {4: "iIlLbBc", 8: "qQlLnNbBc"}

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
    if hasattr(placement, "is_replicate"):
        from meshplan.capture.placements import placement_text

        placement = placement_text(placement)
    found = _PLACEMENT.fullmatch(placement) if isinstance(placement, str) else None
    if found is None or (found[2] and found[2] not in REDUCE_OPS):
        raise ValueError(
            f"{placement!r} is not a placement: R, S(dim), P(sum|avg|min|max|product) "
            "or SS(dim,split factor)"
        )
    if found[5]:
        return -1
    if found[2]:
        return -2 - REDUCE_OPS.index(found[2])
    dim, split = int(found[1] or found[3]), int(found[4] or 0)
    if dim >= _MOST_TENSOR_DIMS:
        raise ValueError(f"{placement}: tensors of at most {_MOST_TENSOR_DIMS} dims are priced")
    if found[4] and not 1 <= split <= _MOST_SPLIT:
        raise ValueError(f"{placement} has a split factor of {split}; 1 to {_MOST_SPLIT} are taken")
    return dim + 65536 * split


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
    "topology" object of a spec, or the path of a topology file (a text that ends in .json or has a
    slash, or a pathlib.Path); without it, the spec's own or "uniform". `options` are those of a
    spec. Threads may share a Pricer.
    """

    def __init__(
        self,
        mesh: Any,
        topology: Topology = None,
        name: Optional[str] = None,
        options: Optional[Mapping[str, Any]] = None,
    ) -> None:
        spec, name = _spec_of(mesh, name)
        preset, levels = _topology_of(topology)
        if levels is not None:
            spec["topology"] = levels
        if not isinstance(options, (Mapping, type(None))):
            raise ValueError(f"options {options!r} are not a dict, such as {{'planner': 'greedy'}}")
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
            try:
                question = (tuple(src), tuple(dst), tuple(shape), dtype)
            except TypeError as error:
                raise ValueError(f"{_QUESTION}: {error}") from None
            return self.costs((question,))[0]
        ends = (self._codes(src, src_order), self._codes(dst, dst_order))
        return self._price([(*ends, tuple(shape), dtype_code(dtype))], len(shape))[0]

    def costs(self, questions: Iterable[tuple]) -> list[float]:
        """Microseconds of many: `questions` are tuples (src, dst, shape, dtype) of tuples and names
        as `cost` takes them. A question that was asked before is a look-up in Python."""
        known, out, new = self._known, [], {}
        try:
            for question in questions:
                price = known.get(question)
                if price is None:
                    new.setdefault(question, []).append(len(out))
                out.append(price)
        except TypeError as error:  # a list has no hash
            raise ValueError(f"question {len(out)}: {_QUESTION}: {error}") from None
        for question, price in zip(new, self._price_new(new)):
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
        if not 0 <= operator.index(tensor_dims) <= _MOST_TENSOR_DIMS:
            raise ValueError(f"tensors of {tensor_dims} dims; 0 to {_MOST_TENSOR_DIMS} are priced")
        n = _view("dtypes", dtypes, 4).nbytes // 4
        held = [
            _buffer(name, values, item, count)
            for name, values, item, count in (
                ("shapes", shapes, 8, n * tensor_dims),
                ("dtypes", dtypes, 4, n),
                ("src", src, 8, n * len(self.dims)),
                ("dst", dst, 8, n * len(self.dims)),
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

    def _price_new(self, questions: Mapping[tuple, list[int]]) -> list[float]:
        """Of questions that were not asked before, each with its places among those asked: grouped
        by tensor dims, in the order given."""
        prices, groups = [0.0] * len(questions), {}
        places = [asked[0] for asked in questions.values()]
        for at, question in enumerate(questions):
            try:
                src, dst, shape, dtype = question
                row = (self._codes(src), self._codes(dst), shape, dtype_code(dtype))
                groups.setdefault(len(shape), []).append((at, row))
            except (TypeError, ValueError) as error:
                whole = isinstance(question, tuple) and len(question) == 4
                why = error if whole else f"{_QUESTION}, not {question!r}"
                raise ValueError(f"question {places[at]}: {why}") from None
        for dims, rows in groups.items():
            try:
                found = self._price([row for _, row in rows], dims)
            except MeshplanError as error:
                raise _renumbered(error, [places[at] for at, _ in rows]) from None
            for (at, _), price in zip(rows, found):
                prices[at] = price
        return prices

    def _price(self, rows: list[tuple], dims: int) -> list[float]:
        shapes, src, dst = array.array("q"), array.array("q"), array.array("q")
        dtypes = array.array("i")
        for before, after, shape, dtype in rows:
            src.extend(before)
            dst.extend(after)
            try:
                shapes.extend(shape)
            except (OverflowError, TypeError):
                _check_sizes(shape)
                raise
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
            try:
                order = {entry["tensor_dim"]: entry["mesh_dims"] for entry in order}
            except (KeyError, TypeError):
                raise ValueError(
                    f"the order {order!r} is neither {{tensor dim: mesh dims}} nor a spec's list"
                ) from None
        for tensor_dim, mesh_dims in order.items():
            unknown = [d for d in mesh_dims if isinstance(d, str) and d not in self.dims]
            if unknown:
                raise ValueError(
                    f"the order of tensor dim {tensor_dim} names '{unknown[0]}'; the mesh has "
                    f"dims: {', '.join(self.dims)}"
                )
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
    try:
        pricer = _pricers.get(key)
    except TypeError:  # it has no hash, so it is not a mesh or a topology: said by whoever reads it
        return Pricer(mesh, topology)
    if pricer is None:
        pricer = Pricer(mesh, topology)
        with _pricers_lock:
            while len(_pricers) >= _MOST_PRICERS:
                del _pricers[next(iter(_pricers))]
            _pricers[key] = pricer
    return pricer


# What is said of something else.
_QUESTION = "a question is (src, dst, shape, dtype), tuples of placements and sizes and a name"


def _check_sizes(shape: Sequence[Any]) -> None:
    """ValueError where an array of int64 does not take them."""
    if not all(hasattr(size, "__index__") for size in shape):
        raise ValueError(f"the shape {shape!r} is not a tuple of sizes, such as (4096, 96)")
    if any(operator.index(size) >= 1 << 63 for size in shape):
        raise ValueError(f"the tensor of shape {shape!r} has more bytes than fit 64 bits")


def _renumbered(error: MeshplanError, places: Sequence[int]) -> MeshplanError:
    """The error of a group's "question 0: ...", with its place among all that were asked."""
    place = lambda found: f"question {places[int(found[1])]}"  # noqa: E731
    moved = [{**d, "message": re.sub(r"^question (\d+)", place, str(d.get("message")))}
             for d in error.diagnostics]
    return MeshplanError(error.code, moved)


def _spec_of(mesh: Any, name: Optional[str]) -> tuple[dict[str, Any], Optional[str]]:
    """The spec that has the mesh, without redistributions, and the mesh's name in it."""
    refuse_name(mesh, "a spec")
    if isinstance(mesh, str):
        try:
            mesh = json.loads(mesh)
        except ValueError as error:
            raise ValueError(f"a mesh's text is a spec, JSON without comments: {error}") from None
    if hasattr(mesh, "mesh_dim_names"):
        from meshplan.capture.universes import mesh_as_spec

        return mesh_as_spec(mesh)
    if not isinstance(mesh, Mapping):
        raise ValueError(
            f"{mesh!r} is not a mesh: give a dict such as {{'dp': 2, 'tp': 8}}, a spec, "
            "its \"mesh\", or a DeviceMesh"
        )
    spec: dict[str, Any] = {"schema": "meshplan/spec/1"}
    if "mesh" in mesh or "meshes" in mesh:
        taken = ("mesh", "meshes", "topology", "options")
        spec.update({key: mesh[key] for key in taken if key in mesh})
    elif "dims" in mesh:
        spec["mesh"] = dict(mesh)
    else:
        spec["mesh"] = {"dims": [{"name": n, "size": _size_of(n, s)} for n, s in mesh.items()]}
    return spec, name


def _size_of(name: Any, size: Any) -> int:
    """Of a mesh dim; numbers of numpy count."""
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise ValueError(f"mesh dim {name!r} has size {size!r}, which is not an integer")
    return operator.index(size)


def _topology_of(topology: Any) -> tuple[Optional[str], Optional[dict[str, Any]]]:
    """(a preset's name, None) or (None, a spec's object). A text that ends in .json or has a slash
    is a file's path."""
    if topology is None or isinstance(topology, Mapping):
        return None, None if topology is None else dict(topology)
    if isinstance(topology, str) and not (topology.endswith(".json") or os.sep in topology):
        return topology, None
    if not isinstance(topology, (str, os.PathLike)):
        raise ValueError(
            f"{topology!r} is not a topology: give a preset's name, a spec's \"topology\" object, "
            "or a file's path"
        )
    with open(topology, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise ValueError(f"{os.fspath(topology)} is not a topology file: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{os.fspath(topology)} is not a topology file: it holds no object")
    return None, found


def _view(name: str, values: Any, item: int) -> memoryview:
    """Of a contiguous buffer of integers of `item` bytes."""
    try:
        view = memoryview(values)
    except TypeError:
        raise ValueError(
            f"{name} is a {type(values).__name__}; give an array of numpy or array.array"
        ) from None
    if view.format[-1] not in _FORMATS[item] or view.itemsize not in (1, item):
        raise ValueError(f"{name} holds items of format '{view.format}'; int{8 * item} is expected")
    if not view.c_contiguous:
        raise ValueError(f"{name} is not contiguous")
    return view


def _buffer(name: str, values: Any, item: int, count: int) -> Any:
    """The bytes of a contiguous buffer of `count` integers, which the caller keeps alive."""
    view, size = _view(name, values, item), item * count
    if view.nbytes != size:
        raise ValueError(f"{name} is a buffer of {view.nbytes} bytes where {size} are expected")
    if view.readonly or size == 0:
        return ctypes.create_string_buffer(view.tobytes(), max(size, 1))
    return (ctypes.c_char * size).from_buffer(view.cast("B"))
