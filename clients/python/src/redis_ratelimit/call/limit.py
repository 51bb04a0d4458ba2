"""A limiter with its parameters, and a limit: a limiter with the key, the cost and the manner that it has in a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, TypeAlias, TypeGuard

from .errors import ConfigurationError
from .tenant import tenant_words
from .values import LONGEST, NAMED_UNITS, UNITS, Key, Word, calendar_unit, flags, integer, of_calendar, quoted, text

MOST = 9_007_199_254_740_991
"""2^53 - 1, the largest count."""

LONGEST_RATE = 64
_RATE = re.compile(r"\s*([0-9]{1,20})\s*(?:/|\bper\b)\s*([0-9]{1,20})?\s*([a-z]+)\s*", re.ASCII)
_WITHOUT_UNIT = re.compile(r"\s*[0-9]+\s*(?:/|\bper\b)\s*[0-9]+\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Limiter:
    """The base of all limiter classes. A limiter is checked when it is made, and does not change.

    Attributes:
        words: The name and the parameters, as they stand behind `LIMIT` in a call.
    """

    NAME: ClassVar[str] = ""
    COMMAND: ClassVar[str] = ""
    CAPABILITIES: ClassVar[frozenset[str]] = frozenset()
    """What it can do without options, by the names of clients/contract/catalog.json."""
    BURST: ClassVar[str | None] = None
    """The parameter with the most at once, if it is another one than `COUNT`."""
    COUNT: ClassVar[str | None] = None
    """The parameter with the count per time. If there is only `PER`, the count is 1."""
    PER: ClassVar[str | None] = None
    """The parameter with that time."""
    words: tuple[Word, ...] = field(init=False, repr=False, compare=False, default=())

    def can(self, capability: str) -> bool:
        """Whether it can do this besides admitting and refusing, such as `hold` or `refund`."""
        return capability in self.CAPABILITIES

    def _set_words(self, words: Iterable[Word]) -> None:
        object.__setattr__(self, "words", (self.NAME, *words))


LimiterLike: TypeAlias = Limiter | str
"""A limiter, or a rate such as `"10/s"`."""


@lru_cache(maxsize=1024)
def parse_rate(rate: str) -> tuple[int, str]:
    """Returns the count and the period of a rate such as `"10/s"`, `"100/15m"` or `"10 per minute"`. It keeps its unit."""
    match = _RATE.fullmatch(rate) if len(rate) <= LONGEST_RATE else None
    unit = match and NAMED_UNITS.get(match[3])
    if match is None or unit is None:
        such = "a whole number per time, such as '10/s' or '100 per 15 minutes'"
        raise ConfigurationError(f"a rate is {such}, not {quoted(rate)}{_hint(rate)}")
    count = integer(f"the count of {rate!r}", int(match[1]), 1, MOST)
    period = int(match[2] or 1)
    integer(f"the period of {rate!r}", period * UNITS[unit], 1, LONGEST, " ms")
    return count, f"{period}{unit}"


def is_rate(key: Key) -> bool:
    """Whether a key looks like a rate."""
    return isinstance(key, str) and len(key) <= LONGEST_RATE and _RATE.fullmatch(key) is not None


def is_policy(limiter_or_policy: object) -> TypeGuard[str]:
    """Whether text is the name of a policy. Rates have a slash or a space, and names have none."""
    return isinstance(limiter_or_policy, str) and not any(each in limiter_or_policy for each in "/ ")


def _hint(rate: str) -> str:
    """What the writer of a wrong rate may have meant."""
    if len(rate) > LONGEST_RATE:
        return ""
    if unit := calendar_unit(re.split(r"/|\bper\b", rate)[-1]):
        return of_calendar(unit)
    if _WITHOUT_UNIT.fullmatch(rate):
        return f": the time needs a unit: '{rate.strip()}s' or '{rate.strip()}m'"
    lower = _RATE.fullmatch(rate.lower())
    if lower is not None and lower[3] in NAMED_UNITS:
        return f": units are lower case: {rate.lower()!r}"
    if lower is not None:
        return f": units are {', '.join(UNITS)} and their English names"
    return f": a policy is asked by ask(key, policy), and a rule has it as its policy" if _is_name(rate) else ""


def _is_name(rate: str) -> bool:
    """Whether text rather is a policy's name than a number or a duration."""
    return bool(rate) and is_policy(rate) and not rate[0].isdecimal()


