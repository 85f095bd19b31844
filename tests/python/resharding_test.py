#!/usr/bin/env python3
"""meshplan.reshard on 8 processes of gloo: dicts of weights between meshes on the same, other and overlapping ranks, planned on the spot and by
plans, every shard compared with what it must be; messages, bytes, rounds and staging counted beside what the plan lists; and 50 small weights
beside one redistribute each. MESHPLAN_TEST_WORLD=nccl: of NCCL, on a GPU. Needs PyTorch; exits with 77 and says so where it is missing.

usage: resharding_test.py [--measure]
"""
import sys
import time
import unittest.mock

import ranks_world
import resharding_edges as edges

WORLD = 8


def meshes():
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    as_mesh = lambda ranks, shape: torch.tensor(ranks, device="cpu").view(shape)  # noqa: E731
    on = lambda ranks, shape, names: DeviceMesh(ranks_world.device(), as_mesh(ranks, shape), mesh_dim_names=names)  # noqa: E731
    return {"all": on(list(range(8)), (2, 4), ("dp", "tp")), "other": on(list(range(8)), (4, 2), ("ep", "tp")),
            "train": on([0, 1, 2, 3], (2, 2), ("dp", "tp")), "serve": on([4, 5, 6, 7], (4,), ("tp",)), "three": on([7, 2, 5], (3,), ("x",)),
            "five": on([0, 1, 2, 3, 4], (5,), ("x",))}


def laid_out(whole, mesh, placements):
    from torch.distributed.tensor import distribute_tensor
    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


def empty_like(tensor, mesh, placements):
    import torch
    made = laid_out(torch.zeros_like(tensor), mesh, placements)
    made._local_tensor.fill_(77)
    return made


def nowhere(tensor, mesh):
    """What a rank outside of the mesh has of it."""
    import torch
    from torch.distributed.tensor import DTensor, Replicate
    return DTensor.from_local(torch.empty(0), mesh, [Replicate()], run_check=False, shape=tensor.shape, stride=tensor.stride())


def whole(shape, dtype, seed):
    import torch
    return torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(seed), device="cpu").to(ranks_world.device(), dtype)


def check(before, after, wholes, ends, **options):
    """Reshards and compares every shard; what a plan's bundle lists for this rank is what was done."""
    import json
    import meshplan
    import torch
    import torch.distributed as dist
    done = meshplan.reshard(before, after, **options)
    for name, tensor in after.items():
        want = laid_out(wholes[name], *ends[name])._local_tensor
        assert torch.equal(tensor._local_tensor, want), f"{name}: {tensor.placements} on {tensor.device_mesh}, wrong data"
    if "plan" in options:
        plan = json.loads(options["plan"])
        listed = meshplan.bundle_transfers(options["plan"], plan["bundles"][0]["id"], dist.get_rank())
        rows = [(r["round"], row) for r in listed["rounds"] for part in r["parts"] for row in part["transfers"]
                if r["op"] in ("exchange", "all_to_all") and row["action"] in ("send", "share") and row["to"] == dist.get_rank()]
        assert done.wire_bytes == sum(row["bytes"] for _, row in rows), str(done)
        if all(r["op"] == "exchange" for r in plan["bundles"][0]["rounds"]):
            assert done.messages == len({(index, row["from"]) for index, row in rows}), str(done)
        assert done.staging_bytes <= plan["bundles"][0]["totals"]["staging_bytes"] <= plan["bundles"][0]["max_staging_bytes"], str(done)
    return done


def most_staged(done):
    """Of any rank."""
    return max(ranks_world.of_all(done.staging_bytes))


def cases(on, many):
    """name -> (whole tensor, source, target): every kind of layout and pair of meshes."""
    import torch
    from torch.distributed.tensor import Replicate as R, Shard as S
    dtypes = [torch.float32, torch.bfloat16, torch.int64, torch.uint8]
    shapes = [(64, 24), (13, 7), (5,), (8, 3, 10), ()]
    ways = [("train", [S(0), S(1)], "serve", [S(0)]), ("serve", [S(0)], "train", [R(), S(0)]), ("all", [S(0), S(0)], "other", [R(), S(0)]),
            ("all", [R(), S(0)], "all", [S(0), R()]), ("train", [S(0), R()], "three", [S(0)]), ("three", [R()], "five", [S(0)]),
            ("five", [S(0)], "all", [R(), R()]), ("all", [R(), R()], "serve", [S(0)]), ("all", [S(0), R()], "all", [S(0), R()])]
    found = {}
    for i in range(many):
        source, src, target, dst = ways[i % len(ways)]
        shape, dtype = shapes[i % len(shapes)], dtypes[i % len(dtypes)]
        fit = lambda placements: [p if isinstance(p, R) or p.dim < len(shape) else R() for p in placements]  # noqa: E731
        found[f"w{i}"] = (whole(shape, dtype, i), (on[source], fit(src)), (on[target], fit(dst)))
    return found


