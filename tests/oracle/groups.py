"""Checks on which groups a plan runs: those of the ranks that its steps name, which the spec declares.

A flatten serves collectives on its ranks in whatever order it lists them, but PyTorch's rules look for
it by that order.
"""
import re

from meaning import Complaint, joined, meshes_of


def offsets_of_layout(text):
    """"(2,4):(8,1)" is 0 1 2 3 8 9 10 11."""
    sizes, strides = ([int(n) for n in re.findall(r"\d+", side)] for side in text.split(":"))
    return joined([[i * stride for i in range(size)] for size, stride in zip(sizes, strides)])


def offsets_of_parts(parts, mesh):
    """Of the ranks that differ on these parts of mesh dims alone."""
    return joined([[mesh.offsets[p.dim][i * p.tail] for i in range(p.size)] for p in parts])


class Declared:
    """The flattens of a spec; a root of one dim is the native rules' flatten of all its ranks."""

    def __init__(self, spec):
        self.meshes = meshes_of(spec)
        if "mesh" in spec:
            flattened = spec["mesh"].get("flattened", [])
            self.flattens = [("mesh", self.offsets_of("mesh", f["dims"])) for f in flattened]
            roots = ["mesh"]
        else:
            made = [op.get("name", op.get("dim", "_".join(op["flatten"]))) for op in spec["meshes"] if "flatten" in op]
            self.flattens = [(name, self.meshes[name].offsets[0]) for name in made]
            roots = [op["name"] for op in spec["meshes"] if "world" in op]
        one_dim = [name for name in roots if len(self.meshes[name].dims) == 1 and "meshes" in spec]
        self.of_native = self.flattens + [(name, self.meshes[name].offsets[0]) for name in one_dim]

    def offsets_of(self, name, dims):
        mesh = self.meshes[name]
        return joined([mesh.offsets[mesh.dims.index(d)] for d in dims])

    def has(self, native, name, offsets):
        """Whether a flatten in the mesh's universe serves the ranks at these offsets."""
        alike = (lambda one: sorted(one) == sorted(offsets)) if native else (lambda one: one == offsets)
        ids = self.meshes[name].ids  # views have the list of their root
        return any(self.meshes[of].ids is ids and alike(one) for of, one in (self.of_native if native else self.flattens))


def check_step(declared, plan, red, seen, parts, where):
    """A collective's group is that of its ranks, and declared where it must be."""
    mesh, native = seen.before.state.mesh, red["rules"] == "native"
    step, parts = seen.step, [p for p in parts if p.size > 1]
    if not parts:
        return
    group = next((g for g in plan["groups"] if g["id"] == step["group"]), None)
    if group is None:
        raise Complaint("group", f"{where}: the plan has no group '{step['group']}'")
    named, meant = offsets_of_layout(group["layout"]), offsets_of_parts(parts, mesh)
    if named != meant and (not native or len(parts) == 1 or sorted(named) != sorted(meant)):
        raise Complaint("group", f"{where}: group '{group['id']}' is {group['layout']}, the step's ranks are at {meant}")
    several = len({p.dim for p in parts}) > 1
    if several and plan["options"]["groups"] == "declared" and not declared.has(native, mesh.name, meant):
        raise Complaint("group", f"{where}: no flatten of the ranks at {meant} is declared")


def check_warnings(declared, red, where):
    """No flatten is said to be missing that the spec declares."""
    native = red["rules"] == "native"
    for warning in red.get("warnings", []):
        if warning["kind"] != "missing_flatten":
            continue
        name, dims = warning["mesh"], warning["dims"]
        if declared.has(native, name, declared.offsets_of(name, dims)):
            raise Complaint("warning", f"{where}: {dims} of mesh {name} are declared flattened")
