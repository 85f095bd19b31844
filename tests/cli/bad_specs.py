#!/usr/bin/env python3
"""Bad specs through the command line: exit 2, every problem at its place with its message, nothing on stdout, no file made, none touched.

usage: bad_specs.py MESHPLAN

The expectations are those of the reader's own test: testdata/bad-specs/NAME.expect holds "file:line:column: code: message" a problem,
those that tests/spec/derive_bad_specs.py derives from good specs have one problem each, whose place and code it knows.
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / "testdata" / "bad-specs"
sys.path.insert(0, str(TOP / "tests" / "spec"))
import derive_bad_specs  # noqa: E402


def expectations(derived):
    """(file, how its lines of "file:line:column: code: message" begin)"""
    for path in sorted(FOLDER.glob("*.json")):
        yield path, path.with_suffix(".expect").read_text(encoding="utf-8").splitlines()
    for path, line in derive_bad_specs.write_to(derived):
        yield path, [line + ":"]


def run(meshplan, path, *more):
    # From the spec's own folder, so that the file is named as in the expectations.
    return subprocess.run([meshplan, *more[:1], path.name, *more[1:]], cwd=path.parent, stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=60)


def said(diagnostics):
    """As the expectations have it; the place of a topology's own file names that file."""
    document = json.loads(diagnostics)
    lines = []
    for each in document["diagnostics"]:
        place = each["place"]
        lines.append(f"{pathlib.Path(place['file']).name}:{place.get('line', 0)}:{place.get('column', 0)}: {each['code']}: {each['message']}")
    return lines, document["left_out"]


def problems(meshplan, path, expected):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        old, new = folder / "old.plan.json", folder / "new.plan.json"
        old.write_bytes(b"as it was\n")
        before = old.stat()
        for output in (old, new):
            done = run(meshplan, path, "plan", "-o", str(output), "--diagnostics", "json")
            if done.returncode != 2 or done.stdout:
                yield f"exit {done.returncode}, {len(done.stdout)} bytes on stdout"
            lines, left_out = said(done.stderr)
            right = len(lines) == len(expected) and all(line.startswith(start) for line, start in zip(lines, expected))
            if not right or left_out:
                yield "expected\n    " + "\n    ".join(expected) + "\n  and it says\n    " + "\n    ".join(lines)
        after = old.stat()
        same = (before.st_ino, before.st_mtime_ns, before.st_mode) == (after.st_ino, after.st_mtime_ns, after.st_mode)
        if not same or old.read_bytes() != b"as it was\n":
            yield "the output file that was there has changed"
        if sorted(folder.iterdir()) != [old]:
            yield f"files were left behind: {sorted(folder.iterdir())}"
    # For people: the code and the place of every problem, and only text that a terminal can show.
    done = run(meshplan, path, "check", "--color", "never")
    text = done.stderr.decode("utf-8", errors="strict")
    for line in expected:
        file, row, column, code = line.split(":")[:4]
        place = f"{file}:{row}:{column}" if row != "0" else file
        if f"error[{code.strip()}]: " not in text or place not in text:
            yield f"the text lacks {place} {code.strip()}"
    if done.returncode != 2 or any(ord(c) < 32 and c != "\n" for c in text):
        yield f"check: exit {done.returncode}, or control characters in\n{text}"


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    meshplan = str(pathlib.Path(arguments[0]).resolve())
    with tempfile.TemporaryDirectory() as derived, concurrent.futures.ThreadPoolExecutor() as pool:
        cases = list(expectations(derived))
        answers = list(pool.map(lambda case: list(problems(meshplan, *case)), cases))
    failures = [f"{path.name}: {problem}" for (path, _), found in zip(cases, answers) for problem in found]
    print("\n".join(failures) or f"{len(cases)} bad specs are rejected as expected")
    return 1 if failures or len(cases) < 300 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
