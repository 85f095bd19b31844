"""A training step of a mixture of experts like DeepSeek-V3's, at a third of its width: dense parts over (fsdp, tp), 64 routed experts over
ep with an all-to-all before and after them, one shared expert. Tokens are spread evenly over the experts.

usage: moe.py WORLD TP EP [LAYERS]
"""
import sys

import torch
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from meshplan.capture import phase

HIDDEN, HEADS, SIZE, LATENT, INNER, EXPERTS, TOP, VOCABULARY, SEQUENCE = 2048, 16, 128, 512, 1408, 64, 8, 102400, 4096


class LatentAttention(nn.Module):
    """Keys and values pass through a small latent, which is not split."""

    def __init__(self):
        super().__init__()
        self.wq = nn.Linear(HIDDEN, HEADS * SIZE, bias=False)
        self.down = nn.Linear(HIDDEN, LATENT, bias=False)
        self.up = nn.Linear(LATENT, 2 * HEADS * SIZE, bias=False)
        self.wo = nn.Linear(HEADS * SIZE, HIDDEN, bias=False)

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (-1, SIZE)).transpose(1, 2)
        k, v = self.up(self.down(x)).unflatten(-1, (-1, 2 * SIZE)).transpose(1, 2).chunk(2, dim=-1)
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """All experts of a rank in three tensors; their first dim is split over ep."""

    def __init__(self):
        super().__init__()
        self.w1 = nn.Parameter(torch.empty(EXPERTS, INNER, HIDDEN))
        self.w3 = nn.Parameter(torch.empty(EXPERTS, INNER, HIDDEN))
        self.w2 = nn.Parameter(torch.empty(EXPERTS, HIDDEN, INNER))
        self.group = None

    def forward(self, routed):
        w1, w2, w3 = (w.to_local() if isinstance(w, DTensor) else w for w in (self.w1, self.w2, self.w3))
        here = funcol.all_to_all_single(routed, None, None, self.group)  # rows go to the rank of their expert
        rows = here.unflatten(0, (w1.shape[0], -1))
        out = torch.bmm(F.silu(torch.bmm(rows, w1.mT)) * torch.bmm(rows, w3.mT), w2.mT)
        return funcol.all_to_all_single(out.flatten(0, 1), None, None, self.group)


class FeedForward(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.w1, self.w3 = nn.Linear(HIDDEN, inner, bias=False), nn.Linear(HIDDEN, inner, bias=False)
        self.w2 = nn.Linear(inner, HIDDEN, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.RMSNorm(HIDDEN), LatentAttention()
        self.ffn_norm, self.router = nn.RMSNorm(HIDDEN), nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts, self.shared = Experts(), FeedForward(INNER)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        y = self.ffn_norm(x)
        rows = y.flatten(0, 1)
        weight = self.router(rows).float().softmax(-1).topk(TOP, dim=-1).values.to(x.dtype)
        routed = self.experts(rows.repeat_interleave(TOP, dim=0)).unflatten(0, (-1, TOP))
        return x + self.shared(y) + (routed * weight.unsqueeze(-1)).sum(1).view_as(x)


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(VOCABULARY, HIDDEN), nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def main():
    world, tp, ep = (int(a) for a in sys.argv[1:4])
    root = init_device_mesh("cpu", (world,), mesh_dim_names=("world",))
    dense = root._unflatten(0, (world // tp, tp), ("fsdp", "tp"))
    sparse = root._unflatten(0, (world // ep, ep), ("efsdp", "ep"))
    with torch.device("meta"):
        model = Model(int(sys.argv[4]) if len(sys.argv) > 4 else 26)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        parallelize_module(layer, dense["tp"], {
            "attention.wq": ColwiseParallel(), "attention.up": ColwiseParallel(), "attention.wo": RowwiseParallel(),
            "shared.w1": ColwiseParallel(), "shared.w3": ColwiseParallel(), "shared.w2": RowwiseParallel()})
        layer.experts.group = sparse["ep"].get_group()
        for name, weight in list(layer.experts.named_parameters()):
            local = torch.empty(EXPERTS // ep, *weight.shape[1:], device="meta")
            layer.experts.register_parameter(name, nn.Parameter(DTensor.from_local(local, sparse["ep"], [Shard(0)], run_check=False)))
        fully_shard(layer.experts, mesh=sparse["efsdp"], mp_policy=policy)
        fully_shard(layer, mesh=dense["fsdp"], mp_policy=policy)
    parallelize_module(model, dense["tp"], {"output": ColwiseParallel(output_layouts=Replicate())})
    fully_shard(model, mesh=dense["fsdp"], mp_policy=policy)
    model.to_empty(device="cpu")
    tokens = torch.empty(1, SEQUENCE, dtype=torch.int64)
    loss = F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
    phase("backward")
    loss.backward()


main()
