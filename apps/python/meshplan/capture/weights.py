"""The names of weights: which parameter or buffer of which module a tensor is."""

from __future__ import annotations

import gc
import weakref

import torch


def place_of_data(tensor):
    """Where a tensor's own data lies: equal for a parameter and what `detach()` or `state_dict()`
    makes of it. None where it has no storage."""
    local = getattr(tensor, "_local_tensor", tensor)
    try:
        storage = local.untyped_storage()._cdata
        return storage, local.storage_offset(), tuple(local.shape), tuple(local.stride())
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def same(tensor):
    return tensor


def gradient_of(parameter):
    return parameter.grad


class WeightNames:
    """`name_of` a DTensor that the program moves: `layers.0.wq.weight`, `layers.0.wq.weight.grad`
    for its gradient, "" for what is no weight of a module. Paths begin at the outermost module."""

    def __init__(self) -> None:
        self.modules = []  # weak references
        self.known = {}  # place -> (weak parameter, parameter -> tensor there, name)

    def start(self, replace) -> None:
        """Knows the modules that live, and by taps that `replace` sets those that are made."""
        kind, modules = torch.nn.Module, self.modules
        modules.extend(weakref.ref(o) for o in gc.get_objects() if issubclass(type(o), kind))
        for name in ("__init__", "__setstate__"):  # the second of copies

            def tapped(module, *args, made=getattr(kind, name), **kwargs):
                modules.append(weakref.ref(module))
                return made(module, *args, **kwargs)

            replace(kind, name, tapped)

    def name_of(self, tensor) -> str:
        if tensor.grad_fn is not None:
            return ""
        place = place_of_data(tensor)
        if place is None:
            return ""
        found = self.found(place)
        if found is None:
            self.look()
            found = self.found(place)
        return found or ""

    def found(self, place):
        """The name of what still lies there."""
        weak, part, name = self.known.get(place, (None, None, None))
        parameter = weak() if weak is not None else None
        tensor = part(parameter) if parameter is not None else None
        return name if tensor is not None and place_of_data(tensor) == place else None

    def look(self) -> None:
        """Finds all weights and gradients anew."""
        self.known = {}
        for path, module in self.named_modules():
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is None:
                    continue
                name = ".".join(filter(None, (path, name)))
                for part, what in ((same, name), (gradient_of, f"{name}.grad")):
                    of = part(tensor) if tensor.is_leaf else None
                    place = place_of_data(of) if of is not None else None
                    if place is not None:
                        self.known.setdefault(place, (weakref.ref(tensor), part, what))

    def named_modules(self):
        """(path, module) of all that live."""
        alive = {id(m): m for m in (weak() for weak in self.modules) if m is not None}
        self.modules[:] = [weakref.ref(m) for m in alive.values()]
        inside = {id(child) for m in alive.values() for child in vars(m).get("_modules", {}).values()}
        for root in [m for key, m in alive.items() if key not in inside and "_modules" in vars(m)]:
            yield from root.named_modules()
