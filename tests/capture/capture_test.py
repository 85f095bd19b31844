#!/usr/bin/env python3
"""The recorder against known programs. Needs PyTorch; exits with 77 and says so where it is missing.

usage: capture_test.py [--meshplan BINARY] [NAME...]     NAME: run only tests whose name holds it
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "apps" / "python"
CAPTURED = ROOT / "testdata" / "workloads" / "captured.json"


class Options:
    meshplan = None  # the binary; without it specs are only compared


def planned(spec, *options):
    """The plan of a recorded spec: the proof that it is one. None without the binary."""
    if Options.meshplan is None:
        return None
    done = subprocess.run([Options.meshplan, "plan", "-", *options], input=json.dumps(spec), capture_output=True, text=True)
    assert done.returncode == 0, f"meshplan plan: exit {done.returncode}: {done.stderr[:2000]}"
    return json.loads(done.stdout)


def run_recorded(world, program, *arguments, status=0):
    """Runs the recorder in a forked child, which has PyTorch loaded already."""
    with tempfile.TemporaryDirectory() as folder:
        spec, log = os.path.join(folder, "spec.json"), os.path.join(folder, "log")
        child = os.fork()
        if child == 0:
            code = 70
            try:
                with open(log, "wb") as out:
                    os.dup2(out.fileno(), 1)
                    os.dup2(out.fileno(), 2)
                sys.argv = ["meshplan.capture", "--world", str(world), "-o", spec, str(program), *arguments]
                code = recorder().main()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == status, f"exit {code}: {pathlib.Path(log).read_text()[-2000:]}"
        text = pathlib.Path(spec).read_text()
        planned(json.loads(text))
        return json.loads(text), text


def recorder():
    """The recorder's command line."""
    sys.path.insert(0, str(PACKAGE))
    from meshplan.capture import __main__
    return __main__


def run_program(world, source, status=0):
    """Records a program given as text."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        pathlib.Path(program).write_text(source)
        return run_recorded(world, program, status=status)[0]


def moves(spec):
    """(phase, tensor, src, dst) -> count: what ../../testdata/workloads/captured.json holds of a redistribution."""
    found = {}
    for entry in spec["redistributions"]:
        phase = entry.get("phase", entry.get("x-phase"))
        key = (phase, tuple(entry["tensor"]["shape"]), entry["tensor"]["dtype"], tuple(entry["src"]), tuple(entry["dst"]))
        found[key] = found.get(key, 0) + entry["count"]
    return found


def test_captured_workloads():
    """The step in the spirit of the program that made captured.json asks for the same redistributions, as often."""
    captured = json.loads(CAPTURED.read_text())
    if version_of(torch_version()) < version_of(captured["source"].split()[1]):
        return f"recorded with {captured['source']}; the operators of older versions ask for other redistributions"
    workloads = captured["workloads"]
    programs = {"llama3-8b fsdp8 x tp8": ("llama3-8b", "8,8", "fsdp,tp"), "llama3-8b hsdp 2x8 x tp4": ("llama3-8b", "2,8,4", "dp_replicate,fsdp,tp")}
    assert set(workloads) == set(programs), sorted(workloads)
    for name, arguments in programs.items():
        spec, _ = run_recorded(512, HERE / "llama_step.py", *arguments)
        want, have = moves(workloads[name]), moves(spec)
        assert want == have, f"{name}: missing {set(want.items()) - set(have.items())}, extra {set(have.items()) - set(want.items())}"
        mesh = workloads[name]["redistributions"][0]["mesh"]
        assert [(d["name"], d["size"]) for d in spec["mesh"]["dims"]] == list(zip(mesh["dim_names"], mesh["shape"]))


def test_same_text_twice():
    """In this process and in one of its own, as a user runs it."""
    arguments = [str(HERE / "llama_step.py"), "llama3-8b", "8,8", "fsdp,tp", "--flatten"]
    if lacks_logsumexp():
        arguments = [str(HERE / "tensor_parallel.py"), "loss"]
    first = run_recorded(8 if lacks_logsumexp() else 64, *arguments)[1]
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "spec.json")
        done = subprocess.run([sys.executable, "-m", "meshplan.capture", "--world", "8" if lacks_logsumexp() else "64", "-o", spec, *arguments],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        assert done.returncode == 0, done.stderr[-2000:]
        assert "distinct redistributions" in done.stderr, done.stderr[-500:]
        assert pathlib.Path(spec).read_text() == first


PRELUDE = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, Partial, distribute_tensor
def tensor(mesh, shape, placements):
    local = list(shape)
    for size, p in zip(mesh.shape, placements):
        if p.is_shard(): local[p.dim] //= size
    return DTensor.from_local(torch.empty(local), mesh, placements, run_check=False)
"""


