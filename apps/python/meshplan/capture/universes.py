"""Which ranks the meshes of a program are on, and the universe of a spec that has each."""

from __future__ import annotations

import contextlib

from meshplan.capture.mesh_layout import describe, flat_ranks, flattened_of, root_of
from meshplan.capture.mesh_writer import MeshWriter
from meshplan.recorded_spec import NotCovered


def universes_of(roots, world):
    """Rank map and dims of every universe. Roots share one where each begins at its first rank and
    is on its ranks or some of them: the only root's own dims, or one flat dim. Without roots it is
    the world."""
    described = []
    for root in roots:
        entry = describe(root)
        if entry not in described:
            described.append(entry)
    if not described:
        return [(list(range(world)), [("world", world)])]
    shared = []  # the largest root of each universe, and how many it has
    for names, shape, ranks in sorted(described, key=lambda d: -len(d[2])):
        home = next(
            (u for u in shared if u["ranks"][0] == ranks[0] and set(ranks) <= set(u["ranks"])), None
        )
        if home is None:
            shared.append({"ranks": ranks, "dims": list(zip(names, shape)), "roots": 1})
        else:
            home["roots"] += 1
    shared.sort(key=lambda u: next(i for i, d in enumerate(described) if d[2] == u["ranks"]))
    return [
        (u["ranks"], u["dims"] if u["roots"] == 1 else [("world", len(u["ranks"]))]) for u in shared
    ]


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
        return self.homes.get(tuple(ranks)) or next(
            (w for w in self.writers if w.begins(ranks) and set(ranks) <= set(w.ranks)), None
        )

    def name(self, mesh):
        """A mesh on which every copy does the same: any view of its root's universe that has its
        shape."""
        home = self.home(mesh) or self.own(mesh)
        return home.ensure(home.dims_of(*describe(mesh)))

    def name_on_its_ranks(self, mesh):
        """A mesh of which just this copy takes part: a root, or one end of a redistribution from
        mesh to mesh."""
        found = self.named_by([self.home(mesh), *self.writers], mesh)
        if found is None:
            return self.named_by([self.own(mesh)], mesh)[1]
        self.homes.setdefault(tuple(flat_ranks(mesh)), found[0])
        return found[1]

    def name_alone(self, mesh):
        """A mesh that is all of its universe, so that it has no copies: what moves on it alone
        moves on no other ranks."""
        ranks = set(flat_ranks(mesh))
        found = self.named_by([w for w in self.writers if set(w.ranks) == ranks], mesh)
        return (found or self.named_by([self.universe_of(mesh)], mesh))[1]

    @staticmethod
    def named_by(writers, mesh):
        """The first of the writers that has the mesh on its ranks, and its name there."""
        names, shape, ranks = describe(mesh)
        for writer in writers:
            if writer is not None and writer.begins(ranks):
                with contextlib.suppress(NotCovered):
                    return writer, writer.ensure(writer.dims_of(names, shape, ranks))
        return None

    def declare_flatten(self, root, name, mesh):
        """A flatten that a root knows under a name, as a dim or, where no dims make it up, a
        view."""
        home = self.home(root) or self.own(root)
        modes = home.dims_of(*describe(mesh))[0][1]
        if modes and not home.flatten(name, modes):
            self.name(mesh)

    def own(self, mesh):
        """A new universe that is home to a mesh: it covers a root that no other universe does."""
        writer = self.universe_of(mesh)
        self.homes[tuple(writer.ranks)] = writer
        return writer

    def universe_of(self, mesh):
        """A new universe of the ranks of a mesh."""
        names, shape, ranks = describe(mesh)
        if len(set(ranks)) != len(ranks):
            raise NotCovered(f"ranks {ranks[:8]} of a mesh are not distinct")
        return self.new(ranks, list(zip(names, shape)))

    def group(self, label, ranks):
        """The mesh of a communicator outside of DTensor: every copy of it does the same."""
        for writer in self.writers:
            if set(ranks) <= set(writer.ranks):
                with contextlib.suppress(NotCovered):
                    return writer.ensure(writer.dims_of((label,), (len(ranks),), ranks))
        everyone = list(range(self.world))
        writer = self.writers[0]
        # Ranks of several universes.
        if len(self.writers) > 1 and all(w.ranks != everyone for w in self.writers):
            writer = self.new(everyone, [("world", self.world)])
        # Or says why it is not covered.
        return writer.ensure(writer.dims_of((label,), (len(ranks),), ranks))

    def table(self, name):
        return next(w.tables[name] for w in self.writers if name in w.tables)

    def operations(self):
        return [o for w in self.writers for o in w.operations]

    def rank_count(self):
        return len(set().union(*(w.ranks for w in self.writers)))


def mesh_as_spec(mesh):
    """A spec with the root of a DeviceMesh, its flattens and the mesh, and the mesh's name there.
    NotCovered where no spec has it."""
    root = root_of(mesh)
    size = len(flat_ranks(root))
    meshes = Universes(universes_of([root], size), size)
    meshes.name_on_its_ranks(root)
    for name, flattened in flattened_of(root).items():
        meshes.declare_flatten(root, name, flattened)
    name = meshes.name(mesh)
    return {"schema": "meshplan/spec/1", "meshes": meshes.operations()}, name
