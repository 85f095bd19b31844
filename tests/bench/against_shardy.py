#!/usr/bin/env python3
"""meshplan beside Shardy's own reshard-to-collectives pass, run from jaxlib, on the same random pairs in one run: bytes that one rank
receives, collectives, planning time. Needs JAX; exits with 77 and says so where it is missing.

usage: against_shardy.py MESHPLAN [--mesh 2,2,2] [--rank 2] [--count 300] [--seed 1] [--extent 4096]

Shardy's time is that of its passes over one module of all pairs, divided by their number. Ours is the whole `meshplan plan` process less
one that plans nothing, divided likewise: it holds reading, verifying, pricing and writing too.
"""
import argparse
import importlib.util
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import time

PASSES = ("builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}),canonicalize,"
          "func.func(sdy-reshard-to-collectives),canonicalize)")
NAMES = "abcdefgh"
OPS = re.compile(r"sdy\.(all_gather|all_slice|all_to_all|collective_permute|reduce_scatter|all_reduce) .*?out_sharding=<@m, \[(.*?)\]")


def random_state(generator, mesh, rank):
    """Axes per tensor dim, major first; every axis shards some dim or none."""
    state = [[] for _ in range(rank)]
    for axis in generator.sample(range(len(mesh)), len(mesh)):
        at = generator.randrange(rank + 1)
        if at < rank:
            state[at].append(axis)
    return state


def shardy_text(state):
    return "[" + ", ".join("{" + ", ".join(f'"{NAMES[a]}"' for a in dim) + "}" for dim in state) + "]"


def shardy_module(mesh, pairs, extent, rank):
    tensor = "x".join([str(extent)] * rank) + "xf32"
    axes = ", ".join(f'"{NAMES[i]}"={size}' for i, size in enumerate(mesh))
    lines = [f"sdy.mesh @m = <[{axes}]>"]
    for i, (src, dst) in enumerate(pairs):
        lines.append(f"func.func @f{i}(%arg0: tensor<{tensor}> {{sdy.sharding = #sdy.sharding<@m, {shardy_text(src)}>}}) -> "
                     f"(tensor<{tensor}> {{sdy.sharding = #sdy.sharding<@m, {shardy_text(dst)}>}}) {{\n"
                     f"  %0 = sdy.reshard %arg0 <@m, {shardy_text(dst)}> : tensor<{tensor}>\n  return %0 : tensor<{tensor}>\n}}")
    return "\n".join(lines)