def test_flattened_mesh():
    spec = run_program(16, PRELUDE + """
mesh = init_device_mesh("cpu", (2, 4, 2), mesh_dim_names=("dp", "cp", "tp"))
mesh["dp", "cp"]._flatten("data")
mesh["dp", "tp"]._flatten()
tensor(mesh, (16, 16), [Shard(0), Shard(0), Shard(1)]).redistribute(mesh, [Replicate(), Replicate(), Shard(1)])
""")
    assert spec["mesh"]["flattened"] == [{"dims": ["dp", "cp"], "name": "data"}, {"dims": ["dp", "tp"], "name": "dp_tp"}], spec["mesh"]


def test_slices_and_views():
    """A flat world, two unflattened views of it, a slice of each, and a slice that holds a flattened dim."""
    import torch
    if not hasattr(torch.distributed.device_mesh.DeviceMesh, "_unflatten"):
        return "this PyTorch unflattens no mesh"
    spec = run_program(32, PRELUDE + """
world = init_device_mesh("cpu", (32,), mesh_dim_names=("world",))
dense = world._unflatten(0, (2, 4, 2, 2), ("pp", "fsdp", "cp", "tp"))
sparse = world._unflatten(0, (2, 2, 8), ("pp", "efsdp", "ep"))
dense["fsdp", "cp"]._flatten("loss")
a = dense["fsdp", "tp"]
tensor(a, (16, 16), [Shard(0), Shard(1)]).redistribute(a, [Replicate(), Shard(1)])
b = sparse["ep"]
tensor(b, (16, 16), [Shard(0)]).redistribute(b, [Shard(1)])
c = world["loss"]
tensor(c, (16,), [Partial()]).redistribute(c, [Replicate()])
""")
    meshes = {m["name"]: m for m in spec["meshes"]}
    assert spec["meshes"][0] == {"name": "world", "world": 32}, spec["meshes"]
    by_mesh = {r["mesh"]: r for r in spec["redistributions"]}
    assert set(by_mesh) == {"fsdp.tp", "ep", "loss"}, (set(by_mesh), spec["meshes"])
    assert meshes["fsdp.tp"] == {"name": "fsdp.tp", "of": "pp.fsdp.cp.tp", "slice": ["fsdp", "tp"]}, meshes["fsdp.tp"]
    assert meshes["pp.fsdp.cp.tp"]["sizes"] == [2, 4, 2, 2] and meshes["pp.fsdp.cp.tp"]["unflatten"] == "world"
    assert meshes["loss"]["flatten"] == ["fsdp", "cp"], meshes["loss"]


def test_rank_order():
    spec = run_program(8, PRELUDE + """
mesh = DeviceMesh("cpu", [[0, 4], [1, 5], [2, 6], [3, 7]], mesh_dim_names=("a", "b"))
tensor(mesh, (8, 8), [Shard(0), Shard(1)]).redistribute(mesh, [Replicate(), Shard(1)])
""")
    assert spec["mesh"]["ranks"] == [0, 4, 1, 5, 2, 6, 3, 7] and [d["size"] for d in spec["mesh"]["dims"]] == [4, 2]


