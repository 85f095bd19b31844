#!/usr/bin/env python3
"""Records the specs of programs/ with meshplan.capture. Needs PyTorch (recorded with 2.15); no GPU, a few minutes. Exits with 77 where
PyTorch is missing.

usage: record.py [--check] [NAME...]     --check writes nothing and exits 1 where a recording says other redistributions than its spec
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "apps" / "python")}

# spec -> (ranks, program and arguments)
RECORDINGS = {
    "recorded-llama3-8b-hsdp-tp-sp": (64, "llama.py 8b 2,8,4"),
    "recorded-llama3-70b-hsdp-tp-sp": (512, "llama.py 70b 4,16,8"),
    "recorded-moe-ep": (64, "moe.py 64 2 8"),
    "recorded-vit-uneven-heads": (32, "vit.py 8,4"),
    "recorded-optimizer-clip-muon": (64, "optimizer.py 2,8,4"),
    "recorded-checkpoint-64-to-32": (64, "checkpoint.py 4"),
    "recorded-checkpoint-64-to-48": (64, "checkpoint.py 6"),
    "recorded-muon-bundles": (32, "muon.py 8,4"),
    "recorded-sync-llama3-8b": (96, "sync.py 8b 2,8,4 4,8"),
    "recorded-sync-llama3-70b": (576, "sync.py 70b 4,16,8 8,8"),
}


def record(world, command):
    program, *arguments = command.split()
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder) / "spec.json"
        done = subprocess.run([sys.executable, "-m", "meshplan.capture", "--world", str(world), "-o", str(spec), str(HERE / "programs" / program),
                               *arguments], capture_output=True, text=True, env=ENVIRONMENT)
        if done.returncode != 0:
            sys.exit(f"{command}: exit {done.returncode}\n{done.stderr[-3000:]}")
        return spec.read_text()


def without_version(text):
    spec = json.loads(text)
    spec.get("x-recorded", {}).pop("torch", None)
    return spec


def main():
    if importlib.util.find_spec("torch") is None:
        print("record.py: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    check, names = "--check" in sys.argv[1:], [a for a in sys.argv[1:] if not a.startswith("-")]
    status = 0
    for name, (world, command) in RECORDINGS.items():
        if names and name not in names:
            continue
        path, text = HERE / f"{name}.json", record(world, command)
        if not check:
            path.write_text(text)
        same = without_version(path.read_text()) == without_version(text)
        status |= not same
        spec = json.loads(text)
        print(f"{name}: {len(spec['redistributions'])} distinct, {sum(r['count'] for r in spec['redistributions'])} in all"
              + ("" if same else ", NOT what the file says"), flush=True)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
