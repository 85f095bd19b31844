#!/usr/bin/env python3
"""meshplan.reshard on 8 processes of gloo: dicts of weights between meshes on the same, other and overlapping ranks, every shard compared with
what it must be; messages, rounds and staging counted; and 50 small weights beside one redistribute each. Needs PyTorch; exits with 77 and says
so where it is missing.

usage: resharding_test.py [--measure]
"""
import sys
import time

import gloo_world

WORLD = 8


def meshes():
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    on = lambda ranks, shape, names: DeviceMesh("cpu", torch.tensor(ranks).view(shape), mesh_dim_names=names)  # noqa: E731
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


def whole(shape, dtype, seed):
    import torch
    return torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def check(before, after, wholes, ends, **options):
    """Reshards and compares every shard, and what was received with what the targets lack."""
    import meshplan
    import torch
    done = meshplan.reshard(before, after, **options)
    for name, tensor in after.items():
        want = laid_out(wholes[name], *ends[name])._local_tensor
        assert torch.equal(tensor._local_tensor, want), f"{name}: {tensor.placements} on {tensor.device_mesh}, wrong data"
    return done


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

    # A limit makes rounds, cuts what is larger, and is kept.
    large = {"large": (whole((513, 40), torch.float32, 99), (on["train"], [S(0), S(1)]), (on["serve"], [S(0)])), **made}
    for limit in (20000, 3000):
        after = {name: empty_like(t, *target) for name, (t, _, target) in large.items()}
        done = check({name: laid_out(t, *source) for name, (t, source, _) in large.items()}, after, {n: c[0] for n, c in large.items()},
                     {n: c[2] for n, c in large.items()}, max_staging_bytes=limit)
        assert done.rounds > 1 and done.staging_bytes <= limit + 45 * 16 * WORLD, f"limit {limit}: {done}"
        assert limit != 20000 or done.staging_bytes <= limit, f"limit {limit}: {done}"

    # Pending sums are summed in rank order; a plan of several steps is followed.
    part = DTensor.from_local(torch.full((6, 4), 0.1 + rank // 4), on["all"], [Partial(), R()], run_check=False)
    target = empty_like(torch.zeros(6, 4), on["other"], [R(), S(1)])
    meshplan.reshard([part], [target])
    assert torch.equal(target._local_tensor, torch.full((6, 2), 0.1) + torch.full((6, 2), 1.1)), str(target._local_tensor)
    shape = (64, 24)
    spec = {"schema": "meshplan/spec/1", "topology": {"levels": [
        {"name": "inside", "ranks": 4, "gb_per_s": 400, "latency_ns": 1}, {"name": "outside", "ranks": 1048576, "gb_per_s": 0.001, "latency_ns": 1}]},
        "meshes": [{"name": "train", "world": 4, "dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
                   {"name": "serve", "world": 4, "ranks": "4-7", "dims": [{"name": "tp", "size": 4}]}],
        "redistributions": [{"id": "w", "tensor": {"shape": shape, "dtype": "float32"}, "src_mesh": "train", "dst_mesh": "serve",
                             "src": ["S(0)", "S(1)"], "dst": ["R"]}]}
    plan = meshplan.plan(spec)
    assert len(plan_steps(plan)) > 1 or plan_steps(plan)[0].get("phases") == 2, "a plan that is more than one phase"
    data = whole(shape, torch.float32, 5)
    several = {"w": empty_like(data, on["serve"], [R()])}
    check({"w": laid_out(data, on["train"], [S(0), S(1)])}, several, {"w": data}, {"w": (on["serve"], [R()])}, plan=plan)

    refusals(on, plan)
    import meshplan.capture
    with meshplan.capture.record() as recorder:
        meshplan.reshard(before, {name: empty_like(t, *target) for name, (t, _, target) in made.items()})
    recorded = recorder.spec
    assert len(recorded["redistributions"]) == 45 and "x-not-covered" not in recorded, str(recorded.get("x-not-covered"))
    return str(done)


def plan_steps(plan):
    import json
    return json.loads(plan)["redistributions"][0]["steps"]


def refusals(on, plan):
    import meshplan
    import torch
    from torch.distributed.tensor import Shard as S
    one, two = laid_out(torch.ones(8, 8), on["all"], [S(0), S(1)]), laid_out(torch.ones(8, 4), on["all"], [S(0), S(1)])
    for words, call in (("only in one of before and after: b", lambda: meshplan.reshard({"a": one}, {"a": one, "b": two})),
                        ("torch.float32[8, 8] before, torch.float32[8, 4] after", lambda: meshplan.reshard([one], [two])),
                        ("share their memory", lambda: meshplan.reshard(one, one)),
                        ("the plan has no float32[8, 8] S(0)S(1) -> S(1)S(0)", lambda: meshplan.reshard(
                            one, laid_out(torch.zeros(8, 8), on["all"], [S(1), S(0)]), plan=plan))):
        try:
            call()
        except ValueError as error:
            assert words in str(error), f"'{words}' is not in: {error}"
        else:
            raise AssertionError(f"no error that says '{words}'")


def measure(rank, rounds=7):
    """50 small weights of a training step on 8 ranks: together and one by one, in turns; medians in milliseconds."""
    import meshplan
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import Replicate as R, Shard as S
    mesh = meshes()["all"]
    weights = {f"w{i}": laid_out(whole((256 + 8 * (i % 5), 128), torch.float32, i), mesh, [S(0), S(0)]) for i in range(50)}
    after = {n: empty_like(torch.zeros(w.shape), mesh, [R(), S(0)]) for n, w in weights.items()}
    times = {"together": [], "one by one, meshplan": [], "one by one, DTensor": []}
    for turn in range(rounds + 1):
        for way in times:
            dist.barrier()
            start = time.perf_counter()
            if way == "together":
                meshplan.reshard(weights, after)
            elif way == "one by one, meshplan":
                for name in weights:
                    meshplan.reshard(weights[name], after[name])
            else:
                for weight in weights.values():
                    weight.redistribute(mesh, [R(), S(0)])
            dist.barrier()
            if turn:
                times[way].append(1e3 * (time.perf_counter() - start))
    return {way: round(sorted(taken)[len(taken) // 2], 1) for way, taken in times.items()}


def main():
    if gloo_world.skipped("resharding_test"):
        return 77
    if "--measure" in sys.argv:
        print(f"50 small weights on 8 processes, ms: {gloo_world.on_ranks(WORLD, measure)[0]}")
        return 0
    print(gloo_world.on_ranks(WORLD, body)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
