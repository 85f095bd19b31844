"""meshplan from Python: plans, prices and proofs of how sharded tensors move on a device mesh.

    import meshplan

    plan = meshplan.plan(spec)                      # the text of a plan file
    meshplan.verify(plan)                           # proven without planning, or MeshplanError
    moved = meshplan.transfers(plan, "wq", rank=3)  # a dict: what rank 3 sends, receives, keeps
    us = meshplan.cost({"dp": 2, "tp": 8}, ["S(0)", "R"], ["R", "R"], (4096, 96), "bfloat16")

    with meshplan.follow(plan) as followed:         # DTensor moves data as the plan says
        train_step()
    meshplan.reshard(trained, serving)              # dicts of DTensors, to any meshes, at once

This needs neither PyTorch nor anything else beyond Python; `meshplan.capture`, which records what a
program asks for, `meshplan.follow` and `meshplan.reshard` need PyTorch, `meshplan.jax_shardings`
needs JAX.
"""

import importlib
import importlib.util
from typing import Any

from meshplan.library import (
    MeshplanError,
    bundle_transfers,
    plan,
    price,
    transfers,
    verify,
    version,
)
from meshplan.needed import needing_torch
from meshplan.prices import Pricer, cost, costs

__all__ = [
    "MeshplanError",
    "Pricer",
    "bundle_transfers",
    "cost",
    "costs",
    "follow",
    "plan",
    "price",
    "reshard",
    "transfers",
    "verify",
    "version",
]

# Loaded when first asked for.
_WITH_TORCH = {"follow": "meshplan.following", "reshard": "meshplan.resharding"}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'meshplan' has no attribute '{name}'")
    with needing_torch(f"meshplan.{name}"):
        globals()[name] = getattr(importlib.import_module(_WITH_TORCH[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    # Without PyTorch they are left out: help() and completion ask for all that is listed here.
    return sorted({*globals(), *(_WITH_TORCH if importlib.util.find_spec("torch") else ())})
