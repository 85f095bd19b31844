"""The examples that come with torch.distributed.tensor.parallel, as they are in the installed PyTorch: its model zoo's MLP and Transformer
with their own plans, and the example of loss_parallel's documentation.

usage: tensor_parallel.py mlp|transformer|transformer-sp|loss
"""
import sys
import textwrap

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module


def mlp():
    from torch.testing._internal.distributed._tensor.common_dtensor import MLPModule
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = parallelize_module(MLPModule("cuda"), mesh, {"net1": ColwiseParallel(), "net2": RowwiseParallel()})
    model(torch.rand(20, 10, device="cuda")).sum().backward()


def transformer(use_sequence_parallel):
    from torch.testing._internal.distributed._tensor.common_dtensor import ModelArgs, Transformer
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    args = ModelArgs(n_heads=8, dim=32, dropout_p=0.0)
    model = Transformer.parallelize(Transformer(args).to("cuda"), mesh, use_sequence_parallel)
    model(torch.zeros(2, args.max_seq_len, dtype=torch.int64, device="cuda")).sum().backward()


def loss():
    """What stands behind the prompts of the documentation's example."""
    lines = [line.strip()[4:] for line in loss_parallel.__doc__.splitlines() if line.strip().startswith(">>> ")]
    code = textwrap.dedent("\n".join(line for line in lines if line != "..."))
    assert "loss.backward()" in code, code
    exec(code, {"torch": torch, "F": F, "Shard": Shard, "distribute_tensor": distribute_tensor})


if __name__ == "__main__":
    {"mlp": mlp, "transformer": lambda: transformer(False), "transformer-sp": lambda: transformer(True), "loss": loss}[sys.argv[1]]()
