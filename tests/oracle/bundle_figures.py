"""Recounts the figures of a bundle from the rows of its transfers, and bounds it by brute force.

`messages` are those of exchange rounds: (round, sender, receiver) -> bytes.
"""
import itertools
from fractions import Fraction

import numpy as np

import oracle
import price
from meaning import Complaint, DTYPE_BYTES, count_of, held, state_of_request
from replay import groups_by
from transfers import cut_box, level_between, one_phase


def wave_ps(levels, messages, copy_mb_per_s, protocols, beside=None):
    """What messages take that travel at once; a peer in two rounds counts twice. `beside`: what
    collectives take, their ranks and the levels on which ranks of a group meet; what these exchange
    over them comes behind."""
    if beside:
        taken, ranks, met = beside
        shared = {}
        for (number, sender, receiver), size in messages.items():
            if level_between(levels, sender, receiver) in met:
                shared[number, sender, receiver] = size
        behind = loads_ps(levels, shared, copy_mb_per_s, protocols, ranks)
        return max(wave_ps(levels, messages, copy_mb_per_s, protocols), taken + behind)
    return loads_ps(levels, messages, copy_mb_per_s, protocols)


def loads_ps(levels, messages, copy_mb_per_s, protocols, of_ranks=None):
    """By the loads of all ranks, or of some."""
    loads, peers, used = {}, {}, set()
    arrived = {}
    for (_, sender, receiver), size in messages.items():
        level = level_between(levels, sender, receiver)
        for end in ((sender, "out", level), (receiver, "in", level)):
            if of_ranks is not None and end[0] not in of_ranks:
                continue
            used.add(level)
            if end[1] == "in":
                arrived[receiver] = arrived.get(receiver, 0) + size
            loads[end] = loads.get(end, 0) + size
            peers[end] = peers.get(end, 0) + 1
    if not used:
        return 0
    most = [[max([n for (_, _, at), n in found.items() if at == number], default=0) for number in range(len(levels))]
            for found in (loads, peers)]
    time = levels[max(used)].latency_ns * 1000 + sum(l.per_peer_ns * 1000 * n for l, n in zip(levels, most[1]))
    time = max(time + price.seconds_of(levels, most[0], True, most[1]), price.pairs_time(levels, protocols, *most))
    return price.whole_ps(time + price.copy_time(2 * max(arrived.values(), default=0), copy_mb_per_s))


def compare(where, key, planned, counted, below=0):
    if not counted - below <= planned <= counted:
        raise Complaint(key, f"{where}: {key} {planned}, counted {counted}")


def groups_of_collective(run, part, meshes):
    """The ranks of each of its groups."""
    red = run.plan_reds[part["id"]]
    mesh = meshes[mesh_of_collective(red, part["step"])]
    coordinates = list(itertools.product(*(range(n) for n in mesh.shape)))
    inside = groups_by(coordinates, oracle.parts_of(red["steps"][part["step"]]["mesh_dims"], mesh))
    for copy in range(len(run.tensors[red["id"], 0].worlds)):
        of_copy = mesh.ranks(copy)
        yield from ([of_copy[at] for at in group] for group in inside)


def collectives_of(run, waves, levels, meshes):
    """wave -> what its collectives take one after another, their ranks, and the levels on which two
    ranks of a group meet."""
    beside = {}
    for number, planned in enumerate(run.bundle["rounds"]):
        if planned["op"] == "exchange":
            continue
        taken, ranks, met = beside.get(waves[number], (0, set(), set()))
        for part in planned["parts"]:
            groups = list(groups_of_collective(run, part, meshes))
            ranks = ranks | {rank for group in groups for rank in group}
            met = met | {level_between(levels, one, other) for group in groups for one, other in itertools.combinations(group, 2)}
        beside[waves[number]] = (taken + 1000 * planned["predicted_ns"], ranks, met)
    return beside


