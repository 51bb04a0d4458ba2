"""Counts what a limiter does."""

from __future__ import annotations

from threading import RLock
from typing import Protocol
from weakref import WeakKeyDictionary

from .fork import after_fork

NAMES = (
    "asked",
    "allowed",
    "refused",
    "cached",
    "answered_locally",
    "unavailable",
    "failed_open",
    "failed_closed",
    "insured_allowed",
    "insured_refused",
    "wrong_calls",
    "misconfigured",
    "breaker_opened",
    "leases_lost",
    "releases_retried",
    "fetches",
    "fetched",
    "forgotten",
)


class Counting(Protocol):
    """What counts by itself, for speed."""

    def count(self) -> None:
        """Adds what it has counted since."""
        ...


class Counters:
    """Counts what happens. Threads may count at once.

    Attributes:
        others: What counts by itself.
    """

    def __init__(self) -> None:
        self.others: WeakKeyDictionary[Counting, None] = WeakKeyDictionary()
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Counts from 0 on: what happened before is the parent's."""
        self._lock = RLock()
        self._counts: dict[str, int] = dict.fromkeys(map(str, NAMES), 0)

    def add(self, *names: str, n: int = 1) -> None:
        """Adds n to each of these counters."""
        with self._lock:
            for name in names:
                self._counts[name] += n

    def snapshot(self) -> dict[str, int]:
        """Returns the counts as they are now."""
        for each in self.others.keyrefs():  # a copy, made in one step
            if (counting := each()) is not None:
                counting.count()
        with self._lock:
            return dict(self._counts)
