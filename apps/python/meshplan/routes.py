"""What one rank does in a redistribution, made of the rows of `meshplan transfers`: from where in
which buffer every box goes, packed into one message a peer. Needs no PyTorch.

A row-major buffer of a box [2:6, 0:8] has strides (8, 1); the part [3:4, 2:4] of it is
`Part((1, 2), (8, 1), 10)`: sizes, strides and offset in elements.
"""
from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from typing import Any, Iterable, Mapping, NamedTuple, Optional

from meshplan.layouts import element_count

DTYPE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3": 1,
               "float8_e5m2": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
               "bool": 1}
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")  # the others go in messages
HELD, FETCHED, PACKED = "held", "fetched", "packed"  # buffers; packed: what messages brought
FIRST_TAG = 1 << 30  # of messages: a program's own tags are small


def tag_of(question: str) -> int:
    """The tag of a question's messages: apart from those of the program, and from those of another
    question that another thread asks at the same time. gloo matches messages by their tags; NCCL
    knows none, and matches by the order in which a program asks."""
    digest = hashlib.sha1(question.encode(), usedforsecurity=False).digest()
    return FIRST_TAG + int.from_bytes(digest[:4], "big") % FIRST_TAG


class Part(NamedTuple):
    """A box inside a row-major buffer, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    @property
    def in_one_piece(self) -> bool:
        long = [dim for dim, size in enumerate(self.sizes) if size > 1]
        return all(self.strides[dim] == math.prod(self.sizes[dim + 1:]) for dim in long)


class Move(NamedTuple):
    """A part of one buffer becomes a part of another."""

    source_buffer: str
    source: Part
    target_buffer: str
    target: Part
    contribution: int


class Message(NamedTuple):
    """What one rank sends another in a phase: parts, packed in order. Where it is one part that
    lies in one piece, it goes from there, or arrives there, as it is (`direct`)."""

    peer: int
    parts: tuple[tuple[str, Part], ...]  # each with its buffer
    contributions: tuple[int, ...]       # of each
    count: int                           # elements
    direct: bool


@dataclasses.dataclass
class Phase:
    """Messages that may go at once, and what then becomes of what came and of what stays."""

    number: int              # 2: passes on what phase 1 of the same chunk fetched
    sends: list[Message]
    receives: list[Message]  # what is not direct arrives packed, one message after another
    moves: list[Move]        # by contribution
    fills: bool = False              # the new buffer starts as the identity of the reduction


@dataclasses.dataclass
class StepRoute:
    """One step for one rank."""

    name: str                  # "wq, step 0 (exchange on mesh)": what errors say
    op: str
    ranks: tuple[int, ...]     # who works together, ascending; () of a local step
    reduce_op: Optional[str]
    divisor: int
    wide: Optional[str]        # the dtype in which it reduces, where that is not the tensor's
    phases: list[Phase]        # as phase_keys orders them
    before: Optional[tuple[int, ...]]  # sizes of what the rank holds; None: it gives nothing
    after: Optional[tuple[int, ...]]   # sizes of what it holds afterwards; None: nothing
    fetched: int               # elements of the buffer of what the first phase fetches
    predicted_ns: int
    messages: int = 0          # that the rank receives; a collective is one
    wire_bytes: int = 0        # that it receives; of a collective as the plan counts
    tag: int = FIRST_TAG       # of its messages


@dataclasses.dataclass
class Route:
    """All steps of a redistribution for one rank."""

    id: str
    dtype: str
    steps: list[StepRoute]


def sizes_of(box: Optional[list[list[int]]]) -> Optional[tuple[int, ...]]:
    return None if box is None else tuple(high - low for low, high in box)


def part_of(row: Mapping[str, Any], end: str, element: int) -> Part:
    """The row's box in the buffer at its end ("from" or "to")."""
    widths = [high - low for low, high in row[end + "_box"]]
    strides = [math.prod(widths[dim + 1:]) for dim in range(len(widths))]
    sizes = tuple(high - low for low, high in row["box"])
    return Part(sizes, tuple(strides), row[end + "_offset"] // element)


def route_of(listed: Mapping[str, Any], entry: Mapping[str, Any], rank: int,
             ranks_of_steps: list[tuple[int, ...]], tag: int) -> Route:
    """The route of `rank`: `listed` is the redistribution among the rows of that rank, `entry` the
    plan's, `ranks_of_steps` who works together with the rank in each step, `tag` its messages'."""
    steps = [dataclasses.replace(step_route(listed, step, planned, rank, ranks), tag=tag)
             for step, planned, ranks in zip(listed["steps"], entry["steps"], ranks_of_steps)]
    return Route(entry["id"], listed["dtype"], steps)


def step_route(listed: Mapping[str, Any], step: Mapping[str, Any], planned: Mapping[str, Any],
                rank: int, ranks: tuple[int, ...]) -> StepRoute:
    element, wide = DTYPE_BYTES[listed["dtype"]], None
    if step["reduce_op"] and step["op"] != "to_partial":
        wide = listed.get("reduce_dtype")
    rows = step["transfers"]
    rows_of: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_of.setdefault((row["phase"], row.get("chunk", 0)), []).append(row)
    phases = [phase_of(key[0], rows_of.get(key, []), rank, element) for key in phase_keys(planned)]
    to_me = [row for row in rows if row["to"] == rank]
    new = next((row["to_box"] for row in to_me if row["to_buffer"] == HELD), None)
    held = next((row["from_box"] for row in rows
                 if row.get("from") == rank and row["from_buffer"] == HELD), None)
    fetched = sum(element_count(row["box"]) for row in to_me if row["to_buffer"] == FETCHED)
    sent = step["op"] not in COLLECTIVES
    return StepRoute(
        name=f"{listed['id']}, step {step['step']} "
        f"({step['op']}{' on ' + planned['group'] if planned['group'] else ''})",
        op=step["op"], ranks=ranks, reduce_op=step["reduce_op"], divisor=step["divisor"],
        wide=wide, phases=phases, before=sizes_of(held), after=sizes_of(new),
        fetched=fetched, predicted_ns=planned["predicted_ns"],
        messages=sum(len(phase.receives) for phase in phases) if sent else 1,
        wire_bytes=sum(row["bytes"] for row in to_me if row["action"] == "send") if sent else
        planned["wire_bytes"])


def phase_keys(planned: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(phase, chunk) in the order in which they start, the same on every rank: while a chunk is
    shared, the next one comes."""
    keys = [(phase, chunk) for phase in range(1, planned.get("phases", 1) + 1)
            for chunk in range(planned.get("chunks", 1))]
    return sorted(keys, key=lambda key: (key[1] + (key[0] == 2), -key[0]))


def phase_of(number: int, rows: Iterable[Mapping[str, Any]], rank: int, element: int) -> Phase:
    """The rows of one phase and chunk, in their order, which is the same on both sides."""
    sends: dict[int, list[Mapping[str, Any]]] = {}
    comes: dict[int, list[Mapping[str, Any]]] = {}
    stays, fills = [], False
    for row in rows:
        if row["action"] == "fill":
            fills = True
        elif row["action"] == "copy":
            stays.append(Move(row["from_buffer"], part_of(row, "from", element), row["to_buffer"],
                              part_of(row, "to", element), row["contribution"]))
        elif row["from"] == rank:
            sends.setdefault(row["to"], []).append(row)
        else:
            comes.setdefault(row["from"], []).append(row)
    reduces = any(row["contribution"] for row in itertools.chain(*comes.values())) or any(
        move.contribution for move in stays)
    receives, moves, offset = [], [], 0
    for peer in sorted(comes):
        message = message_of(peer, "to", comes[peer], element, not reduces)
        receives.append(message)
        for row, (buffer, target) in zip(comes[peer], () if message.direct else message.parts):
            moves.append(Move(PACKED, packed(target.sizes, offset), buffer, target,
                              row["contribution"]))
            offset += target.count
    moves = sorted(stays + moves, key=lambda move: move.contribution)
    sent = [message_of(peer, "from", sends[peer], element, True) for peer in sorted(sends)]
    return Phase(number, sent, receives, moves, fills)


def packed(sizes: tuple[int, ...], offset: int) -> Part:
    """A box that lies alone, row-major, from `offset` on."""
    strides = tuple(math.prod(sizes[dim + 1:]) for dim in range(len(sizes)))
    return Part(sizes, strides, offset)


def message_of(peer: int, end: str, rows: list[Mapping[str, Any]], element: int,
               may_be_direct: bool) -> Message:
    parts = tuple((row[end + "_buffer"], part_of(row, end, element)) for row in rows)
    direct = may_be_direct and len(parts) == 1 and parts[0][1].in_one_piece
    contributions = tuple(row["contribution"] for row in rows)
    return Message(peer, parts, contributions, sum(part.count for _, part in parts), direct)
