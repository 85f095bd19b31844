"""Two blocks under tensor and sequence parallelism, with `fsdp` also sharded over dp, on 2 x 2 ranks of gloo: one step is recorded, then one
more runs, and every rank writes what PyTorch's flight recorder saw of both. With `changed` the last step reduces its loss once more.

usage: torchrun --nproc-per-node 4 ran_program.py FOLDER [fsdp] [changed]
"""
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

from meshplan import capture

folder = pathlib.Path(sys.argv[1])


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def model_on(mesh):
    model = torch.nn.Sequential(Block(), Block())
    for block in model:
        parallelize_module(block, mesh["tp"], {"norm": SequenceParallel(use_local_output=False), "up": ColwiseParallel(input_layouts=Shard(1)),
                                               "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
        if "fsdp" in sys.argv:
            fully_shard(block, mesh=mesh["dp"])
    if "fsdp" in sys.argv:
        fully_shard(model, mesh=mesh["dp"])
    return model


def step(model, mesh):
    x = DTensor.from_local(torch.randn(4, 8, 64), mesh["tp"], [Shard(1)], run_check=False)
    loss = model(x).pow(2).mean().full_tensor()
    loss.backward()
    torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    model.zero_grad()
    return loss


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = model_on(mesh)
    with capture.record(folder / "spec.json" if dist.get_rank() == 0 else None):
        step(model, mesh)
    loss = step(model, mesh)
    if "changed" in sys.argv:
        dist.all_reduce(loss.detach(), group=mesh.get_group("dp"))
    dist.barrier()
    dump = torch._C._distributed_c10d._dump_fr_trace_json()
    (folder / f"rank{dist.get_rank()}.json").write_bytes(dump if isinstance(dump, bytes) else dump.encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
