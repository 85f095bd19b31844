"""Records the reshardings of jitted JAX functions as a meshplan spec, and lists what XLA compiles
for them beside the plan.

    before, after = NamedSharding(mesh, P("dp")), NamedSharding(mesh, P(None, "tp"))
    spec = jax_shardings.of_pair((4096, 4096), "float32", before, after)
    spec = jax_shardings.of_function(jax.jit(step), *arguments)

    python -m meshplan.jax_shardings --devices 8 -o spec.json program.py
    python -m meshplan.jax_shardings --devices 8 -o spec.json --compare-xla program.py

Arguments are arrays, or ShapeDtypeStructs with shardings; program.py defines functions() ->
[(name, jitted function, arguments), ...].

What is recorded: shardings of inputs, outputs and constraints are propagated by Shardy, as XLA
does, and every explicit reshard that then stands between two operations is one redistribution; a
reduction over mesh axes is a pending sum, joined with the reshard that follows it. What has no form
in a spec (a part of a mesh axis, a shard_map body, an axis type without a dtype) is listed in
`x-not-covered`.

Written for jax 0.10; needs a Shardy that can insert explicit reshards (jaxlib 0.7 or newer).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys

from meshplan.jax_programs import DEFINES, BadProgram, functions_of
from meshplan.recorded_ids import ids_of
from meshplan.recorded_spec import (
    NotCovered,
    NotReplaced,
    destination,
    handwritten,
    kind_of,
    to_text,
    with_handwritten,
    write_file,
)
from meshplan.xla import compare

DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "f8E4M3FN": "float8_e4m3",
    "f8E5M2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "ui8": "uint8",
    "i1": "bool",
}
PROPAGATE = (
    "builtin.module(sdy-propagation-pipeline,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}))"
)


# ---------------------------------------------------------------- shardings


class Sharding:
    """Axes per tensor dim, major first, and the axes whose sum is pending."""

    def __init__(self, mesh, dims, pending=()):
        self.mesh, self.dims, self.pending = mesh, [list(d) for d in dims], frozenset(pending)

    def __eq__(self, other):
        return (self.mesh, self.dims, self.pending) == (other.mesh, other.dims, other.pending)

    def placements(self, axes):
        """One placement a mesh axis, and the orders that are not the mesh's."""
        of = {axis: f"S({d})" for d, dim in enumerate(self.dims) for axis in dim}
        of.update({axis: "P(sum)" for axis in self.pending})
        orders = [
            {"tensor_dim": d, "mesh_dims": dim}
            for d, dim in enumerate(self.dims)
            if [a for a in axes if a in dim] != dim
        ]
        return [of.get(a, "R") for a in axes], orders


def parse_sharding(text, rank):
    """From Shardy's text: <@mesh, [{"a", "b"}, {}], unreduced={"c"}>."""
    match = re.search(r"<@?(\w+|mesh<.*?>), \[(.*?)\]((?:, \w+=\{.*?\})*)>", text)
    if match is None:
        return Sharding(None, [[]] * rank)
    if ":(" in match.group(2):
        raise NotCovered("a part of a mesh axis: " + match.group(2))
    dims = [re.findall(r'"([^"]+)"', dim) for dim in re.findall(r"\{([^}]*)\}", match.group(2))]
    pending = re.search(r"unreduced=\{(.*?)\}", match.group(3))
    return Sharding(
        match.group(1), dims, re.findall(r'"([^"]+)"', pending.group(1)) if pending else ()
    )


def parse_mesh(text):
    """<["a"=2, "b"=4], device_ids=[...]> to names, sizes and ranks (None: in order)."""
    axes = [(name, int(size)) for name, size in re.findall(r'"([^"]+)"=(\d+)', text)]
    ids = re.search(r"device_ids=\[([\d, ]*)\]", text)
    return axes, [int(i) for i in ids.group(1).split(",")] if ids and ids.group(1) else None


# ---------------------------------------------------------------- programs


