"""The command line of the package: the program `meshplan` that lies in it, with the same words."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def program() -> str:
    """The path of the program: the one in the package, or what MESHPLAN in the environment
    names."""
    named = os.environ.get("MESHPLAN")
    path = named or str(pathlib.Path(__file__).parent / "bin" / "meshplan")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(
            f"{path} is not a program; install the package (pip install ./apps/python), or name "
            "the program of a build in the environment variable MESHPLAN"
        )
    return path


def main() -> NoReturn:
    """Becomes the program: its exit code, its output and the signals that it gets are its own."""
    try:
        path = program()
    except FileNotFoundError as missing:
        sys.exit(f"meshplan: {missing}")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path, ["meshplan", *sys.argv[1:]])
