"""Recounts the figures of a plan: bytes received, peaks, totals, bounds and gaps."""
import price
from meaning import Complaint, DTYPE_BYTES, common, count_of, fused


def element_bytes(seen):
    red = seen.red
    return DTYPE_BYTES[red["reduce_dtype"] if seen.reduces and "reduce_dtype" in red
                       else red["tensor"]["dtype"]]


def exchange_loads(seen):
    """Elements (received, sent) by rank, over every copy of the mesh: units may cut them apart."""
    received, sent = {}, {}
    for phases in seen.all_pieces:
        for sender, receiver, _, box in (piece for pieces in phases for piece in pieces):
            received[receiver] = received.get(receiver, 0) + count_of(box)
            sent[sender] = sent.get(sender, 0) + count_of(box)
    return received, sent


def largest_unit(seen, members):
    """Elements of the padded unit of a collective in one group: a box, a chunk or a pair's piece."""
    op = seen.step["op"]
    if op in ("all_gather", "all_reduce"):
        return max(count_of(seen.before.boxes[m]) for m in members)
    if op == "reduce_scatter":
        return max(count_of(seen.after.boxes[m]) for m in members)
    pairs = [common(seen.before.boxes[a], seen.after.boxes[b]) for a in members for b in members]
    return max((count_of(p) for p in pairs if p is not None), default=0)


