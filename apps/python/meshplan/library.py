"""What the planner answers: plans, proofs, prices and transfers, texts or dicts in and out.

A spec is a dict, or the text of a spec file (`meshplan schema spec` describes it; comments are
allowed in a text). A plan is the text of a plan file, or a dict that was read from one. Problems
are a `MeshplanError`, whose message has each with its place.
"""

from __future__ import annotations

import json
import operator
from typing import Any, Mapping, Optional, Union

from meshplan._library import MeshplanError, ask, in_utf8, load

__all__ = [
    "MeshplanError",
    "bundle_transfers",
    "plan",
    "price",
    "transfers",
    "verify",
    "version",
]

Document = Union[str, Mapping[str, Any]]


def version() -> str:
    """The library's version: "0.1.0"."""
    return load().meshplan_version().decode()


def refuse_name(document: Any, wanted: str) -> None:
    """ValueError where a file's name stands in the place of the file's text."""
    if hasattr(document, "__fspath__") or (isinstance(document, str) and document.isprintable()
                                           and document and "{" not in document):
        raise ValueError(
            f"{str(document)!r} is not the text of {wanted}; if it is a file's name: "
            "pathlib.Path(name).read_text()"
        )


def _text(document: Document) -> str:
    refuse_name(document, "a spec or plan")
    return document if isinstance(document, str) else json.dumps(document)


def _name(what: str, name: Optional[str]) -> Optional[bytes]:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{what} is a text, not {name!r}")
    return None if name is None else in_utf8(name)


def _preset(topology: Optional[str]) -> Optional[bytes]:
    return _name("a preset's name", topology)


def _rank(rank: Optional[int]) -> int:
    """As the library takes it: -1 for all."""
    if rank is None:
        return -1
    if not hasattr(rank, "__index__") or isinstance(rank, bool):
        raise TypeError(f"a rank is an integer, or None for every rank, not {rank!r}")
    if rank < 0:
        raise ValueError(f"rank {rank} is negative; None lists every rank")
    return min(operator.index(rank), (1 << 63) - 1)


def plan(spec: Document, topology: Optional[str] = None) -> str:
    """The text of the plan file that `meshplan plan` writes for a spec, byte for byte.

    `topology` is the name of a preset ("h100") and beats the spec's own; other topologies go into
    the spec as `{"topology": {"levels": [...]}}`. Files that a spec names are not read.
    """
    return ask("meshplan_plan", _text(spec), _preset(topology))[0]


def price(spec: Document, topology: Optional[str] = None) -> list[dict[str, Any]]:
    """What every redistribution of a spec takes, each planned and verified as `plan` does: dicts of
    "id", "predicted_ns" and "lower_bound_ns" (nanoseconds), "wire_bytes" (what a rank receives),
    "peak_bytes" (of a rank) and "collectives", in the spec's order, each once whatever its count.
    """
    return json.loads(ask("meshplan_price", _text(spec), _preset(topology))[0])["redistributions"]


def verify(plan: Document) -> list[str]:
    """Proves a plan without planning: that every step moves every element to its place, and that
    all figures are right. Returns what was not counted anew, nothing for most plans; a wrong plan
    is a MeshplanError."""
    return json.loads(ask("meshplan_verify", _text(plan))[0])["left_out"]


def transfers(
    plan: Document, id: Optional[str] = None, rank: Optional[int] = None
) -> dict[str, Any]:
    """Who sends which box to whom, in every step of a plan, which is verified first.

    `id`: of one redistribution, else all of them. `rank`: a global id; only what that rank sends,
    receives or keeps. The dict is the document that `meshplan transfers PLAN ID --rank R --format
    json` prints: {"redistributions": [{"id", "count", "dtype", "shape", "steps": [{"step", "op",
    "reduce_op", "divisor", "contributions", "transfers": [row]}]}]}, and {"id", "count", "same_as"}
    for one that repeats an earlier one. A row has "action" (send, copy, fill), "box" ([[lo, hi]] a
    tensor dim, in elements), "bytes" (on the wire), and of both ends rank, "_box" (what the buffer
    holds), "_buffer" and "_offset" (bytes); `meshplan schema transfers` describes all.
    """
    text, _ = ask("meshplan_transfers", _text(plan), _name("an id", id), _rank(rank))
    return json.loads(text)


def bundle_transfers(plan: Document, bundle: str, rank: Optional[int] = None) -> dict[str, Any]:
    """Who sends which box to whom in the rounds of a plan's bundle: the document that `meshplan
    transfers PLAN --bundle ID --rank R --format json` prints. {"rounds": [{"round", "wave",
    "after", "stream", "op", "group", "parts": [{"id", "from", "to", "step", "piece", "pieces",
    "dtype", "shape", "op", "reduce_op", "divisor", "contributions", "transfers": [row]}]}]}. A row
    has "tensor", "action" (also share, a send from the new box), "box" (elements), "bytes" and
    "message_offset" (bytes, in the packed message that goes from a rank to a peer in the round),
    and of both ends rank, "_box" and "_offset" (bytes). `rank` as for `transfers`.
    """
    named = _name("a bundle's id", bundle)
    text, _ = ask("meshplan_bundle_transfers", _text(plan), named, _rank(rank))
    return json.loads(text)
