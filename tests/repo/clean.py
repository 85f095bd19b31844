#!/usr/bin/env python3
"""Rules for all of lib: lines of at most 100 columns, functions of at most 60 lines, types of one name each, no retired words.

usage: clean.py [-v]

A word that is replaced joins RETIRED, with the word to use instead.
"""
import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100
LINES = 60
# retired (a regular expression, matched without case) -> what to say instead; lib/README.md has the glossary.
RETIRED = {
    r"speaker|let_the_speaker": "root process",
    r"roll.call": "barrier with deadline",
    r"take[sn]? leave": "mark the exit as expected",
    r"came to\b(?! (?:an|the) end)": "result",
    r"comparing notes": "exchanging status",
    r"another language": "another protocol version",
    r"at once or not at all": "atomically",
    r"who moves the data": "communication backend",
    r"who plans\b": "planning algorithm",
    r"what plans may be made of": "allowed steps",
    r"\bdearest\b": "most expensive",
    r"\b(?:is|are) no (?:json|layout|placement|shard|mesh dim|part of|list|multiple|float)": "is not a",
    r"above its budget": "exceeds budget",
    r"make_stands?\b|box_of_stand": "held boxes",
    r"\bparcels?\b|Step_?Flow|Slot_?Flow|make_flow|Flow_?Form|Flow_?Question|Exchange_?Pieces?|two_phase_pieces": "transfer",
    r"parts_to_deal": "parts to share",
    r"(?<![a-z])atoms?(?![a-z])": "sub-axis",
    r"Program_?(?:Maker|Question)|make_programs": "prepared step",
    r"nobody|somebody": "name the rank or process",
    r"\bis no (?:time in|number of|member of|spec\b|op\b|python)": "is not a",
    r"\bstands? together": "belong together",
    r"PLANNING\.md|REPLAY\.md|OPTIMAL\.md|BUNDLES\.md|NETWORK\.md|CONTRACT\.md": "a README of this tree",
}
# Tables: one entry after the other, whose length says nothing.
TABLES = re.compile(r"_codes\(\)|command_descriptions\(\)|flag_descriptions\(\)")


def sources():
    for path in sorted((TOP / "lib").rglob("*")):
        if path.suffix in (".h", ".cc", ".cu"):
            yield str(path.relative_to(TOP)), path.read_text(encoding="utf-8")


def without_literals(text):
    """The same text with the contents of literals and comments blanked, so that braces in them do not count."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'R"(\w*~*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', blank, text, flags=re.DOTALL)


def functions(text):
    """(first line, lines, head) of every function body in namespaces and classes."""
    clean = re.sub(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), without_literals(text), flags=re.MULTILINE)
    open_blocks, start = [], 0
    for at, char in enumerate(clean):
        if char == "{":
            head = clean[start:at]
            scope = re.match(r"\s*(?:template\s*<[^;]*?>\s*)?(?:inline\s+)?(?:namespace|struct|class|union|extern|enum)\b", head)
            inside = all(kind == "scope" for kind, _, _ in open_blocks)
            kind = "scope" if scope and "(" not in head.split("struct")[0] else "function" if inside and "(" in head else "other"
            open_blocks.append((kind, start + len(head) - len(head.lstrip()), head))
            start = at + 1
        elif char == "}":
            if not open_blocks:
                continue
            kind, begin, head = open_blocks.pop()
            if kind == "function":
                first = clean.count("\n", 0, begin) + 1
                yield first, clean.count("\n", begin, at) + 1, " ".join(head.split())
            start = at + 1
        elif char == ";":
            start = at + 1


def types(text):
    """(name with its namespaces and classes, line) of every type defined outside of unnamed namespaces and functions."""
    clean = re.sub(r"^[ \t]*#[^\n]*", lambda m: " " * len(m.group(0)), without_literals(text), flags=re.MULTILINE)
    scopes, start = [], 0  # a scope's name, None where its names are its own
    for at, char in enumerate(clean):
        if char == "{":
            head = re.sub(r"template\s*<[^{};]*>(?=\s*(?:struct|class|union)\b)", "", clean[start:at])
            found = re.fullmatch(r"\s*(?:inline\s+)?(namespace|struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
                                 r"(?:\[\[[^\]]*\]\]\s*)?([\w:]+(?:<[^{}]*>)?)(?:\s+final)?\s*(?::[^{}]*)?", head)
            name = found.group(2) if found else None
            if name and None not in scopes and found.group(1) != "namespace":
                yield "::".join(scopes + [name]), clean.count("\n", 0, at) + 1
            scopes.append(name)
            start = at + 1
        elif char == "}":
            if scopes:
                scopes.pop()
            start = at + 1
        elif char == ";":
            start = at + 1
        elif char == ":" and re.fullmatch(r"\s*(?:public|private|protected)\s*", clean[start:at]):
            start = at + 1


def too_wide(line):
    """A literal is not broken, and a raw literal shows text as it is: the rest of the line must fit."""
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line) if '"' in line else line
    return len(line) > COLUMNS and len(rest) > COLUMNS or len(line) > COLUMNS and '"' not in line


class CleanTest(unittest.TestCase):
    maxDiff = None

    def test_lines_fit(self):
        wrong = []
        for path, text in sources():
            raw = set()
            for literal in re.finditer(r'R"(\w*~*)\(.*?\)\1"', text, flags=re.DOTALL):
                raw.update(range(text.count("\n", 0, literal.start()), text.count("\n", 0, literal.end()) + 1))
            wrong += [f"{path}:{n + 1}: {len(line)} columns" for n, line in enumerate(text.split("\n"))
                      if too_wide(line) and n not in raw and "NOLINT" not in line and "https://" not in line]
        self.assertEqual(wrong, [], f"lines of at most {COLUMNS} columns, whole literals apart")

    def test_functions_are_short(self):
        wrong = [f"{path}:{first}: {lines} lines: {head[:80]}" for path, text in sources() for first, lines, head in functions(text)
                 if lines > LINES and not TABLES.search(head)]
        self.assertEqual(wrong, [], f"functions of at most {LINES} lines: split by what they do")

    def test_types_are_defined_once(self):
        """Two types of one name in one program: the linker takes the functions of either for both, with no word of it."""
        places = {}
        for path, text in sources():
            for name, line in types(text):
                places.setdefault(name, []).append(f"{path}:{line}")
        wrong = [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]
        self.assertGreater(len(places), 400)
        self.assertEqual(wrong, [], "name them apart, or put them into unnamed namespaces")

    def test_no_retired_words(self):
        wrong = []
        for path, text in sources():
            for number, line in enumerate(text.split("\n"), 1):
                for word, instead in RETIRED.items():
                    if re.search(word, line, re.IGNORECASE):
                        wrong.append(f"{path}:{number}: say {instead}: {line.strip()[:100]}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
