#!/usr/bin/env python3
"""Fits a topology to measured steps and says how well plans made with it predict them: the sizes that it was fitted from, and sizes between.

usage: calibration.py MESHPLAN [--ranks N,N] [--backend mpi|host] [--repeat N] [--smallest BYTES] [--largest BYTES] [--prefix WORDS] [--keep FOLDER]

Measures (`run --measure`) all_gather, reduce_scatter, all_reduce and all_to_all over all ranks, and exchange, which turns a tensor on a mesh of
two dims (4 ranks and more), at every power of two between the smallest and the largest tensor. Every other size is given to `calibrate`, the
rest is held back; one measurement serves both, so that the machine is the same. Then plans again with the topology, and prints for each op the
median and the largest error of its predictions, |predicted / measured - 1|.

--prefix: what to start processes with, such as "chrt -r 10" where others work beside. MESHPLAN_BACKENDS says where the backends are.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

COLLECTIVES = {"all_gather": (["S(0)"], ["R"]), "reduce_scatter": (["P(sum)"], ["S(0)"]), "all_reduce": (["P(sum)"], ["R"]),
               "all_to_all": (["S(0)"], ["S(1)"])}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def entry(name, size, src, dst):
    rows = 64
    return {"id": f"{name}.{size}", "tensor": {"shape": [rows, size // 4 // rows], "dtype": "float32"}, "src": src, "dst": dst}


def specs(ranks, sizes):
    """Two plans for each: collectives as they are, and exchanges, which only the optimal planner makes."""
    out = [("greedy", {"dims": [{"name": "x", "size": ranks}]}, [entry(op, s, *ends) for op, ends in COLLECTIVES.items() for s in sizes])]
    if ranks >= 4:
        dims = {"dims": [{"name": "y", "size": 2}, {"name": "x", "size": ranks // 2}]}
        out.append(("optimal", dims, [entry("exchange", s, ["S(0)", "S(1)"], ["S(1)", "S(0)"]) for s in sizes]))
    return [(planner, {"schema": "meshplan/spec/1", "mesh": mesh, "redistributions": list_}) for planner, mesh, list_ in out]


def only(report, sizes):
    """The report with the redistributions of these sizes."""
    wanted = [r for r in report["redistributions"] if int(r["id"].split(".")[1]) in sizes]
    return {**report, "redistributions": wanted}


def predictions(plan):
    written = {r["id"]: r for r in plan["redistributions"]}
    return {name: [(s["op"], s["predicted_ns"]) for s in written[r.get("same_as", name)]["steps"]] for name, r in written.items()}


def errors_of(report, predicted, sizes):
    """By op: the errors at these sizes. Redistributions that are now planned in other steps have none."""
    errors = {}
    for r in only(report, sizes)["redistributions"]:
        steps = predicted[r["id"]]
        if [s["op"] for s in r["steps"]] != [op for op, _ in steps]:
            errors.setdefault("planned otherwise", []).append(r["id"])
            continue
        for step, (op, ns) in zip(r["steps"], steps):
            measured = step["time"]["median_ns"]
            errors.setdefault(op, []).append((abs(ns / measured - 1), int(r["id"].split(".")[1]), ns, measured))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshplan")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--repeat", default="40")
    parser.add_argument("--smallest", type=int, default=1 << 12)
    parser.add_argument("--largest", type=int, default=1 << 24)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    folder = arguments.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    sizes = []
    while (size := arguments.smallest << len(sizes)) <= arguments.largest:
        sizes.append(size)
    fitted, held = set(sizes[0::2]), set(sizes[1::2])
    bad = False
    for ranks in (int(n) for n in arguments.ranks.split(",")):
        def file(what):
            return os.path.join(folder, f"{ranks}.{what}.json")
        halves, asked = [], []
        for planner, spec in specs(ranks, sizes):
            with open(file(planner), "w") as out:
                json.dump(spec, out)
            run([arguments.meshplan, "plan", file(planner), "--planner", planner, "-o", file(planner + ".plan"), "-q"])
            start = ["mpirun", "-n", str(ranks)] if arguments.backend == "mpi" else []
            run(arguments.prefix.split() + start + [arguments.meshplan, "run", file(planner + ".plan"), "--backend", arguments.backend, "--full-size",
                                                    "--measure", "--repeat", arguments.repeat, "--report", file(planner + ".report"), "-q"])
            report = json.load(open(file(planner + ".report")))
            with open(file(planner + ".fitted"), "w") as out:
                json.dump(only(report, fitted), out)
            halves.append(file(planner + ".fitted"))
            asked.append((planner, report))
        run([arguments.meshplan, "calibrate", *halves, "-o", file("topology")])
        by_op = {}
        for planner, report in asked:
            run([arguments.meshplan, "plan", file(planner), "--planner", planner, "--topology", file("topology"), "-o", file(planner + ".again"), "-q"])
            predicted = predictions(json.load(open(file(planner + ".again"))))
            for which, chosen in (("fitted", fitted), ("held back", held)):
                for op, found in errors_of(report, predicted, chosen).items():
                    by_op.setdefault(op, {}).setdefault(which, []).extend(found)
        print(f"{ranks} ranks, {arguments.backend}, {arguments.repeat} repetitions, sizes {sizes[0]} to {sizes[-1]} bytes")
        print(f"  {'op':16} {'fitted: median':>15} {'largest':>8} {'held back: median':>18} {'largest':>8}   at bytes")
        other = by_op.pop("planned otherwise", {})
        every = {"fitted": [], "held back": []}
        for op, found in by_op.items():
            cells = []
            for which in every:
                errors = [e for e, *_ in found[which]]
                every[which] += errors
                cells += [statistics.median(errors), max(errors)]
            print(f"  {op:16} {cells[0]:15.1%} {cells[1]:8.1%} {cells[2]:18.1%} {cells[3]:8.1%}   {max(found['held back'])[1]}")
        medians = {which: statistics.median(errors) for which, errors in every.items()}
        print(f"  {'all':16} {medians['fitted']:15.1%} {max(every['fitted']):8.1%} {medians['held back']:18.1%} {max(every['held back']):8.1%}")
        if other:
            print(f"  planned in other steps now: {', '.join(sum(other.values(), []))}")
        bad = bad or medians["fitted"] > 0.10 or medians["held back"] > 0.25
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
