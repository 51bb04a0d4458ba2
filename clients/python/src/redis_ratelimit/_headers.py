"""The fields of draft-ietf-httpapi-ratelimit-headers-10, from decisions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from ._spec import Limiter
from ._values import Duration, milliseconds
from .errors import ConfigurationError

if TYPE_CHECKING:
    from ._decision import Decision

LEASE_RETRY = 1
"""Seconds after which to try again for a lease, which may be released at any time."""

# The count per time of each limiter, and the parameter that holds the time.
_COUNTS = {
    "GCRA": ("count", "period"),
    "SKETCH": ("count", "period"),
    "TOKENBUCKET": ("refill", "period"),
    "LEAKYBUCKET": ("leak", "period"),
    "SMOOTH": ("permits", "period"),
    "FIXEDWINDOW": ("limit", "window"),
    "SLIDINGWINDOW": ("limit", "window"),
    "SLIDINGLOG": ("limit", "window"),
}
# Of these, that count becomes available per time, evenly or in batches. The reset is when the whole limit is available.
_BUCKETS = ("GCRA", "SKETCH", "TOKENBUCKET", "LEAKYBUCKET")
# Months and longer units differ in length.
_CALENDAR = {"HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}


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
    return Quota() if limiter is None else _QUOTAS.get(limiter.NAME, _unknown)(limiter)


def _per(count: int, window: int) -> Quota:
    seconds, rest = divmod(window, 1000)
    return Quota() if rest else Quota(count, seconds)


def _unknown(_: Limiter) -> Quota:
    return Quota()


def _counted(limiter: Limiter) -> Quota:
    return _per(*_count_per_ms(limiter))


def _count_per_ms(limiter: Limiter) -> tuple[int, int]:
    count, window = (getattr(limiter, name) for name in _COUNTS[limiter.NAME])
    return count, milliseconds("window", window)


def _calendar(limiter: Limiter) -> Quota:
    limit, unit = getattr(limiter, "limit"), getattr(limiter, "unit")
    return Quota(limit, _CALENDAR.get(str(unit).upper()))


def _uniform(limiter: Limiter) -> Quota:
    interval: Duration = getattr(limiter, "interval")
    return _per(1, milliseconds("interval", interval))


def _lease(limiter: Limiter) -> Quota:
    return Quota(getattr(limiter, "capacity"), None, lease=True)


_QUOTAS = {name: _counted for name in _COUNTS} | {"CALENDAR": _calendar, "UNIFORM": _uniform, "CONCURRENT": _lease}


def header_fields(named: Sequence[tuple[str, Decision, Quota]], allowed: bool) -> dict[str, str]:
    """Returns the headers for policies, each with its name, its answer and its quota."""
    if not named:
        return {}
    left = [(name, each, quota) for name, each, quota in named if allowed or not each.allowed]
    fields = {
        "RateLimit-Policy": ", ".join(_policy(*entry) for entry in named),
        "RateLimit": ", ".join(_left(*entry) for entry in left),
    }
    if not allowed:
        waits = [_wait(each, quota) for _, each, quota in left]
        known = [wait for wait in waits if wait is not None]
        if known and len(known) == len(waits):
            fields["Retry-After"] = str(max(known))
    return {name: value for name, value in fields.items() if value}


def _policy(name: str, decision: Decision, quota: Quota) -> str:
    most = decision.limit if quota.most is None else quota.most
    unit = ';qu="concurrent-requests"' if quota.lease else ""
    window = "" if quota.window is None else f";w={quota.window}"
    return f"{_quoted(name)};q={most}{unit}{window}"


def _left(name: str, decision: Decision, quota: Quota) -> str:
    """A lease has no `t`: it comes free when somebody is done, and nobody knows when."""
    wait = None if quota.lease else _more_after(decision) if decision.allowed else decision.retry_after
    t = "" if wait is None else f";t={_seconds(wait)}"
    return f"{_quoted(name)};r={decision.remaining}{t}"


def _more_after(decision: Decision) -> float:
    """Returns the seconds until more is available after an admission: the reset, or less if nothing remains.

    If nothing remains of a bucket, more is available when the next request of cost 1 fits. That is when all but `limit - 1` of
    the limit is available: `3/m` with a reset of 60 s admits the next request after 60 - 2 * 20 s. Of a fixed window, nothing is
    available before the reset. Of a sliding window something may be, but the reply does not say when.
    """
    limiter = decision.limiter
    if decision.remaining > 0 or limiter is None or limiter.NAME not in _BUCKETS:
        return decision.reset_after
    count, period = _count_per_ms(limiter)
    others = decision.limit - 1
    earlier = others // count * period if getattr(limiter, "batch", False) else others * period // count
    return decision.reset_after - earlier / 1000


def _wait(decision: Decision, quota: Quota) -> int | None:
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