def check_rounds(plan, bundle, waves, messages, levels, beside):
    """Bytes and time of every round of exchanges, and the time of all waves. `beside`: their
    collectives."""
    copy, protocols = plan["topology"]["copy_mb_per_s"], plan["topology"].get("protocols", ())
    totals, collectives, time = bundle["totals"], 0, 0
    for number, planned in enumerate(bundle["rounds"]):
        if planned["op"] != "exchange":
            collectives += 1
            continue
        where = f"{bundle['id']} round {number}"
        own = {key: size for key, size in messages.items() if key[0] == number}
        got = {}
        for (_, _, receiver), size in own.items():
            got[receiver] = got.get(receiver, 0) + size
        compare(where, "wire_bytes", planned["wire_bytes"], max(got.values(), default=0))
        compare(where, "predicted_ns", planned["predicted_ns"], price.rounded_ns(wave_ps(levels, own, copy, protocols)))
    for wave in sorted(set(waves)):
        own = {k: s for k, s in messages.items() if waves[k[0]] == wave}
        time += wave_ps(levels, own, copy, protocols, beside.get(wave))
    compare(bundle["id"], "predicted_ns", totals["predicted_ns"], price.rounded_ns(time), collectives)
    for key in ("wire_bytes", "messages"):
        compare(bundle["id"], key, totals[key], sum(r[key] for r in bundle["rounds"]))
    compare(bundle["id"], "rounds", totals["rounds"], len(bundle["rounds"]))
    compare(bundle["id"], "proven_gap_ns", bundle["proven_gap_ns"], totals["predicted_ns"] - totals["lower_bound_ns"])


def waves_of_steps(run, waves, red):
    """Of every tensor of a member: the waves of each of its steps; local steps have those of the
    next one in a round, or of the last one before."""
    for k in range(red["count"]):
        ran = [[] for _ in red["steps"]]
        for number, planned in enumerate(run.bundle["rounds"]):
            for part in planned["parts"]:
                if part["id"] == red["id"] and part.get("from", 0) <= k < part.get("to", red["count"]):
                    ran[part["step"]].append(waves[number])
        talking = [s for s, at in enumerate(ran) if at]
        for s, at in enumerate(ran):
            if not at and talking:
                at += ran[next((t for t in talking if t > s), talking[-1])]
        yield k, ran


def mesh_of_collective(red, step):
    """The name of the mesh of whose ranks it takes groups."""
    before = next((s["mesh"] for s in red["steps"][step::-1] if "mesh" in s), None)
    return before or red.get("src_mesh", red.get("mesh", "mesh"))


def check_memory(run, waves, messages, meshes):
    """Staging of every rank in every wave, boxes between steps with it, and the limits."""
    bundle, staged, always = run.bundle, {}, {}

    def stage(rank, wave, size):
        staged[rank, wave] = staged.get((rank, wave), 0) + size
    for (number, sender, receiver), size in messages.items():
        stage(sender, waves[number], size)
        stage(receiver, waves[number], size)
    for number, planned in enumerate(bundle["rounds"]):
        if planned["op"] != "exchange":
            red = run.plan_reds[planned["parts"][0]["id"]]
            mesh = meshes[mesh_of_collective(red, planned["parts"][0]["step"])]
            for copy in range(len(run.tensors[red["id"], 0].worlds)):
                for rank in mesh.ranks(copy):
                    stage(rank, waves[number], planned["staging_bytes"])
    for red in run.members:
        element = DTYPE_BYTES[red["tensor"]["dtype"]]
        boxes = [run.after((red["id"], 0), step)[1] for step in range(len(red["steps"]))]
        source = run.tensors[red["id"], 0].buffers
        first = {rank: array.size for rank, array in source.items()}
        last = {rank: count_of(box) for rank, box in boxes[-1].items()} if boxes else first
        for side in (first, last):
            for rank, count in side.items():
                always[rank] = always.get(rank, 0) + count * element * red["count"]
        for _, ran in waves_of_steps(run, waves, red):
            for step in range(len(boxes) - 1):
                if not ran[step]:
                    continue
                for rank, box in boxes[step].items():
                    for wave in range(min(ran[step]), max(ran[step + 1]) + 1):
                        stage(rank, wave, count_of(box) * element)
    most = {}
    for (rank, _), size in staged.items():
        most[rank] = max(most.get(rank, 0), size)
    staging = max(most.values(), default=0)
    compare(bundle["id"], "staging_bytes", bundle["totals"]["staging_bytes"], staging)
    peak = max((size + most.get(rank, 0) for rank, size in always.items()), default=0)
    compare(bundle["id"], "peak_bytes", bundle["totals"]["peak_bytes"], peak)
    if 0 < bundle["max_staging_bytes"] < staging:
        raise Complaint("limit", f"{bundle['id']}: {staging} bytes staged, {bundle['max_staging_bytes']} allowed")
    for number, planned in enumerate(bundle["rounds"]):
        if planned["messages"] > bundle["max_messages"]:
            raise Complaint("limit", f"{bundle['id']} round {number}: {planned['messages']} messages")


