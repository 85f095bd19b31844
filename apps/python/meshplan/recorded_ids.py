"""The ids of what was recorded."""

from __future__ import annotations

import functools


# Parts of a module's path that come and go with what wraps it.
WRAPPERS = {"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"}


@functools.lru_cache(maxsize=None)
def path_of_all_layers(path):
    """`layers.*.wq` for `layers.7.wq`."""
    parts = [part for part in path.split(".") if part not in WRAPPERS]
    return ".".join("*" if part.isdigit() else part for part in parts)


def orders_text(entry):
    """`S(0)[tp,dp]` where rows are cut over tp first, before or after."""
    texts = (
        "".join(f"S({o['tensor_dim']})[{','.join(o['mesh_dims'])}]" for o in entry.get(end) or ())
        for end in ("src_order", "dst_order")
    )
    return "-".join(texts).strip("-")


def ids_of(entries):
    """The ids of recorded redistributions, from where they are asked for and what they do, so that
    they survive an edit of the program: phase, the weight that is moved or else the module path,
    with `*` for the indices of layers, and role; of those that share it, each adds what tells them
    apart: names of partials, shape, placements, shard orders, dtype, meshes, bundle."""
    details = (
        # First: a norm's shape is how many weights there are.
        lambda e: next((name for name in e.get("x-partial") or () if name), ""),
        lambda e: "x".join(map(str, e["tensor"]["shape"])) or "scalar",
        lambda e: "".join(e["src"]) + "-" + "".join(e["dst"]),
        orders_text,
        lambda e: e["tensor"]["dtype"],
        lambda e: "-".join(e[k] for k in ("mesh", "src_mesh", "dst_mesh") if k in e),
        lambda e: e.get("direction", "forward"),
        lambda e: f"bundle{e['bundle']}" if "bundle" in e else "alone",
    )
    names = []
    for entry in entries:
        module = entry.get("x-module") or entry.get("x-fsdp") or ""
        path = entry.get("weight") or path_of_all_layers(module)
        names.append(
            entry.get("id")
            or ".".join(part for part in (entry.get("x-phase"), path, entry["label"]) if part)
        )
    for detail in details:
        values = {}  # a detail that tells none apart is not added
        for name, entry in zip(names, entries):
            values.setdefault(name, set()).add(detail(entry))
        names = [
            ".".join(filter(None, (name, detail(entry))))
            if len(values[name]) > 1 and "id" not in entry
            else name
            for name, entry in zip(names, entries)
        ]
    taken = set()
    for i, name in enumerate(names):
        free, n = name, 1
        while free in taken:
            n += 1
            free = f"{name}.{n}"
        taken.add(free)
        names[i] = free
    return names
