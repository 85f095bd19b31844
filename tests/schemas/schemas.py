#!/usr/bin/env python3
"""The schemas: the same meaning in draft-07 and 2020-12, every field described, every document of ours valid, and the spec's schema of one mind
with the reader about the bad specs, except for what a schema cannot say.

usage: schemas.py MESHPLAN [-v] [NAME...]      MESHPLAN: the binary; names of single tests, as in SchemaTest.test_fields_are_described
"""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema  # Debian: python3-jsonschema

TOP = pathlib.Path(__file__).resolve().parents[2]
DATA = TOP / "testdata"
sys.path.insert(0, str(TOP / "tests" / "spec"))
import derive_bad_specs  # noqa: E402
NAMES = ["spec", "plan", "mesh", "diff", "report", "transfers"]
DRAFTS = [jsonschema.Draft7Validator, jsonschema.Draft202012Validator]
MESHPLAN = ""

# Codes that a schema can give as well. What the others say hangs on more than one value: products, names, places, orders.
FORM = {"E0201", "E0202", "E0203", "E0205", "E0206", "E0207", "E0208", "E0209", "E0211", "E0212", "E0303", "E0307", "E0401", "E0407"}
# Where the schema may say either: 1.5 is no integer for it while 2.0 is one, and the code of an error is no code of a warning.
EITHER = {"E0204", "E0412"}
# The mistake stands in another file.
OTHER_FILE = {"topology-bad-file.json", "extends-a-plan.json"}


def load(name):
    return json.loads((TOP / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))


def without_comments(text):
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda m: m.group(1) or " ", text, flags=re.DOTALL)


def read_json(path):
    """The document, or None where it is no JSON."""
    try:
        return json.loads(without_comments(path.read_bytes().decode("utf-8")))
    except ValueError:
        return None


def valid(name, document):
    verdicts = {draft.__name__: draft(load(name)).is_valid(document) for draft in DRAFTS}
    assert len(set(verdicts.values())) == 1, f"the drafts differ: {verdicts}"
    return all(verdicts.values())


def errors(name, document):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in DRAFTS[0](load(name)).iter_errors(document)][:5]


