#!/usr/bin/env python3
"""Programs that follow plans on gloo, or on NCCL with MESHPLAN_TEST_WORLD=nccl: training programs recorded, planned and followed on 4 and 8
processes, eager and compiled, with losses and norms to the last digit (of NCCL but for the order of sums); what is refused, what is left to
PyTorch, and that nothing stays replaced. Needs PyTorch; exits with 77 and says so where it is missing.

usage: following_test.py [--only PART,PART]     parts: train4 train8 compiled pipelined behaviour single beside recorded arriving strided turned failing dying timed
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "capture"))
import following_edges as edges  # noqa: E402
import follow_test as oracle  # noqa: E402  tests/capture: a topology on which plans keep to collectives
import ranks_world  # noqa: E402

DIMS = [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]


def raises(kind, words, body):
    try:
        body()
    except kind as error:
        assert words in str(error), f"'{words}' is not in: {error}"
        return
    raise AssertionError(f"no {kind.__name__} that says '{words}'")


def plan_of(requests, mesh=None, **more):
    """A plan of (id, shape, source, target) in float32 on dp 2 x tp 2."""
    import meshplan
    rows = [{"id": name, "tensor": {"shape": shape, "dtype": "float32"}, "src": src, "dst": dst} for name, shape, src, dst in requests]
    return meshplan.plan({"schema": "meshplan/spec/1", "mesh": mesh or {"dims": DIMS}, "redistributions": rows, **more})


# ---------------------------------------------------------------- whole programs

def alike(got, own):
    """But for the order of sums."""
    near = 1e-5 if ranks_world.ON_GPU else 1e-6
    return all(abs(a - b) <= near * abs(b) for one, other in zip(got, own) for a, b in zip(one, other))


def equal(got, own):
    """To the last digit on gloo; NCCL sums in an order of its own."""
    return alike(got, own) if ranks_world.ON_GPU else got == own


def train(rank, world):
    """Two steps of every program, its own way and following plans with and without exchanges."""
    import meshplan
    import meshplan.capture
    import training_programs
    from meshplan.following import _FOLLOWED as FOLLOWED
    mesh, said = training_programs.mesh_of(world), {}
    for name, program in training_programs.PROGRAMS.items():
        with meshplan.capture.record() as recorder:
            program(mesh).step()
        spec = ranks_world.of_first(recorder.spec)
        unfollowed = program(mesh)
        own = [unfollowed.step(), unfollowed.step()]
        for topology in (oracle.COLLECTIVES_ONLY, None):
            plan = meshplan.plan({**spec, **({"topology": topology} if topology else {})})
            again = program(mesh)
            with ranks_world.Counted() as counted, meshplan.follow(plan) as followed:
                got = [again.step(), again.step()]
            counted.check(followed.summary)
            # A sum over both dims at once, which PyTorch takes one by one, or over 4 ranks in their order, as exchanges take the norm's, may
            # differ in its last bit: whether it does depends on the processor's kernels.
            exact = name == "gathered" or ((name, world) == ("fsdp_tp", 4) and topology is not None)
            same = (equal if exact else alike)(got, own)
            assert same, f"{name}: {got}, PyTorch's own {own}\n{followed}"
            summary = followed.summary
            left = sum(summary.not_followed.values())
            assert summary.followed and all(reason.startswith("_MaskPartial") or reason.endswith("where it is made") for reason in summary.not_followed), str(followed)
            norms = [followed for followed in FOLLOWED.values() if followed.power == 2]
            assert name == "gathered" or norms, f"{name}: no norm was followed\n{followed}"
            first = str(followed).splitlines()[0]
            assert first.startswith(f"followed {summary.followed} of {summary.followed + left} redistributions"), first
            said[name] = (summary.followed, left, any("exchange" in step.route.name for step in summary.steps()))
    return said


def compiled(rank):
    """The same losses and gradients compiled, whole graphs, by every backend: (followed in two steps, left to PyTorch) of each."""
    import meshplan
    import meshplan.capture
    import torch
    import training_programs
    torch.set_default_device(None)  # while there is one, not all of a program can be compiled
    mesh, found = training_programs.mesh_of(4), {}
    for name, backends in (("gathered", ("eager", "aot_eager", "inductor")), ("context", ("aot_eager", "inductor")), ("experts", ("aot_eager", "inductor"))):
        make = training_programs.PROGRAMS[name]
        with meshplan.capture.record() as recorder:
            make(mesh).step()
        plan = meshplan.plan(ranks_world.of_first(recorder.spec))
        program, unfollowed = make(mesh), make(mesh)
        theirs = [unfollowed.step() for _ in range(3)]
        with meshplan.follow(plan) as followed:
            own = [program.step(), program.step()]
        assert alike(own, theirs), f"{name}: {own}, PyTorch's own {theirs}"
        counts = [tally(followed)]
        for backend in backends:
            torch._dynamo.reset()
            program = make(mesh)
            loss = torch.compile(program.loss, backend=backend, fullgraph=True)
            with ranks_world.Counted() as counted, meshplan.follow(plan) as followed:
                got = [program.step(loss), program.step(loss)]
            counted.check(followed.summary)
            assert alike(got, own) and (backend == "inductor" or equal(got, own)), f"{name}, {backend}: {got}, eager {own}"
            counts.append(tally(followed))
            after = program.step(loss)  # outside it is compiled anew: nothing is followed
            assert tally(followed) == counts[-1] and alike([after], theirs[2:]), f"{name}, {backend}: {after}, PyTorch's own {theirs}"
        # Of PyTorch 2.11 compiled code asks once where a step asks the same of one gradient twice.
        fewer = 2 if torch.__version__.startswith("2.11.") else 0
        eager, left = counts[0]
        assert all(eager - fewer <= times <= eager and other == left for times, other in counts), f"{name}: {counts} (followed, left), eager and compiled"
        found[name] = counts[0]
    left_in_compiled(mesh)
    return found


def tally(followed):
    return followed.summary.followed, sum(followed.summary.not_followed.values())


def left_in_compiled(mesh):
    """What compiled code leaves to PyTorch is traced any number of times and runs uncounted: it is said once, without a number."""
    import meshplan
    import torch
    import training_programs
    program = training_programs.Gathered(mesh)
    own = program.step()
    torch._dynamo.reset()
    loss = torch.compile(program.loss, backend="aot_eager", fullgraph=True)
    with meshplan.follow(plan_of([("other", [3, 3], ["S(0)", "R"], ["R", "R"])]), strict=False) as followed:
        got = [program.step(loss), program.step(loss)]
    text = str(followed)
    assert equal(got, [own, own]) and followed.summary.followed == 0, text
    compiled_in = [line for line in text.splitlines() if line.startswith("  not followed in compiled code, not counted: not in the plan: ")]
    assert compiled_in and len(compiled_in) == len(set(compiled_in)), text
    eager_only = sum(followed.summary.not_followed.values())  # gradients' way to the weights' placements, outside of the graph
    assert text.startswith(f"followed 0 of {eager_only} redistributions"), text


HOSTS = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 400, "latency_ns": 1000},
                    {"name": "outside", "ranks": 1048576, "gb_per_s": 10, "latency_ns": 2000}]}
FAST_OUTSIDE = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 100, "latency_ns": 1},
                           {"name": "outside", "ranks": 1048576, "gb_per_s": 50, "latency_ns": 2}]}
UNEVEN_HOSTS = {"levels": [{"name": "inside", "ranks": 3, "gb_per_s": 400, "latency_ns": 1000},
                           {"name": "outside", "ranks": 1048576, "gb_per_s": 10, "latency_ns": 2000}]}


def moved_as_planned(mesh, plan, requests):
    """Follows the plan of these requests on a mesh a 2 x b 4: every shard is as PyTorch would have it."""
    import meshplan
    import torch
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    to = {"R": Replicate(), "S(0)": Shard(0), "S(1)": Shard(1)}
    with meshplan.follow(plan) as followed:
        for name, shape, src, dst in requests:
            whole = torch.randn(shape, generator=torch.Generator(ranks_world.device()).manual_seed(3))
            x = distribute_tensor(whole, mesh, [to[p] for p in src], src_data_rank=None)
            got = x.redistribute(mesh, [to[p] for p in dst]).to_local()
            assert torch.equal(got, distribute_tensor(whole, mesh, [to[p] for p in dst], src_data_rank=None).to_local()), name
    assert followed.summary.followed == len(requests)


def pipelined(rank):
    """Over two hosts of 4: exchanges in two phases, whole and, of uneven shards, in chunks that overlap; with a share from the other host; and, over hosts of 3, fetched by all ranks of one."""
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh(ranks_world.device(), (2, 4), mesh_dim_names=("a", "b"))
    dims = {"dims": [{"name": "a", "size": 2}, {"name": "b", "size": 4}]}
    requests = [("both", [1 << 12, 64], ["S(0)", "R"], ["R", "R"]), ("uneven", [4099, 64], ["S(0)", "S(0)"], ["R", "S(1)"]),
                ("chunks", [4099, 640], ["S(0)", "R"], ["R", "R"])]
    plan = plan_of(requests, mesh=dims, topology=HOSTS)
    steps = {r["id"]: r["steps"] for r in json.loads(plan)["redistributions"]}
    assert all(any(step.get("phases") == 2 for step in steps[name]) for name in ("both", "chunks")), f"plans in two phases: {steps}"
    chunks = max(step.get("chunks", 1) for step in steps["chunks"])
    assert chunks > 1, "a plan in chunks"
    moved_as_planned(mesh, plan, requests)
    requests = [("far", [1536, 256], ["R", "S(0)"], ["S(0)", "S(0)"]), ("uneven far", [1531, 301], ["R", "S(0)"], ["S(1)", "R"])]
    plan = plan_of(requests, mesh=dims, topology=FAST_OUTSIDE)
    steps = [step for r in json.loads(plan)["redistributions"] for step in r["steps"]]
    assert all(step.get("far_64ths", 0) > 0 for step in steps), f"plans with a far share: {steps}"
    moved_as_planned(mesh, plan, requests)
    requests = [("by all", [4096, 640], ["S(0)", "S(1)"], ["S(0)", "R"]), ("uneven by all", [1531, 64], ["S(0)", "S(0)"], ["S(1)", "R"])]
    plan = plan_of(requests, mesh=dims, topology=UNEVEN_HOSTS)
    steps = [step for r in json.loads(plan)["redistributions"] for step in r["steps"]]
    assert all(step.get("fetched_by_all") for step in steps), f"plans that all ranks of a host fetch: {steps}"
    moved_as_planned(mesh, plan, requests)
    return chunks


# ---------------------------------------------------------------- what is refused and left

def behaviour(rank):
    import meshplan
    import torch
    import torch.distributed.tensor._redistribute as redistribute
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, _dispatch, distribute_tensor
    from meshplan.following import NotInPlan, check_signature
    mesh = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp"))
    plan = plan_of([("gather", [30, 8], ["S(0)", "S(0)"], ["R", "S(0)"])])
    x = distribute_tensor(torch.arange(240.0).view(30, 8), mesh, [Shard(0), Shard(0)])
    gather = lambda: x.redistribute(mesh, [Replicate(), Shard(0)])  # noqa: E731
    original, own = redistribute.redistribute_local_tensor, gather().to_local()

    def strict():
        with meshplan.follow(plan):
            assert _dispatch.redistribute_local_tensor is redistribute.redistribute_local_tensor is not original
            x.redistribute(mesh, [Replicate(), Replicate()])
    raises(NotInPlan, "not in the plan: float32[30, 8] S(0)S(0) -> RR, on mesh dp 2 x tp 2 of ranks 0 1 2 3", strict)
    assert _dispatch.redistribute_local_tensor is redistribute.redistribute_local_tensor is original, "restored after an exception"

    with meshplan.follow(plan, strict=False) as followed:
        for _ in range(3):
            assert torch.equal(gather().to_local(), own)
        assert torch.equal(x.full_tensor(), torch.arange(240.0).view(30, 8))
        later = __import__("torch.distributed.tensor.experimental._tp_transform", fromlist=["x"])  # imported meanwhile
        late_name = later.redistribute_local_tensor
    text = str(followed)
    assert text.startswith("followed 3 of 4 redistributions") and "not followed, 1 times: not in the plan" in text, text
    assert late_name is not original and later.redistribute_local_tensor is original, "modules imported inside are restored too"
    before = followed.summary.followed
    gather()
    assert followed.summary.followed == before

    # Exactly the same layout, or none: another dtype, shape, order of shards, mesh.
    for other in (x.double(), distribute_tensor(torch.ones(31, 8), mesh, [Shard(0), Shard(0)])):
        with meshplan.follow(plan, strict=False) as followed:
            other.redistribute(mesh, [Replicate(), Shard(0)])
        assert followed.summary.followed == 0 and "asks it for float32[30, 8]" in str(followed), str(followed)
    turned = init_device_mesh(ranks_world.device(), (4,), mesh_dim_names=("all",))
    swapped = type(mesh)(ranks_world.device(), torch.tensor([[0, 2], [1, 3]], device="cpu"), mesh_dim_names=("dp", "tp"))
    with meshplan.follow(plan, strict=False) as followed:
        distribute_tensor(torch.ones(30, 8), swapped, [Shard(0), Shard(0)]).redistribute(swapped, [Replicate(), Shard(0)])
        distribute_tensor(torch.ones(30, 8), turned, [Shard(0)]).redistribute(turned, [Replicate()])
    assert followed.summary.followed == 0 and "'gather' asks this on other ranks" in str(followed), str(followed)

    # What no plan says is no error under strict: PyTorch does it.
    with meshplan.follow(plan) as followed:
        none = distribute_tensor(torch.ones(0, 8), mesh, [Shard(0), Shard(0)]).redistribute(mesh, [Replicate(), Shard(0)]).to_local()
    assert none.shape == (0, 8) and "not followed, 1 times: a tensor without elements: [0, 8]" in str(followed), str(followed)

    # A sum over replicas has equal bits everywhere; async_op is counted.
    sums = plan_of([("sum", [5], ["P(sum)", "P(sum)"], ["R", "R"])])
    part = DTensor.from_local(torch.full((5,), 0.1 * (rank + 1) ** 3), mesh, [Partial(), Partial()], run_check=False)
    with meshplan.follow(sums) as followed:
        total = part.redistribute(mesh, [Replicate(), Replicate()], async_op=True).to_local()
    assert "1 asked for async_op" in str(followed), str(followed)
    everyone = [torch.empty(5) for _ in range(4)]
    torch.distributed.all_gather(everyone, total)
    assert all(torch.equal(e, everyone[0]) for e in everyone) and torch.allclose(total, torch.full((5,), 10.0))

    # Plans for another world, plans inside plans, functions of another PyTorch.
    many = plan_of([("g", [64], ["S(0)", "R"], ["R", "R"])], mesh={"dims": [{"name": "dp", "size": 4}, {"name": "tp", "size": 4}]})
    raises(NotInPlan, "the plan is for ranks up to 15, and this world has 4", lambda: meshplan.follow(many).__enter__())
    with meshplan.follow(many, strict=False) as followed:
        gather()
    assert "the plan has 12 ranks that this world lacks" in str(followed), str(followed)

    # What is not a plan is said by name, before anything is replaced.
    for wrong, words in ((5, "5 is not a plan: give a plan file's path"), (None, "None is not a plan"), (b"{" * 99, "a bytes is not a plan"), ("{nope", "the text is not a plan to follow"),
                         (__file__, "following_test.py is not a plan to follow"), ({"schema": "meshplan/spec/1"}, "the dict is not a plan to follow: error[E0501]: this is a spec; plan it first"),
                         ({**json.loads(plan), "redistributions": []}, "so it was changed after planning")):
        raises(ValueError, words, lambda: meshplan.follow(wrong))  # noqa: B023
    raises(RuntimeError, "was not entered", lambda: meshplan.follow(plan).__exit__(None, None, None))

    def nested():
        with meshplan.follow(plan), meshplan.follow(plan):
            pass
    raises(RuntimeError, "a plan is followed already", nested)
    raises(RuntimeError, "is not what meshplan.follow knows: stream;", lambda: check_signature(
        lambda local_tensor, current_spec, target_spec, *, async_op=False, stream=None: None))
    assert redistribute.redistribute_local_tensor is original
    return True


def single(rank):
    """Mesh dims of one rank, on which a plan's states say R whatever was asked: found all the same, forward and backward."""
    import meshplan
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(ranks_world.device(), (1, 4, 1), mesh_dim_names=("dp", "tp", "pp"))
    to = {"R": Replicate(), "S(0)": Shard(0), "S(1)": Shard(1), "P(sum)": Partial()}
    requests = [("gather", [30, 8], ["S(1)", "S(0)", "R"], ["S(0)", "R", "S(1)"]), ("nothing", [30, 8], ["S(1)", "S(1)", "S(1)"], ["S(0)", "S(1)", "R"]),
                ("sum", [30, 8], ["P(sum)", "P(sum)", "P(sum)"], ["S(0)", "S(0)", "R"]), ("turn", [30, 8], ["S(0)", "S(0)", "R"], ["S(0)", "S(1)", "S(1)"])]
    plan = plan_of(requests, mesh={"dims": [{"name": "dp", "size": 1}, {"name": "tp", "size": 4}, {"name": "pp", "size": 1}]})
    whole = torch.arange(240.0).view(30, 8)
    for name, _, src, dst in requests:
        src, dst = ([to[p] for p in side] for side in (src, dst))
        x = DTensor.from_local(whole * (rank + 1), mesh, src, run_check=False) if name == "sum" else distribute_tensor(whole, mesh, src)
        own = x.redistribute(mesh, dst).to_local()
        with meshplan.follow(plan) as followed:
            got = x.redistribute(mesh, dst).to_local()
        assert torch.equal(got, own) and followed.summary.ids == {name: 1}, f"{name}: {followed}"
    return True


