"""What both recorders write: the names of what is recorded, the text of a spec, and what becomes of
the file that it replaces.

What a person adds to a recorded file stays in it when it is recorded again: topology, options,
budgets, silenced warnings, bundles that no recorder wrote, and notes (x-...). Comments would not,
so a file with comments is refused; what is commented stands better in a file that `extends` the
recorded one."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Mapping, Sequence

SCHEMA = "meshplan/spec/1"
# What a recorder writes of a spec; of "bundles", those that it marks as recorded.
RECORDED = ("schema", "mesh", "meshes", "redistributions")
RECORDED_NOTES = ("x-recorded", "x-incomplete", "x-not-covered")


class NotCovered(Exception):
    """What was asked for has no form in a spec; the message says why."""


def kind_of(src: Sequence[str], dst: Sequence[str]) -> str:
    """The role of a redistribution in its id: the collective that it is on every mesh dim that it
    changes, else "reshard"."""
    kinds = {
        {
            "PR": "all_reduce",
            "PS": "reduce_scatter",
            "SR": "all_gather",
            "SS": "all_to_all",
            "RS": "slice",
        }.get(s[0] + d[0], "reshard")
        for s, d in zip(src, dst)
        if s != d
    }
    return kinds.pop() if len(kinds) == 1 else "reshard"


def to_text(spec: Mapping[str, Any]) -> str:
    """The text of a spec, one redistribution a line, so that two recordings compare line by
    line."""
    lines = []
    for key, value in spec.items():
        if isinstance(value, list) and value:
            lines.append(
                f"  {json.dumps(key)}: [\n    "
                + ",\n    ".join(json.dumps(v) for v in value)
                + "\n  ]"
            )
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


class NotReplaced(ValueError):
    """A file that a recording does not replace; the message says why."""


def destination(path: str | os.PathLike[str]) -> str:
    """Where a recording for `path` goes: `meshplan check --record` names another file of the same
    name in the environment, which it compares. NotReplaced where none can be written."""
    other = os.environ.get("MESHPLAN_RECORD")
    if other and os.path.basename(other) == os.path.basename(os.fspath(path)):
        return other
    if os.path.isdir(path):
        raise NotReplaced(f"{os.fspath(path)} is a folder: name the file that is recorded to")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NotReplaced(f"there is no folder {folder} to record to")
    return os.fspath(path)


def handwritten(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a person added to the recorded spec at `path`, by its keys; {} where there is no such
    file. NotReplaced where it holds what a recording would lose."""
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if not text.strip():
        return {}
    try:
        spec = json.loads(text)
    except ValueError as error:
        raise NotReplaced(
            f"{path} is no JSON without comments ({error}), which a recording would lose: put what "
            "is yours into a file that extends it, or move it away"
        ) from None
    if not isinstance(spec, dict) or spec.get("schema") != SCHEMA:
        raise NotReplaced(f"{path} is not a spec, so a recording does not replace it")
    if "extends" in spec:
        raise NotReplaced(f"{path} extends {spec['extends']}: record to that file")
    kept = {k: v for k, v in spec.items() if k not in (*RECORDED, *RECORDED_NOTES, "bundles")}
    bundles = spec.get("bundles")
    if isinstance(bundles, list):
        own = [b for b in bundles if not (isinstance(b, dict) and b.get("x-recorded"))]
        if own:
            kept["bundles"] = own
    return kept


def with_handwritten(spec: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded spec with what `handwritten` found in the file before. A bundle that was recorded
    now takes the place of one with its id."""
    both = {**spec, **{key: value for key, value in kept.items() if key != "bundles"}}
    recorded = spec.get("bundles", [])
    taken = {bundle["id"] for bundle in recorded}
    bundles = [*recorded, *(b for b in kept.get("bundles", []) if b.get("id") not in taken)]
    if bundles:
        both["bundles"] = bundles
    return both


def write_file(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file; one that exists is replaced atomically or stays as it was."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(dir=folder, prefix=".meshplan-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
