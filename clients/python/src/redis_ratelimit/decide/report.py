"""What a limiter tells about itself: counters, and lines of a log."""

from __future__ import annotations

import logging
from threading import Lock

from .fork import after_fork

LOGGER = logging.getLogger("redis_ratelimit")
EVERY = 1.0
"""Seconds between two lines of one kind."""

NAMES = (
    "asked",
    "allowed",
    "refused",
    "cached",
    "unavailable",
    "failed_open",
    "failed_closed",
    "wrong_calls",
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


class Log:
    """Writes warnings, at most one a second of each kind."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = Lock()

    def warn(self, kind: str, now: float, line: str) -> None:
        """Writes a line, unless one of this kind was written less than a second ago."""
        with self._lock:
            last = self._last.get(kind)
            if last is not None and now - last < EVERY:
                self._left_out[kind] = self._left_out.get(kind, 0) + 1
                return
            self._last[kind] = now
            left_out = self._left_out.pop(kind, 0)
        LOGGER.warning("%s%s", line, f" ({left_out} more since the last line)" if left_out else "")
