#!/usr/bin/env python3
"""What a weight sync takes, planned as one bundle and by the rules of other systems, each as its ratio to meshplan's lower bound.

usage: bundles.py MESHPLAN [--stride N] [--jobs N] [--only WORD] [--above DIR] [--seconds N] [--topology NAME]

Layouts: from training with TP 1 2 4 8 x DP 2 4 8 16 to inference with TP 1 2 4 8 x DP 1 2 4 8 16 on other ranks, 320 in all; --stride N plans every Nth.
Tensors: one; the 723 of Llama-3 70B; the 45,300 of DeepSeek-V3, every expert by itself. Then pairs of meshes as people have them.
--only WORD leaves out settings and pairs whose line does not have the word; --above DIR keeps the specs of bundles above 1.05 in DIR.
--topology NAME plans the pairs on that preset in place of h100; --only=' -> ' is the pairs alone.
--seconds N gives up a plan that takes more than N seconds of processor; layouts are then listed as planned/asked, and ratios are of those planned.

Columns, each a schedule of all tensors, by the busiest rank over its links:
  bundle      what meshplan plans
  alone       each tensor by itself, as meshplan plans it, one after another
  broadcast   source rank 0 has each tensor (how it got there is free) and broadcasts it to all target ranks, one broadcast a tensor, as pipelines that send
              every byte once to each host and once to each rank
  megatron    Megatron-core's resharding: a target rank takes a sharded tensor from the source replica (rank / source TP) mod source DP, a whole one from
              one rank of it, rank mod source TP; from the first source rank alone where the source has TP 1 (the replicas are then one DP group)
  awex        Awex: the ith target replica takes from the source replica i mod the number of source replicas; of whole tensors every rank is a replica
The last two are one launch without limits of messages or staging, which pays one latency. Where levels have latencies, so has every launch.
"""
import argparse
import concurrent.futures
import fractions
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

FIRST_TARGET = 1024  # the global id of the first target rank
LARGE = 1 << 20


def llama(hidden, ffn, layers, vocab, kv):
    """(name, shape, dim that TP shards or None, how many, dtype)"""
    return [(*made, "bfloat16") for made in (
        ("embed", [vocab, hidden], 0, 1), ("lm_head", [vocab, hidden], 0, 1), ("norm", [hidden], None, 1),
        ("wq", [hidden, hidden], 0, layers), ("wk", [kv, hidden], 0, layers), ("wv", [kv, hidden], 0, layers), ("wo", [hidden, hidden], 1, layers),
        ("w1", [ffn, hidden], 0, layers), ("w3", [ffn, hidden], 0, layers), ("w2", [hidden, ffn], 1, layers),
        ("n1", [hidden], None, layers), ("n2", [hidden], None, layers))]


def deepseek_v3():
    h, layers, moe = 7168, 61, 58
    fp8 = [("exp.gate", [2048, h], 0, 256 * moe), ("exp.up", [2048, h], 0, 256 * moe), ("exp.down", [h, 2048], 1, 256 * moe),
           ("shared.gate", [2048, h], 0, moe), ("shared.up", [2048, h], 0, moe), ("shared.down", [h, 2048], 1, moe),
           ("dense.gate", [18432, h], 0, 3), ("dense.up", [18432, h], 0, 3), ("dense.down", [h, 18432], 1, 3),
           ("q_a", [1536, h], None, layers), ("q_b", [24576, 1536], 0, layers), ("kv_a", [576, h], None, layers), ("kv_b", [32768, 512], 0, layers),
           ("o", [h, 16384], 1, layers)]
    bf16 = [("embed", [129280, h], 0, 1), ("head", [129280, h], 0, 1), ("router", [256, h], None, moe), ("n1", [h], None, layers), ("n2", [h], None, layers),
            ("q_norm", [1536], None, layers), ("kv_norm", [512], None, layers), ("norm", [h], None, 1)]
    return [(*made, "float8_e4m3") for made in fp8] + [(*made, "bfloat16") for made in bf16]


MODELS = {"one tensor": [("w", [8192, 8192], 0, 1, "bfloat16")], "Llama-3 70B": llama(8192, 28672, 80, 128256, 1024), "DeepSeek-V3": deepseek_v3()}


def levels(*parts):
    return {"levels": [{"name": name, "ranks": ranks, "gb_per_s": gb, "latency_ns": latency} for name, ranks, gb, latency in parts]}


