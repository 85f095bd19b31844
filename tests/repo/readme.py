#!/usr/bin/env python3
"""Keeps README.md true: every `console` block is run again and must print what the README shows, every spec in it must plan.

usage: readme.py MESHPLAN [--update]      --update writes what the commands print now into README.md

A console block holds commands (`$ command`), each followed by what it prints on stdout and stderr. They run in one scratch folder that looks
like the project's top, with `meshplan` on the PATH. A line `...` stands for any lines; --update keeps as many lines around it as there were.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
README = TOP / "README.md"
BLOCK = re.compile(r"^```(console|jsonc)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command, folder, meshplan):
    environment = {**os.environ, "PATH": f"{pathlib.Path(meshplan).parent}:{os.environ['PATH']}", "MESHPLAN": meshplan, "NO_COLOR": "1",
                   "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "COLUMNS": "150", "TERM": "dumb"}
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=120, check=False)
    return result.stdout.decode()


def commands_of(block):
    """[command, lines that it is shown to print]; a command that ends in a backslash goes on in the next line."""
    commands = []
    for line in block.splitlines():
        if commands and not commands[-1][1] and commands[-1][0].endswith("\\"):
            commands[-1][0] += "\n" + line
        elif line.startswith("$ "):
            commands.append([line[2:], []])
        else:
            commands[-1][1].append(line)
    return commands


def shortened(actual, shown):
    """The lines that a command prints, cut where the README cuts them."""
    if "..." not in shown:
        return actual
    head = shown.index("...")
    tail = len(shown) - head - 1
    return actual[:head] + ["..."] + actual[len(actual) - tail:] if len(actual) > head + tail else actual


def rewritten(block, folder, meshplan):
    lines = []
    for command, shown in commands_of(block):
        lines += ["$ " + command] + shortened(run(command, folder, meshplan).rstrip().splitlines(), shown)
    return "\n".join(lines) + "\n"


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--update"]):
        print(__doc__, file=sys.stderr)
        return 2
    meshplan = str(pathlib.Path(arguments[0]).resolve())
    old = README.read_text(encoding="utf-8")
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for entry in TOP.iterdir():
            if not entry.name.startswith((".", "build")):
                (folder / entry.name).symlink_to(entry)

        def replace(match):
            kind, body = match.groups()
            if kind == "console":
                return f"```console\n{rewritten(body, folder, meshplan)}```"
            if '"meshplan/spec/1"' in body:
                (folder / "spec.json").write_text(body, encoding="utf-8")
                answer = subprocess.run([meshplan, "plan", "spec.json", "-o", os.devnull], cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
                if answer.returncode != 0:
                    failures.append(f"a spec in README.md does not plan:\n{body}\n{answer.stdout.decode()}")
            return match.group(0)

        new = BLOCK.sub(replace, old)
    if arguments[1:] == ["--update"]:
        README.write_text(new, encoding="utf-8")
    else:
        both = [text.splitlines(keepends=True) for text in (old, new)]
        difference = "".join(difflib.unified_diff(*both, "README.md as it stands", "README.md as its commands print"))
        if difference:
            failures.append(difference + f"\nif that is right: {pathlib.Path(__file__).relative_to(TOP)} {arguments[0]} --update")
    print("\n".join(failures) or "README.md is true")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
