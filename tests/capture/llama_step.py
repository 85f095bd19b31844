"""A Llama-style training step on DTensors: two layers, the loss, its gradients and their norm, with parameters gathered before use
(FSDP), tensor-parallel projections and sequence-parallel activations. Run by the recorder; it knows nothing of meshplan but its phases.

usage: llama_step.py MODEL SHAPE NAMES [--flatten]     e.g. llama3-8b 2,8,4 dp_replicate,fsdp,tp
"""
import sys

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

try:
    from meshplan.capture import phase
except ImportError:
    def phase(name):
        pass

# hidden, heads, key-value heads, feed-forward, vocabulary
MODELS = {"llama3-8b": (4096, 32, 8, 14336, 128256), "llama3-70b": (8192, 64, 8, 28672, 128256)}
SEQUENCE, LAYERS = 8192, 2


class Step:
    def __init__(self, model, mesh, batch):
        self.hidden, self.heads, self.kv_heads, self.feed_forward, self.vocabulary = MODELS[model]
        self.mesh, self.batch = mesh, batch
        self.dims = mesh.mesh_dim_names
        data = [Replicate() if n == "dp_replicate" else Shard(0) for n in self.dims[:-1]]
        self.column, self.row = (*data, Shard(0)), (*data, Shard(1))
        self.activation = (*(Shard(0) for _ in self.dims[:-1]), Shard(1))
        self.parameters = []

    def tensor(self, shape, placements):
        local = list(shape)
        for size, placement in zip(self.mesh.shape, placements):
            if placement.is_shard():
                local[placement.dim] //= size
        strides = [1]
        for size in reversed(shape[1:]):
            strides.insert(0, strides[0] * size)
        return DTensor.from_local(torch.empty(local, dtype=torch.bfloat16), self.mesh, placements, run_check=False, shape=torch.Size(shape),
                                  stride=tuple(strides)).requires_grad_()

    def weight(self, rows, columns, placements):
        self.parameters.append(self.tensor((rows, columns), placements))
        return self.parameters[-1]

    def gathered(self, weight):
        """The whole weight over every data-parallel dim, still split over tp."""
        target = [p if n == "tp" else Replicate() for n, p in zip(self.dims, weight.placements)]
        return weight.redistribute(self.mesh, target)

    def on_tp(self, x, placement):
        return x.redistribute(self.mesh, [*self.activation[:-1], placement])

    def heads_of(self, x, heads):
        return x.view(self.batch, SEQUENCE, heads, self.hidden // self.heads).transpose(1, 2)

    def layer(self, x):
        size = self.hidden // self.heads
        wq = self.weight(self.hidden, self.hidden, self.column)
        wk = self.weight(self.kv_heads * size, self.hidden, self.column)
        wv = self.weight(self.kv_heads * size, self.hidden, self.column)
        wo = self.weight(self.hidden, self.hidden, self.row)
        w1 = self.weight(self.feed_forward, self.hidden, self.column)
        w3 = self.weight(self.feed_forward, self.hidden, self.column)
        w2 = self.weight(self.hidden, self.feed_forward, self.row)
        full = self.on_tp(x, Replicate())
        q = self.heads_of(F.linear(full, self.gathered(wq)), self.heads)
        k = self.heads_of(F.linear(full, self.gathered(wk)), self.kv_heads)
        v = self.heads_of(F.linear(full, self.gathered(wv)), self.kv_heads)
        group = self.heads // self.kv_heads
        k, v = (t.unsqueeze(2).expand(self.batch, self.kv_heads, group, SEQUENCE, size).reshape(self.batch, self.heads, SEQUENCE, size)
                for t in (k, v))
        mixed = q * k + v  # stands for attention, which is local to a head and asks for nothing
        x = x + self.on_tp(F.linear(mixed.transpose(1, 2).reshape(self.batch, SEQUENCE, self.hidden), self.gathered(wo)), Shard(1))
        full = self.on_tp(x, Replicate())
        gate = F.silu(F.linear(full, self.gathered(w1))) * F.linear(full, self.gathered(w3))
        return x + self.on_tp(F.linear(gate, self.gathered(w2)), Shard(1))

    def run(self):
        everywhere = [Replicate()] * len(self.dims)
        x = self.tensor((self.batch, SEQUENCE, self.hidden), self.activation)
        for _ in range(LAYERS):
            x = self.layer(x)
        head = self.weight(self.vocabulary, self.hidden, self.column)
        loss = F.linear(self.on_tp(x, Replicate()), self.gathered(head)).float().logsumexp(-1).mean()
        loss.redistribute(self.mesh, everywhere)
        phase("backward")
        loss.backward()
        phase("grad_norm")
        norm = sum((p.grad.float() ** 2).sum() for p in self.parameters if p.grad is not None)
        norm.redistribute(self.mesh, everywhere)
        phase(None)


def main():
    model, shape, names = sys.argv[1:4]
    shape, names = tuple(int(s) for s in shape.split(",")), tuple(names.split(","))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    if "--flatten" in sys.argv:
        for count in range(2, len(names) + 1):
            mesh[names[-count:]]._flatten()
    batch = 2
    for size in shape[:-1]:
        batch *= size
    Step(model, mesh, batch).run()


if __name__ == "__main__":
    main()