def test_shard_order():
    if not hasattr(torch_spec(), "ShardOrderEntry"):
        return "this PyTorch has no shard orders"
    spec = run_program(8, PRELUDE + """
from torch.distributed.tensor.placement_types import _StridedShard
mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
x = DTensor.from_local(torch.empty(2, 4), mesh, [_StridedShard(0, split_factor=4), Shard(0)], run_check=False)
x.redistribute(mesh, [Replicate(), Replicate()])
""")
    (entry,) = spec["redistributions"]
    assert entry["src"] == ["SS(0,4)", "S(0)"] and "src_order" not in entry, entry


def test_cross_mesh():
    spec = run_program(64, PRELUDE + """
from meshplan import capture
train = init_device_mesh("cpu", (8, 8), mesh_dim_names=("fsdp", "tp"))
serve = DeviceMesh("cpu", torch.arange(32).view(4, 8), mesh_dim_names=("dp", "tp"))
a, b = tensor(train, (64, 64), [Shard(0), Shard(1)]), tensor(serve, (64, 64), [Replicate(), Shard(0)])
capture.reshard({"w": a}, {"w": b})
""")
    (entry,) = spec["redistributions"]
    assert (entry["id"], entry["src"], entry["dst"]) == ("w", ["S(0)", "S(1)"], ["R", "S(0)"]), entry
    assert entry["src_mesh"] != entry["dst_mesh"] and spec["meshes"][0]["world"] == 64


def test_followed_program():
    """A program that follows a plan asks for the same under the recorder as without it, also what the plan lacks."""
    world = """
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("x",))
def step():
    for dst in (Shard(1), Replicate()): assert tensor(mesh, (8, 8), [Shard(0)]).redistribute(mesh, [dst]).to_local().shape[0] == 8
"""
    own = run_program(4, PRELUDE + world + "step()")
    if "MESHPLAN_LIBRARY" not in os.environ:
        return "MESHPLAN_LIBRARY names no library"
    exchange = {**own, "redistributions": own["redistributions"][:1]}
    followed = run_program(4, PRELUDE + world + f"""
import meshplan
with meshplan.follow(meshplan.plan({exchange!r})): step()
""")
    assert moves(followed) == moves(own) and len(moves(own)) == 2, followed


def test_bundles():
    spec = run_program(12, PRELUDE + """
import meshplan
from meshplan import capture
train = init_device_mesh("cpu", (2, 4), mesh_dim_names=("fsdp", "tp"))
serve = DeviceMesh("cpu", torch.arange(8, 12), mesh_dim_names=("tp",))
weights = [tensor(train, (rows, 96), [Shard(0), Shard(1)]) for rows in (37, 37, 64)]
weights[0].redistribute(train, [Replicate(), Replicate()])
for _ in range(3):
    with capture.bundle("gather", max_messages=32):
        for weight in weights:
            weight.redistribute(train, [Replicate(), Replicate()])
with capture.bundle("gather"):
    weights[2].redistribute(train, [Replicate(), Shard(1)])
    capture.reshard(weights[2], tensor(serve, (64, 96), [Replicate()]), "inside")
with capture.bundle("nothing"):
    weights[0].redistribute(train, weights[0].placements)
for _ in range(2):
    meshplan.reshard({"a": weights[0], "b": weights[2]},
                     {"a": tensor(serve, (37, 96), [Shard(0)]), "b": tensor(serve, (64, 96), [Shard(1)])}, max_staging_bytes=1 << 20)
""")
    counts = {r["id"]: r["count"] for r in spec["redistributions"]}
    found = {b["id"]: (b["count"], b.get("max_staging_bytes"), b.get("max_messages"), [counts[m] for m in b["redistributions"]])
             for b in spec["bundles"]}
    assert found == {"gather": (3, None, 32, [2, 1]), "gather.2": (1, None, None, [1, 1]), "reshard": (2, 1 << 20, None, [1, 1])}, found
    members = [m for b in spec["bundles"] for m in b["redistributions"]]
    assert members[-3:] == ["inside", "a", "b"] and len(set(members)) == 6, members
    assert [counts[i] for i in counts if i not in members] == [1], counts  # before all of them, by itself
    plan = planned(spec)
    assert plan is None or {b["id"]: b["tensors"] for b in plan["bundles"]} == {"gather": 3, "gather.2": 2, "reshard": 2}, plan["bundles"]


