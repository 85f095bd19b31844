"""A random spec for every seed: meshes, views of them, placements, orders, topologies, options.

What comes out is always a right spec: `plan` must answer it with 0, or with 3 where no plan exists.
"""
import math
import random

OPS = ["sum", "avg", "min", "max", "product"]
DTYPES = ["float64", "float32", "bfloat16", "float16", "float8_e4m3", "int64", "int32", "int16", "uint8"]
PRESETS = ["a100", "b200", "b300", "gb200-nvl64", "gb200-nvl72", "gb300-nvl72", "h100", "h200", "mi300x", "mi355x", "tpu-v5p", "uniform"]
MOST_RANKS = 96
MOST_ELEMENTS = 1500
FIVE_DIMS_ONE_IN = 32  # seeds
OTHER_UNIVERSES_ONE_IN = 2  # of those where they are possible
TURNED_ONE_IN = 8  # seeds: dims flattened in an order that need not be the mesh's
MOST_RANKS_OF_FIVE = 32


def sizes_of(rng, five):
    """1 to 4 mesh dims of 1 to 8 ranks; few of them large, so that a seed takes milliseconds. Five
    small ones where asked."""
    while five:
        sizes = [rng.choice([1, 2, 2, 2, 3]) for _ in range(5)]
        if math.prod(sizes) <= MOST_RANKS_OF_FIVE:
            return sizes
    most = rng.choice([8, 16, 16, 24, 32, 48, MOST_RANKS])
    while True:
        sizes = [rng.choice([1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 8]) for _ in range(rng.choice([1, 2, 2, 3, 3, 4]))]
        if math.prod(sizes) <= most:
            return sizes


def global_ranks(rng, world):
    """None for 0 to world-1; else a permutation, an offset, gaps, whole blocks moved, or the columns
    of blocks one after another, as a transposed mesh lists them."""
    kind = rng.randrange(8)
    if kind < 5:
        return None
    if kind == 5:
        ranks = list(range(world))
        rng.shuffle(ranks)
        return ranks
    if kind == 6:
        return sorted(rng.sample(range(world + rng.randrange(1, 20)), world))
    block = rng.choice([b for b in range(1, world + 1) if world % b == 0])
    starts = list(range(0, world, block))
    if rng.random() < 0.5:
        return [start + i for i in range(block) for start in starts]
    rng.shuffle(starts)
    return [start + i for start in starts for i in range(block)]


