"""Which limits can be answered locally."""

from __future__ import annotations

from ..call.errors import ConfigurationError
from ..call.limit import Limiter, LimiterLike, is_policy
from ..call.rate import limiter_of
from ..call.steady import SteadyRate, steady_rate
from ..call.values import Duration, check_duration


HOLD = "100ms"
"""For how long what was taken may be spent, by default."""


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