def ends_of(red, meshes):
    """Of every copy that takes part: (rank -> box held, rank -> box wanted)."""
    source, target = (meshes[red.get(key, red.get("mesh", "mesh"))] for key in ("src_mesh", "dst_mesh"))
    shape = red["tensor"]["shape"]
    states = (state_of_request(red["src"], red.get("src_order", []), source),
              state_of_request(red["dst"], red.get("dst_order", []), target))
    for copy in range(len(source.copies) if source is target else 1):
        at = [held(state, shape, copy) for state in states]
        yield [dict(zip(one.ranks, one.boxes)) for one in at]


def placed(box, shape):
    found = np.zeros(shape, dtype=bool)
    found[tuple(slice(*b) for b in box)] = True
    return found


def must_move(members, meshes):
    """rank -> (bytes that must come in, bytes that only it has and another wants), over all members
    that have nothing pending and an order of their own, element by element."""
    crossing = {}
    for red in members:
        if pending([red]) or red.get("dst_order") == "any":
            continue
        shape, weight = red["tensor"]["shape"], DTYPE_BYTES[red["tensor"]["dtype"]] * red.get("count", 1)
        for have, want in ends_of(red, meshes):
            has = {rank: placed(box, shape) for rank, box in have.items()}
            wants = {rank: placed(box, shape) for rank, box in want.items()}
            holders = sum(a.astype(int) for a in has.values())
            for rank in set(has) | set(wants):
                own, asked = has.get(rank, np.zeros(shape, bool)), wants.get(rank, np.zeros(shape, bool))
                others = [w for r, w in wants.items() if r != rank]
                sole = own & (holders == 1) & (np.any(others, axis=0) if others else False)
                came, went = crossing.get(rank, (0, 0))
                crossing[rank] = (came + weight * int((asked & ~own).sum()), went + weight * int(sole.sum()))
    return crossing


def least_ps(members, meshes, levels):
    """No schedule takes less: the busiest rank over all its links together."""
    speed = sum(level.mb_per_s for level in levels)
    return max((Fraction(max(pair) * 10**6, speed) for pair in must_move(members, meshes).values()), default=Fraction(0))


def placements_of(side):
    return side.values() if isinstance(side, dict) else side


def pending(members):
    return any(p[0] == "P" for red in members for key in ("src", "dst") for p in placements_of(red[key]))


def direct(members, meshes, levels, whole):
    """The messages of one round in which every rank fetches what it lacks from the holders."""
    messages = {}
    for red in members:
        weight = DTYPE_BYTES[red["tensor"]["dtype"]] * red.get("count", 1)
        for have, want in ends_of(red, meshes):
            pieces = one_phase(levels, {r: ((), b) for r, b in have.items()}, {r: ([()], b) for r, b in want.items()}, whole)
            for sender, receiver, _, box in pieces:
                key = (0, sender, receiver)
                messages[key] = messages.get(key, 0) + weight * count_of(box)
    return messages


def relayed(members, meshes, levels):
    """The messages of two rounds: of every box that several ranks want each fetches a part of its
    own; then each sends its part to the others. Rounds of ranks that hold nothing before."""
    fetched, shared = {}, {}
    for red in members:
        weight = DTYPE_BYTES[red["tensor"]["dtype"]] * red.get("count", 1)
        for have, want in ends_of(red, meshes):
            copies = {}
            for rank, box in want.items():
                if rank in have:
                    return None
                copies.setdefault(tuple(map(tuple, box)), []).append(rank)
            parts = {rank: part for box, ranks in copies.items() for rank, part in zip(ranks, cut_box(box, len(ranks))) if part is not None}
            for sender, receiver, _, box in one_phase(levels, {r: ((), b) for r, b in have.items()}, {r: ([()], b) for r, b in parts.items()}, False):
                fetched[0, sender, receiver] = fetched.get((0, sender, receiver), 0) + weight * count_of(box)
            for ranks in copies.values():
                for one, other in itertools.permutations(ranks, 2):
                    if one in parts:
                        shared[1, one, other] = shared.get((1, one, other), 0) + weight * count_of(parts[one])
    return fetched, shared