class Universe:
    """A root mesh and views of it, in a spec's operations; `views`: of each its dims as (name, offsets
    in the rank map)."""

    def __init__(self, rng, name, letters, sizes, ranks):
        self.rng = rng
        self.world = math.prod(sizes)
        self.ranks = ranks or list(range(self.world))
        dims, root, stride = [{"name": letters[i], "size": n} for i, n in enumerate(sizes)], [], 1
        for dim in reversed(dims):
            root.insert(0, (dim["name"], [i * stride for i in range(dim["size"])]))
            stride *= dim["size"]
        self.views = {name: root}
        self.operations = [{"name": name, "world": self.world, "dims": dims}]
        if ranks is not None:
            self.operations[0]["ranks"] = ranks

    def add_view(self, name):
        rng = self.rng
        of = rng.choice(list(self.views))
        dims = self.views[of]
        kind = rng.choice(["slice", "flatten", "unflatten", "transpose", "concatenate"])
        if kind == "slice":
            kept = [d for d in dims if rng.random() < 0.6]
            if kept and descending(kept):
                self.made({"name": name, "of": of, "slice": [d[0] for d in kept]}, kept)
        elif kind == "transpose":
            order = list(dims)
            rng.shuffle(order)
            self.made({"name": name, "of": of, "transpose": [d[0] for d in order]}, order)
        elif kind == "flatten":
            kept = [d for d in dims if rng.random() < 0.7]
            if len(kept) > 1 and descending(kept):
                self.add_flatten(name, of, kept)
        elif kind == "unflatten":
            at = rng.randrange(len(dims))
            size = len(dims[at][1])
            factor = rng.choice([f for f in range(1, size + 1) if size % f == 0])
            inner = size // factor
            offsets = dims[at][1]
            halves = ([offsets[i * inner] for i in range(factor)], offsets[:inner])
            if [a + b for a in halves[0] for b in halves[1]] == offsets:
                names = (name + "o", name + "i")
                self.made({"name": name, "of": of, "unflatten": dims[at][0], "sizes": [factor, inner],
                           "dims": list(names)}, dims[:at] + list(zip(names, halves)) + dims[at + 1:])
        elif len(self.views) > 1:
            a, b = rng.sample(list(self.views), 2)
            both = self.views[a] + self.views[b]
            positions = {x for x in [0]}
            for _, offsets in both:
                positions = {p + o for p in positions for o in offsets}
            if (len({d[0] for d in both}) == len(both)
                    and len(positions) == math.prod(len(d[1]) for d in both) and max(positions) < self.world):
                self.made({"name": name, "concatenate": [a, b]}, both)

    def add_flatten(self, name, of, dims):
        offsets = [0]
        for d in dims:
            offsets = [a + b for a in offsets for b in d[1]]
        self.made({"name": name, "of": of, "flatten": [d[0] for d in dims], "dim": name + "f"},
                  [(name + "f", offsets)])

    def add_turned_flatten(self, name):
        """Of some dims of a view, in any order."""
        of = self.rng.choice([of for of, dims in self.views.items() if len(dims) > 1] or [None])
        if of is not None:
            kept = list(self.views[of])
            self.rng.shuffle(kept)
            self.add_flatten(name, of, kept[:self.rng.randrange(2, len(kept) + 1)])

    def made(self, operation, dims):
        self.operations.append(operation)
        self.views[operation["name"]] = dims


def in_simple_form(rng, universe):
    """The mesh part of a spec whose only mesh is the root, some of its dims flattened."""
    (root,) = universe.operations
    mesh = {key: root[key] for key in ("dims", "ranks") if key in root}
    flattened = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        names = [d["name"] for d in root["dims"] if rng.random() < 0.6]
        if len(names) > 1 and names not in [f["dims"] for f in flattened]:
            flattened.append({"dims": names})
    if flattened:
        mesh["flattened"] = flattened
    return {"mesh": mesh}


def universe_of(rng, five, turned):
    """(the mesh part of a spec, its universe)."""
    sizes = sizes_of(rng, five)
    ranks = global_ranks(rng, math.prod(sizes))
    if rng.random() < 0.45 and not turned:
        universe = Universe(rng, "mesh", "abcde", sizes, ranks)
        return in_simple_form(rng, universe), universe
    universe = Universe(rng, "w", "abcde", sizes, ranks)
    for number in range(rng.choice([0, 1, 2, 3, 4])):
        universe.add_view(f"v{number}")
    for number in range(rng.choice([1, 1, 2]) if turned else 0):
        universe.add_turned_flatten(f"flat{number}")
    return {"meshes": universe.operations}, universe


def ranks_beside(rng, first, world):
    """Global ranks of another universe: behind the first one's, among them, or here and there."""
    kind = rng.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        start = max(first) + 1 + rng.choice([0, 0, 1, 5])
    elif kind == 2:
        start = rng.randrange(max(first) + 1)
    elif kind == 3 and world <= len(first):
        return rng.sample(first, world)
    elif kind == 4 and world <= len(first):
        start = rng.randrange(len(first) - world + 1)
        return first[start:start + world]
    else:
        return rng.sample(range(max(first) + world + 1), world)
    ranks = list(range(start, start + world))
    if rng.random() < 0.3:
        rng.shuffle(ranks)
    return ranks


def descending(dims):
    """Whether the dims' strides descend, dims of size 1 apart."""
    strides = [d[1][1] - d[1][0] for d in dims if len(d[1]) > 1]
    return all(a > b for a, b in zip(strides, strides[1:]))