TOPOLOGIES = {"uniform, no latency": levels(("net", LARGE, 100, 0)),
              "two levels, no latency": levels(("nvlink", 8, 370, 0), ("ib", LARGE, 45, 0)),
              "two levels, 10 and 25 us": levels(("nvlink", 8, 370, 10_000), ("ib", LARGE, 45, 25_000))}


def bytes_of(shape, dtype):
    return math.prod(shape) * (1 if dtype.startswith("float8") else 2)


# Rules of other systems.

class Layout:
    """TP x DP on ranks first, first + 1, ...; apart: TP fastest, so that the replicas of a shard are TP ranks apart; else DP fastest."""

    def __init__(self, tp, dp, first, apart):
        self.tp, self.dp, self.first, self.apart = tp, dp, first, apart

    def rank(self, tp, dp):
        return self.first + (dp * self.tp + tp if self.apart else tp * self.dp + dp)

    def all(self):
        """(tp, dp) in the order of ranks"""
        places = [(tp, dp) for tp in range(self.tp) for dp in range(self.dp)]
        return sorted(places, key=lambda place: self.rank(*place))


def overlaps(source_tp, target_tp, shard):
    """(source shard, part of the whole) of one target shard"""
    low, high = fractions.Fraction(shard, target_tp), fractions.Fraction(shard + 1, target_tp)
    for other in range(source_tp):
        part = min(high, fractions.Fraction(other + 1, source_tp)) - max(low, fractions.Fraction(other, source_tp))
        if part > 0:
            yield other, part


def megatron(source, target, sharded):
    """(from, to, part of the tensor)"""
    for tp, dp in target.all():
        to = target.rank(tp, dp)
        group, replica = to % source.tp, to // source.tp % source.dp
        if source.tp == 1:
            replica = 0
        if not sharded:
            yield source.rank(group, replica), to, fractions.Fraction(1)
        else:
            for shard, part in overlaps(source.tp, target.tp, tp):
                yield source.rank(shard, replica), to, part


def awex(source, target, sharded):
    if not sharded:
        senders = [source.rank(*place) for place in source.all()]
        for i, place in enumerate(target.all()):
            yield senders[i % len(senders)], target.rank(*place), fractions.Fraction(1)
        return
    for dp in range(target.dp):
        for tp in range(target.tp):
            for shard, part in overlaps(source.tp, target.tp, tp):
                yield source.rank(shard, dp % source.dp), target.rank(tp, dp), part


