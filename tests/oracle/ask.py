"""Asks meshplan for the plan of a spec, and says what is wrong with the answer.

A finding is (kind, redistribution's id or "", text); the reducer keeps a spec only while it still
has a finding of the same kind.
"""
import json
import os
import re
import subprocess
import tempfile
import threading

import oracle

# What waits for defects of issue 15; each is switched on with the change that mends its defect.
NO_SIGNALS = False      # defect 1: a trace across meshes reads past a mesh's dims
TIME_IS_BOUNDED = False  # part 5, defect 3: a second of processor a redistribution

STOPPED_AFTER_S = 30
PROCESSOR_S = 1.0       # a redistribution, beside what a start takes
START_S = 0.5


class Answer:
    """Exit code (negative: the signal; None: stopped), stdout, stderr and processor time."""

    def __init__(self, command, text):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
            late = threading.Timer(STOPPED_AFTER_S, child.kill)
            late.start()
            try:
                child.stdin.write(text.encode())
                child.stdin.close()
            except BrokenPipeError:
                pass
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.stopped = not late.is_alive()
            late.cancel()
            out.seek(0)
            err.seek(0)
            self.code, self.out, self.err = child.returncode, out.read().decode(), err.read().decode()
            self.seconds = used.ru_utime


def plan_of(meshplan, spec, flags=()):
    return Answer([meshplan, "plan", "-", "-q", "-W", "no-missing-flatten", *flags], json.dumps(spec))


def without(spec, ids):
    return dict(spec, redistributions=[r for r in spec["redistributions"] if r["id"] not in ids])


def trouble(answer, spec, what):
    """Findings about how a command ended, exit 3 apart."""
    if answer.stopped:
        return [("time", "", f"{what} was stopped after {STOPPED_AFTER_S} s")] if TIME_IS_BOUNDED else []
    if answer.code < 0:
        return [("signal", "", f"{what} ended by signal {-answer.code}")] if NO_SIGNALS else []
    if answer.code not in (0, 3):
        return [("exit", "", f"{what} ended with {answer.code}: {answer.err[:400]}")]
    allowed = START_S + PROCESSOR_S * max(1, len(spec["redistributions"]))
    if TIME_IS_BOUNDED and answer.seconds > allowed:
        return [("time", "", f"{what} took {answer.seconds:.2f} s of processor")]
    return []


def findings_of(meshplan, spec):
    """Everything that is wrong with the answers to a spec."""
    while spec["redistributions"]:
        answer = plan_of(meshplan, spec)
        found = trouble(answer, spec, "plan")
        if found or answer.stopped or answer.code < 0:
            return found
        if answer.code == 0:
            break
        named = set(re.findall(r"redistribution '(r\d+)'", answer.err))
        if not named:
            return [("exit", "", f"plan ended with 3 and names no redistribution: {answer.err[:400]}")]
        spec = without(spec, named)
    if not spec["redistributions"]:
        return []
    plan = json.loads(answer.out)
    return [(kind, name, text) for name, kind, text in oracle.check_plan(spec, plan)]
