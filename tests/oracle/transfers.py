"""Who sends which box to whom in an exchange: the rules, read from the project's pages.

Ranks are global ids. `have` maps a rank to what it holds: (contribution, box); a contribution tells
ranks apart that hold different summands (None where a rank holds nothing). `want` maps a rank to
(contributions it needs, box). A piece is (sender, receiver, contribution, box).
"""
from collections import Counter
from dataclasses import dataclass
from itertools import cycle

from meaning import common, count_of


@dataclass(frozen=True)
class Level:
    """A level of links: ranks r and s are in one unit where r // ranks and s // ranks agree."""
    ranks: int
    mb_per_s: int
    latency_ns: int
    per_peer_ns: int = 0
    exchange_percent: int = 100
    peer_mb_per_s: int = 0  # what one peer of an exchange reaches; 0: no limit
    peer_bytes: int = 0  # so many bytes to a peer are held to that; 0: all
    switch_mb_per_s: int = 0
    near_bytes: int = 0  # of an exchange; what is beyond is held to far_mb_per_s too; 0: all are near
    far_mb_per_s: int = 0


def unit(levels, level, rank):
    return 0 if level == len(levels) - 1 else rank // levels[level].ranks


def level_between(levels, a, b):
    """The innermost level that has both ranks in one unit."""
    for level in range(len(levels)):
        if unit(levels, level, a) == unit(levels, level, b):
            return level
    return len(levels) - 1


def nearest(levels, holders, rank):
    """The holders, in rank order, on the innermost level where the rank has one."""
    at = [level_between(levels, h, rank) for h in holders]
    return [h for h, level in zip(holders, at) if level == min(at)]


def near_equal(length, parts, part):
    """Where the part starts and ends; the first ones are longer by one."""
    each, longer = divmod(length, parts)
    return part * each + min(part, longer), (part + 1) * each + min(part + 1, longer)


def cut_box(box, parts):
    """The box in near-equal parts along its longest dim, ties to the lowest."""
    if parts == 1 or not box:  # a scalar is one slice
        return [box] + [None] * (parts - 1)
    lengths = [high - low for low, high in box]
    dim = lengths.index(max(lengths))
    low = box[dim][0]
    found = []
    for part in range(parts):
        first, last = near_equal(lengths[dim], parts, part)
        found.append(box[:dim] + ((low + first, low + last),) + box[dim + 1:] if first < last else None)
    return found


def holders_of(have):
    """Source shards: (contribution, box) -> ranks that hold it, ascending; empty boxes left out."""
    shards = {}
    for rank in sorted(have):
        if have[rank] is not None and count_of(have[rank][1]):
            shards.setdefault(have[rank], []).append(rank)
    return shards


def missing(have, want):
    """[(rank, shard, piece)]: what each rank wants of shards that it does not hold itself."""
    shards = holders_of(have)
    found = []
    for rank in sorted(want):
        contributions, box = want[rank]
        if not count_of(box):
            continue
        for shard in shards:
            if shard[0] in contributions and have.get(rank) != shard:
                piece = common(shard[1], box)
                if piece is not None:
                    found.append((rank, shard, piece))
    return found, shards


def far_holders(levels, holders, near, rank):
    """The holders in the innermost outer unit of the rank that has more than its own, without those; none
    where the nearest are not in its innermost unit."""
    if level_between(levels, near[0], rank) > 0:
        return []
    for level in range(1, len(levels)):
        wide = [h for h in holders if unit(levels, level, h) == unit(levels, level, rank)]
        if len(wide) > len(near):
            return [h for h in wide if h not in near]
    return []


def split_last(box, slices):
    """The box without its last slices along its longest dim (ties: the lowest), and these."""
    lengths = [high - low for low, high in box]
    dim = lengths.index(max(lengths))
    low, high = box[dim]
    return (box[:dim] + ((low, high - slices),) + box[dim + 1:], box[:dim] + ((high - slices, high),) + box[dim + 1:],
            dim)


def cut_along(box, dim, parts):
    """Near-equal parts that are not empty."""
    low, high = box[dim]
    ends = [near_equal(high - low, parts, part) for part in range(parts)]
    return [box[:dim] + ((low + first, low + last),) + box[dim + 1:] for first, last in ends if first < last]


