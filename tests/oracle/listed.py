#!/usr/bin/env python3
"""Executes what `meshplan transfers` prints: a program that knows only the rows, not the plan's ops.

usage: listed.py --meshplan BIN [--seeds FIRST:END]

Every rank has flat buffers; every row copies a box from one to another, at the offsets and strides
that it names. After each step, what every rank of every copy holds is compared with what the state
means (meaning.py, replay.py). CSV must say what JSON says. Of a crossing in chunks the
rows are also those that the rules name (transfers.py), chunk by chunk.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import random_worlds
from meaning import (Complaint, DTYPE_BYTES, count_of, held, meshes_of, state_of_request,
                     state_of_text)
from oracle import levels_of
from replay import PRIME, World, reduced
from transfers import chunks_of, two_phases_in_stages

HOSTS = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 400, "latency_ns": 1000},
                    {"name": "outside", "ranks": 1048576, "gb_per_s": 10, "latency_ns": 2000}]}


def spec_with(dims, rows, **more):
    return {"schema": "meshplan/spec/1",
            "mesh": {"dims": [{"name": n, "size": s} for n, s in dims]}, **more,
            "redistributions": [
                {"id": name, "tensor": {"shape": shape, "dtype": dtype}, "src": src, "dst": dst}
                for name, shape, dtype, src, dst in rows]}


def named_specs():
    """Each kind of redistribution at least once, with what it must make the plan do."""
    yield "even", spec_with([("a", 2), ("b", 4)], [
        ("gather", [16, 8], "bfloat16", ["R", "S(0)"], ["R", "R"]),
        ("transpose", [16, 8], "float32", ["R", "S(0)"], ["R", "S(1)"]),
        ("slice", [16, 8], "float32", ["R", "R"], ["S(0)", "S(1)"]),
        ("again", [16, 8], "bfloat16", ["R", "S(0)"], ["R", "R"])])
    yield "uneven", spec_with([("a", 2), ("b", 3)], [
        ("gather", [7, 5], "float32", ["S(0)", "S(0)"], ["R", "S(1)"]),
        ("empty", [2, 5], "float32", ["R", "S(0)"], ["S(1)", "R"]),
        ("scalar", [], "float32", ["P(sum)", "P(avg)"], ["R", "R"])])
    yield "reducing", spec_with([("a", 2), ("b", 2)], [
        ("sum", [8, 8], "bfloat16", ["P(sum)", "S(0)"], ["S(1)", "S(0)"]),
        ("avg", [9], "float32", ["P(avg)", "P(sum)"], ["R", "R"]),
        ("max", [6], "int32", ["P(max)", "P(max)"], ["S(0)", "R"]),
        ("product", [6], "float32", ["R", "R"], ["P(product)", "P(product)"]),
        ("partial", [6], "float32", ["S(0)", "R"], ["P(sum)", "P(sum)"])])
    yield "two phases", spec_with([("a", 2), ("b", 4)], [
        ("both", [1 << 12, 64], "float32", ["S(0)", "R"], ["R", "R"]),
        ("uneven", [4099, 64], "float32", ["S(0)", "S(0)"], ["R", "S(1)"]),
        ("chunks", [4099, 640], "float32", ["S(0)", "R"], ["R", "R"])], topology=HOSTS)
    few_a_peer = {"levels": [HOSTS["levels"][0], {**HOSTS["levels"][1], "peer_gb_per_s": 5}]}
    yield "in laps", spec_with([("a", 3), ("b", 4)], [
        ("halves", [1 << 14, 64], "float32", ["S(0)", "R"], ["R", "R"]),
        ("uneven", [40_099, 7], "float32", ["S(0)", "R"], ["R", "R"])], topology=few_a_peer)
    yield "two phases across", {
        "schema": "meshplan/spec/1", "topology": HOSTS,
        "meshes": [{"name": "train", "world": 6, "dims": [{"name": "a", "size": 2},
                                                          {"name": "b", "size": 3}]},
                   {"name": "serve", "world": 8, "ranks": ["4-11"]}],
        "redistributions": [
            {"id": "sync", "tensor": {"shape": [4099, 64], "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["S(1)", "S(0)"], "dst": ["R"]}]}
    yield "fetched by all", {
        "schema": "meshplan/spec/1", "topology": HOSTS,
        "meshes": [{"name": "train", "world": 8, "dims": [{"name": "a", "size": 2},
                                                          {"name": "b", "size": 4}]},
                   {"name": "serve", "world": 8, "ranks": ["8-15"]},
                   {"name": "few", "world": 4, "ranks": [13, 8, 9, 12], "dims": [{"name": "c", "size": 2},
                                                                                 {"name": "d", "size": 2}]}],
        "redistributions": [
            {"id": name, "tensor": {"shape": shape, "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": mesh, "src": ["S(1)", "S(0)"], "dst": dst}
            for name, shape, mesh, dst in (("two rows", [2, 1 << 16], "serve", ["S(0)"]),
                                           ("three rows", [3, 70001], "serve", ["S(0)"]),
                                           ("a column", [1 << 16, 1], "few", ["S(1)", "R"]))]}
    yield "shared behind the crossing", {
        "schema": "meshplan/spec/1", "topology": HOSTS,
        "meshes": [{"name": "train", "world": 4, "dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}]},
                   {"name": "serve", "world": 16, "dims": [{"name": "x", "size": 4}, {"name": "y", "size": 4}],
                    "ranks": [14, 18, 9, 5, 13, 6, 7, 15, 17, 11, 12, 8, 4, 10, 19, 16]}],
        "redistributions": [
            {"id": "rows", "tensor": {"shape": [1027, 512], "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["S(0)", "S(1)"], "dst": ["S(0)", "R"]}]}
    slow_peers = {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 100, "latency_ns": 5, "per_peer_ns": 5},
                             {"name": "outside", "ranks": 1048576, "gb_per_s": 40, "latency_ns": 50,
                              "per_peer_ns": 500}]}
    yield "in shifts", {
        "schema": "meshplan/spec/1", "topology": slow_peers,
        "meshes": [{"name": "train", "world": 12, "dims": [{"name": "a", "size": 3}, {"name": "b", "size": 4}]},
                   {"name": "serve", "world": 8, "ranks": ["8-15"]}],
        "redistributions": [
            {"id": str(shape), "tensor": {"shape": shape, "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["S(0)", "S(0)"], "dst": ["R"]}
            for shape in ([1536, 256], [1531, 301], [2, 200_003])]}
    yield "far shares", {
        "schema": "meshplan/spec/1",
        "topology": {"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 100, "latency_ns": 1},
                                {"name": "across", "ranks": 1 << 20, "gb_per_s": 50, "latency_ns": 2}]},
        "meshes": [{"name": "train", "world": 12, "dims": [{"name": "a", "size": 3},
                                                           {"name": "b", "size": 4}]},
                   {"name": "serve", "world": 4},
                   {"name": "mixed", "world": 6, "ranks": [9, 1, 4, 3, 6, 15]}],
        "redistributions": [
            {"id": f"{shape} to {mesh}", "tensor": {"shape": shape, "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": mesh, "src": ["R", "S(0)"], "dst": ["S(1)"]}
            for shape in ([512, 256], [515, 301]) for mesh in ("serve", "mixed")]}
    yield "far shares on one mesh", spec_with([("a", 3), ("b", 4)], [
        (f"{shape} {to}", shape, "float32", ["R", "S(0)"], to)
        for shape in ([1536, 256], [1531, 301]) for to in (["S(0)", "S(0)"], ["S(1)", "R"])],
        topology={"levels": [{"name": "inside", "ranks": 4, "gb_per_s": 100, "latency_ns": 1},
                             {"name": "across", "ranks": 1 << 20, "gb_per_s": 50, "latency_ns": 2}]})
    yield "universes", {
        "schema": "meshplan/spec/1",
        "meshes": [{"name": "train", "world": 6, "dims": [{"name": "a", "size": 2},
                                                          {"name": "b", "size": 3}]},
                   {"name": "serve", "world": 4, "ranks": [9, 2, 7, 8]}],
        "redistributions": [
            {"id": "sync", "tensor": {"shape": [10, 7], "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["R", "S(0)"], "dst": ["S(1)"]},
            {"id": "summed", "tensor": {"shape": [10, 7], "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["P(sum)", "S(0)"], "dst": ["R"]}]}


def sliced(flat, whole, box, offset):
    """The box in the flat buffer of `whole`, as an array that shares its memory."""
    widths = [high - low for low, high in whole]
    strides, step = [], 1
    for width in reversed(widths):
        strides.insert(0, step)
        step *= width
    shape = [high - low for low, high in box]
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
    if not all(shape) or last >= flat.size or offset < 0:
        raise Complaint("row", f"{box} at {offset} of {whole} is empty or leaves the buffer of {flat.size}")
    at = flat[offset:last + 1]
    return np.lib.stride_tricks.as_strided(at, shape, [s * flat.itemsize for s in strides])


def execute(step, buffers, boxes, element, wire, where):
    """The buffers after a step: rank -> flat array of its box in `boxes`."""
    new, fetched, parts, written, chunks = {}, {}, {}, {}, {}
    for rank, box in boxes.items():
        new[rank] = np.zeros((step["contributions"], count_of(box)), dtype=np.int64)
        written[rank] = np.zeros(new[rank].shape, dtype=np.int64)
    for row in step["transfers"]:
        if row["action"] == "fill":
            new[row["to"]][:] = {"sum": 0, "product": 1}[step["reduce_op"]]
            written[row["to"]][:] = 1
            continue
        if (row["action"] == "copy") != (row["from"] == row["to"]):
            raise Complaint("row", f"{where}: {row['action']} from {row['from']} to {row['to']}")
        if row["bytes"] != count_of(row["box"]) * wire:
            raise Complaint("row", f"{where}: {row['bytes']} bytes of {row['box']}")
        if row["from_buffer"] == "fetched":
            arrives = chunks[row["from"], row["from_offset"]]
            if row.get("chunk", 0) < arrives:
                raise Complaint("row", f"{where}: chunk {row.get('chunk', 0)} needs what arrives in chunk {arrives}")
        source = (buffers if row["from_buffer"] == "held" else fetched)[row["from"]]
        data = sliced(source, row["from_box"], row["box"], row["from_offset"] // element)
        if row["to_buffer"] == "fetched":
            end = parts.get(row["to"], 0)
            if row["phase"] != 1 or row["to_offset"] != end * element:
                raise Complaint("row", f"{where}: a fetched part at {row['to_offset']}, expected {end * element}")
            parts[row["to"]] = end + data.size
            chunks[row["to"], row["to_offset"]] = row.get("chunk", 0)
            fetched[row["to"]] = np.concatenate([fetched.get(row["to"], np.zeros(0, np.int64)), data.reshape(-1)])
            continue
        k = row["contribution"]
        sliced(new[row["to"]][k], row["to_box"], row["box"], row["to_offset"] // element)[...] = data
        count = sliced(written[row["to"]][k], row["to_box"], row["box"], row["to_offset"] // element)
        count += 1
    filled = {row["to"] for row in step["transfers"] if row["action"] == "fill"}
    for rank, counts in written.items():
        if rank not in filled and not (counts == 1).all():
            raise Complaint("row", f"{where}: rank {rank} gets elements never or twice")
    op = step["reduce_op"] or "sum"
    return {rank: reduced(op, list(rows), step["divisor"]) % PRIME for rank, rows in new.items()}


def rows_in_chunks(step, levels, have, want):
    """(phase, chunk, from, to, box) of all that a planned step in chunks sends from rank to rank."""
    stages, phases = two_phases_in_stages(levels, have, want, step.get("at_once", 0),
                                          step.get("fetched_by_all", False), step.get("laps", 1))
    return [(phase, chunk, sender, receiver, cut) for phase, pieces in enumerate(phases, 1)
            for (sender, receiver, _, box), stage in pieces
            for chunk, cut in chunks_of(box, step["chunks"], stages, stage)]


def check_chunks(step, listed, levels, have, want, where):
    """The rows are those of the rules; in shifts a chunk joins each rank with so many others at most."""
    expected = set(rows_in_chunks(step, levels, have, want))
    found = {(row["phase"], row.get("chunk", 0), row["from"], row["to"], tuple(tuple(b) for b in row["box"]))
             for row in listed["transfers"] if row["action"] == "send"}
    if found != expected:
        raise Complaint("chunk", f"{where}: listed alone {sorted(found - expected)[:3]}, "
                                 f"by the rules alone {sorted(expected - found)[:3]}")
    others = {}
    for phase, chunk, sender, receiver, _ in found:
        if phase == 1:
            others.setdefault((chunk, "fetches from", receiver), set()).add(sender)
            others.setdefault((chunk, "serves", sender), set()).add(receiver)
    for (chunk, does, rank), met in others.items():
        if len(met) > step.get("at_once", len(met)):
            raise Complaint("chunk", f"{where}: in chunk {chunk} rank {rank} {does} {sorted(met)}")


class Run:
    """One redistribution on every copy of its meshes."""

    def __init__(self, red, plan_red, meshes, seed):
        self.red, self.plan_red, self.meshes = red, plan_red, meshes
        self.shape = plan_red["tensor"]["shape"]
        self.source = meshes[plan_red.get("src_mesh", plan_red.get("mesh", "mesh"))]
        self.crosses = "src_mesh" in plan_red and plan_red["src_mesh"] != plan_red["dst_mesh"]
        state = state_of_request(plan_red["src"], plan_red["src_order"], self.source)
        copies = 1 if self.crosses else len(self.source.copies)
        self.worlds = [World(held(state, self.shape, k), seed + k) for k in range(copies)]
        self.buffers = self.of_worlds()

    def of_worlds(self):
        return {rank: array.flatten() for world in self.worlds
                for rank, array in zip(world.held.ranks, world.arrays)}

    def step(self, number, listed, levels=None):
        """Executes the step's rows; with levels it also looks at the chunks of a crossing."""
        planned = self.plan_red["steps"][number]
        where = f"{self.plan_red['id']} step {number} ({planned['op']})"
        mesh = self.meshes[planned["mesh"]] if "mesh" in planned else self.worlds[0].held.state.mesh
        state = state_of_text(planned["state"], mesh)
        after = [held(state, self.shape, k) for k in range(len(self.worlds))]
        boxes = {rank: box for at in after for rank, box in zip(at.ranks, at.boxes)}
        if levels and self.worlds[0].held.state.mesh is not mesh and planned.get("chunks", 1) > 1:
            before = self.worlds[0].held
            have = {rank: ((), box) for rank, box in zip(before.ranks, before.boxes)}
            check_chunks(planned, listed, levels, have, {rank: ([()], box) for rank, box in boxes.items()}, where)
        element = DTYPE_BYTES[self.red["dtype"]]
        wide = listed["reduce_op"] and listed["op"] != "to_partial"
        wire = DTYPE_BYTES[self.red.get("reduce_dtype", self.red["dtype"])] if wide else element
        self.buffers = execute(listed, self.buffers, boxes, element, wire, where)
        for world, at in zip(self.worlds, after):
            world.held = at
            world.arrays = [self.buffers[rank].reshape([high - low for low, high in box])
                            for rank, box in zip(at.ranks, at.boxes)]
            world.check(where)


