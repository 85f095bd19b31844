#!/usr/bin/env python3
"""Checks of the tree itself: what stands where, who includes whom, and that nothing is left unfinished.

usage: tree.py [-v] [NAME...]      names of single tests, as in TreeTest.test_top_level
"""
import ast
import json
import os
import pathlib
import re
import subprocess
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOP_LEVEL = {"CMakeLists.txt", "README.md", "apps", "lib", "schemas", "testdata", "tests"}
THIRD_PARTY = re.compile(r"(nlohmann|CLI|spdlog|fmt|doctest|benchmark)/|mpi\.h|nccl\.h|cuda")
# Files of ours that are longer than 500 lines, each with the reason why it is one file.
LONG_FILES = {}
# Read by C compilers too.
C_HEADERS = {pathlib.Path("lib/api/meshplan.h")}


def tracked_files():
    """Every file of the project: as git knows them, or, in an exported tree, all but build output."""
    if (TOP / ".git").exists():
        listing = subprocess.run(["git", "-c", f"safe.directory={TOP}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                 cwd=TOP, capture_output=True, check=True).stdout.decode()
        return sorted(pathlib.Path(name) for name in listing.split("\0") if name and (TOP / name).exists())
    found = []
    for folder, folders, files in os.walk(TOP):
        folders[:] = [f for f in folders if not (f.startswith("build") and folder == str(TOP)) and f not in ("__pycache__", ".git", ".cache")]
        found += [pathlib.Path(folder, f).relative_to(TOP) for f in files]
    return sorted(found)


FILES = tracked_files()
SOURCES = [f for f in FILES if f.suffix in (".cc", ".h", ".cu", ".cuh")]


def text_of(path):
    return (TOP / path).read_text(encoding="utf-8")


def includes_of(path):
    return re.findall(r'^\s*#\s*include\s*([<"][^>"]+[>"])', text_of(path), re.MULTILINE)


def module_table():
    """lib/README.md's rows: module -> the modules it may include."""
    rows = text_of("lib/README.md").split("\n## Glossary")[0]
    found = re.findall(r"^\| ([a-z_]+) \| [^|]+ \| ([a-z_ –]+) \|$", rows, re.MULTILINE)
    return {module: set(allowed.replace("–", "").split()) for module, allowed in found if module != "module"}


def first_line(path):
    with open(TOP / path, encoding="utf-8", errors="replace") as file:
        return file.readline()


class TreeTest(unittest.TestCase):
    maxDiff = None

    def test_top_level(self):
        visible = {f.parts[0] for f in FILES if not f.parts[0].startswith(".")}
        self.assertEqual(visible - TOP_LEVEL, set(), "only these stand at the top: " + " ".join(sorted(TOP_LEVEL)))

    def test_every_module_has_its_row_and_every_row_its_module(self):
        folders = {f.parts[1] for f in FILES if f.parts[0] == "lib" and len(f.parts) > 2}
        table = module_table()
        self.assertEqual(folders - set(table), set(), "modules without a row in lib/README.md")
        described = set(re.findall(r"\*\*([a-z_]+)\*\*", text_of("lib/README.md")))
        self.assertEqual(set(table) - described, set(), "modules without a paragraph in lib/README.md")

    def test_rows_name_earlier_rows_only(self):
        earlier = set()
        for module, allowed in module_table().items():
            self.assertEqual(allowed - earlier, set(), f"{module} includes a module that stands below it")
            earlier.add(module)

    def test_phases_name_types_that_exist(self):
        phases = text_of("lib/README.md").split("\n## Phases")[1]
        named = re.findall(r"`(\w+)`(?:, `(\w+)`)? \(`([\w/]+\.h)`", phases)
        self.assertGreater(len(named), 4)
        for first, _, header in named:
            self.assertRegex(text_of(f"lib/{header}"), rf"\b(struct|class|using) {first}\b", f"lib/README.md says that {header} holds {first}")

    def test_includes_respect_the_table(self):
        table = module_table()
        wrong = []
        for path in SOURCES:
            if path.parts[0] != "lib":
                continue
            module = path.parts[1]
            for include in includes_of(path):
                other = include[1:].split("/")[0]
                if include.startswith('"') and other in table and other != module and other not in table[module]:
                    wrong.append(f"{path} includes {include}, but {module}'s row in lib/README.md does not name {other}")
        self.assertEqual(wrong, [])

    def test_cmake_links_what_the_table_says(self):
        table = module_table()
        cmake = "\n".join(text_of(f) for f in FILES if f.name == "CMakeLists.txt")
        for name, deps in re.findall(r"^\s*meshplan_module\((\w+)(?: DEPS ([\w ]+?))?(?:\s+LIBS[^)]*)?\)", cmake, re.MULTILINE):
            linked = set(deps.split())
            self.assertEqual(linked - table[name], set(), f"CMakeLists.txt links {name} to modules that its row does not name")

    def test_third_party_headers_stay_in_sources(self):
        wrong = [f"{path}: {include}" for path in SOURCES if path.suffix == ".h" and path.parts[0] in ("lib", "apps")
                 for include in includes_of(path) if THIRD_PARTY.match(include[1:])]
        self.assertEqual(wrong, [], "headers of ours that show someone else's")

    def test_a_source_includes_its_own_header_first(self):
        wrong = []
        for path in SOURCES:
            own = path.with_suffix(".h")
            if path.parts[0] == "lib" and path.suffix == ".cc" and own in FILES:
                expected = f'"{own.relative_to("lib")}"'
                if includes_of(path)[:1] != [expected]:
                    wrong.append(f"{path} must include {expected} first")
        self.assertEqual(wrong, [])

    def test_headers_explain_themselves(self):
        wrong = []
        for path in SOURCES:
            if path.suffix == ".h" and path.parts[0] in ("lib", "apps"):
                marks = ("/* ", "\n#ifndef ") if path in C_HEADERS else ("// ", "\n#pragma once\n")
                if not first_line(path).startswith(marks[0]) or marks[1] not in text_of(path):
                    wrong.append(f"{path} must start with a comment that says what it holds, then {marks[1].strip()}")
        self.assertEqual(wrong, [])

    def test_files_are_short(self):
        long = {}
        for path in FILES:
            if path.suffix in (".cc", ".h", ".cu", ".cuh", ".py", "") and path.parts[0] in ("lib", "apps", "tests"):
                lines = text_of(path).count("\n")
                if lines > 500:
                    long[str(path)] = lines
        self.assertEqual({p: n for p, n in long.items() if p not in LONG_FILES}, {}, "split these, or say in LONG_FILES why each is one file")
        self.assertEqual([p for p in LONG_FILES if not (TOP / p).exists()], [], "gone: take them off LONG_FILES")

    def test_nothing_is_left_unfinished(self):
        word = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b|\bnot " r"implemented\b|\bun" r"implemented\b", re.IGNORECASE)
        wrong = []
        for path in FILES:
            if path.parts[0] == "testdata" or path.suffix in (".png", ".gz"):
                continue
            for number, line in enumerate(text_of(path).splitlines(), 1):
                if word.search(line):
                    wrong.append(f"{path}:{number}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_text_files_are_plain(self):
        wrong = []
        for path in FILES:
            if path.parts[0] == "testdata" or path.suffix in (".png", ".gz"):
                continue
            text = (TOP / path).read_bytes()
            if b"\r" in text or (text and not text.endswith(b"\n")) or re.search(rb"[ \t]\n", text):
                wrong.append(str(path))
        self.assertEqual(wrong, [], "line ends of another system, no newline at the end, or blanks before one")

    def test_scripts_parse(self):
        for path in FILES:
            first = first_line(path) if path.suffix in ("", ".sh", ".py") else ""
            if "bash" in first or path.suffix == ".sh":
                check = subprocess.run(["bash", "-n", str(TOP / path)], capture_output=True, text=True, check=False)
                self.assertEqual((check.returncode, check.stderr), (0, ""), path)
            if path.suffix == ".py" or "python3" in first:
                ast.parse(text_of(path), str(path))
            if first.startswith("#!"):
                self.assertTrue(os.access(TOP / path, os.X_OK), f"{path} starts with #! and must be executable")

    def test_json_files_parse(self):
        for path in FILES:
            if path.suffix == ".json" and path.parts[0] == "schemas":
                json.loads(text_of(path))

    def test_readmes_of_lib_name_files_that_exist(self):
        """`thing.h` in a module's paragraph or README is that module's, `module/thing.h` any module's."""
        wrong, named = [], 0
        for readme in [f for f in FILES if f.name == "README.md" and f.parts[0] == "lib"]:
            module = readme.parts[1] if len(readme.parts) > 2 else None
            for number, line in enumerate(text_of(readme).split("\n"), 1):
                if not line or line[0] in "#|" and readme == pathlib.Path("lib/README.md"):
                    module = module if not line else None
                if paragraph := re.match(r"\*\*([a-z_]+)\*\*", line):
                    module = paragraph.group(1)
                for name in re.findall(r"`((?:\.\./)?[\w/.]+\.(?:h|cc|cu|py|json))`", line):
                    named += 1
                    places = [TOP / "lib" / name, TOP / name] if "/" in name or module is None else [TOP / "lib" / module / name]
                    if not any(place.exists() for place in places):
                        wrong.append(f"{readme}:{number}: {name}")
        self.assertGreater(named, 150)
        self.assertEqual(wrong, [], "files that are not there")

    def test_links_lead_somewhere(self):
        wrong = []
        for path in FILES:
            if path.suffix == ".md" and path.parts[0] != "testdata":
                for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(path)):
                    if not re.match(r"[a-z]+:", target) and not (TOP / path.parent / target).exists():
                        wrong.append(f"{path}: {target}")
        self.assertEqual(wrong, [])

    def test_readme_names_every_package(self):
        setup = text_of("apps/setup.sh")
        packages = " ".join(re.findall(r"^(?:build|test)_packages=\(([^)]*)\)", setup, re.MULTILINE)).split()
        self.assertGreater(len(packages), 5)
        readme = text_of("README.md")
        self.assertEqual([p for p in packages if f"`{p}`" not in readme and not re.search(rf"(^|\s){re.escape(p)}(\s|$)", readme)], [])


if __name__ == "__main__":
    unittest.main()
