#!/usr/bin/env python3
"""What becomes of a recorded spec that is recorded again: what a person added stays, and what a recording would lose is refused. No PyTorch.

usage: recorded_spec_test.py [-v] [NAME...]      with PYTHONPATH at apps/python
"""
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from meshplan.recorded_spec import NotReplaced, destination, handwritten, to_text, with_handwritten

RECORDED = {
    "schema": "meshplan/spec/1",
    "x-recorded": {"by": "meshplan.capture", "world": 4},
    "mesh": {"dims": [{"name": "dp", "size": 4}]},
    "redistributions": [{"id": "w", "tensor": {"shape": [16], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}],
    "bundles": [{"id": "step", "redistributions": ["w"], "count": 1, "x-recorded": True}],
}
OWN = {"topology": "h100", "options": {"groups": "any"}, "budgets": {"total": {"collectives": 1}},
       "allow": [{"code": "W0301", "reason": "few"}], "x-owner": "training"}


class RecordedSpecTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "step.json")

    def kept(self, spec):
        self.path.write_text(spec if isinstance(spec, str) else to_text(spec), encoding="utf-8")
        return handwritten(self.path)

    def test_nothing_is_kept_of_nothing(self):
        self.assertEqual(handwritten(self.path), {})
        self.assertEqual(self.kept(""), {})
        self.assertEqual(self.kept(RECORDED), {})
        self.assertEqual(with_handwritten(RECORDED, {}), RECORDED)

    def test_what_a_person_added_stays(self):
        kept = self.kept({**RECORDED, **OWN, "x-not-covered": [], "x-incomplete": "KeyError"})
        self.assertEqual(kept, OWN)
        again = {**RECORDED, "x-recorded": {"world": 8}}
        both = with_handwritten(again, kept)
        self.assertEqual(both, {**again, **OWN})
        self.assertEqual(self.kept(both), OWN)

    def test_bundles_of_a_person_stay_and_recorded_ones_are_recorded_again(self):
        mine = {"id": "mine", "redistributions": ["*"]}
        kept = self.kept({**RECORDED, "bundles": [*RECORDED["bundles"], mine, {"id": "gone", "redistributions": ["x"], "x-recorded": True}]})
        self.assertEqual(kept, {"bundles": [mine]})
        self.assertEqual(with_handwritten(RECORDED, kept)["bundles"], [*RECORDED["bundles"], mine])
        without = {key: value for key, value in RECORDED.items() if key != "bundles"}
        self.assertEqual(with_handwritten(without, kept)["bundles"], [mine])
        self.assertNotIn("bundles", with_handwritten(without, {}))
        same = {"id": "step", "redistributions": ["w"], "max_staging_bytes": 9}  # of the time before recorders marked theirs
        self.assertEqual(with_handwritten(RECORDED, self.kept({**RECORDED, "bundles": [same]}))["bundles"], RECORDED["bundles"])

    def test_what_would_be_lost_is_refused(self):
        for text, why in ((to_text(RECORDED).replace("{", "{ // mine\n", 1), "without comments"), ("{", "without comments"),
                          (json.dumps({"schema": "meshplan/plan/1"}), "is not a spec"), ("[]", "is not a spec"),
                          (json.dumps({"schema": "meshplan/spec/1", "extends": "r.json"}), "extends r.json: record to that file")):
            with self.assertRaisesRegex(NotReplaced, why):
                self.kept(text)

    def test_a_place_that_takes_no_file_is_refused_before_anything_runs(self):
        for path, why in ((self.path.parent, "is a folder"), (self.path.parent / "nowhere" / "step.json", "there is no folder .*nowhere to record to")):
            with self.assertRaisesRegex(NotReplaced, why):
                destination(path)

    def test_check_record_names_another_file_of_the_same_name(self):
        self.assertEqual(destination(self.path), str(self.path))
        with mock.patch.dict(os.environ, MESHPLAN_RECORD="/other/step.json"):
            self.assertEqual(destination(self.path), "/other/step.json")
            self.assertEqual(destination("eval.json"), "eval.json")


if __name__ == "__main__":
    unittest.main()
