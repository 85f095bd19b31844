"""The time of a step in the cost models of levels and of protocols, in exact fractions of a picosecond."""
from fractions import Fraction
from math import ceil

from meaning import count_of
from transfers import level_between, unit


def peer_time(level, load, peers):
    """What the mean peer's bytes take, of which some are held to what one peer reaches."""
    if not level.peer_mb_per_s or not peers:
        return Fraction(0)
    mean = Fraction(load) / peers
    held = min(mean, level.peer_bytes) if level.peer_bytes else mean
    return held * 10**6 / level.peer_mb_per_s


def seconds_of(levels, loads, exchange, peers=()):
    """max over levels of bytes / bandwidth, in ps; `peers`: of an exchange, by level."""
    most = max([peer_time(*one) for one in zip(levels, loads, peers)], default=Fraction(0))
    for level, load in zip(levels, loads):
        percent = level.exchange_percent if exchange else 100
        most = max(most, Fraction(load) * 10**8 / (level.mb_per_s * percent))
        if exchange and level.near_bytes:
            most = max(most, (Fraction(load) - level.near_bytes) * 10**6 / level.far_mb_per_s)
    return most


def copy_time(copied, copy_mb_per_s):
    return Fraction(copied) * 10**6 / copy_mb_per_s if copy_mb_per_s else Fraction(0)


def pairs_time(levels, protocols, loads, peers):
    """The least that protocols say of an exchange; 0 where none does."""
    times = []
    for protocol in protocols:
        if "exchange" not in protocol.get("ops", ()) or sum(loads) > protocol.get("most_bytes", sum(loads)):
            continue
        held = [Fraction(b) * 10**6 / shared(l.mb_per_s, s) for l, b, s in zip(levels, loads, protocol["share"])]
        if near := protocol.get("near_bytes"):
            held += [(Fraction(b) - near) * 10**6 / shared(l.mb_per_s, s)
                     for l, b, s in zip(levels, loads, protocol["far_share"])]
        times.append(1000 * (protocol["base_ns"] + sum(n * ns for n, ns in zip(peers, protocol["hop_ns"]))) + max(held))
    return min(times, default=Fraction(0))


def most_received(pieces, size):
    arrived = {}
    for _, receiver, elements in pieces:
        arrived[receiver] = arrived.get(receiver, 0) + elements * size
    return max(arrived.values(), default=0)


def traffic_of(levels, pieces, size):
    """The most bytes that a rank gets or sends over each level, and the most peers it has there."""
    got, sent, peers_in, peers_out = {}, {}, {}, {}
    for sender, receiver, elements in pieces:
        level = level_between(levels, sender, receiver)
        amount = elements * size
        got[receiver, level] = got.get((receiver, level), 0) + amount
        sent[sender, level] = sent.get((sender, level), 0) + amount
        peers_in.setdefault((receiver, level), set()).add(sender)
        peers_out.setdefault((sender, level), set()).add(receiver)
    loads, peers = [], []
    for number in range(len(levels)):
        loads.append(max([v for (_, n), v in [*got.items(), *sent.items()] if n == number], default=0))
        peers.append(max([len(v) for (_, n), v in [*peers_in.items(), *peers_out.items()] if n == number],
                         default=0))
    return loads, peers


def time_of(levels, loads, peers, protocols):
    """Latency, peers and bytes of what travels at once."""
    if not any(peers):
        return Fraction(0)
    outermost = max(level for level, n in enumerate(peers) if n)
    time = 1000 * (levels[outermost].latency_ns + sum(level.per_peer_ns * n for level, n in zip(levels, peers)))
    return max(time + seconds_of(levels, loads, True, peers), pairs_time(levels, protocols, loads, peers))


def traffic_time(levels, pieces, size, copy_mb_per_s, protocols=()):
    """Pieces that travel at once, (sender, receiver, bytes or box): latency, peers, bytes, copies."""
    return (time_of(levels, *traffic_of(levels, pieces, size), protocols)
            + copy_time(2 * most_received(pieces, size), copy_mb_per_s))


def fullest_stage(levels, moved, stages, number, size):
    """By level the most bytes and the most peers of so many stages: each as if all moved as it does, and
    in each what has no stage."""
    traffic = [traffic_of(levels, [(a, b, elements * (1 if stage is None else number))
                                   for (a, b, elements), stage in zip(moved, stages) if stage in (None, now)], size)
               for now in range(number)]
    return [[max(of_level) for of_level in zip(*figures)] for figures in zip(*traffic)]


def pipelined_ps(levels, phases, size, copy_mb_per_s, chunks, protocols=(), stages=None, number=1):
    """Two phases in chunks: while one chunk is shared, the next is fetched; copies come on top. `stages`:
    of each piece of each phase, of so many."""
    steps, copies = [], 0
    for moved, of in zip(phases, stages or [[None] * len(moved) for moved in phases]):
        traffic = fullest_stage(levels, moved, of, number, Fraction(size, chunks))
        steps.append(whole_ps(time_of(levels, *traffic, protocols)))
        copies += whole_ps(copy_time(2 * most_received(moved, size), copy_mb_per_s))
    fetch, share = steps
    rounds = [max(fetch if i < chunks else 0, share if i > 0 else 0) for i in range(chunks + 1)]
    return sum(rounds) + copies


def members_by_level(levels, members):
    """m_l: members of the group in one unit of each level; None where units differ."""
    found = []
    for level in range(len(levels)):
        counts = {}
        for rank in members:
            counts[unit(levels, level, rank)] = counts.get(unit(levels, level, rank), 0) + 1
        if len(set(counts.values())) > 1:
            return None
        found.append(next(iter(counts.values())))
    return found