def test_optimizer_steps():
    """Requests of an optimizer's step that need nothing of each other are a bundle, level by level."""
    spec = run_program(8, PRELUDE + """
from meshplan import capture
mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("fsdp", "tp"))
class Muon(torch.optim.Optimizer):
    def __init__(self, params): super().__init__(params, {})
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            whole = p.grad.redistribute(mesh, [Replicate(), Replicate()])
            update = whole @ whole.t() @ whole / whole.norm().full_tensor().clamp(min=1e-7)
            p.sub_(update.redistribute(mesh, p.placements), alpha=0.1)
class Clipped(torch.optim.SGD):  # one number for all, read by the program
    def step(self):
        norms = [p.grad.norm().full_tensor() for p in self.param_groups[0]["params"]]
        scale = 1 / max(1.0, float(torch.stack(norms).sum()))
        for p in self.param_groups[0]["params"]:
            p.grad.redistribute(mesh, [Replicate(), Replicate()]).mul_(scale)
class Failing(torch.optim.SGD):
    def step(self):
        self.param_groups[0]["params"][0].grad.redistribute(mesh, [Replicate(), Replicate()])
        raise KeyError("on purpose")
def params():
    made = [torch.nn.Parameter(tensor(mesh, (rows, 48), [Shard(0), Shard(1)])) for rows in (36, 36, 64)]
    for p in made: p.grad = tensor(mesh, tuple(p.shape), [Shard(0), Shard(1)]) + 1
    return made
muon = Muon(params())
for _ in range(2): muon.step()
with capture.bundle("by hand"): Muon(params()).step()
Clipped(params()).step()
torch.optim.AdamW(params()).step()
try: Failing(params()).step()
except KeyError: pass
params()[2].grad.redistribute(mesh, [Replicate(), Replicate()])
""")
    entries = {r["id"]: r for r in spec["redistributions"]}
    found = {b["id"]: (b["count"], sorted((entries[m]["tensor"]["shape"], entries[m]["src"], entries[m]["dst"], entries[m]["count"])
                                          for m in b["redistributions"])) for b in spec["bundles"]}
    gathered = [([36, 48], ["S(0)", "S(1)"], ["R", "R"], 2), ([64, 48], ["S(0)", "S(1)"], ["R", "R"], 1)]
    cut = [([36, 48], ["R", "R"], ["S(0)", "S(1)"], 2), ([64, 48], ["R", "R"], ["S(0)", "S(1)"], 1)]
    assert found["muon.step"] == (2, gathered), found
    assert found["muon.step.2"] == (2, cut), found
    assert found["by hand"][0] == 1 and len(found["by hand"][1]) >= 4, found
    # The gathers of the second loop wait for a number that all norms are in.
    assert found["clipped.step.2"] == (1, gathered), found
    assert set(found) == {"muon.step", "muon.step.2", "by hand", "clipped.step", "clipped.step.2"}, found
    members = {m for b in spec["bundles"] for m in b["redistributions"]}
    alone = [(e["tensor"]["shape"], e["count"]) for i, e in entries.items() if i not in members]
    assert sorted(alone) == [([36, 48], 1), ([64, 48], 1)], alone  # of the step that failed, and after it
    plan = planned(spec)
    assert plan is None or plan["bundles"][0]["tensors"] == 3, plan["bundles"]


def test_backward_is_normalised():
    spec = run_program(4, PRELUDE + """
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
x = tensor(mesh, (8, 8), [Partial()]).requires_grad_()
(x.redistribute(mesh, [Shard(0)]) * tensor(mesh, (8, 8), [Shard(0)])).sum().redistribute(mesh, [Replicate()]).backward()
""")
    gradients = [(r["src"], r["dst"]) for r in spec["redistributions"] if r.get("direction") == "backward"]
    assert gradients == [(["S(0)"], ["R"])], spec


