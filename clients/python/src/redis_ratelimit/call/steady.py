"""The steady rate of a limiter, for what is decided without the server."""

from __future__ import annotations

from dataclasses import dataclass

from .limit import Limiter
from .values import milliseconds

_SHARED = frozenset("GCRA TOKENBUCKET LEAKYBUCKET FIXEDWINDOW SLIDINGWINDOW SLIDINGLOG UNIFORM SKETCH".split())
"""What has a rate that processes can share. That of a window is its limit in its length."""


@dataclass(frozen=True, slots=True)
class SteadyRate:
    """At most `most` at once, and `count` in each period of some milliseconds."""

    most: int
    count: int
    period: int


def steady_rate(limiter: Limiter) -> SteadyRate | None:
    """Returns the rate of a limiter, or None if it has none that processes can share."""
    if limiter.NAME not in _SHARED or limiter.PER is None:
        return None
    count = 1 if limiter.COUNT is None else int(getattr(limiter, limiter.COUNT))
    most = count if limiter.BURST is None else int(getattr(limiter, limiter.BURST)) + (limiter.BURST == "max_burst")
    return SteadyRate(most, count, milliseconds("period", getattr(limiter, limiter.PER)))