def shared(mb_per_s, share):
    return max(1, mb_per_s * share // 10_000)


RINGS = ("all_gather", "reduce_scatter", "all_reduce")


def protocol_ways(levels, protocol, op, m, whole):
    """Each way of a protocol: its ns, and bytes and MB/s by level. `m`: members by level."""
    if whole > protocol.get("most_bytes", whole) or op not in protocol.get("ops", RINGS):
        return
    inner, g = [1] + m[:-1], m[-1]
    rounds = 2 if op == "all_reduce" else 1
    hops = [g // a - g // b for a, b in zip(inner, m)]
    loads = [rounds * whole * (Fraction(1, a) - Fraction(1, b)) for a, b in zip(inner, m)]
    if op == "all_to_all":
        loads = [whole / g * (b - a) for a, b in zip(inner, m)]
    speeds = [shared(l.mb_per_s, s) for l, s in zip(levels, protocol["share"])]
    if near := protocol.get("near_bytes"):
        # What is far goes beside all of it.
        loads = loads + [max(Fraction(0), load - near) for load in loads]
        speeds += [shared(l.mb_per_s, s) for l, s in zip(levels, protocol["far_share"])]
    yield (protocol["base_ns"] + rounds * sum(n * ns for n, ns in zip(hops, protocol["hop_ns"])),
           loads, speeds)
    if op != "all_reduce":
        return
    twice = [2 * whole / a if a != b else Fraction(0) for a, b in zip(inner, m)]
    depth = [(b // a - 1).bit_length() for a, b in zip(inner, m)]
    if protocol.get("trees"):
        steps = [2 * (m[0] - 1) * protocol["hop_ns"][0]]
        steps += [2 * n * ns for n, ns in zip(depth[1:], protocol["tree_ns"][1:])]
        yield (protocol["base_ns"] + sum(steps), twice,
               [shared(l.mb_per_s, s) for l, s in zip(levels, protocol["tree_share"])])
    switched = [i for i, level in enumerate(levels) if level.switch_mb_per_s and m[i] > 1]
    if protocol.get("switch_ns") and switched:
        end = switched[-1] + 1
        speeds = [l.switch_mb_per_s or l.mb_per_s for l in levels[:end]]
        speeds += [shared(l.mb_per_s, s) for l, s in zip(levels[end:], protocol["tree_share"][end:])]
        steps = [2 * n * ns for n, ns in zip(depth[end:], protocol["tree_ns"][end:])]
        yield protocol["switch_ns"] + sum(steps), twice, speeds


def protocols_time(levels, protocols, op, m, whole):
    return min(Fraction(ns * 1000) + max(Fraction(b) * 10**6 / s for b, s in zip(loads, speeds))
               for protocol in protocols
               for ns, loads, speeds in protocol_ways(levels, protocol, op, m, Fraction(whole)))


def group_time(levels, op, members, piece_bytes, copied, copy_mb_per_s, protocols=()):
    """A collective of one group: `piece_bytes` is the padded box, chunk or pair's piece."""
    g = len(members)
    if g == 1:
        return Fraction(0)
    m = members_by_level(levels, members)
    if m is None:
        times = 2 if op == "all_reduce" else 1
        whole_bytes = piece_bytes if op == "all_reduce" else piece_bytes * g
        if op == "all_reduce":
            piece_bytes = -(-piece_bytes // g)
        pairs = [(a, b, 1) for a in members for b in members if a != b]
        once = traffic_time(levels, pairs, piece_bytes, 0, protocols) + copy_time(copied, copy_mb_per_s)
        padded = Fraction(times * ceil(once))
        if op not in RINGS or not any(op in protocol.get("ops", RINGS) for protocol in protocols):
            return padded
        # Or by protocols, as if no two were inside a unit of the outermost level that the group needs.
        used = max(i for i, level in enumerate(levels) if i == 0 or any(
            level_between(levels, a, b) >= i for a, b, _ in pairs))
        apart = [1 if i < used else g for i in range(len(levels))]
        return min(padded, protocols_time(levels, protocols, op, apart, whole_bytes)
                   + copy_time(copied, copy_mb_per_s))
    held = Fraction(0)  # an all_to_all takes no less than by levels
    if any(op in protocol.get("ops", RINGS) for protocol in protocols):
        whole = piece_bytes if op == "all_reduce" else piece_bytes * g
        held = protocols_time(levels, protocols, op, m, whole) + copy_time(copied, copy_mb_per_s)
        if op != "all_to_all":
            return held
    inner = [1] + m[:-1]
    time, loads = Fraction(0), []
    for level, a, b in zip(levels, inner, m):
        if a == b:
            loads.append(0)
            continue
        latency = level.latency_ns * 1000
        if op == "all_to_all":
            loads.append(piece_bytes * (b - a))
            time += level.per_peer_ns * 1000 * (b - a)
        else:
            total = Fraction(piece_bytes) if op == "all_reduce" else piece_bytes * g
            loads.append(total * (Fraction(1, a) - Fraction(1, b)) * (2 if op == "all_reduce" else 1))
    peers = [b - a for a, b in zip(inner, m)] if op == "all_to_all" else ()
    whole = time + latency + seconds_of(levels, loads, op == "all_to_all", peers)
    if op == "all_to_all":  # no less than an exchange of the same
        whole = max(whole, pairs_time(levels, protocols, loads, peers))
    return max(held, whole + copy_time(copied, copy_mb_per_s))


def whole_ps(time):
    return ceil(time)


def rounded_ns(picoseconds):
    return -(-picoseconds // 1000)
