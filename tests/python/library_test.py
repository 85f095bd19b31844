#!/usr/bin/env python3
"""The package meshplan over a build's library: the answers of the command line, from Python. Needs PYTHONPATH, MESHPLAN and
MESHPLAN_LIBRARY in the environment, as ctest sets them.

usage: library_test.py [-v] [NAME...]
"""
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest

import meshplan
from meshplan.rounds import bundle_named

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"
MESHPLAN = os.environ["MESHPLAN"]
LIBRARY = os.environ["MESHPLAN_LIBRARY"]
SMALL = {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 3}]},
         "redistributions": [{"id": "x", "tensor": {"shape": [16, 6], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}]}


def run(*words, text=None, environment=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, check=False, env=environment)


def text_of(name):
    return (TESTDATA / name).read_text(encoding="utf-8")


class LibraryTest(unittest.TestCase):
    def test_a_plan_is_the_file_that_the_command_line_writes(self):
        for name in ("llama3-8b-fsdp8-tp8", "train-8-serve-8"):
            plan = meshplan.plan(text_of(f"specs/{name}.json"))
            self.assertEqual(plan, text_of(f"plans/{name}.plan.json"))
            self.assertEqual(meshplan.verify(plan), [])
            self.assertEqual(meshplan.verify(json.loads(plan)), [])

    def test_the_rounds_of_a_bundle_are_what_the_command_line_lists(self):
        plan = TESTDATA / "plans/sync-llama3-8b-8-8.plan.json"
        for rank, words in ((None, ()), (9, ("--rank", "9"))):
            listed = run(MESHPLAN, "transfers", plan, "--bundle", "sync", *words).stdout
            self.assertEqual(meshplan.bundle_transfers(plan.read_text(encoding="utf-8"), "sync", rank), json.loads(listed))
        with self.assertRaisesRegex(meshplan.MeshplanError, "did you mean 'sync'"):
            meshplan.bundle_transfers(plan.read_text(encoding="utf-8"), "synk")
        with self.assertRaisesRegex(ValueError, "is negative"):
            meshplan.bundle_transfers(plan.read_text(encoding="utf-8"), "sync", -1)

    def test_members_named_by_the_first_and_the_last_are_all_of_them(self):
        plan = json.loads(text_of("plans/recorded-sync-llama3-8b.plan.json"))
        (bundle,), ids = plan["bundles"], [entry["id"] for entry in plan["redistributions"]]
        self.assertEqual(bundle["members"], [{"id": ids[0], "through": ids[-1]}])
        self.assertEqual(bundle_named(plan, None)["members"], ids)
        bundle["members"] = [ids[4], {"id": ids[0], "through": ids[2]}]
        self.assertEqual(bundle_named(plan, bundle["id"])["members"], [ids[4], *ids[:3]])

    def test_a_topology_beats_that_of_the_spec(self):
        done = run(MESHPLAN, "plan", "-", "--topology", "h100", "-q", text=json.dumps(SMALL))
        self.assertEqual(meshplan.plan(SMALL, topology="h100"), done.stdout)

    def test_prices_are_those_of_the_plan(self):
        (price,), plan = meshplan.price(SMALL), json.loads(meshplan.plan(SMALL))
        totals = plan["redistributions"][0]["totals"]
        self.assertEqual(price, {"id": "x", **{k: totals[k] for k in price if k != "id"}})
        self.assertEqual(price["wire_bytes"], 2 * 6 * 6 * 4)

    def test_transfers_are_those_that_the_command_line_prints(self):
        path = TESTDATA / "plans" / "train-8-serve-8.plan.json"
        for words in ((), ("experts",), ("--rank", "3"), ("experts", "--rank", "9")):
            done = run(MESHPLAN, "transfers", str(path), *words, "--format", "json")
            rank = int(words[-1]) if "--rank" in words else None
            found = meshplan.transfers(path.read_text(), "experts" if "experts" in words else None, rank)
            self.assertEqual(found, json.loads(done.stdout))
            self.assertTrue(found["redistributions"][0]["steps"][0]["transfers"])

    def test_problems_are_errors_with_codes_and_places(self):
        with self.assertRaises(meshplan.MeshplanError) as caught:
            meshplan.plan({**SMALL, "mesh": 3})
        self.assertEqual(caught.exception.code, 2)
        self.assertEqual(caught.exception.diagnostics[0]["place"]["pointer"], "/mesh")
        self.assertIn('"mesh" takes an object', str(caught.exception))
        self.assertIn("/mesh", str(caught.exception))
        with self.assertRaises(meshplan.MeshplanError) as caught:
            meshplan.plan({**SMALL, "options": {"max_memory_bytes": 8}})
        self.assertEqual(caught.exception.code, 3)
        plan = meshplan.plan(SMALL)
        with self.assertRaisesRegex(meshplan.MeshplanError, "no redistribution 'y'"):
            meshplan.transfers(plan, "y")
        with self.assertRaisesRegex(meshplan.MeshplanError, "rank 3 is not in the plan, which has 3 ranks"):
            meshplan.transfers(plan, rank=3)
        with self.assertRaisesRegex(ValueError, "rank -1"):
            meshplan.transfers(plan, rank=-1)
        with self.assertRaisesRegex(meshplan.MeshplanError, "presets"):
            meshplan.plan(SMALL, topology="h1000")

    def test_what_is_something_else_is_named(self):
        plan = meshplan.plan(SMALL)
        for named in ("spec.json", pathlib.Path("spec.json")):
            with self.assertRaisesRegex(ValueError, "'spec.json' is not the text of a spec or plan"):
                meshplan.plan(named)
        with self.assertRaisesRegex(ValueError, "character 1 of the text is half of a surrogate pair, '.ud800'"):
            meshplan.plan("{\ud800}")
        with self.assertRaisesRegex(ValueError, "half of a surrogate pair"):
            meshplan.transfers(plan, "\udfff")
        for rank in ("1", 1.0, True):
            with self.assertRaisesRegex(TypeError, "a rank is an integer"):
                meshplan.transfers(plan, rank=rank)
        with self.assertRaisesRegex(meshplan.MeshplanError, "is not in the plan, which has 3 ranks"):
            meshplan.transfers(plan, rank=1 << 64)  # not rank 0
        with self.assertRaisesRegex(TypeError, "an id is a text, not 5"):
            meshplan.transfers(plan, 5)
        with self.assertRaisesRegex(TypeError, "a preset's name is a text"):
            meshplan.plan(SMALL, topology={"levels": []})

    def test_threads_get_what_one_gets_alone(self):
        alone, found = meshplan.plan(SMALL), [None] * 4
        def ask(i):
            found[i] = meshplan.plan(SMALL)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [alone] * 4)


