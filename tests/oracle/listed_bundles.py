"""Executes what `meshplan transfers PLAN --bundle ID` prints, wave by wave, message by message.

Rows of a wave read what was there before it; every box must lie in its message right behind the one
before it. At the end every rank of every tensor has what the state means, and the rounds have the
messages and staged bytes that the plan says.
"""
import csv
import io
import json
import os
import re
import tempfile

import numpy as np

from listed import HOSTS, Run, answer, sliced
from meaning import Complaint, DTYPE_BYTES, count_of, held, meshes_of, state_of_text
from replay import PRIME, reduced


def members_named(plan, bundle):
    """Ids of all members, also of those that stand in the plan from one through another."""
    ids, members = [r["id"] for r in plan["redistributions"]], []
    for entry in bundle["members"]:
        first, last = (entry, entry) if isinstance(entry, str) else (entry["id"], entry["through"])
        members += ids[ids.index(first):ids.index(last) + 1]
    return members


def one_part_a_member(planned, members):
    """The round with each part that runs several members, `id` through `through`, written out."""
    parts = []
    for part in planned["parts"]:
        run = members[members.index(part["id"]):members.index(part.get("through", part["id"])) + 1]
        parts += [{**{k: v for k, v in part.items() if k != "through"}, "id": member} for member in run]
    return {**planned, "parts": parts}


class BundleRun:
    """A bundle by the rows of its rounds: every tensor of every member has data of its own."""

    def __init__(self, plan, bundle, meshes):
        members = members_named(plan, bundle)
        self.meshes, self.bundle = meshes, {**bundle, "rounds": [one_part_a_member(r, members) for r in bundle["rounds"]]}
        self.plan_reds = {r["id"]: r for r in plan["redistributions"]}
        for red in list(self.plan_reds.values()):
            if "same_as" in red:
                self.plan_reds[red["id"]] = {**self.plan_reds[red["same_as"]], "id": red["id"], "count": red["count"]}
        self.members = [self.plan_reds[m] for m in members]
        self.tensors = {}
        for number, red in enumerate(self.members):
            for k in range(red.get("count", 1)):
                self.tensors[red["id"], k] = Run({"dtype": red["tensor"]["dtype"], **red}, red, meshes,
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
        return at, {rank: box for one in at for rank, box in zip(one.ranks, one.boxes)}

    def wave(self, parts):
        """All rows of a wave read what was there before it, but those of its local steps."""
        messages, reads = {}, []
        for number, part in parts:
            for k in range(part["from"], part["to"]):
                self.make_after((part["id"], k), part["step"])
            rows = [self.read(number, part, row, messages) for row in part["transfers"]]
            if part["op"] in ("slice", "to_partial"):  # done before the step that it is for
                self.write(rows)
            else:
                reads += rows
        self.write(reads)
        return messages

    def make_after(self, key, step):
        """Buffers of a tensor for what a step makes, once."""
        if step + 1 not in self.states[key]:
            _, boxes = self.after(key, step)
            self.states[key][step + 1] = {r: np.zeros(count_of(b), np.int64) for r, b in boxes.items()}
            self.written[key, step + 1] = {r: np.zeros(count_of(b), np.int64) for r, b in boxes.items()}

    def read(self, number, part, row, messages):
        """What a row brings; its place in its message is counted in `messages`."""
        where = f"round {number}: {part['id']} step {part['step']}"
        element = DTYPE_BYTES[part["dtype"]]
        wide = part["reduce_op"] and part["op"] != "to_partial"
        wire = DTYPE_BYTES[part.get("reduce_dtype", part["dtype"])] if wide else element
        key, data = (part["id"], row["tensor"]), None
        if not part["from"] <= row["tensor"] < part["to"]:
            raise Complaint("row", f"{where}: tensor {row['tensor']} is not of the part")
        for end in ("from_offset", "to_offset"):
            if row.get(end, 0) % element:
                raise Complaint("row", f"{where}: {end} {row[end]} is inside an element of {element} bytes")
        if "message_offset" in row:
            pair = (number, row["from"], row["to"])
            if row["message_offset"] != messages.get(pair, 0) or row["message_offset"] % wire:
                raise Complaint("row", f"{where}: a box at {row['message_offset']} of its message, "
                                f"expected {messages.get(pair, 0)}")
            messages[pair] = row["message_offset"] + row["bytes"]
        elif row["action"] in ("send", "share") and part["op"] == "exchange":
            raise Complaint("row", f"{where}: a box is in no message")
        if row["action"] != "fill":
            if row["bytes"] != count_of(row["box"]) * wire:
                raise Complaint("row", f"{where}: {row['bytes']} bytes of {row['box']}")
            state = part["step"] + (row["action"] == "share")  # what it got in an earlier piece of the step
            have, done = self.states[key].get(state), self.written.get((key, state))
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
                world.arrays = [self.states[key][last][rank].reshape([high - low for low, high in box])
                                for rank, box in zip(one.ranks, one.boxes)]
                world.check(where)


def execute_bundle(plan, bundle, document, meshes):
    """Runs the rows wave by wave; returns the run and the messages: (round, from, to) -> bytes."""
    run, messages = BundleRun(plan, bundle, meshes), {}
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
    return run, messages


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
            meshes = meshes_of(spec)
            execute_bundle(plan, bundle, document, meshes)
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
