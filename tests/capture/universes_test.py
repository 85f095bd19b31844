#!/usr/bin/env python3
"""Meshes on any ranks, recorded: the writing half of meshplan.capture on fakes of PyTorch's meshes, so that it runs without PyTorch.
Every recorded spec is planned and replayed, and its meshes' ranks are compared one by one with those that the program gave.

usage: universes_test.py [--meshplan MESHPLAN]
"""
import argparse
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import types
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load():
    """meshplan.capture, with PyTorch's modules faked where there is no PyTorch."""
    try:
        import torch  # noqa: F401
    except ImportError:
        for name in ("torch", "torch._dynamo", "torch.distributed", "torch.distributed.tensor", "torch.distributed.tensor._redistribute",
                     "torch.distributed.device_mesh", "torch.optim", "torch.optim.optimizer", "torch.utils", "torch.utils._python_dispatch",
                     "torch.utils._pytree", "torch.utils.weak"):
            sys.modules[name] = mock.MagicMock(name=name)
            sys.modules[name].__file__, sys.modules[name].__version__ = "/nowhere/torch/__init__.py", "fake"
    sys.path.insert(0, str(ROOT / "apps" / "python"))
    return importlib.import_module("meshplan.capture")


def spec_of(recorder, world):
    """What the recorder writes in a world of as many ranks, on fakes of meshes."""
    from meshplan.capture import spec_writer
    dist = types.SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: world, get_rank=lambda: 0)
    tensor = lambda mesh: types.SimpleNamespace(shape=mesh.shape, flatten=lambda: types.SimpleNamespace(tolist=lambda: mesh.ranks))
    with mock.patch.object(spec_writer, "dist", dist), mock.patch("meshplan.capture.mesh_layout.mesh_tensor", tensor):
        return spec_writer.spec_of(recorder)


class Mesh:
    """Names, shape and row-major ranks, as a DeviceMesh has them."""

    def __init__(self, ranks, shape, names, root=None):
        self.ranks, self.shape, self.mesh_dim_names, self.ndim = list(ranks), tuple(shape), tuple(names), len(shape)
        self.root, self._flatten_mapping = root or self, {}

    def _get_root_mesh(self):
        return self.root

    def get_coordinate(self):
        return [0] * self.ndim


class Placement:
    def __init__(self, text):
        self.text, self.reduce_op, self.dim = text, "sum", int(text[2]) if text[0] == "S" else None

    def is_replicate(self):
        return self.text == "R"

    def is_partial(self):
        return self.text[0] == "P"

    def is_shard(self):
        return self.text[0] == "S"


Partial = type("Partial", (Placement,), {})


def dtensor_spec(mesh, placements, shape=(64, 32)):
    made = [(Partial if p[0] == "P" else Placement)(p) for p in placements.split()]
    return types.SimpleNamespace(mesh=mesh, placements=made, shape=shape, shard_order=None,
                                 tensor_meta=types.SimpleNamespace(dtype="torch.bfloat16"))


def record(capture, world, reshards=(), inside=(), groups=(), meshes=()):
    """The spec of a program that asks for these: (source, placements, target, placements), (mesh, from, to), (label, ranks)."""
    recorder = capture.Recorder()
    for i, (source, src, target, dst) in enumerate(reshards):
        recorder.reshards.append((f"reshard{i}", dtensor_spec(source, src), dtensor_spec(target, dst), 1, {}))
    for mesh, src, dst in inside:
        key = (Key(dtensor_spec(mesh, src)), Key(dtensor_spec(mesh, dst)), "forward", "redistribute", False, False, "")
        recorder.counts[key], recorder.first[key] = 1, {}
    for label, ranks in groups:
        key = ("collective", "all_reduce", (label, *ranks), json.dumps({"shape": [8], "dtype": "float32"}), "P(sum)", "R", "forward")
        recorder.counts[key], recorder.first[key] = 1, {}
    recorder.seen_meshes = list(meshes)
    return spec_of(recorder, world)


class Key:
    """A DTensorSpec that can be a key."""

    def __init__(self, spec):
        self.__dict__.update(spec.__dict__)


