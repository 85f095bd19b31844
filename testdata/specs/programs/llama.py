"""A training step of Llama 3, written as users write it: fully_shard over (replicate, fsdp), parallelize_module over tp with sequence
parallel activations, the loss over sharded logits, gradient clipping.

usage: llama.py 8b|70b REPLICATE,FSDP,TP [LAYERS]
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

from meshplan.capture import phase

# hidden, heads, key-value heads, feed-forward, layers
MODELS = {"8b": (4096, 32, 8, 14336, 32), "70b": (8192, 64, 8, 28672, 80)}
VOCABULARY, SEQUENCE = 128256, 8192


class Attention(nn.Module):
    def __init__(self, hidden, heads, kv_heads):
        super().__init__()
        self.size = hidden // heads
        self.wq = nn.Linear(hidden, heads * self.size, bias=False)
        self.wk = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.wv = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.wo = nn.Linear(heads * self.size, hidden, bias=False)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.w1, self.w3 = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.w2 = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, hidden, heads, kv_heads, inner):
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(hidden), Attention(hidden, heads, kv_heads)
        self.ffn_norm, self.feed_forward = nn.RMSNorm(hidden), FeedForward(hidden, inner)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, hidden, heads, kv_heads, inner, layers):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.layers = nn.ModuleList(Block(hidden, heads, kv_heads, inner) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(hidden), nn.Linear(hidden, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def parallelize(model, mesh):
    tp = mesh["tp"]
    parallelize_module(model, tp, {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    for layer in model.layers:
        parallelize_module(layer, tp, {
            "attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
            "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "feed_forward.w1": ColwiseParallel(), "feed_forward.w3": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1))})
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    data = mesh["replicate", "fsdp"] if mesh["replicate"].size() > 1 else mesh["fsdp"]
    for part in (model.embedding, *model.layers):
        fully_shard(part, mesh=data, mp_policy=policy)
    fully_shard(model, mesh=data, mp_policy=policy)


def main():
    *sizes, layers = MODELS[sys.argv[1]]
    shape = tuple(int(s) for s in sys.argv[2].split(","))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "fsdp", "tp"))
    with torch.device("meta"):
        model = Llama(*sizes, int(sys.argv[3]) if len(sys.argv) > 3 else layers)
    parallelize(model, mesh)
    model.to_empty(device="cpu")
    tokens = torch.empty(1, SEQUENCE, dtype=torch.int64)
    with loss_parallel():
        loss = F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
        phase("backward")
        loss.backward()
    phase("clip")
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)


main()
