#!/usr/bin/env python3
"""Random bundles: their transfers are executed and their figures recounted by code of the oracle's own.

usage: bundles.py --meshplan BIN [--seeds FIRST:END,...] [--jobs N] [--keep FOLDER] [--spec FILE]

Every seed is a spec: those below 1,000,000 of random_bundles.py, others of wider_bundles.py. Checked
of its plan: the schemas; that `verify` accepts it and refuses it with one figure changed; that the
rows of `transfers --bundle`, executed in the order of waves, bring every element to every rank once;
messages, staging and limits; bytes, memory and times, recounted; that nothing beats what must move
and that one round of direct transfers does not beat the plan, nor targets that pass on what they
fetched its bound (bundle_figures.py); that the members' steps are right by themselves (oracle.py);
that what the members take one by one is what they take without a bundle, and that no rival beats a
bound (bundle_rivals.py). A refusal must be about limits that no tensor could keep to.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import re
import sys
import tempfile
import time

import jsonschema  # Debian: python3-jsonschema

import ask
import bundle_figures
import bundle_rivals
import figures
import listed_bundles
import oracle
import proofs
import random_bundles
import wider_bundles
from meaning import Complaint, meshes_of
from reduce import reduced
from seeds import seeds_of

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schemas"
SLOW_ONE_IN = 6  # seeds: CSV, --rank, `run`, `show`, `diff`, schema of the transfers
MOST_REDUCED = 5  # findings of each kind
FIRST_WIDER = 1_000_000
ROUND_FIGURES = ("wire_bytes", "staging_bytes", "messages", "predicted_ns")
BUNDLE_TOTALS = ("rounds", "wire_bytes", "staging_bytes", "peak_bytes", "messages", "predicted_ns")


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return jsonschema.Draft7Validator(schema)


def members_of(spec, bundle):
    names = bundle["redistributions"]
    return [r for r in spec["redistributions"]
            if any(r["id"] == n or (n[-1] == "*" and r["id"].startswith(n[:-1])) for n in names)]


def check_refusal(meshplan, spec, answer, seen):
    """Exit 3 says staging or messages of a bundle, that not even its tensors one by one keep to; or
    names a redistribution that has no plan without the bundle either."""
    alone = ask.plan_of(meshplan, {k: v for k, v in spec.items() if k != "bundles"})
    if alone.code == 3:
        seen["no plan without a bundle"] += 1
        return
    named = [b for b in spec["bundles"] if f"bundle '{b['id']}'" in answer.err]
    of_staging = re.search(r"no rounds within max_staging_bytes (\d+) of those that were tried: some take (\d+) bytes", answer.err)
    of_messages = re.search(r"no rounds within max_messages ([\d,]+) of those that were tried: some have ([\d,]+) messages", answer.err)
    if not named or not (of_staging or of_messages):
        raise Complaint("refused", f"exit 3 says {answer.err[:300]}")
    if of_messages and len(spec["bundles"]) == 1:
        allowed, enough = (int(number.replace(",", "")) for number in of_messages.groups())
        wider = {**spec, "bundles": [{**spec["bundles"][0], "max_messages": enough}]}
        again = ask.plan_of(meshplan, wider)
        if enough <= allowed or (again.code != 0 and "max_staging_bytes" not in again.err):
            raise Complaint("refused", f"{of_messages[0]}, and with these exit {again.code}: {again.err[:300]}")
    if of_staging and len(spec["bundles"]) == 1:
        wider = {**spec, "bundles": [{**spec["bundles"][0], "max_staging_bytes": int(of_staging[2])}]}
        again = ask.plan_of(meshplan, wider)
        if int(of_staging[2]) <= int(of_staging[1]) or again.code != 0:
            raise Complaint("refused", f"{of_staging[0]}, and with these exit {again.code}: {again.err[:300]}")
    seen["refused"] += 1
    meshes = meshes_of(spec)
    levels = oracle.levels_of(json.loads(alone.out)["topology"])
    if spec.get("options", {}).get("max_memory_bytes", 0) > 0:
        return
    for bundle in named:
        if bundle_figures.must_fit(bundle, members_of(spec, bundle), meshes, levels):
            raise Complaint("refused", f"its tensors fit one by one: {answer.err[:300]}")


def check_members(spec, plan):
    """The plan has the bundles of the spec, with their members and limits."""
    for asked, bundle in zip(spec["bundles"], plan["bundles"], strict=True):
        members = members_of(spec, asked)
        expected = {"id": asked["id"], "count": asked.get("count", 1), "max_messages": asked.get("max_messages", 1024),
                    "max_staging_bytes": asked.get("max_staging_bytes", 2 << 30), "members": [r["id"] for r in members],
                    "tensors": sum(r.get("count", 1) for r in members)}
        found = {**bundle, "members": listed_bundles.members_named(plan, bundle)}
        for key, value in expected.items():
            if found[key] != value:
                raise Complaint("members", f"{asked['id']}: {key} is {found[key]}, expected {value}")


def check_alone(meshplan, spec, plan):
    """What members take one by one is what they take without a bundle, and a schedule."""
    answer = ask.plan_of(meshplan, {key: value for key, value in spec.items() if key != "bundles"})
    for kind, _, text in ask.trouble(answer, spec, "plan without bundles"):
        raise Complaint(kind, text)
    reds, alone = {}, json.loads(answer.out)
    for red in alone["redistributions"]:
        reds[red["id"]] = {**reds[red["same_as"]], "count": red["count"]} if "same_as" in red else red
    for bundle in plan["bundles"]:
        members = [reds[m] for m in listed_bundles.members_named(plan, bundle)]
        most = sum(r["count"] * r["totals"]["predicted_ns"] for r in members)
        least = most - sum(r["count"] for r in members if r["totals"]["predicted_ns"])
        if not least <= bundle["alone_ns"] <= most:
            raise Complaint("alone", f"{bundle['id']}: alone_ns {bundle['alone_ns']}, its members make {least} to {most}")
        if bundle["totals"]["lower_bound_ns"] > bundle["alone_ns"]:
            raise Complaint("bound", f"{bundle['id']}: bound {bundle['totals']['lower_bound_ns']} above alone_ns {bundle['alone_ns']}")


def check_steps(spec, plan):
    """The steps of every redistribution lead from its source to its target, and their figures are right."""
    meshes, levels, specs = meshes_of(spec), oracle.levels_of(plan["topology"]), {r["id"]: r for r in spec["redistributions"]}
    for number, red in enumerate(plan["redistributions"]):
        if "same_as" not in red:
            steps = oracle.check_redistribution(specs[red["id"]], red, meshes, levels, number)
            figures.check_steps(plan, red, steps)


def check_read(meshplan, text):
    """`show` prints it, and it differs in nothing from itself."""
    for form in ("text", "markdown", "json", "svg", "html", "mermaid", "dot", "perfetto"):
        shown = ask.Answer([meshplan, "show", "-", "--format", form], text)
        if shown.code != 0 or not shown.out:
            raise Complaint("show", f"{form} ends with {shown.code}: {shown.err[:300]}")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        differs = ask.Answer([meshplan, "diff", file.name, file.name])
        if differs.code != 0:
            raise Complaint("diff", f"of itself ends with {differs.code}: {differs.out[:300]}{differs.err[:300]}")


def check_mutant(meshplan, plan, seed):
    """One figure of a bundle changed by one, and the digest redone: `verify` ends with 4."""
    rng = random.Random(seed)
    number = rng.randrange(len(plan["bundles"]))
    bundle = plan["bundles"][number]
    at = ("bundles", number)
    places = [(*at, "totals", key) for key in BUNDLE_TOTALS] + [(*at, "proven_gap_ns"), (*at, "tensors")]
    places += [(*at, "rounds", r, key) for r in range(len(bundle["rounds"])) for key in ROUND_FIGURES]
    places += [(*at, "rounds", r, "parts", p, "step") for r, made in enumerate(bundle["rounds"]) for p in range(len(made["parts"]))]
    place = rng.choice(places)
    mutant = proofs.changed(plan, place, rng.choice((-1, 1)))
    if mutant is None:
        return
    answer = ask.Answer([meshplan, "verify", "-", "-q"], proofs.with_digest(mutant))
    if answer.code != 4 and not (place[-1] in ("step", "tensors", "rounds") and answer.code in (2, 3)):
        raise Complaint("mutant", f"verify ends with {answer.code} where {place} is one off: {answer.err[:200]}")


def waves_of(rounds):
    """A round runs one wave behind the latest that it waits for, and behind the last on its stream."""
    waves, last = [], {}
    for planned in rounds:
        before = [waves[r] for r in planned.get("after", [])] + [last.get(planned.get("stream", 0), -1)]
        waves.append(max(before) + 1)
        last[planned.get("stream", 0)] = waves[-1]
    return waves


def note_seen(plan, bundle, seen):
    two_phases = {r["id"]: [number for number, step in enumerate(r["steps"]) if step.get("phases") == 2]
                  for r in plan["redistributions"] if "steps" in r}
    seen["bundles"] += 1
    seen["several rounds"] += len(bundle["rounds"]) > 1
    seen["streams"] += any(r.get("stream", 0) for r in bundle["rounds"])
    seen["pieces"] += any("pieces" in p for r in bundle["rounds"] for p in r["parts"])
    seen["two phases"] += any(p["step"] in two_phases.get(p["id"], ()) for r in bundle["rounds"] for p in r["parts"])
    seen["two steps"] += any(p["step"] > 0 for r in bundle["rounds"] for p in r["parts"])
    ops = {}
    for planned, wave in zip(bundle["rounds"], waves_of(bundle["rounds"])):
        seen["collectives"] += planned["op"] != "exchange"
        ops.setdefault(wave, set()).add(planned["op"])
    seen["collectives beside others"] += any(len(of_wave) > 1 for of_wave in ops.values())


def check_bundle(meshplan, spec, plan, bundle, path, slow):
    words = ("transfers", path, "--bundle", bundle["id"])
    answer = ask.Answer([meshplan, *words])
    if answer.code != 0:
        raise Complaint("transfers", f"{bundle['id']}: exit {answer.code}: {answer.err[:300]}")
    document = json.loads(answer.out)
    if slow:
        for error in validator("transfers").iter_errors(document):
            raise Complaint("schema", f"transfers: {error.json_path}: {error.message[:200]}")
        listed_bundles.bundle_csv_matches(document, ask.Answer([meshplan, *words, "--format", "csv"]).out)
        if any(part["transfers"] for r in document["rounds"][:1] for part in r["parts"][:1]):
            listed_bundles.check_one_rank(meshplan, words, document)
    meshes = meshes_of(spec)
    run, messages = listed_bundles.execute_bundle(plan, bundle, document, meshes)
    messages = {k: n for k, n in messages.items() if bundle["rounds"][k[0]]["op"] == "exchange"}
    waves, levels = [r["wave"] for r in document["rounds"]], oracle.levels_of(plan["topology"])
    beside = bundle_figures.collectives_of(run, waves, levels, meshes)
    bundle_figures.check_rounds(plan, bundle, waves, messages, levels, beside)
    bundle_figures.check_memory(run, waves, messages, meshes)
    asked = next(b for b in spec["bundles"] if b["id"] == bundle["id"])
    bundle_figures.check_bound(plan, bundle, members_of(spec, asked), meshes, levels)
    return bundle_figures.check_relayed(plan, bundle, members_of(spec, asked), meshes, levels)


def check_spec(meshplan, spec, number, seen):
    answer = ask.plan_of(meshplan, spec)
    if answer.code == 3:
        check_refusal(meshplan, spec, answer, seen)
        return
    for kind, _, text in ask.trouble(answer, spec, "plan"):
        raise Complaint(kind, text)
    plan, slow = json.loads(answer.out), number % SLOW_ONE_IN == 0
    for error in validator("plan").iter_errors(plan):
        raise Complaint("schema", f"plan: {error.json_path}: {error.message[:200]}")
    check_members(spec, plan)
    check_alone(meshplan, spec, plan)
    check_steps(spec, plan)
    bundle_rivals.check(meshplan, spec, plan)
    proof = ask.Answer([meshplan, "verify", "-", "-q"], answer.out)
    if proof.code != 0:
        raise Complaint("verify", f"refuses a plan ({proof.code}): {proof.err[:300]}")
    if slow:
        replayed = ask.Answer([meshplan, "run", "-", "-q"], answer.out)
        if replayed.code != 0:
            raise Complaint("run", f"ends with {replayed.code}: {replayed.out[-300:]}{replayed.err[:300]}")
        check_read(meshplan, answer.out)
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"bundle-oracle-{os.getpid()}.plan.json")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(answer.out)
        for bundle in plan["bundles"]:
            note_seen(plan, bundle, seen)
            seen["passed on"] += check_bundle(meshplan, spec, plan, bundle, path, slow)
    finally:
        os.unlink(path)
    check_mutant(meshplan, plan, number)


def findings(meshplan, spec, number):
    seen = collections.Counter()
    try:
        check_spec(meshplan, spec, number, seen)
    except Complaint as complaint:
        return [(complaint.kind, str(complaint))], seen
    except (KeyError, IndexError, ValueError) as error:
        at = error.__traceback__
        while at.tb_next:
            at = at.tb_next
        where = f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
        return [("oracle", f"the oracle cannot follow: {type(error).__name__} {error} ({where})")], seen
    return [], seen


def preset_of(meshplan, name):
    """A preset's topology as a spec may have it."""
    spec = {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 2}]}, "topology": name, "redistributions": []}
    topology = json.loads(ask.plan_of(meshplan, spec).out)["topology"]
    return {key: value for key, value in topology.items() if key != "source"}


