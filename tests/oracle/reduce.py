"""Makes a spec that has a finding as small as it gets while the finding stays."""
import copy


def smaller(spec):
    """Specs a step smaller than this one, the largest steps first."""
    reds = spec["redistributions"]
    for i in range(len(reds)):
        if len(reds) > 1 and "bundles" not in spec:
            yield dict(spec, redistributions=[reds[i]])
    yield from smaller_bundles(spec)
    for key in ("options", "topology"):
        if key in spec:
            yield {k: v for k, v in spec.items() if k != key}
    for key in spec.get("options", {}):
        yield dict(spec, options={k: v for k, v in spec["options"].items() if k != key})
    for i in range(1, len(spec.get("meshes", []))):
        yield dict(spec, meshes=spec["meshes"][:i] + spec["meshes"][i + 1:])
    yield from smaller_topology(spec)
    yield from smaller_mesh(spec)
    for i, red in enumerate(reds):
        for other in smaller_redistribution(red):
            yield dict(spec, redistributions=reds[:i] + [other] + reds[i + 1:])


def smaller_bundles(spec):
    """A bundle, a limit of one, or a redistribution less."""
    bundles, reds = spec.get("bundles", []), spec["redistributions"]
    for i, bundle in enumerate(bundles):
        if len(bundles) > 1:
            yield dict(spec, bundles=bundles[:i] + bundles[i + 1:])
        for key in ("count", "max_messages", "max_staging_bytes"):
            if key in bundle:
                less = {k: v for k, v in bundle.items() if k != key}
                yield dict(spec, bundles=bundles[:i] + [less] + bundles[i + 1:])
    for i, red in enumerate(reds if bundles and len(reds) > 1 else []):
        left = [dict(b, redistributions=[name for name in b["redistributions"] if name != red["id"]]) for b in bundles]
        yield dict(spec, redistributions=reds[:i] + reds[i + 1:], bundles=[b for b in left if b["redistributions"]])


def smaller_topology(spec):
    topology = spec.get("topology")
    if not isinstance(topology, dict):
        return
    levels = topology["levels"]
    for key in topology:
        if key != "levels":
            yield dict(spec, topology={k: v for k, v in topology.items() if k != key})
    for i, level in enumerate(levels):
        if len(levels) > 1:
            yield dict(spec, topology=dict(topology, levels=levels[:i] + levels[i + 1:]))
        for key in ("per_peer_ns", "exchange_percent"):
            if key in level:
                less = {k: v for k, v in level.items() if k != key}
                yield dict(spec, topology=dict(topology, levels=levels[:i] + [less] + levels[i + 1:]))
        if level["latency_ns"]:
            less = dict(level, latency_ns=0)
            yield dict(spec, topology=dict(topology, levels=levels[:i] + [less] + levels[i + 1:]))


def smaller_mesh(spec):
    """Fewer flattens, no permutation, a dim left out or shorter (simple form, or a world alone)."""
    simple = "mesh" in spec
    root = spec["mesh"] if simple else spec["meshes"][0]
    for key in ("ranks", "flattened"):
        if key in root:
            less = {k: v for k, v in root.items() if k != key}
            yield dict(spec, mesh=less) if simple else dict(spec, meshes=[less] + spec["meshes"][1:])
    for i, dim in enumerate(root.get("dims", [])):
        for size in range(1, dim["size"]):
            made = copy.deepcopy(spec)
            target = made["mesh"] if simple else made["meshes"][0]
            target["dims"][i]["size"] = size
            target.pop("ranks", None)
            if not simple:
                target["world"] = 1
                for d in target["dims"]:
                    target["world"] *= d["size"]
            yield made
    if simple and len(root["dims"]) > 1:
        for i, dim in enumerate(root["dims"]):
            made = copy.deepcopy(spec)
            del made["mesh"]["dims"][i]
            made["mesh"].pop("ranks", None)
            made["mesh"].pop("flattened", None)
            for red in made["redistributions"]:
                for key in ("src", "dst"):
                    if isinstance(red[key], list):
                        del red[key][i]
                    else:
                        red[key].pop(dim["name"], None)
                    for entry in red.get(key + "_order", []) if red.get(key + "_order") != "any" else []:
                        entry["mesh_dims"] = [n for n in entry["mesh_dims"] if n != dim["name"]]
            yield made


def smaller_redistribution(red):
    for key in ("count", "direction", "reduce_dtype", "src_order", "dst_order"):
        if key in red:
            yield {k: v for k, v in red.items() if k != key}
    shape = red["tensor"]["shape"]
    for i, extent in enumerate(shape):
        for less in sorted({1, 2, extent // 4, extent // 2, extent - 1}):
            if 0 < less < extent:
                yield dict(red, tensor=dict(red["tensor"], shape=shape[:i] + [less] + shape[i + 1:]))
    for key in ("src", "dst"):
        if isinstance(red[key], list):
            for i, placement in enumerate(red[key]):
                if placement != "R":
                    yield dict(red, **{key: red[key][:i] + ["R"] + red[key][i + 1:]})


def size_of(spec):
    return len(str(spec)) + sum(sum(r["tensor"]["shape"]) for r in spec["redistributions"])


def reduced(spec, fails, tries=400):
    """The smallest spec found for which fails(spec) holds."""
    again = True
    while again and tries > 0:
        again = False
        for other in smaller(spec):
            tries -= 1
            if tries <= 0:
                break
            if size_of(other) < size_of(spec) and fails(other):
                spec, again = other, True
                break
    return spec
