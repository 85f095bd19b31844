"""python -m meshplan.capture --world N -o SPEC PROGRAM ARGUMENTS...: records a program as one rank
of a world that does not exist: a fake process group, fake tensors, no GPU, no memory."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import traceback

from meshplan.needed import needing_torch
from meshplan.recorded_spec import NotReplaced, destination, handwritten


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m meshplan.capture",
        description="Records the redistributions of a PyTorch program as a meshplan spec.",
    )
    parser.add_argument(
        "--world", type=int, required=True, help="ranks of the world that the program runs in"
    )
    parser.add_argument("--rank", type=int, default=0, help="the rank to be (default 0)")
    parser.add_argument(
        "--real-tensors",
        action="store_true",
        help="real tensors instead of fake ones (the group stays fake)",
    )
    parser.add_argument(
        "--read-integer",
        type=int,
        default=1,
        metavar="N",
        help="what reading an integer from a fake tensor gives (default 1): in a mixture of "
        "experts, the rows for each peer",
    )
    parser.add_argument("-o", "--output", required=True, help="the spec to write")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not 0 <= given.rank < given.world:
        parser.error(f"--rank {given.rank} is not in a world of {given.world}")
    try:
        handwritten(destination(given.output))
    except NotReplaced as refusal:
        parser.error(str(refusal))
    try:
        with needing_torch("meshplan.capture"):
            import torch
            import torch._dynamo

            from meshplan.capture.pretend_world import pretend_world
            from meshplan.capture.recorder import record
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        print(f"meshplan: {missing}", file=sys.stderr)
        return 5
    sys.argv = [given.program, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.program))
    # A compiled region is seen once, when it is traced; run it as it is written.
    torch._dynamo.config.disable = True
    status, recorder = 0, None
    with contextlib.ExitStack() as stack:
        notes = {"program": os.path.basename(given.program), "world": given.world}
        if given.real_tensors:
            notes["real-tensors"] = True
        if given.read_integer != 1:
            notes["read-integer"] = given.read_integer
        stack.enter_context(
            pretend_world(given.world, given.rank, notes, given.real_tensors, given.read_integer)
        )
        try:
            with record(given.output) as recorder:
                recorder.notes = notes
                runpy.run_path(given.program, run_name="__main__")
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
            status = 1
    spec = recorder.spec
    distinct = len(spec["redistributions"])
    asked = sum(r.get("count", 1) for r in spec["redistributions"])
    print(
        f"{given.output}: {distinct} distinct redistribution{'s' * (distinct != 1)}, "
        f"{asked} in all",
        file=sys.stderr,
    )
    for entry in spec.get("x-not-covered", []):
        place = f" (first at {entry['x-source']})" if "x-source" in entry else ""
        print(
            f"not covered: {entry['what']} x{entry['count']}: {entry['reason']}{place}",
            file=sys.stderr,
        )
    if "x-incomplete" in spec:
        print(f"incomplete: the program ended with {spec['x-incomplete']}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
