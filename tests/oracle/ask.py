"""Asks meshplan for the plan of a spec, and says what is wrong with the answer.

A finding is (kind, redistribution's id or "", text); the reducer keeps a spec only while it still
has a finding of the same kind.
"""
import json
import os
import re
import resource
import signal
import subprocess
import tempfile

import oracle
import proofs
import rivals

STOPPED_AFTER_S = 10    # of processor
PROCESSOR_S = 1.0       # a redistribution may take, beside a start, where times are looked at (--timed)
START_S = 0.5
timed = False           # machines differ: times are for runs by hand
MOST_BYTES = 4 << 30


def limit(process):
    """From outside, just after its start: a function that Popen calls in the child would have it copy
    all of this process's memory map first, which takes longer than most plans."""
    for kind, most in ((resource.RLIMIT_CPU, (STOPPED_AFTER_S, STOPPED_AFTER_S + 1)),
                       (resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)), (resource.RLIMIT_CORE, (0, 0))):
        resource.prlimit(process, kind, most)


class Answer:
    """Exit code (negative: the signal), stdout, stderr and processor time of a command."""

    def __init__(self, command, text=""):
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err:
            given.write(text.encode())
            given.seek(0)
            with subprocess.Popen(command, stdin=given, stdout=out, stderr=err) as child:
                limit(child.pid)
                _, status, used = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.code, self.out, self.err = child.returncode, out.read().decode(), err.read().decode()
            self.stopped = self.code == -signal.SIGXCPU
            self.seconds = used.ru_utime


def plan_of(meshplan, spec, flags=()):
    return Answer([meshplan, "plan", "-", "-q", "-W", "no-missing-flatten", *flags], json.dumps(spec))


def without(spec, ids):
    return dict(spec, redistributions=[r for r in spec["redistributions"] if r["id"] not in ids])


def trouble(answer, spec, what):
    """Findings about how a command ended."""
    if answer.stopped:
        return [("time", "", f"{what} was stopped after {STOPPED_AFTER_S} s")]
    if answer.code < 0:
        return [("signal", "", f"{what} ended by signal {-answer.code} {answer.err[:300]}")]
    if answer.code != 0:
        return [(f"exit {answer.code}", "", f"{what} ended with {answer.code}: {answer.err[:400]}")]
    allowed = START_S + PROCESSOR_S * max(1, len(spec["redistributions"]))
    if timed and answer.seconds > allowed:
        return [("time", "", f"{what} took {answer.seconds:.2f} s of processor")]
    return []


def plan_in(answer):
    return json.loads(answer.out)


def plan_where_there_is(meshplan, spec, flags=()):
    """(the answer for those redistributions of a spec that have a plan, the spec of these); None
    where none has."""
    while spec["redistributions"]:
        answer = plan_of(meshplan, spec, flags)
        named = set(re.findall(r"redistribution '(r\d+)'", answer.err))
        if answer.code != 3 or not named:
            return answer, spec
        spec = without(spec, named)
    return None, spec


def findings_of(meshplan, spec):
    """Everything that is wrong with the answers to a spec."""
    answer, spec = plan_where_there_is(meshplan, spec)
    found = trouble(answer, spec, "plan") if answer else []
    if found or not answer:
        return found
    found = [(kind, name, text) for name, kind, text in oracle.check_plan(spec, plan_in(answer))]
    found += proofs.findings_of(meshplan, answer.out)
    return found + rivals.findings_of(meshplan, spec)
