#!/usr/bin/env python3
"""Specs of redistributions between 60 pairs of meshes, a spec a line: 64 -> 32, 512 -> 64, 64 -> 512, 8 -> 64, 48 -> 32 and 96 -> 64
ranks, apart, one inside the other or overlapping, in order, reversed, shuffled or host by host, ten pairs of states each.

    tests/bench/across_meshes.py | build/tests/bench/bench_plan_specs --all -
    ... --topology levels       8 ranks a host, 370 and 45 GB/s, 10 and 25 us, 500 ns a peer (also a preset; default h100)
    ... --pending               the source's first mesh dim holds sums
    ... --rows 65536            of the tensor of 28,672 columns (default 8,192)
"""

import argparse
import json
import random

LEVELS = {"name": "two-levels", "levels": [
    {"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000, "per_peer_ns": 500},
    {"name": "ib", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000, "per_peer_ns": 500}]}
RANKS = [(64, 32), (512, 64), (64, 512), (8, 64), (48, 32), (96, 64)]
DIMS = {64: [[8, 8], [2, 4, 8], [16, 4]], 32: [[4, 8], [8, 4], [2, 2, 8]], 512: [[64, 8], [8, 8, 8]], 8: [[8], [2, 4]],
        48: [[6, 8], [12, 4]], 96: [[12, 8], [3, 4, 8]]}
PLACES = ["apart", "inside", "apart", "inside", "across"]
ORDERS = ["in order"] * 5 + ["reversed", "host by host", "shuffled", "in order", "host by host"]
ENDS = [("01", "R0"), ("00", "R0"), ("01", "RR"), ("00", "RR"), ("00", "10"), ("R0", "01"), ("R0", "R1"), ("0R", "R0"), ("00", "01"),
        ("R1", "0R")]


def ranks_of(count, order, first):
    ranks = list(range(first, first + count))
    if order == "reversed":
        ranks.reverse()
    elif order == "shuffled":
        random.Random(count).shuffle(ranks)
    elif order == "host by host":
        hosts = count // 8
        ranks = [first + 8 * (i % hosts) + i // hosts for i in range(count)]
    return ranks


def state(letters, dims, of_target):
    """The first letter on all mesh dims but the last; on a single one the last of a target, of a source what shards."""
    placements = [letter if letter == "R" else f"S({letter})" for letter in letters]
    if dims == 1:
        return [placements[1] if of_target or letters[0] == "R" else placements[0]]
    return [placements[0]] * (dims - 1) + [placements[1]]


def redistributions(src, dst, args):
    seen = set()
    for before, after in ENDS:
        from_state, to_state = state(before, len(src), False), state(after, len(dst), True)
        if args.pending:
            from_state[0] = "P(sum)"
        name = f"{''.join(from_state)} to {''.join(to_state)}"
        if name not in seen:
            yield {"id": name, "src_mesh": "train", "dst_mesh": "serve", "tensor": {"shape": [args.rows, 28672], "dtype": "bfloat16"},
                   "src": from_state, "dst": to_state}
        seen.add(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="h100")
    parser.add_argument("--pending", action="store_true")
    parser.add_argument("--rows", type=int, default=8192)
    args = parser.parse_args()
    for source, target in RANKS:
        for k in range(10):
            src = DIMS[source][k % len(DIMS[source])]
            dst = DIMS[target][k // 2 % len(DIMS[target])]
            place = PLACES[k % 5] if source != 8 or PLACES[k % 5] != "across" else "apart"
            first = {"apart": source, "inside": 0, "across": source // 16 * 8}[place]
            dims = [[{"name": names[i], "size": size} for i, size in enumerate(sizes)] for names, sizes in (("abc", src), ("xyz", dst))]
            print(json.dumps({"schema": "meshplan/spec/1", "topology": LEVELS if args.topology == "levels" else args.topology, "meshes": [
                {"name": "train", "world": source, "dims": dims[0]},
                {"name": "serve", "world": target, "dims": dims[1], "ranks": ranks_of(target, ORDERS[k], first)}],
                "redistributions": list(redistributions(src, dst, args))}))


if __name__ == "__main__":
    main()
