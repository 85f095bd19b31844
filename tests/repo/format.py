#!/usr/bin/env python3
"""Every .cc and .h of lib, apps and tests is laid out as clang-format-14 does it by the .clang-format of its folder.

usage: format.py      exit status 77 where clang-format-14 is not installed; tests/tidy --fix formats them
"""
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "clang-format-14"  # other versions break lines elsewhere


def main():
    if not shutil.which(PROGRAM):
        print(f"SKIPPED: {PROGRAM} is not installed (Debian: apt-get install {PROGRAM})")
        return 77
    files = [str(path) for folder in ("lib", "apps", "tests") for path in sorted((TOP / folder).rglob("*")) if path.suffix in (".cc", ".h")]
    if len(files) < 700:
        print(f"only {len(files)} files are here")
        return 1
    checked = subprocess.run([PROGRAM, "--dry-run", "--Werror", "--ferror-limit=1", *files], capture_output=True, text=True, check=False)
    wrong = [line for line in checked.stderr.splitlines() if "code should be clang-formatted" in line]
    if checked.returncode != 0:
        print("\n".join(wrong) or checked.stderr, "\ntests/tidy --fix FILE... formats them", sep="")
        return 1
    print(f"{len(files)} files are as {PROGRAM} lays them out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
