#!/usr/bin/env python3
"""Alters every number, string and bool of some plan files, one at a time and with the digest made anew, and asks verify.

A number becomes one more, one less and the double, a bool the other; of a string each number in it becomes one more, an "x" comes
behind it, and another string takes its place that stands at such a place of the same file. What verify accepts must be in ACCEPTED below,
with the reason why it cannot be told, and every place listed there must have been accepted: so the list says all that verify does
not notice, and nothing else.

usage: altered.py MESHPLAN [--list]     with the library of the same build (MESHPLAN_LIBRARY) and apps/python on PYTHONPATH
                                        --list prints what is accepted, three examples of each, and judges nothing
"""
import hashlib
import json
import re
import subprocess
import sys

from meshplan import MeshplanError, library

# Why verify accepts another value. It has the plan and nothing else: neither the spec nor other plans.
ASKED = "what was asked for: with another value the file answers another question, and as right"
LINKS = "a link, or a way of it, that no step at hand depends on"
NAMED = "a name or a note that nothing else in the file repeats"
OTHERS = "what a plan takes that the file does not have: held against the plan that is there, and listed by verify"
BOUNDS = "a lower bound: held against the plan, not proven again, and listed by verify"
WORDS = "words beside the numbers and names of a sentence"

NUMBER, DIGITS, TEXT, OTHER, BOOL = "number", "number in a text", "text", "another text", "bool"
ACCEPTED = {
    "bundles/*/alone_ns": ({NUMBER}, OTHERS),
    "bundles/*/id": ({TEXT}, NAMED),
    "bundles/*/max_messages": ({NUMBER}, ASKED),
    "bundles/*/max_staging_bytes": ({NUMBER}, ASKED),
    "mesh/flattened/*/name": ({TEXT}, NAMED),
    "options/max_memory_bytes": ({NUMBER}, ASKED),
    "options/merge": ({BOOL}, ASKED),
    "options/one_reduction": ({BOOL}, ASKED),
    "options/ranks_per_host": ({NUMBER}, ASKED),
    "redistributions/*/alternatives/*/totals/collectives": ({NUMBER}, OTHERS),
    "redistributions/*/alternatives/*/totals/peak_bytes": ({NUMBER}, OTHERS),
    "redistributions/*/alternatives/*/totals/predicted_ns": ({NUMBER}, OTHERS),
    "redistributions/*/alternatives/*/totals/wire_bytes": ({NUMBER}, OTHERS),
    "redistributions/*/alternatives/*/trace": ({DIGITS}, OTHERS),
    "redistributions/*/audit/*/better_predicted_ns": ({NUMBER}, OTHERS),
    "redistributions/*/audit/*/better_trace": ({DIGITS}, OTHERS),
    "redistributions/*/audit/*/better_wire_bytes": ({NUMBER}, OTHERS),
    "redistributions/*/audit/*/message": ({DIGITS, TEXT}, OTHERS),
    "redistributions/*/audit/*/predicted_ns": ({NUMBER}, OTHERS),
    "redistributions/*/audit/*/wire_bytes": ({NUMBER}, OTHERS),
    "redistributions/*/id": ({DIGITS, TEXT}, NAMED),
    "redistributions/*/steps/*/why": ({OTHER, TEXT}, WORDS),
    "redistributions/*/totals/lower_bound_ns": ({NUMBER}, BOUNDS),
    "redistributions/*/warnings/*/message": ({TEXT}, WORDS),
    "redistributions/*/warnings/*/saves_collectives": ({NUMBER}, OTHERS),
    "redistributions/*/warnings/*/saves_ns": ({NUMBER}, OTHERS),
    "redistributions/*/x-source": ({DIGITS, TEXT}, NAMED),
    "spec_digest": ({DIGITS}, ASKED),
    "topology/levels/*/exchange_percent": ({NUMBER}, LINKS),
    "topology/levels/*/latency_ns": ({NUMBER}, LINKS),
    "topology/levels/*/mb_per_s": ({NUMBER}, LINKS),
    "topology/levels/*/name": ({OTHER, TEXT}, NAMED),
    "topology/levels/*/peer_bytes": ({NUMBER}, LINKS),
    "topology/levels/*/peer_mb_per_s": ({NUMBER}, LINKS),
    "topology/levels/*/per_peer_ns": ({NUMBER}, LINKS),
    "topology/levels/*/ranks": ({NUMBER}, LINKS),
    "topology/levels/*/switch_mb_per_s": ({NUMBER}, LINKS),
    "topology/name": ({DIGITS, TEXT}, NAMED),
    "topology/protocols/*/base_ns": ({NUMBER}, LINKS),
    "topology/protocols/*/hop_ns/*": ({NUMBER}, LINKS),
    "topology/protocols/*/name": ({OTHER, DIGITS, TEXT}, NAMED),
    "topology/protocols/*/share/*": ({NUMBER}, LINKS),
    "topology/protocols/*/switch_ns": ({NUMBER}, LINKS),
    "topology/protocols/*/tree_ns/*": ({NUMBER}, LINKS),
    "topology/protocols/*/tree_share/*": ({NUMBER}, LINKS),
    "topology/protocols/*/trees": ({BOOL}, LINKS),
    "topology/source": ({DIGITS, TEXT}, NAMED),
    "totals/lower_bound_bytes": ({NUMBER}, BOUNDS),
    "totals/lower_bound_ns": ({NUMBER}, BOUNDS),
    "universes/*/meshes/*/dims/*/name": ({OTHER, TEXT}, NAMED),
    "universes/*/ranks/*": ({NUMBER}, ASKED),
}


