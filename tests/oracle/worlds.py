#!/usr/bin/env python3
"""Random worlds: plans of random specs, checked by a program that knows only what placements mean.

usage: worlds.py --meshplan BIN [--seeds FIRST:END,...] [--jobs N] [--timed] [--spec FILE]

Every seed is a spec (random_worlds.py); its plan is replayed on data and its figures are recounted
(oracle.py). A finding is printed when it is met, and at the end reduced to a small spec; exit 1.
"""
import argparse
import collections
import json
import multiprocessing
import os
import sys
import time

import ask
import random_worlds
from reduce import reduced
from seeds import seeds_of


def asked(meshplan, spec):
    """The findings of one spec; a spec that cannot be read here has none of this kind."""
    try:
        return ask.findings_of(meshplan, spec)
    except (KeyError, IndexError, ValueError) as error:
        return [("oracle", "", f"the oracle cannot follow: {type(error).__name__} {error}")]


def seed_findings(task):
    meshplan, seed = task
    return seed, asked(meshplan, random_worlds.spec_of(seed))


def report(task):
    """What is printed of one finding: itself, and a smaller spec that has one of its kind."""
    meshplan, seed, finding = task
    kind = finding[0]
    small = reduced(random_worlds.spec_of(seed),
                    lambda other: any(f[0] == kind for f in asked(meshplan, other)))
    left = [f for f in asked(meshplan, small) if f[0] == kind] or [finding]
    return f"seed {seed}: {kind}: reduced: {left[0][2]}\n  {json.dumps(small)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--meshplan", required=True)
    parser.add_argument("--seeds", type=seeds_of, default="0:1000", help="FIRST:END, several with commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=5, help="findings to reduce of each kind")
    parser.add_argument("--timed", action="store_true", help="also hold planning to its time")
    parser.add_argument("--spec", help="a spec file instead of seeds")
    options = parser.parse_args()
    meshplan = os.path.abspath(options.meshplan)
    ask.timed = options.timed  # before the workers start: they inherit it
    if options.spec:
        with open(options.spec, encoding="utf-8") as file:
            found = asked(meshplan, json.load(file))
        print("\n".join(f"{kind} {name}: {text}" for kind, name, text in found) or "no finding")
        return 1 if found else 0
    started, kinds, bad = time.time(), collections.Counter(), 0
    kept = []
    with multiprocessing.Pool(options.jobs) as pool:
        tasks = ((meshplan, seed) for seed in options.seeds)
        for seed, found in pool.imap_unordered(seed_findings, tasks, chunksize=4):
            bad += bool(found)
            for finding in found:
                print(f"seed {seed}: {': '.join(finding)}", flush=True)
                kinds[finding[0]] += 1
                if kinds[finding[0]] <= options.most:
                    kept.append((meshplan, seed, finding))
        for text in pool.imap_unordered(report, kept):
            print(text, flush=True)
    print(f"{len(options.seeds)} worlds, {bad} with findings {dict(kinds)}, {time.time() - started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
