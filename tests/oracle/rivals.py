"""Planner against planner: the optimal plan is never dearer than one that its moves could make.

Its rivals, under the same topology, groups and memory limit: greedy, graph under two cost models,
its own alternatives, and itself with less freedom. A plan that says by its gap that it is not proven
may be dearer by no more than the gap. In whatever order flattens list their dims, it takes the same.
"""
import ask
from meaning import count_of, held, meshes_of, state_of_request, state_of_text

RULES = [("greedy", {"planner": "greedy"}, ()),
         ("graph", {"planner": "graph"}, ()),
         ("graph by the topology", {"planner": "graph"}, ("--cost-model", "topology"))]
ALTERNATIVES = ("--alternatives", "4")


def planned(meshplan, spec, options, flags):
    """(findings about how the command ended, its redistributions by id); what has no plan is left
    out."""
    spec = dict(spec, options={**spec.get("options", {}), **options})
    answer, left = ask.plan_where_there_is(meshplan, spec, flags)
    found = ask.trouble(answer, left, f"plan with {options} {flags}") if answer else []
    if found or not answer:
        return found, {}
    full = {}
    for red in ask.plan_in(answer)["redistributions"]:
        full[red["id"]] = full[red["same_as"]] if "same_as" in red else red
    return [], full


def largest(state, shape):
    return max(count_of(box) for box in held(state, shape).boxes)


def keeps_to_the_default_limit(spec, red):
    """Whether no state on the way is larger per rank than the larger of source and target."""
    mesh = meshes_of(spec)[red["mesh"]]
    shape = red["tensor"]["shape"]
    states = [state_of_text(step["state"], mesh) for step in red["steps"]]
    ends = [state_of_request(red["src"], red["src_order"], mesh), *states[-1:]]
    return max((largest(s, shape) for s in states), default=0) <= max(largest(s, shape) for s in ends)


def beaten(name, plan, rival, time):
    least = plan["totals"]["predicted_ns"] - plan["proven_gap_ns"]
    if least <= time:
        return []
    return [("beaten", plan["id"], f"{plan['id']}: no plan takes less than {least} ns by its own "
             f"words, {name} takes {time}: {rival}")]


def compare(meshplan, spec, options, others):
    """Findings about the optimal plans under `options`; others: (name, options, flags) of rivals."""
    found, best = planned(meshplan, spec, {**options, "planner": "optimal"}, ALTERNATIVES)
    limited = {**spec.get("options", {}), **options}.get("max_memory_bytes", 0) == 0
    for plan in best.values():
        for other in plan["alternatives"]:
            found += beaten("its alternative", plan, other["trace"], other["totals"]["predicted_ns"])
    for name, other_options, flags in others:
        trouble, plans = planned(meshplan, spec, {**options, **other_options}, flags)
        found += trouble
        for key, other in plans.items():
            time = other["totals"]["predicted_ns"]
            if key in best and best[key]["totals"]["predicted_ns"] <= time:
                continue
            if limited and other["planner"] != "optimal" and not keeps_to_the_default_limit(spec, other):
                continue
            found += (beaten(name, best[key], other["trace"], time) if key in best
                      else [("beaten", key, f"{key}: only {name} finds a plan")])
    return found


def turned_round(spec):
    """The spec with the dims of its flattens in reverse, without the redistributions on one of them;
    None where it has no flatten, or views of one."""
    turned, operations = set(), []
    for op in spec.get("meshes", []):
        if turned & {op.get("of"), *op.get("concatenate", [])}:
            return None
        if "flatten" in op:
            turned.add(op.get("name") or op.get("dim") or "_".join(op["flatten"]))
            op = dict(op, flatten=op["flatten"][::-1])
        operations.append(op)
    left = [red for red in spec["redistributions"]
            if not turned & {red.get(key) for key in ("mesh", "src_mesh", "dst_mesh")}]
    return dict(spec, meshes=operations, redistributions=left) if turned and left else None


def findings_of_turned(meshplan, spec):
    """What a plan takes does not depend on the order in which flattens list their dims."""
    other = turned_round(spec)
    if other is None:
        return []
    found, plans = planned(meshplan, dict(spec, redistributions=other["redistributions"]), {"planner": "optimal"}, ())
    trouble, turned = planned(meshplan, other, {"planner": "optimal"}, ())
    for key in {*plans, *turned}:
        totals = [p[key]["totals"] if key in p else None for p in (plans, turned)]
        if totals[0] != totals[1]:
            found.append(("turned", key, f"{key}: with the dims of its flattens in reverse {totals[1]}, else {totals[0]}"))
    return found + trouble


def findings_of(meshplan, spec):
    asked = spec.get("options", {})
    limit = asked.get("max_memory_bytes", 0)
    narrow, found = [], []
    if asked.get("groups") == "any":
        narrow.append(("the plan on declared groups", {"planner": "optimal", "groups": "declared"}, ()))
    if limit != -1:
        found += compare(meshplan, spec, {}, RULES + narrow)
        narrow.append(("the plan under the memory limit",
                       {"planner": "optimal", "max_memory_bytes": limit}, ()))
    found += findings_of_turned(meshplan, spec)
    return found + compare(meshplan, spec, {"max_memory_bytes": -1}, RULES + narrow)
