"""The fields of draft-ietf-httpapi-ratelimit-headers-10, from decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, floor
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ..call.errors import ConfigurationError
from ..call.limit import Limiter
from ..call.values import milliseconds

MOST = 999_999_999_999_999
"""The greatest integer in a structured field (RFC 9651, section 3.3.1). A greater one would make the whole field invalid."""
LEASE_RETRY = 1
"""Seconds after which to try again for a lease, which may be released at any time."""
SPREAD_FROM = 5
"""The least seconds of a wait that is spread."""
NOT_SPREAD: Mapping[str, float] = MappingProxyType({})

# The units of a calendar in seconds. Months and longer units differ in length.
_UNITS = {"HOUR": 3600, "DAY": 86_400, "WEEK": 604_800, "MONTH": None, "QUARTER": None, "YEAR": None}


class Answer(Protocol):
    """What the headers say of a decision."""

    @property
    def answered(self) -> bool: ...

    @property
    def allowed(self) -> bool: ...

    @property
    def limit(self) -> int: ...

    @property
    def remaining(self) -> int: ...

    @property
    def retry_after(self) -> float | None: ...

    @property
    def reset_after(self) -> float: ...

    @property
    def limiter(self) -> Limiter | None: ...


class Quota(NamedTuple):
    """What a limiter says about itself in `RateLimit-Policy`.

    Attributes:
        most: `q`. None stands for the limit of the answer.
        window: `w`, in seconds, if the limiter has one of whole seconds.
        lease: Whether the limit is on requests in progress.
    """

    most: int | None = None
    window: int | None = None
    lease: bool = False


def quota_of(limiter: Limiter | None) -> Quota:
    """Returns what a limiter says about itself."""
    if limiter is None or limiter.PER is None:
        return Quota() if limiter is None or limiter.COUNT is None else Quota(_count(limiter), None, limiter.can("early"))
    unit = str(getattr(limiter, limiter.PER)).upper()
    if unit in _UNITS:
        return Quota(_count(limiter), _UNITS[unit])
    seconds, rest = divmod(_per(limiter), 1000)
    return Quota() if rest else Quota(_count(limiter), seconds)


def _count(limiter: Limiter) -> int:
    """The count per time."""
    return 1 if limiter.COUNT is None else getattr(limiter, limiter.COUNT)


def _per(limiter: Limiter) -> int:
    """The time of the count, in milliseconds."""
    return milliseconds("window", getattr(limiter, str(limiter.PER)))


def combined_headers(
    named: Iterable[tuple[str, Answer]], *, allowed: bool, spread: Mapping[str, float] = NOT_SPREAD
) -> dict[str, str]:
    """Returns the headers of a response to which several policies belong.

    A refusal lists in `RateLimit` only the policies that refuse: `Retry-After` may not lie before their `t`.

    Args:
        named: The name of each policy, and its answer. Those without an answer are left out.
        allowed: Whether the request goes on.
        spread: Which part of its wait is added to it for the `Retry-After` of a policy, from waits of 5 s on.
    """
    known = [(name, each, quota_of(each.limiter)) for name, each in named if each.answered]
    left = [entry for entry in known if allowed or not entry[1].allowed]
    fields = {
        "RateLimit-Policy": ", ".join(_policy(*entry) for entry in known),
        "RateLimit": ", ".join(_left(*entry) for entry in left),
        "Retry-After": "" if allowed else _retry_after(left, spread),
    }
    return {name: value for name, value in fields.items() if value}


def legacy_headers(
    named: Iterable[tuple[str, Answer]], *, allowed: bool, now: float, spread: Mapping[str, float] = NOT_SPREAD
) -> dict[str, str]:
    """Returns the `X-RateLimit-*` headers of a response, which have room for one limit.

    Of an admitted request that is the limit with the least remaining, and of a refused one that with the longest wait.

    Args:
        named: The name of each policy, and its answer. Those without an answer are left out.
        allowed: Whether the request goes on.
        now: The Unix time in seconds.
        spread: As for `combined_headers`.
    """
    known = [(name, each, quota_of(each.limiter)) for name, each in named if each.answered and each.allowed is allowed]
    if not known:
        return {}
    waits = [0 if allowed else _wait(each, quota) for _, each, quota in known]
    binding = waits.index(None) if None in waits else waits.index(max(wait or 0 for wait in waits))
    each = min((each for _, each, _ in known), key=lambda each: each.remaining) if allowed else known[binding][1]
    fields = {
        "X-RateLimit-Limit": str(each.limit),
        "X-RateLimit-Remaining": str(each.remaining),
        "X-RateLimit-Reset": str(ceil(round((now + each.reset_after) * 1000) / 1000)),
        "Retry-After": "" if allowed else _retry_after(known, spread),
    }
    return {name: value for name, value in fields.items() if value}


def _retry_after(refused: Iterable[tuple[str, Answer, Quota]], spread: Mapping[str, float]) -> str:
    """The latest time of those that refuse, each spread by itself. Nothing if one of them never admits."""
    times: list[int] = []
    for name, each, quota in refused:
        wait, exact = _wait(each, quota), each.retry_after
        if wait is None or exact is None:
            return ""
        part = 0.0 if quota.lease or exact < SPREAD_FROM else spread.get(name, 0.0)
        times.append(wait + floor(wait * part + 0.5))
    return str(max(times)) if times else ""


def _policy(name: str, decision: Answer, quota: Quota) -> str:
    most = decision.limit if quota.most is None else quota.most
    unit = ';qu="concurrent-requests"' if quota.lease else ""
    window = "" if quota.window is None else f";w={quota.window}"
    return f"{_quoted(name)};q={min(most, MOST)}{unit}{window}"


def _left(name: str, decision: Answer, quota: Quota) -> str:
    """A lease has no `t`: it comes free when somebody is done, and nobody knows when."""
    wait = None if quota.lease else _more_after(decision) if decision.allowed else decision.retry_after
    t = "" if wait is None else f";t={_seconds(wait)}"
    return f"{_quoted(name)};r={min(decision.remaining, MOST)}{t}"


def _more_after(decision: Answer) -> float:
    """Returns the seconds until more is available after an admission: the reset, or less if nothing remains.

    If nothing remains of a bucket, more is available when the next request of cost 1 fits. That is when all but `limit - 1` of
    the limit is available: `3/m` with a reset of 60 s admits the next request after 60 - 2 * 20 s. Of a fixed window, nothing is
    available before the reset. Of a sliding window something may be, but the reply does not say when.
    """
    limiter = decision.limiter
    if decision.remaining > 0 or limiter is None or limiter.BURST is None:
        return decision.reset_after
    count, period, others = _count(limiter), _per(limiter), decision.limit - 1
    earlier = others // count * period if getattr(limiter, "batch", False) else others * period // count
    return decision.reset_after - earlier / 1000


def _wait(decision: Answer, quota: Quota) -> int | None:
    if decision.retry_after is None:
        return None
    return LEASE_RETRY if quota.lease else _seconds(decision.retry_after)


def _seconds(seconds: float) -> int:
    """Rounds up. The times are whole milliseconds, which a float may miss by a little."""
    return ceil(round(seconds * 1000) / 1000)


def _quoted(name: str) -> str:
    if not name.isascii() or not name.isprintable():
        raise ConfigurationError(f"the name of a policy must be printable ASCII, not {name!r}")
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
