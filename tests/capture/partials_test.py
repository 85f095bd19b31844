#!/usr/bin/env python3
"""Placements that are more than R, S and P, on fakes of PyTorch's: a norm's and a mask's partial keep their names from recording to printed code;
strided shards are recorded where a shard order says them.

usage: partials_test.py [--meshplan MESHPLAN]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import types

import universes_test as fakes

NormPartial = type("_NormPartial", (fakes.Placement,), {"norm_type": 2})
MaskPartial = type("_MaskPartial", (fakes.Placement,), {})
KINDS = {"N": NormPartial, "M": MaskPartial}


def strided(factor):
    """_StridedShard(0, factor)"""
    return type("_StridedShard", (fakes.Placement,), {"split_factor": factor, "__repr__": lambda self: f"SS(0,{factor})"})("S(0)")


def spec_of(capture, requests, dtype="torch.float32"):
    """The recorded spec of redistributions on one 2 x 4 mesh; N and M stand for a norm's and a mask's partial."""
    mesh = fakes.Mesh(range(8), (2, 4), ("dp", "tp"))

    def dtensor_spec(placements):
        made = [KINDS[p]("P(sum)") if p in KINDS else strided(int(p[2:])) if p[:2] == "SS" else (fakes.Partial if p[0] == "P" else fakes.Placement)(p) for p in placements.split()]
        return types.SimpleNamespace(mesh=mesh, placements=made, shape=(64, 32), shard_order=None, tensor_meta=types.SimpleNamespace(dtype=dtype))

    recorder = capture.Recorder()
    for src, dst in requests:
        key = (fakes.Key(dtensor_spec(src)), fakes.Key(dtensor_spec(dst)), "forward", "redistribute", False, False, "")
        recorder.counts[key], recorder.first[key] = 1, {"x-source": "train.py:7", "x-module": "layers.0.norm"}
    recorder.seen_meshes = [mesh]
    return fakes.spec_of(recorder, 8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--meshplan")
    given = parser.parse_args()
    capture, failures = fakes.load(), []

    def check(holds, what):
        if not holds:
            failures.append(str(what))

    spec = spec_of(capture, [("N N", "N R"), ("P(sum) P(sum)", "P(sum) R"), ("M R", "R R"), ("R R", "R S(0)"), ("N R", "N N"), ("R R", "N R"), ("R R", "M R")])
    made = spec["redistributions"]
    # The plain sum with the norm's placements is another redistribution.
    check([r.get("x-partial") for r in made] == [["_NormPartial(2)", "_NormPartial(2)"], None, ["_MaskPartial", None], None,
                                                   ["_NormPartial(2)", "_NormPartial(2)"], ["_NormPartial(2)", None], ["_MaskPartial", None]], made)
    check([r["src"] for r in made[:3]] == [["P(sum)", "P(sum)"], ["P(sum)", "P(sum)"], ["P(sum)", "R"]], made)
    masked = spec_of(capture, [("M R", "R R"), ("P(sum) R", "R R")], "torch.int64")
    check([r["src"] for r in masked["redistributions"]] == [["P(sum)", "R"]], masked)
    check([n["reason"] for n in masked["x-not-covered"]] == ["a mask partial of int64"], masked)

    # On dp 2 x tp 4: dp cuts behind tp, that is all that a strided shard may say.
    cut = spec_of(capture, [("SS4 S(0)", "R S(0)"), ("SS2 S(0)", "R R"), ("R SS2", "R R"), ("S(0) R", "S(0) SS2"), ("SS1 S(0)", "R S(0)")])
    check([(r["src"], r["dst"]) for r in cut["redistributions"]] == [(["SS(0,4)", "S(0)"], ["R", "S(0)"]), (["SS(0,1)", "S(0)"], ["R", "S(0)"])], cut)
    check(sum(n["reason"].endswith("that no shard order says") for n in cut["x-not-covered"]) == 3, cut)

    if given.meshplan:
        with tempfile.TemporaryDirectory() as folder:
            path, plan = pathlib.Path(folder, "spec.json"), pathlib.Path(folder, "plan.json")

            def run(*words):
                done = subprocess.run([given.meshplan, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
                check(done.returncode == 0, f"{words}: {done.returncode}\n{done.stderr}")
                return done.stdout

            path.write_text(json.dumps(cut), encoding="utf-8")
            run("plan", path, "-q", "-o", plan)
            path.write_text(json.dumps(spec), encoding="utf-8")
            run("plan", path, "-q", "-W", "no-missing-flatten", "-o", plan)
            document = json.loads(plan.read_text())
            # The plain sum repeats the norm's in all but its notes.
            check([r.get("x-partial") for r in document["redistributions"]] == [r.get("x-partial") for r in made], document)
            check("same_as" in document["redistributions"][1], document)
            again = pathlib.Path(folder, "again.json")
            run("show", plan, "--format", "json", "-o", again)
            check(again.read_bytes() == plan.read_bytes(), "a plan that is written again is the same")
            code = run("show", plan, "--format", "torch")
            bodies = code.split("\ndef ")
            check("x.redistribute(mesh, [x.placements[0], Replicate()])" in bodies[2], bodies[2])
            check('x.redistribute(mesh, [Partial("sum"), Replicate()])' in bodies[3], bodies[3])
            check("asked for by layers.0.norm, train.py:7; _NormPartial(2) on dp; _NormPartial(2) on tp" in bodies[2], bodies[2])
            # Where a partial is made x has none to keep: a norm's is made, a mask's is not.
            check("[x.placements[0], _NormPartial(2)], run_check" in bodies[6], bodies[6])
            check("[_NormPartial(2), Replicate()], run_check" in bodies[7], bodies[7])
            check("import _NormPartial\n" in bodies[0], bodies[0])
            check("    # to_partial to P(sum)R: no PyTorch call makes the partial of a mask\n" in bodies[8] and "x =" not in bodies[8], bodies[8])
            compile(code, "plan.py", "exec")
            for form in ("text", "html", "markdown", "perfetto"):
                check("_MaskPartial on dp" in run("show", plan, "--format", form).replace("\\", ""), f"show --format {form}")
            check("asked for by layers.0.norm, train.py:7; _MaskPartial on dp" in run("explain", plan), "explain")
    print("\n".join(failures) or "a norm's and a mask's partial keep their names")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
