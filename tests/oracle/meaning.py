"""What meshes, placements and states mean: which rank holds which box of a tensor, and which
contribution to a pending reduction. Written from the words of the project's pages; it shares
nothing with lib.

A mesh is an array of positions in the rank map for each of its copies; a state is, for each tensor
dim, an ordered list of cuts, and the set of mesh dims whose reduction is pending. A cut is a factor
of a mesh dim: `size` values with `tail` ranks inside each, so that the whole dim of 6 is (6, 1), and
b:(1)3 of it is (3, 2).
"""
import itertools
import math
import re
from dataclasses import dataclass, field

import numpy as np

DTYPE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3": 1,
               "float8_e5m2": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}


class Complaint(Exception):
    """Something that a plan says or does and that is not so; `kind` names the check."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


# ---- meshes ---------------------------------------------------------------------------------

@dataclass
class Mesh:
    """`offsets` per dim: what each coordinate adds to a position; `copies`: base positions; `ids`:
    global ranks by position, of all the mesh's universe."""
    name: str
    dims: list
    offsets: list
    ids: list
    copies: list = field(default_factory=list)

    @property
    def shape(self):
        return tuple(len(o) for o in self.offsets)

    def positions(self, copy=0):
        """Positions in the rank map, in row-major order of the coordinates."""
        total = np.zeros((), dtype=np.int64)
        for offsets in self.offsets:
            total = total[..., None] + np.asarray(offsets, dtype=np.int64)
        return (total + self.copies[copy]).reshape(-1)

    def ranks(self, copy=0):
        """Global ranks in row-major order of the coordinates."""
        return [self.ids[p] for p in self.positions(copy)]


def with_copies(mesh):
    """The copies of a mesh in its universe: translations that cover every position once."""
    world = len(mesh.ids)
    mesh.copies = [0]
    base = np.sort(mesh.positions())
    left = np.ones(world, dtype=bool)
    left[base] = False
    while left.any():
        first = int(np.argmax(left))
        members = base + first
        if members[-1] >= world or not left[members].all():
            raise Complaint("mesh", f"the copies of {mesh.name} do not cover its universe")
        left[members] = False
        mesh.copies.append(first)
    return mesh


def rank_list(entries, world):
    """Global ranks by position: a list whose entries are ids or ranges such as "8-15"."""
    if entries is None:
        return list(range(world))
    found = []
    for entry in entries:
        if isinstance(entry, str):
            first, last = entry.split("-")
            found += list(range(int(first), int(last) + 1))
        else:
            found.append(entry)
    return found


def row_major(dims):
    offsets, stride = [], 1
    for dim in reversed(dims):
        offsets.insert(0, [i * stride for i in range(dim["size"])])
        stride *= dim["size"]
    return offsets


def joined(parts):
    total = np.zeros((), dtype=np.int64)
    for part in parts:
        total = total[..., None] + np.asarray(part, dtype=np.int64)
    return total.reshape(-1).tolist()


