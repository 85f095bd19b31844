#!/usr/bin/env python3
"""Derives bad specs from testdata/good-specs/: 200 files with one mistake each, and expected.txt with the code, line and
column that the reader must report. Expectations come from the place of the change, never from what meshplan reports.
Tests derive them when they run or are built; the files are the same on every machine.

usage: derive_bad_specs.py FOLDER      writes the files into FOLDER, replacing it
"""
import pathlib
import random
import re
import sys

DATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"
GOOD = DATA / "good-specs"
COUNT = 200
SEED = 20251121
TOKEN = re.compile(r'//[^\n]*|\s+|"(?:[^"\\]|\\.)*"|-?[0-9.]+(?:[eE][-+]?[0-9]+)?|true|false|null|[\[\]{},:]')
REQUIRED = [
    (r"^$", ["schema"]), (r"^/mesh$", ["dims"]), (r"^/mesh/dims/\d+$", ["name", "size"]), (r"^/mesh/flattened/\d+$", ["dims"]),
    (r"^/redistributions/\d+$", ["id", "tensor", "src", "dst"]), (r"/tensor$", ["shape", "dtype"]), (r"_order/\d+$", ["tensor_dim", "mesh_dims"]),
    (r"^/allow/\d+$", ["code", "reason"]), (r"^/budgets/redistributions/\d+$", ["id"]), (r"/levels/\d+$", ["ranks", "gb_per_s", "latency_ns"]),
    (r"^/topology$", ["levels"]), (r"/parallel_dims$", ["world"]),
]
CHOICES = r"/(dtype|reduce_dtype|planner|rules|groups|world_group|direction)$"


class Value:
    """One value of a file: where it stands, what it is, its key and its children."""

    def __init__(self, path, kind, begin, key=None, parent=None):
        self.path, self.kind, self.begin, self.key, self.parent = path, kind, begin, key, parent
        self.end, self.children, self.text = begin, [], ""


def parse(text):
    tokens = [(m.start(), m.group()) for m in TOKEN.finditer(text) if not m.group().isspace() and not m.group().startswith("//")]
    assert "".join(t for _, t in tokens) == re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|\s+', lambda m: m.group(1) or "", text)
    values, at = [], 0

    def value(path, key, parent):
        nonlocal at
        begin, token = tokens[at]
        kind = {"{": "object", "[": "list", '"': "text", "t": "word", "f": "word", "n": "word"}.get(token[0], "number")
        made = Value(path, kind, begin, key, parent)
        values.append(made)
        at += 1
        if kind in ("object", "list"):
            while tokens[at][1] not in "]}":
                if kind == "object":
                    key_token = tokens[at]
                    at += 2
                    made.children.append(value(path + "/" + key_token[1][1:-1], key_token, made))
                else:
                    made.children.append(value(f"{path}/{len(made.children)}", None, made))
                if tokens[at][1] == ",":
                    at += 1
            token = tokens[at][1]
            made.end = tokens[at][0] + 1
            at += 1
        else:
            made.end = begin + len(token)
        made.text = text[begin:made.end]
        return made

    value("", None, None)
    return values