class PretendedEvent:
    """torch.cuda.Event of a GPU whose work ends when somebody waits for it; all that it is asked is counted."""
    marked, waits = 0, 0

    def __init__(self, enable_timing):
        assert enable_timing
        self.over = False

    def record(self):
        PretendedEvent.marked += 1
        self.at = 5.0 * PretendedEvent.marked

    def query(self):
        return self.over

    def synchronize(self):
        PretendedEvent.waits += 1
        self.over = True

    def elapsed_time(self, last):
        assert last.over
        return last.at - self.at


def timed():
    """What takes place on a GPU is timed by its events: nothing waits before the sum is asked for, and what a graph captures has no time."""
    import torch
    from meshplan.timing import Span, Total
    own = torch.cuda.Event, torch.cuda.is_current_stream_capturing
    try:
        torch.cuda.Event, torch.cuda.is_current_stream_capturing = PretendedEvent, lambda: False
        gpu, total = torch.device("cuda", 0), Total()
        for _ in range(100):
            total.add(Span(gpu).stop())
        assert PretendedEvent.waits == 0, PretendedEvent.waits
        assert abs(total.seconds - 0.5) < 1e-9 and PretendedEvent.waits == 100, (total.seconds, PretendedEvent.waits)
        assert total.seconds == total.seconds and PretendedEvent.waits == 100
        torch.cuda.is_current_stream_capturing = lambda: True
        assert Span(gpu).stop().seconds == 0 and PretendedEvent.marked == 200
    finally:
        torch.cuda.Event, torch.cuda.is_current_stream_capturing = own
    assert 0 <= Span(torch.device("cpu")).stop().seconds < 10
    return "by events of the GPU, read when asked for"


