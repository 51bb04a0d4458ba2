"""An estimate is held, and settled on every path."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from both import Maker
from redis_ratelimit import (
    AsyncRateLimiter,
    CallError,
    ConfigurationError,
    FixedWindow,
    Gcra,
    Refused,
    SlidingLog,
    Unavailable,
    Uniform,
)
from servers import Server, eventually, free_port

# 100 at once, and one more each day: what a test sees is what was charged.
BUCKET = Gcra(99, 100, "100d")


def remaining(server: Server, key: str) -> int:
    return int(server.client.execute_command("RL.PEEK", key, *BUCKET.words)[2])


def holds(server: Server, key: str) -> int:
    info: dict[str, Any] = server.client.execute_command("RL.INFO", key)
    return int(info.get("holds", 0))


async def test_the_actual_cost_is_charged(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.budget(key, BUCKET).hold(80) as held:
        assert held.held and held.estimate == 80 and remaining(server, key) == 20
        held.settle(50)
        held.settle(30)
        assert remaining(server, key) == 20
    assert remaining(server, key) == 70 and holds(server, key) == 0
    assert limiter.counters["asked"] == limiter.counters["allowed"] == 1


async def test_more_than_the_estimate_is_charged_too(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.budget(key, BUCKET).hold(10) as held:
        held.settle(90)
    assert remaining(server, key) == 10


async def test_without_a_settlement_the_estimate_stands(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.budget(key, BUCKET).hold(80):
        pass
    assert remaining(server, key) == 20 and holds(server, key) == 0


async def test_work_that_failed_costs_nothing(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with limiter.budget(key, BUCKET).hold(80):
            raise ZeroDivisionError
    assert remaining(server, key) == 100


async def test_work_that_failed_costs_what_it_recorded(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with limiter.budget(key, BUCKET).hold(80) as held:
            held.settle(5)
            raise ZeroDivisionError
    assert remaining(server, key) == 95


async def test_a_refused_estimate_is_an_error(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    budget = limiter.budget(key, BUCKET)
    async with budget.hold(80):
        with pytest.raises(Refused):
            async with budget.hold(30):
                raise AssertionError("not reached")
    assert remaining(server, key) == 20


async def test_a_policy_is_a_budget(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    server.client.execute_command(
        "RL.POLICY", "SET", "llm", "LIMIT", *BUCKET.words, *"LIMIT FIXEDWINDOW 9 1h COST 1".split()
    )
    async with limiter.budget(key, "llm").hold(80) as held:
        held.settle(30)
    assert remaining(server, key) == 70
    with pytest.raises(CallError, match="no such policy"):
        async with limiter.budget(key, "missing").hold(80):
            raise AssertionError("not reached")


async def test_what_cannot_be_held_is_an_error(limiter: AsyncRateLimiter, key: str) -> None:
    for wrong in (Uniform("1s"), SlidingLog(5, "1m", countrefused=True)):
        with pytest.raises(ConfigurationError, match="cannot be held"):
            limiter.budget(key, wrong)
    with pytest.raises(ConfigurationError, match="ttl"):
        limiter.budget(key, BUCKET, ttl="0s")
    with pytest.raises(ConfigurationError, match="estimate"):
        limiter.budget(key, BUCKET).hold(0)
    with pytest.raises(ConfigurationError, match="cost must be"):
        limiter.budget(key, BUCKET).hold(1).settle(-1)


async def test_without_an_answer_the_work_goes_on(make: Maker, key: str) -> None:
    limiter = make(port=free_port())
    async with limiter.budget(key, BUCKET).hold(80) as held:
        assert not held.held
        held.settle(30)
    assert limiter.counters["failed_open"] == 1 and limiter.counters["releases_retried"] == 0
    with pytest.raises(Unavailable):
        async with make(port=free_port(), fail="closed").budget(key, BUCKET).hold(80):
            raise AssertionError("not reached")


@pytest.mark.parametrize("limit", ["limiter", "policy"])
async def test_an_estimate_that_was_held_late_is_settled(make: Maker, server: Server, key: str, limit: str) -> None:
    limiter = make(timeout=0.2)
    server.client.execute_command("RL.POLICY", "SET", "late", "LIMIT", *BUCKET.words)
    await limiter.limit(key + ":warm", "1/s")
    with server.frozen():
        async with limiter.budget(key, BUCKET if limit == "limiter" else "late").hold(80) as held:
            assert not held.held
            held.settle(30)
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 70, "the settlement")


async def test_a_closed_limiter_gives_back_what_was_held_late(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2, fail="closed")
    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen(), pytest.raises(Unavailable):
        async with limiter.budget(key, BUCKET).hold(80):
            raise AssertionError("not reached")
    await asyncio.to_thread(eventually, lambda: server.calls("rl.settle") >= 1, "the settlement")
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 100, "the settlement")


async def test_a_settlement_without_an_answer_is_repeated(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2)
    with ExitStack() as stack:
        async with limiter.budget(key, BUCKET).hold(80) as held:
            held.settle(30)
            stack.enter_context(server.frozen())
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 70, "the settlement")


async def test_a_settlement_that_is_rejected_is_logged(
    limiter: AsyncRateLimiter, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with limiter.budget(key, BUCKET).hold(80):
        server.client.set(key, "a string")
    assert f"RL.SETTLE 'key…' at localhost:{server.port}: not repeated" in caplog.text


async def test_a_hold_may_wait(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    budget = limiter.budget(key, FixedWindow(10, "400ms"))
    async with budget.hold(10):
        pass
    async with budget.hold(10, wait="20s") as held:
        assert held.held


async def test_several_limits_are_held_and_finished(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    hold = ("work", "1m")
    assert (await limiter.limits([key], [BUCKET], cost=80, hold=hold)).allowed
    await limiter.settle([key], [BUCKET], "work", "1m", cost=30)
    assert remaining(server, key) == 70

    server.client.execute_command("RL.POLICY", "SET", "llm2", "LIMIT", *BUCKET.words)
    assert (await limiter.ask(key, "llm2", 50, hold=hold)).allowed
    await limiter.settle_ask(key, "llm2", "work", 10, "1m", certain=False)
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 60, "the settlement")
