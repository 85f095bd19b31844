"""A training step of ViT-S/16 whose 6 heads and 197 tokens divide by nothing: tensor and sequence parallel over 4 ranks, so that shards
are uneven and one rank gets no head at all.

usage: vit.py FSDP,TP
"""
import sys

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, empty

from meshplan.capture import phase

BATCH, TOKENS, HIDDEN, HEADS, INNER, LAYERS, CLASSES = 64, 197, 384, 6, 1536, 12, 1000


class Step:
    def __init__(self, mesh):
        self.mesh, self.parameters = mesh, []

    def weight(self, shape, dim):
        """Split over tp along `dim` and over fsdp along dim 0."""
        self.parameters.append(empty(*shape, device_mesh=self.mesh, placements=[Shard(0), Shard(dim)]).requires_grad_())
        return self.parameters[-1]

    def gathered(self, weight):
        return weight.redistribute(self.mesh, [Replicate(), weight.placements[1]])

    def on_tp(self, x, placement):
        return x.redistribute(self.mesh, [Shard(0), placement])

    def heads(self, x):
        """[batch, tokens, heads, size] with the heads over tp: 2 + 2 + 2 + 0. A view cannot cut 6 heads in 4, so the projection is gathered
        first."""
        return self.on_tp(self.on_tp(x, Replicate()).unflatten(-1, (HEADS, HIDDEN // HEADS)), Shard(2))

    def layer(self, x):
        full = self.on_tp(x, Replicate())
        q, k, v = (self.heads(F.linear(full, self.gathered(self.weight((HIDDEN, HIDDEN), 0)))) for _ in range(3))
        mixed = q * k + v  # stands for attention, which is local to a head
        joined = self.on_tp(mixed, Replicate()).flatten(2)
        out = F.linear(self.on_tp(joined, Shard(2)), self.gathered(self.weight((HIDDEN, HIDDEN), 1)))
        x = x + self.on_tp(out, Shard(1))
        full = self.on_tp(x, Replicate())
        inner = F.gelu(F.linear(full, self.gathered(self.weight((INNER, HIDDEN), 0))))
        return x + self.on_tp(F.linear(inner, self.gathered(self.weight((HIDDEN, INNER), 1))), Shard(1))

    def run(self):
        x = empty(BATCH, TOKENS, HIDDEN, device_mesh=self.mesh, placements=[Shard(0), Shard(1)])
        for _ in range(LAYERS):
            x = self.layer(x)
        pooled = self.on_tp(x.mean(1), Replicate())
        logits = F.linear(pooled, self.gathered(self.weight((CLASSES, HIDDEN), 0)))
        loss = logits.float().logsumexp(-1).mean()
        loss.redistribute(self.mesh, [Replicate(), Replicate()])
        phase("backward")
        loss.backward()
        phase("clip")
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)


Step(init_device_mesh("cpu", tuple(int(s) for s in sys.argv[1].split(",")), mesh_dim_names=("fsdp", "tp"))).run()