def tensor(*shape, dtype="bfloat16"):
    return {"shape": list(shape), "dtype": dtype}


def move(name, shape, src, dst, **more):
    return {"id": name, "tensor": tensor(*shape), "src": src, "dst": dst, **more}


DIMS = [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]
MOVES = [move("loss", [16, 64], ["P(sum)", "P(sum)"], ["R", "R"], count=3), move("again", [16, 64], ["P(sum)", "P(sum)"], ["R", "R"], count=5),
         move("gather", [64, 64], ["S(0)", "S(0)"], ["R", "R"]), move("swap", [64, 30], ["S(0)", "S(1)"], ["S(1)", "S(0)"], **{"x-source": "train.py:7"})]
BY_RULES = MOVES + [move("scatter", [30, 64], ["P(sum)", "P(avg)"], ["S(0)", "S(0)"]), move("uneven", [30, 64], ["S(0)", "S(0)"], ["R", "R"]),
                    move("ordered", [64, 64], ["S(0)", "S(0)"], ["R", "R"], src_order=[{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}])]
HOSTS = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 370, "latency_ns": 10000, "per_peer_ns": 500},
                    {"name": "across", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000, "per_peer_ns": 500}]}
TRAIN, SERVE = {"name": "train", "world": 8, "dims": DIMS}, {"name": "serve", "world": 4, "ranks": "8-11", "dims": [{"name": "dp", "size": 2}, {"name": "mp", "size": 2}]}


def on_mesh(moves, flattened=(), **more):
    return {"schema": "meshplan/spec/1", "mesh": {"dims": DIMS, "flattened": list(flattened)}, "redistributions": moves, **more}


def across(moves, **more):
    between = [dict(m, src_mesh="train", dst_mesh="serve") for m in moves]
    return {"schema": "meshplan/spec/1", "meshes": [TRAIN, SERVE], "redistributions": between, **more}


BOTH = [{"dims": ["dp", "tp"], "name": "both"}]
SYNC = [move("w1", [64, 64], ["S(0)", "S(1)"], ["R", "S(1)"], count=3), move("w2", [30, 64], ["S(0)", "R"], ["R", "S(0)"], count=2)]
PLANS = {  # name: (spec, flags)
    "advice": (on_mesh(MOVES), ["--alternatives", "2"]),
    "h100": (on_mesh(MOVES[1:]), ["--topology", "h100", "--audit"]),
    "greedy": (on_mesh(BY_RULES[:5]), ["--planner", "greedy", "--audit"]),
    "graph, flattened": (on_mesh(BY_RULES[2:], BOTH, topology=HOSTS), ["--planner", "graph", "--audit", "--ranks-per-host", "4"]),
    "groups any": (on_mesh(BY_RULES[3:], options={"groups": "any", "max_memory_bytes": 100000}, topology=HOSTS), []),
    "across": (across(SYNC, topology=HOSTS), []),
    "bundle": (across(SYNC, topology=HOSTS, bundles=[{"id": "sync", "redistributions": ["w*"], "max_staging_bytes": 8192}]), []),
}


