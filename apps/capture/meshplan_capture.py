#!/usr/bin/env python3
"""Records what a PyTorch program asks its device meshes to move, as a meshplan spec.

    with meshplan_capture.record("spec.json"):            around a training step, real or fake
        step()

    python meshplan_capture.py --world 512 -o spec.json train_step.py --its --own arguments

The second form runs the program as one rank of a world that does not exist: a fake process group, fake tensors, no GPU, no memory.

What is recorded
  meshes            root, slices, flattened dims, unflattened views and rank order of every mesh that the program moved data on
  redistributions   each distinct one (tensor, placements, shard orders, forward or backward, asked for or inserted by an operator) with
                    its count; `x-source` is the line that first asked for it, `x-module` the module it ran in
  collectives       issued outside DTensor (FSDP2 on its flat buffers, DDP-like code, expert dispatch): gathers, reductions, scatters and
                    even all-to-alls are redistributions of a tensor over the group they run on
  x-not-covered     everything else that communicates, with its reason and count. Nothing is dropped in silence.

Versions. Tested with PyTorch 2.6, 2.9, 2.11 and 2.15; what each offers:
  2.6 to 2.9        placements, strided shards, slices and flattened meshes, FSDP2, collectives outside DTensor. These versions have no shard
                    orders and unflatten no mesh; some operators (logsumexp) have no sharding rule and stop the program
  2.10 and newer    the same with shard orders and unflattened meshes
Operators ask for other redistributions from version to version: record with the one that trains.

On CPUs alone the runner takes "cuda" for the CPU and attention for CUDA's operators. Regions under torch.compile are seen once, when they
are traced: the runner switches compilation off. Pipeline stages are separate programs: record each with its own --rank. Root meshes of one
program that begin at the same rank and lie inside one another become views of one flat world, called `world`; a root on other ranks (train
on 0-7, serve on 8-15) is a universe of its own in the spec, with its real ranks.

This file needs PyTorch and nothing else, and may be copied beside the program that uses it.
"""
import argparse
import contextlib
import gc
import itertools
import json
import math
import os
import runpy
import sys
import tempfile
import traceback

import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed.tensor
import torch.distributed.tensor._redistribute as torch_redistribute
from torch.distributed.device_mesh import DeviceMesh

DTYPES = {"float64": "float64", "float32": "float32", "bfloat16": "bfloat16", "float16": "float16", "float8_e4m3fn": "float8_e4m3",
          "float8_e5m2": "float8_e5m2", "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8", "uint8": "uint8",
          "bool": "bool"}
REDUCE_OPS = {"sum", "avg", "min", "max", "product"}
TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
HERE = os.path.abspath(__file__)


class NotCovered(Exception):
    """What was asked has no form in a spec; the message says why."""


# ---------------------------------------------------------------- where a request came from

def place_of(filename, line):
    """`train.py:12`, or `torchtitan/models/llama3.py:40` inside an installed package: the same on every machine."""
    path = os.path.abspath(filename)
    for folder in sorted((p for p in sys.path if p), key=len, reverse=True):
        folder = os.path.abspath(folder) + os.sep
        if path.startswith(folder):
            return f"{path[len(folder):]}:{line}"
    return f"{os.path.basename(path)}:{line}"


def find_source():
    """The innermost line outside PyTorch and this file, and what asked: the operator that a dispatch serves, or the FSDP unit."""
    frame, notes = sys._getframe(2), {}
    while frame is not None:
        name = frame.f_code.co_filename
        if "x-operator" not in notes and frame.f_code.co_name == "redistribute_local_args":
            info = frame.f_locals.get("op_info")
            op = getattr(getattr(info, "schema", None), "op", None) or getattr(frame.f_locals.get("suggested_input_schema"), "op", None)
            if op is not None:
                notes["x-operator"] = str(op)
        unit = frame.f_locals.get("self") if "/_fully_shard/" in name else None
        if unit is not None and "x-fsdp" not in notes and type(unit).__name__ == "FSDPParamGroup":
            notes["x-fsdp"] = getattr(unit, "_module_fqn", None) or "root"
        if not name.startswith(TORCH_FOLDER) and os.path.abspath(name) != HERE and not name.startswith("<"):
            notes["x-source"] = place_of(name, frame.f_lineno)
            break
        frame = frame.f_back
    return notes


