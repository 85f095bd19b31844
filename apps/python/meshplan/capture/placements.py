"""Placements, shard orders and tensors of PyTorch in the words of a spec."""

from __future__ import annotations

import math

from meshplan.recorded_spec import NotCovered

DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8_e4m3fn": "float8_e4m3",
    "float8_e5m2": "float8_e5m2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
}
REDUCE_OPS = {"sum", "avg", "min", "max", "product"}


def placement_text(placement):
    if placement.is_replicate():
        return "R"
    if placement.is_partial():
        op = str(placement.reduce_op).lower()
        if op not in REDUCE_OPS:
            raise NotCovered(f"partial of reduce op {placement.reduce_op}")
        return f"P({op})"
    if type(placement).__name__ == "_StridedShard":
        return f"SS({placement.dim},{placement.split_factor})"
    if placement.is_shard():
        return f"S({placement.dim})"
    raise NotCovered(f"placement {placement}")


def partial_name(placement):
    """What the program calls a partial that is more than its reduction: a norm's, a mask's; None
    for plain ones."""
    kind = type(placement).__name__
    if not placement.is_partial() or kind in ("Partial", "_Partial"):
        return None
    return f"{kind}({placement.norm_type})" if hasattr(placement, "norm_type") else kind


def partial_names(source, target, tensor):
    """By mesh dim, of the source, where that has none of the target; None where all partials are
    plain. A norm's or a mask's partial of floats moves the data of its plain reduction; of integers
    a mask marks entries, and their sum means nothing."""
    ends = ([partial_name(p) for p in spec.placements] for spec in (source, target))
    names = [before or after for before, after in zip(*ends)]
    if any("Mask" in name for name in names if name) and not tensor["dtype"].startswith(
        ("float", "bfloat")
    ):
        raise NotCovered(f"a mask partial of {tensor['dtype']}")
    return names if any(names) else None


def state_of(spec):
    """Placements of a DTensorSpec and its shard order where that is not the ascending one."""
    check_strided(spec.placements, spec.mesh.shape)
    texts = [placement_text(p) for p in spec.placements]
    orders = []
    for entry in getattr(spec, "shard_order", None) or ():
        dims = list(entry.mesh_dims)
        if len(dims) > 1 and dims != sorted(dims):
            orders.append((int(entry.tensor_dim), dims))
    return texts, orders


def check_strided(placements, mesh_shape):
    """NotCovered for strided shards that no shard order says, as views make them of a sequence that
    is cut. Mesh dims take their places in the order from the last to the first, each behind those
    whose sizes multiply to its split factor; a plain shard's is 1."""
    orders = {}  # tensor dim -> sizes of the mesh dims that shard it, in order
    for placement, size in reversed(list(zip(placements, mesh_shape))):
        strided = type(placement).__name__ == "_StridedShard"
        if not strided and not placement.is_shard():
            continue
        order, factor = orders.setdefault(placement.dim, []), 1
        if strided:
            factor = placement.split_factor
        at = next((n for n in range(len(order) + 1) if math.prod(order[:n]) == factor), None)
        if at is None:
            raise NotCovered(f"strided shards {tuple(placements)} that no shard order says")
        order.insert(at, size)


def tensor_of(shape, dtype):
    name = str(dtype).replace("torch.", "")
    if name not in DTYPES:
        raise NotCovered(f"dtype {name}")
    try:
        sizes = [int(s) for s in shape]
    except Exception as error:
        raise NotCovered(f"a size that depends on data ({type(error).__name__})") from error
    if any(s == 0 for s in sizes):
        raise NotCovered(f"a tensor without elements {sizes}")
    return {"shape": sizes, "dtype": DTYPES[name]}


def normalised(src, dst):
    """PyTorch's normalisation of gradients, which a planner has, too: a partial target of a shard
    or a replica becomes a replica."""
    return ["R" if d[0] == "P" and s[0] != "P" else d for s, d in zip(src, dst)]


def asked_backward(current, dst):
    """The target of a gradient as the version at hand normalises it: to 2.11 a strided shard is not
    a shard, so that it makes the partial of one."""
    whole = [p.is_shard() or p.is_replicate() for p in current.placements]
    return ["R" if d[0] == "P" and no_partial else d for no_partial, d in zip(whole, dst)]
