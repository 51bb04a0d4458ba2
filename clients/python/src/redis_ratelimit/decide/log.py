"""Lines of the log, at most one a second of each kind."""

from __future__ import annotations

import logging
from threading import RLock

from .fork import after_fork

LOGGER = logging.getLogger("redis_ratelimit")
EVERY = 1.0
"""Seconds between two lines of one kind."""


class Log:
    """Writes warnings, at most one a second of each kind."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()

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