class Program:
    """A lowered function after Shardy's propagation: its meshes, and its redistributions with how
    often each runs."""

    def __init__(self, text):
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir, passmanager

        self.meshes, self.found, self.not_covered = {}, [], []
        with mlir.make_ir_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            passmanager.PassManager.parse(PROPAGATE).run(module.operation)
            self.functions = {}
            for op in module.body.operations:
                if op.operation.name == "sdy.mesh":
                    self.meshes[ir.StringAttr(op.attributes["sym_name"]).value] = parse_mesh(
                        str(op.attributes["mesh"])
                    )
                elif op.operation.name == "func.func":
                    self.functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
            self.ir = ir
            self.walk_function("main", 1, ())

    def walk_function(self, name, times, stack):
        if name in stack or name not in self.functions:
            return
        for block in self.functions[name].regions[0]:
            self.walk_block(block, times, (*stack, name))

    def walk_block(self, block, times, stack):
        for op in block.operations:
            operation = op.operation
            if operation.name in ("func.call", "call"):
                self.walk_function(
                    self.ir.FlatSymbolRefAttr(operation.attributes["callee"]).value, times, stack
                )
            elif operation.name in ("sdy.reshard", "sdy.sharding_constraint"):
                self.reshard(operation, times)
            elif operation.name == "sdy.all_reduce" and self.joined(operation) is None:
                self.reduction(operation, times, None)
            elif operation.name == "sdy.manual_computation":
                self.refuse(
                    "shard_map", "its body moves data by its own collectives", times, operation
                )
                continue
            rounds = self.rounds_of(operation) if operation.name == "stablehlo.while" else 1
            for region in operation.regions:
                for inner in region:
                    self.walk_block(inner, times * rounds, stack)

    def rounds_of(self, loop):
        """The constant that a counted loop compares its counter with; 1 where there is none."""
        for op in loop.regions[0].blocks[0].operations:
            constant = (
                re.search(r"dense<(\d+)> : tensor<i\d+>", str(op))
                if "constant" in op.operation.name
                else None
            )
            if constant:
                return int(constant.group(1))
        compared = re.findall(r"dense<(\d+)> : tensor<i\d+>", str(loop.regions[0]))
        return int(compared[0]) if compared else 1

    def sharding_of(self, value):
        rank = len(self.ir.ShapedType(value.type).shape)
        owner = value.owner
        if isinstance(owner, self.ir.Block):
            parent = owner.owner
            if parent.operation.name != "func.func":
                return self.loop_sharding(parent.operation, value, rank)
            attributes = parent.attributes["arg_attrs"] if "arg_attrs" in parent.attributes else []
            at = self.ir.BlockArgument(value).arg_number
            text = str(attributes[at]) if at < len(attributes) else ""
            found = re.search(r"sdy\.sharding = (#sdy\.sharding<.*>)", text)
            return parse_sharding(found.group(1), rank) if found else Sharding(None, [[]] * rank)
        operation = owner.operation if hasattr(owner, "operation") else owner
        for name in ("sharding", "out_sharding"):
            if operation.name.startswith("sdy.") and name in operation.attributes:
                return parse_sharding(str(operation.attributes[name]), rank)
        if "sdy.sharding" not in operation.attributes:
            return Sharding(None, [[]] * rank)
        all_results = re.findall(
            r"<@\w+, \[.*?\](?:, \w+=\{.*?\})*>", str(operation.attributes["sdy.sharding"])
        )
        at = self.ir.OpResult(value).result_number
        return (
            parse_sharding(all_results[at], rank)
            if at < len(all_results)
            else Sharding(None, [[]] * rank)
        )

    def loop_sharding(self, loop, value, rank):
        """A loop's arguments are sharded as its results."""
        at = self.ir.BlockArgument(value).arg_number
        if at < len(loop.results):
            return self.sharding_of(loop.results[at])
        return Sharding(None, [[]] * rank)

    def joined(self, reduction):
        """The reshard that alone uses a reduction's result: both are one redistribution."""
        users = [use.owner.operation for use in reduction.results[0].uses]
        return users[0] if len(users) == 1 and users[0].name == "sdy.reshard" else None

    def reshard(self, operation, times):
        source = operation.operands[0].owner
        source = getattr(source, "operation", source)
        if getattr(source, "name", "") == "sdy.all_reduce":
            if self.joined(source) is not None:
                return self.reduction(source, times, operation)
        self.add(
            operation,
            operation.operands[0],
            lambda: (
                self.sharding_of(operation.operands[0]),
                self.sharding_of(operation.results[0]),
            ),
            times,
        )

    def reduction(self, operation, times, then):
        def ends():
            before, after = self.sharding_of(operation.operands[0]), self.sharding_of(
                (then or operation).results[0]
            )
            axes = str(operation.attributes["reduction_axes"])
            if ":(" in axes:
                raise NotCovered("a reduction over a part of a mesh axis: " + axes)
            return (
                Sharding(
                    after.mesh, before.dims, before.pending | set(re.findall(r'"([^"]+)"', axes))
                ),
                after,
            )

        self.add(then or operation, operation.operands[0], ends, times)

    def add(self, operation, value, ends, times):
        try:
            source, target = ends()
            mesh = target.mesh or source.mesh
            if mesh is None or (source.dims, source.pending) == (target.dims, target.pending):
                return
            tensor = self.ir.ShapedType(value.type)
            dtype = str(tensor.element_type)
            if dtype not in DTYPES:
                raise NotCovered("element type " + dtype)
            self.found.append(
                (
                    mesh,
                    {"shape": list(tensor.shape), "dtype": DTYPES[dtype]},
                    source,
                    target,
                    times,
                    self.notes_of(operation),
                )
            )
        except NotCovered as reason:
            self.refuse("reshard", str(reason), times, operation)

    def refuse(self, what, reason, times, operation):
        self.not_covered.append(
            {"what": what, "reason": reason, "count": times, **self.notes_of(operation)}
        )

    @staticmethod
    def notes_of(operation):
        location = str(operation.location)
        notes = {}
        named = re.search(r'"(jit\([^"]*)"', location)
        if named:
            notes["x-op"] = named.group(1)
        lines = [
            (f, n) for f, n in re.findall(r'"([^"]+\.py)":(\d+)', location) if "/jax/" not in f
        ]
        if lines:
            notes["x-source"] = f"{os.path.basename(lines[0][0])}:{lines[0][1]}"
        return notes


