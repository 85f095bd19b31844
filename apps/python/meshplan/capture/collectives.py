"""Collectives that a program issues outside of DTensor, read as redistributions over their group.

A reader takes a call's arguments and the group's size, and gives the tensor, the whole shape over
the group, and the placements before and after.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist

from meshplan.capture.source import TORCH_FOLDER
from meshplan.recorded_spec import NotCovered


def op_text(op):
    """`sum` for "sum", ReduceOp.SUM and the ReduceOp object that a pre-multiplied sum is."""
    if isinstance(op, str):
        return op.lower()
    for name in ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "PREMUL_SUM"):
        if op == getattr(dist.ReduceOp, name):
            return "sum" if name == "PREMUL_SUM" else name.lower()
    raise NotCovered("a reduce op that specs do not have (bitwise)")


def argument(args, kwargs, index, *names):
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[index] if index is not None and len(args) > index else None


def even_list(tensors):
    """The shape that all tensors of a list have."""
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) != 1:
        raise NotCovered("tensors of different shapes in one list")
    return list(shapes.pop())


def even_splits(*lists):
    """Checks that each list of rows, one for each rank, has one number of them."""
    for splits in lists:
        if splits and len({str(s) for s in splits}) > 1:
            raise NotCovered(
                "all_to_all with uneven splits (rows chosen by data, a ring's rotation)"
            )


def whole(shape, size):
    return [size] if not shape else [shape[0] * size, *shape[1:]]


def all_to_all_tensor(shape, size):
    """Rank r holds column r of [to, from x part, ...] before and row r after: S(1) to S(0)."""
    if not shape or shape[0] % size:
        raise NotCovered("all_to_all of a first dim that the group does not divide")
    return [size, shape[0], *shape[1:]]


# One function for each kind of collective; the readers below only find its tensor among a call's
# arguments.
def reduced(tensor, shape, op, target):
    return tensor, list(shape), f"P({op_text(op or 'sum')})", target


def gathered(tensor, size):
    return tensor, whole(list(tensor.shape), size), "S(0)", "R"


def exchanged(tensor, shape, size):
    return tensor, all_to_all_tensor(shape, size), "S(1)", "S(0)"


def read_all_reduce(args, kwargs, size):
    tensor = argument(args, kwargs, 0, "tensor")
    return reduced(tensor, tensor.shape, argument(args, kwargs, 1, "op"), "R")


def read_all_gather_single(args, kwargs, size):
    return gathered(argument(args, kwargs, 1, "input_tensor", "input"), size)


def read_all_gather(args, kwargs, size):
    even_list(argument(args, kwargs, 0, "tensor_list"))
    return gathered(argument(args, kwargs, 1, "tensor"), size)


def read_reduce_scatter_single(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "input")
    return reduced(tensor, tensor.shape, argument(args, kwargs, 2, "op"), "S(0)")


def read_reduce_scatter(args, kwargs, size):
    tensors = argument(args, kwargs, 1, "input_list")
    shape = whole(even_list(tensors), size)
    return reduced(tensors[0], shape, argument(args, kwargs, 2, "op"), "S(0)")


def read_all_to_all_single(args, kwargs, size):
    tensor = argument(args, kwargs, 1, "input")
    even_splits(
        argument(args, kwargs, 2, "output_split_sizes"),
        argument(args, kwargs, 3, "input_split_sizes"),
    )
    return exchanged(tensor, list(tensor.shape), size)


def read_all_to_all(args, kwargs, size):
    tensors = argument(args, kwargs, 1, "input_tensor_list")
    even_list(argument(args, kwargs, 0, "output_tensor_list"))
    return exchanged(tensors[0], whole(even_list(tensors), size), size)


def read_nothing(args, kwargs, size):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in (
        "distribute_tensor",
        "distribute_module",
    ):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename.startswith(TORCH_FOLDER):
        raise NotCovered(
            "deals out rank 0's tensor when it becomes a DTensor (distribute_tensor): once, before "
            "the first step"
        )
    raise NotCovered("no redistribution says what it does")


def tensor_text(args, kwargs):
    """`float32[4, 2]` of the first tensor among a call's arguments."""
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    tensor = next((a for a in leaves if isinstance(a, torch.Tensor)), None)
    if tensor is None:
        return ""
    sizes = [int(s) if isinstance(s, int) else str(s) for s in tensor.shape]
    return f"{str(tensor.dtype).replace('torch.', '')}{sizes}"


# name in torch.distributed -> (reader, position of `group`)
EAGER = {
    "all_reduce": (read_all_reduce, 2),
    "all_gather_into_tensor": (read_all_gather_single, 2),
    "all_gather_single": (read_all_gather_single, 2),
    "_all_gather_base": (read_all_gather_single, 2),
    "all_gather": (read_all_gather, 2),
    "reduce_scatter_tensor": (read_reduce_scatter_single, 3),
    "reduce_scatter_single": (read_reduce_scatter_single, 3),
    "_reduce_scatter_base": (read_reduce_scatter_single, 3),
    "reduce_scatter": (read_reduce_scatter, 3),
    "all_to_all_single": (read_all_to_all_single, 4),
    "all_to_all": (read_all_to_all, 2),
    "broadcast": (read_nothing, 2),
    "reduce": (read_nothing, 3),
    "gather": (read_nothing, 3),
    "scatter": (read_nothing, 3),
    "send": (read_nothing, 2),
    "recv": (read_nothing, 2),
    "isend": (read_nothing, 2),
    "irecv": (read_nothing, 2),
    "batch_isend_irecv": (read_nothing, None),
    "all_gather_object": (read_nothing, 2),
    "broadcast_object_list": (read_nothing, 2),
    "gather_object": (read_nothing, 3),
    "scatter_object_list": (read_nothing, 3),
    "barrier": (read_nothing, 0),
    "all_reduce_coalesced": (read_nothing, 2),
    "all_gather_coalesced": (read_nothing, 2),
}


def functional_all_reduce(args, size):
    return reduced(args[0], args[0].shape, args[1], "R")


def functional_all_gather(args, size):
    return gathered(args[0], size)


def functional_reduce_scatter(args, size):
    return reduced(args[0], args[0].shape, args[1], "S(0)")


def functional_all_to_all(args, size):
    even_splits(*args[1:3])
    return exchanged(args[0], list(args[0].shape), size)


# name in torch.ops._c10d_functional -> reader; the group is the last argument
FUNCTIONAL = {
    "all_reduce": functional_all_reduce,
    "all_reduce_": functional_all_reduce,
    "all_gather_into_tensor": functional_all_gather,
    "reduce_scatter_tensor": functional_reduce_scatter,
    "all_to_all_single": functional_all_to_all,
    "broadcast": None,
    "all_reduce_coalesced": None,
    "all_gather_into_tensor_coalesced": None,
    "reduce_scatter_tensor_coalesced": None,
}


class Proxy:
    """Stands for an operator of torch.ops: records the call, passes everything else on."""

    def __init__(self, packet, before):
        self.__dict__.update(_packet=packet, _before=before)

    def __call__(self, *args, **kwargs):
        return self._before(self._packet, args, kwargs)

    def __getattr__(self, name):
        return getattr(self._packet, name)
