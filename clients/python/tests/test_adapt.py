"""Leases whose limit finds itself, from how their work ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from redis_ratelimit import Adapt, AsyncRateLimiter, Commands, Concurrent, ConfigurationError, Gate, Passage, RateLimiter, Rule
from redis_ratelimit.call.adapt import Drops
from servers import Server


class TooSlow(Exception):
    pass


START = Adapt(start=50)


def limit_of(server: Server, key: str) -> int:
    return int(cast(Any, Commands(server.client).info(key))["limit"])


async def fail(limiter: AsyncRateLimiter, key: str, error: BaseException, drops: Drops = (TooSlow,)) -> None:
    with pytest.raises(type(error)):
        async with limiter.lease(key, 100, "30s", adapt=START, drops=drops):
            raise error


async def test_it_falls_by_the_errors_that_are_named(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 100, "30s", adapt=START, drops=[TooSlow]):
        pass
    assert limit_of(server, key) == 50
    await fail(limiter, key, TooSlow())
    assert limit_of(server, key) == 45
    for error in (ValueError("wrong"), KeyboardInterrupt(), asyncio.CancelledError()):
        await fail(limiter, key, error)
    assert limit_of(server, key) == 45
    await fail(limiter, key, ValueError("wrong"), lambda error: isinstance(error, ValueError))
    assert limit_of(server, key) == 40


async def test_a_handler_may_say_how_work_ended(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    lease: Any = limiter.lease(key, 100, "30s", adapt=START)
    async with lease:
        released = lease.release("DROP")
        if released is not None:
            await released
    assert limit_of(server, key) == 45
    with pytest.raises(ConfigurationError, match="outcome must be 'OK', 'DROP' or 'IGNORE', not 'BAD'"):
        async with limiter.lease(key, 100, "30s", adapt=START) as lease:
            released = lease.release("BAD")
            if released is not None:
                await released


async def test_a_cancelled_task_changes_nothing(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        async with limiter.lease(key, 100, "30s", adapt=START, drops=[TooSlow]):
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limit_of(server, key) == 50 and held(server, key) == 0


class Interrupted(BaseException): ...


@pytest.mark.parametrize(("raises", "left"), [(LookupError, TooSlow), (Interrupted, Interrupted)], ids=["fails", "is-interrupted"])
async def test_it_is_released_if_the_choice_of_errors_raises(
    raises: type[BaseException], left: type[BaseException], limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    def choice(_: BaseException) -> bool:
        raise raises

    with pytest.raises(left):
        async with limiter.lease(key, 100, "30s", adapt=START, drops=choice):
            raise TooSlow
    assert limit_of(server, key) == 50 and held(server, key) == 0


def held(server: Server, key: str) -> int:
    return 50 - int(server.client.execute_command("RL.PEEK", key, "CONCURRENT", 100, "1m", "another", "ADAPT")[2])


async def test_slow_work_lowers_the_limit(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 100, "30s", adapt=Adapt(start=50, slow="10ms", backoff=20)):
        await asyncio.sleep(0.05)
    assert limit_of(server, key) == 40


def test_wrong_options_are_errors(server: Server, key: str) -> None:
    with RateLimiter(server.client) as limiter:
        wrong: list[tuple[dict[str, object], str]] = [
            ({"drops": [TooSlow]}, "drops needs adapt"),
            ({"drops": lambda _: True}, "drops needs adapt"),  # pyright: ignore[reportUnknownLambdaType]
            ({"adapt": 5}, "adapt must be True, False or an Adapt, not 5"),
            ({"adapt": True, "drops": int}, "drops must be a class of errors, a list of them"),
            ({"adapt": True, "drops": "TooSlow"}, "drops must be a class of errors"),
            ({"adapt": True, "drops": [TooSlow()]}, "drops must be a class of errors"),
            ({"adapt": Adapt(start=101)}, "start"),
        ]
        lease = cast(Callable[..., object], limiter.lease)
        for options, text in wrong:
            with pytest.raises(ConfigurationError, match=text):
                lease(key, 100, "30s", **options)


def test_a_gate_bounds_requests_by_a_limit_that_finds_itself(server: Server, key: str) -> None:
    bound = Concurrent(100, "30s", adapt=True, start=50, slow="1ms")
    with RateLimiter(server.client, timeout=5.0) as limiter:
        rules: list[Rule[str]] = [Rule("work", key=lambda _: key, limit=bound)]
        gate = Gate(limiter, rules)
        assert limiter.ready()
        entered = gate.enter("a request")
        assert isinstance(entered, Passage) and limit_of(server, f"work:{key}") == 50
        limiter.runtime.sleep(0.02)
        gate.leave(entered)
    assert limit_of(server, f"work:{key}") == 45
