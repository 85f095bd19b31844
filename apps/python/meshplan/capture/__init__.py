"""Records what a PyTorch program asks its device meshes to move, as a meshplan spec.

    with meshplan.capture.record("spec.json"):            around a training step, real or fake
        step()

    python -m meshplan.capture --world 512 -o spec.json train_step.py --its --own arguments

The second form runs the program as one rank of a world that does not exist: a fake process group,
fake tensors, no GPU, no memory.

What is recorded
  meshes            root, slices, flattened dims, unflattened views and rank order of every mesh
                    that the program moved data on
  redistributions   each distinct one (tensor, placements, shard orders, forward or backward, asked
                    for or inserted by an operator) with its count; `x-source` is the line that
                    first asked for it, `x-module` the module it ran in
  collectives       issued outside DTensor (FSDP2 on its flat buffers, DDP-like code, expert
                    dispatch): gathers, reductions, scatters and even all-to-alls are
                    redistributions of a tensor over the group they run on
  bundles           what is asked for at once: each `meshplan.reshard`, each block of
                    `with meshplan.capture.bundle("name"):`, and of every optimizer's step the
                    requests that need nothing of each other; the same again is counted
  x-not-covered     everything else that communicates, with its reason and count. Nothing is
                    dropped in silence.

Recorded again into the same file, a spec keeps what a person added to it (topology, options,
budgets, allow, bundles, notes). `meshplan check SPEC --record "python train_step.py"` records anew
beside it and compares.

Versions. Tested with PyTorch 2.6, 2.9, 2.11 and 2.15; what each offers:
  2.6 to 2.9        placements, strided shards, slices and flattened meshes, FSDP2, collectives
                    outside DTensor. These versions have no shard orders and unflatten no mesh; some
                    operators (logsumexp) have no sharding rule and stop the program
  2.10 and newer    the same with shard orders and unflattened meshes
Operators ask for other redistributions from version to version: record with the one that trains.

On CPUs alone the runner takes "cuda" for the CPU and attention for CUDA's operators. Regions under
torch.compile are seen once, when they are traced: the runner switches compilation off. Pipeline
stages are separate programs: record each with its own --rank. Root meshes of one program that begin
at the same rank and lie inside one another become views of one flat world, called `world`; a root
on other ranks (train on 0-7, serve on 8-15) is a universe of its own in the spec, with its real
ranks.
"""

import importlib
from typing import Any

from meshplan.needed import needing_torch

__all__ = ["Recorder", "bundle", "phase", "record", "reshard"]

try:
    from meshplan.capture.recorder import Recorder, bundle, phase, record, reshard
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise

    # Said where one of them is asked for: the runner's --help needs no PyTorch.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'meshplan.capture' has no attribute '{name}'")
        with needing_torch(f"meshplan.capture.{name}"):
            return getattr(importlib.import_module("meshplan.capture.recorder"), name)
