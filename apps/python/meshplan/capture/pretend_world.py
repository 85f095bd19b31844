"""One process that takes itself for a rank of a world that does not exist."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Iterator

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh


class Replacements:
    """Attributes that were set to something else, until `undo`."""

    def __init__(self) -> None:
        self.saved = []

    def put(self, owner, name, value):
        self.saved.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def put_everywhere(self, old, new):
        """In every module that holds `old`, under whatever name."""
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if value is old:
                    self.put(module, name, new)

    def undo(self):
        for owner, name, value in reversed(self.saved):
            setattr(owner, name, value)
        self.saved = []


class Fake(FakeTensorMode):
    """Reading a fake tensor's value gives 1.0, `integer` or False, so that a step that logs its
    loss goes on; `notes` count it. What touches real tensors only (a mesh's ranks, a constant) is
    computed."""

    def __init__(self, notes, integer):
        super().__init__(allow_non_fake_inputs=True)
        self.notes, self.integer = notes, integer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        leaves = torch.utils._pytree.tree_leaves((args, kwargs or {}))
        tensors = [t for t in leaves if isinstance(t, torch.Tensor)]
        ranks = func.overloadpacket is torch.ops.aten.arange  # counting is how meshes are made
        if ranks or tensors and all(type(t) is torch.Tensor for t in tensors):
            with unset_fake_temporarily():
                return func(*args, **(kwargs or {}))
        if func.namespace == "c10d":
            return self.communicate(func, args, kwargs or {})
        if func is torch.ops.aten._local_scalar_dense.default:
            self.notes["values-read"] = self.notes.get("values-read", 0) + 1
            dtype = args[0].dtype
            if dtype is torch.bool:
                return False
            return 1.0 if dtype.is_floating_point else self.integer
        return super().__torch_dispatch__(func, types, args, kwargs)

    @staticmethod
    def communicate(func, args, kwargs):
        """A collective in place, which fake tensors do not know in every version: the fake group
        gets tensors without elements, and the program its own tensors back."""
        with unset_fake_temporarily():
            empty = lambda t: torch.empty(0, dtype=t.dtype)
            stand_in = torch.utils._pytree.tree_map_only(torch.Tensor, empty, (args, kwargs))
            done = func(*stand_in[0], **stand_in[1])
        return (args[0], done[1]) if isinstance(done, tuple) and len(done) == 2 else done


def really(function):
    """The function on real tensors, also where the program's are fake."""

    def call(*args, **kwargs):
        with unset_fake_temporarily():
            return function(*args, **kwargs)

    return call


def swap_fakes_by(swap):
    """Module.to() swaps fake parameters, which the fake mode remembers by weak references and so
    forbids."""

    def swap_fakes(first, second):
        fakes = [t for t in (first, second) if isinstance(t, torch._subclasses.FakeTensor)]
        kind = lambda t: (t.dtype, t.device, t.shape)
        if len(fakes) == 2 and kind(first) == kind(second):
            return  # there is no data to swap
        for fake in fakes:
            memo = fake.fake_mode.fake_tensor_converter.meta_converter.tensor_memo
            for key in [k for k, v in memo.items() if v is fake]:
                del memo[key]
        swap(first, second)

    return swap_fakes


def take_cuda_for_cpu(replace: Replacements) -> None:
    """The parts of PyTorch that a function mode does not see."""
    replace.put(torch.cuda, "set_device", lambda *a, **k: None)
    replace.put(torch.cuda, "synchronize", lambda *a, **k: None)
    initial = DeviceMesh.__init__

    def on_cpu(self, /, *args, **kwargs):
        if "device_type" in kwargs:
            kwargs["device_type"] = str(CudaAsCpu.on_cpu(kwargs["device_type"]))
        if args:
            args = (str(CudaAsCpu.on_cpu(args[0])), *args[1:])
        return initial(self, *args, **kwargs)

    replace.put(DeviceMesh, "__init__", on_cpu)


@contextlib.contextmanager
def pretend_world(
    world: int, rank: int, notes: dict[str, Any], real_tensors: bool = False, integer: int = 1
) -> Iterator[None]:
    """Makes this process rank `rank` of `world`: a fake process group, fake tensors unless
    `real_tensors`, and the CPU in place of CUDA where there is none. `integer` is what reading an
    integer gives; `notes` get what is worth knowing of the run."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_RANK="0",
        LOCAL_WORLD_SIZE=str(min(world, 8)),
        MASTER_ADDR="localhost",
        MASTER_PORT="0",
        TORCH_COMPILE_DISABLE="1",
    )
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    destroy, replace = dist.destroy_process_group, Replacements()
    for call in (dist.init_process_group, destroy):  # the program's own world is this one
        replace.put_everywhere(call, lambda *a, **k: None)
    replace.put(DeviceMesh, "__init__", really(DeviceMesh.__init__))
    make_mesh = torch.distributed.device_mesh.init_device_mesh
    replace.put_everywhere(make_mesh, really(make_mesh))
    # 2.6: FSDP2 asks the CPU's streams for what they cannot do yet.
    if not hasattr(torch.cpu.Stream, "record_event"):
        torch.cpu.Stream.record_event = lambda stream, event=None: event or torch.cpu.Event()
        torch.cpu.Stream.wait_event = lambda stream, event: None
    with contextlib.ExitStack() as stack:
        if not real_tensors:
            stack.enter_context(Fake(notes, integer))
            replace.put(torch.utils, "swap_tensors", swap_fakes_by(torch.utils.swap_tensors))
        if not torch.cuda.is_available():
            stack.enter_context(CudaAsCpu(not real_tensors))
            take_cuda_for_cpu(replace)
        try:
            yield
        finally:
            replace.undo()
            destroy()


def attention_of_cuda(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """The operator that CUDA would choose: DTensor has sharding rules for it, and for few versions'
    CPU attention."""
    aten = torch.ops.aten
    if attn_mask is None and query.dtype in (torch.bfloat16, torch.float16):
        return aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, scale=scale
        )[0]
    heads = query.shape[-3]
    if enable_gqa and key.shape[-3] != heads:  # this one wants as many key heads as query heads
        key, value = (t.repeat_interleave(heads // t.shape[-3], -3) for t in (key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, query.requires_grad, dropout_p, is_causal, scale=scale
    )[0]


class CudaAsCpu(torch.overrides.TorchFunctionMode):
    """A program that names "cuda" gets the CPU: only shapes and placements matter."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {k: self.on_cpu(v) if k == "device" else v for k, v in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.nn.functional.scaled_dot_product_attention and self.fake_tensors:
            given = (*args, *kwargs.values())
            if any(isinstance(a, torch.distributed.tensor.DTensor) for a in given):
                return attention_of_cuda(*args, **kwargs)
        if func is torch.Tensor.to:
            args = (args[0], *(self.on_cpu(a) for a in args[1:]))
        return func(*args, **kwargs)

    def __init__(self, fake_tensors=False):
        super().__init__()
        self.fake_tensors = fake_tensors

    @staticmethod
    def on_cpu(value):
        is_cuda = isinstance(value, (str, torch.device)) and str(value).split(":")[0] == "cuda"
        return torch.device("cpu") if is_cuda else value
