#!/usr/bin/env python3
"""`meshplan check --record` on a PyTorch program: recorded, extended by hand, planned, changed, recorded again. Needs PyTorch and the binary;
exits with 77 and says so where one is missing.

usage: check_record_test.py --meshplan MESHPLAN
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "apps" / "python"
PROGRAM = """import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import meshplan.capture

mesh = init_device_mesh("cpu", (4, 3), mesh_dim_names=("dp", "tp"))
words = distribute_tensor(torch.randn(50257, 96), mesh, [Shard(0), Shard(1)])
batch = distribute_tensor(torch.randn(16, 96), mesh, [Shard(0), Replicate()])
with meshplan.capture.bundle("sync"):
    whole = words.redistribute(mesh, [Replicate(), Shard(1)])
loss = (batch @ whole.t()).sum().redistribute(mesh, [Replicate(), Replicate()])
loss.item()
"""
OVERLAY = {"schema": "meshplan/spec/1", "extends": "recorded/step.json", "topology": "h100", "budgets": {"bundles": [{"id": "sync", "collectives": 1}]}}


class Repository:
    def __init__(self, folder, meshplan):
        self.folder, self.meshplan = pathlib.Path(folder), meshplan
        (self.folder / "recorded").mkdir()
        (self.folder / "tmp").mkdir()
        (self.folder / "step.json").write_text(json.dumps(OVERLAY))
        self.write("")

    def write(self, more, program=PROGRAM):
        (self.folder / "train.py").write_text(program + more)

    def run(self, *words, code=0):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder / "tmp")})
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert not list((self.folder / "tmp").glob("meshplan-*")), "a temporary folder stays"
        return done.stdout + done.stderr

    def record(self):
        self.run(sys.executable, "-m", "meshplan.capture", "--world", "12", "-o", "recorded/step.json", "train.py")
        return json.loads((self.folder / "recorded/step.json").read_text())

    def check(self, command, code=0):
        before = {path: path.read_bytes() for path in self.folder.rglob("*.json")}
        text = self.run(self.meshplan, "check", "step.json", "-W", "no-missing-flatten", "--record", command, code=code)
        assert before == {path: path.read_bytes() for path in self.folder.rglob("*.json")}, "check has written"
        return text


def check_all(repository):
    spec = repository.record()
    assert spec["bundles"][0]["x-recorded"] is True and len(spec["redistributions"]) >= 3, spec
    repository.run(repository.meshplan, "plan", "step.json", "-o", "step.plan.json", "-q", "-W", "no-missing-flatten")
    python = sys.executable
    text = repository.check(f"{python} train.py")
    assert text == "ok    step.json: plans, 1 budget met, recorded/step.json is what the program does, step.plan.json is current\n", text
    repository.write("", "# another line\n" + PROGRAM)
    repository.check(f"{python} train.py")
    # The command as a person writes it who knows the recorder: the committed file stays as it is.
    repository.check(f"{python} -m meshplan.capture --world 12 -o recorded/step.json train.py")

    repository.write("whole.redistribute(mesh, [Replicate(), Replicate()])\n")
    text = repository.check(f"{python} train.py", code=1)
    assert "recorded/step.json is not what the program does, step.plan.json is not current" in text and "2 redistributions differ of 4" in text, text
    assert f"record it again: {python} -m meshplan.capture --world 12 -o recorded/step.json train.py" in text, text
    repository.write("raise ValueError('no such batch')\n")
    text = repository.check(f"{python} train.py", code=2)
    assert "train.py' ended with exit code 1: " in text and "ValueError: no such batch" in text, text
    repository.write("", PROGRAM.replace('"sync"', '"weights"'))
    text = repository.check(f"{python} train.py", code=2)
    assert 'there is no bundle "sync"' in text and "step.json:1:" in text, text

    # What a person added to the recorded file survives the recorder, and so does the overlay.
    repository.write("")
    path = repository.folder / "recorded/step.json"
    path.write_text(json.dumps({**spec, "budgets": {"redistributions": [{"id": spec["redistributions"][0]["id"], "collectives": 1}]}}))
    again = repository.record()
    assert again["budgets"]["redistributions"][0]["collectives"] == 1 and again["redistributions"] == spec["redistributions"], again
    repository.run(repository.meshplan, "plan", "step.json", "-o", "step.plan.json", "-q", "-W", "no-missing-flatten")
    assert "2 budgets met" in repository.check(f"{python} train.py")
    path.write_text("// mine\n" + path.read_text())
    text = repository.run(sys.executable, "-m", "meshplan.capture", "--world", "12", "-o", "recorded/step.json", "train.py", code=2)
    assert "put what is yours into a file that extends it" in text and path.read_text().startswith("// mine\n"), text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshplan")
    given = parser.parse_args()
    if importlib.util.find_spec("torch") is None or given.meshplan is None:
        print("check_record_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is) or no --meshplan was given")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_all(Repository(folder, str(pathlib.Path(given.meshplan).resolve())))
    print("check --record tells what a program does no longer, and leaves files as they are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