class PackageTest(unittest.TestCase):
    def test_the_module_is_the_command(self):
        done = run(sys.executable, "-m", "meshplan", "--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"meshplan {meshplan.version()}\n"))
        done = run(sys.executable, "-m", "meshplan", "plan", "-", text='{"schema": 3}')
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("error[", done.stderr)

    def test_what_is_missing_is_named(self):
        nowhere = {**os.environ, "MESHPLAN": "/nowhere/meshplan", "MESHPLAN_LIBRARY": "/nowhere/lib.so"}
        done = run(sys.executable, "-m", "meshplan", "--version", environment=nowhere)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/meshplan is not a program", done.stderr)
        done = run(sys.executable, "-c", "import meshplan; meshplan.version()", environment=nowhere)
        self.assertIn("ImportError: meshplan's library could not be loaded: /nowhere/lib.so", done.stderr)

    def test_importing_the_package_imports_nothing_beyond_python(self):
        done = run(sys.executable, "-c", "import meshplan, sys; print(sorted({'torch', 'jax', 'numpy'} & set(sys.modules)))")
        self.assertEqual(done.stdout, "[]\n", done.stderr)

    def test_the_library_shows_its_functions_and_nothing_else(self):
        shown = {line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY).stdout.splitlines()}
        header = (TESTDATA.parent / "lib" / "api" / "meshplan.h").read_text()
        declared = {word.split("(")[0] for word in header.replace("*", " ").split() if word.startswith("meshplan_") and "(" in word}
        self.assertEqual(shown, declared)
        needed = run("readelf", "-d", LIBRARY).stdout
        libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
        self.assertEqual([l for l in libraries if not l.startswith(("libc.so", "libm.so", "ld-linux"))], [])


if __name__ == "__main__":
    unittest.main()
