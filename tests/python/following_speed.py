#!/usr/bin/env python3
"""Redistributions of a DTensor followed and not followed, in turns in one run on 8 processes of gloo: medians over rounds of the slowest rank's
time. Needs PyTorch.

usage: following_speed.py [--rounds N]
"""
import statistics
import sys
import time

import gloo_world

# id, shape, source, target on dp 2 x tp 4
REQUESTS = (
    ("weight gather over dp, inner shards", (4096, 1024), ["S(0)", "S(0)"], ["R", "S(0)"]),
    ("weight gather over both", (4096, 1024), ["S(0)", "S(0)"], ["R", "R"]),
    ("gradient scatter", (4096, 1024), ["P(sum)", "S(0)"], ["S(0)", "S(0)"]),
    ("reshard of two dims", (2048, 1024), ["S(0)", "S(1)"], ["S(1)", "S(0)"]),
    ("activation all_to_all over tp", (16, 512, 512), ["S(0)", "S(1)"], ["S(0)", "S(2)"]),
    ("activation gather over tp", (16, 512, 256), ["S(0)", "S(1)"], ["S(0)", "R"]),
    ("activation scatter over tp", (16, 512, 256), ["S(0)", "P(sum)"], ["S(0)", "S(1)"]),
    ("gradient all_reduce over dp", (1024, 1024), ["P(sum)", "S(0)"], ["R", "S(0)"]),
    ("odd vocabulary gather", (5003, 256), ["S(0)", "S(0)"], ["R", "S(0)"]),
    ("small weight", (256, 64), ["S(0)", "S(0)"], ["R", "S(0)"]),
)


def placements(texts):
    from torch.distributed.tensor import Partial, Replicate, Shard
    return [Replicate() if t == "R" else Partial(t[2:-1]) if t[0] == "P" else Shard(int(t[2:-1])) for t in texts]


def measure(rank, rounds):
    import contextlib
    import meshplan
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, distribute_tensor
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    plan = meshplan.plan({
        "schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]},
        "redistributions": [{"id": n, "tensor": {"shape": s, "dtype": "float32"}, "src": a, "dst": b} for n, s, a, b in REQUESTS]})
    taken = {(name, way): [] for name, *_ in REQUESTS for way in ("followed", "not")}
    for turn in range(rounds + 1):
        for way in ("followed", "not"):
            with meshplan.follow(plan) if way == "followed" else contextlib.nullcontext():
                for name, shape, src, dst in REQUESTS:
                    held = distribute_tensor(torch.zeros(shape), mesh, [p for p in placements(["R" if t[0] == "P" else t for t in src])],
                                             src_data_rank=None).to_local()
                    x = DTensor.from_local(held, mesh, placements(src), run_check=False, shape=torch.Size(shape),
                                           stride=torch.empty(shape, device="meta").stride())
                    for _ in range(2):  # the first finds the way
                        dist.barrier()
                        start = time.perf_counter()
                        x.redistribute(mesh, placements(dst))
                        seconds = torch.tensor(time.perf_counter() - start)
                        dist.all_reduce(seconds, dist.ReduceOp.MAX)
                    if turn:
                        taken[name, way].append(1e3 * seconds.item())
    return {name: [statistics.median(taken[name, way]) for way in ("not", "followed")] for name, *_ in REQUESTS}


def main():
    if gloo_world.skipped("following_speed"):
        return 77
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 15
    for name, (own, followed) in gloo_world.on_ranks(8, measure, rounds)[0].items():
        print(f"{name:40} {own:8.2f} ms  followed {followed:8.2f} ms  {own / followed:5.2f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