def meshes_of(spec):
    """The meshes of a spec, by name."""
    if "mesh" in spec:
        made = spec["mesh"]
        offsets = row_major(made["dims"])
        ids = rank_list(made.get("ranks"), math.prod(len(o) for o in offsets))
        return {"mesh": with_copies(Mesh("mesh", [d["name"] for d in made["dims"]], offsets, ids))}
    meshes = {}
    for op in spec["meshes"]:
        if "world" in op:
            dims = op.get("dims", [{"name": op["name"], "size": op["world"]}])
            mesh = Mesh(op["name"], [d["name"] for d in dims], row_major(dims), rank_list(op.get("ranks"), op["world"]))
        elif "concatenate" in op:
            parts = [meshes[name] for name in op["concatenate"]]
            mesh = Mesh(op["name"], sum((p.dims for p in parts), []), sum((p.offsets for p in parts), []), parts[0].ids)
        else:
            of = meshes[op["of"]]
            at = {name: offsets for name, offsets in zip(of.dims, of.offsets)}
            if "slice" in op or "transpose" in op:
                kept = op.get("slice") or op["transpose"]
                mesh = Mesh(op["name"], list(kept), [at[k] for k in kept], of.ids)
            elif "flatten" in op:
                dim = op.get("dim", "_".join(op["flatten"]))
                mesh = Mesh(op.get("name", dim), [dim], [joined([at[k] for k in op["flatten"]])], of.ids)
            else:
                cut = at[op["unflatten"]]
                pieces, inner = [], len(cut)
                for size in op["sizes"]:
                    inner //= size
                    pieces.append([cut[i * inner] for i in range(size)])
                where = of.dims.index(op["unflatten"])
                mesh = Mesh(op["name"], of.dims[:where] + op["dims"] + of.dims[where + 1:],
                            of.offsets[:where] + pieces + of.offsets[where + 1:], of.ids)
        meshes[mesh.name] = with_copies(mesh)
    return meshes


# ---- states ---------------------------------------------------------------------------------

@dataclass(frozen=True)
class Part:
    """A factor of a mesh dim: `size` values, each of `tail` consecutive coordinates."""
    dim: int
    size: int
    tail: int

    def of(self, coordinates):
        return coordinates[self.dim] // self.tail % self.size


@dataclass
class State:
    """cuts: tensor dim -> parts, major first; pending: part -> reduce op."""
    mesh: Mesh
    cuts: dict
    pending: dict

    def parts(self):
        return sum(self.cuts.values(), []) + list(self.pending)


def entries_of(text):
    """[per mesh dim: [(placement text, order index or None, size or None)]] of a state's text."""
    one = r"(R|S\(\d+\)|P\(\w+\))(?:\[(\d+)\])?"
    found, at = [], 0
    while at < len(text):
        if text[at] == "{":
            end = text.index("}", at)
            pieces = []
            for piece in text[at + 1:end].split(","):
                match = re.fullmatch(one + r":(\d+)", piece)
                pieces.append((match[1], match[2], int(match[3])))
            found.append(pieces)
            at = end + 1
        else:
            match = re.compile(one).match(text, at)
            if not match:
                raise Complaint("text", f"the state {text!r} cannot be read at {at}")
            found.append([(match[1], match[2], None)])
            at = match.end()
    return found


def state_of_text(text, mesh):
    entries = entries_of(text)
    if len(entries) != len(mesh.dims):
        raise Complaint("text", f"the state {text!r} has not one entry for each dim of {mesh.name}")
    cuts, pending = {}, {}
    for dim, pieces in enumerate(entries):
        tail = len(mesh.offsets[dim])
        if len(pieces) > 1 and np.prod([p[2] for p in pieces]) != tail:
            raise Complaint("text", f"the parts of dim {dim} of {text!r} do not make its size {tail}")
        for placement, index, size in pieces:
            size = tail if size is None else size
            tail //= size
            part = Part(dim, size, tail)
            if placement[0] == "S":
                place = (len(cuts.get(int(placement[2:-1]), [])) if index is None else int(index))
                cuts.setdefault(int(placement[2:-1]), []).append((place, part))
            elif placement[0] == "P":
                pending[part] = placement[2:-1]
    cuts = {d: [part for _, part in sorted(c, key=lambda x: x[0])] for d, c in cuts.items()}
    return State(mesh, cuts, pending)


def strided_order(sizes, factors):
    """The order of mesh dims, given outermost first with their split factors: a dim comes after
    dims inside it whose sizes multiply to its factor; None where no order does."""
    order = []
    for dim in reversed(range(len(sizes))):
        product, at = 1, 0
        while product != factors[dim]:
            if at == len(order):
                return None
            product *= sizes[order[at]]
            at += 1
        order.insert(at, dim)
    return order


