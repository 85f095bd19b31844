#!/usr/bin/env python3
"""Golden plans: `plan` gives the bytes of testdata/plans for every spec of testdata/specs, under each planner, and `verify` accepts them.

usage: golden.py MESHPLAN [--record]      --record writes what comes out now; commit that by itself, with the reason

Passed by builds of other compilers and build types (tests/golden/identity makes them), it shows that they write the same bytes; planning all
specs at once on many threads must not change them either.

testdata/plans/<spec>.plan.json is what `meshplan plan <spec>` writes, <spec>.<planner>.plan.json what `--planner <planner>` does.
"""
import difflib
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PLANS = TOP / "testdata" / "plans"
PLANNERS = ["", "greedy"]  # "": the default
# Across meshes, which PyTorch's rules cannot: exit 3.
NO_PLAN = {(name, "greedy")
           for name in ("checkpoint-64-48", "far-share-8-3", "fetched-by-all-4-4", "fetched-in-laps-4-4", "in-shifts-96-64",
                        "recorded-checkpoint-64-to-32", "recorded-checkpoint-64-to-48",
                        "recorded-sync-llama3-8b", "recorded-sync-llama3-70b", "sync-deepseek-v3-64-32", "sync-llama3-70b-512-64",
                        "sync-llama3-8b-8-8", "train-8-serve-8")}


def check_on_threads(meshplan):
    """`check` of every spec, four times over, beside its golden plan: the same answer on one thread and on many; what is wrong, as text."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        specs = sorted((TOP / "testdata" / "specs").glob("*.json"))
        for spec in specs:
            for copy in range(4):
                shutil.copy(spec, folder / f"{copy}-{spec.name}")
                shutil.copy(PLANS / f"{spec.stem}.plan.json", folder / f"{copy}-{spec.stem}.plan.json")
        answers = {}
        for jobs in ("1", "16"):
            command = [meshplan, "check", ".", "--jobs", jobs]
            answers[jobs] = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        one, many = answers["1"], answers["16"]
        if (one.returncode, one.stdout, one.stderr) != (many.returncode, many.stdout, many.stderr):
            return "check says one thing on 1 thread and another on 16:\n" + one.stdout + "\n" + many.stdout
        if many.returncode != 0 or many.stdout.count(" is current\n") != 4 * len(specs):
            return f"check on 16 threads: exit {many.returncode}\n{many.stdout}"
    return ""


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--record"]):
        print(__doc__, file=sys.stderr)
        return 2
    meshplan, record = str(pathlib.Path(arguments[0]).resolve()), len(arguments) > 1
    failures = []
    expected = set()
    for spec in sorted((TOP / "testdata" / "specs").glob("*.json")):
        for planner in PLANNERS:
            command = [meshplan, "plan", str(spec.relative_to(TOP))] + (["--planner", planner] if planner else [])
            result = subprocess.run(command, cwd=TOP, capture_output=True, check=False)
            if (spec.stem, planner) in NO_PLAN:
                if result.returncode != 3 or result.stdout:
                    failures.append(f"{' '.join(command)}: exit {result.returncode}, expected 3 and no plan")
                continue
            path = PLANS / (".".join([spec.stem] + [planner] * bool(planner)) + ".plan.json")
            expected.add(path)
            if result.returncode != 0:
                failures.append(f"{' '.join(command)}: exit {result.returncode}\n{result.stderr.decode()}")
                continue
            if record:
                PLANS.mkdir(exist_ok=True)
                path.write_bytes(result.stdout)
            old = path.read_bytes() if path.exists() else b""
            if old != result.stdout:
                lines = [text.decode().splitlines(keepends=True) for text in (old, result.stdout)]
                difference = list(difflib.unified_diff(*lines, f"testdata/plans/{path.name}", "what plan writes now", n=0))
                failures.append("".join(line[:400] + "\n" * (len(line) > 400) for line in difference[:40]))
            verified = subprocess.run([meshplan, "verify", "-"], input=result.stdout, capture_output=True, check=False)
            if verified.returncode != 0:
                failures.append(f"verify of {path.name}: exit {verified.returncode}\n{verified.stderr.decode()}")
    for path in set(PLANS.glob("*.json")) - expected:
        if record:
            path.unlink()
        else:
            failures.append(f"testdata/plans/{path.name} belongs to no spec")
    threads = "" if record else check_on_threads(meshplan)
    if threads:
        failures.append(threads)
    if failures:
        failures.append("if the new plans are right: tests/golden/golden.py MESHPLAN --record")
    print("\n".join(failures) or f"{len(expected)} golden plans are the same, on one thread and on many")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