def shape_of(rng):
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3])
    while True:
        style = rng.randrange(4)
        if style == 0:
            shape = [rng.choice([4, 8, 12, 16, 24, 32]) for _ in range(rank)]
        elif style == 1:
            shape = [rng.randrange(0, 12) for _ in range(rank)]
        elif style == 2:
            shape = [rng.choice([1, 2, 3, 5, 7, 9, 10, 13, 17, 30]) for _ in range(rank)]
        else:
            shape = [rng.choice([1, 2, 64, 100, 128, 200]) for _ in range(rank)]
        if math.prod(shape) <= MOST_ELEMENTS:
            return shape


def placements_of(rng, dims, rank, pending):
    found = []
    for _ in dims:
        roll = rng.random()
        if pending and roll < 0.3:
            found.append(f"P({rng.choice(pending)})")
        elif rank and roll < 0.75:
            found.append(f"S({rng.randrange(rank)})")
        else:
            found.append("R")
    return found


def order_of(rng, placements, dims):
    """A random order for tensor dims that several mesh dims shard."""
    order = []
    for tensor_dim in sorted({p for p in placements if p[0] == "S"}):
        names = [d[0] for d, p in zip(dims, placements) if p == tensor_dim]
        if len(names) > 1:
            rng.shuffle(names)
            order.append({"tensor_dim": int(tensor_dim[2:-1]), "mesh_dims": names})
    return order


def strided(rng, placements, dims):
    """The same placements with an order said by PyTorch's strided shards instead."""
    found = list(placements)
    for tensor_dim in {p for p in placements if p[0] == "S"}:
        at = [i for i, p in enumerate(placements) if p == tensor_dim]
        order = at[:]
        rng.shuffle(order)
        for i in at:
            factor = math.prod(len(dims[j][1]) for j in order[:order.index(i)] if j > i)
            if factor > 1:
                found[i] = f"SS({tensor_dim[2:-1]},{factor})"
    return found


def side_of(rng, red, key, dims, rank, pending):
    """src or dst of a redistribution, with its order."""
    placements = placements_of(rng, dims, rank, pending)
    roll = rng.random()
    if roll < 0.15:
        red[key] = strided(rng, placements, dims)
    else:
        red[key] = placements
        order = order_of(rng, placements, dims)
        if roll < 0.5 and order:
            red[key + "_order"] = order
        elif roll < 0.6 and key == "dst":
            red["dst_order"] = "any"
    if len({d[0] for d in dims}) == len(dims) and rng.random() < 0.1:
        red[key] = {d[0]: p for d, p in zip(dims, red[key])}


def redistribution_of(rng, number, universe, planner):
    red = {"id": f"r{number}", "tensor": tensor_of(rng)}
    views = list(universe.views)
    source = target = rng.choice(views)
    if len(views) > 1 and planner == "optimal" and rng.random() < 0.35:
        source, target = rng.choice(views), rng.choice(views)
    if source != target:
        red["src_mesh"], red["dst_mesh"] = source, target
    elif source != "mesh":
        red["mesh"] = source
    return asked_of(rng, red, universe.views[source], universe.views[target], source == target)


def tensor_of(rng):
    return {"shape": shape_of(rng), "dtype": rng.choice(DTYPES)}


def asked_of(rng, red, source, target, one_mesh):
    """The redistribution with its states; source, target: the dims of its meshes."""
    rank = len(red["tensor"]["shape"])
    floating = "float" in red["tensor"]["dtype"]
    op = rng.choice(["sum", "sum", "sum"] + [op for op in OPS if floating or op != "avg"])
    pending = rng.choice([[], [op], ["sum", "avg"] if floating and op in ("sum", "avg") else [op]])
    kept = pending if pending and rng.random() < (0.3 if one_mesh else 0.05) else []
    side_of(rng, red, "src", source, rank, pending)
    side_of(rng, red, "dst", target, rank, kept)
    if rng.random() < 0.1 and one_mesh:
        red["direction"] = "backward"
    if pending and floating and rng.random() < 0.2:
        red["reduce_dtype"] = rng.choice(["float64", "float32"])
    if rng.random() < 0.2:
        red["count"] = rng.randrange(1, 50)
    return red


