#!/usr/bin/env python3
"""How many prices a second: distinct questions, planned and verified, and questions that were asked before. CPU time, on one core. Needs
PYTHONPATH and MESHPLAN_LIBRARY in the environment.

usage: prices_speed.py [COUNT]     COUNT distinct questions of each kind (2000)
"""
import random
import sys
import time

import meshplan

MESH = {"dp": 2, "cp": 4, "tp": 8}
SIZES = {"even sizes": [1024, 2048, 4096, 8192, 14336, 128256], "batches of 16": [16, 4096, 8192, 14336, 32768],
         "odd sizes": [96, 1000, 5003, 50257]}


def questions(count, sizes, seed=1):
    rng, found = random.Random(seed), set()
    while len(found) < count:
        shape = tuple(rng.choice(sizes) for _ in range(rng.choice((2, 2, 3))))
        kinds = ["R"] + [f"S({d})" for d in range(len(shape))]
        src, dst = tuple(rng.choice(kinds + ["P(sum)"]) for _ in MESH), tuple(rng.choice(kinds) for _ in MESH)
        if src != dst:
            found.add((src, dst, shape, rng.choice(["bfloat16", "float32"])))
    return sorted(found)


def per_second(count, run):
    begin = time.process_time()
    run()
    return round(count / (time.process_time() - begin))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for kind, sizes in SIZES.items():
        asked = questions(count, sizes)
        for topology in ("uniform", "h100"):
            pricer = meshplan.Pricer(MESH, topology)
            distinct = per_second(count, lambda: pricer.costs(asked))
            again = per_second(count, lambda: pricer.costs(asked))
            meshplan.costs(MESH, asked, topology)
            alone = per_second(count, lambda: [meshplan.cost(MESH, *q, topology=topology) for q in asked])
            print(f"{kind:14} {topology:8} distinct {distinct:>9,}   again, in a batch {again:>12,}   again, one by one {alone:>9,}   a second", flush=True)


if __name__ == "__main__":
    main()
