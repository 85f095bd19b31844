"""What following_test.py runs on 4 processes of the edges of meshplan.follow: beside a program's own messages and threads, in a recording, on
shards that are still on their way, on strided ones, and on groups in another order (8 processes). `plan_of` is its: a plan of (id, shape, source, target) in float32 on dp 2 x tp 2.
"""
import ranks_world


def beside(rank, plan_of):
    """Messages of the program's own, and of another thread, that wait while a plan's are under way on the same group: none takes another's."""
    import threading
    import meshplan
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    tall, wide = (distribute_tensor(torch.arange(64.0).view(shape), mesh, [Shard(0), Shard(1)]) for shape in ((16, 4), (8, 8)))
    turn = lambda x: x.redistribute(mesh, [Shard(1), Shard(0)]).to_local()  # noqa: E731
    own = {x: turn(x) for x in (tall, wide)}
    with meshplan.follow(plan_of([(name, shape, ["S(0)", "S(1)"], ["S(1)", "S(0)"]) for name, shape in (("tall", [16, 4]), ("wide", [8, 8]))])) as followed:
        came = torch.full((16,), -1.0)
        waiting = dist.irecv(came, 1) if rank == 2 else None
        got = turn(wide)
        if rank == 1:
            dist.isend(torch.arange(16.0) + 100, 2).wait()
        if waiting is not None:
            waiting.wait()
            assert torch.equal(came, torch.arange(16.0) + 100), f"a message of the program: {came}"
        assert torch.equal(got, own[wide]), f"a message of the plan: {got}"
        right = []
        threads = [threading.Thread(target=lambda x=x: right.extend(torch.equal(turn(x), own[x]) for _ in range(20))) for x in (tall, wide)]
        for thread in threads[::-1] if rank % 2 else threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert right == 40 * [True], right
    assert followed.summary.followed == 41 and all("exchange" in step.route.name for step in followed.summary.steps()), str(followed)
    return True


def recorded(rank, plan_of):
    """A program that follows a plan is recorded as without one, whichever `with` is outside: what is followed, inserted by an operator, and missing
    in the plan."""
    import meshplan
    import meshplan.capture
    import torch
    import torch.distributed.tensor._redistribute as redistribute
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh, original = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp")), redistribute.redistribute_local_tensor
    x, y = (distribute_tensor(torch.arange(64.0).view(8, 8), mesh, placements) for placements in ([Shard(0), Shard(1)], [Shard(1), Shard(0)]))

    def step():
        return [t.to_local() for t in (x.redistribute(mesh, [Shard(1), Shard(0)]), x + y, x.redistribute(mesh, [Replicate(), Replicate()]))]

    with meshplan.capture.record() as recorder:
        own = step()
    spec = ranks_world.of_first(recorder.spec)
    assert len(spec["redistributions"]) >= 2, spec
    plan, asked = meshplan.plan(spec), [(r["id"], r.get("count", 1)) for r in spec["redistributions"]]
    with meshplan.capture.record() as inside, meshplan.follow(plan) as followed:
        assert all(map(torch.equal, step(), own))
    with meshplan.follow(plan) as outer, meshplan.capture.record() as outside:
        assert all(map(torch.equal, step(), own))
    for recorder, follower in ((inside, followed), (outside, outer)):
        again = ranks_world.of_first(recorder.spec)
        assert [(r["id"], r.get("count", 1)) for r in again["redistributions"]] == asked and "x-not-covered" not in again, again
        assert follower.summary.followed == sum(count for _, count in asked), str(follower)
    # The next plan is made of the recording: what this one lacks, a whole world or a request, is no error there.
    for lacking in (plan_of([("other", [2], ["S(0)", "R"], ["R", "R"])]), plan_of([("other", [16], ["S(0)"], ["R"])], mesh={"dims": [{"name": "all", "size": 8}]})):
        with meshplan.capture.record() as recorder, meshplan.follow(lacking) as followed:
            assert all(map(torch.equal, step(), own))
        assert followed.summary.followed == 0 and len(recorder.spec["redistributions"]) == len(asked), str(followed)
    assert redistribute.redistribute_local_tensor is original
    return True


def arriving(rank, plan_of):
    """Shards that a collective is still on its way to: their own redistribution's with async_op, or what a program made a DTensor of."""
    import meshplan
    import torch
    import torch.distributed._functional_collectives as funcol
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(ranks_world.device(), (4,), mesh_dim_names=("all",))
    x = distribute_tensor(torch.arange(64.0).view(8, 8), mesh, [Shard(0)])
    plan = plan_of([("cut", [8, 8], ["R"], ["S(1)"]), ("turn", [8, 8], ["S(0)"], ["S(1)"])], mesh={"dims": [{"name": "all", "size": 4}]})
    gathered = lambda: x.redistribute(mesh, [Replicate()], async_op=True)  # noqa: E731
    summed = lambda: DTensor.from_local(  # noqa: E731
        funcol.all_reduce(x.to_local(), "sum", mesh.get_group()), mesh, [Shard(0)], run_check=False)
    for make in (gathered, summed):
        want = make().redistribute(mesh, [Shard(1)]).to_local() + 0
        before = make()
        assert isinstance(before._local_tensor, funcol.AsyncCollectiveTensor), type(before._local_tensor)
        with meshplan.follow(plan) as followed:
            assert torch.equal(before.redistribute(mesh, [Shard(1)]).to_local(), want)
        assert followed.summary.followed == 1, str(followed)
        target = distribute_tensor(torch.zeros(8, 8), mesh, [Shard(1)])
        meshplan.reshard(make(), target)
        assert torch.equal(target.to_local(), want)
        assert torch.equal(make().redistribute(mesh, [Shard(1)]).to_local(), want)
    return True