def run(*arguments, codes=(0,)):
    done = subprocess.run([MESHPLAN, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in codes, f"{arguments}: {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def run_quietly(*arguments, codes=(0,)):
    done = subprocess.run([MESHPLAN, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in codes, f"{arguments}: {done.returncode}\n{done.stderr}"


def run_or_none(*arguments):
    """The document, or None where there is no plan (exit 3)."""
    done = subprocess.run([MESHPLAN, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, 3), f"{arguments}: {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout) if done.returncode == 0 else None


def subschemas(schema, way=""):
    """Every schema below one, with the way to it."""
    if isinstance(schema, dict):
        yield way, schema
        for key, value in schema.items():
            if key in ("properties", "patternProperties", "definitions"):
                for name, below in value.items():
                    yield from subschemas(below, f"{way}/{key}/{name}")
            elif key in ("items", "additionalProperties", "not", "if", "then", "else") and isinstance(value, dict):
                yield from subschemas(value, f"{way}/{key}")
            elif key in ("oneOf", "anyOf", "allOf"):
                for i, below in enumerate(value):
                    yield from subschemas(below, f"{way}/{key}/{i}")


def good_specs():
    return sorted(DATA.glob("good-specs/*.json")) + sorted(DATA.glob("specs/*.json"))


class SchemaTest(unittest.TestCase):
    maxDiff = None

    def test_all_of_them_are_schemas_in_both_drafts(self):
        for name in NAMES:
            for draft in DRAFTS:
                draft.check_schema(load(name))
            self.assertRegex(load(name)["$id"], rf"/{name}/1\.json$")
            self.assertIn(f"meshplan {name}, version 1", load(name)["title"])

    def test_nothing_means_something_else_in_the_other_draft(self):
        for name in NAMES:
            for way, schema in subschemas(load(name)):
                where = f"{name}{way}"
                self.assertFalse({"dependencies", "additionalItems", "$recursiveRef", "$defs", "contains", "prefixItems", "$anchor", "format"} & set(schema), where)
                self.assertNotIsInstance(schema.get("items"), list, where)
                if "$ref" in schema:
                    self.assertEqual(set(schema), {"$ref"}, f"{where}: draft-07 ignores what stands beside $ref")

    def test_fields_are_described(self):
        for name in NAMES:
            whole = load(name)
            for way, schema in subschemas(whole):
                for field, below in schema.get("properties", {}).items():
                    if "$ref" in below:
                        below = whole["definitions"][below["$ref"].split("/")[-1]]
                    self.assertTrue(below.get("description"), f"{name}{way}/properties/{field} is not described")

    def test_the_binary_holds_them(self):
        for name in NAMES:
            self.assertEqual(run("schema", name), load(name))

    def test_good_specs_are_valid(self):
        self.assertGreater(len(good_specs()), 8)
        for path in good_specs():
            self.assertTrue(valid("spec", read_json(path)), f"{path}: {errors('spec', read_json(path))}")

    def test_an_overlay_is_valid_without_what_it_extends(self):
        overlay = {"schema": "meshplan/spec/1", "extends": "recorded.json", "topology": "h100", "options": {"groups": "any"},
                   "budgets": {"total": {"collectives": 1}}, "allow": [], "bundles": [{"id": "sync", "redistributions": ["sync.*"]}]}
        self.assertTrue(valid("spec", overlay), errors("spec", overlay))
        for key in ("mesh", "meshes", "redistributions"):
            own = {"mesh": {"dims": [{"name": "dp", "size": 2}]}, "meshes": [{"name": "root", "world": 2}], "redistributions": []}[key]
            self.assertFalse(valid("spec", {**overlay, key: own}), key)

    def test_reader_and_schema_agree_on_bad_specs(self):
        expected = {}
        for path in sorted(DATA.glob("bad-specs/*.json")):
            lines = path.with_suffix(".expect").read_text(encoding="utf-8").splitlines()
            expected[path] = {re.match(r"[^:]*:\d+:\d+: (\w+)", line).group(1) for line in lines}
        derived = tempfile.TemporaryDirectory()
        self.addCleanup(derived.cleanup)
        for path, line in derive_bad_specs.write_to(derived.name):
            expected[path] = {line.split()[-1]}
        judged, wrong = 0, []
        for path, codes in expected.items():
            document = read_json(path)
            # A problem of the text is gone once a lenient JSON reader has read it.
            if document is None or any(code.startswith("E01") for code in codes) or path.name in OTHER_FILE or codes <= EITHER:
                continue
            judged += 1
            refused = not valid("spec", document)
            if refused != bool(codes & FORM):
                wrong.append(f"{path.name} {sorted(codes)}: the schema {'refuses' if refused else 'accepts'} it {errors('spec', document)}")
        self.assertGreater(judged, 150)
        self.assertEqual(wrong, [])

    def test_keys_of_a_topology_that_belong_together_or_apart_do_so_for_reader_and_schema(self):
        numbers = {"near_bytes": 4096, "far_gb_per_s": 3, "far_mb_per_s": 3000, "peer_gb_per_s": 4, "peer_mb_per_s": 4000, "peer_bytes": 5,
                   "switch_gb_per_s": 6, "switch_mb_per_s": 6000}
        verdicts = []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "spec.json")

            def compare(level, protocol):
                topology = {"levels": [{"ranks": 8, "gb_per_s": 100, "latency_ns": 1, **level}],
                            "model": "protocols", "protocols": [{"name": "a", "base_ns": 5, "hop_ns": [1], **protocol}]}
                spec = {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "topology": topology}
                file.write_text(json.dumps(spec), encoding="utf-8")
                done = subprocess.run([MESHPLAN, "mesh", file], capture_output=True, text=True, check=False, timeout=300)
                self.assertEqual(valid("spec", spec), done.returncode == 0, f"{level} {protocol}: exit {done.returncode} {done.stderr}")
                verdicts.append(done.returncode)
            for few in range(4):
                for keys in itertools.combinations(numbers, few):
                    compare({key: numbers[key] for key in keys}, {})
            for few in range(3):
                for keys in itertools.combinations({"near_bytes": 9, "far_share": [5000]}.items(), few):
                    compare({}, dict(keys))
        self.assertEqual(set(verdicts), {0, 2})

    def test_what_the_binary_writes_is_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            plans = []
            for spec in good_specs():
                for arguments in (["plan", spec], ["plan", spec, "--planner", "greedy", "--audit"]):
                    document = run_or_none(*arguments)
                    if document is None:
                        continue
                    self.assertTrue(valid("plan", document), f"{arguments}: {errors('plan', document)}")
                    plans.append(pathlib.Path(folder, f"{len(plans)}.json"))
                    plans[-1].write_text(json.dumps(document), encoding="utf-8")
                for more in ([], ["--rank", "0"]):
                    document = run("mesh", spec, "--format", "json", *more)
                    self.assertTrue(valid("mesh", document), f"{spec}: {errors('mesh', document)}")
            for old, new in zip(plans, plans[1:]):
                document = run("diff", old, new, "--format", "json", codes=(0, 1))
                self.assertTrue(valid("diff", document), f"{old} {new}: {errors('diff', document)}")

    def test_listed_transfers_are_valid(self):
        described = load("transfers")["description"]
        fields = {"redistribution", *re.search(r"redistribution \(the id\), ([^.]*)\.", described).group(1).split(", ")}
        of_bundles = re.search(r"in CSV: ([^.]*)\.$", described).group(1).split(", ")
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "plan.json")
            for name in ("orders", "universes", "simple"):
                run_quietly("plan", DATA / f"good-specs/{name}.json", "-q", "-o", plan)
                for more in ([], ["--rank", "0"]):
                    document = run("transfers", plan, *more)
                    self.assertTrue(valid("transfers", document), errors("transfers", document))
                plan.unlink()
            run_quietly("plan", DATA / "good-specs/simple.json", "-q", "-o", plan)
            run_quietly("transfers", plan, "--format", "csv", "-o", plan.with_suffix(".csv"))
            self.assertEqual(fields, set(plan.with_suffix(".csv").read_text(encoding="utf-8").splitlines()[0].split(",")))
            bundle = DATA / "plans/sync-llama3-8b-8-8.plan.json"
            document = run("transfers", bundle, "--bundle", "sync", "--rank", "0")
            self.assertTrue(valid("transfers", document), errors("transfers", document))
            run_quietly("transfers", bundle, "--bundle", "sync", "--rank", "0", "--format", "csv", "-o", plan.with_suffix(".csv"))
            self.assertEqual(of_bundles, plan.with_suffix(".csv").read_text(encoding="utf-8").splitlines()[0].split(","))

    def test_a_repeat_has_a_name_for_its_steps(self):
        plan = read_json(DATA / "plans/llama3-8b-fsdp8-tp8.plan.json")
        repeat = next(r for r in plan["redistributions"] if "same_as" in r)
        first = next(r for r in plan["redistributions"] if r["id"] == repeat["same_as"])
        with_one = lambda red: {**plan, "redistributions": [first, red]}
        self.assertTrue(valid("plan", with_one({**repeat, "x-module": {"name": "wq"}})))
        for wrong in ({**repeat, "steps": first["steps"]}, {**first, "same_as": repeat["id"]}, {**repeat, "note": 1},
                      {"id": "a", "same_as": first["id"]}, {"count": 1, "same_as": first["id"]}, {"id": "a", "count": 1}, {**repeat, "same_as": ""}):
            self.assertFalse(valid("plan", with_one(wrong)), wrong)

    def test_what_a_run_reports_is_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            made = {}
            for planner in ("optimal", "greedy"):
                made[planner] = pathlib.Path(folder, f"{planner}.plan.json")
                run_quietly("plan", DATA / "good-specs/simple.json", "--planner", planner, "-o", made[planner])
            report = pathlib.Path(folder, "report.json")
            for kind, more in (("replayed", []), ("measured", ["--measure", "--repeat", "2"]),
                               ("compared", ["--repeat", "2", "--against", made["greedy"]]),
                               ("found wrong", ["--inject", "0:0:flip"])):
                run_quietly("run", made["optimal"], "--shrink", "--report", report, *more, codes=(4,) if kind == "found wrong" else (0,))
                document = read_json(report)
                self.assertTrue(valid("report", document), f"{kind}: {errors('report', document)}")
                self.assertFalse(valid("report", {key: value for key, value in document.items() if key != "schema"}), kind)
                report.unlink()
            run_quietly("run", made["optimal"], "--measure", "--repeat", "2", "--shrink", "--report", report)
            topology = run("calibrate", report)  # what reads reports reads this one; a spec may hold what it writes
            spec = {"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "topology": topology}
            self.assertTrue(valid("spec", spec), errors("spec", spec))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    MESHPLAN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
