"""The recording at work in this process: what follows a plan or reshards tells it, without loading
the recorder where there is none."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator, Optional


def recorder() -> Optional[Any]:
    """The `meshplan.capture.Recorder` at work; None outside of a recording."""
    return getattr(sys.modules.get("meshplan.capture.recorder"), "running", None)


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """What is sent meanwhile is meshplan's own: the program did not ask for it, or the recording
    has it already."""
    running = recorder()
    if running is None:
        yield
        return
    running.depth += 1
    try:
        yield
    finally:
        running.depth -= 1
