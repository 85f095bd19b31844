#!/usr/bin/env python3
"""Executes what `meshplan transfers` prints: a program that knows only the rows, not the plan's ops.

usage: listed.py --meshplan BIN [--seeds FIRST:END]

Every rank has flat buffers; every row copies a box from one to another, at the offsets and strides
that it names. After each step, what every rank of every copy holds is compared with what the state
means (meaning.py, replay.py). CSV must say what JSON says.
"""
import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import random_worlds
from meaning import (Complaint, DTYPE_BYTES, count_of, held, meshes_of, rank_list,
                     state_of_request, state_of_text)
from replay import PRIME, World, reduced

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
    yield "two phases across", {
        "schema": "meshplan/spec/1", "topology": HOSTS,
        "meshes": [{"name": "train", "world": 6, "dims": [{"name": "a", "size": 2},
                                                          {"name": "b", "size": 3}]},
                   {"name": "serve", "world": 8, "ranks": ["4-11"]}],
        "redistributions": [
            {"id": "sync", "tensor": {"shape": [4099, 64], "dtype": "float32"}, "src_mesh": "train",
             "dst_mesh": "serve", "src": ["S(1)", "S(0)"], "dst": ["R"]}]}
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


def ids_of(spec):
    """Mesh name -> global ids by position in its universe."""
    if "mesh" in spec:
        return {"mesh": meshes_of(spec)[1]}
    found = {}
    for op in spec["meshes"]:
        if "world" in op:
            found[op["name"]] = rank_list(op.get("ranks"), op["world"])
        else:
            name = op.get("name") or op.get("dim") or "_".join(op["flatten"])
            found[name] = found[op.get("of") or op["concatenate"][0]]
    return found


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


class Run:
    """One redistribution on every copy of its meshes."""

    def __init__(self, spec, red, plan_red, meshes, seed):
        self.red, self.plan_red, self.meshes, self.ids = red, plan_red, meshes, ids_of(spec)
        self.shape = plan_red["tensor"]["shape"]
        self.source = meshes[plan_red.get("src_mesh", plan_red.get("mesh", "mesh"))]
        self.crosses = "src_mesh" in plan_red and plan_red["src_mesh"] != plan_red["dst_mesh"]
        state = state_of_request(plan_red["src"], plan_red["src_order"], self.source)
        copies = 1 if self.crosses else len(self.source.copies)
        self.worlds = [World(held(state, self.shape, k), seed + k) for k in range(copies)]
        self.buffers = self.of_worlds()

    def ranks(self, at):
        ids = self.ids[at.state.mesh.name]
        return [ids[p] for p in at.positions]

    def of_worlds(self):
        return {rank: array.flatten() for world in self.worlds
                for rank, array in zip(self.ranks(world.held), world.arrays)}

    def step(self, number, listed):
        planned = self.plan_red["steps"][number]
        where = f"{self.plan_red['id']} step {number} ({planned['op']})"
        mesh = self.meshes[planned["mesh"]] if "mesh" in planned else self.worlds[0].held.state.mesh
        state = state_of_text(planned["state"], mesh)
        after = [held(state, self.shape, k) for k in range(len(self.worlds))]
        boxes = {rank: box for at in after for rank, box in zip(self.ranks(at), at.boxes)}
        element = DTYPE_BYTES[self.red["dtype"]]
        wide = listed["reduce_op"] and listed["op"] != "to_partial"
        wire = DTYPE_BYTES[self.red.get("reduce_dtype", self.red["dtype"])] if wide else element
        self.buffers = execute(listed, self.buffers, boxes, element, wire, where)
        for world, at in zip(self.worlds, after):
            world.held = at
            world.arrays = [self.buffers[rank].reshape([high - low for low, high in box])
                            for rank, box in zip(self.ranks(at), at.boxes)]
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
    meshes, _ = meshes_of(spec)
    planned_by_id = {r["id"]: r for r in plan["redistributions"]}
    if [r["id"] for r in document["redistributions"]] != list(planned_by_id):
        raise Complaint("transfers", "the redistributions are not those of the plan, in order")
    for number, red in enumerate(document["redistributions"]):
        if "same_as" in red:
            if red["same_as"] != planned_by_id[red["id"]]["same_as"]:
                raise Complaint("transfers", f"{red['id']} repeats {red['same_as']}")
            seen.add("repeat")
            continue
        run = Run(spec, red, planned_by_id[red["id"]], meshes, 1000 * number)
        if len(red["steps"]) != len(run.plan_red["steps"]):
            raise Complaint("transfers", f"{red['id']} has {len(red['steps'])} steps")
        for index, step in enumerate(red["steps"]):
            run.step(index, step)
            seen.update({step["op"], "two phases" if any(r["phase"] == 2 for r in step["transfers"]) else "",
                         "reduce " + str(step["reduce_op"]), "fill" if any(
                             r["action"] == "fill" for r in step["transfers"]) else ""})
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