def run_shardy(text):
    """The module after the passes, and the seconds they took."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir, passmanager
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        passes = passmanager.PassManager.parse(PASSES)
        start = time.perf_counter()
        passes.run(module.operation)
        return str(module), time.perf_counter() - start


def parts(text):
    """Axes of one sharding: per tensor dim (axis, factor before, size or None for the whole axis)."""
    return [[(NAMES.index(a), int(before or 1), int(size) if size else None) for a, before, size in re.findall(r'"(\w)"(?::\((\d+)\)(\d+))?', dim)]
            for dim in re.findall(r"\{([^}]*)\}", text)]


def index_of(rank, mesh, sharding):
    """Which part of the tensor a rank holds, as one index and count a tensor dim."""
    coordinates = []
    for size in reversed(mesh):
        coordinates.insert(0, rank % size)
        rank //= size
    out = []
    for dim in sharding:
        index, count = 0, 1
        for axis, before, size in dim:
            width = size or mesh[axis]
            digit = coordinates[axis] // (mesh[axis] // (before * width)) % width
            index, count = index * width + digit, count * width
        out.append((index, count))
    return out


def shardy_cost(body, src, mesh, total):
    """(bytes that the busiest rank receives, collectives) of one function."""
    current = [[(a, 1, None) for a in dim] for dim in src]
    ranks = math.prod(mesh)
    received, collectives = [0] * ranks, 0
    for op, target in OPS.findall(body):
        after = parts(target)
        local = [total // math.prod(c for _, c in index_of(0, mesh, s)) for s in (current, after)]
        if op == "all_gather":
            moved = [local[1] - local[0]] * ranks
        elif op == "all_to_all":
            before_dims, after_dims = index_of(0, mesh, current), index_of(0, mesh, after)
            group = math.prod(max(1, b[1] // a[1]) for b, a in zip(before_dims, after_dims))
            moved = [local[0] * (group - 1) // group] * ranks
        elif op == "collective_permute":
            moved = [0 if index_of(r, mesh, current) == index_of(r, mesh, after) else local[0] for r in range(ranks)]
        else:
            moved = [0] * ranks
        collectives += op != "all_slice"
        received = [a + b for a, b in zip(received, moved)]
        current = after
    return max(received), collectives


def our_spec(mesh, pairs, extent, rank):
    def placements(state):
        of = {axis: f"S({d})" for d, dim in enumerate(state) for axis in dim}
        return [of.get(a, "R") for a in range(len(mesh))]

    def orders(state):
        return [{"tensor_dim": d, "mesh_dims": [NAMES[a] for a in dim]} for d, dim in enumerate(state) if len(dim) > 1]
    return {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": NAMES[i], "size": s} for i, s in enumerate(mesh)]}, "redistributions": [
        {"id": f"pair {i}", "tensor": {"shape": [extent] * rank, "dtype": "float32"}, "src": placements(src), "dst": placements(dst),
         "src_order": orders(src), "dst_order": orders(dst)} for i, (src, dst) in enumerate(pairs)]}


def run_ours(binary, spec):
    """The plan and the seconds of the process, the least of five."""
    best, text = None, json.dumps(spec)
    for _ in range(5):
        start = time.perf_counter()
        done = subprocess.run([binary, "plan", "-", "--groups", "any", "-q"], input=text, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"meshplan plan: exit {done.returncode}\n{done.stderr[:2000]}")
        best = seconds if best is None else min(best, seconds)
    return json.loads(done.stdout), best


def geometric_mean(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios)) if ratios else 1.0


def main():
    if importlib.util.find_spec("jax") is None:
        print("against_shardy: NOT RUN, JAX is not importable here")
        return 77
    parser = argparse.ArgumentParser()
    parser.add_argument("meshplan", type=pathlib.Path)
    parser.add_argument("--mesh", default="2,2,2")
    parser.add_argument("--rank", type=int, default=2)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--extent", type=int, default=4096)
    given = parser.parse_args()
    mesh, generator, pairs = [int(s) for s in given.mesh.split(",")], random.Random(given.seed), []
    while len(pairs) < given.count:
        src, dst = random_state(generator, mesh, given.rank), random_state(generator, mesh, given.rank)
        if src != dst:
            pairs.append((src, dst))

    text = shardy_module(mesh, pairs, given.extent, given.rank)
    run_shardy(text)  # warm
    module, shardy_seconds = min((run_shardy(text) for _ in range(5)), key=lambda r: r[1])
    bodies = module.split("func.func @f")[1:]
    total = given.extent ** given.rank * 4
    theirs = [shardy_cost(body, src, mesh, total) for body, (src, _) in zip(bodies, pairs)]

    plan, seconds = run_ours(str(given.meshplan), our_spec(mesh, pairs, given.extent, given.rank))
    _, empty = run_ours(str(given.meshplan), {**our_spec(mesh, [], given.extent, given.rank)})
    written = {r["id"]: r for r in plan["redistributions"]}
    totals = [written[r.get("same_as", r["id"])]["totals"] for r in plan["redistributions"]]
    ours = [(t["wire_bytes"], t["collectives"], t["lower_bound_bytes"]) for t in totals]

    worse = [i for i in range(len(pairs)) if ours[i][0] > theirs[i][0] and ours[i][1] >= theirs[i][1]]
    bound = [(o[0] / o[2], t[0] / o[2]) for o, t in zip(ours, theirs) if o[2] > 0]
    print(f"{len(pairs)} pairs, mesh {given.mesh}, float32 {'x'.join([str(given.extent)] * given.rank)}, seed {given.seed}")
    print(f"{'':10} {'bytes / bound (geomean, worst)':>32} {'at the bound':>13} {'collectives':>12} {'us a pair':>10}")
    for name, ratios, count, us in (
            ("meshplan", [b[0] for b in bound], sum(o[1] for o in ours), (seconds - empty) / len(pairs) * 1e6),
            ("Shardy", [b[1] for b in bound], sum(t[1] for t in theirs), shardy_seconds / len(pairs) * 1e6)):
        at = sum(r <= 1 for r in ratios) / max(1, len(ratios))
        print(f"{name:10} {geometric_mean(ratios):>25.3f}, {max(ratios, default=1):5.2f} {at:>12.0%} {count:>12} {us:>10.1f}")
    print(f"pairs where Shardy moves fewer bytes in no more collectives: {len(worse)}")
    for i in worse[:5]:
        print(f"  {shardy_text(pairs[i][0])} -> {shardy_text(pairs[i][1])}: {ours[i][:2]} against {theirs[i]}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
