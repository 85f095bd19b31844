"""Schedules of a bundle that other words of its question give: none takes less than its bound.

Members one by one, each in a bundle of its own, are a schedule of them all; and what all take is no
less than the bound of each. What is planned with less freedom, less staging, fewer groups or in one
order of the target, is allowed with more.
"""
import json

import ask
import listed_bundles
from meaning import Complaint


def bundles_of(meshplan, spec):
    """The bundles that are planned of a spec, by id; None where it is refused."""
    answer = ask.plan_of(meshplan, spec)
    if answer.code == 3:
        return None
    for kind, _, text in ask.trouble(answer, spec, "plan of a rival"):
        raise Complaint(kind, f"{text}\n  {json.dumps(spec)}")
    return {bundle["id"]: bundle for bundle in json.loads(answer.out)["bundles"]}


def with_options(spec, **options):
    return dict(spec, options={**spec.get("options", {}), **options})


def with_limits(spec, **limits):
    return dict(spec, bundles=[{**bundle, **limits} for bundle in spec["bundles"]])


def narrower(spec, bundles):
    """(what it is, a spec with less freedom) for each of some."""
    asked = spec.get("options", {})
    if asked.get("groups") == "any":
        yield "on declared groups", with_options(spec, groups="declared")
    if asked.get("max_memory_bytes", 0) == -1:
        yield "in the memory of both ends", with_options(spec, max_memory_bytes=0)
    if not asked.get("one_reduction"):
        yield "each sum in one reduction", with_options(spec, one_reduction=True)
    staged = max(bundle["totals"]["staging_bytes"] for bundle in bundles.values())
    if staged > 2:
        yield "in less staging", with_limits(spec, max_staging_bytes=staged // 2)


def check_one_by_one(meshplan, spec, plan):
    """Each member in a bundle of its own."""
    for bundle in plan["bundles"]:
        limits = {key: bundle[key] for key in ("max_messages", "max_staging_bytes")}
        names = listed_bundles.members_named(plan, bundle)
        if len(names) < 2:
            continue
        alone = bundles_of(meshplan, dict(spec, bundles=[{"id": name, "redistributions": [name], **limits} for name in names]))
        if alone is None:
            continue
        whole, parts = bundle["totals"], [one["totals"] for one in alone.values()]
        together = sum(one["predicted_ns"] for one in parts)
        if whole["lower_bound_ns"] > together:
            raise Complaint("beaten", f"{bundle['id']}: bound {whole['lower_bound_ns']}, its members one by one take {together}")
        for name, one in zip(alone, parts):
            if one["lower_bound_ns"] > whole["predicted_ns"]:
                raise Complaint("beaten", f"{name}: bound {one['lower_bound_ns']}, with others it takes {whole['predicted_ns']}")


def check_rival(meshplan, bundles, what, rival):
    for name, other in (bundles_of(meshplan, rival) or {}).items():
        least, taken = bundles[name]["totals"]["lower_bound_ns"], other["totals"]["predicted_ns"]
        if least > taken:
            raise Complaint("beaten", f"{name}: bound {least}, {what} it takes {taken}")


def check_orders(meshplan, spec):
    """Of many tensors, whose bytes say which order is best, where of one latencies may."""
    many = [dict(red, count=1000 * red.get("count", 1)) for red in spec["redistributions"]]
    fixed = [{key: value for key, value in red.items() if key != "dst_order" or value != "any"} for red in many]
    if many != fixed:
        spec = with_limits(spec, max_staging_bytes=0)
        bundles = bundles_of(meshplan, dict(spec, redistributions=many))
        if bundles:
            check_rival(meshplan, bundles, "in the order of the mesh dims", dict(spec, redistributions=fixed))


def check(meshplan, spec, plan):
    bundles = {bundle["id"]: bundle for bundle in plan["bundles"]}
    check_one_by_one(meshplan, spec, plan)
    check_orders(meshplan, spec)
    for what, rival in narrower(spec, bundles):
        check_rival(meshplan, bundles, what, rival)
