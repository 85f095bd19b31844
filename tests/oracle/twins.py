#!/usr/bin/env python3
"""Equal questions have equal prices, and freer ones none higher: each asked in several forms.

    tests/oracle/twins.py --meshplan build/meshplan --seeds 0:40 [--jobs 2] [--only FORM]

A plan says by its gap how far it may be from the best, so the law is: no plan less its gap takes
longer than what another form of its question takes.
"""

import argparse
import concurrent.futures
import copy
import json
import math
import random
import subprocess
import sys

from seeds import seeds_of

SIZES = [1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 10, 12, 16, 96]
EXTENTS = [0, 1, 2, 3, 5, 7, 8, 10, 12, 16, 24, 60, 64, 96, 100, 128, 700, 1000, 4096, 5003, 8192, 12288, 50257, 128256]
DTYPES = ["float32", "bfloat16", "float64", "float8_e4m3"]
TWIN_DTYPES = {"float32": "int32", "bfloat16": "int16", "float64": "int64", "float8_e4m3": "int8"}
PRESETS = ["h100", "h100", "uniform", "gb200-nvl72", "mi300x", "a100", "tpu-v5p", "b200"]
MOST_RANKS = 1024
MOST_BYTES = 1 << 42


def topology_of(rng):
    """(topology, ranks of its units inside the outermost level)."""
    if rng.random() < 0.5:
        name = rng.choice(PRESETS)
        return name, None
    levels, ranks, speed = [], 1, rng.choice([900, 370, 100, 20])
    for number in range(rng.choice([1, 2, 2, 3])):
        ranks *= rng.choice([2, 3, 4, 6, 8, 8, 9, 12])
        level = {"ranks": ranks, "gb_per_s": speed, "latency_ns": rng.choice([0, 1000, 3000, 10000, 25000])}
        if rng.random() < 0.5:
            level["per_peer_ns"] = rng.choice([1, 50, 500, 3000])
        if rng.random() < 0.3:
            level["exchange_percent"] = rng.choice([33, 50, 80, 99])
        if rng.random() < 0.2:
            level["peer_gb_per_s"] = rng.choice([24, 5, 50])
        levels.append(level)
        speed = round(max(0.1, speed / rng.choice([1, 2, 8, 20])), 1)
    found = {"levels": levels}
    if rng.random() < 0.25:
        found["model"] = "protocols"
        found["protocols"] = [{"name": f"p{n}", "base_ns": rng.choice([0, 6600, 14000]), "hop_ns": [rng.choice([100, 1000, 3400, 14000]) for _ in levels],
                               "share": [rng.choice([500, 7600, 10000]) for _ in levels]} for n in range(rng.choice([1, 2]))]
    return found, [level["ranks"] for level in levels[:-1]]


def state_of(rng, names, rank, ops):
    """(placements by mesh dim, shard order by tensor dim)."""
    placements = {}
    for name in names:
        roll = rng.random()
        if ops and roll < 0.3:
            placements[name] = f"P({rng.choice(ops)})"
        elif rank and roll < 0.75:
            placements[name] = f"S({rng.randrange(rank)})"
        else:
            placements[name] = "R"
    order = {}
    for dim in range(rank):
        sharding = [name for name in names if placements[name] == f"S({dim})"]
        if len(sharding) > 1:
            if rng.random() < 0.3:
                rng.shuffle(sharding)
            order[dim] = sharding
    return placements, order


