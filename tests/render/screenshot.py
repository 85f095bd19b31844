#!/usr/bin/env python3
"""Looks at the pictures in a real browser: every shard's colour covers the area that its box is of the tensor, and the slider shows one frame.

usage: screenshot.py MESHPLAN      needs chromium; where there is none it says so and answers 77, which ctest counts as skipped
"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SPEC = """{"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
"options": {"planner": "greedy"}, "redistributions": [
{"id": "uneven", "tensor": {"shape": [10, 6], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "R"]}]}"""
CELL = 64 * 48  # pixels of one rank's tensor
COLORS = [(228, 139, 139), (139, 228, 164), (189, 139, 228), (228, 214, 139)]  # of shards 0 to 3: hsl(137 degrees apart, 62 %, 72 %)


def pixels_of(path):
    """The rows of an 8-bit RGB or RGBA PNG as lists of (r, g, b)."""
    data = path.read_bytes()
    at, parts, header = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        parts += body if kind == b"IDAT" else b""
        at += size + 12
    width, height, depth, color = header[:4]
    assert depth == 8 and color in (2, 6), header
    step = 3 if color == 2 else 4
    raw, rows, before = zlib.decompress(parts), [], bytes(width * step)
    for y in range(height):
        line = raw[y * (width * step + 1):(y + 1) * (width * step + 1)]
        kind, row = line[0], bytearray(line[1:])
        for i in range(len(row)):
            left, up, corner = row[i - step] if i >= step else 0, before[i], before[i - step] if i >= step else 0
            if kind == 1:
                row[i] = (row[i] + left) & 255
            elif kind == 2:
                row[i] = (row[i] + up) & 255
            elif kind == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda value: abs(guess - value))
                row[i] = (row[i] + nearest) & 255
        rows.append([tuple(row[x * step:x * step + 3]) for x in range(width)])
        before = bytes(row)
    return rows


def areas(rows):
    def near(a, b):
        return all(abs(x - y) <= 3 for x, y in zip(a, b))
    counts = {}
    for row in rows:
        for pixel in row:
            counts[pixel] = counts.get(pixel, 0) + 1
    return [sum(n for pixel, n in counts.items() if near(pixel, color)) for color in COLORS]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("SKIPPED: there is no chromium here, so nobody looked at the pictures (Debian: apt-get install chromium)")
        return 77
    meshplan = str(pathlib.Path(arguments[0]).resolve())
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "spec.json").write_text(SPEC)
        subprocess.run([meshplan, "plan", "spec.json", "-o", "plan.json", "-q", "-W", "no-missing-flatten"], cwd=folder, check=True)
        for form in ("svg", "html"):
            subprocess.run([meshplan, "show", "plan.json", "--format", form, "-o", f"plan.{form}"], cwd=folder, check=True)

        def look(page):
            picture = folder / "picture.png"
            subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={name}/profile",
                            f"--screenshot={picture}", "--window-size=1400,700", f"file://{folder}/{page}"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
            return areas(pixels_of(picture))

        def expect(page, wanted):
            # Rank numbers and lines cover some of a shard; no shard may be larger than its box.
            for shard, (found, area) in enumerate(zip(look(page), wanted)):
                if not 0.7 * area <= found <= 1.1 * area:
                    failures.append(f"{page}: shard {shard} covers {found} pixels, and its boxes are {area}")

        quarter = CELL / 4
        # S(0)S(1): a quarter on each rank; S(0)R: halves, two ranks each; RR: the whole on all four.
        source, half, whole = [quarter] * 4, [CELL, CELL, 0, 0], [4 * CELL, 0, 0, 0]
        expect("plan.html#0.0", source)
        expect("plan.html#0.1", half)
        expect("plan.html#0.2", whole)
        expect("plan.svg", [sum(areas_of) for areas_of in zip(source, half, whole)])
    print("\n".join(failures) or "the pictures show what the plan says")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
