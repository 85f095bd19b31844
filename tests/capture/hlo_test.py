#!/usr/bin/env python3
"""meshplan.hlo_collectives on HLO texts, one a construct: shapes, groups, asynchronous pairs, combined collectives, loops, branches. Needs no JAX.

usage: hlo_test.py [-v] [NAME...]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "apps" / "python"))
from meshplan import hlo_collectives as hlo  # noqa: E402

ADD = """
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}
"""


def module(body, before=ADD, result="f32[]"):
    return f"HloModule jit_step, is_scheduled=true, entry_computation_layout={{(f32[8]{{0}})->{result}}}\n{before}\nENTRY %main.4 (p: f32[8]) -> {result} {{\n{body}\n}}\n"


def found(body, devices=8, **more):
    return hlo.collectives(module(body, **more), devices)


class ConstructTest(unittest.TestCase):
    def test_all_gather(self):
        self.assertEqual(found("  ROOT %ag = f32[32]{0} all-gather(%p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, use_global_device_ids=true"),
                         [("all-gather", 96, 1)])

    def test_all_reduce_with_metadata_that_looks_like_code(self):
        line = ('  ROOT %ar = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add, '
                'metadata={op_name="jit(f)/a = f32[9] all-reduce(%q), \\"x\\" }" source_file="a.py" source_line=3}')
        self.assertEqual(found(line), [("all-reduce", 32, 1)])

    def test_all_reduce_rounds_up(self):
        self.assertEqual(found("  ROOT %ar = bf16[1]{0} all-reduce(%p), replica_groups=[1,8]<=[8], to_apply=%add"), [("all-reduce", 4, 1)])

    def test_reduce_scatter(self):
        self.assertEqual(found("  ROOT %rs = f32[2]{0} reduce-scatter(%p), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=%add"), [("reduce-scatter", 24, 1)])

    def test_all_to_all_as_array_and_as_tuple(self):
        self.assertEqual(found("  ROOT %a = f32[4,8]{1,0} all-to-all(%p), replica_groups={{0,1,2,3}}, dimensions={0}"), [("all-to-all", 96, 1)])
        self.assertEqual(found("  %a = (f32[4]{0}, f32[4]{0}) all-to-all(%p, %p), replica_groups=[4,2]<=[2,2,2]T(1,0,2)"), [("all-to-all", 16, 1)])

    def test_permute_broadcast_and_ragged(self):
        self.assertEqual(found("  ROOT %c = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}"), [("collective-permute", 32, 1)])
        self.assertEqual(found("  ROOT %c = f32[8]{0} collective-broadcast(%p), replica_groups={{0,1}}"), [("collective-broadcast", 32, 1)])
        self.assertEqual(found("  ROOT %c = f32[8]{0} ragged-all-to-all(%p, %p, %p, %p, %p, %p), replica_groups={{0,1}}"), [("ragged-all-to-all", 32, 1)])

    def test_combined_all_reduce_of_six_and_more(self):
        shapes = ", ".join(("/*index=5*/" if i == 5 else "") + f"f32[{i + 1}]{{0}}" for i in range(7))
        operands = ", ".join(("/*index=5*/" if i == 5 else "") + f"%p.{i}" for i in range(7))
        line = f"  %ar = ({shapes}) all-reduce({operands}), channel_id=3, replica_groups=[1,8]<=[8], to_apply=%add"
        self.assertEqual(found(line), [("all-reduce", -(-2 * 7 * 4 * 28 // 8), 1)])

    def test_combined_with_several_types(self):
        self.assertEqual(found("  %ag = (bf16[16]{0}, f32[8]{0}) all-gather(%p, %q), replica_groups={{0,1,2,3}}, dimensions={0}"), [("all-gather", 48, 1)])

    def test_asynchronous_pairs_count_once_and_what_they_write(self):
        body = """  %s = (f32[8]{0}, f32[32]{0}) all-gather-start(%p), replica_groups=[2,4]<=[8], dimensions={0}
  %d = f32[32]{0} all-gather-done(%s)
  %r = f32[8]{0} all-reduce-start(%p), replica_groups=[2,4]<=[8], to_apply=%add
  %e = f32[8]{0} all-reduce-done(%r)
  %c = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}
  ROOT %f = f32[8]{0} collective-permute-done(%c)"""
        self.assertEqual(found(body), [("all-gather", 96, 1), ("all-reduce", 48, 1), ("collective-permute", 32, 1)])

    def test_combined_asynchronous_gather(self):
        self.assertEqual(found("  %s = ((f32[8]{0}, f32[2]{0}), (f32[32]{0}, f32[8]{0})) all-gather-start(%p, %q), replica_groups=[2,4]<=[8], dimensions={0}"),
                         [("all-gather", 120, 1)])

    def test_a_collective_inside_an_asynchronous_computation(self):
        before = ADD + """