def level_of(topology, one, other):
    return next(l for l, level in enumerate(topology["levels"]) if one // level["ranks"] == other // level["ranks"])


def loads_of(rule, source, target, topology, tensors):
    """(rank, level, direction) -> bytes"""
    loads = {}
    for is_sharded in (True, False):
        total = sum(bytes_of(shape, dtype) * count for _, shape, dim, count, dtype in tensors if (dim is not None) == is_sharded)
        if total:
            for one, other, part in rule(source, target, is_sharded):
                level = level_of(topology, one, other)
                for key in ((one, level, "out"), (other, level, "in")):
                    loads[key] = loads.get(key, 0) + total * part
    return loads


def nanoseconds_of(loads, topology):
    return float(max(amount / int(topology["levels"][level]["gb_per_s"]) for (_, level, _), amount in loads.items())) + \
        max(topology["levels"][level]["latency_ns"] for _, level, _ in loads)


def broadcast_ns(source, target, topology, tensors):
    """Every tensor whole into every target rank: over the level that joins it to rank 0, once for each unit below."""
    root = source.rank(0, 0)
    level = max(level_of(topology, root, target.rank(*place)) for place in target.all())
    link = topology["levels"][level]
    return sum(count * (link["latency_ns"] + bytes_of(shape, dtype) / link["gb_per_s"]) for _, shape, _, count, dtype in tensors)


def of_even_split(rule, source, target):
    """The busiest rank's bytes over those of an even split: a target shard in, all targets' bytes over all sources out."""
    busiest = max(loads_of(rule, source, target, TOPOLOGIES["uniform, no latency"], MODELS["one tensor"]).values())
    even = max(fractions.Fraction(1, target.tp), fractions.Fraction(target.dp, source.tp * source.dp))
    return float(busiest / (even * bytes_of(*MODELS["one tensor"][0][1::3])))


# meshplan.

def spec_of(meshes, topology, redistributions, **limits):
    return {"schema": "meshplan/spec/1", "topology": topology, "meshes": meshes, "redistributions": redistributions,
            "bundles": [{"id": "sync", "redistributions": ["sync.*"], **limits}]}


def mesh(name, first, **dims):
    world = math.prod(dims.values())
    return {"name": name, "world": world, "ranks": [f"{first}-{first + world - 1}"], "dims": [{"name": dim, "size": size} for dim, size in dims.items()]}


def move(name, shape, dtype, src, dst, count, source="train", target="serve"):
    meshes = {"mesh": source} if source == target else {"src_mesh": source, "dst_mesh": target}
    return {"id": f"sync.{name}", **meshes, "tensor": {"shape": shape, "dtype": dtype}, "src": src, "dst": dst, "count": count}


def layout_spec(source, target, topology, tensors):
    def placed(layout, dim):
        tp = "R" if dim is None else f"S({dim})"
        return {"dp": "R", "tp": tp}

    def dims(layout):
        return {"dp": layout.dp, "tp": layout.tp} if layout.apart else {"tp": layout.tp, "dp": layout.dp}

    moves = [move(name, shape, dtype, placed(source, dim), placed(target, dim), count) for name, shape, dim, count, dtype in tensors]
    return spec_of([mesh("train", source.first, **dims(source)), mesh("serve", target.first, **dims(target))], topology, moves)


class TooLong(Exception):
    """A plan took more seconds of processor than asked for."""


def planned(meshplan, spec, limit=0):
    """The plan's bundle, processor seconds, bytes of the file, megabytes of the planner. TooLong beyond `limit` seconds; 0: none."""
    with tempfile.TemporaryDirectory() as folder:
        path, plan = os.path.join(folder, "spec.json"), os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(spec, out)
        command = [meshplan, "plan", path, "-o", plan, "-q", "-W", "no-missing-flatten"]
        if limit:
            command = ["bash", "-c", 'ulimit -t "$0"; exec "$@"', str(limit), *command]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        if limit and os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, -signal.SIGXCPU):
            raise TooLong
        if os.waitstatus_to_exitcode(status) != 0:
            raise RuntimeError(f"meshplan plan ended with {os.waitstatus_to_exitcode(status)}:\n{said[:1000]}")
        with open(plan, encoding="utf-8") as made:
            bundle = json.load(made)["bundles"][0]
        return bundle, usage.ru_utime + usage.ru_stime, os.path.getsize(plan), usage.ru_maxrss / 1024


def keep(folder, name, ratio, spec):
    if folder and ratio > 1.05:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"found-bundle-{name}.json"), "w", encoding="utf-8") as out:
            json.dump(spec, out)


def layouts(apart, stride):
    every = [(Layout(stp, sdp, 0, apart), Layout(ttp, tdp, FIRST_TARGET, apart))
             for stp in (1, 2, 4, 8) for sdp in (2, 4, 8, 16) for ttp in (1, 2, 4, 8) for tdp in (1, 2, 4, 8, 16)]
    return every[::stride]


COLUMNS = ("bundle", "alone", "broadcast", "megatron", "awex")


def ratios_of(args, model, topology, source, target):
    tensors, net = MODELS[model], TOPOLOGIES[topology]
    spec = layout_spec(source, target, net, tensors)
    try:
        bundle, seconds, _, _ = planned(args.meshplan, spec, args.seconds)
    except TooLong:
        return None
    bound = max(1, bundle["totals"]["lower_bound_ns"])
    times = [bundle["totals"]["predicted_ns"], bundle["alone_ns"], broadcast_ns(source, target, net, tensors)]
    times += [nanoseconds_of(loads_of(rule, source, target, net, tensors), net) for rule in (megatron, awex)]
    where = "apart" if source.apart else "together"
    name = f"{model}-{topology}-{where}-{source.tp}x{source.dp}-{target.tp}x{target.dp}".replace(" ", "_").replace(",", "")
    keep(args.above, name, times[0] / bound, spec)
    return [took / bound for took in times], seconds


def summary(values):
    geomean = math.exp(sum(math.log(value) for value in values) / len(values))
    return f"{geomean:7.3f} {max(values):8.3f} {sum(value > 1.05 for value in values):4d}"


