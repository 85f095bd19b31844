"""An optimizer step on the matrices of four Llama-3 8B layers, sharded over (fsdp, tp): gradients arrive as pending sums over the
data-parallel replicas, are clipped by their norm, and go to Muon, which needs every matrix whole for its Newton-Schulz iteration.

usage: optimizer.py REPLICATE,FSDP,TP
"""
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, empty

from meshplan.capture import phase

SHAPES = {"wq": (4096, 4096, 0), "wk": (1024, 4096, 0), "wo": (4096, 4096, 1), "w1": (14336, 4096, 0), "w2": (4096, 14336, 1)}
LAYERS = 4

mesh = init_device_mesh("cpu", tuple(int(s) for s in sys.argv[1].split(",")), mesh_dim_names=("replicate", "fsdp", "tp"))
mesh["replicate", "fsdp"]._flatten("data")

parameters = []
phase("gradients")
for rows, columns, dim in [shape for _ in range(LAYERS) for shape in SHAPES.values()]:
    parameter = torch.nn.Parameter(empty(rows, columns, device_mesh=mesh, placements=[Replicate(), Shard(0), Shard(dim)], dtype=torch.bfloat16))
    gradient = empty(rows, columns, device_mesh=mesh, placements=[Partial(), Partial(), Shard(dim)], dtype=torch.bfloat16)
    parameter.grad = gradient.redistribute(mesh, parameter.placements)
    parameters.append(parameter)

phase("clip")
torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

phase("muon")
with torch.no_grad():
    for parameter in parameters:
        whole = parameter.grad.redistribute(mesh, [Replicate()] * 3)
        for _ in range(5):
            gram = whole @ whole.mT
            whole = 3.4445 * whole + (-4.775 * gram + 2.0315 * gram @ gram) @ whole
        parameter.add_(whole.redistribute(mesh, parameter.placements), alpha=-0.02)
