"""Bundles of a recording: what a program asks for at once, from the place that names it."""

from __future__ import annotations

from typing import Any, Optional


class Bundle:
    """What one stretch of the program asks for. `counts`, `first` and `reshards` are as a
    recorder's; `count` says how often the same was asked for again."""

    def __init__(
        self, name: str, max_staging_bytes: Optional[int] = None, max_messages: Optional[int] = None
    ) -> None:
        self.name, self.count = name, 1
        self.limits = {
            key: value
            for key, value in (
                ("max_staging_bytes", max_staging_bytes),
                ("max_messages", max_messages),
            )
            if value is not None
        }
        self.counts: dict[Any, int] = {}
        self.first: dict[Any, dict[str, Any]] = {}
        self.reshards: list[tuple[Any, ...]] = []

    def content(self) -> tuple[Any, ...]:
        """What makes two of them one that happens twice; lines of the program are no part of it."""
        return (self.name, self.limits, self.counts, [reshard[:4] for reshard in self.reshards])


def keep(bundles: list[Bundle], new: Bundle) -> None:
    """Adds a bundle that has ended, or counts the one that asked for the same."""
    if not new.counts and not new.reshards:
        return
    for known in bundles:
        if known.content() == new.content():
            known.count += 1
            return
    bundles.append(new)
