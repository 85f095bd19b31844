"""What both recorders write: the names of what is recorded, and the text of a spec."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Mapping, Sequence


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
