#!/usr/bin/env python3
"""Plans the recorded cases with PyTorch and with meshplan, one core each, and prints the ratios side by side.

usage: against_torch.py RULES_BENCH [--vectors FILE] [--repeat N] [--limit N]

RULES_BENCH is the program that tests/bench builds from rules_bench.cc. CPU time, on both sides the least of N repetitions (on ours each is
the mean of many runs, one alone being too short to time). Compared: greedy and merge of PyTorch with greedy, merge and proof of meshplan; graph and merge with the same.
Without PyTorch (2.15 or later) it says so and ends with 0.
"""
import argparse
import json
import logging
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def placement(text):
    from torch.distributed.tensor import Partial, Replicate, Shard
    if text == "R":
        return Replicate()
    return Partial(text[2:-1]) if text[0] == "P" else Shard(int(text[2:-1]))


class Torch:
    """PyTorch's planner on a fake process group."""

    def __init__(self, world):
        import torch.distributed
        import torch.distributed.tensor._redistribute as redistribute
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
        redistribute.logger.setLevel(logging.ERROR)
        self.planner = redistribute

    def mesh(self, case):
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", tuple(case["mesh"]["shape"]), mesh_dim_names=tuple(case["mesh"]["dim_names"]))
        for dims in case["mesh"]["flattened"]:
            mesh[tuple(dims)]._flatten("_".join(dims))
        return mesh

    def spec(self, case, side, mesh):
        import torch
        from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
        shape = case["tensor"]["shape"]
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        meta = TensorMeta(torch.Size(shape), tuple(strides), getattr(torch, case["tensor"]["dtype"]))
        order = {}
        if "shard_order" in case[side]:
            given = sorted((int(d), dims) for d, dims in case[side]["shard_order"].items())
            order["shard_order"] = tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=tuple(dims)) for d, dims in given if dims)
        return DTensorSpec(mesh, tuple(placement(p) for p in case[side]["placements"]), tensor_meta=meta, **order)

    def seconds(self, case, planner, repeat):
        mesh = self.mesh(case)
        src, dst = self.spec(case, "src", mesh), self.spec(case, "dst", mesh)
        least = math.inf
        for _ in range(repeat):
            start = time.process_time()
            infos = self.planner._gen_transform_infos_non_cached(src, dst, planner == "graph")
            self.planner._optimize_transform_infos(infos, mesh, src.placements, dst.placements)
            least = min(least, time.process_time() - start)
        return least


def ours(program, repeat):
    command = [program, "--benchmark_filter=^case/", "--benchmark_format=json", "--benchmark_min_time=0.002", f"--benchmark_repetitions={repeat}"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    times = {}
    for run in report["benchmarks"]:
        if run["run_type"] == "iteration":
            times[run["run_name"]] = min(times.get(run["run_name"], math.inf), run["cpu_time"] * 1e-9)
    return times


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--vectors", default=os.path.join(HERE, "..", "..", "testdata", "vectors", "redistribute.json"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=int, default=0, help="only the first N cases")
    args = parser.parse_args()
    try:
        import torch
        torch.set_num_threads(1)
    except ImportError:
        print("PyTorch is not installed here: nothing to compare with")
        return 0
    cases = json.load(open(args.vectors))["cases"]
    times = ours(args.program, args.repeat)
    peer = Torch(math.prod(cases[0]["mesh"]["shape"]))
    ratios = {}
    sums = {}
    print(f"PyTorch {torch.__version__}, CPU time of one plan\n{'case':>12} {'PyTorch us':>12} {'meshplan us':>12} {'ratio':>9}")
    for number, case in enumerate(cases[:args.limit or None]):
        for planner in ("greedy", "graph"):
            name = f"case/{planner}/{number}"
            if name not in times:
                continue
            theirs = peer.seconds(case, planner, args.repeat if planner == "greedy" else max(2, args.repeat // 2))
            ratio = theirs / times[name]
            ratios.setdefault(planner, []).append(ratio)
            total = sums.setdefault(planner, [0.0, 0.0])
            total[0] += theirs
            total[1] += times[name]
            print(f"{planner + '/' + str(number):>12} {theirs * 1e6:12.1f} {times[name] * 1e6:12.2f} {ratio:9.1f}")
    for planner, what in (("greedy", "greedy + merge + proof"), ("graph", "graph + merge")):
        if planner in ratios:
            values = ratios[planner]
            print(f"{what}: {geometric_mean(values):.1f} times as fast (geometric mean of {len(values)} cases; least {min(values):.1f}, "
                  f"most {max(values):.1f}; all cases together {sums[planner][0] / sums[planner][1]:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
