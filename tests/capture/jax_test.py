#!/usr/bin/env python3
"""meshplan.jax_shardings against functions whose reshardings are known. Needs JAX; exits with 77 and says so where it is missing.

usage: MESHPLAN_LIBRARY=build/release/libmeshplan.so jax_test.py
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


def record():
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder) / "spec.json"
        command = [sys.executable, "-m", "meshplan.jax_shardings", "--devices", "8", "-o", str(spec), "--compare-xla", str(HERE / "jax_program.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(spec.read_text()), done.stdout


def moves(spec, name):
    return [(r["src"], r["dst"], r["count"]) for r in spec["redistributions"] if r["id"].startswith(name + ".")]


def check(spec, compared):
    assert spec["mesh"]["dims"] == [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}], spec["mesh"]
    # The contraction's pending sum over tp is joined with the constraint on its result, then the output's sharding is another reshard.
    assert moves(spec, "feed_forward") == [(["S(0)", "P(sum)"], ["S(0)", "S(0)"], 1), (["S(0)", "S(0)"], ["R", "S(1)"], 1)], moves(spec, "feed_forward")
    # Six rounds, each with a slice before and a reduction after the product.
    assert (["S(0)", "P(sum)"], ["S(0)", "R"], 6) in moves(spec, "loop"), moves(spec, "loop")
    assert moves(spec, "swap") == [(["S(0)", "S(1)"], ["S(1)", "S(0)"], 1)]
    (reorder,) = [r for r in spec["redistributions"] if r["id"].startswith("reorder.")]
    assert reorder["dst_order"] == [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}] and "src_order" not in reorder, reorder
    # Ids say what moves: another layer changes counts.
    assert not any(r["id"].split(".")[-1].isdigit() for r in spec["redistributions"]), [r["id"] for r in spec["redistributions"]]
    assert moves(spec, "gradient"), "a gradient without reshardings"
    # [64, 64] float32: a rank holds 8 rows of 64 before and after, all of them other rows on most ranks.
    lines = compared.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("reorder:"))
    assert "2,048 bytes" in lines[at + 1] and "1 collectives" in lines[at + 1], lines[at + 1]
    assert any("involuntary rematerialization" in line for line in lines), compared
    assert any("replicated whole: f32[" in line and " from {" in line for line in lines), compared
    assert sum("meshplan " in line for line in lines) == 5, compared


def main():
    if importlib.util.find_spec("jax") is None:
        print("jax_test: NOT RUN, JAX is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    first, compared = record()
    check(first, compared)
    assert record()[0] == first, "two recordings differ"
    print("jax_test: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
