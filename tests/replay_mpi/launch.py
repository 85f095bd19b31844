#!/usr/bin/env python3
"""`run --backend mpi --launch 8` as a new user types it: whoever they are and however few cores there are.

usage: launch.py MESHPLAN
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MESHPLAN = ""
# Open MPI asks for the machine's name; where no name server answers each start would wait for it.
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI_", "PRTE_"))}
CLEAN["RES_OPTIONS"] = "timeout:1 attempts:1"


def run(*words, **variables):
    return subprocess.run([MESHPLAN, *map(str, words)], env={**CLEAN, **variables}, capture_output=True, text=True, check=False, timeout=120)


class LaunchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.plan = pathlib.Path(folder.name, "plan.json")
        spec = pathlib.Path(folder.name, "spec.json")
        spec.write_text(json.dumps({
            "schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 8}]},
            "redistributions": [{"id": "gather", "tensor": {"shape": [1 << 18], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}]}))
        self.assertEqual(run("plan", spec, "-o", self.plan, "-q").returncode, 0)

    def test_eight_ranks_start_on_any_machine(self):
        done = run("run", self.plan, "--backend", "mpi", "--launch", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on 8 ranks", done.stdout)
        self.assertIn(", 0 wrong", done.stdout)

    def test_codes_of_the_ranks_are_handed_on(self):
        wrong = run("run", self.plan, "--backend", "mpi", "--launch", 8, "--inject", "0:3:flip")
        self.assertEqual(wrong.returncode, 4, wrong.stderr)
        few = run("run", self.plan, "--backend", "mpi", "--launch", 2)
        self.assertEqual(few.returncode, 5, few.stderr)
        self.assertIn("needs 8 ranks", few.stderr)

    def test_ranks_with_other_data_are_refused(self):
        settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        one = [MESHPLAN, "run", str(self.plan), "--backend", "mpi"]
        for more, said in ((["--seed", "7"], "exact:7"), (["--data", "random"], "random:1")):
            done = subprocess.run(["mpirun", "-n", "3", *one, ":", "-n", "5", *one, *more], env={**CLEAN, **settings}, capture_output=True, text=True,
                                  check=False, timeout=120)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(f"the process of rank 3 has the data {said}, the first process has exact:1; use the same --data and --seed", done.stderr)

    def test_an_mpirun_that_fails_is_exit_5(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "mpirun")
            fake.write_text("#!/bin/sh\necho no slots >&2\nexit 1\n")
            fake.chmod(0o755)
            done = run("run", self.plan, "--backend", "mpi", "--launch", 8, PATH=folder)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("no slots\n", done.stderr)
            self.assertIn("mpirun -n 8 failed with exit code 1", done.stderr)
            fake.unlink()
            done = run("run", self.plan, "--backend", "mpi", "--launch", 8, PATH=folder)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("cannot run mpirun: No such file or directory; install an MPI", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    MESHPLAN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
