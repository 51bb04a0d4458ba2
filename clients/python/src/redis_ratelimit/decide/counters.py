"""Counts what a limiter does."""

from __future__ import annotations

from threading import Lock

from .fork import after_fork

NAMES = (
    "asked",
    "allowed",
    "refused",
    "cached",
    "unavailable",
    "failed_open",
    "failed_closed",
    "wrong_calls",
    "misconfigured",
    "breaker_opened",
    "leases_lost",
    "releases_retried",
)


class Counters:
    """Counts what happens. Threads may count at once."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = dict.fromkeys(map(str, NAMES), 0)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = Lock()

    def add(self, *names: str) -> None:
        """Adds 1 to each of these counters."""
        with self._lock:
            for name in names:
                self._counts[name] += 1

    def snapshot(self) -> dict[str, int]:
        """Returns the counts as they are now."""
        with self._lock:
            return dict(self._counts)
