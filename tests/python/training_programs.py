"""Training programs for tests of what follows a plan: each gives its losses and gradient norms, and knows nothing of plans.

gathered   parameters gathered before use (FSDP by DTensor), tensor-parallel projections, sequence-parallel activations
context    attention over a sequence in parts: keys and values gathered, or heads against tokens (Ulysses); the norm of the gradients a _NormPartial
experts    mixture of experts: every rank's tokens go to the experts that they chose and back, by all_to_all; six experts, uneven over four ranks
fsdp_tp    FSDP2 over dp, tensor and sequence parallelism, loss parallel over tp, gradients clipped, two steps of SGD
"""
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

import ranks_world

HIDDEN, TOKENS, VOCABULARY, BATCH = 48, 24, 80, 4


def mesh_of(ranks):
    return init_device_mesh(ranks_world.device(), (2, ranks // 2), mesh_dim_names=("dp", "tp"))


def descend(weights, loss):
    """A step of descent with gradients clipped by their norm: the loss and the norm."""
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(weights, 0.01)
    with torch.no_grad():
        for weight in weights:
            weight -= weight.grad
            weight.grad = None
    return [loss.to_local().item(), norm.full_tensor().item()]


def normal(*shape):
    return torch.randn(*shape, device=ranks_world.device())


class Gathered:
    """Two layers on DTensors; `step` gives the loss and the norm of all gradients."""

    def __init__(self, mesh):
        torch.manual_seed(7)
        self.mesh = mesh
        shapes = [(4 * HIDDEN, HIDDEN), (HIDDEN, 4 * HIDDEN)] * 2
        self.weights = [distribute_tensor(normal(s) / 8, mesh, [Shard(0), Shard(i % 2)]).requires_grad_() for i, s in enumerate(shapes)]
        self.x = distribute_tensor(normal(BATCH, TOKENS, HIDDEN), mesh, [Shard(0), Shard(1)])

    def gathered(self, weight):
        return weight.redistribute(self.mesh, [Replicate(), weight.placements[1]])

    def loss(self, *weights):
        x = self.x
        for up, down in zip(weights[::2], weights[1::2]):
            full = x.redistribute(self.mesh, [Shard(0), Replicate()])
            inner = F.gelu(F.linear(full, self.gathered(up)))
            x = x + F.linear(inner, self.gathered(down)).redistribute(self.mesh, [Shard(0), Shard(1)])
        return (x * x).mean().redistribute(self.mesh, [Replicate(), Replicate()]).to_local()

    def step(self, loss_of=None):
        for weight in self.weights:
            weight.grad = None
        loss = (loss_of or self.loss)(*self.weights)
        loss.backward()
        norm = sum((w.grad.redistribute(self.mesh, w.placements).to_local() ** 2).sum() for w in self.weights)
        return [loss.item(), norm.item()]


class Context:
    """Two layers of attention, the sequence sharded over the second dim, weights over the first: keys and values are gathered in the first
    layer, heads sharded in place of tokens in the second; `step` trains with gradients clipped by their norm."""

    HEADS = 8

    def __init__(self, mesh):
        torch.manual_seed(5)
        self.mesh = mesh
        self.weights = [distribute_tensor(normal(shape) / 8, mesh, [Shard(0), Replicate()]).requires_grad_()
                        for shape in [(3 * HIDDEN, HIDDEN), (HIDDEN, HIDDEN)] * 2]
        self.x = distribute_tensor(normal(BATCH, TOKENS, HIDDEN), mesh, [Shard(0), Shard(1)])
        self.first = mesh.get_local_rank(1) * TOKENS // mesh.size(1)  # token of this rank's part

    def attended(self, q, k, v, placements, first):
        """Causal attention of the local queries, which begin at token `first`."""
        q, k, v = (t.to_local(grad_placements=p).transpose(1, 2) for t, p in zip((q, k, v), placements))
        below = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(first)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=below)
        return DTensor.from_local(out.transpose(1, 2), self.mesh, placements[0], run_check=False)

    def projected(self, x, weight):
        """F.linear of local tokens: PyTorch 2.11 flattens no DTensor whose second dim is sharded."""
        out = F.linear(x.to_local(), weight.to_local(grad_placements=[Partial(), Partial()]))
        return DTensor.from_local(out, self.mesh, x.placements, run_check=False)

    def attention(self, x, weight, by_heads):
        whole, tokens = [Shard(0), Replicate()], [Shard(0), Shard(1)]
        qkv = self.projected(x, weight).unflatten(2, (3, self.HEADS, HIDDEN // self.HEADS))
        q, k, v = qkv.unbind(2)
        if by_heads:
            heads = [Shard(0), Shard(2)]
            q, k, v = (t.redistribute(self.mesh, heads) for t in (q, k, v))
            out = self.attended(q, k, v, [heads] * 3, 0).redistribute(self.mesh, tokens)
        else:
            k, v = (t.redistribute(self.mesh, whole) for t in (k, v))
            out = self.attended(q, k, v, [tokens, [Shard(0), Partial()], [Shard(0), Partial()]], self.first)
        return out.flatten(2)

    def loss(self, *weights):
        x = self.x
        gather = lambda weight: weight.redistribute(self.mesh, [Replicate(), Replicate()])  # noqa: E731
        for layer, (inner, outer) in enumerate(zip(weights[::2], weights[1::2])):
            x = x + self.projected(self.attention(x, gather(inner), layer == 1), gather(outer))
        return (x * x).mean().redistribute(self.mesh, [Replicate(), Replicate()])

    def step(self, loss_of=None):
        return descend(self.weights, (loss_of or self.loss)(*self.weights))


class Experts:
    """Two layers that send every token to one of six experts, which lie over the second mesh dim, weights sharded over the first: [experts, places,
    hidden] goes from places over all ranks to experts over the second dim, and back. `step` trains with gradients clipped by their norm."""

    EXPERTS = 6

    def __init__(self, mesh):
        torch.manual_seed(9)
        self.mesh = mesh
        shapes = [(HIDDEN, self.EXPERTS), (self.EXPERTS, HIDDEN, 2 * HIDDEN), (self.EXPERTS, 2 * HIDDEN, HIDDEN)] * 2
        self.weights = [distribute_tensor(normal(s) / 8, mesh, [Shard(len(s) - 2), Shard(0) if len(s) == 3 else Replicate()]).requires_grad_()
                        for s in shapes]
        self.x = distribute_tensor(normal(BATCH * TOKENS, HIDDEN), mesh, [Shard(0), Shard(0)])

    def layer(self, x, router, up, down):
        spread, at_home = [Shard(1), Shard(1)], [Shard(1), Shard(0)]
        chances = F.linear(x, router.redistribute(self.mesh, [Replicate(), Replicate()]).t()).softmax(1).to_local()
        chosen = F.one_hot(chances.argmax(1), self.EXPERTS).to(chances.dtype)  # [tokens, experts]
        # A place of an expert for every token of this rank: nobody is turned away.
        sent = torch.einsum("te,th->eth", chosen, x.to_local())
        sent = DTensor.from_local(sent, self.mesh, spread, run_check=False).redistribute(self.mesh, at_home)
        up, down = (w.redistribute(self.mesh, [Replicate(), Shard(0)]) for w in (up, down))
        back = torch.bmm(F.gelu(torch.bmm(sent, up)), down).redistribute(self.mesh, spread).to_local()
        return x + DTensor.from_local(torch.einsum("te,eth->th", chances * chosen, back), self.mesh, [Shard(0), Shard(0)], run_check=False)

    def loss(self, *weights):
        x = self.x
        for at in range(0, len(weights), 3):
            x = self.layer(x, *weights[at:at + 3])
        return (x * x).mean().redistribute(self.mesh, [Replicate(), Replicate()])

    def step(self, loss_of=None):
        return descend(self.weights, (loss_of or self.loss)(*self.weights))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, 4 * HIDDEN), torch.nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class FsdpTp:
    """Vocabulary-parallel embedding and loss, sequence parallelism between, FSDP2 over dp; `step` trains."""

    def __init__(self, mesh):
        torch.manual_seed(11)
        self.model, tp = Model(), mesh["tp"]
        parallelize_module(self.model, tp, {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
                                            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
        for layer in self.model.layers:
            parallelize_module(layer, tp, {
                "norm": SequenceParallel(use_local_output=False),
                "up": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())})
            parallelize_module(layer, tp, {"up": ColwiseParallel(use_local_output=False),
                                           "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(self.model, mesh=mesh["dp"])
        torch.manual_seed(100 + mesh.get_local_rank("dp"))
        self.tokens = torch.randint(VOCABULARY, (BATCH, TOKENS), device=ranks_world.device())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self):
        with loss_parallel():
            loss = F.cross_entropy(self.model(self.tokens).flatten(0, 1), self.tokens.flatten())
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        value = loss.full_tensor() if isinstance(loss, DTensor) else loss
        return [value.item(), (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()]


PROGRAMS = {"gathered": Gathered, "context": Context, "experts": Experts, "fsdp_tp": FsdpTp}
