#!/usr/bin/env python3
"""Calibrates a topology on this machine's MPI and says how well it predicts sizes that it was not fitted from, and what the noise is.

usage: calibration.py MESHPLAN [--ranks N,N] [--backend mpi|host] [--repeat N] [--passes N] [--smallest BYTES] [--largest BYTES] [--prefix WORDS] [--keep FOLDER]

Measures (`run --measure`) all_gather, reduce_scatter, all_reduce and all_to_all over all ranks, and exchange, which turns a tensor on a mesh of 2 x
RANKS / 2 (with 2 ranks: moves its shard), at sizes of 1 and 1.5 times powers of two. `calibrate` fits a topology to both reports; every other
size of each curve is held out of a second fit, which predicts it. Then everything is measured again: the same rows twice are the noise, and the
topology is compared with rows that it has never seen (--against).

--passes: how often all sizes are measured one behind the other, of which every row has the median: on a machine with other work, what disturbs one
pass does not disturb the next.
--prefix: what to start processes with, such as "chrt -r 10" where others work beside. MESHPLAN_BACKENDS says where the backends are.
"""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

COLLECTIVES = {"all_gather": (["S(0)"], ["R"]), "reduce_scatter": (["P(sum)"], ["S(0)"]), "all_reduce": (["P(sum)"], ["R"]),
               "all_to_all": (["S(0)"], ["S(1)"])}


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def specs(ranks, sizes):
    """By planner: collectives as PyTorch plans them, and exchanges, which only the optimal planner makes."""
    line, grid = [{"name": "x", "size": ranks}], [{"name": "y", "size": 2}, {"name": "x", "size": ranks // 2}]
    moved = {"exchange": (["S(0)", "S(1)"], ["S(1)", "S(0)"]) if ranks >= 4 else (["S(0)"], ["S(1)"])}
    for planner, dims, ends in (("greedy", line, COLLECTIVES), ("optimal", grid if ranks >= 4 else line, moved)):
        redistributions = [{"id": f"{op}.{size}", "tensor": {"shape": [64, size // 256], "dtype": "float32"}, "src": src, "dst": dst}
                           for op, (src, dst) in ends.items() for size in sizes]
        yield planner, {"schema": "meshplan/spec/1", "mesh": {"dims": dims}, "redistributions": redistributions}


def measured(paths):
    """(planner, redistribution, step) -> the median of the reports' medians."""
    times = {}
    for path in paths:
        planner = os.path.basename(path).split(".")[1]
        for r in json.load(open(path))["redistributions"]:
            for i, s in enumerate(r["steps"]):
                if "time" in s and s["level"] >= 0:
                    times.setdefault((planner, r["id"], i), []).append(s["time"]["median_ns"])
    return {key: statistics.median(all_of) for key, all_of in times.items()}


def noise(first, second):
    """Factors between two measurements of the same rows."""
    return [max(a / second[key], second[key] / a) for key, a in first.items()]


def quality(factors):
    return (f"factor {statistics.median(factors):.3f} in the median, {math.exp(statistics.mean(map(math.log, factors))):.3f} in the geometric mean, "
            f"{max(factors):.2f} at most")


def by_op(table):
    """The held-out factors of each op, from the lines of calibrate's table."""
    found = {}
    for words in (line.split() for line in table.splitlines() if not line.startswith("#")):
        if len(words) == 8:
            found.setdefault(words[0], []).append(float(words[7]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshplan")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--repeat", default="40")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--smallest", type=int, default=1 << 12)
    parser.add_argument("--largest", type=int, default=1 << 24)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    folder = arguments.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    sizes = []
    while (size := arguments.smallest << len(sizes) // 2) <= arguments.largest:
        sizes.append(size * 3 // 2 if len(sizes) % 2 else size)
    bad = False
    for ranks in (int(n) for n in arguments.ranks.split(",")):
        def file(what):
            return os.path.join(folder, f"{ranks}.{what}.json")
        for planner, spec in specs(ranks, sizes):
            with open(file(planner + ".spec"), "w") as out:
                json.dump(spec, out)
            run([arguments.meshplan, "plan", file(planner + ".spec"), "--planner", planner, "-o", file(planner), "-q"])
        reports = {"first": [], "second": []}
        for turn, paths in reports.items():
            for number, planner in itertools.product(range(arguments.passes), ("greedy", "optimal")):
                paths.append(file(f"{planner}.{turn}.{number}"))
                start = ["--launch", str(ranks)] if arguments.backend == "mpi" else []
                run(arguments.prefix.split() + [arguments.meshplan, "run", file(planner), "--backend", arguments.backend, *start, "--full-size",
                                                "--measure", "--repeat", arguments.repeat, "--report", paths[-1], "-q"])
        table = run([arguments.meshplan, "calibrate", *reports["first"], "-o", file("topology"), "-q"])
        lines = [line[2:] for line in table.splitlines() if line.startswith("# ")]
        print(f"{ranks} ranks, {arguments.backend}, {arguments.repeat} repetitions, sizes {sizes[0]} to {sizes[-1]} bytes")
        print(f"  {lines[-2]}")
        print(f"  {lines[-1]}")
        for op, factors in by_op(table).items():
            print(f"    {op:15} {quality(factors)}")
            bad = bad or statistics.median(factors) > 1.10 or max(factors) > 1.5
        twice = noise(measured(reports["first"]), measured(reports["second"]))
        print(f"  measured twice  {len(twice):5} rows: {quality(twice)}")
        for again in reports["second"]:
            lines = run([arguments.meshplan, "calibrate", "--topology", file("topology"), "--against", again, "-q"]).splitlines()
            print(f"  the second time {lines[-1][12:].strip()}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
