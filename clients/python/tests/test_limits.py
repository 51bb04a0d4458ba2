"""Limits, several limits, policies, probes and refunds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from both import Maker
from redis_ratelimit import (
    AskDecision,
    AsyncRateLimiter,
    CallError,
    Concurrent,
    ConfigurationError,
    FixedWindow,
    Gcra,
    Limit,
    Penalty,
    RateLimiter,
    Sketch,
    SlidingLog,
)
from servers import Server


async def test_a_burst_and_then_a_refusal(limiter: AsyncRateLimiter, key: str) -> None:
    answers = [await limiter.limit(key, "3/h") for _ in range(4)]
    assert [bool(each) for each in answers] == [True, True, True, False]
    assert [each.remaining for each in answers] == [2, 1, 0, 0]
    assert 0 < (answers[3].retry_after or 0) <= 1200
    assert answers[0].answered and answers[0].error is None


async def test_a_cost_and_a_look(limiter: AsyncRateLimiter, key: str) -> None:
    assert (await limiter.limit(key, Gcra(9, 10, "1h"), 4)).remaining == 6
    assert (await limiter.limit(key, Gcra(9, 10, "1h"), cost=0)).remaining == 6
    assert (await limiter.peek(key, Gcra(9, 10, "1h"), cost=7)).allowed is False
    assert (await limiter.refund(key, Gcra(9, 10, "1h"), cost=4)).remaining == 10


async def test_several_limits_are_all_or_nothing(limiter: AsyncRateLimiter, key: str) -> None:
    keys = [key + ":user", key + ":team"]
    limits = [Limit("2/h", on=1), Limit(FixedWindow(100, "1h"), on=2, cost=10)]
    first = await limiter.limits(keys, limits)
    assert first.allowed and [each.remaining for each in first.each] == [1, 90]
    assert not (await limiter.limits(keys, limits, cost=2)).allowed
    assert (await limiter.peek(keys[1], FixedWindow(100, "1h"))).remaining == 90


async def test_a_shadow_refuses_no_call(limiter: AsyncRateLimiter, key: str) -> None:
    limits = [Limit("1/h", shadow=True), Limit(FixedWindow(5, "1h"))]
    answers = [await limiter.limits([key], limits) for _ in range(2)]
    assert [each.allowed for each in answers] == [True, True]
    assert [each.allowed for each in answers[1].each] == [False, True]


async def test_a_policy_tells_which_limit_binds(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    server.client.execute_command("RL.POLICY", "SET", "mail", *"LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 2 1d".split())
    answer = await limiter.ask(key, "mail", 2)
    assert (answer.allowed, answer.binding, answer.remaining, answer.each) == (True, 2, 0, ())
    full = await limiter.ask(key, "mail", full=True)
    assert (full.allowed, full.binding) == (False, 2)
    assert [each.allowed for each in full.each] == [True, False]


async def test_a_policy_of_two_keys_with_a_lease(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    server.client.execute_command(
        "RL.POLICY", "SET", "jobs", *"LIMIT CONCURRENT 1 1m ON 2 LIMIT GCRA 9 10 1h ON 1".split()
    )
    assert (await limiter.ask(key, "jobs", lease_id="a", keys=[key + ":pool"])).allowed
    assert not (await limiter.ask(key, "jobs", lease_id="b", keys=[key + ":pool"])).allowed
    with pytest.raises(CallError, match="needs 2 keys"):
        await limiter.ask(key, "jobs", lease_id="a")


async def test_other_limiters_have_their_own_commands(limiter: AsyncRateLimiter, key: str) -> None:
    assert (await limiter.limit(key + ":s", Sketch("203.0.113.7", 1, 1, "1h"))).remaining == 1
    assert (await limiter.limit(key + ":p", Penalty(2, "1h", "1h"))).remaining == 1
    assert (await limiter.limit(key + ":l", SlidingLog(1, "1h", countrefused=True))).remaining == 0


async def test_keys_have_the_prefix(make: Maker, server: Server, key: str) -> None:
    limiter = make(prefix=f"{key}:")
    await limiter.limit("a", "1/s")
    await limiter.limits(["b", b"c"], ["1/s"])
    async with limiter.lease("d", 1, "1m"), limiter.budget("e", "10/m").hold(1):
        assert sorted(server.client.keys(f"{key}:*")) == [f"{key}:{name}" for name in "abcde"]
    with redis.Redis(port=server.port) as client:
        assert client.exists("a", "b", "c", "d", "e") == 0


async def test_a_wrong_value_is_an_error_before_the_call(limiter: AsyncRateLimiter, key: str) -> None:
    for cost in (-1, 1.5, "1", 2**53):
        with pytest.raises(ConfigurationError, match="^cost must be"):
            await limiter.limit(key, "1/s", cost)  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="a limiter is an instance"):
        await limiter.limit(key, 10)  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="needs the id of the lease"):
        await limiter.limit(key, Concurrent(1, "1m"))
    with pytest.raises(ConfigurationError, match="limits must be a list"):
        await limiter.limits([key], [])
    with pytest.raises(ConfigurationError, match="limits must be a list"):
        await limiter.limits([key], "1/s")
    with pytest.raises(ConfigurationError, match="policy must be"):
        await limiter.ask(key, "x" * 65)


async def test_a_value_of_another_type_is_named(limiter: Any) -> None:
    calls: list[tuple[Callable[[], Awaitable[object]], str]] = [
        (lambda: limiter.limits(["a"], [5]), "a limiter is an instance"),
        (lambda: limiter.limits(["a"], (each for each in ["1/s"])), "limits must be a list"),
        (lambda: limiter.limits(None, ["1/s"]), "keys must be a list"),
        (lambda: limiter.limits((each for each in "ab"), ["1/s"]), "keys must be a list"),
        (lambda: limiter.limits(["a", 5], ["1/s"]), "a key must be text or bytes"),
        (lambda: limiter.limits(["a"], ["1/s"], cost=True), "cost must be an integer"),
        (lambda: limiter.limits(["a"], ["1/s"], hold=("a",)), "hold must be an id and a ttl"),
        (lambda: limiter.limits(["a"], ["1/s"], hold=5), "hold must be an id and a ttl"),
        (lambda: limiter.limits(["a"], ["1/s"], hold="ab"), "hold must be an id and a ttl"),
        (lambda: limiter.limits(["a"], ["1/s"], hold=("a", "soon")), "the ttl of hold must be"),
        (lambda: limiter.ask("a", "api", hold=(5, "1m")), "the id of hold must be"),
        (lambda: limiter.ask("a", "api", lease_id=5), "lease_id must be"),
        (lambda: limiter.ask("a", "api", cost=1.0), "cost must be an integer"),
        (lambda: limiter.limit("a", "1/s", cost=True), "cost must be an integer"),
        (lambda: limiter.limit("a", "1/s", cost=1.0), "cost must be an integer"),
        (lambda: limiter.limit(5, "1/s"), "a key must be text or bytes"),
        (lambda: limiter.limit("\ud800", "1/s"), "a key must be text that UTF-8 can encode"),
        (lambda: limiter.ready(policies="api"), "policies must be a list"),
    ]
    for call, message in calls:
        with pytest.raises(ConfigurationError, match=message):
            await call()
    with pytest.raises(ConfigurationError, match="cost must be an integer"):
        limiter.lease("a", 1, "1m", cost=True)
    assert limiter.counters["wrong_calls"] == limiter.counters["asked"] == 0


async def test_a_policy_is_looked_at(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    server.client.execute_command("RL.POLICY", "SET", "look", *"LIMIT GCRA 9 10 1h".split())
    assert (await limiter.ask(key, "look", 4)).remaining == 6
    answer = await limiter.peek(key, "look", cost=7)
    assert isinstance(answer, AskDecision) and not answer.allowed and answer.binding == 1
    assert (await limiter.peek(key, "look")).remaining == 6
    assert limiter.counters["asked"] == 1
    with pytest.raises(CallError, match="no such policy"):
        await limiter.peek(key, "missing")


@pytest.mark.parametrize("kind", [RateLimiter, AsyncRateLimiter])
def test_a_url_in_place_of_a_client_is_not_told(kind: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match="from_url.*, not str$") as raised:
        kind("redis://:secret@127.0.0.1")
    assert "secret" not in str(raised.value)


async def test_the_raw_commands_are_on_the_limiters_connections(make: Maker, key: str) -> None:
    limiter = make(prefix="raw:")
    reply = limiter.commands.gcra(key, 1, 1, "1h")
    if make.kind == "asyncio":
        assert (await reply).remaining == 1
