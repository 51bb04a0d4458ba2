"""A circuit breaker: after several failures in a row the server is left alone for a while.

A call may end long after it was sent, when the breaker has changed. So each call has a ticket, and a failure counts only
in the period of its ticket:

       0 ms   closed      a and b are sent with ticket 1
     100 ms   open        a fails; from now on the ticket is 2
    1100 ms   half open   c tries with ticket 2, and no other call is sent
    1101 ms   half open   b fails with ticket 1: c still tries

A lost connection takes all calls with it that it had under way. So it begins a new period too, and counts once. So does a
silence, and a reply that the server can decide nothing, such as READONLY: the calls after it get new connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

from ..call.values import Seconds, integer, seconds
from .fork import after_fork

FIRST = 1
"""The ticket of a breaker that has never opened."""


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
    """The state of a breaker towards one server. Times are of a monotonic clock.

    Attributes:
        ticket: The ticket of the calls that are sent now.
    """

    def __init__(self, breaker: Breaker) -> None:
        self._most = breaker.failures
        self._cooldown = seconds("cooldown", breaker.cooldown)
        self._failures = 0
        self._open = self._tries = False
        self._until = 0.0
        self.ticket: int = FIRST
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock. What the parent tries is not the child's trial."""
        self._lock = RLock()
        self._tries = False

    def admits(self, now: float) -> int | None:
        """Returns a ticket if a call may be sent. Its caller reports the outcome by `succeed`, `fail` or `unknown`."""
        if not self._open:
            return self.ticket
        with self._lock:
            if self._tries or now < self._until:
                return None
            self._tries = self._open  # another thread may have closed it
            return self.ticket

    def succeed(self) -> bool:
        """Notes an answer, whenever the call was sent. Returns whether the breaker closes."""
        if self._failures == 0:
            return False
        with self._lock:
            closes = self._open
            if closes:
                self.ticket += 1
            self._failures, self._until = 0, 0.0
            self._open = self._tries = False
            return closes

    def fail(self, ticket: int, now: float, *, lost: bool) -> bool:
        """Notes that the call of this ticket had no answer. Returns whether a closed breaker opens.

        Args:
            ticket: The ticket of the call.
            now: The time.
            lost: Whether a connection was lost that had the call under way, or was closed for what came of it.
        """
        with self._lock:
            if ticket != self.ticket:
                return False
            self._failures += 1
            opens = not self._open
            stays = opens and self._failures < self._most
            if lost or not stays:
                self.ticket += 1
            if stays:
                return False
            self._open, self._tries, self._until = True, False, now + self._cooldown
            return opens

    def unknown(self, ticket: int) -> None:
        """Notes that the call of this ticket says nothing about the server. If it tried, the next one tries."""
        with self._lock:
            if ticket == self.ticket:
                self._tries = False
