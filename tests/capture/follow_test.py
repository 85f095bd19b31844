#!/usr/bin/env python3
"""Follows plans in PyTorch: runs the code of `meshplan plan --format torch` on real data, each rank a thread of this process with PyTorch's
own threaded process group, and checks every rank's data and the collectives that PyTorch issued. Needs PyTorch with shard orders (2.10 or
newer) and the meshplan binary; exits with 77 and says so where one is missing.

usage: follow_test.py --meshplan BINARY [--seed N] [--count N] [--verbose]     N: how many of the vectors, all without it
"""
import contextlib
import importlib.util
import itertools
import json
import logging
import math
import pathlib
import random
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "testdata" / "vectors" / "redistribute.json"
SPECS = HERE.parent.parent / "testdata" / "specs"

# Exchanges at a hundredth of the links' speed: the planner then keeps to collectives, which is what PyTorch has.
COLLECTIVES_ONLY = {"levels": [{"name": "flat", "ranks": 1048576, "gb_per_s": 100, "latency_ns": 10000, "per_peer_ns": 5000000,
                                "exchange_percent": 1}]}
COUNTED = {}


# ---------------------------------------------------------------- plans

def meshplan(binary, spec, *options):
    done = subprocess.run([binary, "plan", "-", *options], input=json.dumps(spec), capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def spec_of(case, name, topology):
    mesh = case["mesh"]
    names = mesh["dim_names"]
    entry = {"id": name, "tensor": case["tensor"], "src": case["src"]["placements"], "dst": case["dst"]["placements"]}
    for end in ("src", "dst"):
        orders = case[end].get("shard_order")
        if orders:
            entry[end + "_order"] = [{"tensor_dim": int(d), "mesh_dims": [names[m] for m in dims]} for d, dims in orders.items() if len(dims) > 1]
    spec = {"schema": "meshplan/spec/1", "redistributions": [entry],
            "mesh": {"dims": [{"name": n, "size": s} for n, s in zip(names, mesh["shape"])],
                     "flattened": [{"dims": f} for f in mesh["flattened"]]}}
    if topology:
        spec["topology"] = topology
    return spec


# ---------------------------------------------------------------- data by the meaning of placements

def shard(interval, size, coordinate):
    lo, hi = interval
    chunk = -(-(hi - lo) // size) if hi > lo else 0
    return min(hi, lo + coordinate * chunk), min(hi, lo + (coordinate + 1) * chunk)


def box_of(end, shape, mesh_shape, coordinates):
    orders = {int(d): dims for d, dims in end.get("shard_order", {}).items()}
    box = []
    for d, extent in enumerate(shape):
        interval = (0, extent)
        for m in orders.get(d) or [m for m, p in enumerate(end["placements"]) if p == f"S({d})"]:
            interval = shard(interval, mesh_shape[m], coordinates[m])
        box.append(slice(*interval))
    return tuple(box)


def reduced(parts, ops, sizes):
    """The value that contributions stand for; `ops` and `sizes` are those of the mesh dims that hold them."""
    import torch
    stacked = torch.stack(parts)
    if set(ops) <= {"sum", "avg"}:
        return stacked.sum(0) / math.prod(s for op, s in zip(ops, sizes) if op == "avg")
    return {"max": stacked.amax, "min": stacked.amin, "product": stacked.prod}[ops[0]](0)


def pending(end, mesh_shape):
    dims = [i for i, p in enumerate(end["placements"]) if p[0] == "P"]
    return dims, [end["placements"][i][2:-1] for i in dims], [mesh_shape[i] for i in dims]


class Data:
    """Contributions of every rank before, and the value that they must stand for after."""

    def __init__(self, case, seed):
        import torch
        shape, self.mesh_shape = case["tensor"]["shape"], case["mesh"]["shape"]
        self.case, generator = case, random.Random(seed)
        self.dims, ops, sizes = pending(case["src"], self.mesh_shape)
        low, high = (1, 3) if "product" in ops else (-64, 64)
        count = math.prod(shape)
        parts = {c: torch.tensor([generator.randrange(low, high) for _ in range(count)], dtype=torch.float64).reshape(shape)
                 for c in itertools.product(*(range(s) for s in sizes))}
        self.value = reduced(list(parts.values()), ops, sizes) if self.dims else parts[()]
        self.coordinates = list(itertools.product(*(range(s) for s in self.mesh_shape)))
        self.before = {}
        for rank, c in enumerate(self.coordinates):
            whole = parts[tuple(c[d] for d in self.dims)]
            self.before[rank] = whole[box_of(case["src"], shape, self.mesh_shape, c)].clone()

    def is_right(self, after):
        import torch
        dims, ops, sizes = pending(self.case["dst"], self.mesh_shape)
        groups = {}
        for rank, c in enumerate(self.coordinates):
            groups.setdefault(tuple(x for i, x in enumerate(c) if i not in dims), []).append(rank)
        for ranks in groups.values():
            want = self.value[box_of(self.case["dst"], self.case["tensor"]["shape"], self.mesh_shape, self.coordinates[ranks[0]])]
            have = [after[r] for r in ranks]
            if any(h.shape != want.shape for h in have):
                return False
            for h in [reduced(have, ops, sizes)] if dims else have:
                if not torch.allclose(h, want, atol=1e-9):
                    return False
        return True


# ---------------------------------------------------------------- PyTorch

DEPTH = threading.local()


def count_collectives():
    """Every collective of DTensor goes through one of these. What one of them calls inside (all_to_all on a CPU) is not counted again."""
    import torch.distributed._functional_collectives as funcol
    import torch.distributed.tensor.placement_types as placements
    names = {"all_reduce": "all_reduce", "all_gather_single": "all_gather", "all_gather_tensor": "all_gather",
             "reduce_scatter_single": "reduce_scatter", "reduce_scatter_tensor": "reduce_scatter"}
    for name, op in names.items():
        if hasattr(funcol, name):
            setattr(funcol, name, counting(getattr(funcol, name), op))
    placements.shard_dim_alltoall = counting(placements.shard_dim_alltoall, "all_to_all")


def counting(function, op):
    def call(*args, **kwargs):
        import torch.distributed as dist
        depth = getattr(DEPTH, "value", 0)
        if depth == 0 and dist.get_rank() == 0:
            COUNTED[op] = COUNTED.get(op, 0) + 1
        DEPTH.value = depth + 1
        try:
            return function(*args, **kwargs)
        finally:
            DEPTH.value = depth
    return call


class ReduceScatter:
    """The threaded group's own knows sums only."""

    def __init__(self, op):
        self.op = getattr(op, "op", op)

    def work(self, data):
        from torch.testing._internal.distributed.multi_threaded_pg import _reduce_ops
        for rank, (outputs, _) in enumerate(data):
            outputs[0].detach().copy_(_reduce_ops[self.op]([inputs[0][rank] for _, inputs in data]))


def on_every_rank(world, body):
    """body(rank) -> value on `world` threads that are ranks of one process group; the values by rank. Raises what the first rank raised."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import multi_threaded_pg as threaded
    threaded.ReduceScatter = ReduceScatter
    values, errors = {}, []
    store = dist.HashStore()

    def worker(rank):
        dist.init_process_group("threaded", rank=rank, world_size=world, store=store)
        try:
            with torch.no_grad():
                values[rank] = body(rank)
        except BaseException as error:
            errors.append(error)
            with contextlib.suppress(RuntimeError):  # several ranks at once
                threaded.ProcessLocalGroup.exception_handle(error)  # wakes the ranks that wait for this one
        finally:
            dist.destroy_process_group()

    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    threaded._install_threaded_pg()
    try:
        threads = [threading.Thread(target=worker, args=(rank,), daemon=True) for rank in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            if thread.is_alive():
                raise AssertionError("a rank did not end in two minutes")
    finally:
        threaded.ProcessLocalGroup.reset()
        threaded._uninstall_threaded_pg()
        torch._C._distributed_c10d._set_thread_isolation_mode(False)
    if errors:
        raise errors[0]
    return values


def source_spec(case, mesh):
    """The DTensorSpec of a case's source, its shard order written as PyTorch does."""
    import torch
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
    shape = case["tensor"]["shape"]
    placements = tuple(Replicate() if p == "R" else Partial(p[2:-1]) if p[0] == "P" else Shard(int(p[2:-1])) for p in case["src"]["placements"])
    orders = {int(d): dims for d, dims in case["src"].get("shard_order", {}).items()}
    order = tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=tuple(orders.get(d) or [m for m, p in enumerate(placements) if p == Shard(d)]))
                  for d in range(len(shape)) if Shard(d) in placements)
    placements = DTensorSpec._convert_shard_order_to_StridedShard(order, placements, mesh)
    strides = [math.prod(max(s, 1) for s in shape[i + 1:]) for i in range(len(shape))]
    return DTensorSpec(mesh, placements, tensor_meta=TensorMeta(torch.Size(shape), tuple(strides), torch.float64))


