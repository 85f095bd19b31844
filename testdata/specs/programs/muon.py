"""A Muon step on the matrices of four Llama-3 8B layers, sharded over (fsdp, tp): all momenta are gathered at once, orthogonalised whole,
and all updates are cut back at once.

usage: muon.py FSDP,TP
"""
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, empty

from meshplan.capture import bundle, phase

SHAPES = {"wq": (4096, 4096, 0), "wk": (1024, 4096, 0), "wo": (4096, 4096, 1), "w1": (14336, 4096, 0), "w2": (4096, 14336, 1)}
LAYERS = 4

mesh = init_device_mesh("cpu", tuple(int(s) for s in sys.argv[1].split(",")), mesh_dim_names=("fsdp", "tp"))
momenta = [empty(rows, columns, device_mesh=mesh, placements=[Shard(0), Shard(dim)], dtype=torch.bfloat16)
           for _ in range(LAYERS) for rows, columns, dim in SHAPES.values()]

phase("muon")
with torch.no_grad():
    with bundle("muon.gather"):
        whole = [momentum.redistribute(mesh, [Replicate()] * 2) for momentum in momenta]
    for number, update in enumerate(whole):
        for _ in range(5):
            gram = update @ update.mT
            update = 3.4445 * update + (-4.775 * gram + 2.0315 * gram @ gram) @ update
        whole[number] = update
    with bundle("muon.cut"):
        for momentum, update in zip(momenta, whole):
            momentum.add_(update.redistribute(mesh, momentum.placements), alpha=-0.02)