class Case:
    def __init__(self, capture, meshplan):
        self.capture, self.meshplan, self.failures = capture, meshplan, 0

    def check(self, holds, what):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}", file=sys.stderr)

    def ranks_of(self, spec):
        """Mesh name -> ranks of copy 0 and how many copies, from `meshplan mesh`."""
        meshes = json.loads(self.run("mesh", "-", "--format", "json", "--ranks", text=json.dumps(spec)))
        return {m["name"]: m["ranks"] for m in meshes["meshes"]}

    def run(self, *arguments, text=None):
        done = subprocess.run([self.meshplan, *arguments], input=text, capture_output=True, text=True, timeout=120)
        self.check(done.returncode == 0, f"meshplan {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}\n{text or ''}")
        return done.stdout

    def replay(self, spec, ranks):
        """Plans and replays the spec on as many ranks."""
        if self.meshplan is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            path, plan = pathlib.Path(folder, "spec.json"), pathlib.Path(folder, "plan.json")
            path.write_text(json.dumps(spec))
            self.run("plan", str(path), "-q", "-W", "no-missing-flatten", "-o", str(plan))
            said = self.run("run", str(plan), "--backend", "host")
            self.check(f" on {ranks} ranks, " in said and said.rstrip().endswith(" 0 wrong"), f"{said}\n{json.dumps(spec)}")

    def on(self, spec, index, wanted, what):
        """The redistribution's meshes have these ranks, one by one: (source, target)."""
        self.check("x-not-covered" not in spec, f"{what}: {spec.get('x-not-covered')}")
        if self.meshplan is None:
            return
        entry, ranks = spec["redistributions"][index], self.ranks_of(spec)
        names = [entry["src_mesh"], entry["dst_mesh"]] if "src_mesh" in entry else [entry.get("mesh", "mesh")]
        for name, want in zip(names, wanted):
            self.check(ranks[name] == list(want), f"{what}: mesh {name} is on {ranks[name]}, the program's on {list(want)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshplan")
    given = parser.parse_args()
    capture = load()
    case = Case(capture, given.meshplan)

    # RL: train on the first 8 ranks, serve on the other 8; each also redistributes of its own.
    train, serve = Mesh(range(8), (2, 4), ("dp", "tp")), Mesh(range(8, 16), (4, 2), ("ep", "tp"))
    spec = record(capture, 16, [(train, "S(0) S(1)", serve, "R S(0)"), (serve, "S(0) R", train, "S(0) S(1)")],
                  [(train, "P(sum) S(0)", "R S(0)"), (serve, "S(0) S(1)", "R R")],
                  [("dp", [0, 4]), ("everyone", list(range(16)))])
    case.on(spec, -2, (range(8), range(8, 16)), "train to serve")
    case.on(spec, -1, (range(8, 16), range(8)), "serve to train")
    case.on(spec, 0, (range(8),), "train's own")
    case.on(spec, 1, (range(8, 16),), "serve's own")
    roots = [o for o in spec["meshes"] if "world" in o]
    case.check([o.get("ranks", list(range(o["world"]))) for o in roots] == [list(range(8)), list(range(8, 16)), list(range(16))],
               f"three universes, the last for the group of everyone: {roots}")
    case.replay(spec, 16)

    # 8 and 4 of a world of 12; 8 of which a mesh of 12 has the first.
    eight, four, twelve = Mesh(range(8), (8,), ("dp",)), Mesh(range(8, 12), (2, 2), ("a", "b")), Mesh(range(12), (3, 4), ("x", "y"))
    spec = record(capture, 12, [(eight, "S(0)", four, "S(0) S(1)"), (twelve, "S(0) S(1)", eight, "R"), (four, "R S(0)", twelve, "S(1) R")])
    case.on(spec, 0, (range(8), range(8, 12)), "8 to 4")
    case.on(spec, 1, (range(12), range(8)), "12 to 8")
    case.on(spec, 2, (range(8, 12), range(12)), "4 to 12")
    case.replay(spec, 12)

    # 64 to the ranks 64 to 95 of 96, and a permuted mesh.
    many, rest = Mesh(range(64), (8, 8), ("fsdp", "tp")), Mesh(range(64, 96), (4, 8), ("pp", "tp"))
    turned = Mesh(list(range(95, 63, -1)), (32,), ("all",))
    spec = record(capture, 96, [(many, "S(0) S(1)", rest, "R S(1)"), (rest, "S(0) S(1)", turned, "S(0)")], [(many, "S(0) S(0)", "R R")])
    case.on(spec, 1, (range(64), range(64, 96)), "64 to 32")
    case.on(spec, 2, (range(64, 96), range(95, 63, -1)), "permuted")
    named = [o["name"] for o in spec["meshes"] if o.get("world") == 32]
    case.check(named and not any(n.startswith("world") for n in named), f"32 ranks behind 64 are not called the world: {named}")
    case.replay(spec, 96)

    # A part of a mesh that is not its first copy, as one end of a redistribution between meshes.
    row = Mesh([4, 5, 6, 7], (4,), ("tp",), root=train)
    spec = record(capture, 16, [(row, "S(0)", serve, "R S(0)")])
    case.on(spec, 0, ([4, 5, 6, 7], range(8, 16)), "a row of train to serve")
    case.replay(spec, 16)

    # What lies on the first ranks of a larger mesh is a view of it, as ever: one universe.
    half = Mesh(range(32), (4, 8), ("replica", "tp"))
    spec = record(capture, 64, [(many, "S(0) S(1)", half, "R S(0)")], meshes=(many, half))
    case.check(len([o for o in spec["meshes"] if "world" in o]) == 1, "64 to the first 32 is one universe")
    case.on(spec, 0, (range(64), range(32)), "64 to the first 32")
    # The same from that mesh to itself: within a view all of its copies would do it, ranks 32 to 63 too, which asked for nothing.
    spec = record(capture, 64, [(half, "S(0) S(1)", half, "R S(0)"), (many, "S(0) S(1)", many, "R S(0)")], meshes=(many, half))
    entry = spec["redistributions"][0]
    own = next(o for o in spec["meshes"] if o["name"] == entry["src_mesh"])
    case.check(entry["src_mesh"] == entry["dst_mesh"] and own.get("world") == 32, f"the first 32 to themselves are a universe of 32: {own}")
    case.on(spec, 0, (range(32), range(32)), "the first 32 to themselves")
    case.on(spec, 1, (range(64), range(64)), "64 to themselves")
    case.replay(spec, 64)
    # One root, on its own ranks.
    spec = record(capture, 16, inside=[(serve, "S(0) S(1)", "R R")])
    case.check(spec["mesh"].get("ranks") == list(range(8, 16)), f"the only mesh keeps its ranks: {spec.get('mesh')}")
    case.replay(spec, 8)
    print("some checks failed" if case.failures else "all universes recorded right")
    return 1 if case.failures else 0


if __name__ == "__main__":
    sys.exit(main())