# ---------------------------------------------------------------- specs


def mesh_part(meshes):
    """The spec's mesh or meshes: the simple form for one, views of a flat world for several."""
    if not meshes:
        raise NotCovered("it has no mesh: give its arguments NamedShardings")
    if len(meshes) == 1:
        axes, ranks = next(iter(meshes.values()))
        return {
            "mesh": {
                "dims": [{"name": n, "size": s} for n, s in axes],
                **({"ranks": ranks} if ranks else {}),
            }
        }
    sizes = {math.prod(s for _, s in axes) for axes, _ in meshes.values()}
    orders = {json.dumps(ranks) for _, ranks in meshes.values()}
    if len(sizes) > 1 or len(orders) > 1:
        raise NotCovered("meshes over different devices in one program; record them one by one")
    (world,), ranks = sizes, json.loads(orders.pop())
    root = {"name": "world", "world": world, **({"ranks": ranks} if ranks else {})}
    return {
        "meshes": [root]
        + [
            {
                "name": name,
                "of": "world",
                "unflatten": "world",
                "sizes": [s for _, s in axes],
                "dims": [n for n, _ in axes],
            }
            for name, (axes, _) in meshes.items()
        ]
    }


def make_spec(meshes, found, not_covered):
    """`found`: (mesh name, tensor, source, target, count, notes)."""
    import jax

    spec = {
        "schema": "meshplan/spec/1",
        "x-recorded": {"by": "meshplan.jax_shardings", "jax": jax.__version__},
        **mesh_part(meshes),
    }
    entries = {}
    for mesh, tensor, source, target, count, notes in found:
        axes = [name for name, _ in meshes[mesh][0]]
        (src, src_order), (dst, dst_order) = source.placements(axes), target.placements(axes)
        entry = {
            **({"mesh": mesh} if "meshes" in spec else {}),
            "tensor": tensor,
            "src": src,
            "dst": dst,
        }
        if src_order:
            entry["src_order"] = src_order
        if dst_order:
            entry["dst_order"] = dst_order
        known = entries.setdefault(json.dumps(entry), {**entry, "count": 0, **notes})
        known["count"] += count
    asked = list(entries.values())
    ids = ids_of([{**entry, "label": kind_of(entry["src"], entry["dst"])} for entry in asked])
    spec["redistributions"] = [{"id": name, **entry} for name, entry in zip(ids, asked)]
    if not_covered:
        spec["x-not-covered"] = not_covered
    return spec


