"""The weights of a Llama-3 8B layer go from a training mesh of 64 ranks (fsdp 8 x tp 8) to a serving mesh of some of them (replicas x tp 8).

usage: checkpoint.py REPLICAS
"""
import sys

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard, empty

from meshplan import capture

# rows, columns, the dim that tp splits
MATRICES = {"wq": (4096, 4096, 0), "wk": (1024, 4096, 0), "wv": (1024, 4096, 0), "wo": (4096, 4096, 1), "w1": (14336, 4096, 0),
            "w2": (4096, 14336, 1), "w3": (14336, 4096, 0), "embedding": (128256, 4096, 0)}

replicas = int(sys.argv[1])
train = init_device_mesh("cpu", (8, 8), mesh_dim_names=("fsdp", "tp"))
serve = DeviceMesh("cpu", torch.arange(replicas * 8).view(replicas, 8), mesh_dim_names=("replica", "tp"))

before = {"norm": empty(4096, device_mesh=train, placements=[Shard(0), Replicate()], dtype=torch.bfloat16)}
after = {"norm": empty(4096, device_mesh=serve, placements=[Replicate(), Replicate()], dtype=torch.bfloat16)}
for name, (rows, columns, dim) in MATRICES.items():
    before[name] = empty(rows, columns, device_mesh=train, placements=[Shard(0), Shard(dim)], dtype=torch.bfloat16)
    after[name] = empty(rows, columns, device_mesh=serve, placements=[Replicate(), Shard(dim)], dtype=torch.bfloat16)
capture.reshard(before, after)
