"""Many calls at once, and an event loop that is busy: calls wait for their own process, and the server is not to blame."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker, inside
from redis_ratelimit import AsyncRateLimiter, Breaker, Gcra, RateLimiter
from redis_ratelimit.wire.source import SPARE
from servers import Server, eventually


def limiter_of(server: Server, **options: Any) -> AsyncRateLimiter:
    return AsyncRateLimiter(redis.asyncio.Redis(port=server.port), **options)


async def test_a_busy_loop_takes_replies_that_are_there(server: Server, key: str) -> None:
    async with limiter_of(server) as limiter:
        await asyncio.gather(*(limiter.limit(f"{key}:warm", "1/s") for _ in range(20)))
        with server.frozen():
            calls = [asyncio.create_task(limiter.limit(key, "100/h")) for _ in range(20)]
            await asyncio.sleep(0.02)  # the calls are sent
        time.sleep(0.3)  # the replies arrive
        answers = await asyncio.gather(*calls)
        assert all(each.answered for each in answers)
        assert limiter.counters["unavailable"] == limiter.counters["breaker_opened"] == 0


async def test_a_late_loop_does_not_open_the_breaker(server: Server, key: str) -> None:
    async with limiter_of(server, breaker=Breaker(failures=2)) as limiter:
        await asyncio.gather(*(limiter.limit(f"{key}:warm", "1/s") for _ in range(5)))
        with server.frozen():
            calls = [asyncio.create_task(limiter.limit(key, "100/h")) for _ in range(5)]
            await asyncio.sleep(0.01)
            time.sleep(0.3)
            answers = await asyncio.gather(*calls)
        assert not any(each.answered for each in answers) and all(each.allowed for each in answers)
        assert answers[0].error is not None and answers[0].error.kind == "timeout"
        assert limiter.counters["breaker_opened"] == 0


async def test_500_cold_calls_are_answered(server: Server, key: str) -> None:
    async with limiter_of(server, timeout=5.0) as limiter:  # a busy machine replies late
        answers = await asyncio.gather(*(limiter.limit(f"{key}:{number}", "1/h") for number in range(500)))
        assert sum(each.answered for each in answers) == 500


def test_200_cold_threads_are_answered(server: Server, key: str) -> None:
    start = threading.Barrier(200)

    def ask(_: int) -> bool:
        start.wait()
        return limiter.limit(key, "1000/h").answered

    # A busy machine replies late.
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as limiter, ThreadPoolExecutor(200) as threads:
        assert sum(threads.map(ask, range(200))) == 200


@pytest.mark.parametrize(("timeout", "most"), [(0.05, 1.0), (1.5, 1.5)])
async def test_a_connection_has_more_time_to_open_than_a_call(
    make: Maker, key: str, timeout: float, most: float
) -> None:
    with Server() as slow:
        limiter = make(port=slow.port, timeout=timeout)
        with slow.frozen():
            asked = time.monotonic()
            answer = await limiter.limit(key, "1/h")
            assert not answer.answered and time.monotonic() - asked > 0.95 * most


async def test_300_waits_are_answered_and_their_connections_closed(server: Server, key: str) -> None:
    async with limiter_of(server) as limiter:
        before = connected(server)
        calls = [limiter.limit(f"{key}:{number % 100}", Gcra(0, 1, "200ms"), wait="5s") for number in range(300)]
        answers = await asyncio.gather(*calls)
        assert sum(each.answered for each in answers) == 300 and all(answers)
        await asyncio.to_thread(eventually, lambda: connected(server) <= before + SPARE, "the end of connections")


def test_waits_of_threads_leave_few_connections(server: Server, key: str) -> None:
    def ask(number: int) -> bool:
        return limiter.limit(f"{key}:{number % 30}", Gcra(0, 1, "200ms"), wait="5s").answered

    with RateLimiter(redis.Redis(port=server.port)) as limiter, ThreadPoolExecutor(60) as threads:
        before = connected(server)
        assert sum(threads.map(ask, range(60))) == 60
        eventually(lambda: connected(server) <= before + SPARE, "the end of connections")


def connected(server: Server) -> int:
    return int(server.client.info("clients")["connected_clients"])


async def test_calls_without_a_free_connection_do_not_open_the_breaker(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = redis.asyncio.Redis(port=server.port, max_connections=1)
    async with AsyncRateLimiter(client, timeout=3.0, breaker=Breaker(failures=1)) as limiter:
        await limiter.limit(key, "100/h")
        monkeypatch.setattr(inside(limiter).channel._link, "_patience", 0.1)
        with server.frozen():
            first = asyncio.create_task(limiter.limit(key, "100/h"))
            await asyncio.sleep(0.05)
            more = await asyncio.gather(*(limiter.limit(key, "100/h") for _ in range(5)))
        assert [each.error and each.error.kind for each in more] == ["crowded"] * 5
        assert (await first).answered and limiter.counters["breaker_opened"] == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limiter_works_in_several_event_loops(server: Server, key: str) -> None:
    limiter = limiter_of(server, timeout=5.0)
    for _ in range(6):
        assert asyncio.run(limiter.limit(key, "100/h")).answered
    assert limiter.counters["unavailable"] == 0
    gc.collect()