def wire_bytes(seen):
    """Bytes that one rank receives, the most over ranks and groups, padding included."""
    size = element_bytes(seen)
    if seen.step["op"] == "exchange":
        received, _ = exchange_loads(seen)
        return max(received.values(), default=0) * size
    most = 0
    for members in seen.groups:
        g, unit = len(members), largest_unit(seen, members) * size
        most = max(most, -(-2 * (g - 1) * unit // g) if seen.step["op"] == "all_reduce" else (g - 1) * unit)
    return most


def copied_bytes(seen, members):
    """Bytes that a rank packs, unpacks and reduces in a collective of one group."""
    g, size = len(members), element_bytes(seen)
    unit, buffers = largest_unit(seen, members) * size, staging(seen, members) * size
    if seen.step["op"] == "all_gather":
        return 2 * buffers
    if seen.step["op"] == "reduce_scatter":
        return 2 * buffers + (g - 1) * unit
    if seen.step["op"] == "all_reduce":
        return -(-2 * (g - 1) * unit // g) // 2
    return buffers


def step_ps(seen, copy_mb_per_s, protocols):
    """The step's time in whole picoseconds by the oracle's own listing."""
    size, levels, times = element_bytes(seen), seen.levels, [0]
    if seen.step["op"] == "exchange":
        phases = [[(a, b, count_of(box)) for pieces in same_phase for a, b, _, box in pieces]
                  for same_phase in zip(*seen.all_pieces)]
        chunks = seen.step.get("chunks", 1)
        if chunks == 1:
            # Phases follow one another as steps do: each rounds up.
            times = [sum(price.whole_ps(price.traffic_time(levels, moved, size, copy_mb_per_s, protocols))
                         for moved in phases)]
        else:
            times = [price.pipelined_ps(levels, phases, size, copy_mb_per_s, chunks, protocols,
                                        seen.stages, seen.number_of_stages)]
    unit = max((largest_unit(seen, members) for members in seen.groups), default=0) * size
    copied = max((copied_bytes(seen, members) for members in seen.groups), default=0)
    for members in seen.groups:
        for ranks in seen.copies:
            times.append(price.group_time(levels, seen.step["op"], [ranks[m] for m in members], unit,
                                          copied, copy_mb_per_s, protocols))
    return price.whole_ps(max(times))


def in_one_piece(box, frame):
    """Whether the box lies in one stretch of the row-major memory of `frame`."""
    open_dims = [d for d, (low, high) in enumerate(box) if high - low > 1]
    first = open_dims[0] if open_dims else len(box)
    return all(box[d] == frame[d] for d in range(first + 1, len(box)))


def uneven(seen, boxes):
    """Whether ranks differ in how much of a tensor dim they hold that the step gathers or cuts."""
    old, new = seen.before.state.cuts, seen.after.state.cuts
    dims = [d for d in range(len(seen.after.shape)) if fused(old.get(d, [])) != fused(new.get(d, []))]
    return any(len({box[d][1] - box[d][0] for box in boxes}) > 1 for d in dims)


def start_in(box, frame):
    """Elements before the box's first one in the row-major memory of `frame`."""
    at = 0
    for (low, _), (first, last) in zip(box, frame):
        at = at * (last - first) + low - first
    return at


def packs(frames, members, boxes, unit, orders=()):
    """Whether the padded chunks are not one stretch of the memory of `frames`; `orders`: of members,
    in which the chunks must lie there, else they may in any."""
    for r in members:
        if not all(in_one_piece(boxes[m], frames[r]) for m in members):
            return True
        starts = sorted(start_in(boxes[m], frames[r]) for m in members)
        if any(b - a != unit for a, b in zip(starts, starts[1:])):
            return True
        if any([start_in(boxes[m], frames[r]) for m in order] != starts for order in orders):
            return True
    return False


def staging(seen, members):
    """Elements of the padded buffers of one group of a collective."""
    op, before, after = seen.step["op"], seen.before.boxes, seen.after.boxes
    unit, g = largest_unit(seen, members), len(members)
    if g == 1 or op == "all_reduce":
        return 0
    if op == "all_gather":
        return g * unit if uneven(seen, before) or packs(after, members, before, unit) else 0
    if op == "reduce_scatter":
        # A communicator numbers its members by ascending rank, in every copy of the mesh.
        by_rank = [sorted(members, key=lambda m: ranks[m]) for ranks in seen.copies]
        return g * unit if uneven(seen, after) or packs(before, members, after, unit, by_rank) else 0
    return 2 * g * unit


def peak_bytes(seen):
    """The largest box before, the largest after and the largest buffers beside them. An exchange
    casts what it sends; the other ops cast the whole boxes."""
    size = element_bytes(seen)
    boxes = sum(max(count_of(b) for b in held.boxes) for held in (seen.before, seen.after))
    if seen.step["op"] == "exchange":
        received, sent = exchange_loads(seen)
        buffers = max(received.values(), default=0) + max(sent.values(), default=0)
        return boxes * DTYPE_BYTES[seen.red["tensor"]["dtype"]] + buffers * size
    return (boxes + max((staging(seen, members) for members in seen.groups), default=0)) * size


def check_steps(plan, red, steps):
    """Complaints about the figures of a redistribution's steps; then its totals are counted."""
    copy_mb_per_s = plan["topology"]["copy_mb_per_s"]
    priced = not plan["topology"].get("tables")
    protocols = plan["topology"].get("protocols", ())
    for number, seen in enumerate(steps):
        where = f"{red['id']} step {number} ({seen.step['op']})"
        counted = wire_bytes(seen)
        if seen.step["wire_bytes"] != counted:
            raise Complaint("wire", f"{where}: wire_bytes {seen.step['wire_bytes']}, counted {counted}")
        counted = peak_bytes(seen)
        if seen.step["peak_bytes"] != counted:
            raise Complaint("peak", f"{where}: peak_bytes {seen.step['peak_bytes']}, counted {counted}")
        if priced:
            seen.picoseconds = step_ps(seen, copy_mb_per_s, protocols)
            counted = price.rounded_ns(seen.picoseconds)
            if seen.step["predicted_ns"] != counted:
                raise Complaint("price", f"{where}: predicted_ns {seen.step['predicted_ns']}, counted {counted}")
    counted = counted_totals(red, steps, priced)
    check_redistribution_totals(red, counted)
    return dict(counted, lower_bound_bytes=red["totals"]["lower_bound_bytes"],
                lower_bound_ns=red["totals"]["lower_bound_ns"])


def counted_totals(red, steps, priced):
    """The totals that a redistribution's steps come to; picoseconds where every step has its own."""
    talking = [s for s in steps if s.step["group"]]
    return {
        "collectives": sum(s.phases for s in talking),
        "wire_bytes": sum(s.step["wire_bytes"] for s in steps),
        "peak_bytes": max((s.step["peak_bytes"] for s in steps), default=0),
        "picoseconds": sum(s.picoseconds for s in steps) if priced else None,
    }


def check_bounds(where, totals):
    for bound, figure in (("lower_bound_bytes", "wire_bytes"), ("lower_bound_ns", "predicted_ns")):
        if totals[bound] > totals[figure]:
            raise Complaint("bound", f"{where}: {bound} {totals[bound]} above {figure} {totals[figure]}")


def check_redistribution_totals(red, counted):
    where, totals = red["id"], red["totals"]
    for key in ("collectives", "wire_bytes", "peak_bytes"):
        if totals[key] != counted[key]:
            raise Complaint("totals", f"{where}: {key} {totals[key]}, its steps make {counted[key]}")
    if counted["picoseconds"] is not None:
        made = price.rounded_ns(counted["picoseconds"])
        if totals["predicted_ns"] != made:
            raise Complaint("totals", f"{where}: predicted_ns {totals['predicted_ns']}, its steps make {made}")
    check_bounds(where, totals)
    gap, room = red["proven_gap_ns"], totals["predicted_ns"] - totals["lower_bound_ns"]
    if not 0 <= gap <= room:
        raise Complaint("gap", f"{where}: proven_gap_ns {gap}, predicted less bound is {room}")


def check_file_totals(plan, counts, counted):
    """The file's totals: weighted by count, the largest peak, picoseconds rounded once."""
    totals = plan["totals"]
    for key in ("collectives", "wire_bytes"):
        made = sum(n * c[key] for n, c in zip(counts, counted))
        if totals[key] != made:
            raise Complaint("totals", f"file: {key} {totals[key]}, its redistributions make {made}")
    if totals["peak_bytes"] != max(c["peak_bytes"] for c in counted):
        raise Complaint("totals", f"file: peak_bytes {totals['peak_bytes']} is not the largest")
    if all(c["picoseconds"] is not None for c in counted):
        made = price.rounded_ns(sum(n * c["picoseconds"] for n, c in zip(counts, counted)))
        if totals["predicted_ns"] != made:
            raise Complaint("totals", f"file: predicted_ns {totals['predicted_ns']}, counted {made}")
    bytes_made = sum(n * c["lower_bound_bytes"] for n, c in zip(counts, counted))
    if totals["lower_bound_bytes"] != bytes_made:
        raise Complaint("totals", f"file: lower_bound_bytes {totals['lower_bound_bytes']}, not {bytes_made}")
    most = sum(n * c["lower_bound_ns"] for n, c in zip(counts, counted))
    least = most - sum(n for n, c in zip(counts, counted) if c["lower_bound_ns"])
    if not least <= totals["lower_bound_ns"] <= most:
        raise Complaint("totals", f"file: lower_bound_ns {totals['lower_bound_ns']}, not {least} to {most}")
    check_bounds("file", totals)