class ModulePath:
    """The path of the module that is running; hooks of the module count as part of it."""

    def __init__(self):
        self.names, self.stack, self.original = {}, [], None

    def start(self):
        original, names, stack = torch.nn.Module.__call__, self.names, self.stack

        def call(module, *args, **kwargs):
            if id(module) not in names:  # a module that no known one contains: it is a root
                for name, child in module.named_modules():
                    names.setdefault(id(child), name)
            stack.append(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                stack.pop()
        self.original = original
        torch.nn.Module.__call__ = call

    def stop(self):
        torch.nn.Module.__call__ = self.original

    def current(self):
        return self.names.get(id(self.stack[-1]), "") if self.stack else ""


# ---------------------------------------------------------------- meshes: ranks to layouts to the operations of a spec

def modes_of(offsets):
    """The layout (sizes and strides, the last mode fastest) that yields these offsets, coalesced; None where there is none."""
    if len(offsets) == 1:
        return []
    stride, run = offsets[1] - offsets[0], 1
    while run < len(offsets) and offsets[run] - offsets[run - 1] == stride:
        run += 1
    while len(offsets) % run:
        run -= 1
    if stride < 1 or run < 2:
        return None
    heads = offsets[::run]
    if any(offsets[i] - heads[i // run] != offsets[i % run] - offsets[0] for i in range(len(offsets))):
        return None
    outer = modes_of(heads)
    return None if outer is None else coalesce(outer + [(run, stride)])


def coalesce(modes):
    out = []
    for size, stride in modes:
        if size == 1:
            continue
        if out and out[-1][1] == stride * size:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    return out


def flat_ranks(mesh):
    return [int(r) for r in mesh_tensor(mesh).flatten().tolist()]


def mesh_tensor(mesh):
    with contextlib.ExitStack() as stack:  # a mesh's rank tensor is real even where the program's tensors are fake
        stack.enter_context(torch._subclasses.fake_tensor.unset_fake_temporarily())
        return mesh.mesh.clone()


def names_of(mesh):
    return tuple(mesh.mesh_dim_names or (f"dim_{i}" for i in range(mesh.ndim)))


def root_of(mesh):
    if hasattr(mesh, "_get_root_mesh"):
        return mesh._get_root_mesh()
    from torch.distributed.device_mesh import _mesh_resources  # 2.6 to 2.8
    return _mesh_resources.get_root_mesh(mesh)


def flattened_of(root):
    """Name -> 1-D mesh of every flatten that the root knows, in the order they were made."""
    if hasattr(root, "_flatten_mapping"):
        return dict(root._flatten_mapping)
    from torch.distributed.device_mesh import _mesh_resources
    found = getattr(_mesh_resources, "root_to_flatten_mapping", {}).get(root, {})
    return dict(found)


class MeshWriter:
    """Meshes as the `meshes` operations of a spec, over one universe of ranks.

    A mesh is given by names and, per dim, the modes of its layout over positions in the universe's rank map. It becomes the first of:
    a mesh that is already there, a slice of one, or an unflattened view of the root. Flattens are declared where the program has them and
    nowhere else: a plan may run on what is declared.
    """

    def __init__(self, ranks, dims, names=None):
        self.names = set() if names is None else names  # of all meshes of the file
        self.ranks, self.position = ranks, {r: i for i, r in enumerate(ranks)}
        self.operations, self.tables, self.flattens = [], {}, {}  # tables: mesh name -> [(dim name, modes)]
        self.root = self.free_name("world" if len(dims) == 1 else "mesh")
        operation = {"name": self.root, "world": len(ranks)}
        if ranks != list(range(len(ranks))):
            operation["ranks"] = ranks
        stride, table = len(ranks), []
        for name, size in dims:
            stride //= size
            table.append((name, coalesce([(size, stride)])))
        if len(dims) > 1 or dims[0][0] != self.root:
            operation["dims"] = [{"name": n, "size": s} for n, s in dims]
        self.add(operation, table)

    def begins(self, ranks):
        """Whether a mesh on these ranks begins where the universe does: only then its view is on them, and not on a copy of it."""
        return ranks[0] == self.ranks[0]

    def dims_of(self, names, shape, ranks):
        """Per dim its name and modes, from the row-major ranks of one copy."""
        if any(r not in self.position for r in ranks):
            raise NotCovered(f"ranks {ranks[:8]} are not all in the recorded universe")
        at = [self.position[r] for r in ranks]
        strides, dims = [math.prod(shape[i + 1:]) for i in range(len(shape))], []
        for name, size, step in zip(names, shape, strides):
            modes = modes_of([at[i * step] - at[0] for i in range(size)])
            if modes is None:
                raise NotCovered(f"the ranks of mesh dim {name} follow no layout over the recorded universe")
            dims.append((name, modes))
        offsets = [0]
        for _, modes in dims:
            for size, stride in modes:
                offsets = [o + i * stride for o in offsets for i in range(size)]
        if offsets != [p - at[0] for p in at]:
            raise NotCovered(f"ranks {ranks[:8]} follow no layout over the recorded universe")
        return dims

    def free_name(self, wanted):
        name, n = wanted, 1
        while name in self.names:
            n += 1
            name = f"{wanted}.{n}"
        return name

    def add(self, operation, table):
        self.operations.append(operation)
        self.names.add(operation["name"])
        self.tables[operation["name"]] = table
        return operation["name"]

    def known_dims(self, mesh):
        return self.tables[mesh] + [(n, m) for n, m in self.flattens.items() if n not in dict(self.tables[mesh])]

    def match(self, mesh, dims, by_name):
        """The dims of `mesh`, or flattens, that have the modes of `dims`; None where one is missing."""
        chosen = []
        for name, modes in dims:
            hit = next((n for n, m in self.known_dims(mesh) if m == modes and n not in chosen and (n == name or not by_name)), None)
            if hit is None:
                return None
            chosen.append(hit)
        return chosen

    def ensure(self, dims):
        for name, table in self.tables.items():
            if table == dims:
                return name
        whole = len(dims) > 1 and math.prod(size for _, modes in dims for size, _ in modes) == len(self.ranks)
        for by_name in (True,) if whole else (True, False):  # a view of the whole world keeps the names that the program gave it
            for mesh in list(self.tables):
                chosen = self.match(mesh, dims, by_name)
                if chosen is not None and len(chosen) <= len(self.tables[mesh]) + len(self.flattens):
                    return self.slice(mesh, chosen, dims)
        return self.view(dims)

    def slice(self, mesh, chosen, dims):
        table = dict(self.known_dims(mesh))
        for name, existing in self.tables.items():
            if [m for _, m in existing] == [m for _, m in dims] and [n for n, _ in existing] == chosen:
                return name
        ordered = sorted(chosen, key=lambda n: -table[n][-1][1] if table[n] else 0)
        if all(table[n] for n in chosen) and ordered != chosen:
            part = self.ensure([(n, table[n]) for n in ordered])
            return self.add({"name": self.free_name(".".join(chosen)), "of": part, "transpose": chosen}, [(n, table[n]) for n in chosen])
        return self.add({"name": self.free_name(".".join(chosen)), "of": mesh, "slice": chosen}, [(n, table[n]) for n in chosen])

    def flatten(self, name, modes):
        """Declares one dim of several; False where no known mesh has dims that make it up."""
        if self.flattens.get(name) == modes:
            return True
        taken = self.flattens.get(name) is not None or any(n == name for t in self.tables.values() for n, _ in t) or name in self.names
        for mesh in list(self.tables):
            table = self.tables[mesh]
            for count in range(2, len(table) + 1):
                for picked in itertools.combinations(table, count):
                    if coalesce([m for _, dim in picked for m in dim]) != modes or not all(m for _, m in picked):
                        continue
                    dims = [n for n, _ in picked]
                    dim = self.free_name("_".join(dims)) if taken else name
                    self.flattens[dim] = modes
                    operation = {"name": dim, "of": mesh, "flatten": dims}
                    if dim != "_".join(dims):
                        operation["dim"] = dim
                    self.add(operation, [(dim, modes)])
                    return True
        return False

    def view(self, dims):
        """An unflattened view of the 1-D root, sliced to the dims where it has more than they."""
        total = len(self.ranks)
        if len(self.tables[self.root]) != 1:
            return self.split(dims)
        pieces = sorted(((stride, size, name, len(modes) > 1) for name, modes in dims for size, stride in modes), reverse=True)
        digits, above, filler = [], total, 0
        for stride, size, name, several in pieces:
            if above % (stride * size):
                raise NotCovered(f"mesh {[n for n, _ in dims]} is no view of the recorded universe of {total} ranks")
            if above > stride * size:
                digits.append((f"outer{filler or ''}", above // (stride * size)))
                filler += 1
            digits.append((f"{name}.{sum(n.startswith(name + '.') for n, _ in digits)}" if several else name, size))
            above = stride
        if above > 1:
            digits.append((f"inner{filler or ''}", above))
        digits += [(name, 1) for name, modes in dims if not modes]
        order = {n: i for i, (n, m) in enumerate(dims) if not m}
        if [n for n, _ in digits] != [n for n, _ in dims] and order and len(digits) == len(dims):
            digits = [next(d for d in digits if d[0] == n) for n, _ in dims] if self.descending(dims) else digits
        stride, table = total, []
        for name, size in digits:
            stride //= size
            table.append((name, coalesce([(size, stride)])))
        root_dim = self.tables[self.root][0][0]
        name = self.free_name(".".join(n for n, _ in digits))
        self.add({"name": name, "of": self.root, "unflatten": root_dim, "sizes": [s for _, s in digits], "dims": [n for n, _ in digits]}, table)
        if table == dims:
            return name
        for dim, modes in dims:
            if len(modes) > 1 and not self.flatten(dim, modes):
                raise NotCovered(f"mesh dim {dim} could not be written as a flatten")
        return self.ensure(dims)

    def split(self, dims):
        """A view that splits dims of a root of several: each root dim equals one dim or the product of neighbours."""
        current, rest = self.root, list(dims)
        for root_dim, modes in self.tables[self.root]:
            taken = []
            while rest and coalesce([m for _, dim in taken for m in dim]) != modes:
                taken.append(rest.pop(0))
            if coalesce([m for _, dim in taken for m in dim]) != modes:
                raise NotCovered(f"mesh {[n for n, _ in dims]} splits no dims of the root")
            if len(taken) == 1 and taken[0][0] == root_dim:
                continue
            sizes = [math.prod(s for s, _ in m) for _, m in taken]
            table = []
            for entry in self.tables[current]:
                table += taken if entry[0] == root_dim else [entry]
            current = self.add({"name": self.free_name(".".join(n for n, _ in table)), "of": current, "unflatten": root_dim,
                                "sizes": sizes, "dims": [n for n, _ in taken]}, table)
        if rest:
            raise NotCovered(f"mesh {[n for n, _ in dims]} has more dims than the root's ranks")
        return current

    @staticmethod
    def descending(dims):
        strides = [m[-1][1] for _, m in dims if m]
        return strides == sorted(strides, reverse=True)


def describe(mesh):
    return names_of(mesh), tuple(int(s) for s in mesh_tensor(mesh).shape), flat_ranks(mesh)


def universes_of(roots, world):
    """Rank map, dims and roots of every universe. Roots share one where each begins at its first rank and is on its ranks or some of them:
    the only root's own dims, or one flat dim. Without roots it is the world."""
    described = []
    for root in roots:
        entry = describe(root)
        if entry not in described:
            described.append(entry)
    if not described:
        return [(list(range(world)), [("world", world)])]
    shared = []  # the largest root of each universe, and how many it has
    for names, shape, ranks in sorted(described, key=lambda d: -len(d[2])):
        home = next((u for u in shared if u["ranks"][0] == ranks[0] and set(ranks) <= set(u["ranks"])), None)
        if home is None:
            shared.append({"ranks": ranks, "dims": list(zip(names, shape)), "roots": 1})
        else:
            home["roots"] += 1
    shared.sort(key=lambda u: next(i for i, d in enumerate(described) if d[2] == u["ranks"]))
    return [(u["ranks"], u["dims"] if u["roots"] == 1 else [("world", len(u["ranks"]))]) for u in shared]


class Universes:
    """The meshes of a program, each in the universe that has its ranks."""

    def __init__(self, universes, world):
        self.names, self.writers, self.world = set(), [], world
        self.homes = {}  # ranks of a mesh -> the writer that has it on these ranks
        for ranks, dims in universes:
            self.writers.append(MeshWriter(ranks, dims, self.names))

    def new(self, ranks, dims):
        self.writers.append(MeshWriter(ranks, dims, self.names))
        return self.writers[-1]

    def home(self, mesh):
        """The writer of the universe that the root of a mesh is in."""
        ranks = flat_ranks(root_of(mesh))
        return self.homes.get(tuple(ranks)) or next((w for w in self.writers if w.begins(ranks) and set(ranks) <= set(w.ranks)), None)

    def name(self, mesh):
        """A mesh on which every copy does the same: any view of its root's universe that has its shape."""
        home = self.home(mesh) or self.own(mesh)
        return home.ensure(home.dims_of(*describe(mesh)))

    def name_on_its_ranks(self, mesh):
        """A mesh of which just this copy takes part: a root, or one end of a redistribution from mesh to mesh."""
        names, shape, ranks = describe(mesh)
        for writer in [self.home(mesh), *self.writers]:
            if writer is None or not writer.begins(ranks):
                continue
            with contextlib.suppress(NotCovered):
                name = writer.ensure(writer.dims_of(names, shape, ranks))
                self.homes.setdefault(tuple(ranks), writer)
                return name
        writer = self.own(mesh)
        return writer.ensure(writer.dims_of(names, shape, ranks))

    def own(self, mesh):
        """A new universe of the ranks of a mesh: it covers a root that no other universe does."""
        names, shape, ranks = describe(mesh)
        if len(set(ranks)) != len(ranks):
            raise NotCovered(f"ranks {ranks[:8]} of a mesh are not distinct")
        self.homes[tuple(ranks)] = self.new(ranks, list(zip(names, shape)))
        return self.homes[tuple(ranks)]

    def group(self, label, ranks):
        """The mesh of a communicator outside of DTensor: every copy of it does the same."""
        for writer in self.writers:
            if set(ranks) <= set(writer.ranks):
                with contextlib.suppress(NotCovered):
                    return writer.ensure(writer.dims_of((label,), (len(ranks),), ranks))
        everyone = list(range(self.world))
        writer = self.writers[0]
        if len(self.writers) > 1 and all(w.ranks != everyone for w in self.writers):  # ranks of several universes
            writer = self.new(everyone, [("world", self.world)])
        return writer.ensure(writer.dims_of((label,), (len(ranks),), ranks))  # or says why it is not covered

    def table(self, name):
        return next(w.tables[name] for w in self.writers if name in w.tables)

    def operations(self):
        return [o for w in self.writers for o in w.operations]

    def rank_count(self):
        return len(set().union(*(w.ranks for w in self.writers)))


# ---------------------------------------------------------------- placements

def placement_text(placement):
    if placement.is_replicate():
        return "R"
    if placement.is_partial():
        op = str(placement.reduce_op).lower()
        if op not in REDUCE_OPS:
            raise NotCovered(f"partial of reduce op {placement.reduce_op}")
        return f"P({op})"
    if type(placement).__name__ == "_StridedShard":
        return f"SS({placement.dim},{placement.split_factor})"
    if placement.is_shard():
        return f"S({placement.dim})"
    raise NotCovered(f"placement {placement}")


def partial_name(placement):
    """What the program calls a partial that is more than its reduction: a norm's, a mask's; None for plain ones."""
    kind = type(placement).__name__
    if not placement.is_partial() or kind in ("Partial", "_Partial"):
        return None
    return f"{kind}({placement.norm_type})" if hasattr(placement, "norm_type") else kind


def partial_names(source, target, tensor):
    """By mesh dim, of the source, else of the target; None where all partials are plain. A norm's or a mask's partial of floats moves the data of its
    plain reduction; of integers a mask marks entries, and their sum means nothing."""
    for spec in (source, target):
        names = [partial_name(p) for p in spec.placements]
        if any(names):
            if any("Mask" in name for name in names if name) and not tensor["dtype"].startswith(("float", "bfloat")):
                raise NotCovered(f"a mask partial of {tensor['dtype']}")
            return names
    return None


def state_of(spec):
    """Placements of a DTensorSpec and its shard order where that is not the ascending one."""
    texts = [placement_text(p) for p in spec.placements]
    orders = []
    for entry in getattr(spec, "shard_order", None) or ():
        dims = list(entry.mesh_dims)
        if len(dims) > 1 and dims != sorted(dims):
            orders.append((int(entry.tensor_dim), dims))
    return texts, orders


def tensor_of(shape, dtype):
    name = str(dtype).replace("torch.", "")
    if name not in DTYPES:
        raise NotCovered(f"dtype {name}")
    try:
        sizes = [int(s) for s in shape]
    except Exception as error:
        raise NotCovered(f"a size that depends on data ({type(error).__name__})") from error
    if any(s == 0 for s in sizes):
        raise NotCovered(f"a tensor without elements {sizes}")
    return {"shape": sizes, "dtype": DTYPES[name]}


def normalise(src, dst):
    """PyTorch's normalisation of gradients: a partial target of a shard or a replica becomes a replica."""
    return ["R" if d[0] == "P" and s[0] != "P" else d for s, d in zip(src, dst)]


def ids_of(entries):
    """The ids of recorded redistributions, from where they are asked for and what they do, so that they survive an edit of the program: phase, module
    path with `*` for the indices of layers, and role; of those that share it, each adds what tells them apart: shape, placements, names of partials, dtype, meshes."""
    details = (lambda e: "x".join(map(str, e["tensor"]["shape"])) or "scalar", lambda e: "".join(e["src"]) + "-" + "".join(e["dst"]),
               lambda e: next((name for name in e.get("x-partial") or () if name), "plain"),
               lambda e: e["tensor"]["dtype"], lambda e: "-".join(e[k] for k in ("mesh", "src_mesh", "dst_mesh") if k in e),
               lambda e: e.get("direction", "forward"))
    names = []
    for entry in entries:
        module = entry.get("x-module") or entry.get("x-fsdp") or ""
        path = ".".join("*" if part.isdigit() else part for part in module.split("."))
        names.append(entry.get("id") or ".".join(part for part in (entry.get("x-phase"), path, entry["label"]) if part))
    for detail in details:
        values = {}  # a detail that tells none apart is not added
        for name, entry in zip(names, entries):
            values.setdefault(name, set()).add(detail(entry))
        names = [f"{name}.{detail(entry)}" if len(values[name]) > 1 and "id" not in entry else name for name, entry in zip(names, entries)]
    taken = set()
    for i, name in enumerate(names):
        free, n = name, 1
        while free in taken:
            n += 1
            free = f"{name}.{n}"
        taken.add(free)
        names[i] = free
    return names


def kind_of(src, dst):
    kinds = {{"PR": "all_reduce", "PS": "reduce_scatter", "SR": "all_gather", "SS": "all_to_all", "RS": "slice"}.get(s[0] + d[0], "reshard")
             for s, d in zip(src, dst) if s != d}
    return kinds.pop() if len(kinds) == 1 else "reshard"


# ---------------------------------------------------------------- collectives issued outside DTensor

def op_text(op):
    """`sum` for "sum", ReduceOp.SUM and the ReduceOp object that a pre-multiplied sum is."""
    if isinstance(op, str):
        return op.lower()
    for name in ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "PREMUL_SUM"):
        if op == getattr(dist.ReduceOp, name):
            return "sum" if name == "PREMUL_SUM" else name.lower()
    raise NotCovered("a reduce op that specs do not have (bitwise)")


def argument(args, kwargs, index, *names):
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[index] if index is not None and len(args) > index else None


def even_list(tensors):
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) != 1:
        raise NotCovered("tensors of different shapes in one list")
    return list(shapes.pop())


def whole(shape, size):
    return [size] if not shape else [shape[0] * size, *shape[1:]]


def all_to_all_tensor(shape, size):
    """Rank r holds column r of [to, from x part, ...] before and row r after: S(1) to S(0)."""
    if not shape or shape[0] % size:
        raise NotCovered("all_to_all of a first dim that the group does not divide")
    return [size, shape[0], *shape[1:]]


def read_all_reduce(args, kwargs, size):
    tensor = argument(args, kwargs, 0, "tensor")
    return tensor, list(tensor.shape), f"P({op_text(argument(args, kwargs, 1, 'op') or 'sum')})", "R"


def read_all_gather_single(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "input_tensor", "input")
    return tensor, whole(list(tensor.shape), size), "S(0)", "R"


def read_all_gather(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "tensor")
    even_list(argument(args, kwargs, 0, "tensor_list"))
    return tensor, whole(list(tensor.shape), size), "S(0)", "R"


def read_reduce_scatter_single(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "input")
    return tensor, list(tensor.shape), f"P({op_text(argument(args, kwargs, 2, 'op') or 'sum')})", "S(0)"


def read_reduce_scatter(args, kwargs, size):
    tensors = argument(args, kwargs, 1, "input_list")
    return tensors[0], whole(even_list(tensors), size), f"P({op_text(argument(args, kwargs, 2, 'op') or 'sum')})", "S(0)"


def read_all_to_all_single(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "input")
    for i, name in ((2, "output_split_sizes"), (3, "input_split_sizes")):
        splits = argument(args, kwargs, i, name)
        if splits and len({str(s) for s in splits}) > 1:
            raise NotCovered("all_to_all with uneven splits (rows chosen by data, a ring's rotation)")
    return tensor, all_to_all_tensor(list(tensor.shape), size), "S(1)", "S(0)"


def read_all_to_all(args, kwargs, size):
    tensors = argument(args, kwargs, 1, "input_tensor_list")
    even_list(argument(args, kwargs, 0, "output_tensor_list"))
    return tensors[0], all_to_all_tensor(whole(even_list(tensors), size), size), "S(1)", "S(0)"


def read_nothing(args, kwargs, size):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in ("distribute_tensor", "distribute_module"):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename.startswith(TORCH_FOLDER):
        raise NotCovered("deals out rank 0's tensor when it becomes a DTensor (distribute_tensor): once, before the first step")
    raise NotCovered("no redistribution says what it does")


def tensor_text(args, kwargs):
    """`float32[4, 2]` of the first tensor among a call's arguments."""
    tensor = next((a for a in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)), None)
    return "" if tensor is None else f"{str(tensor.dtype).replace('torch.', '')}{[int(s) if isinstance(s, int) else str(s) for s in tensor.shape]}"


# name in torch.distributed -> (reader, position of `group`)
EAGER = {
    "all_reduce": (read_all_reduce, 2), "all_gather_into_tensor": (read_all_gather_single, 2), "all_gather_single": (read_all_gather_single, 2),
    "_all_gather_base": (read_all_gather_single, 2), "all_gather": (read_all_gather, 2), "reduce_scatter_tensor": (read_reduce_scatter_single, 3),
    "reduce_scatter_single": (read_reduce_scatter_single, 3), "_reduce_scatter_base": (read_reduce_scatter_single, 3),
    "reduce_scatter": (read_reduce_scatter, 3), "all_to_all_single": (read_all_to_all_single, 4), "all_to_all": (read_all_to_all, 2),
    "broadcast": (read_nothing, 2), "reduce": (read_nothing, 3), "gather": (read_nothing, 3), "scatter": (read_nothing, 3),
    "send": (read_nothing, 2), "recv": (read_nothing, 2), "isend": (read_nothing, 2), "irecv": (read_nothing, 2),
    "batch_isend_irecv": (read_nothing, None), "all_gather_object": (read_nothing, 2), "broadcast_object_list": (read_nothing, 2),
    "gather_object": (read_nothing, 3), "scatter_object_list": (read_nothing, 3), "barrier": (read_nothing, 0),
    "all_reduce_coalesced": (read_nothing, 2), "all_gather_coalesced": (read_nothing, 2),
}


def functional_all_reduce(args, size):
    return args[0], list(args[0].shape), f"P({op_text(args[1])})", "R"


def functional_all_gather(args, size):
    return args[0], whole(list(args[0].shape), size), "S(0)", "R"


def functional_reduce_scatter(args, size):
    return args[0], list(args[0].shape), f"P({op_text(args[1])})", "S(0)"


def functional_all_to_all(args, size):
    for splits in args[1:3]:
        if len({str(s) for s in splits}) > 1:
            raise NotCovered("all_to_all with uneven splits (rows chosen by data, a ring's rotation)")
    return args[0], all_to_all_tensor(list(args[0].shape), size), "S(1)", "S(0)"


# name in torch.ops._c10d_functional -> reader; the group is the last argument
FUNCTIONAL = {"all_reduce": functional_all_reduce, "all_reduce_": functional_all_reduce, "all_gather_into_tensor": functional_all_gather,
              "reduce_scatter_tensor": functional_reduce_scatter, "all_to_all_single": functional_all_to_all, "broadcast": None,
              "all_reduce_coalesced": None, "all_gather_into_tensor_coalesced": None, "reduce_scatter_tensor_coalesced": None}


class Proxy:
    """Stands for an operator of torch.ops: records the call, passes everything else on."""

    def __init__(self, packet, before):
        self.__dict__.update(_packet=packet, _before=before)

    def __call__(self, *args, **kwargs):
        return self._before(self._packet, args, kwargs)

    def __getattr__(self, name):
        return getattr(self._packet, name)


# ---------------------------------------------------------------- the recorder

running = None  # the recorder at work


def phase(name):
    """Names what follows ("optimizer", "grad_norm") in the recording at work; None: back to forward and backward. Does nothing outside one."""
    if running is not None:
        running.name = name


class Recorder:
    def __init__(self, path=None):
        self.path, self.spec = path, None
        self.counts, self.first = {}, {}        # key -> count; key -> notes of the first request
        self.name, self.depth = None, 0         # the phase as the program calls it; inside a redistribution
        self.modules, self.restore, self.roots, self.seen_meshes = ModulePath(), [], [], []
        self.reshards, self.notes = [], {}
        self.in_gradient, self.backward_of = False, None  # in the backward of a redistribution; the line and module of its forward

    def reshard(self, source, target, name="", count=1):
        """Records that `target`'s DTensors get `source`'s data, mesh to mesh: two DTensors, or two state dicts with the same keys."""
        if hasattr(source, "placements"):
            source, target = {"": source}, {"": target}
        for key in source:
            if hasattr(source[key], "placements") and hasattr(target.get(key), "placements"):
                self.reshards.append((".".join(filter(None, (name, key))), source[key]._spec, target[key]._spec, count, find_source()))

    def current_phase(self):
        return self.name or ("backward" if torch._C._current_graph_task_id() != -1 else "forward")

    # Taps.

    def tap_redistribute(self, original, origin):
        counts, backward_running = self.counts, torch._C._current_graph_task_id

        def tap(local_tensor, current_spec, target_spec, *args, **kwargs):
            phase = self.name or ("backward" if backward_running() != -1 else "forward")
            explicit = kwargs.get("is_explicit", origin == "redistribute" and backward_running() == -1)
            gradient = bool(kwargs.get("is_backward", False)) or (origin == "redistribute" and (self.in_gradient or not explicit))
            key = (current_spec, target_spec, phase, origin, gradient)
            try:
                if key in counts:
                    counts[key] += 1
                else:
                    counts[key] = 1
                    self.first[key] = self.notes_now(gradient)
            except TypeError as error:  # sizes that depend on data cannot be compared
                self.refuse("redistribute", f"a size that depends on data ({error})")
            self.depth += 1
            try:
                return original(local_tensor, current_spec, target_spec, *args, **kwargs)
            finally:
                self.depth -= 1
        return tap

    def notes_now(self, gradient=False):
        notes = find_source()
        module = self.modules.current()
        if gradient and self.backward_of is not None:  # the line and module of the forward request that this is the gradient of
            source, module = self.backward_of
            if source:
                notes["x-source"] = source
        if module:
            notes["x-module"] = module
        return notes

    def refuse(self, what, reason, tensor=""):
        key = ("refused", what, reason)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.first.setdefault(key, find_source())
        if tensor:
            tensors = self.first[key].setdefault("x-tensors", {})
            tensors[tensor] = tensors.get(tensor, 0) + 1

    def tap_eager(self, original, name, reader, group_at):
        def tap(*args, **kwargs):
            if self.depth == 0:
                self.collective(name, reader, args, kwargs, argument(args, kwargs, group_at, "group"))
            self.depth += 1
            try:
                return original(*args, **kwargs)
            finally:
                self.depth -= 1
        tap.__name__ = getattr(original, "__name__", name)
        return tap

    def tap_functional(self, name, reader):
        def before(packet, args, kwargs):
            if self.depth == 0:
                self.collective(name, (lambda a, k, size: reader(a, size)) if reader else read_nothing, args, kwargs, args[-1])
            self.depth += 1
            try:
                return packet(*args, **kwargs)
            finally:
                self.depth -= 1
        return before

    def collective(self, name, reader, args, kwargs, group):
        try:
            if isinstance(group, str):
                group = dist.distributed_c10d._resolve_process_group(group)
            group = group if isinstance(group, dist.ProcessGroup) else dist.distributed_c10d._get_default_group()
            if name == "batch_isend_irecv":
                raise NotCovered("point to point")
            tensor, shape, src, dst = reader(args, kwargs, group.size())
            if src[0] == "P" and src[2:-1] not in REDUCE_OPS:
                raise NotCovered(f"reduce op {src[2:-1]}")
            ranks = (getattr(group, "group_desc", "").removeprefix("mesh_") or "group", *dist.get_process_group_ranks(group))
            key = ("collective", name, ranks, json.dumps(tensor_of(shape, tensor.dtype)), src, dst, self.current_phase())
            if key not in self.counts:
                self.first[key] = self.notes_now()
            self.counts[key] = self.counts.get(key, 0) + 1
        except NotCovered as reason:
            self.refuse(name, str(reason), tensor_text(args, kwargs))

    # Start and stop.

    def replace(self, owner, name, new):
        self.restore.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    def replace_everywhere(self, original, make):
        """Every module that holds `original` under some name gets a tap; `make` gets the module's name."""
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            if not isinstance(space, dict):
                continue
            for name in [n for n, v in space.items() if v is original]:
                self.replace(module, name, make(module.__name__))

    def start(self):
        self.modules.start()
        origins = {"torch.distributed.tensor._redistribute": "redistribute", "torch.distributed.tensor._dispatch": "operator",
                   "torch.distributed.tensor._api": "from_local"}
        original = torch_redistribute.redistribute_local_tensor
        self.replace_everywhere(original, lambda module: self.tap_redistribute(original, origins.get(module, "operator")))
        for name, (reader, group_at) in EAGER.items():
            function = getattr(dist, name, None) or getattr(dist.distributed_c10d, name, None)
            if function is not None:
                tap = self.tap_eager(function, name, reader, group_at)
                self.replace_everywhere(function, lambda module, tap=tap: tap)
        for name, reader in FUNCTIONAL.items():
            packet = getattr(torch.ops._c10d_functional, name, None)
            if packet is not None:
                self.replace(torch.ops._c10d_functional, name, Proxy(packet, self.tap_functional(name, reader)))
        self.tap_autograd()
        self.tap_meshes()

    def tap_autograd(self):
        """A gradient's redistribution takes the source line of the forward request that it undoes."""
        node, recorder = torch_redistribute.Redistribute, self
        forward, backward = node.forward, node.backward

        def tapped_forward(ctx, *args, **kwargs):
            ctx.meshplan_source = (find_source().get("x-source") if recorder.depth == 0 else None, recorder.modules.current())
            return forward(ctx, *args, **kwargs)

        def tapped_backward(ctx, *args, **kwargs):
            recorder.in_gradient, recorder.backward_of = True, getattr(ctx, "meshplan_source", None)
            try:
                return backward(ctx, *args, **kwargs)
            finally:
                recorder.in_gradient, recorder.backward_of = False, None
        for name, tap in (("forward", tapped_forward), ("backward", tapped_backward)):
            self.restore.append((node, name, staticmethod(getattr(node, name))))
            setattr(node, name, staticmethod(tap))

    def tap_meshes(self):
        recorder, original = self, DeviceMesh.__init__

        def tapped(mesh, /, *args, **kwargs):  # older versions pass the ranks as `mesh`
            original(mesh, *args, **kwargs)
            recorder.seen_meshes.append(mesh)
        self.replace(DeviceMesh, "__init__", tapped)
        alive = [o for o in gc.get_objects() if type(o) is DeviceMesh]
        self.seen_meshes = sorted(alive, key=lambda m: (-m.ndim, str(describe(m))))

    def stop(self):
        self.modules.stop()
        taps = {}
        for owner, name, original in reversed(self.restore):
            taps[id(owner.__dict__.get(name)) if hasattr(owner, "__dict__") else 0] = original
            setattr(owner, name, original)
        for module in list(sys.modules.values()):  # modules imported meanwhile hold a tap under their own names
            space = getattr(module, "__dict__", None)
            if isinstance(space, dict):
                for name in [n for n, v in space.items() if id(v) in taps and not isinstance(v, (int, str, type(None)))]:
                    setattr(module, name, taps[id(space[name])])
        self.restore = []

    # Writing.

    def to_spec(self, incomplete=None):
        world = dist.get_world_size() if dist.is_initialized() else 1
        used = []
        for key in self.counts:
            if not isinstance(key[0], str):
                used += [key[0].mesh, key[1].mesh]
        for _, source, target, _, _ in self.reshards:
            used += [source.mesh, target.mesh]
        roots = []
        for mesh in used:
            if not any(root_of(mesh) is r for r in roots):
                roots.append(root_of(mesh))
        if not roots:  # no DTensor: the meshes that the program made say what its groups are
            for mesh in self.seen_meshes:
                if not any(root_of(mesh) is r for r in roots):
                    roots.append(root_of(mesh))
        universes = universes_of(roots, world)
        flat = [(ranks, [("world", len(ranks))]) for ranks, _ in universes]
        try:
            return self.write(Universes(universes, world), roots, incomplete, last=universes == flat)
        except NotCovered:  # some mesh is no view of a root of several dims: start from flat worlds
            return self.write(Universes(flat, world), roots, incomplete, last=True)

    def write(self, meshes, roots, incomplete, last):
        not_covered, entries = {}, {}

        def refuse(what, reason, count, notes):
            if not last and ("mesh" in reason or "ranks" in reason):
                raise NotCovered(reason)
            entry = not_covered.setdefault((what, reason), {"what": what, "reason": reason, "count": 0, **notes})
            entry["count"] += count

        for root in roots:
            meshes.name_on_its_ranks(root)
        for mesh in sorted(self.seen_meshes, key=lambda m: -m.ndim):  # views first: flattens are made of their dims
            if mesh.ndim > 1 and any(root_of(mesh) is r for r in roots) and root_of(mesh) is not mesh:
                home = meshes.home(mesh)
                if home is not None and math.prod(mesh.shape) == len(home.ranks):
                    with contextlib.suppress(NotCovered):
                        meshes.name(mesh)
        for root in roots:
            for name, mesh in flattened_of(root).items():
                try:
                    home = meshes.home(root) or meshes.own(root)
                    modes = home.dims_of(*describe(mesh))[0][1]
                    if modes and not home.flatten(name, modes):
                        meshes.name(mesh)
                except NotCovered as reason:
                    refuse(f"flattened mesh {name}", str(reason), 1, {})

        def add(entry, notes, count, label):
            key = json.dumps({**entry, "id": notes.get("id")}, sort_keys=True)
            if key in entries:
                entries[key]["count"] += count
            else:
                entries[key] = {**entry, "count": count, **notes, "label": label}

        for key, count in self.counts.items():
            notes = dict(self.first[key])
            try:
                if key[0] == "refused":
                    refuse(key[1], key[2], count, notes)
                elif key[0] == "collective":
                    _, name, ranks, tensor, src, dst, phase = key
                    label, *ranks = ranks
                    if len(ranks) == 1:
                        continue
                    mesh = meshes.group(label, ranks)
                    add({"mesh": mesh, "tensor": json.loads(tensor), "src": [src], "dst": [dst], "x-phase": phase, "x-asked-by": name}, notes,
                        count, kind_of([src], [dst]))
                else:
                    current, target, phase, origin, gradient = key
                    if current.mesh.get_coordinate() is None:
                        continue  # a mesh that the recording rank has no part in: PyTorch does nothing there
                    (src, src_order), (dst, dst_order) = state_of(current), state_of(target)
                    if gradient:
                        dst = normalise(src, dst)
                    if src == dst and src_order == dst_order:
                        continue
                    entry = {"mesh": meshes.name(current.mesh), "tensor": tensor_of(current.shape, current.tensor_meta.dtype), "src": src, "dst": dst}
                    names = [n for n, _ in meshes.table(entry["mesh"])]
                    for field, orders in (("src_order", src_order), ("dst_order", dst_order)):
                        if orders:
                            entry[field] = [{"tensor_dim": d, "mesh_dims": [names[m] for m in dims]} for d, dims in orders]
                    named = partial_names(current, target, entry["tensor"])
                    if named:  # part of what tells entries apart: a norm's partial is not the plain sum beside it
                        entry["x-partial"] = named
                    if gradient:
                        entry["direction"] = "backward"
                    entry["x-phase"] = phase
                    entry["x-asked-by"] = {"redistribute": "redistribute", "operator": "operator", "from_local": "from_local"}[origin]
                    add(entry, notes, count, kind_of(src, dst))
            except NotCovered as reason:
                refuse("redistribute" if not isinstance(key[0], str) else key[1], str(reason), count, notes)
        for label, source, target, count, notes in self.reshards:
            try:
                (src, src_order), (dst, dst_order) = state_of(source), state_of(target)
                entry = {"src_mesh": meshes.name_on_its_ranks(source.mesh), "dst_mesh": meshes.name_on_its_ranks(target.mesh),
                         "tensor": tensor_of(source.shape, source.tensor_meta.dtype), "src": src, "dst": dst}
                for field, orders, mesh in (("src_order", src_order, "src_mesh"), ("dst_order", dst_order, "dst_mesh")):
                    names = [n for n, _ in meshes.table(entry[mesh])]
                    if orders:
                        entry[field] = [{"tensor_dim": d, "mesh_dims": [names[m] for m in dims]} for d, dims in orders]
                add(entry, {**notes, "id": label}, count, "reshard")
            except NotCovered as reason:
                refuse(f"reshard {label}", str(reason), count, notes)
        return self.document(meshes, list(entries.values()), list(not_covered.values()), incomplete)

    def document(self, meshes, entries, not_covered, incomplete):
        spec = {"schema": "meshplan/spec/1",
                "x-recorded": {"by": "meshplan_capture", "torch": torch.__version__, "world": meshes.rank_count(),
                               "rank": dist.get_rank() if dist.is_initialized() else 0, **self.notes}}
        if incomplete:
            spec["x-incomplete"] = incomplete
        simple = self.simple_mesh(meshes, entries)
        if simple is not None:
            spec["mesh"] = simple
        else:
            spec["meshes"] = meshes.operations()
        out = []
        for name, entry in zip(ids_of(entries), entries):
            entry.pop("label"), entry.pop("id", None)
            if simple is not None:
                entry.pop("mesh")
            order = ("mesh", "src_mesh", "dst_mesh", "tensor", "src", "dst", "src_order", "dst_order", "direction", "count")
            out.append({"id": name, **{k: entry[k] for k in order if k in entry},
                        **{k: entry[k] for k in sorted(entry) if k.startswith("x-")}})
        spec["redistributions"] = out
        if not_covered:
            spec["x-not-covered"] = not_covered
        return spec

    @staticmethod
    def simple_mesh(meshes, entries):
        """The `mesh` form, where everything happens on one root and the only other meshes are its flattens."""
        if len(meshes.writers) > 1:
            return None
        writer = meshes.writers[0]
        root = writer.operations[0]
        if any(e.get("mesh") != writer.root for e in entries) or any(o.get("of") != writer.root or "flatten" not in o for o in writer.operations[1:]):
            return None
        mesh = {"dims": root.get("dims", [{"name": writer.root, "size": root["world"]}])}
        if "ranks" in root:
            mesh["ranks"] = root["ranks"]
        if len(writer.operations) > 1:
            mesh["flattened"] = [{"dims": o["flatten"], "name": o["name"]} for o in writer.operations[1:]]
        return mesh


def to_text(spec):
    """One redistribution a line, so that two recordings compare line by line."""
    lines = []
    for key, value in spec.items():
        if isinstance(value, list) and value:
            lines.append(f"  {json.dumps(key)}: [\n    " + ",\n    ".join(json.dumps(v) for v in value) + "\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_file(path, text):
    """Replaced whole or left as it was."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(dir=folder, prefix=".meshplan-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def record(path=None):
    """Records the block and writes the spec to `path`; the recorder's `spec` holds it afterwards. On an error in the block what was
    recorded until then is written, marked x-incomplete, and the error goes on."""
    global running
    recorder, incomplete = Recorder(path), None
    recorder.start()
    running = recorder
    try:
        yield recorder
    except BaseException as error:
        incomplete = None if isinstance(error, SystemExit) and not error.code else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise
    finally:
        running = None
        recorder.stop()
        recorder.spec = recorder.to_spec(incomplete)
        if path is not None:
            write_file(path, to_text(recorder.spec))


# ---------------------------------------------------------------- the runner

@contextlib.contextmanager
def pretend_world(world, rank, recorder_notes, real_tensors=False, integer=1, cuda_as_cpu=True):
    """One process that takes itself for rank `rank` of `world`: a fake process group, fake tensors, and no CUDA needed."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.testing._internal.distributed.fake_pg import FakeStore
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK="0", LOCAL_WORLD_SIZE=str(min(world, 8)), MASTER_ADDR="localhost",
                      MASTER_PORT="0", TORCH_COMPILE_DISABLE="1")
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    initialise, destroy = dist.init_process_group, dist.destroy_process_group
    saved = []

    def put(owner, name, value):
        saved.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is initialise or value is destroy:
                put(module, name, lambda *a, **k: None)  # the program's own world is this one

    class Fake(FakeTensorMode):
        """Reading a fake tensor's value gives 1.0, `integer` or False, so that a step that logs its loss goes on; it is noted. What touches
        real tensors only (a mesh's ranks, a constant) is computed."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            tensors = [t for t in torch.utils._pytree.tree_leaves((args, kwargs or {})) if isinstance(t, torch.Tensor)]
            ranks = func.overloadpacket is torch.ops.aten.arange  # counting is how meshes are made
            if ranks or tensors and all(type(t) is torch.Tensor for t in tensors):
                with torch._subclasses.fake_tensor.unset_fake_temporarily():
                    return func(*args, **(kwargs or {}))
            if func.namespace == "c10d":
                return self.communicate(func, args, kwargs or {})
            if func is torch.ops.aten._local_scalar_dense.default:
                recorder_notes["values-read"] = recorder_notes.get("values-read", 0) + 1
                dtype = args[0].dtype
                return False if dtype is torch.bool else (1.0 if dtype.is_floating_point else integer)
            return super().__torch_dispatch__(func, types, args, kwargs)

        @staticmethod
        def communicate(func, args, kwargs):
            """A collective in place, which fake tensors do not know in every version: the fake group gets tensors without elements, and the
            program its own tensors back."""
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                stand_in = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: torch.empty(0, dtype=t.dtype), (args, kwargs))
                done = func(*stand_in[0], **stand_in[1])
            return (args[0], done[1]) if isinstance(done, tuple) and len(done) == 2 else done

    def really(function):
        def call(*args, **kwargs):
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                return function(*args, **kwargs)
        return call
    put(DeviceMesh, "__init__", really(DeviceMesh.__init__))
    make_mesh = torch.distributed.device_mesh.init_device_mesh
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is make_mesh:
                put(module, name, really(make_mesh))

    swap = torch.utils.swap_tensors

    def swap_fakes(first, second):
        """Module.to() swaps fake parameters, which the fake mode remembers by weak references and so forbids."""
        fakes = [t for t in (first, second) if isinstance(t, torch._subclasses.FakeTensor)]
        if len(fakes) == 2 and (first.dtype, first.device, first.shape) == (second.dtype, second.device, second.shape):
            return  # there is no data to swap
        for fake in fakes:
            memo = fake.fake_mode.fake_tensor_converter.meta_converter.tensor_memo
            for key in [k for k, v in memo.items() if v is fake]:
                del memo[key]
        swap(first, second)

    if not hasattr(torch.cpu.Stream, "record_event"):  # 2.6: FSDP2 asks the CPU's streams for what they cannot do yet
        torch.cpu.Stream.record_event = lambda stream, event=None: event or torch.cpu.Event()
        torch.cpu.Stream.wait_event = lambda stream, event: None

    with contextlib.ExitStack() as stack:
        if not real_tensors:
            stack.enter_context(Fake(allow_non_fake_inputs=True))
            put(torch.utils, "swap_tensors", swap_fakes)
        if cuda_as_cpu and not torch.cuda.is_available():
            stack.enter_context(CudaAsCpu(not real_tensors))
            put(torch.cuda, "set_device", lambda *a, **k: None)
            put(torch.cuda, "synchronize", lambda *a, **k: None)
            initial = DeviceMesh.__init__

            def on_cpu(self, /, *args, **kwargs):
                if "device_type" in kwargs:
                    kwargs["device_type"] = str(CudaAsCpu.on_cpu(kwargs["device_type"]))
                return initial(self, *(str(CudaAsCpu.on_cpu(a)) if i == 0 else a for i, a in enumerate(args)), **kwargs)
            put(DeviceMesh, "__init__", on_cpu)
        try:
            yield
        finally:
            for owner, name, value in reversed(saved):
                setattr(owner, name, value)
            destroy()


def attention_of_cuda(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The operator that CUDA would choose: DTensor has sharding rules for it, and for few versions' CPU attention."""
    aten = torch.ops.aten
    if attn_mask is None and query.dtype in (torch.bfloat16, torch.float16):
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]
    if enable_gqa and key.shape[-3] != query.shape[-3]:  # this one wants as many key heads as query heads
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, query.requires_grad, dropout_p, is_causal, scale=scale)[0]


