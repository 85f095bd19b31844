#!/usr/bin/env python3
"""Recorded ids survive an edit of the program: they come from module paths and roles. On fakes: needs no PyTorch.

usage: ids_test.py [-v] [NAME...]
"""
import fnmatch
import pathlib
import json
import unittest

import universes_test as fakes

fakes.load()
from meshplan.recorded_ids import ids_of, path_of_all_layers  # noqa: E402
SPECS = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "specs"


def entry(label, shape=(8, 4), src="S(0)", dst="R", **more):
    return {"label": label, "mesh": "tp", "tensor": {"shape": list(shape), "dtype": "float32"}, "src": [src], "dst": [dst], "x-phase": "forward", **more}


class IdsTest(unittest.TestCase):
    def ids(self, *entries):
        return ids_of([dict(e) for e in entries])

    def test_layers_share_a_name_whichever_asked_first(self):
        for layer in (0, 3, 79):
            self.assertEqual(self.ids(entry("all_gather", **{"x-module": f"blocks.{layer}.attn"})), ["forward.blocks.*.attn.all_gather"])
        self.assertEqual(self.ids(entry("all_gather", **{"x-fsdp": "layers.7"})), ["forward.layers.*.all_gather"])

    def test_weights_give_their_name_in_place_of_the_module(self):
        weight = {"weight": "layers.*.wq.weight", "x-module": "layers.0", "x-fsdp": "layers.3"}
        self.assertEqual(self.ids(entry("all_gather", **weight), entry("all_gather", **{"x-module": "layers.0"})),
                         ["forward.layers.*.wq.weight.all_gather", "forward.layers.*.all_gather"])
        for name in ("_orig_mod.layers.7.wq", "layers._checkpoint_wrapped_module.7.wq"):
            self.assertEqual(path_of_all_layers(name), "layers.*.wq")

    def test_those_that_share_a_name_add_what_tells_them_apart(self):
        self.assertEqual(self.ids(entry("all_gather"), entry("all_gather", (4, 4)), entry("slice")),
                         ["forward.all_gather.8x4", "forward.all_gather.4x4", "forward.slice"])
        self.assertEqual(self.ids(entry("all_reduce", (), "P(max)"), entry("all_reduce", (), "P(sum)")),
                         ["forward.all_reduce.P(max)-R", "forward.all_reduce.P(sum)-R"])
        self.assertEqual(self.ids(entry("all_reduce", src="P(sum)"), entry("all_reduce", src="P(sum)", **{"x-partial": ["_NormPartial(2)"]})),
                         ["forward.all_reduce", "forward.all_reduce._NormPartial(2)"])

    def test_another_layer_does_not_rename_the_norm_of_all_gradients(self):
        norm = {"x-partial": [None, "_NormPartial(2.0)"]}
        for weights in (34, 44):
            self.assertEqual(self.ids(entry("all_reduce", (48, 1), "P(max)"), entry("all_reduce", (48, 1), "P(sum)"), entry("all_reduce", (weights,), "P(sum)", **norm)),
                             ["forward.all_reduce.P(max)-R", "forward.all_reduce.P(sum)-R", "forward.all_reduce._NormPartial(2.0)"])

    def test_shard_orders_tell_apart(self):
        order = {"src_order": [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}]}
        self.assertEqual(self.ids(entry("reshard"), entry("reshard", **order)), ["forward.reshard", "forward.reshard.S(0)[tp,dp]"])

    def test_the_order_decides_nothing(self):
        entries = [entry("all_gather"), entry("all_gather", (4, 4)), entry("all_gather", (4, 4), "S(1)")]
        self.assertEqual(sorted(self.ids(*entries)), sorted(self.ids(*entries[::-1])))

    def test_names_of_the_program_stay_and_all_are_distinct(self):
        self.assertEqual(self.ids(entry("reshard", id="wq"), entry("reshard", id="layers.0.wk")), ["wq", "layers.0.wk"])
        self.assertEqual(self.ids(entry("all_gather"), entry("all_gather")), ["forward.all_gather", "forward.all_gather.2"])

    def test_the_recorded_specs_are_named_so(self):
        for path in sorted(SPECS.glob("recorded-*.json")):
            spec = json.loads(path.read_text(encoding="utf-8"))
            ids = [r["id"] for r in spec["redistributions"]]
            self.assertEqual(len(ids), len(set(ids)))
            # Members of bundles keep the names that the program gives its tensors.
            named = [pattern for bundle in spec.get("bundles", []) for pattern in bundle["redistributions"]]
            for name in ids:
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in named):
                    continue
                self.assertFalse(any(part.isdigit() for part in name.split(".")[1:-1]), f"{path.name}: {name}")


if __name__ == "__main__":
    unittest.main()