def check_policy(policy: object) -> None:
    """Checks the name of a policy."""
    if isinstance(policy, (Limiter, Limit)) or (isinstance(policy, str) and not is_policy(policy)):
        raise ConfigurationError(f"policy must be a name, not {quoted(policy)}: a limiter or a rate is asked by limit()")
    if not isinstance(policy, str):
        raise ConfigurationError(f"policy must be text of 1 to 64 bytes, not {policy!r}")
    text("policy", policy, 64)


def wrong_limiter(limiter: object) -> ConfigurationError:
    """Returns the error for what is no limiter."""
    kind = "list" if isinstance(limiter, (list, tuple)) else "Limit" if isinstance(limiter, Limit) else ""
    several = f": a {kind} is for limits(keys, limits)" if kind else ""
    such = "an instance such as Gcra(9, 10, '1s'), or a rate such as '10/s'"
    return ConfigurationError(f"a limiter is {such}, not {limiter!r}{several}")


def limiter_words(limiter: LimiterLike, *, lease_id: bool = True) -> tuple[Word, ...]:
    """Returns the name and the parameters of a limiter. A lease needs its id, unless `lease_id` is False."""
    if isinstance(limiter, str):
        count, period = parse_rate(limiter)
        return ("GCRA", count - 1, count, period)
    if not isinstance(limiter, Limiter):
        raise wrong_limiter(limiter)
    if lease_id and limiter.NAME == "CONCURRENT" and getattr(limiter, "id", None) is None:
        needed = "the id of the lease: Concurrent(capacity, ttl, id)"
        raise ConfigurationError(f"a call with Concurrent needs {needed}. A lease() has one of its own")
    return limiter.words


@dataclass(frozen=True, slots=True)
class Limit:
    """A limiter in a call with several limits.

    Args:
        limiter: The limiter, or a rate such as `"10/s"`.
        on: The number of the only key that the limit is for, from 1. All keys by default.
        cost: The limit's own cost. By default it is that of the call, and 1 for leases and gates.
        shadow: Whether the limit is only tried: it answers for itself, and refuses no call.
        tenant: Who shares the limit fairly with others, if the call waits or the limit is on leases.
        weight: The share of the tenant (1 to 1000). Without it the tenant keeps the one that it has, at first 1.
    """

    limiter: LimiterLike
    on: int | None = None
    cost: int | None = None
    shadow: bool = False
    tenant: str | None = None
    weight: int | None = None

    def __post_init__(self) -> None:
        limiter_words(self.limiter, lease_id=False)
        if self.on is not None:
            integer("on", self.on, 1, 64)
        if self.cost is not None:
            integer("cost", self.cost, 0, MOST)
        flags(shadow=self.shadow)
        tenant_words(self.tenant, self.weight)

    def options(self, *, on: bool = True) -> list[Word]:
        """Returns the words behind the limiter's."""
        words: list[Word] = []
        if on and self.on is not None:
            words += ("ON", self.on)
        if self.cost is not None:
            words += ("COST", self.cost)
        if self.shadow:
            words.append("SHADOW")
        return [*words, *tenant_words(self.tenant, self.weight)]


LimitLike: TypeAlias = Limit | Limiter | str
"""A limit, a limiter, or a rate such as `"10/s"`."""


def limits_words(limits: Sequence[LimitLike], *, lease_id: bool = True) -> list[Word]:
    """Returns the words of all limits, each with LIMIT before it."""
    check_limits(limits)
    words: list[Word] = []
    for limit in limits:
        limiter = limit.limiter if isinstance(limit, Limit) else limit
        if isinstance(limiter, Limiter) and not limiter.can("joint"):
            raise ConfigurationError(f"{limiter!r} is not for calls with several limits")
        words += ("LIMIT", *limiter_words(limiter, lease_id=lease_id))
        if isinstance(limit, Limit):
            words += limit.options()
    return words


def check_limits(limits: Sequence[LimitLike]) -> None:
    """Checks that limits are a list. The characters of text would be taken for limits."""
    if not limits or isinstance(limits, str) or not isinstance(limits, Sequence):
        raise ConfigurationError(f"limits must be a list of at least one limit, not {limits!r}")
    integer("the number of limits", len(limits), 1, 64)
