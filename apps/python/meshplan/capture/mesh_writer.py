"""Meshes as the operations of a spec, over one universe of ranks."""

from __future__ import annotations

import itertools
import math

from meshplan.capture.mesh_layout import coalesce, modes_of
from meshplan.recorded_spec import NotCovered


class MeshWriter:
    """Meshes as the `meshes` operations of a spec, over one universe of ranks.

    A mesh is given by names and, per dim, the modes of its layout over positions in the universe's
    rank map. It becomes the first of: a mesh that is already there, a slice of one, or an
    unflattened view of the root. Flattens are declared where the program has them and nowhere else:
    a plan may run on what is declared.
    """

    def __init__(self, ranks, dims, names=None):
        self.names = set() if names is None else names  # of all meshes of the file
        self.ranks, self.position = ranks, {r: i for i, r in enumerate(ranks)}
        self.operations, self.flattens = [], {}
        self.tables = {}  # mesh name -> [(dim name, modes)]
        # Ranks 8 to 15 in one dim are no world.
        flat = len(dims) == 1 and sorted(ranks) == list(range(len(ranks)))
        self.root = self.free_name("world" if flat else "mesh")
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
        """Whether a mesh on these ranks begins where the universe does: only then its view is on
        them, and not on a copy of it."""
        return ranks[0] == self.ranks[0]

    def dims_of(self, names, shape, ranks):
        """Per dim its name and modes, from the row-major ranks of one copy."""
        if any(r not in self.position for r in ranks):
            raise NotCovered(f"ranks {ranks[:8]} are not all in the recorded universe")
        at = [self.position[r] for r in ranks]
        strides, dims = [math.prod(shape[i + 1 :]) for i in range(len(shape))], []
        for name, size, step in zip(names, shape, strides):
            modes = modes_of([at[i * step] - at[0] for i in range(size)])
            if modes is None:
                raise NotCovered(
                    f"the ranks of mesh dim {name} follow no layout over the recorded universe"
                )
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
        return self.tables[mesh] + [
            (n, m) for n, m in self.flattens.items() if n not in dict(self.tables[mesh])
        ]

    def match(self, mesh, dims, by_name):
        """The dims of `mesh`, or flattens, that have the modes of `dims`; None where one is
        missing."""
        chosen = []
        for name, modes in dims:
            hit = next(
                (
                    n
                    for n, m in self.known_dims(mesh)
                    if m == modes and n not in chosen and (n == name or not by_name)
                ),
                None,
            )
            if hit is None:
                return None
            chosen.append(hit)
        return chosen

    def ensure(self, dims):
        for name, table in self.tables.items():
            if table == dims:
                return name
        whole = len(dims) > 1 and math.prod(size for _, modes in dims for size, _ in modes) == len(
            self.ranks
        )
        # A view of the whole world keeps the names that the program gave it.
        for by_name in (True,) if whole else (True, False):
            for mesh in list(self.tables):
                chosen = self.match(mesh, dims, by_name)
                if chosen is not None and len(chosen) <= len(self.tables[mesh]) + len(
                    self.flattens
                ):
                    return self.slice(mesh, chosen, dims)
        return self.view(dims)

    def slice(self, mesh, chosen, dims):
        table = dict(self.known_dims(mesh))
        for name, existing in self.tables.items():
            if [m for _, m in existing] == [m for _, m in dims] and [
                n for n, _ in existing
            ] == chosen:
                return name
        ordered = sorted(chosen, key=lambda n: -table[n][-1][1] if table[n] else 0)
        if all(table[n] for n in chosen) and ordered != chosen:
            part = self.ensure([(n, table[n]) for n in ordered])
            return self.add(
                {"name": self.free_name(".".join(chosen)), "of": part, "transpose": chosen},
                [(n, table[n]) for n in chosen],
            )
        return self.add(
            {"name": self.free_name(".".join(chosen)), "of": mesh, "slice": chosen},
            [(n, table[n]) for n in chosen],
        )

    def flatten(self, name, modes):
        """Declares one dim of several; False where no known mesh has dims that make it up."""
        if self.flattens.get(name) == modes:
            return True
        taken = (
            self.flattens.get(name) is not None
            or any(n == name for t in self.tables.values() for n, _ in t)
            or name in self.names
        )
        for mesh in list(self.tables):
            table = self.tables[mesh]
            for count in range(2, len(table) + 1):
                for picked in itertools.combinations(table, count):
                    if coalesce([m for _, dim in picked for m in dim]) != modes or not all(
                        m for _, m in picked
                    ):
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
        pieces = sorted(
            (
                (stride, size, name, len(modes) > 1)
                for name, modes in dims
                for size, stride in modes
            ),
            reverse=True,
        )
        digits, above, filler = [], total, 0
        for stride, size, name, several in pieces:
            if above % (stride * size):
                raise NotCovered(
                    f"mesh {[n for n, _ in dims]} is no view of the recorded universe of "
                    f"{total} ranks"
                )
            if above > stride * size:
                digits.append((f"outer{filler or ''}", above // (stride * size)))
                filler += 1
            digits.append(
                (
                    (
                        f"{name}.{sum(n.startswith(name + '.') for n, _ in digits)}"
                        if several
                        else name
                    ),
                    size,
                )
            )
            above = stride
        if above > 1:
            digits.append((f"inner{filler or ''}", above))
        digits += [(name, 1) for name, modes in dims if not modes]
        order = {n: i for i, (n, m) in enumerate(dims) if not m}
        if [n for n, _ in digits] != [n for n, _ in dims] and order and len(digits) == len(dims):
            digits = (
                [next(d for d in digits if d[0] == n) for n, _ in dims]
                if self.descending(dims)
                else digits
            )
        stride, table = total, []
        for name, size in digits:
            stride //= size
            table.append((name, coalesce([(size, stride)])))
        root_dim = self.tables[self.root][0][0]
        name = self.free_name(".".join(n for n, _ in digits))
        self.add(
            {
                "name": name,
                "of": self.root,
                "unflatten": root_dim,
                "sizes": [s for _, s in digits],
                "dims": [n for n, _ in digits],
            },
            table,
        )
        if table == dims:
            return name
        for dim, modes in dims:
            if len(modes) > 1 and not self.flatten(dim, modes):
                raise NotCovered(f"mesh dim {dim} could not be written as a flatten")
        return self.ensure(dims)

    def split(self, dims):
        """A view that splits dims of a root of several: each root dim equals one dim or the product
        of neighbours."""
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
            current = self.add(
                {
                    "name": self.free_name(".".join(n for n, _ in table)),
                    "of": current,
                    "unflatten": root_dim,
                    "sizes": sizes,
                    "dims": [n for n, _ in taken],
                },
                table,
            )
        if rest:
            raise NotCovered(f"mesh {[n for n, _ in dims]} has more dims than the root's ranks")
        return current

    @staticmethod
    def descending(dims):
        strides = [m[-1][1] for _, m in dims if m]
        return strides == sorted(strides, reverse=True)
