"""Which limits can be answered locally."""

from __future__ import annotations

from ..call.errors import ConfigurationError
from ..call.limit import Limiter, LimiterLike
from ..call.rate import is_policy, limiter_of
from ..call.steady import SteadyRate, steady_rate


def checked_limit(limit: LimiterLike) -> tuple[Limiter, SteadyRate]:
    """Returns a limiter and its rate, if it can be answered locally."""
    if is_policy(limit):
        raise ConfigurationError(f"the policy {limit!r} cannot be answered locally, since RL.ASK has no PARTIAL")
    limiter = limiter_of(limit)
    rate = steady_rate(limiter)
    if rate is None or limiter.NAME not in ("GCRA", "TOKENBUCKET") or getattr(limiter, "batch", False):
        raise ConfigurationError(f"{limiter!r} cannot be answered locally: only a Gcra, or a TokenBucket without batch")
    return limiter, rate