def failing(rank):
    """A rank whose shard is not what the plan says: the message has the plan's step."""
    import meshplan
    import torch
    import torch.distributed.tensor._redistribute as redistribute
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp"))
    x = distribute_tensor(torch.ones(30, 8), mesh, [Shard(0), Shard(0)])
    target = x.redistribute(mesh, [Replicate(), Shard(0)])._spec
    with meshplan.follow(plan_of([("w.gather", [30, 8], ["S(0)", "S(0)"], ["R", "S(0)"])])):
        raises(RuntimeError, "following the plan: w.gather, step 0 (exchange on mesh): this rank holds 8 elements",
               lambda: redistribute.redistribute_local_tensor(torch.ones(1, 8), x._spec, target))
    return True


def dying(rank):
    """A rank whose process ends within a step: those that wait for it get PyTorch's error with the plan's step, and all is restored."""
    import os
    import meshplan
    import torch
    import torch.distributed.tensor._redistribute as redistribute
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh, original = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp")), redistribute.redistribute_local_tensor
    x = distribute_tensor(torch.ones(30, 8), mesh, [Shard(0), Shard(0)])
    plan = plan_of([("w.gather", [30, 8], ["S(0)", "S(0)"], ["R", "S(0)"])])
    said = "nothing"
    try:
        with meshplan.follow(plan):
            x.redistribute(mesh, [Replicate(), Shard(0)])
            ranks_world.barrier()
            if rank == 3:
                os._exit(1)
            x.redistribute(mesh, [Replicate(), Shard(0)])
    except RuntimeError as error:
        said = str(error)
        assert error.__cause__ is not None and str(error.__cause__) in said, "the message of PyTorch's own error"
    assert redistribute.redistribute_local_tensor is original
    return said


