"""Renewals of leases."""

from __future__ import annotations

from collections.abc import Callable

from ..call.call import Call
from ..decide.core import Core
from ..decide.errors import CallError, Unavailable
from .jobs import Job


class Renewal(Job):
    """The renewals of a lease, every third of its ttl.

    Args:
        core: The limiter's state.
        call: RL.RENEW.
        ttl: The lease's ttl in seconds.
        lost: Is told why, if the lease is lost.

    Attributes:
        every: The seconds between two renewals.
        ends: When the lease ends, as far as is known.
    """

    is_renewal = True

    def __init__(self, core: Core, call: Call, ttl: float, lost: Callable[[str], None]) -> None:
        super().__init__(call)
        self._core, self._ttl, self._lost = core, ttl, lost
        self.every = ttl / 3
        self.ends = core.clock() + ttl

    def after(self, outcome: object) -> float | None:
        if self.stopped:
            return None
        if outcome == 1:
            self.ends = self.asked + self._ttl
            return self.every
        if not isinstance(outcome, Unavailable):
            self._lost(outcome.reply if isinstance(outcome, CallError) else "a renewal found no lease")
        elif self._core.clock() < self.ends:
            return self.every / 3
        else:
            self._lost("no answer for its whole ttl")
        return None
