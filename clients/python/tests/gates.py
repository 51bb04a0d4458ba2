"""Gates of the middleware whose requests are dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from redis_ratelimit import Concurrent, RateLimiter, SlidingLog, TokenBucket
from redis_ratelimit.types import LimiterLike
from redis_ratelimit.gate.entrance_threads import Gate
from redis_ratelimit.gate.passage import Passage
from redis_ratelimit.gate.response import Refusal
from redis_ratelimit.gate.rules import UNLIMITED, Rule, Unlimited
from redis_ratelimit.gate.shed import Shed

Request: TypeAlias = dict[str, Any]
HOUR = SlidingLog(3, "1h")
BUCKET = TokenBucket(1000, 1000, "1d")


def caller(request: Request) -> str | Unlimited:
    user = request.get("user")
    return UNLIMITED if user is None else str(user)


def gate(limiter: RateLimiter, *rules: Rule[Request], shed: Shed[Request] | None = None) -> Gate[Request]:
    return Gate(limiter, rules, shed)


def rule(
    name: str = "default",
    limit: LimiterLike | Callable[[Request], LimiterLike | Unlimited | None] | None = HOUR,
    policy: str | Callable[[Request], str | Unlimited | None] | None = None,
    cost: int | Callable[[Request], int] = 1,
    estimate: int | Callable[[Request], int] | None = None,
    hold: str = "10m",
    counts: Callable[[int], bool] | None = None,
) -> Rule[Request]:
    return Rule(name, caller, limit, policy=policy, cost=cost, estimate=estimate, hold=hold, counts=counts)


def passed(entered: Passage | Refusal) -> Passage:
    assert isinstance(entered, Passage), "it is refused"
    return entered


def refused(entered: Passage | Refusal) -> Refusal:
    assert isinstance(entered, Refusal), "it is not refused"
    return entered


def remaining(limiter: RateLimiter, key: str, limit: LimiterLike = HOUR) -> int:
    return limiter.peek(key, limit, 0).remaining


def free(limiter: RateLimiter, key: str, capacity: int = 2) -> int:
    return limiter.peek(key, Concurrent(capacity, "1m", "nobody"), 0).remaining


def held(limiter: RateLimiter, key: str) -> bool:
    return bool((limiter.commands.info(key) or {}).get("holds"))
