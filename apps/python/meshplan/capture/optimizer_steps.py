"""What an optimizer's step asks for, as bundles found from the data that flows in it.

    for p in params:                                    level
        whole = p.grad.redistribute(mesh, [Replicate()])  0     the gathers of all params: a bundle
        update = orthogonal(whole)
        p.add_(update.redistribute(mesh, [Shard(0)]))     1     the cuts, which need a gather each

A request has the level of what it moves; what it brings has the next one. Every operator gives its
results the highest level of its arguments, and a number that leaves the tensors (`.item()`) lifts
all that follows. So nothing of one level needs what another request of that level brings, and the
requests of a level are one bundle.
"""

from __future__ import annotations

import sys
import threading

from types import FrameType
from typing import Any, Callable, Iterator, Optional

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from meshplan.capture.bundles import Bundle

READ = torch.ops.aten._local_scalar_dense.default  # a tensor's value as a number of the program


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """All tensors of nested values, a DTensor as the local tensor that it holds."""
    for value in tree_leaves(values):
        if isinstance(value, torch.Tensor):
            yield getattr(value, "_local_tensor", value)


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that an operator writes into."""
    found = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[index] if index < len(args) else kwargs.get(argument.name))
    return found


class OptimizerStep(TorchDispatchMode):
    """One running step: the levels of its tensors, and what was asked for at each."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.bundles: dict[int, Bundle] = {}
        self._levels = WeakTensorKeyDictionary()
        self._least = 0  # of all that follows
        self._brought = 0  # the highest level that the operator at work brought

    def level_of(self, values: Any) -> int:
        """The highest level of the tensors in `values`."""
        levels = (self._levels.get(tensor, 0) for tensor in tensors_in(values))
        return max(levels, default=0) if self._least == 0 else max(self._least, *levels, 0)

    def bundle_of(self, values: Any) -> Bundle:
        """Where a request that moves these tensors is counted."""
        level = self.level_of(values)
        if level not in self.bundles:
            self.bundles[level] = Bundle(self.name)
        return self.bundles[level]

    def moved(self, values: Any, brought: Any) -> None:
        """A request that moved tensors of `values` brought these."""
        level = self.level_of(values) + 1
        self._brought = max(self._brought, level)
        self._raise(brought, level)

    def _raise(self, values: Any, level: int) -> None:
        if level == 0:
            return
        for tensor in tensors_in(values):
            if self._levels.get(tensor, 0) < level:
                self._levels[tensor] = level

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        around, self._brought = self._brought, 0
        out = func(*args, **kwargs)
        level = max(self.level_of((args, kwargs)), self._brought)
        self._brought = max(around, self._brought)
        self._raise((out, written(func, args, kwargs)), level)
        if func is READ:
            self._least = max(self._least, level)
        return out


class OptimizerSteps:
    """Runs every optimizer's step inside an OptimizerStep; `ended` gets each when it ends."""

    def __init__(self, ended: Callable[[OptimizerStep], None]) -> None:
        self._ended = ended
        self._step: Optional[OptimizerStep] = None
        self._owner: Any = None  # the optimizer
        self._frame: Optional[FrameType] = None  # in which it runs
        self._thread = 0
        self._hooks: list[Any] = []

    def start(self) -> None:
        self._hooks = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def stop(self) -> None:
        """Also ends a step that raised."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._end()

    def running(self) -> Optional[OptimizerStep]:
        """The step that runs now, in this thread."""
        if self._step is None or threading.get_ident() != self._thread:
            return None
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        if frame is None:  # it raised, so PyTorch did not call the hook of its end
            self._end()
        return self._step

    def _before(self, optimizer, args, kwargs):
        # A step inside another (a wrapper's) is part of it.
        if self.running() is None:
            self._owner, self._frame = optimizer, sys._getframe(1)
            self._thread = threading.get_ident()
            self._step = OptimizerStep(f"{type(optimizer).__name__.lower()}.step")
            self._step.__enter__()

    def _after(self, optimizer, args, kwargs):
        if self._owner is optimizer:
            self._end()

    def _end(self) -> None:
        if self._step is None:
            return
        step, self._step, self._owner, self._frame = self._step, None, None, None
        step.__exit__(None, None, None)
        self._ended(step)
