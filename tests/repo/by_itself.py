#!/usr/bin/env python3
"""Every source of lib and apps compiles by itself: it includes what it names, as a plain `cmake -S . -B build` asks for. apps/quickstart and
tests/run compile a folder's files together, where one finds what its neighbours include; the first of them finds nothing, so it was tried there.

usage: by_itself.py CMAKE GENERATOR COMPILER BUILD PART/PARTS      every PARTS-th file, from PART on, but those that BUILD compiled first
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]


def commands(cmake, generator, compiler, folder):
    """(file, what compiles it) as CMake says for a build of one file at a time, with the generator of this build: a machine may have no make."""
    made = subprocess.run([cmake, "-G", generator, "-S", TOP, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_UNITY_BUILD=OFF",
                           "-DMESHPLAN_TESTS=OFF", "-DMESHPLAN_BENCH=OFF"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    listed = json.loads(pathlib.Path(folder, "compile_commands.json").read_text(encoding="utf-8"))
    found = {entry["file"]: entry for entry in listed if entry["file"].endswith(".cc")}
    missing = [path for path in (TOP / "lib").rglob("*.cc") if str(path) not in found and path.parent.name not in ("replay_mpi", "replay_nccl")]
    assert not missing, f"CMake compiles no {missing[0].relative_to(TOP)}"
    return [(file, found[file]) for file in sorted(found)]


def compiled_first(build):
    """The sources in front of which their build had nothing: the first of every file that CMake made of several, where it was compiled since."""
    first = set()
    for together in pathlib.Path(build, "CMakeFiles").glob("*/Unity/unity_*_cxx.cxx"):
        source = re.search(r'^#include "(.*)"', together.read_text(encoding="utf-8"), re.MULTILINE)
        made = together.with_name(together.name + ".o")
        if source and made.exists() and made.stat().st_mtime >= pathlib.Path(source[1]).stat().st_mtime:
            first.add(source[1])
    return first


def parse(entry):
    """The first error of a source that does not compile; empty where it does."""
    words = shlex.split(entry["command"])
    out = words.index("-o")
    words = [word for word in words[:out] + words[out + 2:] if word != "-c"] + ["-fsyntax-only", "-w"]
    done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else next((line for line in done.stderr.splitlines() if "error" in line), done.stderr or "no reason")


def main():
    cmake, generator, compiler, build, part = sys.argv[1:]
    first, parts = map(int, part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        mine = commands(cmake, generator, compiler, folder)[first::parts]
        known = compiled_first(build)
        failures = [failure for file, entry in mine if file not in known and (failure := parse(entry))]
    print("\n".join(failures) or f"{len(mine)} files compile by themselves")
    return 1 if failures or len(mine) < 350 // parts else 0


if __name__ == "__main__":
    sys.exit(main())
