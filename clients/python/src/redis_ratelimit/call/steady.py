"""The steady rate of a limiter, for what is decided without the server, and which limits can be answered locally."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ConfigurationError
from .limit import Limiter, LimiterLike, is_policy
from .rate import limiter_of
from .values import Duration, check_duration, milliseconds

_SHARED = frozenset("GCRA TOKENBUCKET LEAKYBUCKET FIXEDWINDOW SLIDINGWINDOW SLIDINGLOG UNIFORM SKETCH".split())
"""What has a rate that processes can share. That of a window is its limit in its length."""
HOLD = "100ms"
"""For how long what was taken ahead may be spent, by default."""


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


def checked_limit(limit: LimiterLike, hold: Duration = HOLD) -> tuple[Limiter, SteadyRate, int]:
    """Returns a limiter, its rate, and the milliseconds of `hold`, if it can be answered locally."""
    if is_policy(limit):
        raise ConfigurationError(f"the policy {limit!r} cannot be answered locally, since RL.ASK has no PARTIAL")
    limiter = limiter_of(limit)
    rate = steady_rate(limiter)
    if rate is None or limiter.NAME not in ("GCRA", "TOKENBUCKET") or getattr(limiter, "batch", False):
        raise ConfigurationError(f"{limiter!r} cannot be answered locally: only a Gcra, or a TokenBucket without batch")
    held = check_duration("hold", hold, 1)
    if rate.most * rate.period < rate.count * held:
        came = rate.count * held // rate.period
        raise ConfigurationError(f"hold is too long: {came} come in within {hold}, but the limit is {rate.most} at once")
    return limiter, rate, held
