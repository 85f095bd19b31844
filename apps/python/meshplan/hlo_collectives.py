"""The collectives of a compiled XLA module, read from its HLO text.

    text = jitted.lower(*arguments).compile().as_text()
    collectives(text, devices=8)  ->  [(op, bytes that one rank receives, times), ...]

The text is read as HLO, not searched: shapes are nested tuples with layouts and index comments,
instructions may span lines, and what runs is followed from the entry through calls, counted loops,
branches and asynchronous computations. Bytes follow meshplan's formulas; a combined collective is
one of all its tensors. Needs nothing but Python.
"""

import math
import re

BITS = {
    "pred": 8,
    "s2": 2,
    "u2": 2,
    "s4": 4,
    "u4": 4,
    "s8": 8,
    "u8": 8,
    "s16": 16,
    "u16": 16,
    "s32": 32,
    "u32": 32,
    "s64": 64,
    "u64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "f4e2m1fn": 4,
    "token": 0,
    "opaque": 0,
}
OPS = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)
CLOSERS = {"(": ")", "[": "]", "{": "}"}


class BadHlo(Exception):
    """What is no HLO text; the message shows where."""


# ---------------------------------------------------------------- text


def without_comments(text):
    """Comments outside of strings away: /*index=5*/ in shapes, // to the end of a line."""
    return re.sub(
        r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*',
        lambda m: m.group(1) or "",
        text,
        flags=re.DOTALL,
    )


def end_of_group(text, at):
    """Behind the bracket that closes the one at `at`; strings inside are skipped."""
    open_ones = []
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{}]').finditer(text, at):
        word = match.group()
        if word in CLOSERS:
            open_ones.append(CLOSERS[word])
        elif word[0] != '"':
            if not open_ones or open_ones.pop() != word:
                raise BadHlo(
                    f"brackets do not match at {text[max(0, match.start() - 40):match.end()]!r}"
                )
            if not open_ones:
                return match.end()
    raise BadHlo(f"a bracket is not closed: {text[at:at + 60]!r}")


def split_list(text):
    """The parts of a list between its top-level commas."""
    parts, begin, at = [], 0, 0
    while at < len(text):
        if text[at] in CLOSERS:
            at = end_of_group(text, at)
        elif text[at] == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end()
        else:
            if text[at] == ",":
                parts.append(text[begin:at].strip())
                begin = at + 1
            at += 1
    return [*parts, text[begin:].strip()] if text.strip() else []


# ---------------------------------------------------------------- shapes and instructions


def shape_at(text, at):
    """The shape that begins at `at` and where it ends: ("f32", (8, 4)), or a list of shapes for a
    tuple."""
    if text[at] == "(":
        end = end_of_group(text, at)
        return [shape_at(part, 0)[0] for part in split_list(text[at + 1 : end - 1])], end
    match = re.compile(r"(\w+)\[([^\]]*)\]").match(text, at)
    if match is None:
        raise BadHlo(f"a shape is expected at {text[at:at + 60]!r}")
    sizes = tuple(
        int(size.strip().lstrip("<=")) for size in match.group(2).split(",") if size.strip()
    )
    end = match.end()
    if text[end : end + 1] == "{":  # the layout
        end = end_of_group(text, end)
    return (match.group(1), sizes), end


