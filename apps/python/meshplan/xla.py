"""What XLA compiles for a jitted function, beside the plan of its reshardings."""

from __future__ import annotations

import json
import os
import re
import tempfile

from meshplan import hlo_collectives
from meshplan.library import plan

REMATERIALIZED = re.compile(
    r"nvoluntary full rematerialization.*?from sharding (\{.*?\}) to (\{.*?\}) efficiently for HLO "
    r"operation "
    r"%?[\w.\-]+ = (\w+\[[\d,]*\])(?:.*?op_name=\"([^\"]*)\")?"
)


def rematerialized_tensor(line):
    found = REMATERIALIZED.search(line)
    if found is None:
        return "a tensor"
    place = f", at {found[4]}" if found[4] else ""
    return f"{found[3]} from {found[1]} to {found[2]}{place}"


def compile_by_xla(jitted, arguments):
    """The optimised module, and a line for each tensor that XLA gave up on and replicated
    ("involuntary full rematerialization")."""
    with tempfile.TemporaryFile() as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            text = jitted.lower(*arguments).compile().as_text()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        log.seek(0)
        cases = []
        for line in log.read().decode(errors="replace").splitlines():
            if "nvoluntary full rematerialization" in line:
                cases.append(rematerialized_tensor(line))
        return text, cases


def compare(name, jitted, arguments, spec, devices):
    """Lines of text: the collectives of a compiled function beside those of its spec's plan."""
    text, remat = compile_by_xla(jitted, arguments)
    collectives = hlo_collectives.collectives(text, devices)
    asked = sum(r["count"] for r in spec["redistributions"])
    lines = [f"{name}: {asked} redistribution{'s' * (asked != 1)}"]
    ops = {}
    for op, _, times in collectives:
        ops[op] = ops.get(op, 0) + times
    row = "  {:<9} {:>14,} bytes received a rank  {:>4} collectives   {}"
    listed = ", ".join(f"{op} {n}" for op, n in sorted(ops.items()))
    if remat:
        listed += f"   involuntary rematerialization x{len(remat)}"
    received = sum(b * n for _, b, n in collectives)
    lines.append(row.format("XLA", received, sum(ops.values()), listed))
    lines += [f"            replicated whole: {case}" for case in remat]
    halves = any(r["tensor"]["dtype"] in ("bfloat16", "float16") for r in spec["redistributions"])
    if halves and not re.search(r"(bf16|f16)\[[^=]*? (all-|reduce-scatter|collective-)", text):
        lines.append(
            "            (compiled for the CPU, which moves 16-bit floats as float32: "
            "a GPU receives about half of those bytes)"
        )
    totals = json.loads(plan(spec))["totals"]
    bound = f"lower bound {totals['lower_bound_bytes']:,} bytes"
    lines.append(row.format("meshplan", totals["wire_bytes"], totals["collectives"], bound))
    return "\n".join(lines)
