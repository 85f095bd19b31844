"""What a part of the package needs beyond Python, and what is said where that is missing."""

from __future__ import annotations

import contextlib
from typing import Iterator

_NAMES = {"torch": "PyTorch", "jax": "JAX"}


@contextlib.contextmanager
def needing(package: str, what: str) -> Iterator[None]:
    """Around an import: where `package` is not installed, the error says that `what` needs it, and
    how to get it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name != package:
            raise
        # `meshplan check --record` knows a missing PyTorch by the words in brackets.
        raise ModuleNotFoundError(
            f"{what} needs {_NAMES[package]}: pip install {package} (No module named '{package}')",
            name=package,
        ) from None
