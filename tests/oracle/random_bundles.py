"""A random spec with bundles for every seed: meshes, members with counts, limits, topologies.

What comes out is always a right spec: `plan` must answer it with 0, or with 3 where a limit is too
tight for any schedule.
"""
import math
import random

import random_worlds

DTYPES = ["float32", "bfloat16", "bfloat16", "float8_e4m3", "float64", "int16", "uint8"]
MOST_ELEMENTS = 700


def dims_of(rng, names, most):
    while True:
        sizes = [rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12]) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        if math.prod(sizes) <= most:
            return [{"name": name, "size": size} for name, size in zip(names, sizes)]


def shape_of(rng):
    while True:
        shape = [rng.choice([1, 2, 3, 5, 7, 8, 12, 13, 16, 24, 37, 50, 64, 100, 0]) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3]))]
        if math.prod(shape) <= MOST_ELEMENTS:
            return shape


def meshes_of(rng):
    """(the mesh part of a spec, mesh name -> its dims as (name, size), whether meshes may cross)."""
    if rng.random() < 0.3:
        dims = dims_of(rng, "abc", 24)
        part = {"mesh": {"dims": dims}}
        ranks = random_worlds.global_ranks(rng, math.prod(d["size"] for d in dims))
        if ranks is not None:
            part["mesh"]["ranks"] = ranks
        return part, {"mesh": [(d["name"], d["size"]) for d in dims]}
    train, serve = dims_of(rng, "abc", 16), dims_of(rng, "xyz", 12)
    worlds = [math.prod(d["size"] for d in dims) for dims in (train, serve)]
    kind, first = rng.randrange(4), list(range(worlds[0]))
    if kind == 0:
        second = list(range(worlds[0], sum(worlds)))  # behind it
    elif kind == 1:
        second = list(range(worlds[1]))  # on the same ranks, as far as they go
    elif kind == 2:
        second = rng.sample(range(sum(worlds) + 3), worlds[1])
    else:
        start = rng.randrange(worlds[0] + 4)
        second = list(range(start, start + worlds[1]))
    if rng.random() < 0.2:
        rng.shuffle(first)
    operations = [{"name": "train", "world": worlds[0], "ranks": first, "dims": train},
                  {"name": "serve", "world": worlds[1], "ranks": second, "dims": serve}]
    views = {op["name"]: [(d["name"], d["size"]) for d in op["dims"]] for op in operations}
    if len(train) > 1 and rng.random() < 0.35:  # a stage: its first copy has tensors of its own
        kept = [d["name"] for d in train][rng.choice([0, 1]):][:rng.choice([1, 2])]
        operations.insert(1, {"name": "stage", "of": "train", "slice": kept})
        views["stage"] = [(d["name"], d["size"]) for d in train if d["name"] in kept]
    return {"meshes": operations}, views


def placements_of(rng, dims, rank, pending, replicated):
    roll = rng.random()
    if roll < replicated:
        return ["R" for _ in dims]
    return random_worlds.placements_of(rng, dims, rank, pending)


def member_of(rng, name, views):
    red = {"id": name, "tensor": {"shape": shape_of(rng), "dtype": rng.choice(DTYPES)}}
    rank, floating = len(red["tensor"]["shape"]), "float" in red["tensor"]["dtype"]
    if "mesh" in views:
        source = target = "mesh"
    elif rng.random() < 0.8:
        source, target = rng.choice([v for v in views if v != "serve"]), "serve"
        if rng.random() < 0.1:
            source, target = target, source
        red["src_mesh"], red["dst_mesh"] = source, target
    else:
        source = target = rng.choice(list(views))
        red["mesh"] = source
    pending = []
    if rng.random() < 0.2:
        pending = [rng.choice(["sum", "sum", "max", "avg" if floating else "min"])]
    red["src"] = placements_of(rng, views[source], rank, pending, 0.1)
    red["dst"] = placements_of(rng, views[target], rank, [], 0.3)
    if rng.random() < 0.2:
        order = random_worlds.order_of(rng, red["src"], views[source])
        if order:
            red["src_order"] = order
    if pending and floating and rng.random() < 0.3:
        red["reduce_dtype"] = rng.choice(["float64", "float32"])
    if rng.random() < 0.6:
        red["count"] = rng.randrange(1, 7)
    return red


def level_of(rng, ranks, speed, latency):
    level = {"ranks": ranks, "gb_per_s": speed, "latency_ns": rng.choice([0, 100, 2000, 25000]) if latency else 0}
    if rng.random() < 0.3:
        level["per_peer_ns"] = rng.choice([1, 50, 500])
    if rng.random() < 0.2:
        level["exchange_percent"] = rng.choice([33, 80])
    return level