def mutations(text):
    """Every (kind, new text as bytes, offset of the mistake in characters of the new text, code)."""
    values = parse(text)

    def change(begin, end, put, code, offset=0):
        return text[:begin] + put + text[end:], begin + offset, code

    for v in values:
        if re.search(r"/x-|/group_options", v.path):
            continue
        if v.key:
            key_begin, key = v.key
            ours = not re.search(r"/(src|dst)/[^/]*$", v.path)
            yield "duplicate key", *change(v.end, v.end, f", {key}: {v.text}", "E0110", 2)
            if ours and len(key) > 5:
                yield "misspelt key", *change(key_begin, key_begin + len(key), key[:-1] + key[-2:], "E0203")
            if re.fullmatch(r'"[a-z]\w*"', key):
                yield "key without quotes", *change(key_begin, key_begin + len(key), key[1:-1], "E0113")
            yield "key in single quotes", *change(key_begin, key_begin + len(key), f"'{key[1:-1]}'", "E0105")
            colon = text.index(":", key_begin + len(key))
            yield "equals sign", *change(colon, colon + 1, " =", "E0103", 1)
            for pattern, keys in REQUIRED:
                if re.search(pattern, v.parent.path) and key[1:-1] in keys and v is not v.parent.children[-1]:
                    comma = text.index(",", v.end)
                    yield "missing key", text[:key_begin] + text[comma + 1:], v.parent.begin, "E0202"
        if v.parent and v is not v.parent.children[-1]:
            comma = text.index(",", v.end)
            following = v.parent.children[v.parent.children.index(v) + 1]
            begin = following.key[0] if following.key else following.begin
            yield "missing comma", text[:comma] + " " + text[comma + 1:], begin, "E0107"
            yield "two commas", *change(comma, comma, ",", "E0107", 1)
        if v.kind in ("object", "list") and v.children:
            last = v.children[-1]
            yield "trailing comma", *change(last.end, last.end, ",", "E0107")
            yield "wrong bracket", *change(v.end - 1, v.end, "]" if v.kind == "object" else "}", "E0103")
            yield "cut short", text[:v.children[0].end], v.children[0].end, "E0104"
            if not re.search(r"/(src|dst)$", v.path):
                yield "wrong type", *change(v.begin, v.end, "true", "E0201")
            if v.kind == "object" and not re.search(r"/(src|dst)$", v.path):
                yield "unknown key", *change(v.begin + 1, v.begin + 1, '"zebra": 1, ', "E0203")
        if v.kind == "number" and not v.path.endswith("gb_per_s"):
            yield "float", *change(v.begin, v.end, v.text + ".0", "E0204")
            yield "exponent", *change(v.begin, v.end, v.text + "e0", "E0204")
            yield "beyond 64 bits", *change(v.begin, v.end, "9223372036854775808", "E0205")
            yield "negative", *change(v.begin, v.end, "-7", "E0404" if v.path.endswith("tensor_dim") else "E0205")
            yield "number in quotes", *change(v.begin, v.end, f'"{v.text}"', "E0201")
        if v.kind == "number" and not v.text.startswith("-"):
            yield "leading zero", *change(v.begin, v.end, "0" + v.text, "E0106")
            yield "plus sign", *change(v.begin, v.end, "+" + v.text, "E0106")
        if v.kind == "number" and v.path.endswith("gb_per_s"):
            yield "four decimals", *change(v.begin, v.end, v.text.split(".")[0] + ".1234", "E0204")
            yield "no bandwidth", *change(v.begin, v.end, "-1" if v.path.endswith("copy_gb_per_s") else "0", "E0205")
        if v.kind == "word":
            yield "Python's word", *change(v.begin, v.end, v.text.title(), "E0113")
        if v.kind == "text":
            inside = v.begin + 1
            yield "wrong type", *change(v.begin, v.end, "7", "E0201")
            yield "unknown escape", *change(inside, inside, "\\q", "E0105")
            yield "tab in a text", *change(inside, inside, "\t", "E0105")
            yield "NUL in a text", *change(inside, inside, "\0", "E0105")
            yield "stray byte", *change(inside, inside, "\udcff", "E0101")
            yield "half a surrogate pair", *change(inside, inside, "\\udc00", "E0105")
            if "\n" in text[v.end:]:
                yield "open text", text[:v.end - 1] + text[text.index("\n", v.end):], v.begin, "E0105"
        if v.path == "/schema":
            yield "other version", *change(v.begin, v.end, '"meshplan/spec/9"', "E0207")
        if v.kind == "text" and re.search(CHOICES, v.path):
            yield "unknown choice", *change(v.begin, v.end, v.text[:-1] + 'x"', "E0206")
        if v.kind == "text" and re.search(r"/(src|dst)/[^/]+$", v.path):
            yield "no placement", *change(v.begin, v.end, '"Q"', "E0401")
            yield "mask partial", *change(v.begin, v.end, '"P(mask)"', "E0407")
            yield "tensor dim out of range", *change(v.begin, v.end, '"S(9)"', "E0404")
        if v.kind == "list" and re.search(r"/(src|dst)$", v.path):
            yield "surplus placement", *change(v.end - 1, v.end - 1, ', "R"', "E0402", v.begin - v.end + 1)
        if v.kind == "text" and re.search(r"/(mesh_dims|slice|flatten|transpose|flattened/\d+/dims)/\d+$", v.path):
            yield "unknown dim", *change(v.begin, v.end, v.text[:-1] + 'q"', "E0306")
            yield "repeated dim", *change(v.end, v.end, ", " + v.text, "E0307", 2)
        if v.kind == "list" and re.search(r"/(slice|flattened/\d+/dims)$", v.path) and len(v.children) > 1:
            yield "dims out of order", *change(v.begin, v.end, "[" + ", ".join(c.text for c in reversed(v.children)) + "]", "E0308")
        if v.kind == "text" and re.search(r"/(mesh|src_mesh|dst_mesh|of)$", v.path):
            yield "unknown mesh", *change(v.begin, v.end, v.text[:-1] + 'q"', "E0305")
        if v.kind == "number" and re.search(r"/ranks/[1-9]\d*$", v.path):
            yield "repeated rank", *change(v.begin, v.end, v.parent.children[0].text, "E0303")
        if v.kind == "list" and v.path.endswith("/ranks"):
            yield "surplus rank", *change(v.end - 1, v.end - 1, ", 99", "E0302", v.begin - v.end + 1)
        if v.kind == "object" and re.fullmatch(r"/redistributions/\d+", v.path):
            offset = v.children[0].begin - v.begin
            yield "repeated id", *change(v.end, v.end, ", " + v.text, "E0210", 2 + offset)
        if re.search(r"/(budgets/redistributions|allow)/\d+/id$", v.path):
            yield "unknown id", *change(v.begin, v.end, '"nothing"', "E0411")
        if re.search(r"/allow/\d+/code$", v.path):
            yield "no warning", *change(v.begin, v.end, '"E0203"', "E0412")
        if v.path.endswith("/count"):
            yield "count overflow", *change(v.begin, v.end, "9223372036854775807", "E0410")
        if re.search(r"/shape/0$", v.path) and "int8" not in v.parent.parent.text:
            yield "tensor overflow", text[:v.begin] + "9223372036854775807" + text[v.end:], v.parent.begin, "E0410"
        if v.kind == "text" and re.search(r"/(name|reason|id)$", v.path) and v.text != '""':
            yield "empty text", *change(v.begin, v.end, '""', "E0209")
        if re.search(r"/sizes/0$", v.path):
            yield "sizes that do not split", text[:v.begin] + "3" + text[v.end:], v.parent.begin, "E0311"
    yield "byte order mark", "\ufeff" + text, 0, "E0102"
    yield "two documents", text + "{}", len(text), "E0111"
    yield "open comment", text + "/* the end", len(text), "E0112"
    yield "hash comment", "# a spec\n" + text, 0, "E0103"


