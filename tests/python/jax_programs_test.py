#!/usr/bin/env python3
"""Programs that meshplan.jax_shardings does not record: each is a line that names the file and what it must define, and exit code 2. No JAX.

usage: jax_programs_test.py [-v] [NAME...]      with PYTHONPATH at apps/python
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from meshplan.jax_programs import BadProgram
from meshplan.jax_shardings import merge, mesh_part
from meshplan.recorded_spec import NotCovered

DEFINES = "functions() -> [(name, jitted function, arguments), ...]"
JITTED = "import types\njitted = types.SimpleNamespace(lower=None)\ndef functions(): return "


class JaxProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def recorded(self, program, *words):
        if program is not None:
            (self.folder / "step.py").write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", "meshplan.jax_shardings", "-o", "spec.json", *words, "step.py"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertFalse((self.folder / "spec.json").exists())
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_what_is_no_such_program_is_named(self):
        gives = f"meshplan: step.py: what functions() gives is not as {DEFINES}: "
        for program, said in ((None, f"meshplan: there is no file step.py: name a Python file that defines {DEFINES}"),
                              ("", f"meshplan: step.py defines no functions(): define {DEFINES}"),
                              ("functions = 3", f"meshplan: step.py defines no functions(): define {DEFINES}"),
                              ("def functions(): pass", gives), ("def functions(): return [1]", gives), ("def functions(): return [('f', 1)]", gives),
                              (JITTED + "[('f', jitted, 1)]", gives), (JITTED + "[]", "meshplan: step.py: functions() gives nothing to record: "),
                              (JITTED + "[('f', 1, ())]", "meshplan: step.py: types str and int are not those of a name and a function of jax.jit: "),
                              (JITTED + "[(1, jitted, ())]", "meshplan: step.py: types int and SimpleNamespace are not those of a name")):
            code, text = self.recorded(program)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertTrue(text.startswith(said), text)

    def test_another_name_is_answered_with_those_that_there_are(self):
        self.assertEqual(self.recorded(JITTED + "[('f', jitted, ()), ('g', jitted, [])]", "--only", "h"),
                         (2, "meshplan: no function h in step.py, which has: f, g\n"))

    def test_what_the_program_raises_is_shown_as_it_is(self):
        for program in ("int('mine')", "def functions(): int('mine')", "def functions():\n    yield int('mine')"):
            code, text = self.recorded(program)
            self.assertEqual((code, text.splitlines()[-1]), (1, "ValueError: invalid literal for int() with base 10: 'mine'"), text)
            self.assertIn('step.py", line', text)

    def test_meshes_that_no_spec_holds_are_refused(self):
        for meshes, why in (({}, "it has no mesh"), ({"a": ([("x", 2)], None), "b": ([("x", 4)], None)}, "over different devices")):
            with self.assertRaisesRegex(NotCovered, why):
                mesh_part(meshes)
        with self.assertRaisesRegex(BadProgram, "g runs on other meshes .*--only g"):
            merge({"f": {"mesh": 1, "redistributions": []}, "g": {"mesh": 2, "redistributions": []}})


if __name__ == "__main__":
    unittest.main()