def answer(meshplan, *words):
    done = subprocess.run([meshplan, *words], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def csv_matches(document, text):
    """Every row of the CSV is the row of the JSON at its place."""
    rows = list(csv.DictReader(io.StringIO(text)))
    flat = []
    for red in document["redistributions"]:
        if "same_as" in red:
            flat.append((red, None, None))
        flat += [(red, step, row) for step in red.get("steps", []) for row in step["transfers"]]
    if len(rows) != len(flat):
        raise Complaint("csv", f"{len(rows)} rows, the JSON has {len(flat)}")
    for cells, (red, step, row) in zip(rows, flat):
        expected = {"redistribution": red["id"], "count": red["count"], "same_as": red.get("same_as")}
        if row:
            expected.update({k: step[k] for k in ("step", "op", "reduce_op", "divisor")})
            expected.update({"chunk": 0, **row})
        for key, cell in cells.items():
            value = expected.get(key)
            if key.endswith("box") and value is not None:
                value = "[" + ", ".join(f"{low}:{high}" for low, high in value) + "]"
            if cell != ("" if value is None else str(value)):
                raise Complaint("csv", f"{red['id']}: {key} is {cell}, the JSON has {value}")


def check_spec(meshplan, spec, name, seen):
    """Executes all transfers of a spec's plan; what came up is added to `seen`."""
    with tempfile.TemporaryDirectory() as folder:
        path, planned = os.path.join(folder, "spec.json"), os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        code, _, err = answer(meshplan, "plan", path, "-o", planned, "-q")
        if code == 3:
            return
        if code != 0:
            raise Complaint("plan", f"exit {code}: {err}")
        with open(planned, encoding="utf-8") as file:
            plan = json.load(file)
        code, text, err = answer(meshplan, "transfers", planned)
        if code != 0:
            raise Complaint("transfers", f"exit {code}: {err}")
        document = json.loads(text)
        csv_matches(document, answer(meshplan, "transfers", planned, "--format", "csv")[1])
    meshes = meshes_of(spec)
    planned_by_id = {r["id"]: r for r in plan["redistributions"]}
    if [r["id"] for r in document["redistributions"]] != list(planned_by_id):
        raise Complaint("transfers", "the redistributions are not those of the plan, in order")
    for number, red in enumerate(document["redistributions"]):
        if "same_as" in red:
            if red["same_as"] != planned_by_id[red["id"]]["same_as"]:
                raise Complaint("transfers", f"{red['id']} repeats {red['same_as']}")
            seen.add("repeat")
            continue
        run = Run(red, planned_by_id[red["id"]], meshes, 1000 * number)
        if len(red["steps"]) != len(run.plan_red["steps"]):
            raise Complaint("transfers", f"{red['id']} has {len(red['steps'])} steps")
        for index, step in enumerate(red["steps"]):
            run.step(index, step, levels_of(plan["topology"]))
            seen.update({step["op"], "two phases" if any(r["phase"] == 2 for r in step["transfers"]) else "",
                         "reduce " + str(step["reduce_op"]), "fill" if any(
                             r["action"] == "fill" for r in step["transfers"]) else ""})
        seen.update("fetched by all on one mesh" for number, step in enumerate(run.plan_red["steps"])
                    if number and step.get("fetched_by_all"))
        seen.update("far share" if run.crosses else "far share on one mesh"
                    for step in run.plan_red["steps"] if step.get("far_64ths"))
        seen.update("in laps" for step in run.plan_red["steps"] if step.get("laps"))
        seen.update("fetched by all" for step in run.plan_red["steps"] if step.get("fetched_by_all"))
        seen.update("in shifts" for step in run.plan_red["steps"] if step.get("at_once"))
        seen.add("crosses" if run.crosses else "one mesh")


def check_memory(meshplan):
    """One step's rows at a time: 200 MB of rows do not take 64 MB more than to verify the plan."""
    spec = spec_with([("a", 256)], [(f"t{n}", [256 * (n + 1)], "float32", ["S(0)"], ["R"]) for n in range(16)])
    with tempfile.TemporaryDirectory() as folder:
        path, planned = os.path.join(folder, "spec.json"), os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        if answer(meshplan, "plan", path, "-o", planned, "-q")[0] != 0:
            raise Complaint("memory", "the spec has no plan")
        peak = {}
        for words in (["verify", planned], ["transfers", planned, "-o", os.path.join(folder, "out")]):
            child = subprocess.Popen([meshplan, *words], stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                raise Complaint("memory", f"{words[0]} exits with {child.returncode}")
            peak[words[0]] = usage.ru_maxrss
        written = os.path.getsize(os.path.join(folder, "out"))
        if written < 200 << 20 or peak["transfers"] - peak["verify"] > 64 << 10:
            raise Complaint("memory", f"{written} bytes of rows, {peak} KB of memory")


def main():
    import listed_bundles  # which needs this module
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--meshplan", required=True)
    parser.add_argument("--seeds", default="0:120", help="FIRST:END")
    options = parser.parse_args()
    meshplan, found, seen = os.path.abspath(options.meshplan), [], set()
    first, end = (int(n) for n in options.seeds.split(":"))
    specs = list(named_specs()) + [(f"seed {n}", random_worlds.spec_of(n)) for n in range(first, end)]
    for name, spec in specs:
        try:
            check_spec(meshplan, spec, name, seen)
        except Complaint as complaint:
            found.append(f"{name}: {complaint}")
    for name, spec in listed_bundles.bundle_specs():
        try:
            listed_bundles.check_bundle(meshplan, spec, name)
        except Complaint as complaint:
            found.append(f"bundle {name}: {complaint}")
    try:
        check_memory(meshplan)
    except Complaint as complaint:
        found.append(str(complaint))
    missing = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "exchange", "slice", "to_partial",
               "two phases", "in laps", "fetched by all", "fetched by all on one mesh", "far share",
               "far share on one mesh", "in shifts",
               "crosses", "repeat", "fill", "reduce max", "reduce sum"} - seen
    if missing:
        found.append(f"never came up: {sorted(missing)}")
    print("\n".join(found) or f"the transfers of {len(specs)} specs bring every element to its place")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