def state_of_request(placements, order, mesh):
    """The state of a spec's src or dst; `order` is a list ("any": the default order)."""
    if isinstance(placements, dict):
        placements = [placements[name] for name in mesh.dims]
    sharding, pending = {}, {}
    for dim, placement in enumerate(placements):
        size = len(mesh.offsets[dim])
        if placement[0] == "S":
            numbers = [int(n) for n in re.findall(r"\d+", placement)]
            sharding.setdefault(numbers[0], []).append((dim, numbers[1] if len(numbers) > 1 else 1))
        elif placement[0] == "P":
            pending[Part(dim, size, 1)] = placement[2:-1]
    cuts = {}
    for tensor_dim, dims in sharding.items():
        sizes = [len(mesh.offsets[dim]) for dim, _ in dims]
        at = strided_order(sizes, [factor for _, factor in dims])
        if at is None:
            raise Complaint("strided", f"no order decodes {placements}")
        names = [dims[i][0] for i in at]
        for entry in order if order != "any" else []:
            if entry["tensor_dim"] == tensor_dim:
                names = [mesh.dims.index(n) for n in entry["mesh_dims"]]
        cuts[tensor_dim] = [Part(dim, len(mesh.offsets[dim]), 1) for dim in names]
    return State(mesh, cuts, pending)


def fused(cuts):
    """Neighbours that are consecutive factors of one mesh dim cut as the one factor they make."""
    found = []
    for part in cuts:
        if part.size == 1:
            continue
        if found and found[-1].dim == part.dim and found[-1].tail == part.size * part.tail:
            found[-1] = Part(part.dim, found[-1].size * part.size, part.tail)
        else:
            found.append(part)
    return found


def box_of(state, shape, coordinates):
    """((low, high) per tensor dim) that the rank at these coordinates holds."""
    box = []
    for dim, extent in enumerate(shape):
        low, high = 0, extent
        for part in fused(state.cuts.get(dim, [])):
            width = high - low
            # From the major end of a mesh dim the chunks are those of the whole dim; a part further
            # down cuts like a dim of its own size (lib/tensor/state.h).
            whole = part.size * part.tail == state.mesh.shape[part.dim]
            tail = part.tail if whole else 1
            chunk = -(-width // (part.size * tail)) * tail
            j = part.of(coordinates)
            low, high = low + min(width, j * chunk), low + min(width, (j + 1) * chunk)
        box.append((low, high))
    return tuple(box)


@dataclass
class Held:
    """What the ranks of one copy of a mesh hold in a state: per rank (row-major) its box, its place
    in the pending reduction, and which ranks reduce together."""
    state: State
    shape: tuple
    ranks: list
    coordinates: list
    boxes: list
    pending: list


def held(state, shape, copy=0):
    coordinates = list(itertools.product(*(range(n) for n in state.mesh.shape)))
    live = [p for p in sorted(state.pending, key=lambda p: (p.dim, -p.tail)) if p.size > 1]
    cache = {}
    used = [p for d in sorted(state.cuts) for p in state.cuts[d]]
    boxes = []
    for c in coordinates:
        key = tuple(p.of(c) for p in used)
        if key not in cache:
            cache[key] = box_of(state, shape, c)
        boxes.append(cache[key])
    pending = [tuple(p.of(c) for p in live) for c in coordinates]
    return Held(state, tuple(shape), state.mesh.ranks(copy), coordinates, boxes, pending)


# ---- boxes ----------------------------------------------------------------------------------

def count_of(box):
    elements = 1
    for low, high in box:
        elements *= max(0, high - low)
    return elements


def common(a, b):
    """What two boxes share, or None where that is empty."""
    found = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b))
    return found if all(low < high for low, high in found) else None


def inside(box, frame):
    """The slices of `box` in an array that holds `frame`."""
    return tuple(slice(low - f[0], high - f[0]) for (low, high), f in zip(box, frame))
