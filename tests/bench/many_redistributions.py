#!/usr/bin/env python3
"""Writes a spec of many redistributions, few of them distinct, and prints what the commands take that write and read its plan.

usage: many_redistributions.py MESHPLAN [--workload llama|random] [--redistributions N] [--distinct N] [--planner NAME] [--topology NAME] [--seed N]
                               [--keep FOLDER]

llama: the weights of decoder layers of many widths, gathered for the forward and the backward pass and their gradients reduced, layer after
layer. random: any placements of tensors of rank 2 and 3, shuffled. Both are on one mesh dp 8 x cp 2 x tp 4, as random meshes of 64 to 512 ranks
would share nothing.
Printed: the planner's own seconds (as `plan -v` says them), the processor and wall time of each process and the most memory it held.
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


def random_redistribution(rng):
    rank = rng.choice([2, 2, 3])
    shape = [rng.choice([256, 512, 1024, 4096]) for _ in range(rank)]
    shards = [f"S({d})" for d in range(rank)]
    src = [rng.choice(["R", "P(sum)"] + shards) for _ in MESH]
    dst = [rng.choice(["R"] + shards) for _ in MESH]
    return {"tensor": {"shape": shape, "dtype": rng.choice(["bfloat16", "float32"])}, "src": src, "dst": dst}


def random_list(count, distinct, seed):
    rng = random.Random(seed)
    kinds = {}
    while len(kinds) < distinct:
        made = random_redistribution(rng)
        kinds[json.dumps(made)] = made
    kinds = list(kinds.values())
    order = list(range(distinct)) + [rng.randrange(distinct) for _ in range(count - distinct)]
    rng.shuffle(order)
    return [{"id": f"layer.{i}", **kinds[k]} for i, k in enumerate(order)]


def layer_of(width):
    """What a decoder layer of this width redistributes: (name, redistribution) in the order of a step."""
    hidden, kv = 7 * width // 2, width // 4
    weights = [("attention.wq", [width, width], "S(0)"), ("attention.wk", [kv, width], "S(0)"), ("attention.wv", [kv, width], "S(0)"),
               ("attention.wo", [width, width], "S(1)"), ("feed_forward.w1", [hidden, width], "S(0)"),
               ("feed_forward.w3", [hidden, width], "S(0)"), ("feed_forward.w2", [width, hidden], "S(1)"),
               ("attention_norm", [width], "R"), ("ffn_norm", [width], "R")]
    found = []
    for name, shape, tp in weights:
        bf16, kept = {"shape": shape, "dtype": "bfloat16"}, ["S(0)", "S(0)", tp]
        for when in ("forward", "backward"):
            found.append((f"{name}.weight.gather.{when}", {"tensor": bf16, "src": kept, "dst": ["R", "R", tp]}))
        found.append((f"{name}.weight.grad.reduce", {"tensor": {"shape": shape, "dtype": "float32"}, "src": ["P(avg)", "P(sum)", tp], "dst": kept}))
    return found


def llama_list(count, distinct):
    models, kinds = [], set()
    while len(kinds) < distinct:
        width = 512 * (len(models) + 2)
        models.append((width, layer_of(width)))
        kinds |= {json.dumps(made) for _, made in models[-1][1]}
    listed, layer = [], 0
    while len(listed) < count:
        for width, redistributions in models:
            listed += [{"id": f"llama-{width}.layers.{layer}.{name}", **made} for name, made in redistributions]
        layer += 1
    return listed[:count]


def spec_of(workload, count, distinct, seed):
    listed = llama_list(count, distinct) if workload == "llama" else random_list(count, distinct, seed)
    mesh = {"dims": [{"name": name, "size": size} for name, size in MESH]}
    return {"schema": "meshplan/spec/1", "mesh": mesh, "redistributions": listed}


def run(command, codes=(0,)):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) not in codes:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}:\n{said[-2000:]}")
    return said, f"process {usage.ru_utime + usage.ru_stime:.2f} s of processor, {wall:.2f} s wall, {usage.ru_maxrss / 1024:.0f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshplan")
    parser.add_argument("--workload", choices=["llama", "random"], default="llama")
    parser.add_argument("--redistributions", type=int, default=100_000)
    parser.add_argument("--distinct", type=int, default=1_000)
    parser.add_argument("--planner", default="optimal")
    parser.add_argument("--topology", default="h100")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="leave spec.json, plan.json and other.plan.json in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        spec, plan, other = (os.path.join(folder, name) for name in ("spec.json", "plan.json", "other.plan.json"))
        content = spec_of(args.workload, args.redistributions, args.distinct, args.seed)
        distinct = len({json.dumps({key: r[key] for key in r if key != "id"}) for r in content["redistributions"]})
        with open(spec, "w") as out:
            json.dump(content, out)
        print(f"{args.redistributions} redistributions of {args.workload}, {distinct} distinct (seed {args.seed}), planner {args.planner}, "
              f"topology {args.topology}: {os.path.getsize(spec) / 1e6:.1f} MB")
        flags = ["--planner", args.planner, "-W", "no-missing-flatten"]
        said, took = run([args.meshplan, "plan", spec, "-o", plan, "-v", "--topology", args.topology, *flags])
        planned = re.search(r"planned in (\d+) ms", said)
        print(f"plan              planning {int(planned.group(1)) / 1000:.2f} s, {took}, {os.path.getsize(plan) / 1e6:.1f} MB written")
        run([args.meshplan, "plan", spec, "-o", other, "-q", "--topology", "uniform", *flags])
        for name, command, codes in (("verify", ["verify", plan], (0,)), ("show", ["show", plan], (0,)), ("show --top 10", ["show", plan, "--top", "10"], (0,)),
                                     ("diff, the same", ["diff", plan, plan], (0,)), ("diff, all changed", ["diff", plan, other], (1,))):
            print(f"{name:17} {run([args.meshplan, *command], codes)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