def follow(code, case, data):
    """Runs one generated function; (every rank's tensor after it, collectives issued)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor
    module = {}
    exec(compile(code, "plan.py", "exec"), module)
    (function,) = module["REDISTRIBUTIONS"].values()

    def body(rank):
        mesh = init_device_mesh("cpu", tuple(case["mesh"]["shape"]), mesh_dim_names=tuple(case["mesh"]["dim_names"]))
        for flat in case["mesh"]["flattened"]:
            mesh[tuple(flat)]._flatten()
        x = DTensor(data.before[rank].clone(), source_spec(case, mesh), requires_grad=False)
        return function(x, mesh).to_local()

    COUNTED.clear()
    return on_every_rank(math.prod(case["mesh"]["shape"]), body), dict(COUNTED)


def planned_collectives(plan):
    found = {}
    for step in plan["redistributions"][0]["steps"]:
        if step["op"] not in ("slice", "to_partial"):
            found[step["op"]] = found.get(step["op"], 0) + 1
    return found


def follow_case(binary, case, name, topology, seed):
    """"followed", "left to PyTorch", "PyTorch failed" or "no plan", after checking what must hold; raises AssertionError otherwise."""
    spec = spec_of(case, name, topology)
    text = meshplan(binary, spec)
    if text is None:
        return "no plan"
    plan, code = json.loads(text), meshplan(binary, spec, "--format", "torch")
    own = not any(line.startswith("    # ") and line[6:].startswith(("all_", "reduce_", "exchange", "slice", "to_partial"))
                  for line in code.splitlines())  # no step whose comment says that PyTorch does something else
    uneven = any(n % math.prod(case["mesh"]["shape"][m] for m, p in enumerate(end["placements"]) if p == f"S({d})")
                 for end in (case["src"], case["dst"]) for d, n in enumerate(case["tensor"]["shape"]))
    data = Data(case, seed)
    try:
        after, counted = follow(code, case, data)
    except Exception as error:
        assert not own, f"{name}: PyTorch failed where it should follow: {type(error).__name__}: {str(error)[:300]}\n{code}"
        return "PyTorch failed"
    right = data.is_right(after)
    if own:
        assert right, f"{name}: wrong data\n{code}"
        assert counted == planned_collectives(plan), f"{name}: plan {planned_collectives(plan)}, PyTorch {counted}\n{code}"
        return "followed"
    assert right or uneven, f"{name}: wrong data on a leg that PyTorch planned\n{code}"
    return "left to PyTorch" if right else "PyTorch wrong, as said"


def captured_cases():
    """The captured workloads on 16 ranks and small tensors of the same divisibility."""
    cases = []
    for stem, shape in (("llama3-8b-fsdp8-tp8", [4, 4]), ("llama3-8b-fsdp8-tp8-flattened", [4, 4]), ("llama3-8b-hsdp2x8-tp4", [2, 4, 2]),
                        ("llama3-8b-hsdp2x8-tp4-flattened", [2, 4, 2])):
        spec = json.loads((SPECS / f"{stem}.json").read_text())
        names = [d["name"] for d in spec["mesh"]["dims"]]
        for r in spec["redistributions"]:
            cases.append((f"{stem} {r['id']}", {
                "mesh": {"shape": shape, "dim_names": names, "flattened": [f["dims"] for f in spec["mesh"].get("flattened", [])]},
                "tensor": {"shape": [16 if n > 1 else 1 for n in r["tensor"]["shape"]], "dtype": "float64"},
                "src": {"placements": r["src"]}, "dst": {"placements": r["dst"]}}))
    return cases


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main():
    if importlib.util.find_spec("torch") is None:
        print("follow_test: NOT RUN, PyTorch is not importable here (tests/run --with-torch makes a place where it is)")
        return 77
    import torch
    import torch.distributed.tensor._dtensor_spec
    if not hasattr(torch.distributed.tensor._dtensor_spec, "ShardOrderEntry"):
        print(f"follow_test: NOT RUN, PyTorch {torch.__version__} has no shard orders")
        return 77
    binary = option("--meshplan", None)
    if binary is None:
        print("follow_test: NOT RUN, no --meshplan BINARY given")
        return 77
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)  # its advice is not the question here
    torch.set_num_threads(1)
    count_collectives()
    cases = json.loads(VECTORS.read_text())["cases"]
    seed, count = int(option("--seed", 1)), int(option("--count", len(cases)))
    chosen = random.Random(seed).sample(range(len(cases)), min(count, len(cases)))
    failed = 0
    for title, topology in (("collectives only", COLLECTIVES_ONLY), ("uniform", None)):
        for kind, work in (("vectors", [(f"vector {i}", cases[i]) for i in chosen]), ("captured", captured_cases())):
            tally = {}
            for name, case in work:
                try:
                    outcome = follow_case(binary, case, name, topology, seed)
                except AssertionError as error:
                    failed += 1
                    outcome = "FAILED"
                    print(f"seed {seed}, {title}: {error}")
                tally[outcome] = tally.get(outcome, 0) + 1
                if "--verbose" in sys.argv:
                    print(name, outcome)
            print(f"follow_test, {title}, {kind}: {len(work)} plans: " + ", ".join(f"{k} {v}" for k, v in sorted(tally.items())), flush=True)
            wanted = 100 if kind == "vectors" and count >= 240 else 1
            if tally.get("followed", 0) < wanted:
                failed += 1
                print(f"follow_test, {title}: fewer than {wanted} plans of the {kind} were followed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
