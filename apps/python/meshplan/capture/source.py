"""Where a request came from: the line of the program, the operator, the module that runs."""

from __future__ import annotations

import os
import sys

import torch

TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def place_of(filename, line):
    """`train.py:12`, or `torchtitan/models/llama3.py:40` inside an installed package: the same on
    every machine."""
    path = os.path.abspath(filename)
    for folder in sorted((p for p in sys.path if p), key=len, reverse=True):
        folder = os.path.abspath(folder) + os.sep
        if path.startswith(folder):
            return f"{path[len(folder):]}:{line}"
    return f"{os.path.basename(path)}:{line}"


def find_source():
    """The innermost line outside PyTorch and this package, and what asked: the operator that a
    dispatch serves, or the FSDP unit."""
    frame, notes = sys._getframe(2), {}
    while frame is not None:
        name = frame.f_code.co_filename
        if "x-operator" not in notes and frame.f_code.co_name == "redistribute_local_args":
            info = frame.f_locals.get("op_info")
            op = getattr(getattr(info, "schema", None), "op", None) or getattr(
                frame.f_locals.get("suggested_input_schema"), "op", None
            )
            if op is not None:
                notes["x-operator"] = str(op)
        unit = frame.f_locals.get("self") if "/_fully_shard/" in name else None
        if unit is not None and "x-fsdp" not in notes and type(unit).__name__ == "FSDPParamGroup":
            notes["x-fsdp"] = getattr(unit, "_module_fqn", None) or "root"
        if not name.startswith((TORCH_FOLDER, PACKAGE_FOLDER, "<")):
            notes["x-source"] = place_of(name, frame.f_lineno)
            break
        frame = frame.f_back
    return notes


class ModulePath:
    """The path of the module that is running; hooks of the module count as part of it."""

    def __init__(self):
        self.names, self.stack, self.original = {}, [], None

    def start(self):
        original, names, stack = torch.nn.Module.__call__, self.names, self.stack

        def call(module, *args, **kwargs):
            if id(module) not in names:  # a module that no known one contains: it is a root
                for name, child in module.named_modules():
                    names.setdefault(id(child), name)
            stack.append(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                stack.pop()

        self.original = original
        torch.nn.Module.__call__ = call

    def stop(self):
        torch.nn.Module.__call__ = self.original

    def current(self):
        return self.names.get(id(self.stack[-1]), "") if self.stack else ""