class CudaAsCpu(torch.overrides.TorchFunctionMode):
    """A program that names "cuda" gets the CPU: only shapes and placements matter."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {k: self.on_cpu(v) if k == "device" else v for k, v in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.nn.functional.scaled_dot_product_attention and self.fake_tensors:
            if any(isinstance(a, torch.distributed.tensor.DTensor) for a in (*args, *kwargs.values())):
                return attention_of_cuda(*args, **kwargs)
        if func is torch.Tensor.to:
            args = (args[0], *(self.on_cpu(a) for a in args[1:]))
        return func(*args, **kwargs)

    def __init__(self, fake_tensors=False):
        super().__init__()
        self.fake_tensors = fake_tensors

    @staticmethod
    def on_cpu(value):
        is_cuda = isinstance(value, (str, torch.device)) and str(value).split(":")[0] == "cuda"
        return torch.device("cpu") if is_cuda else value


def main():
    parser = argparse.ArgumentParser(description="Records the redistributions of a PyTorch program as a meshplan spec.")
    parser.add_argument("--world", type=int, required=True, help="ranks of the world that the program runs in")
    parser.add_argument("--rank", type=int, default=0, help="the rank to be (default 0)")
    parser.add_argument("--real-tensors", action="store_true", help="real tensors instead of fake ones (the group stays fake)")
    parser.add_argument("--read-integer", type=int, default=1, metavar="N",
                        help="what reading an integer from a fake tensor gives (default 1): in a mixture of experts, the rows for each peer")
    parser.add_argument("-o", "--output", required=True, help="the spec to write")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not 0 <= given.rank < given.world:
        parser.error(f"--rank {given.rank} is not in a world of {given.world}")
    sys.argv = [given.program, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.program))
    sys.modules.setdefault("meshplan_capture", sys.modules[__name__])  # so that the program can name phases
    torch._dynamo.config.disable = True  # a compiled region is seen once, when it is traced; run it as it is written
    status, recorder = 0, None
    with contextlib.ExitStack() as stack:
        notes = {"program": os.path.basename(given.program)}
        stack.enter_context(pretend_world(given.world, given.rank, notes, given.real_tensors, given.read_integer))
        try:
            with record(given.output) as recorder:
                recorder.notes = notes
                runpy.run_path(given.program, run_name="__main__")
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
            status = 1
    spec = recorder.spec
    asked = sum(r.get("count", 1) for r in spec["redistributions"])
    print(f"{given.output}: {len(spec['redistributions'])} distinct redistributions, {asked} in all", file=sys.stderr)
    for entry in spec.get("x-not-covered", []):
        place = f" (first at {entry['x-source']})" if "x-source" in entry else ""
        print(f"not covered: {entry['what']} x{entry['count']}: {entry['reason']}{place}", file=sys.stderr)
    if "x-incomplete" in spec:
        print(f"incomplete: the program ended with {spec['x-incomplete']}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
