#!/usr/bin/env python3
"""What PyTorch ran beside what it was predicted to run: programs on 4 processes of gloo, recorded, planned by PyTorch's own rules, and compared
by `meshplan compare` with what each rank's flight recorder saw. Needs PyTorch and the binary; exits with 77 and says so where one is missing.

usage: ran_test.py --meshplan MESHPLAN
"""
import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "apps" / "python"


def ran(meshplan, folder, words):
    """Runs the program; (exit code, text) of the comparison of all ranks with PyTorch's plan."""
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", str(HERE / "ran_program.py"),
                           folder, *words], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "TORCH_FR_BUFFER_SIZE": "20000", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    plan = os.path.join(folder, "plan.json")
    subprocess.run([meshplan, "plan", os.path.join(folder, "spec.json"), "--planner", "greedy", "-q", "-W", "no-missing-flatten", "-o", plan], check=True)
    done = subprocess.run([meshplan, "compare", plan, "--repeat", "2", "--ran", *(os.path.join(folder, f"rank{r}.json") for r in range(4))],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def check(meshplan, words, planned, changed):
    """All `planned` collectives of two steps ran on every rank; the changed program's one more is all that is told of it."""
    with tempfile.TemporaryDirectory() as folder:
        code, text = ran(meshplan, folder, words)
        assert code == 0 and text.count(f"{planned} as planned, 0 missing, 0 extra, 0 with another size, 0 in another order\n") == 4, text
        code, text = ran(meshplan, folder, [*words, "changed"])
        assert code == 1 and text.count(f"{planned} as planned, 0 missing, 1 extra, 0 with another size, 0 in another order\n") == 4, text
        assert text.count(changed) == 4 and text.count("! ") == 4, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshplan")
    given = parser.parse_args()
    if importlib.util.find_spec("torch") is None or given.meshplan is None:
        print("ran_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is) or no --meshplan was given")
        return 77
    check(given.meshplan, [], 28, "! all_reduce on mesh_dp, 4 B in: 1 extra")
    check(given.meshplan, ["fsdp"], 42, "! all_reduce on dp, 4 B in: 1 extra")
    print("what ran is what was planned, and one collective more is told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
