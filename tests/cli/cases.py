#!/usr/bin/env python3
"""Command-line cases: each folder of testdata/cli holds a command and what it must print and answer.

usage: cases.py MESHPLAN [--record] [CASE...]      --record writes what comes out now; commit that by itself, with the reason

  cmd    lines for bash, run in a scratch folder with `meshplan` on the PATH; other files of the case lie there too, testdata/specs as specs/
  out    stdout (absent: empty)        err    stderr (absent: empty)        code   exit status (absent: 0)
"""
import concurrent.futures
import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
CASES = TOP / "testdata" / "cli"
EXPECTATIONS = ("out", "err", "code")


def run_case(case, meshplan):
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for file in case.iterdir():
            if file.name not in ("cmd",) + EXPECTATIONS:
                shutil.copy(file, scratch)
        (scratch / "specs").symlink_to(TOP / "testdata" / "specs")
        environment = {"PATH": f"{meshplan.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8", "COLUMNS": "140", "HOME": name,
                       "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                       "GIT_COMMITTER_EMAIL": "a@b"}
        for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if key in os.environ:
                environment[key] = os.environ[key]
        result = subprocess.run(["bash", "-c", (case / "cmd").read_text()], cwd=scratch, env=environment, stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=120, check=False)
        return {"out": result.stdout, "err": result.stderr, "code": b"%d\n" % result.returncode}


def expected_of(case):
    wanted = {"out": b"", "err": b"", "code": b"0\n"}
    for key in wanted:
        if (case / key).exists():
            wanted[key] = (case / key).read_bytes()
    return wanted


def record(case, found):
    for key, text in found.items():
        path = case / key
        if text == (b"0\n" if key == "code" else b""):
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(text)


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    meshplan = pathlib.Path(arguments[0]).resolve()
    recording = "--record" in arguments
    names = [a for a in arguments[1:] if a != "--record"]
    cases = sorted(c for c in CASES.iterdir() if c.is_dir() and (not names or c.name in names))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda case: run_case(case, meshplan), cases))
    failures = []
    for case, found in zip(cases, answers):
        if recording:
            record(case, found)
            continue
        wanted = expected_of(case)
        for key in EXPECTATIONS:
            if found[key] != wanted[key]:
                lines = [text.decode(errors="replace").splitlines(keepends=True) for text in (wanted[key], found[key])]
                difference = list(difflib.unified_diff(*lines, f"testdata/cli/{case.name}/{key}", "what comes out now"))
                failures.append("".join(line if line.endswith("\n") else line + "\n" for line in difference[:60]))
    if failures:
        failures.append("if that is right: tests/cli/cases.py MESHPLAN --record")
    print("\n".join(failures) or f"{len(cases)} command-line cases " + ("recorded" if recording else "are as expected"))
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
