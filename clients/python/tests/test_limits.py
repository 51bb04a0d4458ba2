"""What callers in Python may pass, or pass by mistake. The contract's cases show the calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from both import Maker
from redis_ratelimit import AsyncRateLimiter, ConfigurationError, RateLimiter


async def test_a_value_of_another_type_is_named(limiter: Any) -> None:
    calls: list[tuple[Callable[[], Awaitable[object]], str]] = [
        (lambda: limiter.limit({"no": "key"}, "1/s"), "a key must be text or bytes"),
        (lambda: limiter.limit("a", "1/s", cost=True), "cost must be an integer"),
        (lambda: limiter.limit("a", "1/s", cost=1.0), "cost must be an integer"),
        (lambda: limiter.limits(["a"], (each for each in ["1/s"])), "limits must be a list"),
        (lambda: limiter.limits(["a"], "1/s"), "limits must be a list"),
        (lambda: limiter.limits((each for each in "ab"), ["1/s"]), "keys must be a list"),
        (lambda: limiter.limits(["a", 5], ["1/s"]), "a key must be text or bytes"),
        (lambda: limiter.lease("a", 5, "1m", on_lost="stop"), "on_lost must be a function, not 'stop'"),
        (lambda: limiter.limits(["a"], ["1/s"], hold=("a",)), "hold must be a tuple of an id and a ttl"),
        (lambda: limiter.limits(["a"], ["1/s"], hold=["a", "1m"]), "hold must be a tuple of an id and a ttl"),
        (lambda: limiter.ask("a", "api", hold=(5, "1m")), "the id of hold must be"),
        (lambda: limiter.settle(["a"], "1/s", "id", "1m"), "limits must be a list"),
        (lambda: limiter.ready(policies="api"), "policies must be a list"),
    ]
    for call, message in calls:
        with pytest.raises(ConfigurationError, match=message):
            await call()
    assert limiter.counters["wrong_calls"] == limiter.counters["asked"] == 0


async def test_text_and_bytes_are_the_same_key(limiter: AsyncRateLimiter, key: str) -> None:
    assert await limiter.limit(key, "1/h")
    assert not await limiter.limit(key.encode(), "1/h")


@pytest.mark.parametrize("kind", [RateLimiter, AsyncRateLimiter])
def test_a_url_in_place_of_a_client_is_not_told(kind: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match="from_url.*, not str$") as raised:
        kind("redis://:secret@127.0.0.1")
    assert "secret" not in str(raised.value)


async def test_the_raw_commands_are_on_the_limiters_connections(make: Maker, key: str) -> None:
    limiter = make(prefix="raw:")
    reply: Any = limiter.commands.gcra(key, 1, 1, "1h")
    assert (await reply if make.kind == "asyncio" else reply).remaining == 1