def question_of(rng):
    while True:
        sizes = [rng.choice(SIZES) for _ in range(rng.choice([1, 2, 2, 3, 3, 4]))]
        if math.prod(sizes) <= rng.choice([16, 64, 128, MOST_RANKS]):
            break
    dims = [("abcd"[i], size) for i, size in enumerate(sizes)]
    names = [name for name, _ in dims]
    flats = [names[i:j] for i in range(len(names)) for j in range(i + 2, len(names) + 1) if rng.random() < 0.3]
    topology, units = topology_of(rng)
    reds = []
    for number in range(4):
        while True:
            shape = [rng.choice(EXTENTS) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 5]))]
            if len(shape) == 5:
                shape = [min(n, 64) for n in shape]
            dtype = rng.choice(DTYPES)
            if math.prod(max(1, n) for n in shape) * 8 <= MOST_BYTES:
                break
        op = rng.choice(["sum", "sum", "sum", "avg", "max", "min", "product"])
        ops = rng.choice([[], [], [op], ["sum", "avg"] if op in ("sum", "avg") else [op]])
        src = state_of(rng, names, len(shape), ops)
        dst = state_of(rng, names, len(shape), [op] if ops == [op] and rng.random() < 0.15 else [])
        reds.append({"id": f"r{number}", "shape": shape, "dtype": dtype, "src": src, "dst": dst, "any": rng.random() < 0.15})
    options = {"groups": rng.choice(["any", "declared"]), "max_memory_bytes": rng.choice([0, 0, -1])}
    if rng.random() < 0.1:
        options["one_reduction"] = True
    return {"dims": dims, "ranks": None, "flats": flats, "topology": topology, "units": units, "reds": reds, "options": options}


def order_list(order):
    return [{"tensor_dim": dim, "mesh_dims": names} for dim, names in sorted(order.items())]


def spec_of(q):
    mesh = {"dims": [{"name": name, "size": size} for name, size in q["dims"]]}
    if q["flats"]:
        # A spec lists the dims of a flatten in the mesh's order.
        names = [name for name, _ in q["dims"]]
        mesh["flattened"] = [{"dims": sorted(flat, key=names.index)} for flat in q["flats"]]
    if q["ranks"]:
        mesh["ranks"] = q["ranks"]
    part = {"mesh": mesh}
    if "meshes" in q:
        part = {"meshes": q["meshes"]}
    reds = []
    for red in q["reds"]:
        made = {"id": red["id"], "tensor": {"shape": red["shape"], "dtype": red["dtype"]}, "src": red["src"][0], "dst": red["dst"][0]}
        if red["src"][1]:
            made["src_order"] = order_list(red["src"][1])
        if red["any"]:
            made["dst_order"] = "any"
        elif red["dst"][1]:
            made["dst_order"] = order_list(red["dst"][1])
        if "mesh" in q:
            made["mesh"] = q["mesh"]
        reds.append(made)
    return {"schema": "meshplan/spec/1", **part, "topology": q["topology"], "options": q["options"], "redistributions": reds}


def ranks_row_major(q):
    return q["ranks"] or list(range(math.prod(size for _, size in q["dims"])))


def dims_turned(rng, q):
    """Mesh dims listed in another order, of the same ranks."""
    order = list(range(len(q["dims"])))
    rng.shuffle(order)
    sizes = [size for _, size in q["dims"]]
    old = ranks_row_major(q)
    strides = [math.prod(sizes[i + 1:]) for i in range(len(sizes))]
    ranks = [0]
    for i in order:
        ranks = [at + j * strides[i] for at in ranks for j in range(sizes[i])]
    q["dims"] = [q["dims"][i] for i in order]
    q["ranks"] = [old[at] for at in ranks]


def dim_of_one(rng, q):
    at = rng.randrange(len(q["dims"]) + 1)
    q["dims"].insert(at, ("one", 1))
    for red in q["reds"]:
        for end in ("src", "dst"):
            choices = ["R"] + [f"S({d})" for d in range(len(red["shape"]))]
            put = rng.choice(choices)
            red[end][0]["one"] = put
            if put != "R":
                dim = int(put[2:-1])
                sharding = red[end][1].get(dim) or [n for n, p in red[end][0].items() if p == put and n != "one"]
                sharding = list(sharding)
                sharding.insert(rng.randrange(len(sharding) + 1), "one")
                if len(sharding) > 1:
                    red[end][1][dim] = sharding


