"""What is said where a part of the package needs PyTorch and there is none."""

from __future__ import annotations

import contextlib
from typing import Iterator


@contextlib.contextmanager
def needing_torch(what: str) -> Iterator[None]:
    """Around an import: where PyTorch is not installed, the error says that `what` needs it, and
    how to get it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        # `meshplan check --record` knows a missing PyTorch by the words in brackets.
        raise ModuleNotFoundError(
            f"{what} needs PyTorch: pip install torch (No module named 'torch')", name="torch"
        ) from None
