#!/usr/bin/env python3
"""Which single redistributions take the most processor time to plan, advice and verification included.

    tests/bench/slowest_plans.py --meshplan build/meshplan                 every case, the slowest 20
    tests/bench/slowest_plans.py --meshplan build/meshplan --only factors  one family
    ... --factors 3,101,127 --topologies h100,gb200-nvl72 --limit 1        some of each; fails above a second

Families: factors (2 x F x 8, two tensors, pairs of states), shipped (each redistribution of the
specs in testdata, on every preset), named (cases that once took minutes).
"""

import argparse
import itertools
import json
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = ["a100", "b200", "b300", "gb200-nvl64", "gb200-nvl72", "gb300-nvl72", "h100", "h200", "mi300x", "mi355x", "tpu-v5p", "uniform"]
STATES = [("R", "R", "R"), ("S(0)", "R", "R"), ("R", "S(0)", "R"), ("R", "R", "S(0)"), ("R", "S(1)", "R"),
          ("S(0)", "S(0)", "S(0)"), ("S(0)", "S(1)", "R"), ("S(1)", "R", "S(0)"), ("P(sum)", "P(sum)", "P(sum)"),
          ("P(sum)", "S(0)", "R"), ("R", "P(sum)", "S(1)"), ("P(sum)", "P(sum)", "S(0)")]


def simple(sizes, shape, dtype, src, dst, **more):
    dims = [{"name": "abcdefgh"[i], "size": size} for i, size in enumerate(sizes)]
    return {"schema": "meshplan/spec/1", "mesh": {"dims": dims},
            "redistributions": [{"id": "x", "tensor": {"shape": shape, "dtype": dtype}, "src": list(src), "dst": list(dst), **more}]}


def factors(args):
    for factor in args.factors:
        for shape in ([8192, 8192], [8190, 4099]):
            for src, dst in itertools.permutations(STATES, 2):
                if any(d.startswith("P") and not s.startswith("P") for s, d in zip(src, dst)):
                    continue
                yield f"2x{factor}x8 {shape} {''.join(src)}->{''.join(dst)}", simple((2, factor, 8), shape, "bfloat16", src, dst), "h100"


def shipped(args):
    for path in sorted((ROOT / "testdata" / "specs").glob("*.json")):
        lines = path.read_text().splitlines()
        spec = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
        for one in spec.get("redistributions", []):
            for topology in args.topologies:
                yield f"{path.stem} {one['id']} {topology}", {**{key: spec[key] for key in spec if key not in ("budgets", "allow", "bundles")}, "redistributions": [one]}, topology


def named(_):
    two = (2,) * 7
    yield "2^7 S(0)->S(1) any order", simple(two, [4096, 4096], "float32", ["S(0)"] * 7, ["S(1)"] * 7, dst_order="any"), "h100"
    yield "12x8x8 S(0)RR->RRR", simple((12, 8, 8), [8192, 8192], "bfloat16", ("S(0)", "R", "R"), ("R", "R", "R")), "h100"
    yield "2x100x8 S(0)RR->RRR", simple((2, 100, 8), [8192, 8192], "bfloat16", ("S(0)", "R", "R"), ("R", "R", "R")), "h100"
    yield "2^5 uneven", simple((2,) * 5, [4100, 14336], "bfloat16", ("P(sum)", "S(0)", "S(1)", "S(0)", "S(1)"), ("S(1)", "R", "R", "R", "R")), "h100"
    yield "4x2x3x2 uneven", simple((4, 2, 3, 2), [5, 9, 48], "float64", ("P(sum)", "S(0)", "S(1)", "S(2)"), ("S(2)", "R", "R", "R")), "h100"
    sums = simple((2, 3, 5, 7, 2, 3), [1260, 1260], "float32", ("P(sum)", "S(0)", "P(sum)", "S(1)", "P(sum)", "S(0)"), ("R", "S(1)", "S(0)", "R", "S(0)", "R"))
    yield "2,3,5,7,2,3 pending", sums, "h100"
    for sizes in ((96,), (8, 12), (4, 3, 7), (64,), (5, 13), (3, 4, 5)):
        src = ["S(0)"] + ["S(1)"] * (len(sizes) - 1)
        dst = ["S(1)"] + ["S(0)"] * (len(sizes) - 1)
        yield f"{sizes} uneven", simple(sizes, [8190, 4099], "bfloat16", src, dst), "h100"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshplan", required="--print" not in sys.argv)
    parser.add_argument("--only", choices=["factors", "shipped", "named"])
    parser.add_argument("--factors", type=lambda text: [int(f) for f in text.split(",")], default=list(range(3, 129)))
    parser.add_argument("--topologies", type=lambda text: text.split(","), default=PRESETS)
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--limit", type=float, help="fail where one takes more processor seconds")
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--print", action="store_true", help="print the specs, one a line, for bench_plan_specs -")
    args = parser.parse_args()
    families = {"factors": factors, "shipped": shipped, "named": named}
    took = []
    for name, family in families.items():
        if args.only not in (None, name):
            continue
        for what, spec, topology in itertools.islice(family(args), 0, None, args.every):
            if args.print:
                print(json.dumps({**spec, "topology": topology}))
                continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([args.meshplan, "plan", "-", "-o", "/dev/null", "--topology", topology],
                                  input=json.dumps(spec).encode(), capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if done.returncode not in (0, 3):
                print(f"exit {done.returncode}: {what}: {done.stderr.decode().strip()}", file=sys.stderr)
            took.append((seconds, what))
    if args.print:
        return 0
    took.sort(reverse=True)
    for seconds, what in took[:args.top]:
        print(f"{seconds:7.3f} s  {what}")
    print(f"{len(took)} redistributions, {sum(t for t, _ in took):.1f} s of processor in all")
    return 1 if args.limit is not None and took and took[0][0] > args.limit else 0


if __name__ == "__main__":
    sys.exit(main())
