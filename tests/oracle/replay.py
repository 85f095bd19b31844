"""Moves the data of a plan, step by step, by what its steps mean, and checks what every rank holds.

Values are numbers modulo a prime, so that sums, averages and products are exact and a contribution
that is counted twice or not at all shows.
"""
import numpy as np

from meaning import Complaint, Part, common, count_of, inside

PRIME = 2**31 - 1


def reduced(op, arrays, scale=1):
    """The reduction of arrays; `scale` divides (avg)."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        if op in ("sum", "avg"):
            total = (total + array) % PRIME
        elif op == "product":
            total = total * array % PRIME
        else:
            total = (np.minimum if op == "min" else np.maximum)(total, array)
    return total * pow(scale, -1, PRIME) % PRIME if scale != 1 else total


def sub_axes_of(states):
    """The finest common factors of the mesh dims: part -> tuple of sub-axes, for every part."""
    bounds = {}
    for part in states:
        bounds.setdefault(part.dim, set()).update((part.tail, part.tail * part.size))
    table = {}
    for part in states:
        ends = [b for b in sorted(bounds[part.dim], reverse=True)
                if part.tail <= b <= part.tail * part.size]
        if any(a % b for a, b in zip(ends, ends[1:])):
            raise Complaint("sub_axes", f"the parts of mesh dim {part.dim} do not nest")
        table[part] = tuple(Part(part.dim, a // b, b) for a, b in zip(ends, ends[1:]))
    return table


def pending_sub_axes(state, table):
    """sub-axis -> op of what is pending, sub-axes of size 1 left out."""
    return {a: op for part, op in state.pending.items() for a in table[part] if a.size > 1}


def avg_scale(pending):
    scale = 1
    for part, op in pending.items():
        scale *= part.size if op == "avg" else 1
    return scale


def combined_op(ops):
    """The one op that reduces these: avg with sum is a sum that is scaled."""
    kinds = {"sum" if op == "avg" else op for op in ops}
    if len(kinds) != 1:
        raise Complaint("reduce", f"mixed reductions {sorted(ops)}")
    return kinds.pop()


class World:
    """The ranks of one copy and the arrays they hold; `truth` is the tensor that they stand for."""

    def __init__(self, held, seed):
        random = np.random.default_rng(seed)
        made = {}
        for key in held.pending:
            if key not in made:
                made[key] = random.integers(1, PRIME, held.shape, dtype=np.int64)
        self.held = held
        self.arrays = [made[key][tuple(slice(*b) for b in box)]
                       for key, box in zip(held.pending, held.boxes)]
        live = {p: op for p, op in held.state.pending.items() if p.size > 1}
        contributions = [made[key] for key in sorted(made)]
        self.truth = (reduced(combined_op(live.values()), contributions, avg_scale(live)) if live
                      else contributions[0])

    def check(self, where):
        """Reducing what is pending gives the tensor on every rank."""
        held = self.held
        live = {p: op for p, op in held.state.pending.items() if p.size > 1}
        groups = {}
        for rank, c in enumerate(held.coordinates):
            key = list(c)
            for p in live:
                key[p.dim] -= p.of(c) * p.tail
            groups.setdefault(tuple(key), []).append(rank)
        for members in groups.values():
            box = held.boxes[members[0]]
            expected = self.truth[tuple(slice(*b) for b in box)]
            if any(self.arrays[m].shape != expected.shape for m in members):
                raise Complaint("data", f"{where}: a rank holds another box than {box}")
            found = (reduced(combined_op(live.values()), [self.arrays[m] for m in members],
                             avg_scale(live)) if live else self.arrays[members[0]])
            if not np.array_equal(found, expected):
                raise Complaint("data", f"{where}: ranks {members} hold other data than the tensor's")


def groups_by(coordinates, parts):
    """Ranks that differ only on these parts, in rank order: lists of indices."""
    groups = {}
    for rank, c in enumerate(coordinates):
        key = list(c)
        for p in parts:
            key[p.dim] -= p.of(c) * p.tail
        groups.setdefault(tuple(key), []).append(rank)
    return list(groups.values())


def filled(box, sources, where):
    """The array of `box` out of (box, array) pairs; every element must come from one of them."""
    array = np.zeros([high - low for low, high in box], dtype=np.int64)
    seen = np.zeros(array.shape, dtype=bool)
    for other, data in sources:
        part = common(box, other) if box else ()
        if part is not None:
            array[inside(part, box)] = data[inside(part, other)]
            seen[inside(part, box)] = True
    if not seen.all():
        raise Complaint("data", f"{where}: elements of {box} come from no rank that may send them")
    return array


def move_local(world, after, op, table, where):
    """slice and to_partial: every rank makes its new box of its own old one."""
    before = world.held
    fresh = {a: o for a, o in pending_sub_axes(after.state, table).items()
             if a not in pending_sub_axes(before.state, table)}
    if op == "slice" and fresh:
        raise Complaint("step", f"{where}: a slice leaves a reduction pending")
    arrays = []
    for rank, (old, new) in enumerate(zip(before.boxes, after.boxes)):
        kinds = set(fresh.values())
        first = all(a.of(before.coordinates[rank]) == 0 for a in fresh)
        identity = {"sum": 0, "product": 1}.get(next(iter(kinds), ""), None)
        if op == "to_partial" and kinds == {"sum"}:
            array = np.zeros([high - low for low, high in new], dtype=np.int64)
            part = common(old, new) if new else ()
            sharded = old != new
            if part is not None and (first or sharded):
                array[inside(part, new)] = world.arrays[rank][inside(part, old)]
        else:
            array = filled(new, [(old, world.arrays[rank])], where)
            if identity is not None and not first:
                array = np.full_like(array, identity)
        arrays.append(array)
    return arrays


def move_in_groups(world, after, step, parts, table, where):
    """all_gather, all_to_all, reduce_scatter and all_reduce inside the groups of `parts`."""
    before = world.held
    gone = {a: o for a, o in pending_sub_axes(before.state, table).items()
            if a not in pending_sub_axes(after.state, table)}
    talking = {a for p in parts for a in table[p] if a.size > 1}
    if not set(gone) <= talking:
        raise Complaint("step", f"{where}: a reduction ends on a mesh dim that the step does not have")
    kept = set(pending_sub_axes(before.state, table)) - set(gone)
    if kept & talking:
        raise Complaint("step", f"{where}: the step's ranks hold summands that it does not reduce")
    if bool(gone) != (step["op"] in ("reduce_scatter", "all_reduce")) and talking:
        raise Complaint("step", f"{where}: {step['op']} with {len(gone)} reductions")
    arrays = [None] * len(before.boxes)
    op, scale = (combined_op(gone.values()), avg_scale(gone)) if gone else (None, 1)
    if talking:
        check_reduction(step, gone, where)
    for members in groups_by(before.coordinates, parts):
        summands = {}
        for m in members:
            summands.setdefault(tuple(a.of(before.coordinates[m]) for a in sorted_sub_axes(gone)), []).append(m)
        for rank in members:
            box = after.boxes[rank]
            made = [filled(box, [(before.boxes[m], world.arrays[m]) for m in who], where)
                    for who in summands.values()]
            arrays[rank] = reduced(op, made, scale) if gone else made[0]
    return arrays


def sorted_sub_axes(sub_axes):
    return sorted(sub_axes, key=lambda a: (a.dim, -a.tail))


def check_reduction(step, gone, where):
    """reduce_op and scale say what the states do."""
    if not gone:
        if step["reduce_op"] is not None or step["scale"] is not None:
            raise Complaint("step", f"{where}: reduce_op or scale where nothing is reduced")
        return
    scale = avg_scale(gone)
    kinds = set(gone.values())
    said = step["reduce_op"]
    if kinds == {"avg"} and said == "avg" and step["scale"] is None:
        return
    expected = f"1/{scale}" if scale != 1 else None
    if said != combined_op(kinds) or step["scale"] != expected:
        raise Complaint("step", f"{where}: reduce_op {said} and scale {step['scale']}, expected "
                                f"{combined_op(kinds)} and {expected}")


def sent_data(world, old, got, sender, contribution, box):
    """What the sender sends: of its own box, or what it was sent before. Across meshes a rank that
    passes on may hold nothing of its own."""
    own = world.held.boxes[old[sender]] if sender in old else None
    if own is not None and common(own, box) == box:
        return world.arrays[old[sender]][inside(box, own)]
    return next(data for held, data in got[sender, contribution] if held == box)


def move_pieces(world, after, pieces, gone, have, want, where):
    """An exchange: every rank makes its new box of its own data and of the pieces sent to it."""
    before = world.held
    old = {rank: i for i, rank in enumerate(before.ranks)}
    got = {}
    for sender, receiver, contribution, box in pieces:
        data = sent_data(world, old, got, sender, contribution, box)
        got.setdefault((receiver, contribution), []).append((box, data))
    op, scale = (combined_op(gone.values()), avg_scale(gone)) if gone else (None, 1)
    arrays = []
    for me, box in zip(after.ranks, after.boxes):
        made = []
        for contribution in want[me][0]:
            sources = got.get((me, contribution), [])
            if me in old and contribution == have[me][0]:
                sources = sources + [(before.boxes[old[me]], world.arrays[old[me]])]
            made.append(filled(box, sources, where))
        arrays.append(reduced(op, made, scale) if gone else made[0])
    return arrays


def check_counts(phases, have, want, where):
    """Every element that a rank lacks comes exactly once, and only from a rank that has it."""
    coming, known = {}, {r: [h] for r, h in have.items()}
    for pieces in phases:
        arrived = []
        for sender, receiver, contribution, box in pieces:
            if not any(c == contribution and common(held, box) == box for c, held in known.get(sender, [])):
                raise Complaint("transfer", f"{where}: rank {sender} sends what it does not hold")
            arrived.append((receiver, (contribution, box)))
            wanted = common(want[receiver][1], box) if contribution in want[receiver][0] else None
            if wanted == box:
                coming[receiver, contribution] = coming.get((receiver, contribution), 0) + count_of(box)
        for receiver, what in arrived:
            known.setdefault(receiver, []).append(what)
    for rank, (contributions, box) in want.items():
        for contribution in contributions:
            own = have.get(rank)
            mine = common(own[1], box) if own and own[0] == contribution else None
            lacks = count_of(box) - (count_of(mine) if mine is not None else 0)
            if coming.get((rank, contribution), 0) != lacks:
                raise Complaint("transfer", f"{where}: rank {rank} gets "
                                f"{coming.get((rank, contribution), 0)} elements and lacks {lacks}")
