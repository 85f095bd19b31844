"""Checks a plan against what its words mean: moves the data of every step, and recounts figures.

`check_plan(spec, plan)` gives the complaints. What is checked of figures stands in figures.py.
"""
import itertools

import figures
import groups
from meaning import (Complaint, DTYPE_BYTES, Part, box_of, count_of, held, meshes_of,
                     state_of_request, state_of_text)
from replay import (World, sub_axes_of, check_counts, check_reduction, groups_by, move_in_groups,
                    move_local, move_pieces, pending_sub_axes, sorted_sub_axes)
from transfers import Level, one_phase, two_phases, two_phases_in_stages


def levels_of(topology):
    return [Level(v["ranks"], v["mb_per_s"], v["latency_ns"], v["per_peer_ns"], v["exchange_percent"],
                  v.get("peer_mb_per_s", 0), v.get("peer_bytes", 0), v.get("switch_mb_per_s", 0),
                  v.get("near_bytes", 0), v.get("far_mb_per_s", 0))
            for v in topology["levels"]]


def parts_of(names, mesh):
    """The parts that a step's mesh_dims name: "b", or "b:(1)2" for the factor 2 after the factor 1."""
    found = []
    for name in names:
        if ":(" in name:
            dim, rest = name.rsplit(":(", 1)
            above, size = (int(n) for n in rest.split(")"))
            at = mesh.dims.index(dim)
            found.append(Part(at, size, len(mesh.offsets[at]) // (above * size)))
        else:
            at = mesh.dims.index(name)
            found.append(Part(at, len(mesh.offsets[at]), 1))
    return found


def same_state(a, b, shape):
    """Whether two states of one mesh put the same boxes and the same pending reductions on it."""
    coordinates = itertools.product(*(range(n) for n in a.mesh.shape))
    live = [{p: o for p, o in s.pending.items() if p.size > 1} for s in (a, b)]
    return live[0] == live[1] and all(
        count_of(box_of(a, shape, c)) == count_of(box_of(b, shape, c)) == 0
        or box_of(a, shape, c) == box_of(b, shape, c) for c in coordinates)


def target_of(red, mesh):
    """The state that a redistribution asks for, with its own order where that is free."""
    placements = red["dst"]
    source = red["src"]
    if red.get("direction") == "backward":
        placements = ["R" if p[0] == "P" and s[0] in "RS" else p for p, s in zip(placements, source)]
    return state_of_request(placements, red["dst_order"], mesh), placements


def check_target(red, spec_red, mesh, shape, last):
    """The last state is the one asked for; with a free order, one with its placements."""
    wanted, placements = target_of(red, mesh)
    if red["dst_order"] != "any":
        if not same_state(wanted, last, shape):
            raise Complaint("target", f"{red['id']}: ends in other boxes than the target's")
        return wanted
    for dim in range(len(shape)):
        asked = {p for p in wanted.cuts.get(dim, []) if p.size > 1}
        if asked != {p for p in last.cuts.get(dim, []) if p.size > 1}:
            raise Complaint("target", f"{red['id']}: ends with other mesh dims on tensor dim {dim}")
    return last


class StepSeen:
    """One step as data: who talks, what is held before and after, what was sent."""

    def __init__(self, step, red, before, after, levels):
        self.step, self.red, self.before, self.after, self.levels = step, red, before, after, levels
        self.copies = [before.state.mesh.ranks(i) for i in range(len(before.state.mesh.copies))]
        self.all_pieces = []
        self.pieces, self.phases, self.groups, self.crossing = [], 1, [], before.state.mesh is not after.state.mesh
        self.reduces = False
        self.stages, self.number_of_stages = None, 1  # of each piece of each phase; of an exchange in shifts


def run_exchange(world, seen, table, where):
    """have and want of an exchange, its pieces by the rules, and the data moved by them."""
    step, before, after = seen.step, seen.before, seen.after
    if seen.crossing:
        old, new = pending_sub_axes(before.state, table[0]), pending_sub_axes(after.state, table[1])
        gone, kept = old, {}
        if new:
            raise Complaint("step", f"{where}: an exchange across meshes leaves a reduction pending")
    else:
        old, new = pending_sub_axes(before.state, table), pending_sub_axes(after.state, table)
        gone = {a: o for a, o in old.items() if a not in new}
        kept = {a: o for a, o in old.items() if a in new}
        if set(new) - set(old):
            raise Complaint("step", f"{where}: an exchange makes a reduction pending")
    check_reduction(step, gone, where)
    seen.reduces = bool(gone)
    order = sorted_sub_axes(old)
    have = {rank: (tuple(a.of(c) for a in order), box)
            for rank, c, box in zip(before.ranks, before.coordinates, before.boxes)}
    keys = sorted({h[0] for h in have.values()})
    want = {}
    for rank, c, box in zip(after.ranks, after.coordinates, after.boxes):
        mine = [k for k in keys if all(a not in kept or v == a.of(c) for a, v in zip(order, k))]
        want[rank] = (mine, box)
    if step.get("phases", 1) == 2 and gone:
        raise Complaint("step", f"{where}: a reducing exchange in two phases")
    seen.phases = step.get("phases", 1)
    phases = phases_of(seen, have, want)
    if "at_once" in step:
        check_shifts(seen, where)
    seen.pieces = [piece for pieces in phases for piece in pieces]
    check_counts(phases, have, want, where)
    seen.all_pieces = [phases]
    if not seen.crossing:
        for other in seen.copies[1:]:
            there = dict(zip(before.ranks, other))
            moved = [{there[r]: x for r, x in held_by.items()} for held_by in (have, want)]
            seen.all_pieces.append(phases_of(seen, *moved))
    return move_pieces(world, after, seen.pieces, gone, have, want, where)


def phases_of(seen, have, want):
    """The pieces of each phase of an exchange; where it goes in shifts, `seen` learns their stages."""
    step = seen.step
    if seen.phases == 1:
        return [one_phase(seen.levels, have, want, step.get("whole_pieces", False), step.get("far_64ths", 0))]
    ways = step.get("fetched_by_all", False), step.get("laps", 1)
    if "at_once" not in step:
        return two_phases(seen.levels, have, want, *ways)
    seen.number_of_stages, phases = two_phases_in_stages(seen.levels, have, want, step["at_once"], *ways)
    seen.stages = [[stage for _, stage in pieces] for pieces in phases]
    return [[piece for piece, _ in pieces] for pieces in phases]


def check_shifts(seen, where):
    """Only across meshes, in two phases, each stage in as many chunks."""
    chunks = seen.step.get("chunks", 1)
    if seen.phases == 1 or chunks == 1 or not seen.crossing:
        raise Complaint("step", f"{where}: shifts of an exchange that is not across meshes in chunks")
    if chunks % seen.number_of_stages:
        raise Complaint("step", f"{where}: {chunks} chunks of {seen.number_of_stages} stages")


def run_step(world, step, red, meshes, levels, where):
    """Moves the data of one step; gives what it saw."""
    before = world.held
    mesh = meshes[step["mesh"]] if "mesh" in step else before.state.mesh
    state = state_of_text(step["state"], mesh)
    shape = red["tensor"]["shape"]
    after = held(state, shape)
    seen = StepSeen(step, red, before, after, levels)
    op = step["op"]
    if seen.crossing:
        if op != "exchange":
            raise Complaint("step", f"{where}: {op} from one mesh to another")
        tables = (sub_axes_of(before.state.parts()), sub_axes_of(state.parts()))
        arrays = run_exchange(world, seen, tables, where)
    else:
        parts = parts_of(step["mesh_dims"], mesh)
        table = sub_axes_of(before.state.parts() + state.parts() + parts)
        if op in ("slice", "to_partial"):
            arrays = move_local(world, after, op, table, where)
        elif op == "exchange":
            if set(range(len(mesh.dims))) != {p.dim for p in parts}:
                raise Complaint("step", f"{where}: an exchange that does not list every mesh dim")
            arrays = run_exchange(world, seen, table, where)
        else:
            arrays = move_in_groups(world, after, step, parts, table, where)
            seen.groups = groups_by(before.coordinates, parts)
            seen.reduces = op in ("all_reduce", "reduce_scatter")
    world.held, world.arrays = after, arrays
    world.check(where)
    return seen


def check_redistribution(spec_red, red, meshes, levels, seed):
    """Replays one redistribution; gives what its steps were seen to do."""
    shape = red["tensor"]["shape"]
    source = meshes[red.get("src_mesh", red.get("mesh"))]
    target = meshes[red.get("dst_mesh", red.get("mesh"))]
    asked = state_of_request(spec_red["src"], spec_red.get("src_order", []), source)
    if not same_state(asked, state_of_request(red["src"], red["src_order"], source), shape):
        raise Complaint("source", f"{red['id']}: the plan's source is another than the spec's")
    meant = state_of_request(spec_red["dst"], spec_red.get("dst_order", []), target)
    if red["dst_order"] != spec_red.get("dst_order", []) and red["dst_order"] == "any":
        raise Complaint("target", f"{red['id']}: the plan's order is free, the spec's is not")
    if red["dst_order"] != "any" and not same_state(
            meant, state_of_request(red["dst"], red["dst_order"], target), shape):
        raise Complaint("target", f"{red['id']}: the plan's target is another than the spec's")
    world = World(held(asked, shape), seed)
    world.check(f"{red['id']}: source")
    steps = []
    for number, step in enumerate(red["steps"]):
        where = f"{red['id']} step {number} ({step['op']})"
        steps.append(run_step(world, step, red, meshes, levels, where))
    check_target(red, spec_red, target, shape, world.held.state)
    return steps


def check_groups(declared, plan, red, steps):
    for number, seen in enumerate(steps):
        if seen.groups:
            where = f"{red['id']} step {number} ({seen.step['op']})"
            groups.check_step(declared, plan, red, seen, parts_of(seen.step["mesh_dims"], seen.before.state.mesh), where)
    groups.check_warnings(declared, red, red["id"])


def check_plan(spec, plan):
    """Complaints about a plan of a spec: one a redistribution at most, and one of the totals."""
    meshes, declared = meshes_of(spec), groups.Declared(spec)
    levels = levels_of(plan["topology"])
    complaints, full, counted = [], {}, {}
    specs = {r["id"]: r for r in spec["redistributions"]}
    for number, red in enumerate(plan["redistributions"]):
        spec_red, first = specs[red["id"]], red.get("same_as", red["id"])
        full[red["id"]] = red if first == red["id"] else dict(full[first], id=red["id"], count=red["count"])
        try:
            if spec_red.get("count", 1) != red["count"]:
                raise Complaint("count", f"{red['id']}: count {red['count']} is not the spec's")
            steps = check_redistribution(spec_red, full[red["id"]], meshes, levels, number)
            counted[red["id"]] = figures.check_steps(plan, full[red["id"]], steps)
            check_groups(declared, plan, full[red["id"]], steps)
        except Complaint as complaint:
            complaints.append((red["id"], complaint.kind, str(complaint)))
    try:
        if [r["id"] for r in plan["redistributions"]] != list(specs):
            raise Complaint("ids", "the plan has other redistributions than the spec")
        if len(counted) == len(specs):
            figures.check_file_totals(plan, [r["count"] for r in plan["redistributions"]],
                                      [counted[name] for name in specs])
    except Complaint as complaint:
        complaints.append(("", complaint.kind, str(complaint)))
    return complaints
