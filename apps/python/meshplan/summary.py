"""What was followed, counted and timed: the text that a follower prints."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from meshplan.routes import Route, StepRoute
from meshplan.timing import Span, Total


@dataclasses.dataclass
class StepTimes:
    """One step of the plan, over all times that it ran."""

    route: StepRoute
    times: int = 0
    took: Total = dataclasses.field(default_factory=Total)


class Summary:
    """Counts of one `with`, on one rank."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.digest = document.get("digest", "")
        self.followed = 0
        self.asked_async = 0        # of those followed: with async_op, done before they returned
        self.world_missing = 0      # ranks of the plan that this world lacks
        self.messages = 0           # received
        self.wire_bytes = 0         # received, as the plan counts them without padding
        self.not_followed: dict[str, int] = {}  # why -> times
        # Why compiled code has PyTorch's own in it, which runs uncounted: once, however often it is
        # traced.
        self.compiled_in: dict[str, None] = {}
        self.ids: dict[str, int] = {}           # id of the plan -> times
        self._steps: dict[int, StepTimes] = {}

    def begin(self, route: Route) -> None:
        self.followed += 1
        self.ids[route.id] = self.ids.get(route.id, 0) + 1

    def step(self, step: StepRoute, span: Span) -> None:
        at = self._steps.setdefault(id(step), StepTimes(step))
        at.times += 1
        at.took.add(span)
        self.messages += step.messages
        self.wire_bytes += step.wire_bytes

    def left(self, reason: str, tracing: bool = False) -> None:
        if tracing:
            self.compiled_in[reason] = None
        else:
            self.not_followed[reason] = self.not_followed.get(reason, 0) + 1

    @property
    def asked(self) -> int:
        """Redistributions that the program asked for, but for those that compiled code has as
        PyTorch's own."""
        return self.followed + sum(self.not_followed.values())

    def steps(self) -> list[StepTimes]:
        return list(self._steps.values())

    def __str__(self) -> str:
        predicted = sum(s.route.predicted_ns * s.times for s in self.steps()) / 1e6
        measured = sum(s.took.seconds for s in self.steps()) * 1e3
        lines = [f"followed {self.followed:,} of {self.asked:,} "
                 f"redistribution{'s' * (self.asked != 1)}: "
                 f"{measured:,.3f} ms measured, {predicted:,.3f} ms predicted, "
                 f"{self.wire_bytes:,} bytes received in {self.messages:,} messages"]
        if self.world_missing:
            lines.append(f"the plan has {self.world_missing:,} ranks that this world lacks")
        if self.asked_async:
            lines.append(f"{self.asked_async:,} asked for async_op and were done before they "
                         "returned")
        for step in self.steps():
            lines.append(f"  {step.route.name}, {step.times:,} times: "
                         f"{step.took.seconds / step.times * 1e3:,.3f} ms, predicted "
                         f"{step.route.predicted_ns / 1e6:,.3f} ms")
        lines += [f"  not followed, {times:,} times: {reason}"
                  for reason, times in self.not_followed.items()]
        lines += [f"  not followed in compiled code, not counted: {reason}"
                  for reason in self.compiled_in]
        return "\n".join(lines)
