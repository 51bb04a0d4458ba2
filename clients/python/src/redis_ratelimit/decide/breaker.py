"""A circuit breaker: after several failures in a row the server is left alone for a while."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from ..call.values import Seconds, integer, seconds
from .fork import after_fork


@dataclass(frozen=True, slots=True)
class Breaker:
    """When calls are no longer sent.

    Args:
        failures: After how many calls in a row without an answer the breaker opens.
        cooldown: For how many seconds it then answers without the server. After that one call tries.
    """

    failures: int = 5
    cooldown: Seconds = 1.0

    def __post_init__(self) -> None:
        integer("failures", self.failures, 1)
        seconds("cooldown", self.cooldown)


class Circuit:
    """The state of a breaker towards one server. Times are of a monotonic clock."""

    def __init__(self, breaker: Breaker) -> None:
        self._most = breaker.failures
        self._cooldown = seconds("cooldown", breaker.cooldown)
        self._failures = 0
        self._opens_again: float | None = None
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = Lock()

    def admits(self, now: float) -> bool:
        """Whether a call may be sent. Of an open breaker it is one call per cooldown."""
        if self._opens_again is None:
            return True
        with self._lock:
            admits = now >= (self._opens_again or 0.0)
            if admits:
                self._opens_again = now + self._cooldown
            return admits

    def succeed(self) -> bool:
        """Notes an answer. Returns whether the breaker closes."""
        if self._failures == 0:
            return False
        with self._lock:
            closes = self._opens_again is not None
            self._failures, self._opens_again = 0, None
            return closes

    def fail(self, now: float) -> bool:
        """Notes that there was no answer. Returns whether the breaker opens."""
        with self._lock:
            self._failures += 1
            if self._failures < self._most:
                return False
            opens = self._opens_again is None
            self._opens_again = now + self._cooldown
            return opens
