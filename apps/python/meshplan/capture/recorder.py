"""The recorder: taps where a program asks its meshes to move data, and what each tap counts."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys

from typing import Any, Iterator, Optional, Union

import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed.tensor
import torch.distributed.tensor._redistribute as torch_redistribute
from torch.distributed.device_mesh import DeviceMesh

from meshplan.capture.bundles import Bundle, keep
from meshplan.capture.collectives import (
    EAGER,
    FUNCTIONAL,
    Proxy,
    argument,
    read_nothing,
    tensor_text,
)
from meshplan.capture.mesh_layout import describe
from meshplan.capture.optimizer_steps import OptimizerStep, OptimizerSteps
from meshplan.capture.placements import REDUCE_OPS, tensor_of
from meshplan.capture.source import ModulePath, find_source
from meshplan.capture.spec_writer import spec_of
from meshplan.capture.weights import WeightNames
from meshplan.recorded_ids import path_of_all_layers
from meshplan.recorded_spec import (
    NotCovered,
    destination,
    handwritten,
    to_text,
    with_handwritten,
    write_file,
)

running: Optional[Recorder] = None  # the recorder at work


def phase(name: Optional[str]) -> None:
    """Names what follows ("optimizer", "grad_norm") in the recording at work; None: back to forward
    and backward. Does nothing outside one."""
    if running is not None:
        running.name = name


def reshard(source: Any, target: Any, name: str = "", count: int = 1) -> None:
    """Notes in the recording at work that `target`'s DTensors get `source`'s data, mesh to mesh:
    two DTensors, or two state dicts with the same keys; `name` begins their ids. All of them are
    one bundle, or part of the one around. Moves nothing, and does nothing outside a recording."""
    if running is not None:
        running.reshard(source, target, name, count)


@contextlib.contextmanager
def bundle(
    name: str, max_staging_bytes: Optional[int] = None, max_messages: Optional[int] = None
) -> Iterator[None]:
    """What the block asks for is one bundle: moved at once, in no order, so nothing in it may need
    what another part of it brings. Asking for the same again counts it. A bundle inside is part of
    the one around. Does nothing outside a recording."""
    if running is None:
        yield
        return
    with running.bundle(name, max_staging_bytes, max_messages):
        yield


class Recorder:
    """Counts what the program asks for between `start` and `stop`; afterwards `spec` is the
    spec."""

    def __init__(self) -> None:
        self.spec: Optional[dict[str, Any]] = None
        self.counts, self.first = {}, {}  # key -> count; key -> notes of the first request
        self.name, self.depth = (
            None,
            0,
        )  # the phase as the program calls it; inside a redistribution
        self.modules, self.restore, self.seen_meshes = ModulePath(), [], []
        self.reshards, self.notes = [], {}
        self.beneath = torch_redistribute.redistribute_local_tensor  # what the taps of it call
        self.bundles: list[Bundle] = []
        self.asked: Union[Recorder, Bundle] = self  # where what is asked for now is counted
        # In the backward of a redistribution; the line, module and weight of its forward.
        self.in_gradient, self.backward_of = False, None
        self.weights, self.weight = WeightNames(), ""  # the name of what is moved now
        self.optimizers = OptimizerSteps(self.step_ended)

    @contextlib.contextmanager
    def bundle(self, name, max_staging_bytes=None, max_messages=None):
        """Counts the block in a bundle: see the function of this name."""
        if self.asked is not self:
            yield
            return
        made = self.asked = Bundle(name, max_staging_bytes, max_messages)
        try:
            yield
        finally:
            self.asked = self
            keep(self.bundles, made)

    def reshard(self, source, target, name="", count=1, max_staging_bytes=None):
        """Notes a reshard: see the function of this name."""
        if hasattr(source, "placements"):
            source, target = {"": source}, {"": target}
        notes = find_source()
        with self.bundle(name or "reshard", max_staging_bytes):
            for key, before in source.items():
                after = target.get(key)
                if hasattr(before, "placements") and hasattr(after, "placements"):
                    label = ".".join(filter(None, (name, key)))
                    found = (label, before._spec, after._spec, count, notes)
                    self.asked.reshards.append(found)

    def step(self) -> Optional[OptimizerStep]:
        """The optimizer's step that runs, outside of bundles that the program names."""
        return self.optimizers.running() if self.asked is self else None

    def step_ended(self, step: OptimizerStep) -> None:
        """Two requests of a level or more are a bundle; one is by itself."""
        for _, made in sorted(step.bundles.items()):
            if sum(made.counts.values()) > 1:
                keep(self.bundles, made)
                continue
            for key, count in made.counts.items():
                self.counts[key] = self.counts.get(key, 0) + count
                self.first.setdefault(key, made.first[key])

    def current_phase(self):
        return self.name or ("backward" if torch._C._current_graph_task_id() != -1 else "forward")

    # Taps.

    def tap_redistribute(self, original, origin):
        backward_running = torch._C._current_graph_task_id

        @functools.wraps(original)
        def tap(local_tensor, current_spec, target_spec, *args, **kwargs):
            phase = self.name or ("backward" if backward_running() != -1 else "forward")
            explicit = kwargs.get(
                "is_explicit", origin == "redistribute" and backward_running() == -1
            )
            gradient = bool(kwargs.get("is_backward", False)) or (
                origin == "redistribute" and (self.in_gradient or not explicit)
            )
            weight = self.weight if explicit or gradient else ""
            place = path_of_all_layers(weight or self.module_now(gradient))
            key = (current_spec, target_spec, phase, origin, gradient, bool(weight), place)
            step = self.step()
            asked = self.asked if step is None else step.bundle_of(local_tensor)
            try:
                if key in asked.counts:
                    asked.counts[key] += 1
                else:
                    asked.counts[key] = 1
                    asked.first[key] = self.notes_now(gradient)
            except TypeError as error:  # sizes that depend on data cannot be compared
                self.refuse("redistribute", f"a size that depends on data ({error})")
            self.depth += 1
            try:
                result = self.beneath(local_tensor, current_spec, target_spec, *args, **kwargs)
            finally:
                self.depth -= 1
            if step is not None:
                step.moved(local_tensor, result)
            return result

        return tap

    def module_now(self, gradient):
        """The module that asks; of a gradient the one that asked for the forward request."""
        of_forward = gradient and self.backward_of is not None
        return self.backward_of[1] if of_forward else self.modules.current()

    def notes_now(self, gradient=False):
        notes, module = find_source(), self.module_now(gradient)
        if gradient and self.backward_of is not None and self.backward_of[0]:
            notes["x-source"] = self.backward_of[0]
        if module:
            notes["x-module"] = module
        return notes

    def refuse(self, what, reason, tensor=""):
        key = ("refused", what, reason)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.first.setdefault(key, find_source())
        if tensor:
            tensors = self.first[key].setdefault("x-tensors", {})
            tensors[tensor] = tensors.get(tensor, 0) + 1

    def tap_eager(self, original, name, reader, group_at):
        def tap(*args, **kwargs):
            if self.depth == 0:
                self.collective(
                    name, reader, args, kwargs, argument(args, kwargs, group_at, "group")
                )
            step = self.step() if self.depth == 0 else None
            self.depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self.depth -= 1
            if step is not None:
                step.moved((args, kwargs), (args, kwargs, result))
            return result

        tap.__name__ = getattr(original, "__name__", name)
        return tap

    def tap_functional(self, name, reader):
        def before(packet, args, kwargs):
            if self.depth == 0:
                self.collective(
                    name,
                    (lambda a, k, size: reader(a, size)) if reader else read_nothing,
                    args,
                    kwargs,
                    args[-1],
                )
            step = self.step() if self.depth == 0 else None
            self.depth += 1
            try:
                result = packet(*args, **kwargs)
            finally:
                self.depth -= 1
            if step is not None:
                step.moved(args, result)
            return result

        return before

    def collective(self, name, reader, args, kwargs, group):
        try:
            if isinstance(group, str):
                group = dist.distributed_c10d._resolve_process_group(group)
            group = (
                group
                if isinstance(group, dist.ProcessGroup)
                else dist.distributed_c10d._get_default_group()
            )
            if name == "batch_isend_irecv":
                raise NotCovered("point to point")
            tensor, shape, src, dst = reader(args, kwargs, group.size())
            if src[0] == "P" and src[2:-1] not in REDUCE_OPS:
                raise NotCovered(f"reduce op {src[2:-1]}")
            ranks = (
                getattr(group, "group_desc", "").removeprefix("mesh_") or "group",
                *dist.get_process_group_ranks(group),
            )
            key = (
                "collective",
                name,
                ranks,
                json.dumps(tensor_of(shape, tensor.dtype)),
                src,
                dst,
                self.current_phase(),
            )
            step = self.step()
            asked = self.asked if step is None else step.bundle_of((args, kwargs))
            if key not in asked.counts:
                asked.first[key] = self.notes_now()
            asked.counts[key] = asked.counts.get(key, 0) + 1
        except NotCovered as reason:
            self.refuse(name, str(reason), tensor_text(args, kwargs))

    # Start and stop.

    def replace(self, owner, name, new):
        self.restore.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    def replace_everywhere(self, original, make):
        """Every module that holds `original` under some name gets a tap; `make` gets the module's
        name."""
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            if not isinstance(space, dict):
                continue
            for name in [n for n, v in space.items() if v is original]:
                self.replace(module, name, make(module.__name__))

    def start(self):
        self.modules.start()
        self.optimizers.start()
        self.weights.start(self.replace)
        origins = {
            "torch.distributed.tensor._redistribute": "redistribute",
            "torch.distributed.tensor._dispatch": "operator",
            "torch.distributed.tensor._api": "from_local",
        }
        original = self.beneath = torch_redistribute.redistribute_local_tensor
        self.replace_everywhere(
            original,
            lambda module: self.tap_redistribute(original, origins.get(module, "operator")),
        )
        for name, (reader, group_at) in EAGER.items():
            function = getattr(dist, name, None) or getattr(dist.distributed_c10d, name, None)
            if function is not None:
                tap = self.tap_eager(function, name, reader, group_at)
                self.replace_everywhere(function, lambda module, tap=tap: tap)
        for name, reader in FUNCTIONAL.items():
            packet = getattr(torch.ops._c10d_functional, name, None)
            if packet is not None:
                self.replace(
                    torch.ops._c10d_functional,
                    name,
                    Proxy(packet, self.tap_functional(name, reader)),
                )
        self.tap_autograd()
        self.tap_meshes()

    def tap_autograd(self):
        """A weight's redistribution takes its name; a gradient's the source line and the weight of
        the forward request that it undoes."""
        node, recorder = torch_redistribute.Redistribute, self
        forward, backward = node.forward, node.backward

        def tapped_forward(ctx, tensor, *args, **kwargs):
            outermost = recorder.depth == 0
            recorder.weight = recorder.weights.name_of(tensor) if outermost else ""
            ctx.meshplan_source = (
                find_source().get("x-source") if outermost else None,
                recorder.modules.current(),
                recorder.weight,
            )
            try:
                return forward(ctx, tensor, *args, **kwargs)
            finally:
                recorder.weight = ""

        def tapped_backward(ctx, *args, **kwargs):
            recorder.in_gradient, recorder.backward_of = True, getattr(ctx, "meshplan_source", None)
            recorder.weight = recorder.backward_of[2] if recorder.backward_of else ""
            try:
                return backward(ctx, *args, **kwargs)
            finally:
                recorder.in_gradient, recorder.backward_of, recorder.weight = False, None, ""

        for name, tap in (("forward", tapped_forward), ("backward", tapped_backward)):
            self.restore.append((node, name, staticmethod(getattr(node, name))))
            setattr(node, name, staticmethod(tap))

    def tap_meshes(self):
        recorder, original = self, DeviceMesh.__init__

        def tapped(mesh, /, *args, **kwargs):  # older versions pass the ranks as `mesh`
            original(mesh, *args, **kwargs)
            recorder.seen_meshes.append(mesh)

        self.replace(DeviceMesh, "__init__", tapped)
        alive = [o for o in gc.get_objects() if type(o) is DeviceMesh]
        self.seen_meshes = sorted(alive, key=lambda m: (-m.ndim, str(describe(m))))

    def stop(self):
        self.modules.stop()
        self.optimizers.stop()
        taps = {}
        for owner, name, original in reversed(self.restore):
            taps[id(owner.__dict__.get(name)) if hasattr(owner, "__dict__") else 0] = original
            setattr(owner, name, original)
        # Modules imported meanwhile hold a tap under their own names.
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            if isinstance(space, dict):
                for name in [
                    n
                    for n, v in space.items()
                    if id(v) in taps and not isinstance(v, (int, str, type(None)))
                ]:
                    setattr(module, name, taps[id(space[name])])
        self.restore = []


@contextlib.contextmanager
def record(path: Optional[Union[str, os.PathLike[str]]] = None) -> Iterator[Recorder]:
    """Records the block and writes the spec to `path`; the recorder's `spec` holds it afterwards.
    What a person added to a spec that is there already (topology, options, budgets, allow, bundles)
    stays in it; NotReplaced, before anything runs, where the file is no such spec. On an error in
    the block what was recorded until then is written, marked x-incomplete, and the error goes
    on."""
    global running
    if path is not None:
        path = destination(path)
    kept = handwritten(path) if path is not None else {}
    recorder, incomplete = Recorder(), None
    recorder.start()
    running = recorder
    try:
        yield recorder
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code:
            incomplete = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise
    finally:
        running = None
        recorder.stop()
        recorder.spec = spec_of(recorder, incomplete)
        if path is not None:
            recorder.spec = with_handwritten(recorder.spec, kept)
            write_file(path, to_text(recorder.spec))