%async_computation (q: f32[8]) -> f32[2] {
  %q = f32[8]{0} parameter(0)
  ROOT %rs = f32[2]{0} reduce-scatter(%q), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=%add
}, execution_thread="main"
"""
        body = "  %s = ((f32[8]{0}), f32[2]{0}, s32[]) async-start(%p), calls=%async_computation\n  ROOT %d = f32[2]{0} async-done(%s)"
        self.assertEqual(found(body, before=before), [("reduce-scatter", 24, 1)])

    def test_counted_loops_and_calls(self):
        before = ADD + """
%step (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %x = f32[8]{0} get-tuple-element(%s), index=1
  %ar = f32[8]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
  ROOT %t = (s32[], f32[8]{0}) tuple(%x, %ar)
}

%test (s: (s32[], f32[8])) -> pred[] {
  %s = (s32[], f32[8]{0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

%helper (h: f32[8]) -> f32[16] {
  %h = f32[8]{0} parameter(0)
  ROOT %ag = f32[16]{0} all-gather(%h), replica_groups={{0,1}}, dimensions={0}
}
"""
        body = """  %w = (s32[], f32[8]{0}) while(%p), condition=%test, body=%step, backend_config={"known_trip_count":{"n":"12"},"x":["y, body=%helper"]}
  ROOT %c = f32[16]{0} call(%p), to_apply=%helper"""
        self.assertEqual(found(body, before=before), [("all-reduce", 32, 12), ("all-gather", 32, 1)])

    def test_of_branches_the_one_that_receives_most(self):
        before = ADD + """
%small (h: f32[8]) -> f32[8] {
  %h = f32[8]{0} parameter(0)
  ROOT %a = f32[8]{0} collective-permute(%h), source_target_pairs={{0,1}}
}

%large (h: f32[8]) -> f32[8] {
  %h = f32[8]{0} parameter(0)
  ROOT %b = f32[8]{0} all-reduce(%h), replica_groups={{0,1,2,3}}, to_apply=%add
}
"""
        self.assertEqual(found("  ROOT %c = f32[8]{0} conditional(%i, %p, %p), branch_computations={%small, %large}", before=before), [("all-reduce", 48, 1)])
        self.assertEqual(found("  ROOT %c = f32[8]{0} conditional(%i, %p, %p), true_computation=%small, false_computation=%large", before=before),
                         [("all-reduce", 48, 1)])

    def test_layouts_with_tiles_and_instructions_over_several_lines(self):
        self.assertEqual(found("""  %x = (f32[8,128]{1,0:T(8,128)S(1)}, bf16[8]{0:T(8)(2,1)})
                   all-reduce(%p, %q),
                   replica_groups=[1,8]<=[8], to_apply=%add
  ROOT %y = f32[] get-tuple-element(%x), index=0"""), [("all-reduce", -(-2 * 7 * (4096 + 16) // 8), 1)])

    def test_groups(self):
        for text, size in (("{{0,1,2},{3,4,5}}", 3), ("[4,2]<=[8]", 2), ("[2,4]<=[4,2]T(1,0)", 4), ("{}", 8), ("", 8),
                           ("mesh['a'=2,'b'=4] {'b'}", 4), ("mesh['a'=2,'b'=4] {'a','b':(1)2}", 4)):
            self.assertEqual(hlo.group_size(text, 8), size, text)

    def test_names_without_percent_and_short_headers(self):
        text = """HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}

ENTRY main {
  p0 = f32[512,14336]{1,0} parameter(0)
  // in words
  ag0 = f32[4096,128]{1,0} all-gather(p0), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  ROOT t = (f32[4096,128]{1,0}) tuple(ag0)
}
"""
        self.assertEqual(hlo.collectives(text, 8), [("all-gather", 4096 * 128 * 4 * 7 // 8, 1)])

    def test_what_is_no_hlo_is_said(self):
        for text, words in (("nothing", "no ENTRY"), (module("  ROOT %a = q7[3]{0} all-reduce(%p), to_apply=%add"), "unknown element type q7"),
                            ("ENTRY %main (p: f32[8]) -> f32[8] {\n  %a = f32[8]{0} add(%p", "not closed")):
            with self.assertRaisesRegex(hlo.BadHlo, words):
                hlo.collectives(text, 8)


if __name__ == "__main__":
    unittest.main()