def test_fsdp2():
    """Hybrid sharding of three layers: a gather a layer forward and backward, a reduce-scatter and an all-reduce of each gradient."""
    spec = run_program(16, PRELUDE + """
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh("cuda", (2, 8), mesh_dim_names=("replicate", "shard"))
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False, device="cuda") for _ in range(3)])
for layer in model: fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
model(torch.randn(4, 64, device="cuda")).sum().backward()
""")
    total = {}
    for entry in spec["redistributions"]:
        key = (entry["mesh"], entry["tensor"]["shape"][0], entry["src"][0], entry["dst"][0])
        total[key] = total.get(key, 0) + entry["count"]
    gathers = total.pop(("shard", 4096, "S(0)", "R"))
    assert 3 <= gathers <= 6, (gathers, total)
    assert {(m, n, s[0], d): c for (m, n, s, d), c in total.items()} == {("shard", 4096, "P", "S(0)"): 3, ("replicate", 512, "P", "R"): 3}, total


def test_collectives_outside_dtensor():
    spec = run_program(8, PRELUDE + """
import torch.distributed._functional_collectives as funcol
mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "ep"))
x = torch.empty(16, 8)
funcol.all_to_all_single(x, None, None, mesh["ep"].get_group())
funcol.all_to_all_single(x, [4, 4, 4, 4], [2, 6, 4, 4], mesh["ep"].get_group())
dist.all_reduce(x, op=dist.ReduceOp.MAX, group=mesh["dp"].get_group())
dist.all_reduce(x)
dist.broadcast(x, src=0)
dist.barrier()
""")
    have = {(r["mesh"], tuple(r["tensor"]["shape"]), r["src"][0], r["dst"][0]) for r in spec["redistributions"]}
    assert have == {("ep", (4, 16, 8), "S(1)", "S(0)"), ("dp", (16, 8), "P(max)", "R"), ("world", (16, 8), "P(sum)", "R")}, have
    assert not any("flatten" in m for m in spec["meshes"]), spec["meshes"]
    assert {n["what"] for n in spec["x-not-covered"]} == {"all_to_all_single", "broadcast", "barrier"}, spec["x-not-covered"]


def test_masked_partial():
    spec = run_program(4, PRELUDE + """
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
model = torch.nn.Sequential(torch.nn.Embedding(64, 16))
parallelize_module(model, mesh, {"0": RowwiseParallel(input_layouts=Replicate())})
model(torch.zeros(2, 8, dtype=torch.int64))
""")
    assert any("_MaskPartial" in r.get("x-partial", ()) and r["src"] == ["P(sum)"] and r["x-module"] == "0" for r in spec["redistributions"]), spec


def test_examples_of_tensor_parallel():
    """torch.distributed.tensor.parallel's own: an MLP's one collective (its bias is made partial on the way), the loss's reductions, the
    Transformer with and without sequence parallelism."""
    if importlib.util.find_spec("expecttest") is None:
        return "PyTorch's own examples import expecttest, which is not installed"
    recorded = {name: run_recorded(8, HERE / "tensor_parallel.py", name)[0] for name in ("mlp", "loss", "transformer", "transformer-sp")}
    have = {name: sorted((r["src"][0], r["dst"][0], tuple(r["tensor"]["shape"]), r["count"]) for r in spec["redistributions"])
            for name, spec in recorded.items()}
    assert have["mlp"] == [("P(sum)", "R", (20, 10), 1), ("R", "P(sum)", (10,), 1)], have["mlp"]
    assert sum(count for *_, count in have["loss"]) == 3 and all(move[0][0] == "P" for move in have["loss"]), have["loss"]
    hidden = (2, 16, 32)  # a layer's activation: gathered before and scattered after attention and feed-forward, and the other way back
    moves = {(src, dst): count for src, dst, shape, count in have["transformer-sp"] if shape == hidden}
    assert {("S(1)", "R"), ("P(sum)", "S(1)")} <= set(moves), moves
    assert not any(src == "P(sum)" and dst == "S(1)" for src, dst, *_ in have["transformer"]), have["transformer"]


