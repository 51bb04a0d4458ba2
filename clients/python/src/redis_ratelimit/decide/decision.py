"""The answer to a request: whether it may go on, what is left, and when to come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from ..call.errors import ConfigurationError, RateLimitError
from ..call.limit import Limiter
from .errors import Unavailable
from .headers import combined_headers

Source: TypeAlias = Literal["server", "cache", "local", "insurance"]
"""Who decided: the server, the cache of refusals, what was taken ahead, or the share of a process without an answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a limiter. It is true if the request is allowed.

    Attributes:
        allowed: Whether the request may go on.
        limit: The most that could ever be admitted at once.
        remaining: The most that would be admitted right now, after this call.
        retry_after: Refused: the seconds until this very request would be admitted, or None if it never will be.
            Allowed: the seconds to wait before acting, 0 unless the request is queued or booked ahead.
        reset_after: The seconds until the key is fully reset.
        granted: With `partial`, how much was granted.
        answered: False if the server did not decide. Then `allowed` is what `fail` says, and the numbers are 0 or those of
            the process's share.
        error: Why the server did not decide.
        limiter: The limiter that decided, where it is known. The headers have its count and its time.
        source: Who decided. None if the limiter failed open or closed.
        charged: What the call has charged, as far as it is known.
    """

    allowed: bool
    limit: int
    remaining: int
    retry_after: float | None
    reset_after: float
    granted: int | None = None
    answered: bool = True
    error: Unavailable | None = None
    limiter: Limiter | None = field(default=None, repr=False, compare=False)
    source: Source | None = "server"
    charged: int = field(default=0, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    def crosses(self, fraction: float) -> bool:
        """Whether this call was the one that used up a share of the limit, such as 0.8 for a warning at 80 %.

        Of several limits, whether it crossed that share of any of them. It is false for a refusal, for a look, and without
        an answer.

        Args:
            fraction: The share, above 0 and at most 1.

        Raises:
            ConfigurationError: The share is wrong.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
            raise ConfigurationError(f"fraction must be a number above 0 and at most 1, not {fraction!r}")
        return self._crosses(fraction)

    def _crosses(self, fraction: float) -> bool:
        if not (self.answered and self.allowed and self.charged > 0 and self.limit > 0):
            return False
        after = self.limit - self.remaining
        return max(0, after - self.charged) / self.limit < fraction <= after / self.limit

    def headers(self, name: str = "default") -> dict[str, str]:
        """Returns the headers of the response: `RateLimit-Policy`, `RateLimit`, and `Retry-After` with a refusal.

        Seconds are rounded up. There are no headers if the server did not decide, and no `Retry-After` if the request
        will never be admitted.

        Args:
            name: The name of the policy, which clients see.
        """
        return combined_headers([(name, self)], allowed=self.allowed)


@dataclass(frozen=True, slots=True)
class LeaseDecision(Decision):
    """The answer to a lease.

    Attributes:
        fence: With `fence`, the fencing token of the lease. None if none was taken.
    """

    fence: int | None = None


@dataclass(frozen=True, slots=True)
class SettledDecision(Decision):
    """The answer to a settlement: how the limit stands after it.

    Attributes:
        settled: Whether something was held under the id.
    """

    settled: bool = False


@dataclass(frozen=True, slots=True)
class MultiDecision(Decision):
    """The answer of several limits. The call is allowed if all limits allow it.

    Attributes:
        each: The answer of each limit on each key, limits outermost.
        settled: After a settlement, the number of keys that held one of the limits.
    """

    each: tuple[Decision, ...] = ()
    settled: int | None = None

    def _crosses(self, fraction: float) -> bool:
        return self.allowed and any(each.crosses(fraction) for each in self.each)


@dataclass(frozen=True, slots=True)
class AskDecision(Decision):
    """The answer of a policy.

    Attributes:
        binding: The number of the pair of a limit and a key that binds, from 1, limits outermost. If refused, it is the
            one with the longest wait, else the one with the least remaining. None if no limit takes part in the answer.
        each: With `full`, the answer of each pair.
        settled: After a settlement, the number of keys that held one of the limits.
    """

    binding: int | None = None
    each: tuple[Decision, ...] = ()
    settled: int | None = None


class Refused(RateLimitError):
    """A lease or a hold was refused.

    Attributes:
        decision: The refusal, with `retry_after`.
    """

    def __init__(self, decision: Decision) -> None:
        wait = decision.retry_after
        super().__init__("refused, and will never be admitted" if wait is None else f"refused for {wait * 1000:.0f} ms")
        self.decision = decision

    def __reduce__(self) -> tuple[type[Refused], tuple[Decision]]:
        return type(self), (self.decision,)


class ShedReply(NamedTuple):
    """Whether a call is shed, and the chance of that, from 0 to 1."""

    shed: bool
    chance: float


class TopEntry(NamedTuple):
    """A key that is refused often: its database, its refusals, and by how much these may be too many."""

    key: str
    database: int
    refusals: int
    error: int


Info = Mapping[str, object]
"""What a key holds. The names of the fields are those of RL.INFO."""
