"""Recounts the figures of a plan: bytes received, peaks, totals, bounds and gaps."""
from meaning import Complaint, DTYPE_BYTES, common, count_of


def element_bytes(seen):
    red = seen.red
    return DTYPE_BYTES[red["reduce_dtype"] if seen.reduces and "reduce_dtype" in red
                       else red["tensor"]["dtype"]]


def exchange_loads(pieces):
    """Elements (received, sent) by rank."""
    received, sent = {}, {}
    for sender, receiver, _, box in pieces:
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
        received, _ = exchange_loads(seen.pieces)
        return max(received.values(), default=0) * size
    most = 0
    for members in seen.groups:
        g, unit = len(members), largest_unit(seen, members) * size
        most = max(most, -(-2 * (g - 1) * unit // g) if seen.step["op"] == "all_reduce" else (g - 1) * unit)
    return most


def check_steps(plan, red, steps):
    for number, seen in enumerate(steps):
        where = f"{red['id']} step {number} ({seen.step['op']})"
        if seen.phases == 1:
            counted = wire_bytes(seen)
            if seen.step["wire_bytes"] != counted:
                raise Complaint("wire", f"{where}: wire_bytes {seen.step['wire_bytes']}, counted {counted}")


def check_totals(plan, full):
    pass
