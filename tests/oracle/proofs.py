"""The proof of a plan: `verify` accepts it, and refuses it with one figure changed and the digest
redone; `run` moves the data of some of them."""
import copy
import hashlib
import json
import random

import ask

MUTANTS = 2          # tried of a plan
RUNS_ONE_IN = 8
STEP = ("wire_bytes", "peak_bytes", "predicted_ns")
TOTALS = ("collectives", "wire_bytes", "peak_bytes", "predicted_ns", "lower_bound_bytes")


def with_digest(plan):
    """The text of a plan whose digest is right."""
    plan.pop("digest", None)
    canonical = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    plan["digest"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps(plan, ensure_ascii=False)


def figures_of(plan):
    """Where the figures stand that `verify` counts: (keys that lead there)."""
    places = [("totals", key) for key in TOTALS]
    for r, red in enumerate(plan["redistributions"]):
        if "same_as" in red:
            continue
        at = ("redistributions", r)
        places += [(*at, "totals", key) for key in TOTALS]
        if red.get("shortcuts") != ["work_budget"]:  # else any gap up to that of the bound may be right
            places.append((*at, "proven_gap_ns"))
        for s in range(len(red["steps"])):
            places += [(*at, "steps", s, key) for key in STEP]
    return places


def changed(plan, place, by):
    """A copy of the plan with one figure changed; None where it would be negative."""
    made = copy.deepcopy(plan)
    held = made
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] += by
    return made if held[place[-1]] >= 0 else None


def findings_of(meshplan, text):
    answer = ask.Answer([meshplan, "verify", "-", "-q"], text)
    if answer.code != 0:
        return [("verify", "", f"verify refuses a right plan ({answer.code}): {answer.err[:300]}")]
    plan = json.loads(text)
    rng = random.Random(plan["digest"])
    found = []
    places = figures_of(plan)
    for place in rng.sample(places, min(MUTANTS, len(places))):
        mutant = changed(plan, place, rng.choice((-1, 1)))
        if mutant is None:
            continue
        code = ask.Answer([meshplan, "verify", "-", "-q"], with_digest(mutant)).code
        if code != 4:
            found.append(("mutant", "", f"verify ends with {code} where {place} is one off"))
    if rng.randrange(RUNS_ONE_IN) == 0 and plan["redistributions"]:
        answer = ask.Answer([meshplan, "run", "-", "-q"], text)
        if answer.code != 0:
            found.append(("run", "", f"run ends with {answer.code}: {answer.err[:300]}"))
    return found
