"""What a process admits while the server does not answer: its share of the limit, as if there were only these processes.

Each process admits B = max(1, ⌊C / processes⌋) at once, and then r / processes, where C is the most that the limit admits
at once and r its rate. In any time t, n processes that are cut off admit at most n * (B + r * t / processes): at most the
limit once more if C is at least `processes`. What they admit is not charged later."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from threading import RLock
from typing import Literal, NamedTuple

from ..call.errors import ConfigurationError
from ..call.limit import Limit
from ..call.questions import Question
from ..call.rate import limiter_of
from ..call.steady import SteadyRate, steady_rate
from ..call.values import integer, key_bytes
from .fork import after_fork

MOST_KEYS = 10_000
SWEEP = 1.0
"""Seconds between two looks for keys that are full again."""


@dataclass(frozen=True, slots=True)
class Share:
    """Lets each process admit its share of a limit while the server does not answer.

    Args:
        processes: How many processes ask the limits. With more than this they admit more than the limit.
        otherwise: What leases, load shedding, policies, and the limiters `Calendar`, `Penalty` and `Smooth` decide, which
            have no rate to share. Without it they are an error.
    """

    processes: int
    _: KW_ONLY
    otherwise: Literal["open", "closed"] | None = None

    def __post_init__(self) -> None:
        integer("processes", self.processes, 1)
        if self.otherwise not in (None, "open", "closed"):
            raise ConfigurationError(f"otherwise must be 'open' or 'closed', not {self.otherwise!r}")


class Claim(NamedTuple):
    """What a call takes of a share.

    Attributes:
        place: What has the share: a key with a limiter.
        rate: The rate of all processes.
        processes: How many these are.
        cost: What the call takes.
    """

    place: Hashable
    rate: SteadyRate
    processes: int
    cost: int


class Verdict(NamedTuple):
    """The answer to claims. The numbers are of the claim that binds, and the times are seconds."""

    allowed: bool
    limit: int
    remaining: int
    retry_after: float
    reset_after: float


class Insurance:
    """The shares of a process. It keeps 10,000 keys; more of them are refused until others are full again."""

    def __init__(self) -> None:
        # How much of each share is left, as of when, and when it is full again. One that is missing is full.
        self._left: dict[Hashable, tuple[float, float, float]] = {}
        self._swept = float("-inf")
        self.forked()
        after_fork(self)

    def __len__(self) -> int:
        return len(self._left)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()

    def take(self, claims: Sequence[Claim], now: float, *, charges: bool = True) -> Verdict:
        """Admits a call if all its claims fit, and then takes them.

        Args:
            claims: The claims, at least one, each for another place.
            now: The time.
            charges: Whether anything is taken.
        """
        with self._lock:
            fits = [self._fit(claim, now, charges) for claim in claims]
            allowed = all(verdict.allowed for verdict, _ in fits)
            if allowed and charges:
                for claim, (verdict, left) in zip(claims, fits, strict=True):
                    self._left[claim.place] = left, now, now + verdict.reset_after
        verdicts = [verdict for verdict, _ in fits]
        if not verdicts:
            return Verdict(True, 0, 0, 0.0, 0.0)
        if allowed:
            return min(verdicts, key=lambda verdict: verdict.remaining)
        return max((each for each in verdicts if not each.allowed), key=lambda verdict: verdict.retry_after)

    def _fit(self, claim: Claim, now: float, charges: bool) -> tuple[Verdict, float]:
        """Whether a claim fits, and how much of its share would remain."""
        most = max(1, claim.rate.most // claim.processes)
        if claim.place not in self._left and not self._has_room(now):
            return Verdict(False, most, 0, SWEEP, 0.0), 0.0
        # A float of at most 2^53, which is off by far less than 1: one call more or less in a very long time.
        interval = claim.processes * claim.rate.period / claim.rate.count / 1000
        before, at, _ = self._left.get(claim.place, (most, now, now))
        left = min(most, before + (now - at) / interval)
        allowed = claim.cost <= left
        retry = 0.0 if allowed else (claim.cost - left) * interval
        left -= claim.cost if allowed and charges else 0
        return Verdict(allowed, most, int(left), retry, (most - left) * interval), left

    def _has_room(self, now: float) -> bool:
        """Whether there is room for another key, after those that are full again have gone."""
        if len(self._left) >= MOST_KEYS and now - self._swept >= SWEEP:
            self._swept = now
            self._left = {place: left for place, left in list(self._left.items()) if left[2] > now}
        return len(self._left) < MOST_KEYS


def claims_of(question: Question, processes: int) -> list[Claim] | None:
    """Returns what a question takes of shares, or None if it asks what has no rate."""
    if not question.several:
        return None
    claims: list[Claim] = []
    keys = [key_bytes(key) for key in question.call.keys]
    for each in question.several:
        limit = each if isinstance(each, Limit) else Limit(each)
        limiter = limiter_of(limit.limiter)
        rate = steady_rate(limiter)
        if rate is None:
            return None
        if limit.shadow:
            continue
        cost = limit.cost if limit.cost is not None else min(1, question.cost) if limiter.can("one_each") else question.cost
        cost = 0 if question.call.gives_back else cost
        for key in keys if limit.on is None else keys[limit.on - 1 : limit.on]:
            claims.append(Claim((key, limiter.words, processes), rate, processes, cost))
    return claims