def place(text, offset):
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def derive():
    """File name -> bytes, the expectations among them."""
    by_kind = {}
    for path in sorted(GOOD.glob("*.json")):
        for kind, text, offset, code in mutations(path.read_text(encoding="utf-8")):
            by_kind.setdefault(kind, []).append((path.stem, text, offset, code))
    rng = random.Random(SEED)
    for cases in by_kind.values():
        rng.shuffle(cases)
    chosen, turn = [], 0
    while len(chosen) < COUNT:
        for kind, cases in by_kind.items():
            if turn < len(cases) and len(chosen) < COUNT:
                chosen.append((kind, *cases[turn]))
        turn += 1
    files, expected = {}, []
    for number, (kind, base, text, offset, code) in enumerate(sorted(chosen, key=lambda case: case[0]), 1):
        name = f"{number:03}-{kind.lower().replace(' ', '-').replace(chr(39), '')}-{base}.json"
        line, column = place(text, offset)
        files[name] = text.encode("utf-8", "surrogateescape")
        expected.append(f"{name}:{line}:{column}: {code}\n")
    files["expected.txt"] = "".join(expected).encode()
    return files


def write_to(folder):
    """Writes the derived files; returns [(path, "file:line:column: code")]."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    files = derive()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [(folder / line.split(":")[0], line) for line in files["expected.txt"].decode().splitlines()]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    write_to(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