def of_named_sharding(sharding, rank):
    """A NamedSharding as axes per tensor dim."""
    dims = [
        [] if part is None else [part] if isinstance(part, str) else list(part)
        for part in sharding.spec
    ]
    return Sharding(
        "mesh", dims + [[]] * (rank - len(dims)), getattr(sharding.spec, "unreduced", None) or ()
    )


def of_pair(shape, dtype, source, target):
    """The spec of one resharding between two NamedShardings of one mesh."""
    if source.mesh.shape != target.mesh.shape:
        raise NotCovered("the two shardings have different meshes")
    axes = list(source.mesh.shape.items())
    ranks = [d.id for d in source.mesh.devices.flat]
    meshes = {"mesh": (axes, None if ranks == list(range(len(ranks))) else ranks)}
    tensor = {
        "shape": [int(n) for n in shape],
        "dtype": {"float8_e4m3fn": "float8_e4m3"}.get(str(dtype), str(dtype)),
    }
    found = [
        (
            "mesh",
            tensor,
            of_named_sharding(source, len(shape)),
            of_named_sharding(target, len(shape)),
            1,
            {},
        )
    ]
    return make_spec(meshes, found, [])


def of_function(jitted, *arguments):
    """The spec of everything that a jitted function reshards."""
    program = Program(jitted.lower(*arguments).as_text(debug_info=True))
    return make_spec(program.meshes, program.found, program.not_covered)


def merge(specs):
    """Several functions in one file; each must run on the same meshes."""
    first = next(iter(specs.values()))
    out = {k: v for k, v in first.items() if k not in ("redistributions", "x-not-covered")}
    out["redistributions"], refused = [], []
    for name, spec in specs.items():
        if {k: spec.get(k) for k in ("mesh", "meshes")} != {
            k: first.get(k) for k in ("mesh", "meshes")
        }:
            raise BadProgram(
                f"{name} runs on other meshes than the functions before it: "
                f"record it alone (--only {name})"
            )
        out["redistributions"] += [
            {**r, "id": f"{name}.{r['id']}" if len(specs) > 1 else r["id"]}
            for r in spec["redistributions"]
        ]
        refused += spec.get("x-not-covered", [])
    if refused:
        out["x-not-covered"] = refused
    return out


def specs_of(given):
    """The spec of every function of the program that is asked for, by its name."""
    specs = {}
    functions = functions_of(given.program)
    for name, jitted, arguments in functions:
        if given.only in (None, name):
            try:
                specs[name] = of_function(jitted, *arguments)
            except NotCovered as reason:
                raise BadProgram(f"{given.program}: {name} is not recorded: {reason}") from None
            if given.compare_xla:
                print(compare(name, jitted, arguments, specs[name], given.devices))
    if not specs:
        there = ", ".join(name for name, _, _ in functions)
        raise BadProgram(f"no function {given.only} in {given.program}, which has: {there}")
    return specs


def main():
    parser = argparse.ArgumentParser(
        prog="python -m meshplan.jax_shardings",
        description="Records the reshardings of jitted JAX functions as a meshplan spec.",
    )
    parser.add_argument(
        "--devices", type=int, default=8, help="devices that the CPU pretends to have (default 8)"
    )
    parser.add_argument("--only", metavar="NAME", help="only the function of this name")
    parser.add_argument(
        "--compare-xla", action="store_true", help="list what XLA compiles, beside the plan"
    )
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument(
        "program",
        help=f"a Python file that defines {DEFINES}",
    )
    given = parser.parse_args()
    try:
        output = destination(given.output)
        kept = handwritten(output)
    except NotReplaced as refusal:
        parser.error(str(refusal))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    devices = f"--xla_force_host_platform_device_count={given.devices}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {devices}".strip()
    sys.path.insert(0, os.path.dirname(os.path.abspath(given.program)))
    try:
        spec = with_handwritten(merge(specs_of(given)), kept)
    except BadProgram as refusal:
        print(f"meshplan: {refusal}", file=sys.stderr)
        return 2
    write_file(output, to_text(spec))
    for refused in spec.get("x-not-covered", []):
        print(
            f"not covered: {refused['what']} x{refused['count']}: {refused['reason']}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