def print_layouts(args, pool):
    print("Ratio to the lower bound over layouts: geometric mean, largest, how many above 1.05")
    print(f"{'':62}{'layouts':>7}  " + "".join(f"{name:>21}  " for name in COLUMNS) + "planned in (mean, most)", flush=True)
    for model in MODELS:
        for topology in TOPOLOGIES:
            for apart in (True, False):
                line = f"{model}; {topology}; replicas {'TP ranks apart' if apart else 'together'}"
                if args.only not in line or (not apart and topology.startswith("uniform")):
                    continue
                rows = list(pool.map(lambda pair, m=model, t=topology: ratios_of(args, m, t, *pair), layouts(apart, args.stride)))
                asked, rows = len(rows), [row for row in rows if row]
                if not rows:
                    print(f"{line:62}{f'0/{asked}':>7}", flush=True)
                    continue
                columns = zip(*(ratios for ratios, _ in rows))
                seconds = [took for _, took in rows]
                print(f"{line:62}{f'{len(rows)}/{asked}':>7}  " + "".join(f"{summary(column)}  " for column in columns) +
                      f"{sum(seconds) / len(seconds):.2f} s {max(seconds):.2f} s", flush=True)


def print_even_split():
    print("\nThe busiest rank's bytes over an even split's, one tensor, all 320 layouts: geometric mean, largest")
    for rule in (megatron, awex):
        values = [of_even_split(rule, *pair) for pair in layouts(True, 1)]
        geomean = math.exp(sum(math.log(value) for value in values) / len(values))
        print(f"{rule.__name__:10} {geomean:.3f} {max(values):.3f}")


# Pairs of meshes as people have them.

def fsdp_tp(tensors, source, target, first, topology="h100"):
    """From FSDP x TP, both on dim 0 where TP shards it, to replicas x TP."""
    moves = []
    for name, shape, dim, count, dtype in tensors:
        tp = "R" if dim is None else f"S({dim})"
        moves.append(move(name, shape, dtype, {"fsdp": "S(0)", "tp": tp}, {"dp": "R", "tp": tp}, count))
    return spec_of([mesh("train", 0, fsdp=source[0], tp=source[1]), mesh("serve", first, dp=target[0], tp=target[1])], topology, moves)


