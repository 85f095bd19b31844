#!/usr/bin/env python3
"""What the parts that need PyTorch say where there is none; where there is one, it is hidden. Needs PYTHONPATH, MESHPLAN and MESHPLAN_LIBRARY
in the environment, as ctest sets them.

usage: needed_test.py [-v] [NAME...]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MESHPLAN = os.environ["MESHPLAN"]
NEEDS = "needs PyTorch: pip install torch (No module named 'torch')"
SPEC = {"schema": "meshplan/spec/1", "x-recorded": {"by": "meshplan.capture", "world": 2}, "mesh": {"dims": [{"name": "dp", "size": 2}]},
        "redistributions": [{"id": "w", "tensor": {"shape": [16], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}]}


class WithoutTorchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.with_torch("None")

    def with_torch(self, module):
        """Every Python that `run` starts finds this in the place of PyTorch."""
        (self.folder / "sitecustomize.py").write_text(f"import sys, types\nsys.modules['torch'] = {module}\n", encoding="utf-8")

    def run_words(self, *words):
        paths = os.pathsep.join([str(self.folder), os.environ["PYTHONPATH"]])
        environment = {**os.environ, "PYTHONPATH": paths}
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False, env=environment)

    def run_python(self, *words):
        return self.run_words(sys.executable, *words)

    def test_the_recorder_says_so_in_a_line(self):
        done = self.run_python("-m", "meshplan.capture", "--world", "2", "-o", "step.json", "train.py")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", f"meshplan: meshplan.capture {NEEDS}\n"))
        self.assertFalse((self.folder / "step.json").exists())

    def test_the_recorder_tells_its_usage_all_the_same(self):
        done = self.run_python("-m", "meshplan.capture", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--read-integer", done.stdout)
        done = self.run_python("-m", "meshplan.capture", "--world", "2", "-o", "nowhere/step.json", "train.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no folder", done.stderr)

    def test_a_check_that_records_knows_what_is_missing(self):
        (self.folder / "step.json").write_text(json.dumps(SPEC), encoding="utf-8")
        (self.folder / "train.py").write_text("import torch\n", encoding="utf-8")
        done = self.run_words(MESHPLAN, "check", "step.json", "--record", f"{sys.executable} train.py")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(NEEDS, done.stderr)
        self.assertIn("E0602", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_name_that_needs_it_says_so(self):
        for module, name in (("meshplan", "follow"), ("meshplan", "reshard"), ("meshplan.capture", "record"), ("meshplan.capture", "bundle")):
            for program in (f"import {module}; {module}.{name}", f"from {module} import {name}"):
                done = self.run_python("-c", program)
                self.assertEqual(done.stderr.splitlines()[-1:], [f"ModuleNotFoundError: {module}.{name} {NEEDS}"], program)
            done = self.run_python("-c", f"import {module}; {module}.{name}s")
            self.assertIn(f"AttributeError: module '{module}' has no attribute '{name}s'", done.stderr)

    def test_another_package_that_is_missing_is_not_taken_for_it(self):
        program = "from meshplan.needed import needing_torch\nwith needing_torch('this'):\n    import nowhere_at_all"
        self.assertIn("ModuleNotFoundError: No module named 'nowhere_at_all'", self.run_python("-c", program).stderr)

    def test_what_can_be_used_is_listed(self):
        listed = "import meshplan; print(sorted({'follow', 'reshard', 'plan'} & set(dir(meshplan))), 'torch.distributed' in sys.modules)"
        self.assertEqual(self.run_python("-c", "import sys; " + listed).stdout, "['plan'] False\n")
        done = self.run_python("-c", "import meshplan; help(meshplan)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.with_torch("types.ModuleType('torch')\nsys.modules['torch'].__spec__ = 'found'")
        self.assertEqual(self.run_python("-c", "import sys; " + listed).stdout, "['follow', 'plan', 'reshard'] False\n")


if __name__ == "__main__":
    unittest.main()