def spec_of(meshplan, seed):
    if seed < FIRST_WIDER:
        return random_bundles.spec_of(seed)
    return wider_bundles.spec_of(seed, lambda name: preset_of(meshplan, name))


def seed_findings(task):
    meshplan, seed = task
    return seed, *findings(meshplan, spec_of(meshplan, seed), seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--meshplan", required=True)
    parser.add_argument("--seeds", type=seeds_of, default="0:60",
                        help=f"FIRST:END, several with commas; from {FIRST_WIDER} on of wider worlds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="a folder for specs that have findings, reduced")
    parser.add_argument("--spec", help="a spec file instead of seeds")
    options = parser.parse_args()
    meshplan = os.path.abspath(options.meshplan)
    if options.spec:
        with open(options.spec, encoding="utf-8") as file:
            found, _ = findings(meshplan, json.load(file), 0)
        print("\n".join(": ".join(finding) for finding in found) or "no finding")
        return 1 if found else 0
    started, bad, seen = time.time(), collections.Counter(), collections.Counter()
    with multiprocessing.Pool(options.jobs) as pool:
        tasks = ((meshplan, seed) for seed in options.seeds)
        for seed, found, noted in pool.imap_unordered(seed_findings, tasks, chunksize=2):
            seen.update(noted)
            for kind, text in found:
                bad[kind] += 1
                print(f"seed {seed}: {text}", flush=True)
                if options.keep and bad[kind] <= MOST_REDUCED:
                    small = reduced(spec_of(meshplan, seed), lambda spec: kind in [k for k, _ in findings(meshplan, spec, seed)[0]])
                    path = pathlib.Path(options.keep) / f"found-bundle-{seed}.json"
                    path.write_text(json.dumps(small))
    missing = [name for name in ("several rounds", "two steps", "collectives", "refused") if not seen[name]]
    if missing and len(options.seeds) >= 60:
        print(f"never came up: {missing}")
    print(f"{len(options.seeds)} worlds with bundles, findings {dict(bad)}, came up {dict(seen)}, {time.time() - started:.0f} s")
    return 1 if bad or (missing and len(options.seeds) >= 60) else 0


if __name__ == "__main__":
    sys.exit(main())