def slow_links(rng):
    """Hosts whose links outside are so slow that even small tensors go in two phases."""
    inside = {"ranks": rng.choice([2, 3, 4, 4, 5, 8]), "mb_per_s": rng.choice([20, 100, 400]), "latency_ns": rng.choice([0, 10, 1000])}
    outside = {"ranks": 1 << 20, "mb_per_s": rng.choice([1, 10]), "latency_ns": rng.choice([0, 10, 1000])}
    for level in (inside, outside):
        if rng.random() < 0.3:
            level["per_peer_ns"] = rng.choice([1, 50, 500, 3000])
    if rng.random() < 0.3:
        outside["peer_mb_per_s"] = rng.choice([1, 3])
    return {"levels": [inside, outside]}


def add_universes(rng, spec, first):
    """One or two more universes, and redistributions between meshes of different ones."""
    if rng.random() < 0.4:
        spec["topology"] = slow_links(rng)
    universes = [first]
    for name, letters in (("t", "klmno"), ("u", "pqrst"))[:rng.choice([1, 1, 2])]:
        sizes = sizes_of(rng, False)
        other = Universe(rng, name, letters, sizes, ranks_beside(rng, first.ranks, math.prod(sizes)))
        for number in range(rng.choice([0, 0, 1, 2])):
            other.add_view(f"{name}{number}")
        universes.append(other)
        spec["meshes"] += other.operations
    for _ in range(rng.choice([1, 2, 3])):
        source, target = (rng.choice(list(u.views.items())) for u in rng.sample(universes, 2))
        red = {"id": f"r{len(spec['redistributions'])}", "tensor": tensor_of(rng), "src_mesh": source[0], "dst_mesh": target[0]}
        spec["redistributions"].append(asked_of(rng, red, source[1], target[1], False))


