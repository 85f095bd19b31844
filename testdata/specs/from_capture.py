#!/usr/bin/env python3
"""Writes the llama3-8b-*.json specs from ../workloads/captured.json: every redistribution that two layers of a Llama-3 8B training step,
its loss and its gradient norm ask for, as recorded from PyTorch. Each workload gives two specs: its meshes as the program made them,
and the same with the flattened meshes that make its plan cheaper.

usage: from_capture.py [--check]     --check writes nothing and exits 1 where a spec is not what this script would write
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
CAPTURED = HERE.parent / "workloads" / "captured.json"

# workload -> (file stem, the flattened meshes that help)
WORKLOADS = {
    "llama3-8b fsdp8 x tp8": ("llama3-8b-fsdp8-tp8", [["fsdp", "tp"]]),
    "llama3-8b hsdp 2x8 x tp4": ("llama3-8b-hsdp2x8-tp4", [["dp_replicate", "fsdp"], ["fsdp", "tp"], ["dp_replicate", "fsdp", "tp"]]),
}

# (weights as [out, in], placement on tp) -> name. Column-parallel weights shard dim 0 on tp, row-parallel ones dim 1.
WEIGHTS = {
    (4096, 4096, "S(0)"): "wq",
    (1024, 4096, "S(0)"): "wk_wv",
    (4096, 4096, "S(1)"): "wo",
    (14336, 4096, "S(0)"): "w1_w3",
    (4096, 14336, "S(1)"): "w2",
    (128256, 4096, "S(0)"): "lm_head",
}
# last dim of a [batch, sequence, last] tensor -> name; 1 is the log-sum-exp of the loss
ACTIVATIONS = {4096: "hidden", 128256: "logits", 1: "logsumexp"}


def tensor_name(redistribution):
    shape = redistribution["tensor"]["shape"]
    if not shape:
        return "loss" if redistribution["phase"] == "forward" else "total"
    if len(shape) == 3:
        return ACTIVATIONS[shape[2]]
    return WEIGHTS[(*shape, redistribution["dst"][-1])]


def what(redistribution):
    """One word for the change: gather, reduce, reduce_scatter, reshard, slice, to_partial."""
    changes = [(a, b) for a, b in zip(redistribution["src"], redistribution["dst"]) if a != b]
    sharded = any(b.startswith("S") for _, b in changes)
    if any(a.startswith("P") for a, _ in changes):
        return "reduce_scatter" if sharded else "reduce"
    if any(b.startswith("P") for _, b in changes):
        return "to_partial"
    if sharded:
        return "slice" if all(a == "R" for a, _ in changes) else "reshard"
    return "gather"


def spec_text(source, title, redistributions, flattened):
    mesh = redistributions[0]["mesh"]
    dims = ", ".join(json.dumps({"name": n, "size": s}) for n, s in zip(mesh["dim_names"], mesh["shape"]))
    lines = [
        "{",
        '  "schema": "meshplan/spec/1",',
        f'  "x-source": {json.dumps(f"{title}: two of 32 layers, loss and gradient norm of a training step, recorded from {source}")},',
        '  "mesh": {' + f'"dims": [{dims}]' + ("," if flattened else "},"),
    ]
    if flattened:
        lines += ['           "flattened": [' + ", ".join(json.dumps({"dims": f, "name": "_".join(f)}) for f in flattened) + "]},"]
    lines += ['  "redistributions": [']
    seen = set()
    for index, r in enumerate(redistributions):
        assert r["mesh"] == mesh, "one mesh a workload"
        name = f'{r["phase"]}.{tensor_name(r)}.{what(r)}'
        assert name not in seen, f"{name} stands for two redistributions"
        seen.add(name)
        entry = {"id": name, "tensor": r["tensor"], "src": r["src"], "dst": r["dst"], "count": r["count"]}
        lines += ["    " + json.dumps(entry) + ("," if index + 1 < len(redistributions) else "")]
    return "\n".join(lines + ["  ]", "}", ""])


def main(arguments):
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    captured = json.loads(CAPTURED.read_text(encoding="utf-8"))
    stale = []
    for title, (stem, flattened) in WORKLOADS.items():
        redistributions = captured["workloads"][title]["redistributions"]
        for name, sets in ((stem, []), (stem + "-flattened", flattened)):
            path = HERE / f"{name}.json"
            text = spec_text(captured["source"], title, redistributions, sets)
            if not check:
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
    for name in stale:
        print(f"testdata/specs/{name} differs from what testdata/specs/from_capture.py writes: run it without --check", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
