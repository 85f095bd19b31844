#!/usr/bin/env python3
"""Follows the plans of the shared vectors and of captured training steps, shrunk, on 16, 8 and 4 processes of gloo, or 8 and 4 of
NCCL (MESHPLAN_TEST_WORLD=nccl): with collectives only, with exchanges, and with two phases over hosts. Data by the meaning of placements, equal
to DTensor's own where PyTorch is right; messages, bytes and collectives as planned, counted where they are asked for. Needs PyTorch; exits with
77 and says so where it is missing.

usage: following_vectors_test.py [--seed N] [--count N] [--worlds N,N]     N: how many of each; 24 without it, all 240 take long
"""
import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "capture"))
import follow_test as oracle  # noqa: E402  tests/capture: data by the meaning of placements
import ranks_world  # noqa: E402


def topologies(world):
    """By what each makes plans do."""
    hosts = {"levels": [{"name": "inside", "ranks": max(2, world // 4), "gb_per_s": 400, "latency_ns": 100},
                        {"name": "outside", "ranks": 1048576, "gb_per_s": 0.001, "latency_ns": 100}]}
    return {"collectives only": oracle.COLLECTIVES_ONLY, "uniform": None, "slow between hosts": hosts}


def mesh_of(case, known):
    from torch.distributed.device_mesh import init_device_mesh
    mesh = case["mesh"]
    key = json.dumps([mesh["shape"], mesh["dim_names"]])
    if key not in known:
        known[key] = init_device_mesh(ranks_world.device(), tuple(mesh["shape"]), mesh_dim_names=tuple(mesh["dim_names"]))
    return known[key]


def target_spec(case, mesh):
    """The DTensorSpec of a case's target, by the oracle's for sources."""
    turned = {**case, "src": case["dst"]}
    return oracle.source_spec(turned, mesh)


def planned_messages(document, rank):
    """(messages, bytes) that a rank receives in the exchanges of a plan's only redistribution."""
    import meshplan
    messages = size = 0
    for step in meshplan.transfers(document, None, rank)["redistributions"][0]["steps"]:
        if step["op"] in ("exchange", "all_to_all"):
            rows = [r for r in step["transfers"] if r["action"] == "send" and r["to"] == rank]
            messages += len({(r["phase"], r.get("chunk", 0), r["from"]) for r in rows})
            size += sum(r["bytes"] for r in rows)
    return messages, size


def planned_once(rank, spec):
    """Rank 0's plan, on every rank; None where there is none."""
    import meshplan
    plan = None
    if rank == 0:
        try:
            plan = json.loads(meshplan.plan(spec))
        except meshplan.MeshplanError as error:
            assert error.code == 3, f"{spec}: {error}"
    return ranks_world.of_first(plan)


def follow_case(rank, name, case, topology, seed, known, tally):
    """Every rank's data checked on rank 0; adds to the tally what came up."""
    import meshplan
    import torch
    import torch.distributed.tensor._redistribute as redistribute
    from meshplan.following import follow
    case = {**case, "tensor": {**case["tensor"], "dtype": "float64"}}
    plan = planned_once(rank, oracle.spec_of(case, name, topology))
    if plan is None:
        tally["no plan"] = tally.get("no plan", 0) + 1
        return
    with torch.device("cpu"):
        data, mesh = oracle.Data(case, seed), mesh_of(case, known)
    source, target, local = oracle.source_spec(case, mesh), target_spec(case, mesh), data.before[rank].to(ranks_world.device())
    with ranks_world.Counted() as counted, follow(plan) as followed:
        after = redistribute.redistribute_local_tensor(local.clone(), source, target)
    moves = source.placements != target.placements or source.shard_order != target.shard_order
    assert followed.summary.followed == followed.summary.asked == moves, f"{name}: {followed}"
    assert (counted.messages, counted.bytes) == planned_messages(plan, rank), f"{name}: {counted.messages} messages, {counted.bytes} bytes"
    less = counted.check(followed.summary)
    assert less == 0 or uneven(case), f"{name}: collectives bring {less} bytes less than planned"
    everyone = ranks_world.of_all((after.cpu(), counted.bytes))
    assert data.is_right({r: a for r, (a, _) in enumerate(everyone)}), f"{name}: wrong data"
    steps = plan["redistributions"][0]["steps"]
    exchanged = sum(s["wire_bytes"] for s in steps if s["op"] == "exchange")
    if len(steps) == 1 and exchanged:
        assert max(size for _, size in everyone) == exchanged, f"{name}: {exchanged} planned"
    for step in steps:
        word = step["op"] + (" in two phases" if step.get("phases") else "") + (" in chunks" if step.get("chunks", 1) > 1 else "") + (
            " reducing" if step["op"] == "exchange" and step["reduce_op"] else "")
        tally[word] = tally.get(word, 0) + 1
    own = torchs_own(case, local, source, target)
    if own is not None:
        reduces = any(s["reduce_op"] for s in steps)
        same = torch.allclose(own, after, atol=1e-9) if reduces else torch.equal(own, after)
        assert own.shape == after.shape and same, f"{name}: not what DTensor gives"
        tally["equal to DTensor's"] = tally.get("equal to DTensor's", 0) + 1


def uneven(case):
    return any(n % math.prod(case["mesh"]["shape"]) for n in case["tensor"]["shape"])


def torchs_own(case, local, source, target):
    """What PyTorch makes of it; None where the vectors say that it is wrong or cannot, and of pending targets, whose parts are free."""
    import torch.distributed.tensor._redistribute as redistribute
    known = case.get("torch", {"greedy": {"numerically_correct": True}})  # the captured ones are even, on which PyTorch is right
    theirs = known["greedy"] if "greedy" in known else known["graph"]
    ops = {p[2:-1] for end in ("src", "dst") for p in case[end]["placements"] if p[0] == "P"}
    if not theirs.get("numerically_correct") or any(p[0] == "P" for p in case["dst"]["placements"]) or (
            "avg" in ops and ranks_world.BACKEND == "gloo"):  # which has no avg
        return None
    if uneven(case):
        return None
    return redistribute.redistribute_local_tensor(local.clone(), source, target)


def shrunk(case, world):
    """The case on fewer ranks: its largest mesh dims halved."""
    shape = list(case["mesh"]["shape"])
    while math.prod(shape) > world:
        shape[shape.index(max(shape))] //= 2
    return {**case, "mesh": {**case["mesh"], "shape": shape}}


def body(rank, cases, world, seed):
    known, tallies = {}, {}
    for title, topology in topologies(world).items():
        tally = tallies[title] = {}
        for name, case in cases:
            follow_case(rank, f"{title}: {name}", case, topology, seed, known, tally)
    return tallies


def main():
    if ranks_world.skipped("following_vectors_test"):
        return 77
    cases = [(f"vector {i}", case) for i, case in enumerate(json.loads(oracle.VECTORS.read_text())["cases"])]
    seed, count = int(oracle.option("--seed", 1)), int(oracle.option("--count", 24))
    captured, everything = oracle.captured_cases(), {}
    for world in map(int, oracle.option("--worlds", "4,8" if ranks_world.ON_GPU else "4,8,16").split(",")):
        chosen = random.Random(seed + world)
        work = [(name, shrunk(case, world)) for kind in (cases, captured) for name, case in chosen.sample(kind, min(count, len(kind)))]
        for title, tally in ranks_world.on_ranks(world, body, work, world, seed)[0].items():
            print(f"{world} processes, {title}, {min(count, len(cases))} vectors and {min(count, len(captured))} captured: "
                  + ", ".join(f"{k} {v}" for k, v in sorted(tally.items())), flush=True)
            everything.update(tally)
    wanted = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "exchange", "slice", "to_partial", "exchange in two phases",
              "exchange reducing", "equal to DTensor's"}
    if count >= 240 and wanted - set(everything):
        print(f"never came up: {sorted(wanted - set(everything))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
