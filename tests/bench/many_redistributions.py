#!/usr/bin/env python3
"""Writes a spec of many redistributions, few of them distinct, plans it and prints what that took.

usage: many_redistributions.py MESHPLAN [--redistributions N] [--distinct N] [--planner NAME] [--topology NAME] [--seed N] [--keep FOLDER]

Random meshes of 64 to 512 ranks would share nothing: all are on one mesh dp 8 x cp 2 x tp 4, with tensors of rank 2 and 3, pending sums
among the sources. Printed: the planner's own seconds (as `plan -v` says them), the processor and wall time of the whole process and the most
memory it held; then the same for `verify` of the plan that it wrote.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

MESH = [("dp", 8), ("cp", 2), ("tp", 4)]


def redistribution(rng):
    rank = rng.choice([2, 2, 3])
    shape = [rng.choice([256, 512, 1024, 4096]) for _ in range(rank)]
    shards = [f"S({d})" for d in range(rank)]
    src = [rng.choice(["R", "P(sum)"] + shards) for _ in MESH]
    dst = [rng.choice(["R"] + shards) for _ in MESH]
    return {"tensor": {"shape": shape, "dtype": rng.choice(["bfloat16", "float32"])}, "src": src, "dst": dst}


def spec_of(count, distinct, seed):
    rng = random.Random(seed)
    kinds = {}
    while len(kinds) < distinct:
        made = redistribution(rng)
        kinds[json.dumps(made)] = made
    kinds = list(kinds.values())
    order = list(range(distinct)) + [rng.randrange(distinct) for _ in range(count - distinct)]
    rng.shuffle(order)
    listed = [{"id": f"layer.{i}", **kinds[k]} for i, k in enumerate(order)]
    mesh = {"dims": [{"name": name, "size": size} for name, size in MESH]}
    return {"schema": "meshplan/spec/1", "mesh": mesh, "redistributions": listed}


def run(command):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    if status != 0:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}:\n{said[-2000:]}")
    return said, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshplan")
    parser.add_argument("--redistributions", type=int, default=100_000)
    parser.add_argument("--distinct", type=int, default=1_000)
    parser.add_argument("--planner", default="optimal")
    parser.add_argument("--topology", default="h100")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="leave spec.json and plan.json in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        spec, plan = os.path.join(folder, "spec.json"), os.path.join(folder, "plan.json")
        with open(spec, "w") as out:
            json.dump(spec_of(args.redistributions, args.distinct, args.seed), out)
        print(f"{args.redistributions} redistributions, {args.distinct} distinct (seed {args.seed}), planner {args.planner}, "
              f"topology {args.topology}: {os.path.getsize(spec) / 1e6:.0f} MB")
        said, wall, cpu, mb = run([args.meshplan, "plan", spec, "-o", plan, "-v", "--planner", args.planner, "--topology", args.topology])
        planned = re.search(r"planned in (\d+) ms", said)
        print(f"plan    planning {int(planned.group(1)) / 1000:.2f} s, process {cpu:.2f} s of processor, {wall:.2f} s wall, {mb:.0f} MB, "
              f"{os.path.getsize(plan) / 1e6:.0f} MB written")
        _, wall, cpu, mb = run([args.meshplan, "verify", plan])
        print(f"verify  process {cpu:.2f} s of processor, {wall:.2f} s wall, {mb:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
