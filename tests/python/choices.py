#!/usr/bin/env python3
"""Whether DTensor chooses better with our prices: single operators with random shapes and placements on 8 x 8 fake ranks, run with PyTorch's own
costs and under meshplan.torch_prices; what each asks its meshes to move is recorded, and priced as PyTorch runs it. Needs PyTorch, and PYTHONPATH
and MESHPLAN_LIBRARY in the environment.

usage: choices.py [TOPOLOGY] [SEED] [COUNT]     (h100 0 60)
"""
import logging
import random
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

import meshplan
from meshplan import capture, torch_prices
from meshplan.capture.pretend_world import pretend_world

OPERATORS = {"mm": lambda a, b: a @ b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "softmax": lambda a, b: torch.softmax(a, -1),
             "cat": lambda a, b: torch.cat([a, b])}


def tensor(mesh, shape, placements):
    local = list(shape)
    for size, placement in zip(mesh.shape, placements):
        if placement.is_shard():
            local[placement.dim] //= size
    return DTensor.from_local(torch.empty(local, dtype=torch.bfloat16), mesh, placements, run_check=False, shape=torch.Size(shape),
                              stride=(shape[1], 1))


def random_case(rng):
    name = rng.choice(["mm", "mm", "mm", "add", "mul", "cat", "softmax"])
    a, b, c = (rng.choice([512, 4096, 14336, 1024]) for _ in range(3))
    kinds = [Shard(0), Shard(1), Replicate()] + ([Partial()] if name == "mm" else [])
    ends = [[rng.choice(kinds) for _ in range(2)] for _ in range(2)]
    return name, (a, b), ends[0], (b, c) if name == "mm" else (a, b), ends[1]


def run(mesh, name, first, before, second, after):
    """The placements of the result, and what the operator asked for, as a spec that PyTorch's own planner plans."""
    with capture.record() as recorder:
        out = OPERATORS[name](tensor(mesh, first, before), tensor(mesh, second, after))
    return out.placements, {**recorder.spec, "options": {"planner": "greedy"}}


def microseconds(spec, topology):
    return sum(r["predicted_ns"] / 1000 for r in meshplan.price(spec, topology)) if spec["redistributions"] else 0.0


def main():
    topology, seed, count = (*sys.argv[1:], *("h100", "0", "60")[len(sys.argv) - 1:])
    logging.disable(logging.WARNING)
    rng, found, totals = random.Random(int(seed)), [], [0.0, 0.0]
    with pretend_world(64, 0, {}):
        mesh = init_device_mesh("cpu", (8, 8), mesh_dim_names=("dp", "tp"))
        for _ in range(int(count)):
            case = random_case(rng)
            result, spec = run(mesh, *case)
            with torch_prices.use(topology):
                other, cheaper = run(mesh, *case)
            costs = microseconds(spec, topology), microseconds(cheaper, topology)
            totals = [total + cost for total, cost in zip(totals, costs)]
            if costs[0] != costs[1]:
                found.append((costs, case, result, other))
    better = sum(costs[1] < costs[0] for costs, *_ in found)
    for costs, case, result, other in sorted(found, key=lambda f: f[0][1] - f[0][0]):
        print(f"{costs[0]:10.1f} -> {costs[1]:10.1f} us  {case}  result {result}, ours {other}")
    print(f"{count} operators on {topology}: {better} cheaper, {len(found) - better} dearer; in all {totals[0] / 1000:.2f} -> {totals[1] / 1000:.2f} ms")


if __name__ == "__main__":
    main()