class BundleRun:
    """A bundle by the rows of its rounds: every tensor of every member has data of its own."""

    def __init__(self, spec, plan, bundle, meshes):
        self.spec, self.meshes, self.bundle = spec, meshes, bundle
        self.plan_reds = {r["id"]: r for r in plan["redistributions"]}
        for red in list(self.plan_reds.values()):
            if "same_as" in red:
                self.plan_reds[red["id"]] = {**self.plan_reds[red["same_as"]], "id": red["id"], "count": red["count"]}
        self.members = [self.plan_reds[m] for m in bundle["members"]]
        self.tensors = {}
        for number, red in enumerate(self.members):
            for k in range(red.get("count", 1)):
                self.tensors[red["id"], k] = Run(spec, {"dtype": red["tensor"]["dtype"], **red}, red, meshes,
                                                 100_000 * number + 100 * k)
        # (id, tensor) -> state -> rank -> buffer, and which elements of it were written.
        self.states = {key: {0: run.buffers} for key, run in self.tensors.items()}
        self.written = {}

    def after(self, key, step):
        """The boxes after a step: rank -> box; the buffers are made when the step is first seen."""
        run, planned = self.tensors[key], self.plan_reds[key[0]]["steps"][step]
        mesh = self.meshes[planned["mesh"]] if "mesh" in planned else run.worlds[0].held.state.mesh
        state = state_of_text(planned["state"], mesh)
        at = [held(state, run.shape, k) for k in range(len(run.worlds))]
        return at, {rank: box for one in at for rank, box in zip([self.ids(one, p) for p in one.positions], one.boxes)}

    def ids(self, at, position):
        return self.tensors[self.members[0]["id"], 0].ids[at.state.mesh.name][position]

    def wave(self, parts):
        """All rows of a wave read what was there before it, but those of its local steps."""
        messages, reads = {}, []
        for number, part in parts:
            rows = [self.read(number, part, row, messages) for row in part["transfers"]]
            if part["op"] in ("slice", "to_partial"):  # done before the step that it is for
                self.write(rows)
            else:
                reads += rows
        self.write(reads)
        return messages

    def read(self, number, part, row, messages):
        """What a row brings; its place in its message is counted in `messages`."""
        where = f"round {number}: {part['id']} step {part['step']}"
        element = DTYPE_BYTES[part["dtype"]]
        wide = part["reduce_op"] and part["op"] != "to_partial"
        wire = DTYPE_BYTES[part.get("reduce_dtype", part["dtype"])] if wide else element
        key, data = (part["id"], row["tensor"]), None
        if not part["from"] <= row["tensor"] < part["to"]:
            raise Complaint("row", f"{where}: tensor {row['tensor']} is not of the part")
        if "message_offset" in row:
            pair = (number, row["from"], row["to"])
            if row["message_offset"] != messages.get(pair, 0) or row["message_offset"] % wire:
                raise Complaint("row", f"{where}: a box at {row['message_offset']} of its message, "
                                f"expected {messages.get(pair, 0)}")
            messages[pair] = row["message_offset"] + row["bytes"]
        elif row["action"] == "send" and part["op"] == "exchange":
            raise Complaint("row", f"{where}: a box is in no message")
        if row["action"] != "fill":
            if row["bytes"] != count_of(row["box"]) * wire:
                raise Complaint("row", f"{where}: {row['bytes']} bytes of {row['box']}")
            have, done = self.states[key].get(part["step"]), self.written.get((key, part["step"]))
            if have is None or row["from"] not in have:
                raise Complaint("row", f"{where}: rank {row['from']} has nothing to send")
            place = (row["from_box"], row["box"], row["from_offset"] // element)
            if done is not None and not (sliced(done[row["from"]], *place) == 1).all():
                raise Complaint("row", f"{where}: rank {row['from']} sends what it has not got")
            data = sliced(have[row["from"]], *place).copy()
        return key, part, row, data, element, where

    def write(self, reads):
        combined = {}
        for key, part, row, data, element, where in reads:
            step = part["step"]
            if step + 1 not in self.states[key]:
                _, boxes = self.after(key, step)
                self.states[key][step + 1] = {r: np.zeros(count_of(b), np.int64) for r, b in boxes.items()}
                self.written[key, step + 1] = {r: np.zeros(count_of(b), np.int64) for r, b in boxes.items()}
            into = self.states[key][step + 1][row["to"]]
            if row["action"] == "fill":
                into[:] = {"sum": 0, "product": 1}[part["reduce_op"]]
                self.written[key, step + 1][row["to"]][:] = 1
                continue
            target = (key, step, row["to"])
            if part["contributions"] > 1:
                rows = combined.setdefault(target, (part, [np.zeros(into.size, np.int64) for _ in range(part["contributions"])]))[1]
                sliced(rows[row["contribution"]], row["to_box"], row["box"], row["to_offset"] // element)[...] = data
            else:
                sliced(into, row["to_box"], row["box"], row["to_offset"] // element)[...] = data
            if row["contribution"] == 0:
                count = sliced(self.written[key, step + 1][row["to"]], row["to_box"], row["box"], row["to_offset"] // element)
                if part["op"] != "to_partial" and (count != 0).any():
                    raise Complaint("row", f"{where}: rank {row['to']} gets elements twice")
                count[...] = 1
        for (key, step, rank), (part, rows) in combined.items():
            self.states[key][step + 1][rank] = reduced(part["reduce_op"], rows, part["divisor"]) % PRIME

    def check(self):
        """Every element of every tensor after its last step."""
        for key, run in self.tensors.items():
            last = len(self.plan_reds[key[0]]["steps"])
            if last == 0:
                continue
            where = f"{key[0]} tensor {key[1]}"
            if last not in self.states[key]:
                raise Complaint("bundle", f"{where} never arrives")
            for rank, counts in self.written[key, last].items():
                if not (counts == 1).all():
                    raise Complaint("bundle", f"{where}: rank {rank} lacks elements")
            at, _ = self.after(key, last - 1)
            for world, one in zip(run.worlds, at):
                world.held = one
                world.arrays = [self.states[key][last][self.ids_of(run, one, p)].reshape([high - low for low, high in box])
                                for p, box in zip(one.positions, one.boxes)]
                world.check(where)

    @staticmethod
    def ids_of(run, at, position):
        return run.ids[at.state.mesh.name][position]


def execute_bundle(spec, plan, bundle, document, meshes):
    """Runs the rows wave by wave; returns the messages: (round, from, to) -> bytes."""
    run, messages = BundleRun(spec, plan, bundle, meshes), {}
    rounds = document["rounds"]
    if [r["round"] for r in rounds] != list(range(len(rounds))):
        raise Complaint("bundle", "the rounds are not in order")
    for number, listed in enumerate(rounds):
        for before in listed["after"]:
            if rounds[before]["wave"] >= listed["wave"]:
                raise Complaint("bundle", f"round {number} does not wait for round {before}")
    for wave in sorted({r["wave"] for r in rounds}):
        parts = [(r["round"], part) for r in rounds if r["wave"] == wave for part in r["parts"]]
        messages.update(run.wave(parts))
    run.check()
    for number, planned in enumerate(bundle["rounds"]):
        if planned["op"] != "exchange":
            continue
        ends = {}
        for (at, sender, receiver), size in messages.items():
            if at == number:
                for rank in (sender, receiver):
                    count, staged = ends.get(rank, (0, 0))
                    ends[rank] = (count + 1, staged + size)
        most = (max((c for c, _ in ends.values()), default=0), max((s for _, s in ends.values()), default=0))
        if most != (planned["messages"], planned["staging_bytes"]):
            raise Complaint("bundle", f"round {number} has {most} messages and bytes, planned "
                            f"{(planned['messages'], planned['staging_bytes'])}")
    return messages


def bundle_specs():
    """Weight syncs with what makes them differ: uneven extents, disjoint and shared ranks, FP8, limits."""
    rows = [("wq", [37, 10], "bfloat16", ["S(0)"], ["S(1)"], 4), ("norm", [29], "float32", ["R"], ["R"], 3),
            ("fp8", [24, 7, 3], "float8_e4m3", ["S(0)"], ["S(1)"], 2), ("out", [50, 6], "bfloat16", ["S(0)"], ["R"], 2),
            ("grad", [11, 6], "float32", ["P(sum)"], ["S(1)"], 2), ("scale", [], "float32", ["R"], ["R"], 2)]
    for name, train, serve, ranks, limit in (("disjoint", 12, 4, "12-15", 0), ("tight", 5, 3, "7-9", 900),
                                             ("same ranks", 6, 4, "0-3", 2000)):
        yield name, {
            "schema": "meshplan/spec/1", "topology": HOSTS,
            "meshes": [{"name": "train", "world": train, "dims": [{"name": "x", "size": train}]},
                       {"name": "serve", "world": serve, "ranks": [ranks], "dims": [{"name": "y", "size": serve}]}],
            "redistributions": [{"id": i, "tensor": {"shape": s, "dtype": d}, "src_mesh": "train", "dst_mesh": "serve",
                                 "src": a, "dst": b, "count": n} for i, s, d, a, b, n in rows],
            "bundles": [{"id": "sync", "redistributions": ["*"], "max_staging_bytes": limit}]}
    yield "one mesh", {
        "schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 3}, {"name": "b", "size": 4}]},
        "redistributions": [
            {"id": "muon.gather", "tensor": {"shape": [48, 10], "dtype": "bfloat16"}, "src": ["S(0)", "R"], "dst": ["R", "R"], "count": 5},
            {"id": "muon.cut", "tensor": {"shape": [48, 10], "dtype": "float32"}, "src": ["R", "R"], "dst": ["S(0)", "S(1)"], "count": 2},
            {"id": "muon.sum", "tensor": {"shape": [13, 10], "dtype": "float32"}, "src": ["P(sum)", "S(0)"], "dst": ["R", "S(0)"], "count": 2}],
        "bundles": [{"id": "sync", "redistributions": ["muon.*"]}]}


def bundle_csv_matches(document, text):
    rows = list(csv.DictReader(io.StringIO(text)))
    flat = [(r, part, row) for r in document["rounds"] for part in r["parts"] for row in part["transfers"]]
    if len(rows) != len(flat):
        raise Complaint("csv", f"{len(rows)} rows, the JSON has {len(flat)}")
    for cells, (listed, part, row) in zip(rows, flat):
        expected = {**{k: listed[k] for k in ("round", "wave", "stream")}, "redistribution": part["id"],
                    **{k: part[k] for k in ("step", "piece", "pieces", "op", "reduce_op", "divisor")}, **row}
        for key, cell in cells.items():
            value = expected.get(key)
            if key.endswith("box") and value is not None:
                value = "[" + ", ".join(f"{low}:{high}" for low, high in value) + "]"
            if cell != ("" if value is None else str(value)):
                raise Complaint("csv", f"{part['id']}: {key} is {cell}, the JSON has {value}")


def check_bundle(meshplan, spec, name):
    with tempfile.TemporaryDirectory() as folder:
        path, planned = os.path.join(folder, "spec.json"), os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        code, _, err = answer(meshplan, "plan", path, "-o", planned, "-q")
        if code != 0:
            raise Complaint("plan", f"{name}: exit {code}: {err}")
        with open(planned, encoding="utf-8") as file:
            plan = json.load(file)
        for bundle in plan["bundles"]:
            words = ("transfers", planned, "--bundle", bundle["id"])
            code, text, err = answer(meshplan, *words)
            if code != 0:
                raise Complaint("transfers", f"{name}: exit {code}: {err}")
            document = json.loads(text)
            bundle_csv_matches(document, answer(meshplan, *words, "--format", "csv")[1])
            meshes, _ = meshes_of(spec)
            execute_bundle(spec, plan, bundle, document, meshes)
            check_one_rank(meshplan, words, document)
        code, text, err = answer(meshplan, "run", planned)
        if code != 0 or ", 0 wrong" not in text:
            raise Complaint("run", f"{name}: exit {code}: {text}{err}")
        staged = re.findall(r"staging ([0-9,]+) B measured, ([0-9,]+) B planned", text)
        exact = [all(r["op"] == "exchange" for r in b["rounds"]) for b in plan["bundles"]]
        for (measured, planned_bytes), equal in zip(staged, exact):
            measured, planned_bytes = (int(n.replace(",", "")) for n in (measured, planned_bytes))
            if measured > planned_bytes or (equal and measured != planned_bytes):
                raise Complaint("run", f"{name}: {measured} bytes staged, {planned_bytes} planned")


def check_one_rank(meshplan, words, document):
    """--rank lists the same rows, at the same places of their messages."""
    rank = document["rounds"][0]["parts"][0]["transfers"][0]["to"]
    own = json.loads(answer(meshplan, *words, "--rank", str(rank))[1])
    rows = [[row for part in r["parts"] for row in part["transfers"]] for r in own["rounds"]]
    expected = [[row for part in r["parts"] for row in part["transfers"] if rank in (row.get("from"), row["to"])]
                for r in document["rounds"]]
    if rows != expected:
        raise Complaint("rank", f"--rank {rank} lists other rows")


def main():
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
    for name, spec in bundle_specs():
        try:
            check_bundle(meshplan, spec, name)
        except Complaint as complaint:
            found.append(f"bundle {name}: {complaint}")
    try:
        check_memory(meshplan)
    except Complaint as complaint:
        found.append(str(complaint))
    missing = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "exchange", "slice", "to_partial",
               "two phases", "crosses", "repeat", "fill", "reduce max", "reduce sum"} - seen
    if missing:
        found.append(f"never came up: {sorted(missing)}")
    print("\n".join(found) or f"the transfers of {len(specs)} specs bring every element to its place")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
