"""A random spec with bundles in wider worlds: views of meshes, further universes on some of the same
ranks, sums that stay pending, strided and free orders, any topology of random_worlds.py, presets in
units of another size, options, several bundles with members of many kinds, repeats of questions in and
outside of bundles.

What comes out is always a right spec, as that of random_bundles.py is.
"""
import math
import random

import random_bundles
import random_worlds

DTYPES = random_worlds.DTYPES + ["float8_e5m2", "int8"]
MOST_RANKS = 40
PRESETS = [name for name in random_worlds.PRESETS if name != "uniform"]


def universe_of(rng):
    while True:
        part, universe = random_worlds.universe_of(rng, False, rng.random() < 0.1)
        if universe.world <= MOST_RANKS:
            return part, universe


def universes_of(rng):
    """(the mesh part of a spec, universes): one to three, often on ranks of the first."""
    part, first = universe_of(rng)
    universes = [first]
    if "meshes" not in part:
        return part, universes
    for name, letters in (("t", "klmno"), ("u", "pqrst"))[:rng.choice([0, 1, 1, 2])]:
        sizes = random_worlds.sizes_of(rng, False)
        while math.prod(sizes) > MOST_RANKS // 2:
            sizes = random_worlds.sizes_of(rng, False)
        universe = random_worlds.Universe(rng, name, letters, sizes, random_worlds.ranks_beside(rng, first.ranks, math.prod(sizes)))
        for number in range(rng.choice([0, 0, 1, 2])):
            universe.add_view(f"{name}{number}")
        universes.append(universe)
    return {"meshes": [op for universe in universes for op in universe.operations]}, universes


def pair_of(rng, universes):
    """Two universes and a view of each."""
    source_of, target_of = rng.choice(universes), rng.choice(universes)
    source = rng.choice(list(source_of.views))
    target = source if source_of is target_of and rng.random() < 0.75 else rng.choice(list(target_of.views))
    return source_of, target_of, source, target


def member_of(rng, name, pair):
    source_of, target_of, source, target = pair
    red = {"id": name, "tensor": {"shape": random_bundles.shape_of(rng), "dtype": rng.choice(DTYPES)}}
    if source != target:
        red["src_mesh"], red["dst_mesh"] = source, target
    elif source != "mesh":
        red["mesh"] = source
    random_worlds.asked_of(rng, red, source_of.views[source], target_of.views[target], source == target)
    if rng.random() < 0.15:
        red["src"] = ["R"] * len(source_of.views[source])  # many have it
        red.pop("src_order", None)
    if rng.random() < 0.25:
        red["dst"] = ["R"] * len(target_of.views[target])  # many want it
        red.pop("dst_order", None)
    if "P(" not in str(red) and "reduce_dtype" not in red and rng.random() < 0.1:
        red["tensor"]["dtype"] = "bool"
    red["count"] = rng.choice([1, 1, 1, 2, 3, 4, 7, 12])
    return red


def topology_of(rng, preset):
    """Like random_worlds.py's, most often of levels; or a preset in units so small that several take
    part."""
    if rng.random() < 0.2:
        found, ranks = preset(rng.choice(PRESETS)), 1
        for level in found["levels"][:-1]:
            ranks *= rng.choice([2, 3, 4, 4, 5, 6])
            level["ranks"] = ranks
        return found
    found = random_worlds.topology_of(rng)
    while isinstance(found, str) and rng.random() < 0.8:
        found = random_worlds.topology_of(rng)
    return found


def bundles_of(rng, reds):
    """One to three; some redistributions may be in none."""
    if rng.random() < 0.5:
        return [random_bundles.bundle_of(rng, "all", ["*"])]
    names = ["one", "two", "three"][:rng.choice([1, 2, 2, 3])]
    members = {names[0]: [reds[0]["id"]]}
    for red in reds[1:]:
        members.setdefault(rng.choice(names + ["none"]), []).append(red["id"])
    return [random_bundles.bundle_of(rng, name, members[name]) for name in names if name in members]


def options_of(rng):
    options = {}
    if rng.random() < 0.6:
        options["groups"] = rng.choice(["declared", "any", "any"])
    roll = rng.random()
    if roll < 0.25:
        options["max_memory_bytes"] = -1
    elif roll < 0.35:
        options["max_memory_bytes"] = rng.choice([500, 4000, 40000])
    if rng.random() < 0.2:
        options["one_reduction"] = True
    return options


def spec_of(seed, preset):
    """`preset`: name -> its topology as a spec may have it."""
    rng = random.Random(f"wider bundles {seed}")
    part, universes = universes_of(rng)
    most = pair_of(rng, universes)
    while len(universes) > 1 and most[0] is most[1]:
        most = pair_of(rng, universes)
    apart = rng.choice([0, 0, 0.2, 1])  # members that are not of the pair of most
    reds = [member_of(rng, f"r{number}", pair_of(rng, universes) if rng.random() < apart else most)
            for number in range(rng.choice([1, 1, 2, 3, 4, 6, 9]))]
    for _ in range(rng.choice([0, 0, 1, 3])):
        reds.append(dict(rng.choice(reds), id=f"r{len(reds)}", count=rng.randrange(1, 5)))
    spec = {"schema": "meshplan/spec/1", **part, "redistributions": reds, "bundles": bundles_of(rng, reds)}
    if rng.random() < 0.95:
        spec["topology"] = topology_of(rng, preset)
    if options := options_of(rng):
        spec["options"] = options
    return spec
