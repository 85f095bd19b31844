#!/usr/bin/env python3
"""meshplan.cost and its batch forms: the numbers of `meshplan plan`, over random questions. Needs PYTHONPATH, MESHPLAN and
MESHPLAN_LIBRARY in the environment, as ctest sets them.

usage: prices_test.py [-v] [NAME...]     MESHPLAN_SEED=N in the environment: other questions
"""
import array
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest

import meshplan
from meshplan.prices import DTYPES, placement_code

MESHPLAN = os.environ["MESHPLAN"]
SEED = int(os.environ.get("MESHPLAN_SEED", "20"))
MESHES = [{"dp": 2, "cp": 4, "tp": 8}, {"dp": 3, "tp": 4}, {"all": 12}, {"a": 2, "b": 3, "c": 16}]
EXTENTS = [1, 3, 16, 96, 1000, 4096, 5003, 14336, 50257, 128256]


def random_question(rng, mesh):
    """A spec's redistribution without its id: any placements, orders and dtypes that a spec may have."""
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
    dtype = rng.choice(DTYPES)
    floating = "float" in dtype
    ops = rng.choice([["sum"], ["max"], ["sum", "avg"] if floating else ["min"]])

    def placements(partial):
        kinds = ["R"] + [f"S({d})" for d in range(len(shape))] * 2 + ([f"P({rng.choice(ops)})"] if partial else [])
        return [rng.choice(kinds) for _ in mesh]
    entry = {"tensor": {"shape": shape, "dtype": dtype}, "src": placements(True), "dst": placements(False)}
    for end in ("src", "dst"):
        for d in range(len(shape)):
            dims = [name for name, p in zip(mesh, entry[end]) if p == f"S({d})"]
            if len(dims) > 1 and rng.random() < 0.3:
                rng.shuffle(dims)
                entry.setdefault(end + "_order", []).append({"tensor_dim": d, "mesh_dims": dims})
    return entry


def spec_of(mesh, entries, **more):
    dims = [{"name": name, "size": size} for name, size in mesh.items()]
    return {"schema": "meshplan/spec/1", "mesh": {"dims": dims}, "redistributions": [{"id": f"r{i}", **e} for i, e in enumerate(entries)], **more}


