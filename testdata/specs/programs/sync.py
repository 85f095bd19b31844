"""All weights of Llama-3 go from a training mesh (HSDP + TP) to an inference mesh of other ranks: replicas, each with TP.

usage: sync.py 8b|70b REPLICATE,FSDP,TP REPLICAS,TP
"""
import sys

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, empty

import meshplan

WIDTH, HIDDEN, LAYERS = {"8b": (4096, 14336, 32), "70b": (8192, 28672, 80)}[sys.argv[1]]
# rows, columns, the dim that tp splits
MATRICES = {"wq": (WIDTH, WIDTH, 0), "wk": (1024, WIDTH, 0), "wv": (1024, WIDTH, 0), "wo": (WIDTH, WIDTH, 1), "w1": (HIDDEN, WIDTH, 0),
            "w2": (WIDTH, HIDDEN, 1), "w3": (HIDDEN, WIDTH, 0)}

shapes = [tuple(int(s) for s in text.split(",")) for text in sys.argv[2:4]]
trainers = torch.Size(shapes[0]).numel()
train = DeviceMesh("cpu", torch.arange(trainers).view(shapes[0]), mesh_dim_names=("replicate", "fsdp", "tp"))
serve = DeviceMesh("cpu", trainers + torch.arange(torch.Size(shapes[1]).numel()).view(shapes[1]), mesh_dim_names=("replica", "tp"))

before, after = {}, {}


def weight(name, shape, split):
    """`split`: the placement over tp, on both sides."""
    before[name] = empty(*shape, device_mesh=train, placements=[Replicate(), Shard(0), split], dtype=torch.bfloat16)
    after[name] = empty(*shape, device_mesh=serve, placements=[Replicate(), split], dtype=torch.bfloat16)


weight("embedding", (128256, WIDTH), Shard(0))
for layer in range(LAYERS):
    for name, (rows, columns, dim) in MATRICES.items():
        weight(f"layers.{layer}.{name}", (rows, columns), Shard(dim))
    for name in ("attention_norm", "ffn_norm"):
        weight(f"layers.{layer}.{name}", (WIDTH,), Replicate())
weight("norm", (WIDTH,), Replicate())
weight("output", (128256, WIDTH), Shard(0))
meshplan.reshard(before, after)