def rank_gone():
    said = ranks_world.on_ranks(4, dying, dies=3)
    assert said[1].startswith("following the plan: w.gather, step 0 (exchange on mesh): "), said
    return f"rank 3 gone, rank 1 says: {said[1].splitlines()[0]}"


def trained(world):
    return f"{world} processes, (followed, left to PyTorch, with exchanges): {json.dumps(ranks_world.on_ranks(world, train, world)[0])}"


def held(body, *arguments):
    ranks_world.on_ranks(4, body, *arguments)
    return f"{body.__name__}: as it must be"


PARTS = {"train4": lambda: trained(4), "train8": lambda: trained(8),
         "compiled": lambda: f"compiled, (followed, left to PyTorch): {json.dumps(ranks_world.on_ranks(4, compiled)[0])}",
         "pipelined": lambda: f"two phases, in up to {max(ranks_world.on_ranks(8, pipelined))} chunks",
         "behaviour": lambda: held(behaviour), "single": lambda: held(single), "failing": lambda: held(failing), "dying": rank_gone,
         "recorded": lambda: held(edges.recorded, plan_of), "arriving": lambda: held(edges.arriving, plan_of),
         "strided": lambda: held(edges.strided),
         "turned": lambda: f"turned, on groups of {ranks_world.on_ranks(8, edges.turned, oracle.COLLECTIVES_ONLY)[::4]}",
         "beside": lambda: "beside: not on NCCL, which has no tags" if ranks_world.ON_GPU else held(edges.beside, plan_of),
         "timed": timed}


def main():
    if ranks_world.skipped("following_test"):
        return 77
    for name in oracle.option("--only", ",".join(PARTS)).split(","):
        print(PARTS[name](), flush=True)
    print("what is followed is what PyTorch computes, and nothing stays replaced")
    return 0


if __name__ == "__main__":
    sys.exit(main())
