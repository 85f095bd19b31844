"""meshplan from Python: plans, prices and proofs of how sharded tensors move on a device mesh.

    import meshplan

    plan = meshplan.plan(spec)                      # the text of a plan file
    meshplan.verify(plan)                           # proven without planning, or MeshplanError
    rows = meshplan.transfers(plan, "wq", rank=3)   # what rank 3 sends, receives and keeps
    us = meshplan.cost({"dp": 2, "tp": 8}, ["S(0)", "R"], ["R", "R"], (4096, 96), "bfloat16")

This needs neither PyTorch nor anything else beyond Python; `meshplan.capture`, which records what a
program asks for, needs PyTorch, `meshplan.jax_shardings` JAX.
"""

from meshplan.library import MeshplanError, plan, price, transfers, verify, version
from meshplan.prices import Pricer, cost, costs

__all__ = [
    "MeshplanError",
    "Pricer",
    "cost",
    "costs",
    "plan",
    "price",
    "transfers",
    "verify",
    "version",
]