def far_shared(levels, have, want, far):
    """One phase with a far share: of each missing piece that has holders in the rank's host and others
    outside so many 64ths come from two of those, by turns."""
    pieces, turns = [], {}
    lacking, shards = missing(have, want)
    for rank, shard, piece in lacking:
        near = nearest(levels, shards[shard], rank)
        away_from = far_holders(levels, shards[shard], near, rank)
        turn = turns.get(shard, 0)
        turns[shard] = turn + 1
        slices = max((high - low for low, high in piece), default=1) * far // 64 if away_from else 0
        if not piece:
            pieces.append((near[0], rank, shard[0], piece))
            continue
        at_hand, away, dim = split_last(piece, slices)
        asked = [away_from[(2 * turn + i) % len(away_from)] for i in range(min(2, len(away_from)))] if slices else []
        pieces += [(sender, rank, shard[0], part) for sender, part in zip(near, cut_along(at_hand, dim, len(near)))]
        pieces += [(sender, rank, shard[0], part) for sender, part in zip(asked, cut_along(away, dim, max(1, len(asked))))]
    return pieces


def one_phase(levels, have, want, whole, far=0):
    """Every missing piece comes cut from its nearest holders, or whole from one of them: the k-th
    rank that misses part of a shard asks its (k mod h)-th nearest holder."""
    if far:
        return far_shared(levels, have, want, far)
    pieces, asked = [], {}
    lacking, shards = missing(have, want)
    for rank, shard, piece in lacking:
        near = nearest(levels, shards[shard], rank)
        if whole:
            turn = asked.get(shard, 0)
            asked[shard] = turn + 1
            pieces.append((near[turn % len(near)], rank, shard[0], piece))
            continue
        for sender, part in zip(near, cut_box(piece, len(near))):
            if part is not None:
                pieces.append((sender, rank, shard[0], part))
    return pieces


def units_of(levels, members):
    """The members of each innermost unit, in order of their first rank."""
    units = {}
    for rank in sorted(members):
        units.setdefault(unit(levels, 0, rank), []).append(rank)
    return list(units.values())


