#!/usr/bin/env python3
"""No plan is dearer than two plans in a row: A -> C against A -> B, B -> C, on meshes that people run.

    tests/oracle/triangles.py --meshplan build/meshplan --seeds 0:40 [--triples 25] [--jobs 2] [--across]

Without a memory limit, as a plan of two may hold more on the way. Plans that are not proven may be
beaten: they are told, and count against --unproven (percent of the triples).
"""

import argparse
import concurrent.futures
import json
import math
import random
import subprocess
import sys

from seeds import seeds_of

DEGREES = {"dp": [2, 3, 4, 6, 8, 12, 16, 24, 48], "fsdp": [2, 4, 6, 8, 12, 16], "cp": [2, 4], "ep": [2, 4, 8], "tp": [2, 4, 6, 8]}
MESHES = [("dp", "tp"), ("fsdp", "tp"), ("dp", "fsdp"), ("dp", "ep"), ("fsdp", "cp", "tp"), ("dp", "fsdp", "tp"), ("dp", "fsdp", "cp", "tp")]
SHAPES = [[16, 8192, 4096], [24, 1000, 768], [8, 2048, 5120], [4096, 4096], [14336, 4096], [128256, 8192], [50257, 1600],
          [5003, 512], [12288, 4097], [60, 1408, 2048], [64, 14336, 4096]]
MOST_RANKS = 1024
MOST_RANKS_ACROSS = 96


def placements(rng, mesh, rank, sums):
    return [rng.choice([f"S({d})" for d in range(rank)] * 2 + ["R", "R"] + (["P(sum)"] if sums else [])) for _ in mesh]


def mesh_of(rng, most_ranks):
    """Its dims as (name, size)."""
    while True:
        mesh = [(name, rng.choice(DEGREES[name])) for name in rng.choice(MESHES)]
        if math.prod(size for _, size in mesh) <= most_ranks:
            return mesh


def dims_of(mesh):
    return [{"name": name, "size": size} for name, size in mesh]


def on_one_mesh(rng):
    """(the mesh part of a spec, the meshes of A, B and C)."""
    mesh = mesh_of(rng, MOST_RANKS)
    names = [name for name, _ in mesh]
    flattened = [{"dims": names[i:j]} for i in range(len(names)) for j in range(i + 2, len(names) + 1) if rng.random() < 0.4]
    return {"mesh": {"dims": dims_of(mesh), "flattened": flattened}}, [("", mesh)] * 3


def across_meshes(rng):
    """The same: A is on the mesh that trains, C on the one that serves, which lies beside it, inside of it or across its end, in order or not;
    B is on either."""
    train, serve = mesh_of(rng, MOST_RANKS_ACROSS), mesh_of(rng, MOST_RANKS_ACROSS)
    many, few = (math.prod(size for _, size in mesh) for mesh in (train, serve))
    first = rng.choice([many, 0, many // 2])
    ranks = list(range(first, first + few))
    if rng.random() < 0.3:
        rng.shuffle(ranks)
    meshes = [{"name": "train", "world": many, "dims": dims_of(train)}, {"name": "serve", "world": few, "dims": dims_of(serve), "ranks": ranks}]
    return {"meshes": meshes}, [("train", train), rng.choice([("train", train), ("serve", serve)]), ("serve", serve)]


def spec_of(seed, triples, across):
    """Three redistributions a triple, one after the other: A -> B, B -> C, A -> C."""
    rng = random.Random(f"across {seed}" if across else seed)
    part, meshes = across_meshes(rng) if across else on_one_mesh(rng)
    redistributions = []
    while len(redistributions) < 3 * triples:
        shape = rng.choice(SHAPES)
        sums = rng.random() < 0.3
        states = [placements(rng, mesh, len(shape), sums and i == 0) for i, (_, mesh) in enumerate(meshes)]
        if not across and (states[0] == states[1] or states[1] == states[2] or states[0] == states[2]):
            continue
        for leg, src, dst in (("ab", 0, 1), ("bc", 1, 2), ("ac", 0, 2)):
            names = [meshes[end][0] for end in (src, dst)]
            on = {"src_mesh": names[0], "dst_mesh": names[1]} if names[0] != names[1] else {"mesh": names[0]} if across else {}
            redistributions.append({"id": f"{len(redistributions) // 3}.{leg}", "tensor": {"shape": shape, "dtype": "bfloat16"}, **on,
                                    "src": states[src], "dst": states[dst]})
    return {"schema": "meshplan/spec/1", **part,
            "topology": rng.choice(["h100", "uniform", "gb200-nvl72"]), "options": {"groups": rng.choice(["any", "declared"]), "max_memory_bytes": -1},
            "redistributions": redistributions}


def ask(meshplan, seed, triples, across):
    spec = spec_of(seed, triples, across)
    done = subprocess.run([meshplan, "plan", "-", "-o", "-"], input=json.dumps(spec), capture_output=True, text=True)
    if done.returncode != 0:
        return [f"seed {seed}: exit {done.returncode}: {done.stderr.strip()}"], []
    plans = json.loads(done.stdout)["redistributions"]
    # A redistribution with an earlier one's question says so instead of repeating its figures.
    known = {}
    for plan in plans:
        known[plan["id"]] = known[plan["same_as"]] if "same_as" in plan else plan
    wrong, beaten = [], []
    mesh = " to ".join("x".join(str(dim["size"]) for dim in mesh["dims"]) for mesh in spec.get("meshes", [spec.get("mesh")]))
    for first in range(0, len(plans), 3):
        asked = spec["redistributions"][first + 2]
        assert plans[first + 2]["id"] == asked["id"]
        ab, bc, ac = (known[plan["id"]] for plan in plans[first:first + 3])
        both = ab["totals"]["predicted_ns"] + bc["totals"]["predicted_ns"]
        if ac["totals"]["predicted_ns"] <= both:
            continue
        what = (f"seed {seed}: {mesh} {spec['topology']} {asked['tensor']['shape']} {''.join(asked['src'])} -> {''.join(asked['dst'])}: "
                f"{ac['totals']['predicted_ns']} ns, by way of {''.join(spec['redistributions'][first]['dst'])} {both} ns")
        (beaten if ac.get("proven_gap_ns", 0) > 0 else wrong).append(what)
    return wrong, beaten


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshplan", required=True)
    parser.add_argument("--seeds", type=seeds_of, default="0:40", help="FIRST:END, several with commas")
    parser.add_argument("--triples", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--across", action="store_true", help="A on one mesh, C on another, B on either")
    parser.add_argument("--unproven", type=float, default=0.5, help="percent of triples that plans not proven may lose")
    args = parser.parse_args()
    wrong, beaten = [], []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for some_wrong, some_beaten in pool.map(lambda seed: ask(args.meshplan, seed, args.triples, args.across), args.seeds):
            wrong += some_wrong
            beaten += some_beaten
    for what in wrong:
        print(f"proven, and beaten: {what}")
    for what in beaten:
        print(f"not proven, and beaten: {what}")
    triples = len(args.seeds) * args.triples
    print(f"{triples} triples: {len(wrong)} proven plans beaten, {len(beaten)} others")
    return 1 if wrong or 100 * len(beaten) > args.unproven * triples else 0


if __name__ == "__main__":
    sys.exit(main())