def relayed_ps(rounds, levels, copy, protocols, pieces):
    """Piece by piece, no part smaller than it is: while one is shared the next is fetched."""
    first, second = ({key: -(-size // pieces) for key, size in messages.items()} for messages in rounds)
    took = [wave_ps(levels, wave, copy, protocols) for wave in (first, {**first, **second}, second)]
    return took[0] + (pieces - 1) * took[1] + took[2]


def busiest(messages):
    """The most messages of a rank, and the most bytes that one sends and receives."""
    count, staged = {}, {}
    for (_, *ends), size in messages.items():
        for rank in ends:
            count[rank] = count.get(rank, 0) + 1
            staged[rank] = staged.get(rank, 0) + size
    return max(count.values(), default=0), max(staged.values(), default=0)


def check_bound(plan, bundle, members, meshes, levels):
    """Lower bound and prediction against what must move at least, and what one round of direct
    transfers takes."""
    totals, name = bundle["totals"], bundle["id"]
    if totals["lower_bound_ns"] > totals["predicted_ns"]:
        raise Complaint("bound", f"{name}: bound {totals['lower_bound_ns']} above {totals['predicted_ns']}")
    least = least_ps(members, meshes, levels)
    if totals["predicted_ns"] * 1000 < least:
        raise Complaint("bound", f"{name}: predicted {totals['predicted_ns']} ns, at least {float(least) / 1000} are needed")
    if pending(members):
        return
    free = any(red.get("dst_order") == "any" for red in members)
    if len(plan["bundles"]) == 1 and len(members) == len(plan["redistributions"]) and not free:
        received = max((came for came, _ in must_move(members, meshes).values()), default=0) * bundle.get("count", 1)
        if plan["totals"]["lower_bound_bytes"] != received:
            raise Complaint("bound", f"the file's lower_bound_bytes {plan['totals']['lower_bound_bytes']}, some rank must receive {received}")
    copy, protocols = plan["topology"]["copy_mb_per_s"], plan["topology"].get("protocols", ())
    if not protocols and not plan["topology"].get("tables") and (totals["lower_bound_ns"] + 1) * 1000 < least:
        raise Complaint("bound", f"{name}: bound {totals['lower_bound_ns']} ns, {float(least) / 1000} must be taken")
    ways = [direct(members, meshes, levels, whole) for whole in (False, True)]
    for messages in ways:
        reached = price.rounded_ns(wave_ps(levels, messages, copy, protocols))
        if totals["lower_bound_ns"] > reached:
            raise Complaint("bound", f"{name}: bound {totals['lower_bound_ns']} ns, one round of direct transfers takes {reached}")
        count, staged = busiest(messages)
        fits = count <= bundle["max_messages"] and (not bundle["max_staging_bytes"] or staged <= bundle["max_staging_bytes"])
        close = totals["predicted_ns"] <= totals["lower_bound_ns"] * 1.01 + 2
        if messages is ways[0] and fits and not close and totals["predicted_ns"] > reached and (
                plan["options"].get("max_memory_bytes", 0) in (0, None)):
            raise Complaint("worse", f"{name}: predicted {totals['predicted_ns']} ns, one round of direct transfers takes {reached}")


def check_relayed(plan, bundle, members, meshes, levels):
    """The lower bound against targets that pass on what they fetched, in one to six pieces."""
    rounds = None if pending(members) else relayed(members, meshes, levels)
    if rounds is None or not all(rounds):
        return False
    copy, protocols = plan["topology"]["copy_mb_per_s"], plan["topology"].get("protocols", ())
    for pieces in range(1, 7):
        reached = price.rounded_ns(relayed_ps(rounds, levels, copy, protocols, pieces))
        if bundle["totals"]["lower_bound_ns"] > reached:
            raise Complaint("bound", f"{bundle['id']}: bound {bundle['totals']['lower_bound_ns']} ns, passed on in {pieces} pieces {reached}")
    return True


def must_fit(bundle, members, meshes, levels):
    """Whether tensors one by one, each in one round, keep to the bundle's limits."""
    for red in members:
        if pending([red]):
            return False
        count, staged = busiest(direct([dict(red, count=1)], meshes, levels, False))
        if count > bundle.get("max_messages", 1024) or 0 < bundle.get("max_staging_bytes", 2 << 30) < staged:
            return False
    return True