def bytes_of(shape):
    if isinstance(shape, list):
        return sum(bytes_of(part) for part in shape)
    kind, sizes = shape
    bits = BITS.get(kind, 8 if kind.startswith("f8") else None)
    if bits is None:
        raise BadHlo(f"unknown element type {kind}")
    return -(-bits * math.prod(sizes) // 8)


class Instruction:
    def __init__(self, text):
        match = re.match(r"(?:ROOT )?%?([\w.\-]+) = ", text)
        self.shape, at = shape_at(text, match.end())
        opcode = re.compile(r"\s*([\w\-]+)\(").match(text, at)
        if opcode is None:
            raise BadHlo(f"an operation is expected at {text[at:at + 60]!r}")
        self.op = opcode.group(1)
        behind = end_of_group(text, opcode.end() - 1)
        self.operands = text[opcode.end() : behind - 1]
        parts = [part.partition("=") for part in split_list(text[behind:].lstrip(" ,"))]
        self.attributes = {key.strip(): value.strip() for key, _, value in parts}

    def called(self):
        """(attribute, computation) of all that it runs."""
        found = []
        for key in (
            "calls",
            "to_apply",
            "body",
            "condition",
            "true_computation",
            "false_computation",
            "branch_computations",
            "called_computations",
        ):
            for name in re.findall(r"%?([\w.\-]+)", self.attributes.get(key, "")):
                found.append((key, name))
        return found


def instructions_of(body):
    """An instruction a line; one that spans lines goes on where brackets are open or a line is
    indented deeper."""
    found, at = [], 0
    begin = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = ", re.MULTILINE)
    starts = []
    while True:
        match = begin.search(body, at)
        if match is None:
            break
        starts.append(match.start())
        at = match.end()
        # Brackets of its shape and operands may hold what looks like a begin.
        shape_end = shape_at(body, at)[1]
        opened = body.index("(", shape_end)
        at = end_of_group(body, opened)
    for start, end in zip(starts, [*starts[1:], len(body)]):
        found.append(Instruction(" ".join(body[start:end].split())))
    return found


def computations_of(text):
    """Name -> instructions of every computation; the entry's name is "ENTRY"."""
    text, found = without_comments(text), {}
    header = re.compile(r"^[ \t]*(ENTRY )?%?([\w.\-]+)\s*(?=[({])", re.MULTILINE)
    at = text.find("\n") + 1 if text.startswith("HloModule") else 0
    while True:
        match = header.search(text, at)
        if match is None:
            return found
        at = match.end()
        if text[at] == "(":  # parameters and "-> shape"
            at = end_of_group(text, at)
            arrow = re.compile(r"\s*->\s*").match(text, at)
            if arrow is None:
                continue
            at = shape_at(text, arrow.end())[1]
        opened = re.compile(r"[^\n{]*\{").match(text, at)
        if opened is None:
            continue
        end = end_of_group(text, opened.end() - 1)
        found["ENTRY" if match.group(1) else match.group(2)] = instructions_of(
            text[opened.end() : end - 1]
        )
        at = end


# ---------------------------------------------------------------- collectives


def group_size(groups, devices):
    """Ranks of one group, of any of the forms: {{0,1},{2,3}}, [2,4]<=[8], mesh axes; all of them
    where none are given."""
    explicit = re.match(r"\{\{([\d, ]+)\}", groups)
    if explicit:
        return explicit.group(1).count(",") + 1
    iota = re.match(r"\[(\d+),(\d+)\]<=", groups)
    if iota:
        return int(iota.group(2))
    by_axes = re.search(r"mesh\[([^\]]*)\][^{]*\{([^}]*)\}", groups)
    if by_axes:
        sizes = dict(re.findall(r"'?(\w+)'?=(\d+)", by_axes.group(1)))
        parts = re.findall(r"'?(\w+)'?(?::\(\d+\)(\d+))?", by_axes.group(2))
        return math.prod(int(part or sizes[axis]) for axis, part in parts if axis in sizes)
    return devices


def collective_of(instruction, devices):
    """(op, bytes that one rank receives), or None; the half that only waits (-done) is none."""
    op, shape = instruction.op, instruction.shape
    started = op.endswith("-start")
    op = op[: -len("-start")] if started else op
    if op not in OPS:
        return None
    if started and isinstance(shape, list) and op in ("all-gather", "collective-permute"):
        shape = shape[1]  # what it reads, then what it writes (then what tracks it)
    elif op == "collective-permute" and isinstance(shape, list):
        shape = shape[0] if len(split_list(instruction.operands)) == 1 else shape
    group = group_size(instruction.attributes.get("replica_groups", ""), devices)
    size = bytes_of(shape)
    moved = {
        "all-gather": size * (group - 1) // group,
        "all-reduce": -(-2 * (group - 1) * size // group),
        "reduce-scatter": size * (group - 1),
        "all-to-all": size * (group - 1) // group,
        "ragged-all-to-all": size,
        "collective-permute": size,
        "collective-broadcast": size,
    }[op]
    return op, moved


def rounds_of(instruction):
    """How often a loop runs, where XLA knows it."""
    known = re.search(
        r'"?known_trip_count"?\s*:\s*\{\s*"?n"?\s*:\s*"?(\d+)',
        instruction.attributes.get("backend_config", ""),
    )
    return int(known.group(1)) if known else 1


def collectives(text, devices):
    """(op, bytes that one rank receives, times) of every collective that runs, in order; of
    branches the one that receives most."""
    computations = computations_of(text)
    if "ENTRY" not in computations:
        raise BadHlo("the text has no ENTRY computation")

    def visit(name, times):
        found = []
        for instruction in computations.get(name, ()):
            collective = collective_of(instruction, devices)
            if collective is not None:
                found.append((*collective, times))
                continue  # what it applies is the reduction of two elements
            branches = [
                visit(inner, times)
                for key, inner in instruction.called()
                if key in ("true_computation", "false_computation", "branch_computations")
            ]
            if branches:
                found += max(branches, key=lambda branch: sum(moved * n for _, moved, n in branch))
            for key, inner in instruction.called():
                if key == "body":
                    found += visit(inner, times * rounds_of(instruction))
                elif key in ("calls", "to_apply", "called_computations", "condition"):
                    found += visit(
                        inner, times * (rounds_of(instruction) if key == "condition" else 1)
                    )
        return found

    return visit("ENTRY", 1)