def moved_dims(red, to):
    """Tensor dim i becomes to[i]."""
    for end in ("src", "dst"):
        placements, order = red[end]
        red[end] = ({n: f"S({to[int(p[2:-1])]})" if p[0] == "S" else p for n, p in placements.items()}, {to[d]: names for d, names in order.items()})


def tensor_turned(rng, q):
    for red in q["reds"]:
        to = list(range(len(red["shape"])))
        rng.shuffle(to)
        moved_dims(red, to)
        shape = list(red["shape"])
        for i, j in enumerate(to):
            shape[j] = red["shape"][i]
        red["shape"] = shape


def extent_of_one(rng, q):
    """A scalar stays one: it may be cut at no dim. Freer: shards may rest on the dim, all of them on one rank."""
    for red in q["reds"]:
        if not red["shape"]:
            continue
        at = rng.randrange(len(red["shape"]) + 1)
        red["shape"] = red["shape"][:at] + [1] + red["shape"][at:]
        moved_dims(red, [i + (i >= at) for i in range(len(red["shape"]))])


def other_dtype(rng, q):
    for red in q["reds"]:
        if "P(avg)" not in [*red["src"][0].values(), *red["dst"][0].values()]:
            red["dtype"] = TWIN_DTYPES[red["dtype"]]


def other_op(rng, q):
    for red in q["reds"]:
        placements = red["src"][0]
        if any(p[0] == "P" for p in red["dst"][0].values()):
            continue
        # A shard may become a pending sum, of no other op.
        sums = any(p in ("P(sum)", "P(avg)") for p in placements.values())
        op = rng.choice(["sum", "avg"] if sums else ["max", "min", "product"])
        red["src"] = ({n: f"P({op})" if p[0] == "P" else p for n, p in placements.items()}, red["src"][1])


def ranks_moved(rng, q):
    if q["units"] is None:
        return False
    by = math.lcm(*q["units"], 1) * rng.choice([1, 3, 7])
    q["ranks"] = [rank + by for rank in ranks_row_major(q)]


def file_turned(rng, q):
    q["reds"].reverse()
    q["reds"].append(dict(copy.deepcopy(q["reds"][0]), id="more"))


def by_itself(rng, q):
    q["reds"] = [rng.choice(q["reds"])]


def slice_of_copies(rng, q):
    """On a slice of a world of two copies, each on units of its own."""
    world = math.prod(size for _, size in q["dims"])
    if q["units"] is None or world % math.lcm(*q["units"], 1):
        return False
    q["meshes"] = [{"name": "w", "world": 2 * world, "dims": [{"name": "copies", "size": 2}] + [{"name": n, "size": s} for n, s in q["dims"]]},
                   {"name": "m", "of": "w", "slice": [n for n, _ in q["dims"]]}]
    for number, flat in enumerate(q["flats"]):
        q["meshes"].append({"name": f"f{number}", "of": "m", "flatten": flat})
    q["mesh"] = "m"


# Freer or easier questions: none takes longer.
def any_group(rng, q):
    q["options"]["groups"] = "any"


def no_limit(rng, q):
    q["options"]["max_memory_bytes"] = -1


def many_reductions(rng, q):
    q["options"].pop("one_reduction", None)


def any_order(rng, q):
    for red in q["reds"]:
        red["any"] = True


def more_flattens(rng, q):
    names = [name for name, _ in q["dims"]]
    for i in range(len(names)):
        for j in range(i + 2, len(names) + 1):
            if names[i:j] not in q["flats"] and rng.random() < 0.5:
                q["flats"].append(names[i:j])


def fewer_bytes(rng, q):
    for red in q["reds"]:
        smaller = {"float64": "float32", "float32": "bfloat16", "bfloat16": "float8_e4m3"}
        red["dtype"] = smaller.get(red["dtype"], red["dtype"])