def same_ranks(tensors, fsdp, tp, other_tp):
    world = fsdp * tp
    moves = []
    for name, shape, dim, count, dtype in tensors:
        after = "R" if dim is None else f"S({dim})"
        moves.append(move(name, shape, dtype, {"fsdp": "S(0)", "tp": after}, {"dp": "R", "tp": after}, count))
    target = mesh("serve", 0, dp=world // other_tp, tp=other_tp)
    return spec_of([mesh("train", 0, fsdp=fsdp, tp=tp), target], "h100", moves)


def pipeline_stages(tensors, stages, fsdp, tp, target):
    """Layers of a stage live on its ranks only: one root mesh a stage."""
    meshes = [mesh(f"stage{i}", i * fsdp * tp, fsdp=fsdp, tp=tp) for i in range(stages)]
    meshes.append(mesh("serve", stages * fsdp * tp, dp=target[0], tp=target[1]))
    moves = []
    for name, shape, dim, count, dtype in tensors:
        tp_at = "R" if dim is None else f"S({dim})"
        homes = range(stages) if count > 1 else [0 if name == "embed" else stages - 1]
        for i in homes:
            moves.append(move(f"{i}.{name}", shape, dtype, {"fsdp": "S(0)", "tp": tp_at}, {"dp": "R", "tp": tp_at},
                              count // stages if count > 1 else 1, source=f"stage{i}"))
    return spec_of(meshes, "h100", moves)


def experts(source_dp, source_ep, target_dp, target_ep, topology="h100"):
    """DeepSeek-V3 with stacked experts: EP over all, FSDP over DP, FP8 beside bfloat16."""
    moves = []
    for name, shape, dim, count, dtype in deepseek_v3():
        if name.startswith("exp."):
            moves.append(move(name, [256, *shape], dtype, {"dp": "S(1)", "ep": "S(0)"}, {"dp": "R", "ep": "S(0)"}, count // 256))
        else:
            whole = dim is None or name.startswith("shared.")
            moves.append(move(name, shape, dtype, {"dp": "S(0)", "ep": "S(0)"}, {"dp": "R", "ep": "R" if whole else f"S({dim})"}, count))
    first = source_dp * source_ep
    return spec_of([mesh("train", 0, dp=source_dp, ep=source_ep), mesh("serve", first, dp=target_dp, ep=target_ep)], topology, moves)


def pairs():
    l70, l405 = MODELS["Llama-3 70B"], llama(16384, 53248, 126, 128256, 1024)
    odd = [(name, [5003 if side == 128256 else side for side in shape], dim, count, dtype) for name, shape, dim, count, dtype in llama(4096, 14336, 32, 128256, 1024)]
    yield "70B  fsdp 64 x tp 8 -> dp 8 x tp 8", fsdp_tp(l70, (64, 8), (8, 8), 512)
    yield "70B  fsdp 8 x tp 8 -> dp 64 x tp 8", fsdp_tp(l70, (8, 8), (64, 8), 64)
    yield "70B  fsdp 32 x tp 8 -> dp 32 x tp 8", fsdp_tp(l70, (32, 8), (32, 8), 256)
    yield "70B  fsdp 128 x tp 8 -> dp 48 x tp 8", fsdp_tp(l70, (128, 8), (48, 8), 1024)
    yield "70B  fsdp 8 x tp 8 -> dp 16 x tp 4, same ranks", same_ranks(l70, 8, 8, 4)
    yield "70B  4 stages of fsdp 16 x tp 8 -> dp 8 x tp 8", pipeline_stages(l70, 4, 16, 8, (8, 8))
    yield "405B fsdp 64 x tp 8 -> dp 16 x tp 16", fsdp_tp(l405, (64, 8), (16, 16), 512)
    yield "405B fsdp 300 x tp 8 -> dp 100 x tp 6", fsdp_tp(l405, (300, 8), (100, 6), 2400)
    yield "405B fsdp 1024 x tp 8 -> dp 128 x tp 8", fsdp_tp(l405, (1024, 8), (128, 8), 8192)
    yield "405B fsdp 2048 x tp 8 -> dp 512 x tp 8", fsdp_tp(l405, (2048, 8), (512, 8), 16384)
    yield "405B 2 stages of fsdp 32 x tp 8 -> dp 16 x tp 16", pipeline_stages(l405, 2, 32, 8, (16, 16))
    yield "8B   fsdp 8 x tp 8 -> dp 6 x tp 8, vocabulary 5,003", fsdp_tp(odd, (8, 8), (6, 8), 64)
    yield "8B   fsdp 12 x tp 4 -> dp 3 x tp 12", fsdp_tp(llama(4096, 14336, 32, 128256, 1024), (12, 4), (3, 12), 48)
    yield "DeepSeek-V3 dp 1 x ep 64 -> dp 1 x ep 32", experts(1, 64, 1, 32)
    yield "DeepSeek-V3 dp 8 x ep 64 -> dp 8 x ep 32", experts(8, 64, 8, 32)


def print_pairs(args):
    print(f"\nPairs of meshes on {args.topology}, disjoint unless it says so: ratios to the lower bound")
    print(f"{'':54}{'tensors':>8}{'rounds':>7}{'bound ms':>10}{'bundle':>8}{'alone':>8}{'processor':>11}{'memory':>8}{'plan file':>10}", flush=True)
    for name, spec in pairs():
        if args.only not in name:
            continue
        spec["topology"] = args.topology
        try:
            bundle, seconds, size, megabytes = planned(args.meshplan, spec, args.seconds)
        except TooLong:
            print(f"{name:54}  not planned in {args.seconds} s of processor", flush=True)
            continue
        bound = bundle["totals"]["lower_bound_ns"]
        ratio = bundle["totals"]["predicted_ns"] / bound
        keep(args.above, "".join(letter if letter.isalnum() else "-" for letter in name), ratio, spec)
        print(f"{name:54}{bundle['tensors']:8d}{bundle['totals']['rounds']:7d}{bound / 1e6:10.2f}{ratio:8.3f}{bundle['alone_ns'] / bound:8.3f}"
              f"{seconds:9.2f} s{megabytes:5.0f} MB{size / 1e3:7.0f} kB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshplan")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--above", default="")
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--topology", default="h100")
    args = parser.parse_args()
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        print_layouts(args, pool)
    print_even_split()
    print_pairs(args)
    print(f"\n{time.monotonic() - started:.0f} s in all, planners {resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s of processor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