def test_converted_models():
    """Model.to(), .cuda() and .to_empty() on fake parameters; ties stay where they stay with real ones."""
    spec = run_program(8, PRELUDE + """
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh(device_type="cuda", mesh_shape=(8,), mesh_dim_names=("dp",))
for convert in (lambda m: m.to("cuda"), lambda m: m.cuda().to(torch.bfloat16), lambda m: m.to("meta").to_empty(device="cuda")):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False))
    model[1].weight = model[0].weight
    weight = model[0].weight
    model = convert(model)
    assert model[0].weight.device.type == "cpu", model[0].weight
    assert model[0].weight is model[1].weight or model[0].weight is not weight, "ties are lost"
    fully_shard(model, mesh=mesh)
    model(torch.randn(4, 16, device="cuda", dtype=model[0].weight.dtype)).sum().backward()
""")
    assert {r["tensor"]["dtype"] for r in spec["redistributions"]} == {"float32", "bfloat16"}, spec["redistributions"]


def test_attention():
    """Attention whose heads are sharded asks for nothing, in either direction, whatever the CPU's own operator could do. (The gradient of
    the sum comes in whole and is sliced.)"""
    spec = run_program(4, PRELUDE + """
mesh = init_device_mesh("cuda", (4,), mesh_dim_names=("tp",))
for dtype, kv_heads in ((torch.bfloat16, 4), (torch.float32, 8)):
    q = tensor(mesh, (2, 8, 16, 4), [Shard(1)]).to(dtype).requires_grad_()
    k = tensor(mesh, (2, kv_heads, 16, 4), [Shard(1)]).to(dtype).requires_grad_()
    out = torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
    assert out.placements == (Shard(1),) and out.shape == q.shape, out
    out.sum().redistribute(mesh, [Replicate()]).backward()
    assert q.grad.shape == q.shape and k.grad.shape == k.shape
""")
    moves = {(r["src"][0], r["dst"][0], len(r["tensor"]["shape"])) for r in spec["redistributions"]}
    assert moves <= {("P(sum)", "R", 0), ("R", "S(1)", 4)}, moves


def test_error_in_program():
    spec = run_program(4, PRELUDE + """
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
tensor(mesh, (8, 8), [Shard(0)]).redistribute(mesh, [Replicate()])
raise RuntimeError("out of luck")
""", status=1)
    assert spec["x-incomplete"] == "RuntimeError: out of luck" and len(spec["redistributions"]) == 1


def torch_version():
    import torch
    return torch.__version__


def version_of(text):
    """"2.15.0+cu132" as (2, 15)."""
    return tuple(int(n) for n in text.split("+")[0].split(".")[:2])


def lacks_logsumexp():
    import torch
    import torch.distributed.tensor
    dispatcher = torch.distributed.tensor.DTensor._op_dispatcher.sharding_propagator
    return not any(torch.ops.aten.logsumexp.default in table for table in vars(dispatcher).values() if isinstance(table, dict))


def torch_spec():
    import torch.distributed.tensor._dtensor_spec as module
    return module


def main(tests):
    """`tests`: the names of a file; its functions test_... run."""
    if importlib.util.find_spec("torch") is None:
        print("capture_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    arguments = sys.argv[1:]
    if "--meshplan" in arguments:
        at = arguments.index("--meshplan")
        Options.meshplan = arguments[at + 1]
        del arguments[at:at + 2]
    wanted = arguments
    failed = 0
    recorder()
    for name, test in [(n, t) for n, t in tests.items() if n.startswith("test_")]:
        if wanted and not any(w in name for w in wanted):
            continue
        try:
            note = test()
            print(f"{name}: {'skipped, ' + note if note else 'ok'}", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name}: FAILED {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(globals()))
