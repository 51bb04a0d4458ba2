"""Renewals of leases."""

from __future__ import annotations

from collections.abc import Callable

from ..call.call import Call
from ..decide.errors import CallError
from ..decide.failure import NoAnswer, reason
from .jobs import Job


class Renewal(Job):
    """The renewals of a lease.

    Args:
        call: RL.RENEW.
        ttl: The lease's ttl in seconds. It is renewed every third of it.
        renewed: Is told None if the server still had the lease, or else why it is lost.
    """

    is_renewal = True

    def __init__(self, call: Call, ttl: float, renewed: Callable[[str | None], None]) -> None:
        super().__init__(call)
        self._renewed = renewed
        self.every = ttl / 3

    def after(self, outcome: object) -> float | None:
        if self.stopped:
            return None
        if isinstance(outcome, NoAnswer):
            return self.every / 3
        lost = None if outcome == 1 else "a renewal found no lease"
        if isinstance(outcome, CallError):
            lost = reason(outcome.error)
        self._renewed(lost)
        return self.every if lost is None else None
