#!/usr/bin/env python3
"""Specs of what people ask between two meshes apart, a spec a line: a trainer's 4 to 128 ranks to a server's 1 to 24, large weights, every
pair of a few states.

    tests/bench/common_pairs.py | build/tests/bench/bench_plan_specs --all -
    ... --topology gb200-nvl72       default h100
"""

import argparse
import json

PAIRS = [(8, 8), (8, 4), (4, 8), (8, 1), (8, 2), (16, 8), (8, 16), (16, 16), (32, 8), (64, 8), (12, 4), (24, 8), (96, 8), (64, 16), (128, 8),
         (6, 2), (8, 12), (24, 24), (40, 8), (8, 24)]
SHAPES = [[128256, 8192], [65536, 28672]]
SOURCES = {1: [["S(0)"]], 2: [["S(0)", "S(0)"], ["S(0)", "S(1)"], ["R", "S(0)"], ["S(0)", "R"]]}
TARGETS = {1: [["R"], ["S(0)"], ["S(1)"]], 2: [["R", "S(0)"], ["R", "S(1)"], ["R", "R"], ["S(0)", "S(1)"]]}


def meshes_of(ranks):
    """One dim, and two with an inner one of 2 or 4."""
    return [[ranks]] + [[ranks // inner, inner] for inner in (2, 4) if ranks % inner == 0 and ranks > inner]


def dims(names, sizes):
    return [{"name": name, "size": size} for name, size in zip(names, sizes)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="h100")
    args = parser.parse_args()
    for source, target in PAIRS:
        first = -(-source // 8) * 8  # the server's hosts begin behind the trainer's
        for src in meshes_of(source):
            for dst in meshes_of(target):
                print(json.dumps({"schema": "meshplan/spec/1", "topology": args.topology, "meshes": [
                    {"name": "train", "world": source, "dims": dims("ab", src)},
                    {"name": "serve", "world": target, "ranks": list(range(first, first + target)), "dims": dims("xy", dst)}],
                    "redistributions": [
                        {"id": f"{source}>{target} {shape[0]} {''.join(before)} to {''.join(after)}", "src_mesh": "train", "dst_mesh": "serve",
                         "tensor": {"shape": shape, "dtype": "bfloat16"}, "src": before, "dst": after}
                        for shape in SHAPES for before in SOURCES[len(src)] for after in TARGETS[len(dst)]]}))


if __name__ == "__main__":
    main()
