#!/usr/bin/env python3
"""Meshes on parts of a world, recorded from programs that PyTorch runs: every spec is planned and replayed, and the ranks of its meshes are
compared one by one with those that the program gave. Needs PyTorch; exits with 77 and says so where it is missing.

usage: meshes_test.py [--meshplan MESHPLAN]
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "apps" / "python")}
MESHPLAN = None

BEGIN = """
import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Replicate as R, Shard as S, empty
from meshplan import capture
def mesh_on(ranks, shape, names):
    return DeviceMesh("cpu", torch.tensor(ranks).view(shape), mesh_dim_names=names)
def tensor(mesh, placements, shape=(4096, 1024)):
    return empty(*shape, device_mesh=mesh, placements=placements, dtype=torch.bfloat16)
"""

# Train on the first 8 ranks, serve on the other 8; weights go over, each side redistributes of its own.
TRAIN_AND_SERVE = BEGIN + """
train = mesh_on(list(range(8)), (2, 4), ("dp", "tp"))
serve = mesh_on(list(range(8, 16)), (4, 2), ("ep", "tp"))
weight = tensor(train, [S(0), S(1)])
weight.redistribute(train, [R(), S(1)])
capture.reshard({"wq": weight, "experts": tensor(train, [S(0), S(0)])},
                {"wq": tensor(serve, [R(), S(1)]), "experts": tensor(serve, [S(0), S(1)])}, "sync")
tensor(serve, [S(0), S(1)]).redistribute(serve, [S(0), R()])
"""

EIGHT_AND_FOUR = BEGIN + """
eight = mesh_on(list(range(8)), (8,), ("dp",))
four = mesh_on([8, 9, 10, 11], (2, 2), ("a", "b"))
world = mesh_on(list(range(12)), (3, 4), ("x", "y"))
def weight(mesh, *placements):
    return tensor(mesh, placements, (5003, 96))
capture.reshard(weight(eight, S(0)), weight(four, S(0), S(1)), "to.four")
capture.reshard(weight(four, R(), S(0)), weight(world, S(1), R()), "to.all")
weight(world, S(0), S(0)).redistribute(world, [R(), R()])
"""

TO_THE_LAST_OF_96 = BEGIN + """
train = mesh_on(list(range(64)), (8, 8), ("fsdp", "tp"))
serve = mesh_on(list(range(64, 96)), (4, 8), ("replica", "tp"))
turned = mesh_on(list(range(95, 63, -1)), (32,), ("all",))
weight = tensor(train, [S(0), S(0)], (8192, 512))
weight.redistribute(train, [R(), S(0)])
import meshplan
meshplan.reshard({"sync": weight}, {"sync": tensor(serve, [R(), S(0)], (8192, 512))})  # recorded; on fake tensors it moves nothing
capture.reshard(tensor(serve, [S(0), S(1)], (8192, 512)), tensor(turned, [S(0)], (8192, 512)), "turn")
"""


class Recorded(unittest.TestCase):
    def record(self, program, world, rank):
        with tempfile.TemporaryDirectory() as folder:
            path, spec = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "spec.json")
            path.write_text(program)
            done = subprocess.run([sys.executable, "-m", "meshplan.capture", "--world", str(world), "--rank", str(rank), "-o", str(spec), str(path)],
                                  capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            self.text = spec.read_text()
        self.spec = json.loads(self.text)
        self.assertNotIn("x-not-covered", self.spec)
        self.assertNotIn("x-incomplete", self.spec)

    def entry(self, name):
        found = [r for r in self.spec["redistributions"] if r["id"] == name]
        self.assertEqual(len(found), 1, f"{name} in {[r['id'] for r in self.spec['redistributions']]}")
        return found[0]

    def check(self, count, ends, ranks):
        """`ends`: id -> ranks of the mesh it is on, or of source and target. The plan is replayed on all `ranks`."""
        self.assertEqual(len(self.spec["redistributions"]), count, self.text)
        if MESHPLAN is None:
            return
        meshes = {m["name"]: m["ranks"] for m in json.loads(self.ask("mesh", "-", "--format", "json", "--ranks", text=self.text))["meshes"]}
        for name, wanted in ends.items():
            entry = self.entry(name)
            on = [entry["src_mesh"], entry["dst_mesh"]] if "src_mesh" in entry else [entry.get("mesh", "mesh")]
            self.assertEqual([meshes[m] for m in on], [list(r) for r in wanted], name)
        with tempfile.TemporaryDirectory() as folder:
            spec, plan = pathlib.Path(folder, "spec.json"), pathlib.Path(folder, "plan.json")
            spec.write_text(self.text)
            self.ask("plan", str(spec), "-q", "-W", "no-missing-flatten", "-o", str(plan))
            said = self.ask("run", str(plan), "--backend", "host", "--shrink").rstrip()
        bundled = sum(len(b["redistributions"]) for b in self.spec.get("bundles", []))
        numbers = [(len(self.spec.get("bundles", [])), "bundle"), (count - bundled, "redistribution")]
        asked = " and ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in numbers if n)
        self.assertIn(f"{asked} on {ranks} ranks, ", said)
        self.assertTrue(said.endswith(" 0 wrong"), said)

    def ask(self, *arguments, text=None):
        done = subprocess.run([MESHPLAN, *arguments], input=text, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, f"meshplan {' '.join(arguments)}: {done.stderr}\n{text or ''}")
        return done.stdout

    def test_train_and_serve(self):
        ends = {"sync.wq": (range(8), range(8, 16)), "sync.experts": (range(8), range(8, 16))}
        self.record(TRAIN_AND_SERVE, 16, 0)
        own = next(r["id"] for r in self.spec["redistributions"] if "mesh" in r)
        self.check(3, {**ends, own: (range(8),)}, 16)
        self.record(TRAIN_AND_SERVE, 16, 8)  # a rank that serves records what the serving mesh does
        own = next(r["id"] for r in self.spec["redistributions"] if "mesh" in r)
        self.check(3, {**ends, own: (range(8, 16),)}, 16)

    def test_eight_and_four_of_twelve(self):
        self.record(EIGHT_AND_FOUR, 12, 3)
        own = next(r["id"] for r in self.spec["redistributions"] if "mesh" in r)
        self.check(3, {"to.four": (range(8), range(8, 12)), "to.all": (range(8, 12), range(12)), own: (range(12),)}, 12)

    def test_64_to_the_last_of_96(self):
        self.record(TO_THE_LAST_OF_96, 96, 0)
        own = next(r["id"] for r in self.spec["redistributions"] if "mesh" in r)
        self.check(3, {"sync": (range(64), range(64, 96)), "turn": (range(64, 96), range(95, 63, -1)), own: (range(64),)}, 96)


def main():
    global MESHPLAN
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshplan")
    given, rest = parser.parse_known_args()
    if importlib.util.find_spec("torch") is None:
        print("meshes_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    MESHPLAN = given.meshplan
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