def planned(spec, topology=None):
    words = [MESHPLAN, "plan", "-", "-q", "-W", "no-missing-flatten", *(["--topology", topology] if topology else [])]
    done = subprocess.run(words, input=json.dumps(spec), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    plan, firsts = json.loads(done.stdout), {}
    for entry in plan["redistributions"]:
        firsts[entry["id"]] = entry if "same_as" not in entry else firsts[entry["same_as"]]
    return [entry["totals"]["predicted_ns"] for entry in firsts.values()]


def cost_of(pricer, entry):
    return pricer.cost(entry["src"], entry["dst"], entry["tensor"]["shape"], entry["tensor"]["dtype"], entry.get("src_order"), entry.get("dst_order"))


class PricesTest(unittest.TestCase):
    def test_costs_are_those_of_the_command_line(self):
        for mesh, topology in itertools.product(MESHES, (None, "h100")):
            rng = random.Random(f"{SEED} {mesh} {topology}")
            entries = [random_question(rng, mesh) for _ in range(60)]
            pricer = meshplan.Pricer(mesh, topology)
            found = [cost_of(pricer, entry) for entry in entries]
            wanted = planned(spec_of(mesh, entries), topology)
            for entry, ours, theirs in zip(entries, found, wanted):
                self.assertEqual(ours, theirs / 1000, f"MESHPLAN_SEED={SEED} {mesh} {topology} {entry}")
            self.assertGreater(len(set(found)), 20)

    def test_flattens_options_and_topologies_of_a_spec_hold(self):
        entry = {"tensor": {"shape": [16, 4096], "dtype": "bfloat16"}, "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"]}
        levels = {"levels": [{"name": "slow", "ranks": 64, "gb_per_s": 3, "latency_ns": 77000}]}
        spec = spec_of({"dp": 4, "tp": 3}, [entry])
        flattened = json.loads(json.dumps(spec))
        flattened["mesh"]["flattened"] = [{"dims": ["dp", "tp"]}]
        for other in (spec, flattened, {**spec, "options": {"max_memory_bytes": -1}}, {**spec, "topology": levels}):
            self.assertEqual([cost_of(meshplan.Pricer(other), entry)], [planned(other)[0] / 1000])
        self.assertEqual(meshplan.Pricer({"dp": 4, "tp": 3}, levels).cost(*self.ends(entry)), planned({**spec, "topology": levels})[0] / 1000)
        self.assertLess(meshplan.Pricer(flattened).cost(*self.ends(entry)), meshplan.Pricer(spec).cost(*self.ends(entry)))
        meshes = {"schema": "meshplan/spec/1", "meshes": [{"name": "train", "world": 12, "dims": spec["mesh"]["dims"]}, {"name": "other", "world": 4}]}
        self.assertEqual(meshplan.Pricer(meshes, name="train").cost(*self.ends(entry)), planned(spec)[0] / 1000)
        with self.assertRaisesRegex(meshplan.MeshplanError, "name the one to price on"):
            meshplan.Pricer(meshes)
        with self.assertRaisesRegex(meshplan.MeshplanError, "no mesh 'serve'"):
            meshplan.Pricer(meshes, name="serve")

    @staticmethod
    def ends(entry):
        return entry["src"], entry["dst"], entry["tensor"]["shape"], entry["tensor"]["dtype"]

    def test_strided_shards_are_the_orders_that_they_mean(self):
        pricer = meshplan.Pricer({"dp": 2, "tp": 4})
        strided = pricer.cost(["SS(0,4)", "S(0)"], ["R", "R"], (4096, 96), "float32")
        self.assertEqual(strided, pricer.cost(["S(0)", "S(0)"], ["R", "R"], (4096, 96), "float32", src_order={0: ["tp", "dp"]}))
        entry = {"tensor": {"shape": [4096, 96], "dtype": "float32"}, "src": ["SS(0,4)", "S(0)"], "dst": ["R", "S(0)"]}
        self.assertEqual(cost_of(pricer, entry), planned(spec_of({"dp": 2, "tp": 4}, [entry]))[0] / 1000)

    def test_batches_are_the_costs_one_by_one(self):
        mesh, rng = MESHES[0], random.Random(SEED)
        entries = [e for e in (random_question(rng, mesh) for _ in range(120)) if "src_order" not in e and "dst_order" not in e]
        questions = [(tuple(e["src"]), tuple(e["dst"]), tuple(e["tensor"]["shape"]), e["tensor"]["dtype"]) for e in entries]
        alone = [meshplan.cost(mesh, *question) for question in questions]
        self.assertEqual(meshplan.costs(mesh, questions + questions[::-1]), alone + alone[::-1])
        self.assertEqual(meshplan.costs(mesh, questions), alone)
        pricer = meshplan.Pricer(mesh)
        flat = [(at, q) for at, q in enumerate(questions) if len(q[2]) == 2]
        found = pricer.nanoseconds(array.array("q", [n for _, q in flat for n in q[2]]), array.array("i", [DTYPES.index(q[3]) for _, q in flat]),
                                   array.array("q", [placement_code(p) for _, q in flat for p in q[0]]),
                                   array.array("q", [placement_code(p) for _, q in flat for p in q[1]]), 2)
        self.assertGreater(len(flat), 20)
        self.assertEqual([ns / 1000 for ns in found], [alone[at] for at, _ in flat])
        self.assertEqual(list(pricer.nanoseconds(array.array("q"), array.array("i"), array.array("q"), array.array("q"), 2)), [])

    def test_what_no_plan_does_is_infinite(self):
        self.assertEqual(meshplan.cost({"tp": 4}, ["P(sum)"], ["P(max)"], (8,), "float32"), math.inf)
        self.assertEqual(meshplan.cost({"tp": 4}, ["S(0)"], ["S(0)"], (8,), "float32"), 0)

    def test_bad_questions_are_named(self):
        pricer = meshplan.Pricer({"dp": 2, "tp": 4})
        good = (("R", "S(0)"), ("R", "R"), (8, 8), "float32")
        for question, message in [((("R",), ("R", "R"), (8,), "float32"), "1 placements"), ((("R", "S(2)"), ("R", "R"), (8, 8), "float32"), "question 1: S\\(2\\) shards"),
                                  ((("R", "X"), ("R", "R"), (8, 8), "float32"), "'X' is not a placement"), ((("R", "R"), ("R", "R"), (8, 8), "float31"), "not a dtype"),
                                  ((("R", "P(avg)"), ("R", "R"), (8, 8), "int32"), "question 1: P\\(avg\\)"), ((("R", "R"), ("R", "R"), (8, -8), "int32"), "size of -8"),
                                  ((("P(max)", "P(sum)"), ("R", "R"), (8, 8), "int32"), "question 1: "), ((("SS(0,3)", "S(0)"), ("R", "R"), (8, 8), "int32"), "question 1: "),
                                  ((("R", "R"), ("R", "R"), (1 << 62, 8), "int32"), "more bytes than fit 64 bits")]:
            with self.assertRaisesRegex((ValueError, meshplan.MeshplanError), message):
                pricer.costs([good, question])
        with self.assertRaisesRegex(ValueError, "order of tensor dim 0"):
            pricer.cost(["S(0)", "S(0)"], ["R", "R"], (8,), "float32", src_order={0: ["tp"]})
        with self.assertRaisesRegex(ValueError, "bytes where 16 are expected"):
            pricer.nanoseconds(array.array("q", [1]), array.array("i", [1]), array.array("q", [0, 0]), array.array("q", [0, 0]), 2)
        for codes, message in [([256, 0], "places"), ([512, 0], "places"), ([-7, 0], "-7 is not a placement"), ([65536 + 256, 0], "part of another")]:
            with self.assertRaisesRegex(meshplan.MeshplanError, message):
                pricer.nanoseconds(array.array("q", [8]), array.array("i", [1]), array.array("q", codes[:1] + [-1]), array.array("q", [-1, -1]), 1)
        with self.assertRaisesRegex(meshplan.MeshplanError, "takes a list"):
            meshplan.Pricer({"dims": 3})
        self.assertGreater(pricer.costs([good])[0], 0)  # what was bad left nothing behind

    def test_places_of_bad_questions_count_all_that_were_asked(self):
        pricer = meshplan.Pricer({"dp": 2, "tp": 4})
        good = [(("R", "S(0)"), ("R", "R"), (n,) + (8,) * (n % 2), "float32") for n in range(1, 6)]
        pricer.costs(good[:2])
        bad = (("R", "S(1)"), ("R", "R"), (8,), "float32")
        for asked, place in (([*good, bad, bad], 5), ([bad], 0), ([good[3], good[3], good[4], bad], 3)):
            with self.assertRaisesRegex(meshplan.MeshplanError, f"question {place}: S\\(1\\) shards tensor dim 1"):
                pricer.costs(asked)
        with self.assertRaisesRegex(ValueError, "question 2: 'S0' is not a placement"):
            pricer.costs([*good[:2], (("R", "S0"), ("R", "R"), (8,), "float32")])

    def test_what_is_something_else_is_named(self):
        """Nothing wraps around, is cut off or read as something else in silence."""
        mesh, ends = {"dp": 2, "tp": 4}, (("S(0)", "R"), ("R", "R"), (64, 8), "float32")
        for wrong, message in ((8, "8 is not a mesh"), ([2, 4], "is not a mesh"), (None, "None is not a mesh"), ("{dp", "a mesh's text is a spec"),
                               *((named, f"^'{named}' is not the text of a spec; if it is a file's name: pathlib.Path\\(name\\).read_text\\(\\)$")
                                 for named in ("dp", "spec.json", pathlib.Path("spec.json"))),
                               ({"dp": 2.5}, "size 2.5, which is not an integer"), ({"dp": "2"}, "size '2'"), ({"dp": True}, "size True")):
            with self.assertRaisesRegex(ValueError, message):
                meshplan.cost(wrong, *ends)
        asked = lambda *, src=ends[0], shape=ends[2], **more: meshplan.cost(mesh, src, ends[1], shape, "float32", **more)  # noqa: E731
        for given, message in (({"src": ("S(300)", "R")}, "S\\(300\\): tensors of at most 64 dims"), ({"src": ("S(256)", "R")}, "at most 64 dims"),
                               ({"src": ("SS(0,0)", "R")}, "split factor of 0"), ({"src": (f"SS(0,{1 << 60})", "R")}, "split factor of"),
                               ({"src": (0, "R")}, "0 is not a placement"), ({"src": None}, "a question is"), ({"shape": 64}, "a question is"),
                               ({"shape": "64"}, "is not a tuple of sizes"), ({"shape": (64.5, 8)}, "is not a tuple of sizes"), ({"shape": (1 << 63, 8)}, "more bytes"),
                               ({"topology": 0}, "0 is not a topology"), ({"topology": ["h100"]}, "is not a topology")):
            with self.assertRaisesRegex(ValueError, message):
                asked(**given)
        with self.assertRaisesRegex(ValueError, "'spec.json' is not the text of a spec"):
            meshplan.Pricer("spec.json")
        with self.assertRaisesRegex(ValueError, "not a dict"):
            meshplan.Pricer(mesh, options="greedy")
        pricer = meshplan.Pricer(mesh)
        for order, message in (({0: ["tp", "pp"]}, "names 'pp'; the mesh has dims: dp, tp"), (["tp", "dp"], "neither")):
            with self.assertRaisesRegex(ValueError, message):
                pricer.cost(["S(0)", "S(0)"], ["R", "R"], (8,), "float32", src_order=order)
        for questions in ([[["R", "R"], ["R", "R"], [8], "float32"]], [5], [(("R", "R"), ("R", "R"))], None):
            with self.assertRaisesRegex(ValueError, "question 0: a question is \\(src, dst, shape, dtype\\)"):
                pricer.costs(questions)

    def test_buffers_hold_integers_of_their_size(self):
        pricer, whole = meshplan.Pricer({"dp": 2, "tp": 4}), array.array("q", [8, 8])
        dtypes, src, dst = array.array("i", [1]), array.array("q", [0, -1]), array.array("q", [-1, -1])
        self.assertGreater(pricer.nanoseconds(whole.tobytes(), dtypes, src, dst, 2)[0], 0)
        for shapes, message in ((array.array("d", [8, 8]), "format 'd'; int64 is expected"), (array.array("i", [8] * 4), "format 'i'; int64"),
                                ([8, 8], "shapes is a list"), (memoryview(array.array("q", [8] * 4))[::2], "shapes is not contiguous")):
            with self.assertRaisesRegex(ValueError, message):
                pricer.nanoseconds(shapes, dtypes, src, dst, 2)
        with self.assertRaisesRegex(ValueError, "tensors of -1 dims"):
            pricer.nanoseconds(whole, dtypes, src, dst, -1)

    def test_topologies_come_from_files_too(self):
        levels = {"levels": [{"name": "slow", "ranks": 64, "gb_per_s": 3, "latency_ns": 77000}]}
        ends = (["S(0)"], ["R"], (4096,), "float32")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "slow.json")
            path.write_text(json.dumps(levels))
            for named in (path, str(path)):
                self.assertEqual(meshplan.cost({"tp": 4}, *ends, topology=named), meshplan.cost({"tp": 4}, *ends, topology=levels))
            for text, message in (("{nope", "slow.json is not a topology file: Expecting"), ("[]", "it holds no object")):
                path.write_text(text)
                with self.assertRaisesRegex(ValueError, message):
                    meshplan.Pricer({"tp": 4}, str(path))
        with self.assertRaisesRegex(FileNotFoundError, "slow.json"):
            meshplan.Pricer({"tp": 4}, str(path))
        with self.assertRaisesRegex(meshplan.MeshplanError, "presets are"):
            meshplan.Pricer({"tp": 4}, "slow")

    def test_threads_share_a_pricer(self):
        mesh, rng = MESHES[1], random.Random(SEED)
        questions = [(("S(0)", "R"), ("R", "S(1)"), (rng.randrange(1, 9000), 64), "bfloat16") for _ in range(200)]
        alone, pricer, found = meshplan.Pricer(mesh).costs(questions), meshplan.Pricer(mesh), [None] * 4
        def ask(i):
            found[i] = pricer.costs(questions[i * 50:]) if i % 2 else [pricer.cost(*q) for q in questions[i * 50:]]
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [alone[i * 50:] for i in range(4)])


if __name__ == "__main__":
    unittest.main()
