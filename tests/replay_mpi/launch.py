#!/usr/bin/env python3
"""`run --backend mpi --launch 8` as a new user types it: whoever they are and however few cores there are.

usage: launch.py MESHPLAN [LaunchTest | StartTest]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MESHPLAN = ""
# Open MPI asks for the machine's name; where no name server answers each start would wait for it.
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI_", "PRTE_"))}
CLEAN["RES_OPTIONS"] = "timeout:1 attempts:1"
# What --launch sets by itself, for mpirun as such.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def run(*words, **variables):
    return subprocess.run([MESHPLAN, *map(str, words)], env={**CLEAN, **variables}, capture_output=True, text=True, check=False, timeout=120)


def busy_rank(token, rank):
    """The process of this rank of the run, once it has computed for longer than its start takes."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.05)
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
                seconds = int((process / "stat").read_text().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")
            except OSError:
                continue
            wanted = {f"MESHPLAN_TEST_TOKEN={token}".encode(), f"OMPI_COMM_WORLD_RANK={rank}".encode()}
            if wanted <= set(variables) and seconds > 1:
                return int(process.name)
    raise AssertionError(f"rank {rank} does not run")


class WithPlans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make_plan(self, ranks):
        plan = self.folder / f"plan{ranks}.json"
        spec = self.folder / "spec.json"
        spec.write_text(json.dumps({
            "schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": ranks}]},
            "redistributions": [{"id": "gather", "tensor": {"shape": [1 << 18], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}]}))
        self.assertEqual(run("plan", spec, "-o", plan, "-q").returncode, 0)
        return plan


class LaunchTest(WithPlans):
    def setUp(self):
        super().setUp()
        self.plan = self.make_plan(8)

    def test_eight_ranks_start_on_any_machine(self):
        done = run("run", self.plan, "--backend", "mpi", "--launch", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on 8 ranks", done.stdout)
        self.assertIn(", 0 wrong", done.stdout)

    def test_a_rank_that_hangs_while_it_is_timed_is_named_with_the_step(self):
        command = [MESHPLAN, "run", self.make_plan(4), "--backend", "mpi", "--launch", "4", "--measure", "--repeat", "10000000", "--deadline", "3"]
        for hangs in (0, 2):
            token = f"launch_{os.getpid()}_{hangs}"
            with subprocess.Popen(command, env={**CLEAN, "MESHPLAN_TEST_TOKEN": token}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True) as running:
                self.addCleanup(running.kill)
                os.kill(busy_rank(token, hangs), signal.SIGSTOP)
                errors = running.communicate(timeout=60)[1]
            self.assertEqual(running.returncode, 5, errors)
            self.assertRegex(errors, rf"meshplan: rank \d: redistribution 'gather'.*: rank {hangs} did not arrive within the deadline")

    def test_codes_of_the_ranks_are_handed_on(self):
        wrong = run("run", self.plan, "--backend", "mpi", "--launch", 8, "--inject", "0:3:flip")
        self.assertEqual(wrong.returncode, 4, wrong.stderr)
        few = run("run", self.plan, "--backend", "mpi", "--launch", 2)
        self.assertEqual(few.returncode, 5, few.stderr)
        self.assertIn("the plan needs 8 ranks, --launch starts 2; run it with --launch 8", few.stderr)
        self.assertNotIn("mpirun", few.stderr)

    def test_ranks_with_other_data_are_refused(self):
        one = [MESHPLAN, "run", str(self.plan), "--backend", "mpi"]
        for more, said in ((["--seed", "7"], "exact:7"), (["--data", "random"], "random:1")):
            done = subprocess.run(["mpirun", "-n", "3", *one, ":", "-n", "5", *one, *more], env={**CLEAN, **SETTINGS}, capture_output=True, text=True,
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


class StartTest(WithPlans):
    """Of limits of 20 s."""

    def beside(self, *other):
        """What three ranks of four say that wait at their start for another program."""
        started = time.monotonic()
        done = subprocess.run(["mpirun", "-n", "3", MESHPLAN, "run", str(self.make_plan(4)), "--backend", "mpi", "--deadline", "2", ":",
                               "-n", "1", *other], env={**CLEAN, **SETTINGS}, capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertLess(time.monotonic() - started, 60)
        return done.stderr

    def test_ranks_do_not_wait_for_ever_for_one_that_does_not_start(self):
        self.assertRegex(self.beside("sleep", "100"), r"meshplan: rank \d: MPI_Init: not done within its deadline; a process that was started with "
                                                      r"it does not call MPI_Init, or 20 s, ten times --deadline, are too short\n")

    def test_nor_for_one_that_starts_mpi_and_is_another_program(self):
        mpi = self.library_of_mpi()
        other = f"import ctypes, time; ctypes.CDLL({mpi!r}, ctypes.RTLD_GLOBAL).MPI_Init(None, None); time.sleep(100)"
        self.assertRegex(self.beside(sys.executable, "-c", other), r"meshplan: rank \d: MPI_Comm_dup of all processes: not done within its deadline; a "
                                                                   r"process that MPI_Init was done with does not call MPI_Comm_dup, as another "
                                                                   r"program or one that hangs, or 20 s, ten times --deadline, are too short\n")

    def library_of_mpi(self):
        """The one that the backend's module is linked with."""
        module = pathlib.Path(MESHPLAN).parent / "libmeshplan_replay_mpi.so"
        linked = subprocess.run(["ldd", str(module)], capture_output=True, text=True, check=True).stdout
        return next(line.split()[2] for line in linked.splitlines() if re.match(r"\s*libmpi(ch)?\.so", line))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    MESHPLAN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
