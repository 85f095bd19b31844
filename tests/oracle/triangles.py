#!/usr/bin/env python3
"""No plan is dearer than two plans in a row: A -> C against A -> B, B -> C, on meshes that people run.

    tests/oracle/triangles.py --meshplan build/meshplan --seeds 0:40 [--triples 25] [--jobs 2]

Without a memory limit, as a plan of two may hold more on the way. Plans that are not proven may be
beaten: they are told, and count against --unproven (percent of the triples).
"""

import argparse
import concurrent.futures
import json
import random
import subprocess
import sys

DEGREES = {"dp": [2, 3, 4, 6, 8, 12, 16, 24, 48], "fsdp": [2, 4, 6, 8, 12, 16], "cp": [2, 4], "ep": [2, 4, 8], "tp": [2, 4, 6, 8]}
MESHES = [("dp", "tp"), ("fsdp", "tp"), ("dp", "fsdp"), ("dp", "ep"), ("fsdp", "cp", "tp"), ("dp", "fsdp", "tp"), ("dp", "fsdp", "cp", "tp")]
SHAPES = [[16, 8192, 4096], [24, 1000, 768], [8, 2048, 5120], [4096, 4096], [14336, 4096], [128256, 8192], [50257, 1600],
          [5003, 512], [12288, 4097], [60, 1408, 2048], [64, 14336, 4096]]
MOST_RANKS = 1024


def placements(rng, mesh, rank, sums):
    return [rng.choice([f"S({d})" for d in range(rank)] * 2 + ["R", "R"] + (["P(sum)"] if sums else [])) for _ in mesh]


def spec_of(seed, triples):
    """Three redistributions a triple, one after the other: A -> B, B -> C, A -> C."""
    rng = random.Random(seed)
    while True:
        mesh = [(name, rng.choice(DEGREES[name])) for name in rng.choice(MESHES)]
        ranks = 1
        for _, size in mesh:
            ranks *= size
        if ranks <= MOST_RANKS:
            break
    names = [name for name, _ in mesh]
    flattened = [{"dims": names[i:j]} for i in range(len(names)) for j in range(i + 2, len(names) + 1) if rng.random() < 0.4]
    redistributions = []
    while len(redistributions) < 3 * triples:
        shape = rng.choice(SHAPES)
        sums = rng.random() < 0.3
        a, b, c = placements(rng, mesh, len(shape), sums), placements(rng, mesh, len(shape), False), placements(rng, mesh, len(shape), False)
        if a == b or b == c or a == c:
            continue
        for leg, src, dst in (("ab", a, b), ("bc", b, c), ("ac", a, c)):
            redistributions.append({"id": f"{len(redistributions) // 3}.{leg}", "tensor": {"shape": shape, "dtype": "bfloat16"}, "src": src, "dst": dst})
    return {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": name, "size": size} for name, size in mesh], "flattened": flattened},
            "topology": rng.choice(["h100", "uniform", "gb200-nvl72"]), "options": {"groups": rng.choice(["any", "declared"]), "max_memory_bytes": -1},
            "redistributions": redistributions}


def ask(meshplan, seed, triples):
    spec = spec_of(seed, triples)
    done = subprocess.run([meshplan, "plan", "-", "-o", "-"], input=json.dumps(spec), capture_output=True, text=True)
    if done.returncode != 0:
        return [f"seed {seed}: exit {done.returncode}: {done.stderr.strip()}"], []
    plans = json.loads(done.stdout)["redistributions"]
    # A redistribution with an earlier one's question says so instead of repeating its figures.
    known = {}
    for plan in plans:
        known[plan["id"]] = known[plan["same_as"]] if "same_as" in plan else plan
    wrong, beaten = [], []
    mesh = "x".join(str(dim["size"]) for dim in spec["mesh"]["dims"])
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
    parser.add_argument("--seeds", default="0:40")
    parser.add_argument("--triples", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--unproven", type=float, default=0.5, help="percent of triples that plans not proven may lose")
    args = parser.parse_args()
    low, high = (int(text) for text in args.seeds.split(":"))
    wrong, beaten = [], []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for some_wrong, some_beaten in pool.map(lambda seed: ask(args.meshplan, seed, args.triples), range(low, high)):
            wrong += some_wrong
            beaten += some_beaten
    for what in wrong:
        print(f"proven, and beaten: {what}")
    for what in beaten:
        print(f"not proven, and beaten: {what}")
    triples = (high - low) * args.triples
    print(f"{triples} triples: {len(wrong)} proven plans beaten, {len(beaten)} others")
    return 1 if wrong or 100 * len(beaten) > args.unproven * triples else 0


if __name__ == "__main__":
    sys.exit(main())