def body(rank):
    import meshplan
    import torch
    from torch.distributed.tensor import DTensor, Partial, Replicate as R, Shard as S
    on = meshes()
    made = cases(on, 45)
    before = {name: laid_out(t, *source) for name, (t, source, _) in made.items()}
    after = {name: empty_like(t, *target) for name, (t, _, target) in made.items()}
    wholes, ends = {n: c[0] for n, c in made.items()}, {n: c[2] for n, c in made.items()}
    done = check(before, after, wholes, ends)
    assert done.tensors == 45 and done.rounds == 1 and done.messages <= WORLD - 1, str(done)
    for name, tensor in before.items():
        assert torch.equal(tensor._local_tensor, laid_out(made[name][0], *made[name][1])._local_tensor), f"{name}: the source was changed"
    with unittest.mock.patch("meshplan.resharding.plan_of_spec", side_effect=AssertionError("planned again")):
        check(before, {name: empty_like(t, *target) for name, (t, _, target) in made.items()}, wholes, ends)

    # A limit makes rounds, cuts what is larger, and is kept.
    large = {"large": (whole((513, 40), torch.float32, 99), (on["train"], [S(0), S(1)]), (on["serve"], [S(0)])), **made}
    for limit in (20000, 3000):
        after = {name: empty_like(t, *target) for name, (t, _, target) in large.items()}
        done = check({name: laid_out(t, *source) for name, (t, source, _) in large.items()}, after, {n: c[0] for n, c in large.items()},
                     {n: c[2] for n, c in large.items()}, max_staging_bytes=limit)
        assert done.rounds > 1 and limit / 2 < most_staged(done) <= limit, f"limit {limit}: {done}"

    # Pending sums are summed in rank order, averages divided.
    part = lambda op: DTensor.from_local(torch.full((6, 4), 0.1 + rank // 4), on["all"], [Partial(op), R()], run_check=False)  # noqa: E731
    sums = [empty_like(torch.zeros(6, 4), on[mesh], placements) for mesh, placements in
            (("other", [R(), S(1)]), ("all", [S(0), R()]), ("all", [R(), S(1)]))]
    meshplan.reshard([part("sum"), part("avg"), part("max")], sums)
    total = torch.full((6, 2), 0.1) + torch.full((6, 2), 1.1)
    assert torch.equal(sums[0]._local_tensor, total), str(sums[0]._local_tensor)
    assert torch.equal(sums[1]._local_tensor, (total / 2)[:3].repeat(1, 2)), str(sums[1]._local_tensor)
    assert torch.equal(sums[2]._local_tensor, torch.full((6, 1), 1.1)), str(sums[2]._local_tensor)
    strides(on)
    plans(on)
    two_phases(on)
    thin(on)
    beside(on)
    single(on)
    refusals(on)
    recorded(before, {name: empty_like(t, *target) for name, (t, _, target) in made.items()})
    return str(done)


def recorded(before, after):
    """A recording has what a reshard moves, and nothing of how, also when it is asked first."""
    import meshplan
    import meshplan.capture
    for first in (False, True):
        if first:
            before, after = ({name: side[name] for name in list(before)[:-1]} for side in (before, after))
        with meshplan.capture.record() as recorder:
            meshplan.reshard(before, after)
        spec = recorder.spec
        assert len(spec["redistributions"]) == len(before) and "x-not-covered" not in spec, str(spec)


def strides(on):
    """Shards that do not lie row-major are read and filled where they are."""
    import meshplan
    import torch
    from torch.distributed.tensor import DTensor, Replicate as R, Shard as S
    data = whole((12, 10, 7), torch.float32, 3)
    before, after = laid_out(data, on["all"], [S(0), R()]), empty_like(data, on["all"], [R(), S(1)])
    turned = lambda t: t.permute(2, 0, 1).contiguous().permute(1, 2, 0)  # noqa: E731
    sides = [DTensor.from_local(turned(t._local_tensor), t.device_mesh, t.placements, run_check=False, shape=t.shape, stride=t.stride())
             for t in (before, after)]
    memory = sides[1]._local_tensor.data_ptr()
    assert not any(t._local_tensor.is_contiguous() for t in sides)
    meshplan.reshard(*sides)
    assert torch.equal(sides[1]._local_tensor, laid_out(data, on["all"], [R(), S(1)])._local_tensor) and sides[1]._local_tensor.data_ptr() == memory


SLOW_OUTSIDE = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 400, "latency_ns": 1},
                           {"name": "outside", "ranks": 1048576, "gb_per_s": 0.001, "latency_ns": 1}]}
