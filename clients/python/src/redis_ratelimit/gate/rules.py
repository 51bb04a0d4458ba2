"""Rules of the middleware: whose limit it is, which limit it is, and what a request costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from ..call.errors import ConfigurationError
from ..call.limit import MOST, Limit, Limiter, LimiterLike, check_policy
from ..call.rate import limiter_of
from ..call.steady import checked_limit, steady_rate
from ..call.values import Duration, check_duration, decimal, flags, integer, shortest, text
from ..wire.ready import Check
from .shed import Shed

Req = TypeVar("Req", contravariant=True)
T = TypeVar("T")
Given: TypeAlias = T | Awaitable[T]
"""What a function of a rule returns. In front of an ASGI application it may be asynchronous."""
Resolving: TypeAlias = Generator[Awaitable[object], object, T]

MOST_RULES = 64


class Unlimited(Enum):
    """What a rule's function returns for a request that the rule is not for."""

    UNLIMITED = "unlimited"


UNLIMITED = Unlimited.UNLIMITED


# Without slots, since `Rule[Request](…)` sets an attribute.
@dataclass(frozen=True)
class Rule(Generic[Req]):
    """A limit on requests. It is checked when it is made, as far as that is possible without the server.

    A rule is for each request, unless a function returns `UNLIMITED`. If one returns None, or `key` an empty text, the
    request fails with a ConfigurationError, whatever the limiter's `fail` says. A `Concurrent` limit without an id is a lease
    for the length of the response. With `LeakyBucket` and `Smooth` an admitted request waits for its turn before it goes on.
    It waits at most as long as the bucket takes to drain, or as the `maxwait` of `Smooth`, which a rule needs.

    With asyncio the functions may be asynchronous, so that a key or a plan may come from a database.

    A rule with an `estimate` is a budget: it is charged the estimate, and after the response what the handler counted in `spent`
    under the rule's name. If it counted nothing, the estimate stands.

    A rule with `counts` is only for some responses, such as failed logins: `counts=lambda status: status >= 400`. It is charged its
    cost, and gets it back after a response that does not count. So requests in progress count as well, and a client cannot
    try more at once than the limit has room for. A request without a response counts, as if the client has gone or the server
    has ended. So does one for which `counts` raises an exception, and a line is logged.

    Args:
        name: The name, which clients see in headers, and the first part of the keys. Printable ASCII.
        key: Returns the caller as text, such as a user's id or an address. Redis stores it as plain text in the name of the
            key, so do not take a secret such as an API key or a session's id.
        limit: The limiter, or a rate such as `"100/m"`. Or what returns it for a request, as for plans.
        policy: In place of `limit` the name of a policy on the server, or what returns it.
        cost: What a request takes, or what returns it (0 to 9007199254740991; 0 only looks).
        estimate: In place of `cost` the most that the request may take. It is at least 1.
        counts: Returns whether a response counts, by its status. It is synchronous. The limit is one that can be held, and the
            rule has neither an `estimate` nor `local`.
        hold: For how long the estimate, or the cost with `counts`, can be settled: longer than the longest response. After it
            the charge stands.
        spread: By which part of it `Retry-After` is longer at most, from 5 s on (0 to 1), so that not all refused callers come
            back at one moment. A caller, by the hash slot of its key, gets the same part each time.
        websocket: Whether the rule is for the handshakes of WebSockets too.
        local: The number of processes that ask this limit, if each of them answers from memory: see `RateLimiter.local`. For a
            rate, a `Gcra`, or a `TokenBucket` without `batch`.

    Raises:
        ConfigurationError: A value is wrong.
    """

    name: str
    key: Callable[[Req], Given[str | Unlimited | None]]
    limit: LimiterLike | Callable[[Req], Given[LimiterLike | Unlimited | None]] | None = None
    _: KW_ONLY
    policy: str | Callable[[Req], Given[str | Unlimited | None]] | None = None
    cost: int | Callable[[Req], Given[int]] = 1
    estimate: int | Callable[[Req], Given[int]] | None = None
    counts: Callable[[int], object] | None = None
    hold: Duration = "10m"
    spread: float = 0
    websocket: bool = True
    local: int | None = None

    def __post_init__(self) -> None:
        with _named(self.name):
            text("name", self.name)
            if not (self.name.isascii() and self.name.isprintable()):
                raise ConfigurationError("a name is printable ASCII")
            if (self.limit is None) == (self.policy is None):
                raise ConfigurationError("it needs either a limit or a policy")
            if not callable(self.key):
                raise ConfigurationError(f"key must be a function of the request, not {self.key!r}")
            if self.local is not None:
                integer("local", self.local, 1, MOST)
                if self.policy is not None or self.estimate is not None or self.counts is not None:
                    raise ConfigurationError("what is answered locally has neither a policy nor an estimate nor counts")
            if self.estimate is not None and self.cost != 1:
                raise ConfigurationError("cost and estimate exclude each other")
            if self.counts is not None:
                if not callable(self.counts) or iscoroutinefunction(self.counts):
                    raise ConfigurationError(f"counts must be a synchronous function of the status, not {self.counts!r}")
                if self.estimate is not None:
                    raise ConfigurationError("counts and estimate exclude each other")
            if not callable(self.cost):
                integer("cost", self.cost, 0, MOST)
            if not callable(self.estimate) and self.estimate is not None:
                integer("estimate", self.estimate, 1, MOST)
            check_duration("hold", self.hold, 1)
            decimal("spread", self.spread, 0, 1)
            flags(websocket=self.websocket)
            if self.policy is not None and not callable(self.policy):
                check_policy(self.policy)
            if not callable(self.limit) and self.limit is not None:
                self._checked(self.limit)

    def asked(self, request: Req) -> Resolving[AskedLimit | AskedPolicy | None]:
        """Returns what the rule asks for a request, or None if it is not for it. It yields what is to be awaited."""
        with _named(self.name):
            key = yield from _given(self.key, request)
            if isinstance(key, Unlimited):
                return None
            caller = _caller(key)
            if self.policy is not None:
                policy = yield from _given(self.policy, request)
                if isinstance(policy, Unlimited):
                    return None
                check_policy(policy)
                cost = yield from self._cost(request)
                return AskedPolicy(self.name, caller, *cost, self.hold, self.counts, str(policy))
            limit = yield from _given(self.limit, request)
            if isinstance(limit, Unlimited):
                return None
            if limit is None:
                raise ConfigurationError("limit returned None; UNLIMITED says that there is none")
            cost = yield from self._cost(request)
            return AskedLimit(
                self.name, caller, *cost, self.hold, self.counts, self._checked(cast(LimiterLike, limit)), self.local
            )

    @property
    def has_rate(self) -> bool:
        """Whether processes can share its limit, as far as that is known before there is a request."""
        return self.policy is None and (
            self.limit is None or callable(self.limit) or steady_rate(self._checked(self.limit)) is not None
        )

    def claim(self) -> str | None:
        """Returns what the rule counts under its name. None if a function says it for each request."""
        if callable(self.policy) or callable(self.limit):
            return None
        return f"the policy {self.policy!r}" if self.limit is None else _counting(self._checked(self.limit))

    def check(self) -> Check | None:
        """Returns what can be asked at start: of a function only whether the module and the right are there."""
        what = f"rule {self.name!r}"
        if self.policy is not None:
            return Check(what, policy=self.policy, rule=True) if isinstance(self.policy, str) else None
        limit = "1/s" if self.limit is None or callable(self.limit) else self.limit
        return Check(what, Limit(limit), rule=True)

    def _cost(self, request: Req) -> Resolving[tuple[int, bool]]:
        if self.estimate is None:
            cost = integer("cost", (yield from _given(self.cost, request)), 0, MOST)
            return cost, self.counts is not None and cost > 0
        estimate = yield from _given(self.estimate, request)
        return max(1, integer("estimate", estimate, None, MOST)), True

    def _checked(self, limit: LimiterLike) -> Limiter:
        if self.local is not None:
            return checked_limit(limit)[0]
        limiter = limiter_of(limit)
        if not limiter.can("joint"):
            raise ConfigurationError(f"{limiter!r} is not for rules")
        if limiter.NAME == "SMOOTH" and getattr(limiter, "maxwait", None) is None:
            raise ConfigurationError("SMOOTH needs a maxwait, since admitted requests wait for their turn")
        if limiter.NAME == "CONCURRENT" and getattr(limiter, "id", None) is not None:
            raise ConfigurationError("a lease has no id: each request gets one of its own")
        if not (self.estimate is None and self.counts is None) and not limiter.can("hold"):
            raise ConfigurationError(f"{limiter!r} cannot be held, so it has neither an estimate nor counts")
        return limiter


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rule asks for a request.

    Attributes:
        rule: The name of the rule.
        key: The caller at first, and then the key.
        cost: The cost or the estimate.
        budget: Whether the cost is held, and settled after the response.
        hold: For how long it can be settled.
        counts: Whether a response counts, by its status. None: the handler says what it has spent.
    """

    rule: str
    key: str
    cost: int
    budget: bool
    hold: Duration
    counts: Callable[[int], object] | None

    def on(self, key: str) -> Self:
        """Returns the same with its key."""
        return replace(self, key=key)


@dataclass(frozen=True, slots=True)
class AskedLimit(Asked):
    """A limit, whose limiter the application knows."""

    limiter: Limiter
    local: int | None = None


@dataclass(frozen=True, slots=True)
class AskedPolicy(Asked):
    """The name of a policy."""

    policy: str


def checked_rules(rules: Iterable[Rule[Req]], shed: Shed[Req] | None) -> tuple[Rule[Req], ...]:
    """Returns the rules, if they are rules with different names, and there is anything to ask."""
    if isinstance(rules, (str, bytes, Rule)) or not isinstance(cast(object, rules), Iterable):
        raise ConfigurationError(f"rules must be a list of rules, not {rules!r}")
    if not isinstance(cast(object, shed), Shed | None):
        raise ConfigurationError(f"shed must be a Shed or None, not {shed!r}")
    checked = tuple(rules)
    for rule in checked:
        if not isinstance(cast(object, rule), Rule):
            raise ConfigurationError(f"a rule must be a Rule, not {rule!r}")
    if len(checked) > MOST_RULES:
        raise ConfigurationError(f"there are {len(checked)} rules, but a call takes at most {MOST_RULES} limits")
    names = [rule.name for rule in checked]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"each rule has a name of its own, not {names!r}")
    if not checked and shed is None:
        raise ConfigurationError("there are neither rules nor a Shed, so nothing would be limited")
    return checked


def claim(claims: dict[str, str], rules: Iterable[Rule[Req]]) -> None:
    """Notes the limits of a gate among those of all gates of a limiter: gates share the keys of a rule, by its name.

    Raises:
        ConfigurationError: Another gate has another limit under a name, so that both would charge the same keys.
    """
    own = {rule.name: claim for rule in rules if (claim := rule.claim()) is not None}
    for name, limit in own.items():
        if (other := claims.get(name, limit)) != limit:
            raise ConfigurationError(
                f"rule {name!r}: another gate of this limiter has it with {other}, and this one with {limit}, so they"
                " would share a count: give one of them another name"
            )
    claims |= own


def _counting(limiter: Limiter) -> str:
    """The words that say what a limiter counts, the same for equal limits. CRITICAL belongs to the request."""
    words = (shortest(word) if isinstance(word, str) else str(word) for word in limiter.words if word != "CRITICAL")
    return " ".join(words)


def _given(function: object, request: object) -> Resolving[Any]:
    """A value, or what a function returns for a request."""
    value = function(request) if callable(function) else function
    if not isawaitable(value):
        return value
    awaited = yield value
    if awaited is value:  # nobody has awaited it
        if iscoroutine(value):
            value.close()
        raise ConfigurationError("an asynchronous function needs an AsyncRateLimiter")
    return awaited


def _caller(caller: object) -> str:
    if not isinstance(caller, str) or not caller:
        raise ConfigurationError(f"key must return text that is not empty, or UNLIMITED, not {caller!r}")
    # A URL may hold lone surrogates, which UTF-8 has no bytes for.
    return caller.encode(errors="backslashreplace").decode()


@contextmanager
def _named(name: str) -> Generator[None]:
    """Says in an error which rule it is about."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"rule {name!r}: {error}") from error