def digest_of(plan):
    body = {key: plan[key] for key in plan if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def leaves(value, path=()):
    """(path, value) of every number, string and bool but the digest."""
    if isinstance(value, dict):
        for key in value:
            if path or key != "digest":
                yield from leaves(value[key], path + (key,))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from leaves(each, path + (i,))
    elif value is not None:
        yield path, value


def place_of(path):
    return "/".join("*" if isinstance(key, int) else key for key in path)


def others(value, known):
    """(kind, another value) in its place; `known`: the texts at such places."""
    if isinstance(value, bool):
        yield BOOL, not value
    elif isinstance(value, int):
        yield from ((NUMBER, n) for n in dict.fromkeys((value + 1, value - 1, 2 * value)) if n != value)
    else:
        for found in re.finditer(r"\d+", value):
            yield DIGITS, value[:found.start()] + str(int(found[0]) + 1) + value[found.end():]
        yield TEXT, value + "x"
        yield from ((OTHER, text) for text in known if text != value)


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def is_right(plan):
    try:
        library.verify(plan)
        return True
    except MeshplanError as refused:
        if refused.code not in (2, 4):
            raise
        return False


def accepted_of(name, plan, accepted):
    """Adds {(place, kind): [where, was, is]} of what verify accepts; answers how much was altered."""
    right, tried = plan["digest"], 0
    if digest_of(plan) != right or not is_right(plan):
        sys.exit(f"{name}: the plan itself is refused")
    known = {}
    for path, value in leaves(plan):
        if isinstance(value, str):
            known.setdefault(place_of(path), {})[value] = None
    for path, value in list(leaves(plan)):
        for kind, other in others(value, list(known.get(place_of(path), ()))[:4]):
            put(plan, path, other)
            plan["digest"] = digest_of(plan)
            tried += 1
            if is_right(plan):
                accepted.setdefault((place_of(path), kind), []).append(("/".join(map(str, path)), value, other, name))
        put(plan, path, value)
    plan["digest"] = right
    return tried


def plan_of(meshplan, spec, flags):
    made = subprocess.run([meshplan, "plan", "-", "-q", "-W", "no-missing-flatten", *flags], input=json.dumps(spec), text=True, capture_output=True)
    if made.returncode != 0:
        sys.exit(f"plan {' '.join(flags)} ended with {made.returncode}: {made.stderr}")
    return json.loads(made.stdout)


def main():
    meshplan, *flags = sys.argv[1:]
    accepted, tried = {}, 0
    for name, (spec, planning) in PLANS.items():
        tried += accepted_of(name, plan_of(meshplan, spec, planning), accepted)
    if flags == ["--list"]:
        for (place, kind), found in sorted(accepted.items()):
            print(f"{place}: {kind}, {len(found)} times")
            for where, was, other, name in found[:3]:
                print(f"    {name}: {where}: {was!r} -> {other!r}")
    listed = {(place, kind) for place, (kinds, _) in ACCEPTED.items() for kind in kinds}
    wrong = 0
    for place, kind in [] if flags else sorted(set(accepted) - listed):
        where, was, other, name = accepted[place, kind][0]
        print(f"not noticed: {name}: {where}: {was!r} made {other!r} ({kind}; {len(accepted[place, kind])} such)")
        wrong += 1
    for place, kind in [] if flags else sorted(listed - set(accepted)):
        print(f"noticed wherever it was altered, so it need not be listed: {place} ({kind})")
        wrong += 1
    print(f"{tried} values altered in {len(PLANS)} plans, {sum(map(len, accepted.values()))} accepted at {len({p for p, _ in accepted})} kinds of places")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