def parts_for(missing_shards, members):
    """Into how many parts every missing box is cut, so that members share within one sixteenth."""
    c = 1
    while 16 * members * -(-missing_shards * c // members) > 17 * missing_shards * c:
        c += 1
    return c


def shared_by_all(members, lacks):
    """[(shard, box, w, member)]: the elements of all boxes in a row in even shares, whose ends move down
    to slices of the box along its longest dim, and to its ends where less than a 256th of a share is
    cut off; `members` names one as often as there are laps."""
    def without_slivers(slices, per_slice, at):
        for end in (0, slices):
            if 0 < at < slices and abs(at - end) * per_slice * len(members) * 256 < everything:
                return end
        return at

    everything, begin = sum(count_of(box) for _, box, _ in lacks), 0
    for shard, box, w in lacks:
        lengths = [high - low for low, high in box]
        dim = lengths.index(max(lengths)) if box else None
        slices = lengths[dim] if box else 1
        per_slice = count_of(box) // slices
        starts = [without_slivers(slices, per_slice, min(max((j * everything // len(members) - begin) // per_slice, 0), slices))
                  for j in range(len(members))] + [slices]
        for member, first, last in zip(members, starts, starts[1:]):
            if first < last:
                low = box[dim][0] if box else 0
                part = box[:dim] + ((low + first, low + last),) + box[dim + 1:] if box else box
                yield shard, part, w, member
        begin += count_of(box)


def fetched_by_units(levels, have, want, members, shards, by_all, laps):
    """The first phase for one class: [(sender, fetcher, contribution, box, w)]. The members of a unit
    that want one box w share what of it the unit misses, so that each part comes in once; or all
    members that are on the target's side share all that the unit misses. In one lap or several."""
    fetched, asked = [], {}
    for unit_members in units_of(levels, members):
        here = unit(levels, 0, unit_members[0])
        foreign = [s for s in shards if all(unit(levels, 0, h) != here for h in shards[s])]
        wanted = {}
        for rank in unit_members:
            if count_of(want[rank][1]):
                wanted.setdefault(want[rank][1], []).append(rank)
        if by_all:
            lacks = [(s, common(s[1], w), w) for w in wanted for s in foreign if common(s[1], w) is not None]
            for shard, box, w, taker in shared_by_all(unit_members * laps, lacks):
                near = nearest(levels, shards[shard], taker)
                loads = asked.setdefault((shard, level_between(levels, near[0], taker), tuple(near)), [0] * len(near))
                least = loads.index(min(loads))
                loads[least] += count_of(box)
                fetched.append((near[least], taker, shard[0], box, w))
            continue
        for w, takers in wanted.items():
            lacks = [(s, common(s[1], w)) for s in foreign if common(s[1], w) is not None]
            if not lacks:
                continue
            k, m = len(takers), len(lacks)
            c = parts_for(m, k) * laps
            line = [(s, cut_box(box, c)[part]) for part in range(c) for s, box in lacks]
            for j, taker in enumerate(takers):
                for shard, box in line[j * m * c // k:(j + 1) * m * c // k]:
                    if box is None:
                        continue
                    near = nearest(levels, shards[shard], taker)
                    key = (shard, c, level_between(levels, near[0], taker), tuple(near))
                    turn = asked.get(key, 0)
                    asked[key] = turn + 1
                    fetched.append((near[turn % len(near)], taker, shard[0], box, w))
    return fetched


def fetched_and_shared(levels, have, want, by_all, laps):
    """Each innermost unit fetches what it misses once, by all members or those that want it, in so many
    laps; then shares it. First the parts, (sender, fetcher, contribution, box, w); then (piece, number of
    the part that it passes on), None where the sender held it before."""
    parts, shares = [], []
    classes = {}
    for rank in sorted(want):
        classes.setdefault(want[rank][0][0], []).append(rank)
    every = holders_of(have)
    for contribution, members in classes.items():
        shards = {s: ranks for s, ranks in every.items() if s[0] == contribution}
        fetched = fetched_by_units(levels, have, want, members, shards, by_all, laps)
        for unit_members in units_of(levels, members):
            number = unit(levels, 0, unit_members[0])
            here = {r: held for r, held in have.items()
                    if unit(levels, 0, r) == number and held[0] == contribution}
            shares += [(piece, None) for piece in one_phase(levels, here, {r: want[r] for r in unit_members}, False)]
            for part, (_, taker, key, box, w) in enumerate(fetched, len(parts)):
                if taker in unit_members:
                    shares += [((taker, r, key, box), part) for r in unit_members
                               if r != taker and want[r][1] == w]
        parts += fetched
    return parts, shares


def two_phases(levels, have, want, by_all=False, laps=1):
    """(first, second) pieces."""
    parts, shares = fetched_and_shared(levels, have, want, by_all, laps)
    return [part[:4] for part in parts], [piece for piece, _ in shares]


def most_parts(parts):
    """The most that one rank serves, or that one rank fetches."""
    counts = Counter((side, part[side]) for part in parts for side in (0, 1))
    return max(counts.values(), default=0)


def make_room(parts, taken, holder, a, b):
    """The holder's part in shift a goes to b, that of its fetcher in b to a, that of the latter's holder in
    a to b, and so on. `taken`: (side, rank) -> its part in each shift."""
    walk, number = [], taken[0, holder][a]
    while number is not None:
        walk.append(number)
        side = len(walk) % 2
        number = taken[side, parts[number][side]][b if side else a]
    for arrive, ends in ((False, (a, b)), (True, (b, a))):  # all leave before any arrives
        for number, shift in zip(walk, cycle(ends)):
            for side in (0, 1):
                taken[side, parts[number][side]][shift] = number if arrive else None


def shifts_of(parts):
    """The shift of each part, (sender, fetcher, ...): in none a rank fetches two or serves two, and they are
    no more than the parts that some rank has."""
    shifts = most_parts(parts)
    taken = {(side, part[side]): [None] * shifts for part in parts for side in (0, 1)}
    for number, (holder, fetcher) in enumerate(part[:2] for part in parts):
        a = taken[1, fetcher].index(None)
        if taken[0, holder][a] is not None:
            make_room(parts, taken, holder, a, taken[0, holder].index(None))
        taken[0, holder][a] = taken[1, fetcher][a] = number
    return [taken[1, part[1]].index(number) for number, part in enumerate(parts)]


def stages_of(parts, at_once):
    """The stage of each part: so many shifts in a row are one."""
    shifts = shifts_of(parts)
    d = most_parts(parts)
    number = -(-d // at_once)
    return [shift * number // d for shift in shifts]


def two_phases_in_stages(levels, have, want, at_once, by_all=False, laps=1):
    """The number of stages, and (first, second) of (piece, stage): what is passed on has that of its part,
    what a member held before has none; nor has any where `at_once` is 0."""
    parts, shares = fetched_and_shared(levels, have, want, by_all, laps)
    stages = stages_of(parts, at_once) if at_once else [None] * len(parts)
    first = [(part[:4], stage) for part, stage in zip(parts, stages)]
    second = [(piece, None if part is None else stages[part]) for piece, part in shares]
    return max(stages, default=0) + 1 if at_once else 1, (first, second)


def chunks_of(box, chunks, number=1, stage=None):
    """[(chunk, box)]: the box as it goes in so many chunks of so many stages, empty ones left out."""
    each = chunks if stage is None else chunks // number
    return [(i + each * (stage or 0), cut) for i, cut in enumerate(cut_box(box, each)) if cut is not None]