TRAIN = {"name": "train", "world": 4, "dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]}
SERVE = {"name": "serve", "world": 4, "ranks": "4-7", "dims": [{"name": "tp", "size": 4}]}


def two_phases(on):
    """Hosts of 3 have unequal numbers of copies: what their ranks lack together is fetched once, then passed on from where it landed."""
    import json
    import meshplan
    import torch
    from torch.distributed.tensor import Replicate as R, Shard as S
    levels = [{"name": "inside", "ranks": 3, "gb_per_s": 100, "latency_ns": 0}, {"name": "outside", "ranks": 1 << 20, "gb_per_s": 1, "latency_ns": 0}]
    other = {"name": "other", "world": 8, "dims": [{"name": "ep", "size": 4}, {"name": "tp", "size": 2}]}
    for limit in (0, 9000):
        plan = meshplan.plan({"schema": "meshplan/spec/1", "topology": {"levels": levels}, "meshes": [TRAIN, other], "redistributions": [
            {"id": "sync.w", "tensor": {"shape": [64, 24], "dtype": "float32"}, "src": ["S(0)", "S(0)"], "dst": ["R", "S(0)"], "count": 2,
             "src_mesh": "train", "dst_mesh": "other"}], "bundles": [{"id": "sync", "redistributions": ["sync.*"], "max_staging_bytes": limit or 1 << 20}]})
        assert json.loads(plan)["redistributions"][0]["steps"][-1].get("phases") == 2, "two phases"
        wholes = {name: whole((64, 24), torch.float32, i) for i, name in enumerate("ab")}
        ends = {name: (on["other"], [R(), S(0)]) for name in wholes}
        before = {name: laid_out(t, on["train"], [S(0), S(0)]) for name, t in wholes.items()}
        check(before, {name: empty_like(t, *ends[name]) for name, t in wholes.items()}, wholes, ends, plan=plan)


def thin(on):
    """Between two steps most ranks hold nothing of a tensor that all of them gather."""
    import json
    import meshplan
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Replicate as R, Shard as S
    mesh = lambda ranks: DeviceMesh(ranks_world.device(), torch.tensor(ranks, device="cpu"), mesh_dim_names=("x",))  # noqa: E731
    one, four = mesh([0]), mesh([0, 1, 2, 3])
    universe = lambda name, size: {"name": name, "world": size, "dims": [{"name": "x", "size": size}]}  # noqa: E731
    for shape, source, src, target, dst, names in (([1], one, [R()], four, [R()], (["R"], ["R"])),
                                                   ([1, 60], four, [S(0)], on["train"], [S(0), R()], (["S(0)"], ["S(0)", "R"]))):
        data = whole(shape, torch.float32, 5)
        before = laid_out(data, source, src) if source.get_coordinate() is not None else nowhere(data, source)
        meshes = [universe("one", 1), universe("four", 4)] if source is one else [universe("four", 4), TRAIN]
        plan = meshplan.plan({"schema": "meshplan/spec/1", "topology": "h100", "meshes": meshes, "redistributions": [
            {"id": "w", "tensor": {"shape": shape, "dtype": "float32"}, "src_mesh": meshes[0]["name"], "dst_mesh": meshes[1]["name"],
             "src": names[0], "dst": names[1]}], "bundles": [{"id": "b", "redistributions": ["w"]}]})
        assert "all_gather" in [step["op"] for step in json.loads(plan)["redistributions"][0]["steps"][1:]], plan
        if target.get_coordinate() is not None:
            check({"w": before}, {"w": empty_like(data, target, dst)}, {"w": data}, {"w": (target, dst)}, plan=plan)


def beside(on):
    """A message of the program's own that waits while a reshard's are under way on the same group takes none of them."""
    import meshplan
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import Shard as S
    if ranks_world.ON_GPU:
        return  # NCCL has no tags: its messages match in the order in which a program asks
    data, came = whole((8, 8), torch.float32, 6), torch.full((4,), -1.0)
    waiting = dist.irecv(came, 2) if dist.get_rank() == 4 else None
    check({"w": laid_out(data, on["all"], [S(0), S(1)])}, {"w": empty_like(data, on["all"], [S(1), S(0)])}, {"w": data}, {"w": (on["all"], [S(1), S(0)])})
    if dist.get_rank() == 2:
        dist.isend(torch.arange(4.0) + 100, 4).wait()
    if waiting is not None:
        waiting.wait()
        assert torch.equal(came, torch.arange(4.0) + 100), f"a message of the program: {came}"


def plans(on):
    """Plans of bundles: several steps in pieces, sums in a wider dtype, and PyTorch's collectives."""
    import json
    import meshplan
    import torch
    from torch.distributed.tensor import DTensor, Partial, Replicate as R, Shard as S
    entry = lambda name, shape, src, dst, count=1, **more: {  # noqa: E731
        "id": name, "tensor": {"shape": shape, "dtype": "float32"}, "src": src, "dst": dst, "count": count, **more}
    across = {"src_mesh": "train", "dst_mesh": "serve"}
    spec = {"schema": "meshplan/spec/1", "topology": SLOW_OUTSIDE, "meshes": [TRAIN, SERVE],
            "redistributions": [entry("sync.a.wq", [64, 24], ["S(0)", "S(1)"], ["R"], **across), entry("sync.b.wq", [64, 24], ["S(0)", "S(1)"], ["R"], **across),
                                entry("sync.norm", [13], ["R", "R"], ["S(0)"], 3, **across)],
            "bundles": [{"id": "sync", "redistributions": ["sync.*"], "max_staging_bytes": 9000}]}
    plan = meshplan.plan(spec)
    document = json.loads(plan)
    assert len(document["bundles"][0]["rounds"]) > 2 and len(document["redistributions"][0]["steps"]) > 1, "several steps in rounds"
    made = {"n1": (13,), "b.wq": (64, 24), "n2": (13,), "a.wq": (64, 24), "n3": (13,)}
    wholes = {name: whole(shape, torch.float32, i) for i, (name, shape) in enumerate(made.items())}
    ends = {name: (on["serve"], [R() if "wq" in name else S(0)]) for name in made}
    before = {name: laid_out(t, on["train"], [S(0), S(1)] if "wq" in name else [R(), R()]) for name, t in wholes.items()}
    for _ in range(2):
        after = {name: empty_like(t, *ends[name]) for name, t in wholes.items()}
        check(before, after, wholes, ends, plan=plan)
    for words, keys in (("moves tensors that are not given: sync.norm (1)", ["n1", "n2", "a.wq", "b.wq"]), ("not given: sync.a.wq (1)", ["n1", "n2", "n3", "b.wq"])):
        refused(words, lambda keys=keys: meshplan.reshard({n: before[n] for n in keys}, {n: after[n] for n in keys}, plan=plan))
    refused("no place for more: float32[5] R on ranks (0, 1, 2, 3, 4) -> S(0)", lambda: meshplan.reshard(
        {**before, "more": laid_out(torch.ones(5), on["five"], [R()])}, {**after, "more": empty_like(torch.ones(5), on["serve"], [S(0)])}, plan=plan))
    refused("the plan's: leave them out", lambda: meshplan.reshard(before, after, plan=plan, max_staging_bytes=1))
    refused("bundle 'nope' is one of a plan, which is not given", lambda: meshplan.reshard(before, after, bundle="nope"))
    refused("no bundle 'step', only sync", lambda: meshplan.reshard(before, after, plan=plan, bundle="step"))
    refused("the plan has no bundle", lambda: meshplan.reshard(before, after, plan=meshplan.plan({**spec, "bundles": []})))

    both = {"mesh": "both", "direction": "forward"}
    both_mesh = {"name": "both", "world": 8, "dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]}
    entries = [entry("g", [16, 8], ["S(0)", "R"], ["R", "R"], 2, **both), entry("h", [16, 8], ["S(0)", "R"], ["R", "R"], **both),
               entry("s", [16, 8], ["P(sum)", "R"], ["S(0)", "R"], reduce_dtype="float64", **both),
               entry("r", [5, 8], ["P(avg)", "S(1)"], ["R", "S(1)"], **both), entry("t", [16, 8], ["S(0)", "R"], ["S(1)", "R"], **both),
               entry("c", [16, 8], ["R", "R"], ["R", "S(0)"], **both), entry("u", [16, 8], ["R", "P(sum)"], ["R", "S(1)"], **both),
               entry("i", [3], ["R", "R"], ["R", "R"], **both)]
    found, rank = set(), torch.distributed.get_rank()
    for planner in ("optimal", "greedy"):
        plan = meshplan.plan({"schema": "meshplan/spec/1", "options": {"planner": planner}, "meshes": [both_mesh], "redistributions": entries,
                              "bundles": [{"id": "b", "redistributions": ["*"]}]})
        found |= {round["op"] for round in json.loads(plan)["bundles"][0]["rounds"]}
        assert any("through" in part for round in json.loads(plan)["bundles"][0]["rounds"] for part in round["parts"]), "like members as one part"
        data = [whole(shape, torch.float32, 40 + i) for i, shape in enumerate([(16, 8)] * 3 + [(5, 8)] + [(16, 8)] * 3 + [(3,), (16, 8)])]
        part = lambda i, placements, times: DTensor.from_local(  # noqa: E731
            (data[i] if placements[1] != S(1) else data[i][:, rank % 4 * 2:rank % 4 * 2 + 2]) * times, on["all"], placements, run_check=False)
        sources = [laid_out(data[0], on["all"], [S(0), R()]), laid_out(data[1], on["all"], [S(0), R()]), part(2, [Partial(), R()], rank // 4 + 1),
                   part(3, [Partial("avg"), S(1)], rank // 4 + 1), laid_out(data[4], on["all"], [S(0), R()]), laid_out(data[5], on["all"], [R(), R()]),
                   part(6, [R(), Partial()], rank % 4), laid_out(data[7], on["all"], [R(), R()]), laid_out(data[8], on["all"], [S(0), R()])]
        placements = [[R(), R()], [R(), R()], [S(0), R()], [R(), S(1)], [S(1), R()], [R(), S(0)], [R(), S(1)], [R(), R()], [R(), R()]]
        wants = [t * times for t, times in zip(data, (1, 1, 3, 1.5, 1, 1, 6, 1, 1))]
        ends = {str(i): (on["all"], p) for i, p in enumerate(placements)}
        after = {str(i): empty_like(t, *ends[str(i)]) for i, t in enumerate(data)}
        check({str(i): t for i, t in enumerate(sources)}, after, {str(i): t for i, t in enumerate(wants)}, ends, plan=plan)
    assert {"exchange", "all_gather", "reduce_scatter", "all_reduce", "all_to_all"} <= found, found


def single(on):
    """A plan's bundle between meshes with a dim of one rank, on which its states say R whatever was asked."""
    import meshplan
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Shard as S
    mesh = DeviceMesh(ranks_world.device(), torch.tensor([[5, 1]], device="cpu"), mesh_dim_names=("pp", "tp"))
    spec = {"schema": "meshplan/spec/1", "meshes": [{"name": "train", "world": 3, "ranks": [7, 2, 5], "dims": [{"name": "x", "size": 3}]},
                                                   {"name": "serve", "world": 2, "ranks": [5, 1], "dims": [{"name": "pp", "size": 1}, {"name": "tp", "size": 2}]}],
            "redistributions": [{"id": f"w{i}", "tensor": {"shape": [13, 7], "dtype": "float32"}, "src_mesh": "train", "dst_mesh": "serve", "src": ["S(0)"],
                                 "dst": dst} for i, dst in enumerate((["S(1)", "S(1)"], ["S(0)", "S(1)"], ["R", "S(0)"]))],
            "bundles": [{"id": "sync", "redistributions": ["*"]}]}
    ends = {"w0": (mesh, [S(1), S(1)]), "w1": (mesh, [S(0), S(1)]), "w2": (mesh, [S(0), S(0)])}
    wholes = {name: whole((13, 7), torch.float32, i) for i, name in enumerate(ends)}
    before, after = {n: laid_out(t, on["three"], [S(0)]) for n, t in wholes.items()}, {n: empty_like(t, *ends[n]) for n, t in wholes.items()}
    if torch.distributed.get_rank() in (1, 2, 5, 7):
        check(before, after, wholes, ends, plan=meshplan.plan(spec))


def again(rank):
    """In a world that is made after another one was destroyed nothing of that one is asked."""
    import datetime
    import os
    import tempfile
    import meshplan
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Replicate as R, Shard as S
    folder = tempfile.TemporaryDirectory()
    store = ranks_world.of_first(os.path.join(folder.name, "store"))
    for turn in range(3):
        # On ranks that the program has no group of.
        mesh = DeviceMesh("cpu", torch.tensor([[0, 1], [2, 3]]), mesh_dim_names=("a", "b"))
        one, three = (DeviceMesh("cpu", torch.tensor(ranks), mesh_dim_names=("x",)) for ranks in ([0], [1, 2]))
        data = whole((6, 4), torch.float32, turn)
        meshplan.reshard(laid_out(data, mesh, [S(0), S(1)]), target := empty_like(data, mesh, [R(), S(0)]))
        assert torch.equal(target._local_tensor, laid_out(data, mesh, [R(), S(0)])._local_tensor), turn
        if rank < 3:
            outside = lambda m: laid_out(data, m, [R()]) if m.get_coordinate() is not None else nowhere(data, m)  # noqa: E731
            meshplan.reshard(outside(one), target := outside(three))
            assert rank == 0 or torch.equal(target._local_tensor, data), turn
        ranks_world.barrier()
        dist.destroy_process_group()
        dist.init_process_group("gloo", init_method=f"file://{store}{turn}", rank=rank, world_size=4, timeout=datetime.timedelta(seconds=20))
    ranks_world.barrier()
    return True


def refused(words, call):
    try:
        call()
    except ValueError as error:
        assert words in str(error), f"'{words}' is not in: {error}"
    else:
        raise AssertionError(f"no error that says '{words}'")


def shared_memory(on):
    """What is filled is read and filled by nothing else; views of one buffer are apart where they have no element in common."""
    import meshplan
    import torch
    from torch.distributed.tensor import DTensor, Replicate as R, Shard as S
    data = [whole((8, 8), torch.float32, seed) for seed in (7, 8)]
    there = [[S(0), R()], [S(1), R()]]  # a shard is [4, 8], or [8, 4]
    made = lambda local, placements: DTensor.from_local(local, on["all"], placements, run_check=False)  # noqa: E731
    shards = [laid_out(t, on["all"], placements) for t, placements in zip(data, there)]
    refused("0 before and 0 after share their memory: give what is filled memory of its own", lambda: meshplan.reshard(shards[0], shards[0]))
    refused("after share their memory", lambda: meshplan.reshard(dict(zip("pq", shards)), dict(zip("pq", shards[::-1]))))
    refused("0 after and 1 after share", lambda: meshplan.reshard(shards[:1] * 2, [target := empty_like(data[0], on["all"], there[1]), target]))
    meshplan.reshard([shards[0]] * 2, [empty_like(data[0], on["all"], there[1]) for _ in range(2)])  # a source may be two's

    def fill(source, target, apart):
        source.copy_(shards[0]._local_tensor)
        before, after = made(source, there[0]), made(target, there[1])
        if not apart:
            return refused("share their memory", lambda: meshplan.reshard(before, after))
        meshplan.reshard(before, after)
        return torch.equal(target, laid_out(data[0], on["all"], there[1])._local_tensor) and torch.equal(source, shards[0]._local_tensor)

    flat, wide, deep = torch.zeros(80), torch.zeros(10, 12), torch.zeros(8, 2, 4)
    assert fill(flat[:32].view(4, 8), flat[32:64].view(8, 4), True) and fill(flat[40:72].view(4, 8), flat[:32].view(8, 4), True)
    assert fill(wide[:4, :8], wide[:8, 8:], True) and fill(wide[3:7, 4:], wide[2:, :4], True)
    assert fill(torch.zeros(4, 8), deep[:, 1], True)
    fill(flat[:32].view(4, 8), flat[31:63].view(8, 4), False)
    fill(wide[:4, :8], wide[:8, 7:11], False)
    fill(wide[:4, 4:], wide.flatten()[10:106].view(8, 12)[:, :4], False)  # its columns are 10, 11, 0 and 1
    fill(flat[:32].view(4, 8), flat[:64].view(8, 8)[:, ::2], False)


def refusals(on):
    import meshplan
    import torch
    from torch.distributed.tensor import Shard as S
    one, two = laid_out(torch.ones(8, 8), on["all"], [S(0), S(1)]), laid_out(torch.ones(8, 4), on["all"], [S(0), S(1)])
    refused("only in one of before and after: b", lambda: meshplan.reshard({"a": one}, {"a": one, "b": two}))
    refused("torch.float32[8, 8] before, torch.float32[8, 4] after", lambda: meshplan.reshard([one], [two]))
    shared_memory(on)
    refused("not a NoneType", lambda: meshplan.reshard(None, None))
    refused("not a generator", lambda: meshplan.reshard((t for t in [one]), (t for t in [one])))
    odd = [laid_out(torch.ones(8, 8, dtype=torch.complex64), on["all"], [S(0), S(1)]) for _ in range(2)]
    refused("0: torch.complex64, which no plan has", lambda: meshplan.reshard(odd[:1], odd[1:]))
    refused(f"w: on {ranks_world.device()} before and meta after", lambda: meshplan.reshard({"w": one}, {"w": one.to("meta")}))
    refused("5 is not a plan", lambda: meshplan.reshard([one], [empty_like(one, on["all"], [S(0), S(1)])], plan=5))
    assert str(meshplan.reshard([], [])).startswith("resharded 0 tensors")
    assert str(meshplan.resharding.Resharded(tensors=1, rounds=1)).startswith("resharded 1 tensor in 1 round: ")


def dying(rank):
    """A rank whose process ends: those that wait for its messages get PyTorch's error with the steps of the plan."""
    import os
    import meshplan
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard as S
    mesh = init_device_mesh(ranks_world.device(), (3,), mesh_dim_names=("x",))
    before = [laid_out(torch.ones(9, 9), mesh, [S(0)]), laid_out(torch.ones(6), mesh, [S(0)])]
    after = [empty_like(torch.ones(9, 9), mesh, [S(1)]), empty_like(torch.ones(6), mesh, [S(0)])]
    meshplan.reshard(before, after)
    ranks_world.barrier()
    if rank == 2:
        os._exit(1)
    try:
        meshplan.reshard(before, after)
    except RuntimeError as error:
        return str(error)
    return "nothing"


def measure(rank, rounds=7):
    """50 small weights of a training step on 8 ranks: together and one by one, in turns; medians in milliseconds."""
    import meshplan
    import torch
    from torch.distributed.tensor import Replicate as R, Shard as S
    mesh = meshes()["all"]
    weights = {f"w{i}": laid_out(whole((256 + 8 * (i % 5), 128), torch.float32, i), mesh, [S(0), S(0)]) for i in range(50)}
    after = {n: empty_like(torch.zeros(w.shape), mesh, [R(), S(0)]) for n, w in weights.items()}
    times = {"together": [], "one by one, meshplan": [], "one by one, DTensor": []}
    for turn in range(rounds + 1):
        for way in times:
            ranks_world.barrier()
            start = time.perf_counter()
            if way == "together":
                meshplan.reshard(weights, after)
            elif way == "one by one, meshplan":
                for name in weights:
                    meshplan.reshard(weights[name], after[name])
            else:
                for weight in weights.values():
                    weight.redistribute(mesh, [R(), S(0)])
            ranks_world.barrier()
            if turn:
                times[way].append(1e3 * (time.perf_counter() - start))
    return {way: round(sorted(taken)[len(taken) // 2], 1) for way, taken in times.items()}


def main():
    if ranks_world.skipped("resharding_test"):
        return 77
    if "--measure" not in sys.argv:
        print(ranks_world.on_ranks(WORLD, body)[0])
        said = ranks_world.on_ranks(3, dying, dies=2)
        assert all(text.startswith("reshard: q0, step 0: ") for text in said[:2]), said
        ranks_world.on_ranks(4, edges.disagreeing)
        if not ranks_world.ON_GPU:
            ranks_world.on_ranks(4, again)
        print(f"rank 2 gone, rank 0 says: {said[0].splitlines()[0]}")
    times = ranks_world.on_ranks(WORLD, measure)[0]
    print(f"50 small weights on 8 processes, ms: {times}")
    assert ranks_world.ON_GPU or all(2.5 * times["together"] < taken for way, taken in times.items() if way != "together"), times
    return 0


if __name__ == "__main__":
    sys.exit(main())
