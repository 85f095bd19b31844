"""How long work takes: by the host's clock, on a GPU between two events of its stream, for which
nothing waits until somebody asks."""
from __future__ import annotations

import collections
import time
from typing import Any, Optional

import torch


class Span:
    """From its making to `stop`, on the current stream of the device."""

    def __init__(self, device: torch.device) -> None:
        self._events: Optional[list[Any]] = None
        self._seconds: Optional[float] = None
        if device.type == "cuda":
            # What a stream captures runs later, any number of times: not timed.
            self._events = [] if torch.cuda.is_current_stream_capturing() else [_marked()]
        else:
            self._started = time.perf_counter()

    def stop(self) -> Span:
        if self._events is None:
            self._seconds = time.perf_counter() - self._started
        elif self._events:
            self._events.append(_marked())
        else:
            self._seconds = 0.0
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_events": None, "_seconds": self.seconds}

    @property
    def over(self) -> bool:
        """Whether its work has ended."""
        return self._seconds is not None or (self._events is not None and self._events[1].query())

    @property
    def seconds(self) -> float:
        """Waits for its end."""
        if self._seconds is None:
            assert self._events is not None
            first, last = self._events
            last.synchronize()
            self._seconds = first.elapsed_time(last) / 1e3  # of milliseconds
            self._events = None
        return self._seconds


def _marked() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Total:
    """Seconds of any number of spans of one stream; those that are over keep nothing of the GPU's."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._open = collections.deque[Span]()

    def add(self, span: Span) -> None:
        self._open.append(span)
        while self._open and self._open[0].over:
            self._seconds += self._open.popleft().seconds

    @property
    def seconds(self) -> float:
        """Waits for the end of all of them."""
        while self._open:
            self._seconds += self._open.popleft().seconds
        return self._seconds