def faster(rng, q):
    if isinstance(q["topology"], str):
        return False
    q["topology"] = copy.deepcopy(q["topology"])
    level = rng.choice(q["topology"]["levels"])
    if rng.random() < 0.5:
        level["latency_ns"] //= 2
    else:
        level["gb_per_s"] = 2 * level["gb_per_s"]


EQUAL = [dims_turned, dim_of_one, tensor_turned, other_dtype, other_op, ranks_moved, file_turned, by_itself, slice_of_copies]
FREER = [extent_of_one, any_group, no_limit, many_reductions, any_order, more_flattens, fewer_bytes, faster]


def plans_of(meshplan, spec):
    done = subprocess.run([meshplan, "plan", "-", "-q"], input=json.dumps(spec), capture_output=True, text=True)
    if done.returncode != 0:
        return done.returncode, done.stderr.strip()
    known = {}
    for red in json.loads(done.stdout)["redistributions"]:
        known[red["id"]] = known[red["same_as"]] if "same_as" in red else red
    return 0, known


def time_of(plan):
    return plan["totals"]["predicted_ns"]


def least_of(plan):
    return time_of(plan) - plan["proven_gap_ns"]


def joining_ns(plan):
    """Sums that join others are counted at 1 ns a part of a mesh dim, of which there are four at most: what saves less is no plan
    (search/joining_sums.h)."""
    return sum(4 * len(step["mesh_dims"]) for step in plan["steps"] if step["op"] == "to_partial")


def findings_of(meshplan, seed, only):
    rng = random.Random(seed)
    q = question_of(rng)
    spec = spec_of(q)
    code, plans = plans_of(meshplan, spec)
    if code != 0:
        return 0, [f"seed {seed}: exit {code}: {plans[:300]}: {json.dumps(spec)}"]
    asked, found = 0, []
    for form in EQUAL + FREER:
        rng_form = random.Random(f"{seed} {form.__name__}")
        if only and form.__name__ not in only:
            continue
        twin = copy.deepcopy(q)
        if form(rng_form, twin) is False:
            continue
        other_spec = spec_of(twin)
        code, others = plans_of(meshplan, other_spec)
        if code != 0:
            found.append(f"seed {seed}: {form.__name__}: exit {code}: {others[:300]}: {json.dumps(other_spec)}")
            continue
        for red in q["reds"]:
            if red["id"] not in others:
                continue
            asked += 1
            plan, other = plans[red["id"]], others[red["id"]]
            beaten = least_of(other) > time_of(plan) + joining_ns(plan) or (form in EQUAL and least_of(plan) > time_of(other) + joining_ns(other))
            if beaten:
                found.append(f"seed {seed} {red['id']}: {form.__name__}: {time_of(plan)} ns (gap {plan['proven_gap_ns']}) {plan['trace']}"
                             f" [{' '.join(s['op'] for s in plan['steps'])}], as {time_of(other)} ns (gap {other['proven_gap_ns']}) {other['trace']}"
                             f" [{' '.join(s['op'] for s in other['steps'])}]")
    return asked, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshplan", required=True)
    parser.add_argument("--seeds", type=seeds_of, default="0:40", help="FIRST:END, several with commas")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="print the specs of one seed")
    args = parser.parse_args()
    only = [name for name in args.only.split(",") if name]
    if args.show:
        for seed in args.seeds:
            q = question_of(random.Random(seed))
            print(json.dumps(spec_of(q)))
            for name in only:
                twin = copy.deepcopy(q)
                globals()[name](random.Random(f"{seed} {name}"), twin)
                print(json.dumps(spec_of(twin)))
        return 0
    asked, bad = 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for count, found in pool.map(lambda seed: findings_of(args.meshplan, seed, only), args.seeds):
            asked += count
            bad += len(found)
            for text in found:
                print(text, flush=True)
    print(f"{asked} twins: {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
