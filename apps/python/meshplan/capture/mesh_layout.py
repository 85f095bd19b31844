"""A DeviceMesh as names, shape, ranks and layouts, in every version of PyTorch."""

from __future__ import annotations

import torch


def modes_of(offsets):
    """The layout (sizes and strides, the last mode fastest) that yields these offsets, coalesced;
    None where there is none."""
    if len(offsets) == 1:
        return []
    stride, run = offsets[1] - offsets[0], 1
    while run < len(offsets) and offsets[run] - offsets[run - 1] == stride:
        run += 1
    while len(offsets) % run:
        run -= 1
    if stride < 1 or run < 2:
        return None
    heads = offsets[::run]
    if any(
        offsets[i] - heads[i // run] != offsets[i % run] - offsets[0] for i in range(len(offsets))
    ):
        return None
    outer = modes_of(heads)
    return None if outer is None else coalesce(outer + [(run, stride)])


def coalesce(modes):
    """Modes that continue one another joined: [(2, 4), (4, 1)] is [(8, 1)]."""
    out = []
    for size, stride in modes:
        if size == 1:
            continue
        if out and out[-1][1] == stride * size:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    return out


def flat_ranks(mesh):
    return [int(r) for r in mesh_tensor(mesh).flatten().tolist()]


def mesh_tensor(mesh):
    """The ranks of a mesh: a real tensor even where the program's tensors are fake."""
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        return mesh.mesh.clone()


def names_of(mesh):
    return tuple(mesh.mesh_dim_names or (f"dim_{i}" for i in range(mesh.ndim)))


def root_of(mesh):
    if hasattr(mesh, "_get_root_mesh"):
        return mesh._get_root_mesh()
    from torch.distributed.device_mesh import _mesh_resources  # 2.6 to 2.8

    return _mesh_resources.get_root_mesh(mesh)


def flattened_of(root):
    """Name -> 1-D mesh of every flatten that the root knows, in the order they were made."""
    if hasattr(root, "_flatten_mapping"):
        return dict(root._flatten_mapping)
    from torch.distributed.device_mesh import _mesh_resources

    found = getattr(_mesh_resources, "root_to_flatten_mapping", {}).get(root, {})
    return dict(found)


def describe(mesh):
    """Names, shape and row-major ranks of a mesh."""
    return names_of(mesh), tuple(int(s) for s in mesh_tensor(mesh).shape), flat_ranks(mesh)
