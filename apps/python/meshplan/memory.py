"""Whether shards lie in the same memory: what is filled may be neither read nor filled as another
shard, too. Views of one buffer that have no element in common are apart.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

import torch


class Held(NamedTuple):
    """A shard and the bytes from its first element to behind its last one."""

    device: str
    first: int
    end: int
    name: str  # "wq after": what errors say
    filled: bool
    tensor: torch.Tensor


def held_of(name: str, tensor: torch.Tensor, filled: bool) -> Held:
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    first = tensor.data_ptr()
    end = first + (reach + 1) * tensor.element_size()
    return Held(str(tensor.device), first, end, name, filled, tensor)


def check_apart(shards: Sequence[Held]) -> None:
    """ValueError where a shard that is filled shares memory with any other one."""
    reaching: list[Held] = []  # that begin before the one at hand and end behind its begin
    for held in sorted(shards, key=lambda held: held[:3]):
        reaching = [h for h in reaching if h.device == held.device and h.end > held.first]
        for other in reaching:
            if (held.filled or other.filled) and not _interleaved(other, held):
                raise ValueError(f"{other.name} and {held.name} share their memory: give what is "
                                 "filled memory of its own")
        reaching.append(held)


def _interleaved(low: Held, high: Held) -> bool:
    """Whether two that reach into each other are boxes of one grid, such as columns of one matrix,
    without an element in common; False also where their strides differ."""
    size = low.tensor.element_size()
    away, odd = divmod(high.first - low.first, size)
    if odd or high.tensor.element_size() != size or low.tensor.ndim != high.tensor.ndim:
        return False
    dims = zip(low.tensor.stride(), high.tensor.stride(), low.tensor.shape, high.tensor.shape)
    apart, row = False, None
    for stride, other, own, theirs in sorted(dims, reverse=True):
        if stride != other or stride == 0:
            return False
        at, away = divmod(away, stride)
        # In the grid no index runs into the next row, so places are told by their indices.
        if row is not None and max(own, at + theirs) * stride > row:
            return False
        apart, row = apart or at >= own, stride
    return apart and away == 0
