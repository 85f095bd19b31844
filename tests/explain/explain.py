#!/usr/bin/env python3
"""`meshplan explain CODE` from the outside: every code that the sources give is explained, and its examples, run as they stand, give it and
give it no more.

usage: explain.py MESHPLAN [-v] [NAME...]      MESHPLAN: the binary; names of single tests, as in ExplainTest.test_examples
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
MESHPLAN = ""
SPEC = TOP / "testdata/good-specs/simple.json"
# What no short input gives: 64 MiB of text, 65 dims, a bug; two plans to compare; findings that need a mesh made for them.
WITHOUT_EXAMPLE = {"E0109", "E0212", "E0604", "E0699", "W0303", "W0801", "W0802", "W0803", "A0402", "A0403", "A0404", "A0407"}
# What hangs on the machine; a byte that a text of UTF-8 cannot show.
NOT_RUN = {"E0602", "E0101"}


def codes_in(*patterns):
    found = set()
    for pattern in patterns:
        for path in TOP.glob(pattern):
            found |= set(re.findall(r'"([EWAN]0\d{3})"', path.read_text(encoding="utf-8")))
    return found


def table():
    return codes_in("lib/diag/codes_*.cc")


def examples(code):
    """(failing, mended) as `explain` shows them."""
    text = subprocess.run([MESHPLAN, "explain", code], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"\n(?:This gives it|Mended):\n\n", text)[1:]
    return [re.sub(r"^    ", "", part, flags=re.MULTILINE).strip("\n") for part in parts]


class ExplainTest(unittest.TestCase):
    maxDiff = None

    def run_in(self, folder, *arguments):
        return subprocess.run([MESHPLAN, *arguments], cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=120)

    def output(self, folder, code, example):
        """What comes out, the exit status first."""
        if not example.lstrip("\ufeff").startswith("{"):
            for line in example.splitlines():
                done = self.run_in(folder, *line.split()[1:])
            return f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        pathlib.Path(folder, "example.json").write_text(example, encoding="utf-8", newline="")
        done = self.run_in(folder, "plan", "example.json", *["--audit"] * code.startswith("A"))
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}"

    def prepare(self, folder):
        """What the examples' command lines name: spec.json, plan.json of it, and changed-spec.json."""
        text = SPEC.read_text(encoding="utf-8")
        pathlib.Path(folder, "spec.json").write_text(text, encoding="utf-8")
        pathlib.Path(folder, "changed-spec.json").write_text(text.replace('"count": 32', '"count": 33'), encoding="utf-8")
        self.assertEqual(self.run_in(folder, "plan", "spec.json", "-o", "plan.json").returncode, 0)

    def test_every_code_of_the_sources_is_in_the_table(self):
        self.assertEqual(codes_in("lib/**/*.cc", "lib/**/codes.h", "apps/**/*.cc") - table(), set())

    def test_every_code_is_given_by_something(self):
        given = codes_in(*(f"lib/{m}/*" for m in ("spec", "cli", "plan", "planner", "render", "diff")))
        self.assertEqual(table() - given, set(), "in the table and given by nothing")

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
                failing, mended = examples(code)
                output = self.output(folder, code, failing)
                self.assertIn(code, output)
                expected = {"E05": (2, 4), "E06": (1, 2), "N07": (3,), "W08": (1,), "A04": (0,), "W03": (0,)}.get(code[:3], (2,))
                self.assertIn(int(output.split("\n")[0]), expected)
                output = self.output(folder, code, mended)
                self.assertNotIn(code, output)
                self.assertEqual(output.split("\n")[0], "0", output)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    MESHPLAN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