def topology_of(rng):
    """One to three levels, half of them without latency; sometimes any topology there is."""
    if rng.random() < 0.15:
        return random_worlds.topology_of(rng)
    if rng.random() < 0.1:
        return "uniform"
    levels, ranks, speed, latency = [], 1, rng.choice([400, 50, 1]), rng.random() < 0.5
    for _ in range(rng.choice([1, 2, 2, 3])):
        ranks *= rng.choice([2, 3, 4, 4, 8])
        levels.append(level_of(rng, ranks, speed, latency))
        speed = round(speed / rng.choice([1, 2, 8, 30]), 3)
    found = {"levels": levels}
    if rng.random() < 0.2:
        found["copy_gb_per_s"] = rng.choice([0.1, 3, 1000])
    return found


def bundle_of(rng, name, members):
    bundle = {"id": name, "redistributions": members}
    roll = rng.random()
    if roll < 0.25:
        bundle["max_staging_bytes"] = 0
    elif roll < 0.65:
        bundle["max_staging_bytes"] = rng.choice([16, 64, 200, 500, 900, 2000, 5000])
    if rng.random() < 0.3:
        bundle["max_messages"] = rng.choice([1, 2, 3, 4, 6, 10, 16])
    if rng.random() < 0.2:
        bundle["count"] = rng.randrange(1, 9)
    return bundle


def racks_of(rng):
    """Copies for ranks that racks cut unevenly: what a rack needs is best fetched once, by all of its ranks."""
    train, serve = rng.choice([2, 3, 4, 6, 8]), rng.choice([(2, 2), (3, 2), (5, 1), (5, 2), (6, 2), (7, 1), (3, 4), (6, 3)])
    first, rack = train + rng.randrange(3), rng.choice([3, 4, 5, 6, 7, 9, 10])
    reds = [{"id": f"w.{i}", "src_mesh": "train", "dst_mesh": "serve", "src": [rng.choice(["S(0)", "S(0)", "S(1)"])],
             "dst": ["R", rng.choice(["R", "S(0)", "S(1)"])], "count": rng.randrange(1, 6),
             "tensor": {"shape": [rng.choice([7, 24, 50, 100]), rng.choice([5, 8, 13])], "dtype": rng.choice(DTYPES)}}
            for i in range(rng.choice([1, 2, 3, 4]))]
    bundle = {"id": "sync", "redistributions": ["*"]}
    if rng.random() < 0.5:
        bundle["max_staging_bytes"] = rng.choice([200, 900, 2000, 5000])
    latency = rng.choice([0, 0, 10])
    levels = [{"ranks": rack, "gb_per_s": 400, "latency_ns": latency}, {"ranks": 1 << 20, "gb_per_s": rng.choice([20, 5]), "latency_ns": latency}]
    return {"schema": "meshplan/spec/1", "topology": {"levels": levels}, "redistributions": reds, "bundles": [bundle],
            "meshes": [{"name": "train", "world": train, "dims": [{"name": "x", "size": train}]},
                       {"name": "serve", "world": serve[0] * serve[1], "ranks": [f"{first}-{first + serve[0] * serve[1] - 1}"],
                        "dims": [{"name": "dp", "size": serve[0]}, {"name": "tp", "size": serve[1]}]}]}


def spec_of(seed):
    rng = random.Random(f"bundles {seed}")
    if seed % 10 == 7:
        return racks_of(rng)
    part, views = meshes_of(rng)
    names = [f"w.{i}" for i in range(rng.choice([1, 2, 2, 3, 4, 6]))] + [f"g.{i}" for i in range(rng.choice([0, 0, 1, 2]))]
    reds = [member_of(rng, name, views) for name in names]
    if rng.random() < 0.3:  # the same question again, by another name
        reds.append(dict(rng.choice(reds), id="w.again", count=rng.randrange(1, 5)))
    if rng.random() < 0.75:
        bundles = [bundle_of(rng, "sync", ["*"] if rng.random() < 0.7 else [r["id"] for r in reds])]
    else:
        bundles = [bundle_of(rng, "weights", ["w.*"])]
        if any(r["id"][0] == "g" for r in reds) and rng.random() < 0.7:
            bundles.append(bundle_of(rng, "gradients", ["g.*"]))
    spec = {"schema": "meshplan/spec/1", **part, "redistributions": reds, "bundles": bundles}
    if rng.random() < 0.9:
        spec["topology"] = topology_of(rng)
    options = {}
    if rng.random() < 0.5:
        options["groups"] = rng.choice(["declared", "any"])
    if rng.random() < 0.1:
        options["max_memory_bytes"] = rng.choice([-1, 500, 4000])
    if options:
        spec["options"] = options
    return spec