def strided(rank):
    """Gradients of strided shards and partials, of which versions of PyTorch ask different redistributions: as recorded, so followed."""
    import meshplan
    import meshplan.capture
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Shard
    from torch.distributed.tensor.placement_types import _StridedShard
    mesh, whole = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp")), torch.arange(24.0).view(6, 4)

    def step(op):
        x = DTensor.from_local(whole * (rank + 1), mesh, [Partial(op), Partial(op)], run_check=False).requires_grad_()
        y = x.redistribute(mesh, [_StridedShard(0, split_factor=2), Shard(0)])
        grad = DTensor.from_local(torch.ones_like(y.to_local()) * (rank + 1), mesh, y.placements, run_check=False, shape=y.shape, stride=y.stride())
        y.backward(grad)
        return y.to_local().detach(), x.grad

    for op in ("sum", "avg", "max"):
        with meshplan.capture.record() as recorder:
            out, grad = step(op)
        with meshplan.follow(meshplan.plan(ranks_world.of_first(recorder.spec))) as followed:
            again, followed_grad = step(op)
        assert followed.summary.followed == 2, str(followed)
        assert torch.equal(again, out) and followed_grad.placements == grad.placements
        assert torch.equal(followed_grad.full_tensor(), grad.full_tensor()), f"{op}: {followed_grad.full_tensor()}, {grad.full_tensor()}"
    return True


def turned(rank, collectives_only):
    """On 8 processes, a flatten of dims in another order than the mesh's: its process groups are found, whether PyTorch sorts their ranks or keeps the
    flatten's order, and shards are where PyTorch would have them."""
    import inspect
    import json
    import meshplan
    import torch
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(ranks_world.device(), (2, 2, 2), mesh_dim_names=("c", "a", "b"))
    other_way = torch.arange(8, device="cpu").view(2, 2, 2).transpose(1, 2)
    keeps = {"preserve_rank_order": True} if "preserve_rank_order" in inspect.signature(DeviceMesh.__init__).parameters else {}
    flat = DeviceMesh(ranks_world.device(), other_way, mesh_dim_names=("c", "b", "a"), **keeps)["b", "a"]._flatten("b_a").get_group()
    four = tuple(range(4)) if rank < 4 else tuple(range(4, 8))
    listed = tuple(torch.distributed.get_process_group_ranks(flat))
    assert sorted(listed) == list(four) and (listed == four) != bool(keeps), f"a group of {listed}"
    to = {"R": Replicate(), "S(0)": Shard(0), "P(sum)": Partial()}
    moves = [("reduce", ["R", "P(sum)", "P(sum)"], ["R", "R", "R"]), ("gather", ["R", "S(0)", "S(0)"], ["R", "R", "R"]),
             ("scatter", ["R", "P(sum)", "P(sum)"], ["R", "S(0)", "S(0)"])]
    rows = [{"id": f"{name} {extent}", "mesh": "m", "tensor": {"shape": [extent, 6], "dtype": "float32"}, "src": src, "dst": dst}
            for name, src, dst in moves for extent in (16, 7, 3)]
    plan = meshplan.plan({"schema": "meshplan/spec/1", "topology": collectives_only, "redistributions": rows, "meshes": [
        {"name": "m", "world": 8, "dims": [{"name": n, "size": 2} for n in "cab"]}, {"name": "b_a", "of": "m", "flatten": ["b", "a"]}]})
    steps = [step for r in json.loads(plan)["redistributions"] for step in r["steps"]]
    ops = sorted({step["op"] for step in steps if step["group"] == "b_a"})
    assert ops == ["all_gather", "all_reduce", "reduce_scatter"] and all(step["group"] in ("b_a", "") for step in steps), steps
    with meshplan.follow(plan) as followed:
        for row in rows:
            src, dst = ([to[p] for p in row[side]] for side in ("src", "dst"))
            whole = torch.arange(6.0 * row["tensor"]["shape"][0]).view(row["tensor"]["shape"])
            sums = "P(sum)" in row["src"]
            x = DTensor.from_local(whole * (rank % 4 + 1), mesh, src, run_check=False) if sums else distribute_tensor(whole, mesh, src)
            wanted = distribute_tensor(whole * 10 if sums else whole, mesh, dst)
            assert torch.equal(x.redistribute(mesh, dst).to_local(), wanted.to_local()), row["id"]
    assert followed.summary.followed == len(rows), str(followed)
    assert followed.groups[four] is flat, "the flatten's own process group"
    return listed
