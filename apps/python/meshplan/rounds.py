"""What one rank does in the rounds of a bundle, made of the rows of `meshplan transfers --bundle`:
which part of which buffer lies where in which message. Needs no PyTorch.

Of a tensor with n steps, buffer 0 is the rank's box before the first step and buffer n the one
after the last; those between live from the wave that first writes them to the one that last reads
them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Mapping, NamedTuple, Optional

from meshplan.layouts import PlanMeshes, step_ranks, whole_entries
from meshplan.routes import (
    COLLECTIVES,
    DTYPE_BYTES,
    FIRST_TAG,
    HELD,
    Part,
    StepRoute,
    part_of,
    sizes_of,
    step_route,
)


SHARE = "share"  # an action: sends what the rank got in an earlier piece of the step


class Buffer(NamedTuple):
    """Of a tensor, by its number among all that the bundle moves, before its step `index`."""

    tensor: int
    index: int


class Cell(NamedTuple):
    """A part of a buffer and its place in a message: `at` is in bytes."""

    buffer: Buffer
    part: Part
    at: int
    dtype: str  # of its elements in the message


class Placed(NamedTuple):
    """What becomes a part of a buffer: a part of another one, or of the message from `peer`."""

    target: Buffer
    part: Part
    contribution: int
    source: Optional[tuple[Buffer, Part]] = None
    peer: int = -1
    at: int = 0


@dataclasses.dataclass
class Work:
    """A step, or a piece of one, of some tensors."""

    name: str  # "wq, step 0": what errors say
    op: str
    reduce_op: Optional[str]
    divisor: int
    dtype: str
    wide: Optional[str]  # the dtype in which it reduces, where that is not `dtype`
    fills: list[Buffer]  # start as the identity of the reduction
    placed: list[Placed]  # by contribution
    routes: list[tuple[int, StepRoute]]  # of a collective: its call for every tensor, by its number
    index: int  # of the step


@dataclasses.dataclass
class Round:
    """One launch: local work first, then messages or collectives and what they bring."""

    local: list[Work]
    work: list[Work]
    sends: dict[int, list[Cell]]  # by peer, in the order in which the message carries them
    bytes_to: dict[int, int]  # of the message to a peer
    bytes_from: dict[int, int]


@dataclasses.dataclass
class Wave:
    rounds: list[Round]
    begins: list[Buffer]  # between two steps: made for this wave
    ends: list[Buffer]  # not read after it


@dataclasses.dataclass
class BundleRoute:
    """All rounds of a bundle for one rank."""

    waves: list[Wave]
    sizes: dict[Buffer, tuple[int, ...]]  # of the rank's boxes
    dtypes: dict[int, str]  # by tensor
    last: dict[int, int]  # by tensor: how many steps it takes
    groups: list[tuple[int, ...]]  # that collectives run on, in order; every rank in one makes it
    rounds: int
    everyone: tuple[int, ...] = ()  # the ranks of all meshes, who agreed; messages go on their group
    tag: int = FIRST_TAG  # of messages


def bundle_named(document: Mapping[str, Any], name: Optional[str]) -> Mapping[str, Any]:
    """The bundle of a plan, every member by its id; its only one where no name is given."""
    bundles = document.get("bundles", [])
    found = [bundle for bundle in bundles if name in (None, bundle["id"])]
    if len(found) == 1:
        return {**found[0], "members": _members(document, found[0])}
    known = ", ".join(bundle["id"] for bundle in bundles)
    if not bundles:
        raise ValueError('the plan has no bundle: name one in "bundles" of its spec')
    if name is None:
        raise ValueError(f"the plan has several bundles ({known}): say bundle=NAME")
    raise ValueError(f"the plan has no bundle {name!r}, only {known}")


def _members(document: Mapping[str, Any], bundle: Mapping[str, Any]) -> list[str]:
    ids = [entry["id"] for entry in document["redistributions"]]
    at = {name: number for number, name in enumerate(ids)}
    members: list[str] = []
    for entry in bundle["members"]:
        # One, or from one through another as they stand in the plan.
        named = (entry, entry) if isinstance(entry, str) else (entry["id"], entry["through"])
        members += ids[at[named[0]] : at[named[1]] + 1]
    return members


def bundle_route(
    document: Mapping[str, Any],
    bundle: Mapping[str, Any],
    listed: Mapping[str, Any],
    numbers: Mapping[tuple[str, int], int],
    rank: int,
) -> BundleRoute:
    """The route of `rank`: `listed` are the bundle's transfers of that rank; `numbers` gives each
    of the like tensors of a member its number."""
    return _Reader(document, bundle, numbers, rank).read(listed)


class _Reader:
    def __init__(
        self,
        document: Mapping[str, Any],
        bundle: Mapping[str, Any],
        numbers: Mapping[tuple[str, int], int],
        rank: int,
    ) -> None:
        self.bundle, self.numbers, self.rank = bundle, numbers, rank
        self.entries, self.meshes = whole_entries(document), PlanMeshes(document)
        self.sizes: dict[Buffer, tuple[int, ...]] = {}
        self.written: dict[Buffer, int] = {}  # first wave
        self.used: dict[Buffer, int] = {}  # last wave
        self.groups: dict[tuple[int, ...], None] = {}

    def read(self, listed: Mapping[str, Any]) -> BundleRoute:
        waves: dict[int, list[Round]] = {}
        for found in listed["rounds"]:
            waves.setdefault(found["wave"], []).append(self.read_round(found))
        dtypes = {n: self.entries[name]["tensor"]["dtype"] for (name, _), n in self.numbers.items()}
        last = {n: len(self.entries[name]["steps"]) for (name, _), n in self.numbers.items()}
        between = [b for b in self.written if 0 < b.index < last[b.tensor]]
        return BundleRoute(
            waves=[
                Wave(
                    waves[wave],
                    [b for b in between if self.written[b] == wave],
                    [b for b in between if self.used[b] == wave],
                )
                for wave in sorted(waves)
            ],
            sizes=self.sizes,
            dtypes=dtypes,
            last=last,
            groups=list(self.groups),
            rounds=len(self.bundle["rounds"]),
        )

    def read_round(self, found: Mapping[str, Any]) -> Round:
        number = found["round"]
        launched = self.bundle["rounds"][number : number + 1]  # none behind the last: local steps
        in_round = {run for round in launched for part in round["parts"] for run in self.runs(part)}
        made = Round([], [], {}, {}, {})
        for part in found["parts"]:
            local = (part["id"], part["step"]) not in in_round
            work = self.read_part(part, found, made, local)
            (made.local if local else made.work).append(work)
        return made

    def runs(self, part: Mapping[str, Any]) -> list[tuple[str, int]]:
        """(member, step) of all members that a part stands for: from `id` to `through`."""
        members = self.bundle["members"]
        first, last = members.index(part["id"]), members.index(part.get("through", part["id"]))
        return [(member, part["step"]) for member in members[first : last + 1]]

    def read_part(
        self, part: Mapping[str, Any], found: Mapping[str, Any], made: Round, local: bool
    ) -> Work:
        entry, wide = self.entries[part["id"]], None
        if part["reduce_op"] and part["op"] != "to_partial":
            wide = part.get("reduce_dtype")
        wide = None if wide == part["dtype"] else wide
        work = Work(
            name=f"{part['id']}, step {part['step']}",
            op=part["op"],
            reduce_op=part["reduce_op"],
            divisor=part["divisor"],
            dtype=part["dtype"],
            wide=wide,
            fills=[],
            placed=[],
            routes=[],
            index=part["step"],
        )
        for row in part["transfers"]:
            self.note(row, part, found["wave"])
        if not local and part["op"] in COLLECTIVES:
            self.call(work, part, entry)
            self.note_empty(work, len(entry["steps"]), found["wave"])
            return work
        for row in part["transfers"]:
            self.add(work, row, part, made)
        work.placed.sort(key=lambda placed: placed.contribution)  # the same on every rank
        return work

    def note(self, row: Mapping[str, Any], part: Mapping[str, Any], wave: int) -> None:
        """Which buffers the row reads and writes, and when."""
        number = self.numbers[part["id"], row["tensor"]]
        read = part["step"] + (1 if row["action"] == SHARE else 0)
        for end, index in (("from", read), ("to", part["step"] + 1)):
            if row.get(end) == self.rank:
                buffer = Buffer(number, index)
                self.sizes[buffer] = sizes_of(row[end + "_box"]) or ()
                self.used[buffer] = wave
                if end == "to":
                    self.written.setdefault(buffer, wave)

    def note_empty(self, work: Work, last: int, wave: int) -> None:
        """A box without elements has no rows, yet the rank takes part in the collective, with
        nothing: between two of the `last` steps such a box is made like any other."""
        for number, _ in work.routes:
            for index in (work.index, work.index + 1):
                if 0 < index < last:
                    buffer = Buffer(number, index)
                    self.sizes.setdefault(buffer, (0,))
                    self.written.setdefault(buffer, wave)
                    self.used[buffer] = wave

    def add(
        self, work: Work, row: Mapping[str, Any], part: Mapping[str, Any], made: Round
    ) -> None:
        number, element = self.numbers[part["id"], row["tensor"]], DTYPE_BYTES[part["dtype"]]
        before, after = Buffer(number, part["step"]), Buffer(number, part["step"] + 1)
        if row["action"] == "fill":
            work.fills.append(after)
            return
        if row["action"] == "copy":
            source = (before, part_of(row, "from", element))
            target = part_of(row, "to", element)
            work.placed.append(Placed(after, target, row["contribution"], source))
            return
        sent = row["from"] == self.rank
        peer = row["to"] if sent else row["from"]
        sizes = made.bytes_to if sent else made.bytes_from
        # An all_to_all has no offsets of its own.
        at = row.get("message_offset", sizes.get(peer, 0))
        sizes[peer] = max(sizes.get(peer, 0), at + row["bytes"])
        if sent:
            held = after if row["action"] == SHARE else before
            cell = Cell(held, part_of(row, "from", element), at, work.wide or work.dtype)
            made.sends.setdefault(peer, []).append(cell)
        else:
            target = part_of(row, "to", element)
            work.placed.append(Placed(after, target, row["contribution"], None, peer, at))

    def call(self, work: Work, part: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
        """A collective, called for every tensor."""
        planned = entry["steps"][part["step"]]
        ranks = next(
            (r for r in step_ranks(entry, planned, self.meshes) if self.rank in r), ()
        )
        rows_of: dict[int, list[dict[str, Any]]] = {}
        for row in part["transfers"]:
            both = {"phase": 1, "from_buffer": HELD, "to_buffer": HELD}
            rows_of.setdefault(row["tensor"], []).append({**row, **both})
        if ranks:
            self.groups[ranks] = None
        for tensor, rows in rows_of.items():
            number = self.numbers[part["id"], tensor]
            step = {**part, "transfers": rows}
            work.routes.append((number, step_route(part, step, planned, self.rank, ranks)))


def bytes_of(sizes: tuple[int, ...], dtype: str) -> int:
    return math.prod(sizes) * DTYPE_BYTES[dtype]
