#!/usr/bin/env python3
"""What recorded redistributions are called, by real programs: weights by their names, others by the module that asks, of all layers one.
Needs PyTorch; exits with 77 and says so where it is missing.

usage: names_test.py [--meshplan BINARY] [NAME...]     NAME: run only tests whose name holds it
"""
import sys

from capture_test import PRELUDE, main, run_program


def test_names_of_weights():
    """What the program moves itself keeps the weight's name, of all layers one: parameters, what state_dict() gives, gradients, the
    gradient of a gathered weight, weights of wrapped modules. What is no weight has none."""
    spec = run_program(8, PRELUDE + """
from meshplan.capture import phase
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("fsdp", "tp"))
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wo = (torch.nn.Linear(48, 48, bias=False) for _ in range(2))
    def forward(self, x):
        return x @ self.wq.weight.redistribute(mesh, [Replicate(), Shard(1)])
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([checkpoint_wrapper(Block()) for _ in range(3)])
        self.register_buffer("scale", tensor(mesh, (64,), [Shard(0), Replicate()]))
model = Model()
for block in model.blocks:
    for linear, dim in ((block.wq, 1), (block.wo, 0)):
        linear.weight = torch.nn.Parameter(tensor(mesh, (48, 48), [Shard(0), Shard(dim)]))
phase("gather")
for weight in model.parameters():
    weight.redistribute(mesh, [Replicate(), Replicate()])
phase("save")
for weight in model.state_dict().values():
    weight.full_tensor()
phase("step")
block = model.blocks[1]
block(tensor(mesh, (48, 48), [Shard(0), Replicate()])).sum().redistribute(mesh, [Replicate(), Replicate()]).backward()
phase("clip")
block.wq.weight.grad.redistribute(mesh, [Replicate(), Replicate()])
phase("other")
(block.wq.weight.detach() * 2).redistribute(mesh, [Replicate(), Replicate()])
torch.nn.Parameter(tensor(mesh, (48, 48), [Shard(0), Shard(1)])).redistribute(mesh, [Replicate(), Replicate()])
""")
    counts = {}
    for entry in spec["redistributions"]:
        counts.setdefault(entry["id"].split(".")[0], {})[entry["id"].partition(".")[2]] = entry["count"]
    both = {"blocks.*.wq.weight.all_gather": 3, "blocks.*.wo.weight.all_gather": 3}
    assert counts["gather"] == both, counts
    assert counts["save"] == {**both, "scale.all_gather": 1}, counts
    step = {(entry["id"], entry.get("direction")) for entry in spec["redistributions"] if entry["id"].startswith("step.blocks")}
    assert step == {("step.blocks.*.wq.weight.all_gather", None), ("step.blocks.*.wq.weight.reshard", "backward")}, counts["step"]
    assert counts["clip"] == {"blocks.*.wq.weight.grad.all_gather": 1}, counts
    assert counts["other"] == {"all_gather": 2}, counts


def test_modules_that_ask_for_the_same():
    """Layers share an entry, other modules have their own, and so have their gradients."""
    spec = run_program(4, PRELUDE + """
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
class Part(torch.nn.Module):
    def forward(self, x):
        return x.redistribute(mesh, [Replicate()]).redistribute(mesh, [Shard(0)]) * 2
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = torch.nn.ModuleList([Part() for _ in range(3)]), Part()
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return self.head(x)
Model()(tensor(mesh, (16, 6), [Shard(0)]).requires_grad_()).sum().redistribute(mesh, [Replicate()]).backward()
""")
    counts = {entry["id"]: entry["count"] for entry in spec["redistributions"]}
    for part, count in (("layers.*", 3), ("head", 1)):
        assert [counts[f"{phase}.{part}.{kind}"] for phase, kind in (("forward", "all_gather"), ("forward", "slice"), ("backward", "slice"))] == [count] * 3, counts


def test_a_bundle_of_every_layer():
    """What each layer asks for at once is one bundle, counted, with the names of all layers' weights."""
    spec = run_program(4, PRELUDE + """
from meshplan import capture
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (torch.nn.Parameter(tensor(mesh, (rows, 6), [Shard(0)])) for rows in (16, 20))
    def forward(self, x):
        with capture.bundle("gather"):
            a, b = (weight.redistribute(mesh, [Replicate()]) for weight in (self.a, self.b))
        return x @ a.mT @ b[:16]
model = torch.nn.Sequential(*[Part() for _ in range(3)])
with torch.no_grad():
    model(tensor(mesh, (8, 6), [Replicate()]))
""")
    (bundle,) = spec["bundles"]
    assert bundle["count"] == 3 and bundle["redistributions"] == ["forward.*.a.all_gather", "forward.*.b.all_gather"], bundle


if __name__ == "__main__":
    sys.exit(main(globals()))
