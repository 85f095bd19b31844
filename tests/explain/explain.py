#!/usr/bin/env python3
"""`meshplan explain CODE` from the outside: every code that the sources give is explained, and its examples, run as they stand, give it and
give it no more.

usage: explain.py MESHPLAN [-v] [NAME...]      MESHPLAN: the binary; names of single tests, as in ExplainTest.test_examples
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/spec"))
import derive_bad_specs  # noqa: E402

MESHPLAN = ""
SPEC = TOP / "testdata/good-specs/simple.json"
# No input causes it: known bugs are fixed.
WITHOUT_EXAMPLE = {"E0699"}
# What hangs on the machine; a byte that a text of UTF-8 cannot show.
NOT_RUN = {"E0602", "E0101"}
# Where a code is given on purpose and compared with what is expected, besides testdata/bad-specs and testdata/cli.
GIVEN_BY_TESTS = {"E0699": "tests/cli/files_test.cc"}


def codes_in(*patterns):
    found = set()
    for pattern in patterns:
        for path in TOP.glob(pattern):
            found |= set(re.findall(r"\b([EWAN]0\d{3})\b", path.read_text(encoding="utf-8")))
    return found


def table():
    return codes_in("lib/diag/codes_*.cc")


def command(code):
    """The words behind `meshplan` that give the code for a spec."""
    text = subprocess.run([MESHPLAN, "explain", code], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^Example, with meshplan (.*):$", text, re.MULTILINE)
    return found.group(1).split() if found else ["plan", "spec.json"]


def golden_codes():
    """The codes that some file of expectations holds; what `explain CODE` prints is an explanation, not a case."""
    derived = derive_bad_specs.derive()["expected.txt"].decode()
    found = codes_in("testdata/bad-specs/*.expect") | set(re.findall(r"\b(E0\d{3})\b", derived))
    for case in (TOP / "testdata/cli").iterdir():
        if not re.match(r"meshplan explain \w{5}\n", (case / "cmd").read_text(encoding="utf-8")):
            found |= codes_in(*(f"testdata/cli/{case.name}/{stream}" for stream in ("out", "err")))
    return found | {code for code, path in GIVEN_BY_TESTS.items() if code in codes_in(path)}


def examples(code):
    """(failing, fixed) as `explain` shows them."""
    text = subprocess.run([MESHPLAN, "explain", code], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"\n(?:Example(?:, with .*)?|Fixed):\n\n", text)[1:]
    return [re.sub(r"^    ", "", part, flags=re.MULTILINE).strip("\n") for part in parts]


class ExplainTest(unittest.TestCase):
    maxDiff = None

    def run_in(self, folder, *arguments):
        return subprocess.run([MESHPLAN, *arguments], cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=120)

    def output(self, folder, code, example):
        """What comes out, the exit status first."""
        words = command(code)
        if example.lstrip("\ufeff").startswith("{"):
            pathlib.Path(folder, words[1]).write_text(example, encoding="utf-8", newline="")
            done = self.run_in(folder, *words)
        else:
            pathlib.Path(folder, "meshplan").symlink_to(MESHPLAN)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            done = subprocess.run(["bash", "-c", example], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
            pathlib.Path(folder, "meshplan").unlink()
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}"

    def prepare(self, folder):
        """What the examples' command lines name: spec.json, plan.json of it, and changed-spec.json."""
        text = SPEC.read_text(encoding="utf-8")
        pathlib.Path(folder, "spec.json").write_text(text, encoding="utf-8")
        pathlib.Path(folder, "changed-spec.json").write_text(text.replace('"count": 32', '"count": 33'), encoding="utf-8")
        self.assertEqual(self.run_in(folder, "plan", "spec.json", "-o", "plan.json").returncode, 0)

    def test_every_code_of_the_sources_is_in_the_table(self):
        self.assertEqual(codes_in("lib/**/*.cc", "lib/**/*codes.h", "apps/**/*.cc") - table(), set())

    def test_every_code_is_given_by_something(self):
        modules = ("json", "spec", "cli", "plan", "torch_rules", "planner", "render", "diff")
        given = codes_in("lib/diag/outcome_codes.h", *(f"lib/{m}/*" for m in modules))
        self.assertEqual(table() - given, set(), "in the table and given by nothing")

    def test_every_code_has_a_golden_case(self):
        self.assertEqual(table() - golden_codes(), set(), "no testdata/bad-specs/*.expect, no testdata/cli/*/{out,err} holds these")

    def test_explanations(self):
        for code in sorted(table()):
            done = subprocess.run([MESHPLAN, "explain", code.lower()], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, code)
            self.assertRegex(done.stdout, rf"^{code} \(\w+\): .+\n\n.+")
            self.assertEqual(len(examples(code)), 0 if code in WITHOUT_EXAMPLE else 2, code)

    def test_examples(self):
        for code in sorted(table() - WITHOUT_EXAMPLE - NOT_RUN):
            with tempfile.TemporaryDirectory() as folder, self.subTest(code):
                self.prepare(folder)
                failing, fixed = examples(code)
                output = self.output(folder, code, failing)
                self.assertIn(code, output)
                expected = {"E05": (2, 4), "E06": (1, 2), "N07": (3,), "W08": (1,), "A04": (0,), "W03": (0,)}.get(code[:3], (2,))  # by phase
                self.assertIn(int(output.split("\n")[0]), expected)
                output = self.output(folder, code, fixed)
                self.assertNotIn(code, output)
                self.assertEqual(output.split("\n")[0], "0", output)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    MESHPLAN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
