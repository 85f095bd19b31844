#!/usr/bin/env python3
"""Golden diffs: what `diff` says of captured workloads without their flattens and with them, on another mesh, in another dtype, by another
planner, as text, Markdown and JSON; nothing of a plan against itself; a comment that stays one, however much changes.

usage: diffs.py MESHPLAN [--record]      --record writes what comes out now; commit that by itself, with the reason

testdata/diffs/<workload>.<change>.{txt,md,json} hold what is expected.
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
DIFFS = TOP / "testdata" / "diffs"
# Each workload with its mesh written otherwise.
WORKLOADS = {"llama3-8b-fsdp8-tp8": ('"name": "fsdp", "size": 8', '"name": "fsdp", "size": 4'),
             "llama3-8b-hsdp2x8-tp4": ('"name": "tp", "size": 4', '"name": "tp", "size": 2')}
FORMATS = {"text": "txt", "markdown": "md", "json": "json"}
COMMENT_LIMIT = 65000


class Scratch:
    def __init__(self, meshplan, folder):
        self.meshplan, self.folder = meshplan, pathlib.Path(folder)

    def run(self, *arguments, codes=(0,)):
        done = subprocess.run([self.meshplan, *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode not in codes:
            sys.exit(f"meshplan {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done

    def plan(self, name, text, *flags):
        (self.folder / f"{name}.json").write_text(text, encoding="utf-8")
        self.run("plan", f"{name}.json", "-o", f"{name}.plan.json", "-q", "-W", "no-missing-flatten", *flags)
        return f"{name}.plan.json"


def changes(scratch, workload):
    """(name of the change, old plan, new plan)"""
    specs = TOP / "testdata" / "specs"
    flat = (specs / f"{workload}-flattened.json").read_text(encoding="utf-8")
    before, after = WORKLOADS[workload]
    assert before in flat and '"bfloat16"' in flat
    whole = scratch.plan("flat", flat)
    bare = scratch.plan("bare", (specs / f"{workload}.json").read_text(encoding="utf-8"))
    yield "without-flattens", whole, bare
    yield "with-flattens", bare, whole
    yield "mesh-shape", whole, scratch.plan("mesh", flat.replace(before, after))
    yield "dtype", whole, scratch.plan("dtype", flat.replace('"bfloat16"', '"float32"'))
    yield "planner", whole, scratch.plan("planner", flat, "--planner", "greedy")


def compare(scratch, record):
    failures, seen = [], set()
    for workload in WORKLOADS:
        for change, old, new in changes(scratch, workload):
            for kind, ending in FORMATS.items():
                text = scratch.run("diff", old, new, "--format", kind, codes=(1,)).stdout
                path = DIFFS / f"{workload}.{change}.{ending}"
                seen.add(path)
                if record:
                    path.write_text(text, encoding="utf-8")
                wanted = path.read_text(encoding="utf-8") if path.exists() else ""
                if text != wanted:
                    lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"testdata/diffs/{path.name}", "what diff says now", "", "", 0, "")
                    failures.append("\n".join(line[:300] for line in list(lines)[:30]))
                if kind == "markdown":
                    failures += comment_problems(path.name, text)
            for side in (old, new):
                failures += itself_problems(scratch, side)
            verdict = json.loads((DIFFS / f"{workload}.{change}.json").read_text(encoding="utf-8"))["verdict"]
            for condition in ("dearer", "numerics", "warnings"):
                code = scratch.run("diff", old, new, "--fail-on", condition, codes=(0, 1)).returncode
                if code != verdict[condition]:
                    failures.append(f"{workload} {change}: --fail-on {condition} exits {code}, the verdict says {verdict[condition]}")
    for path in set(DIFFS.iterdir()) - seen:
        failures.append(f"testdata/diffs/{path.name} belongs to no change")
    return failures


def itself_problems(scratch, plan):
    done = scratch.run("diff", plan, plan)
    if done.stdout or done.stderr:
        yield f"{plan} against itself: {done.stdout}{done.stderr}"
    verdict = json.loads(scratch.run("diff", plan, plan, "--format", "json").stdout)["verdict"]
    if verdict["different"] or verdict["severity"] != "none":
        yield f"{plan} against itself: {verdict}"
    if scratch.run("diff", plan, plan, "--format", "markdown", "--only-if", "any").stdout:
        yield f"{plan} against itself: a comment although --only-if any"


def comment_problems(name, text):
    """What would make GitHub refuse a comment or show it broken."""
    if not text.startswith("<!-- meshplan-diff -->\n") or len(text) > COMMENT_LIMIT:
        yield f"{name}: {len(text)} characters, beginning with {text[:30]!r}"
    if text.count("<details>") != text.count("</details>") or text.count("```") % 2:
        yield f"{name}: a fold or a block of code is not closed"
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        columns = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        if len(columns) != 1 or "\n| TOTAL |" not in table:
            yield f"{name}: a table of rows with {sorted(columns)} bars, {'with' if 'TOTAL' in table else 'without'} a TOTAL"
    if len(tables) != 1:
        yield f"{name}: {len(tables)} tables"


def large_problems(scratch):
    """4,000 redistributions that all change, with names as awkward as can be."""
    def spec(flattened):
        rows = [{"id": f"layers.{i}|<b>`wq`</b>.grad", "tensor": {"shape": [64 + i, 64], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"],
                 "dst": ["R", "R"], "count": i + 1} for i in range(4000)]
        dims = [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]
        return json.dumps({"schema": "meshplan/spec/1", "mesh": {"dims": dims, "flattened": flattened}, "redistributions": rows})
    old = scratch.plan("large-old", spec([{"dims": ["dp", "tp"]}]))
    new = scratch.plan("large-new", spec([]))
    for detail in ("summary", "changes", "full"):
        text = scratch.run("diff", old, new, "--format", "markdown", "--detail", detail, codes=(1,)).stdout
        yield from comment_problems(f"4,000 changes, {detail}", text)
        # Cut by no more than has to go: a comment with little in it would be no answer either.
        if "The rest was omitted" not in text or len(text) < COMMENT_LIMIT // 3 or "4,000 redistributions differ" not in text:
            yield f"4,000 changes, {detail}: {len(text)} characters\n{text[:400]}"
        if "layers.3999" not in text:
            yield f"4,000 changes, {detail}: the dearest change is not among those shown"


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--record"]):
        print(__doc__, file=sys.stderr)
        return 2
    DIFFS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(str(pathlib.Path(arguments[0]).resolve()), folder)
        failures = compare(scratch, len(arguments) > 1) + list(large_problems(scratch))
    print("\n".join(failures) or f"{len(list(DIFFS.iterdir()))} golden diffs are the same")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
