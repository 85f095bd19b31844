#!/usr/bin/env python3
"""A process that may have little memory, so that threads cannot be started either, does its work with
the threads that there are, or says what it lacks: exit 0 or 5, never a bug.

usage: little_memory.py MESHPLAN
"""
import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PLAN = os.path.join(ROOT, "testdata", "plans", "train-8-serve-8.plan.json")
SPECS = [os.path.join(ROOT, "testdata", "specs", name) for name in ("checkpoint-64-48.json", "far-share-8-3.json")]
KIB_A_STEP = 2048
STEPS = 24


def limited(kib, *arguments):
    """Of a process with so much address space at most."""
    return subprocess.run(["sh", "-c", 'ulimit -v "$0" && exec "$@"', str(kib), sys.argv[1], *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def least_to_start():
    kib = 2048
    while limited(kib, "--version").returncode != 0:
        kib += KIB_A_STEP
    return kib


class LittleMemory(unittest.TestCase):
    def codes(self, *arguments):
        least = least_to_start()
        codes = set()
        for step in range(STEPS):
            done = limited(least + step * KIB_A_STEP, *arguments)
            self.assertIn(done.returncode, (0, 5), f"{least + step * KIB_A_STEP} KiB: {done.stdout}")
            self.assertNotIn("bug", done.stdout)
            codes.add(done.returncode)
        return codes

    def test_replay(self):
        # A thread a core: where there are many, their stacks may take all that is left.
        self.assertIn(5, self.codes("run", PLAN, "--shrink"))

    def test_check_by_many_threads(self):
        self.assertIn(0, self.codes("check", *SPECS, "--jobs", "16", "-q"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
