"""Runs the rounds of a bundle on one rank, with torch.distributed: the rounds of a wave at the same
time, one packed message a peer in each. Every rank of the bundle calls this at the same time.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Iterator, Optional, Sequence

import torch
import torch.distributed as dist

from meshplan.execute import COMBINE, TORCH_DTYPES, Groups, StepError, identity, run_step
from meshplan.rounds import Buffer, BundleRoute, Placed, Round, Wave, Work
from meshplan.routes import Part


@dataclasses.dataclass
class Counted:
    """What was done on this rank."""

    messages: int = 0  # received
    sent_messages: int = 0
    collectives: int = 0
    wire_bytes: int = 0  # received in messages
    staging_bytes: int = 0  # the most at a time, in messages and between steps


def view_of(box: torch.Tensor, part: Part) -> torch.Tensor:
    """A part, as of a row-major buffer, of a box that lies in memory as it may."""
    if box.is_contiguous():
        return box.as_strided(part.sizes, part.strides, box.storage_offset() + part.offset)
    rest, at = part.offset, box.storage_offset()
    for stride, own in zip(part.strides, box.stride()):
        at += rest // max(stride, 1) * own
        rest %= max(stride, 1)
    return box.as_strided(part.sizes, box.stride(), at)


class Run:
    """One run of a bundle: `sources` and `targets` are the rank's shards, by number of the tensor.
    What the rank has no part in may be anything. `device` is that of messages."""

    def __init__(
        self,
        route: BundleRoute,
        sources: Sequence[torch.Tensor],
        targets: Sequence[torch.Tensor],
        groups: Groups,
        device: torch.device,
    ) -> None:
        self.route, self.sources, self.targets = route, sources, targets
        self.groups, self.between, self.counted = groups, dict[Buffer, torch.Tensor](), Counted()
        # Of NCCL a group's first call needs all of its ranks: this one has had it, when they agreed.
        self.together = groups[route.everyone] if len(route.everyone) > 1 else None
        self.device = device

    def all(self) -> Counted:
        for number, steps in self.route.last.items():
            if steps == 0 and self.targets[number].numel():
                self.targets[number].copy_(self.sources[number])
        for wave in self.route.waves:
            self.run_wave(wave)
        return self.counted

    def buffer(self, buffer: Buffer) -> torch.Tensor:
        if 0 < buffer.index < self.route.last[buffer.tensor]:
            return self.between[buffer]
        return (self.targets if buffer.index else self.sources)[buffer.tensor]

    def run_wave(self, wave: Wave) -> None:
        for buffer in wave.begins:
            dtype = TORCH_DTYPES[self.route.dtypes[buffer.tensor]]
            self.between[buffer] = torch.empty(
                self.route.sizes[buffer], dtype=dtype, device=self.device
            )
        for round in wave.rounds:
            for work in round.local:
                with _named(work.name):
                    self.place(work, {})
        operations: list[Any] = []
        arrived = [self.post(round, operations) for round in wave.rounds]
        steps = _steps_of(wave)
        with _named(steps):
            works = dist.batch_isend_irecv(operations) if operations else []
        sent = sum(op.tensor.numel() for op in operations)
        held = sum(b.numel() * b.element_size() for b in self.between.values())
        self.counted.staging_bytes = max(self.counted.staging_bytes, sent + held)
        for round in wave.rounds:
            for work in round.work:
                with _named(work.name):
                    self.call(work)
        with _named(steps):
            for pending in works:
                pending.wait()
        for round, messages in zip(wave.rounds, arrived):
            for work in round.work:
                with _named(work.name):
                    self.place(work, messages)
        for buffer in wave.ends:
            del self.between[buffer]

    def post(self, round: Round, operations: list[Any]) -> dict[int, torch.Tensor]:
        """Adds the messages of a round, packed; gives those that come, by peer."""
        messages = {peer: self.message(size) for peer, size in sorted(round.bytes_from.items())}
        operations += [
            dist.P2POp(dist.irecv, message, peer, self.together, self.route.tag)
            for peer, message in messages.items()
        ]
        for peer in sorted(round.sends):
            message = self.message(round.bytes_to[peer])
            for buffer, part, at, dtype in round.sends[peer]:
                source = view_of(self.buffer(buffer), part)
                _cell(message, at, part, TORCH_DTYPES[dtype]).copy_(source)
            send = dist.P2POp(dist.isend, message, peer, self.together, self.route.tag)
            operations.append(send)
        self.counted.messages += len(messages)
        self.counted.sent_messages += len(round.sends)
        self.counted.wire_bytes += sum(round.bytes_from.values())
        return messages

    def message(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device=self.device)

    def call(self, work: Work) -> None:
        """A collective, for every tensor."""
        for number, step in work.routes:
            held = self.buffer(Buffer(number, work.index))
            out = run_step(step, held.contiguous().view(-1), self.groups)
            target = self.buffer(Buffer(number, work.index + 1))
            if target.numel():
                target.copy_(out.view(target.shape))
            self.counted.collectives += 1

    def place(self, work: Work, messages: dict[int, torch.Tensor]) -> None:
        """Copies what comes and what stays to its place, or adds it there; contributions in order,
        so that replicas get equal bits."""
        dtype = TORCH_DTYPES[work.wide or work.dtype]
        wide = {b: self.buffer(b).to(dtype) for b in _written(work)} if work.wide else {}
        for buffer in work.fills:
            wide.get(buffer, self.buffer(buffer)).fill_(identity(work.reduce_op, dtype))
        combine = COMBINE[work.reduce_op or "sum"]
        for placed in work.placed:
            box = wide[placed.target] if wide else self.buffer(placed.target)
            target, source = view_of(box, placed.part), self.source(placed, messages, dtype)
            if placed.contribution == 0:
                target.copy_(source)
            else:
                combine(target, source, out=target)
        if work.divisor != 1:
            self.divide(work, wide)
        for buffer, box in wide.items():
            for part in _finished(work, buffer):
                _all_or(self.buffer(buffer), part).copy_(_all_or(box, part))

    def source(
        self, placed: Placed, messages: dict[int, torch.Tensor], dtype: torch.dtype
    ) -> torch.Tensor:
        if placed.source is not None:
            return view_of(self.buffer(placed.source[0]), placed.source[1]).to(dtype)
        return _cell(messages[placed.peer], placed.at, placed.part, dtype)

    def divide(self, work: Work, wide: dict[Buffer, torch.Tensor]) -> None:
        for buffer in _written(work):
            box = wide.get(buffer, self.buffer(buffer))
            for part in _finished(work, buffer):
                target = _all_or(box, part)
                if target.is_floating_point():
                    target.div_(work.divisor)
                else:
                    target.floor_divide_(work.divisor)


def _cell(message: torch.Tensor, at: int, part: Part, dtype: torch.dtype) -> torch.Tensor:
    size = part.count * dtype.itemsize
    return message.narrow(0, at, size).view(dtype).view(part.sizes)


def _written(work: Work) -> list[Buffer]:
    return list(dict.fromkeys([*work.fills, *(placed.target for placed in work.placed)]))


def _finished(work: Work, buffer: Buffer) -> list[Optional[Part]]:
    """What the work makes of a buffer: all of it (None) where it starts as an identity, else the
    parts of the first contributions, which every other one adds to."""
    if buffer in work.fills:
        return [None]
    return [p.part for p in work.placed if p.target == buffer and p.contribution == 0]


def _all_or(box: torch.Tensor, part: Optional[Part]) -> torch.Tensor:
    return box if part is None else view_of(box, part)


def _steps_of(wave: Wave) -> str:
    """What a failure of the wave's messages names: the first of its steps, and how many more."""
    names = list(dict.fromkeys(work.name for round in wave.rounds for work in round.work))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@contextlib.contextmanager
def _named(steps: str) -> Iterator[None]:
    try:
        yield
    except StepError:
        raise
    except Exception as error:
        raise StepError(f"reshard: {steps}: {error}") from error
