"""Ranks that say in PyTorch's store whom they wait for, so that two which wait for each other in
different groups end with an error: inside of a group only PyTorch's timeout would end them.

    mesh dp 2 x tp 2, mesh["dp"] -> mesh["tp"]     rank 0 waits for 0 1 2, rank 1 for 0 1 3: never
"""
from __future__ import annotations

import collections
import hashlib
import json
import time
from typing import Any, Iterator

import torch.distributed as dist

Ranks = tuple[int, ...]
_PREFIX = "meshplan/reshard/"
_PAUSE = 0.01  # seconds between two looks


class Arrivals:
    """Of this process, in one world. Every rank of a meeting calls `enter`, then `leave`."""

    def __init__(self) -> None:
        self._met: collections.Counter[Ranks] = collections.Counter()  # meetings of these ranks
        self._entered: dict[Ranks, int] = {}  # the number of the last
        self._failures = 0

    def enter(self, ranks: Ranks, waits: bool) -> bool:
        """Says that this rank comes; False: one of `ranks` waits for this one among others, or
        gave up. `waits`: until all have come, which is worth the time where that may be."""
        store = dist.distributed_c10d._get_default_store()
        number = self._met[ranks] + 1
        self._entered[ranks] = number
        store.set(self._key(ranks, number, dist.get_rank()), "")
        self._say(store, ranks, number, 0)
        end = time.monotonic() + store.timeout.total_seconds()
        missing = list(ranks) if waits else []
        while True:
            missing = [q for q in missing if not store.check([self._key(ranks, number, q)])]
            if not missing:
                break
            if any(self._conflicts(ranks, said) for said in self._said(store, ranks)) or (
                    time.monotonic() > end):
                self._failures += 1
                self._say(store, ranks, number, self._failures)
                return False
            time.sleep(_PAUSE)
        self._met[ranks] = number
        return True

    def leave(self) -> None:
        dist.distributed_c10d._get_default_store().set(f"{_PREFIX}{dist.get_rank()}", "")

    @staticmethod
    def _key(ranks: Ranks, number: int, rank: int) -> str:
        digest = hashlib.sha256(str(ranks).encode()).hexdigest()
        return f"{_PREFIX}{digest}/{number}/{rank}"

    @staticmethod
    def _say(store: dist.Store, ranks: Ranks, number: int, failures: int) -> None:
        store.set(f"{_PREFIX}{dist.get_rank()}", json.dumps([ranks, number, failures]))

    @staticmethod
    def _said(store: dist.Store, ranks: Ranks) -> Iterator[list[Any]]:
        for rank in ranks:
            key = f"{_PREFIX}{rank}"
            text = store.get(key) if store.check([key]) else b""
            if text:
                yield json.loads(text)

    def _conflicts(self, ranks: Ranks, said: list[Any]) -> bool:
        """Whether a rank that said this does not come to `ranks`: it waits for this one elsewhere,
        where this one has not come, or gave up more often than this one did."""
        others, number, failures = tuple(said[0]), said[1], said[2]
        if failures:
            return failures > self._failures and dist.get_rank() in others
        return (others != ranks and dist.get_rank() in others
                and self._entered.get(others, 0) < number)
