#!/usr/bin/env python3
"""What recording costs: a training step on real tensors, with and without the recorder, in turns in one process. Needs PyTorch.

usage: overhead.py [--rounds N]     prints the median step of both and the difference; exits 1 above 5 percent

The process group is fake, so that communication costs nothing and the recorder's share is at its largest.
"""
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "apps" / "python"))
from meshplan import capture  # noqa: E402

HIDDEN, INNER, LAYERS, TOKENS = 1024, 4096, 4, 512


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, INNER), torch.nn.Linear(INNER, HIDDEN)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def main():
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 15
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
    model = torch.nn.Sequential(*(Block() for _ in range(LAYERS)))
    for block in model:
        parallelize_module(block, mesh, {"norm": SequenceParallel(sequence_dim=0, use_local_output=True), "up": ColwiseParallel(input_layouts=Shard(0)),
                                         "down": RowwiseParallel(output_layouts=Shard(0))})
    x = torch.randn(TOKENS // 4, HIDDEN)

    def step():
        start = time.perf_counter()
        model(x).sum().backward()
        model.zero_grad()
        return time.perf_counter() - start

    for _ in range(3):
        step()
    plain, recorded = [], []
    for _ in range(rounds):
        plain.append(step())
        with capture.record() as recorder:
            recorded.append(step())
    count = sum(r["count"] for r in recorder.spec["redistributions"])
    # Medians of pairs in turns: what else the machine does falls on both.
    before, after = statistics.median(plain), statistics.median(recorded)
    share = statistics.median(r / p for p, r in zip(plain, recorded)) - 1
    print(f"overhead: step {before * 1e3:.2f} ms, recorded {after * 1e3:.2f} ms ({count} redistributions): {share:+.1%}")
    return int(share > 0.05)


if __name__ == "__main__":
    sys.exit(main())
