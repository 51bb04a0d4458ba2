"""Rates as people write them."""

from __future__ import annotations

from functools import lru_cache

from .errors import ConfigurationError
from .limit import MOST, Limiter, LimiterLike, parse_rate, wrong_limiter
from .limiters import Gcra
from .values import integer


def Rate(rate: str, burst: int | None = None) -> Gcra:
    """A rate such as `"10/s"`, `"1000/d"`, `"100/15m"` or `"10 per minute"`, as a GCRA.

    Args:
        rate: A count per time. Units are ms, s, m, h, d, w and their English names, in lower case: `m` is a minute.
            A calendar's month is `Calendar(1000, "MONTH")`.
        burst: How many may come at once, the count by default (1 to 9007199254740991).

    Raises:
        ConfigurationError: The rate is not a count per time, or a number is out of range.
    """
    if not isinstance(rate, str):
        raise ConfigurationError(f"a rate is a whole number per time, such as '10/s', not {rate!r}")
    count, period = parse_rate(rate)
    most = count if burst is None else integer("burst", burst, 1, MOST)
    return Gcra(most - 1, count, period)


def limiter_of(limiter: LimiterLike) -> Limiter:
    """Returns the limiter, or the one that a rate stands for."""
    if isinstance(limiter, Limiter):
        return limiter
    if not isinstance(limiter, str):
        raise wrong_limiter(limiter)
    return _rate(limiter)


@lru_cache(maxsize=1024)
def _rate(rate: str) -> Limiter:
    return Rate(rate)
