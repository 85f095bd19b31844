#!/usr/bin/env python3
"""Every source of lib and apps compiles by itself: it includes what it names, as a plain `cmake -S . -B build` asks for. apps/quickstart and
tests/run compile a folder's files together, where one finds what its neighbours include; the first of them finds nothing, so it was tried there.

Most of the time goes into headers that nearly all sources have, so these are compiled ahead: for a source whose first include has such a header
among its own. What that first include names is found by itself, then; and what comes behind it in the source has the header anyway.

usage: by_itself.py CMAKE GENERATOR COMPILER BUILD PART/PARTS      the PART-th of PARTS, but for what BUILD compiled first
"""
import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
# Compiled ahead, each of those behind it is among its own.
AHEAD = ("plan/plan.h", "mesh/mesh.h", "base/result.h")
INCLUDE = re.compile(r'^ *#include (?:"(.*)"|<.*>)', re.MULTILINE)


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


@functools.cache
def included(header):
    """It and what it includes of ours, and so on."""
    path = TOP / "lib" / header
    names = INCLUDE.findall(path.read_text(encoding="utf-8")) if path.exists() else []
    return {header}.union(*(included(name) for name in names if name))


def ahead_of(source):
    """Which header is compiled ahead of it; empty for none."""
    first = INCLUDE.search(pathlib.Path(source).read_text(encoding="utf-8"))
    has = included(first[1]) if first and first[1] else set()
    return next((header for header in AHEAD if header in has), "")


def flags_of(entry):
    """The command that compiles it, without what it reads and writes."""
    words = shlex.split(entry["command"])
    out = words.index("-o")
    return [word for word in words[:out] + words[out + 2:] if word not in ("-c", entry["file"])] + ["-w"]


def compile_ahead(header, entry, folder):
    """The file that stands for the header, compiled beside it with the flags of `entry` but for its module's macros; where other flags are not
    these the compiler reads the file itself."""
    path = pathlib.Path(folder, header.replace("/", "_"))
    if not path.exists():
        path.write_text(f'#include "{header}"\n', encoding="utf-8")
        flags = [flag for flag in flags_of(entry) if not flag.startswith("-D") or flag == "-DNDEBUG"]
        made = subprocess.run([*flags, "-x", "c++-header", path, "-o", f"{path}.gch"], cwd=entry["directory"], capture_output=True,
                              text=True, check=False)
        assert made.returncode == 0, made.stderr
    return path


def parse(entry, folder):
    """The first error of a source that does not compile; empty where it does."""
    header = ahead_of(entry["file"])
    ahead = ["-include", compile_ahead(header, entry, folder)] if header else []
    done = subprocess.run([*flags_of(entry), "-fsyntax-only", *ahead, entry["file"]], cwd=entry["directory"], capture_output=True, text=True,
                          check=False)
    return "" if done.returncode == 0 else next((line for line in done.stderr.splitlines() if "error" in line), done.stderr or "no reason")


def main():
    cmake, generator, compiler, build, part = sys.argv[1:]
    number, parts = map(int, part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        # Those with the same header ahead of them in one part, as far as they go.
        every = sorted(commands(cmake, generator, compiler, folder), key=lambda of: (ahead_of(of[0]), of[0]))
        mine = every[number * len(every) // parts:(number + 1) * len(every) // parts]
        known = compiled_first(build)
        failures = [failure for file, entry in mine if file not in known and (failure := parse(entry, folder))]
    print("\n".join(failures) or f"{len(mine)} files compile by themselves")
    return 1 if failures or len(mine) < 350 // parts else 0


if __name__ == "__main__":
    sys.exit(main())