def shares_of(rng, levels, choices):
    """One a level, of which none comes to less than 1 MB/s."""
    speeds = [level.get("mb_per_s") or round(level["gb_per_s"] * 1000) for level in levels]
    return [max(rng.choice(choices), -(-10000 // speed)) for speed in speeds]


def add_protocols(rng, topology):
    levels = topology["levels"]
    for level in levels:
        if rng.random() < 0.3:
            level["peer_mb_per_s"] = rng.choice([1, 20, 3000, 40000])
        if rng.random() < 0.3:
            level["peer_bytes"] = rng.choice([1, 64, 5000])
        if rng.random() < 0.4:
            level["switch_mb_per_s"] = rng.choice([3, 1000, 70000, 900000])
        if rng.random() < 0.3:
            level["near_bytes"] = rng.choice([1, 64, 5000])
            level["far_mb_per_s"] = rng.choice([1, 20, 3000, 40000])
    topology["model"] = "protocols"
    topology["protocols"] = []
    for number in range(rng.choice([1, 2, 3])):
        protocol = {"name": f"p{number}", "base_ns": rng.choice([0, 500, 6600, 14000]),
                    "hop_ns": [rng.choice([0, 10, 1000, 3400, 14000]) for _ in levels],
                    "share": shares_of(rng, levels, [1, 500, 7600, 10000])}
        if rng.random() < 0.5:
            protocol["trees"] = True
        if rng.random() < 0.5:
            protocol["switch_ns"] = rng.choice([1, 900, 25000])
        if rng.random() < 0.5:
            protocol["tree_ns"] = [rng.choice([0, 10, 5000]) for _ in levels]
        if rng.random() < 0.5:
            protocol["tree_share"] = shares_of(rng, levels, [1, 500, 8300, 10000])
        if rng.random() < 0.3:
            protocol["near_bytes"] = rng.choice([1, 64, 5000])
            protocol["far_share"] = shares_of(rng, levels, [1, 500, 8300, 10000])
        topology["protocols"].append(protocol)
    # One of them serves any size of all ops; others may be of a few.
    for protocol in topology["protocols"][1:]:
        if rng.random() < 0.4:
            protocol["most_bytes"] = rng.choice([1, 64, 5000, 2**20])
        if rng.random() < 0.4:
            protocol["ops"] = rng.sample(["all_gather", "reduce_scatter", "all_reduce"], rng.choice([1, 2]))
    if rng.random() < 0.4:
        topology["protocols"].append({"name": "pairs", "base_ns": rng.choice([0, 500, 14000]), "ops": rng.choice([["all_to_all"], ["exchange"], ["all_to_all", "exchange"]]),
                                      "hop_ns": [rng.choice([0, 10, 3400]) for _ in levels]})


def topology_of(rng):
    if rng.random() < 0.4:
        return rng.choice(PRESETS)
    levels, ranks, speed = [], 1, rng.choice([1000, 100, 10, 0.01])
    for _ in range(rng.choice([1, 2, 2, 3, 3])):
        ranks *= rng.choice([1, 2, 2, 2, 3, 3, 4, 4, 5, 7])
        level = {"ranks": ranks, "latency_ns": rng.choice([0, 10, 1000, 25000])}
        if rng.random() < 0.5:
            level["gb_per_s"] = speed
        else:
            level["mb_per_s"] = max(1, int(speed * 1000))
        if rng.random() < 0.5:
            level["per_peer_ns"] = rng.choice([1, 50, 500, 3000])
        if rng.random() < 0.3:
            level["exchange_percent"] = rng.choice([1, 33, 50, 80, 99])
        levels.append(level)
        # Most often slower outside; PCIe hosts may have faster NICs.
        speed = round(max(0.001, speed / rng.choice([1, 2, 2, 8, 8, 30, 30, 1 / 3, 1 / 20])), 3)
    found = {"levels": levels}
    if rng.random() < 0.4:
        add_protocols(rng, found)
    if rng.random() < 0.25:
        found["copy_gb_per_s"] = rng.choice([0.1, 3, 1000, 2000.5])
    return found


def spec_of(seed):
    rng = random.Random(seed)
    part, universe = universe_of(rng, seed % FIVE_DIMS_ONE_IN == FIVE_DIMS_ONE_IN - 1, seed % TURNED_ONE_IN == 0)
    planner = rng.choice(["optimal"] * 6 + ["greedy", "graph"])
    options = {}
    if planner != "optimal" or rng.random() < 0.2:
        options["planner"] = planner
    if rng.random() < 0.7:
        options["groups"] = rng.choice(["declared", "any"])
    roll = rng.random()
    if roll < 0.2:
        options["max_memory_bytes"] = -1
    elif roll < 0.3:
        options["max_memory_bytes"] = rng.choice([64, 500, 4000, 40000])
    if rng.random() < 0.15:
        options["one_reduction"] = True
    spec = {"schema": "meshplan/spec/1", **part,
            "redistributions": [redistribution_of(rng, i, universe, planner)
                                for i in range(rng.choice([2, 3, 4]))]}
    if rng.random() < 0.85:
        spec["topology"] = topology_of(rng)
    if options:
        spec["options"] = options
    again = random.Random(f"again {seed}")
    if again.random() < 0.25:
        asked = again.choice(spec["redistributions"])
        name = f"r{len(spec['redistributions'])}"
        spec["redistributions"].append(dict(asked, id=name, count=again.randrange(1, 40)))
    if seed % OTHER_UNIVERSES_ONE_IN == 0 and planner == "optimal" and "meshes" in spec:
        add_universes(random.Random(f"universes {seed}"), spec, universe)
    return spec
