"""What a request has taken is ended on every path."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
import redis
import redis.asyncio

from both import inside
from gates import BUCKET, free, gate, held, passed, rule
from redis_ratelimit import AsyncRateLimiter, Concurrent, RateLimiter
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.passage import Passage
from redis_ratelimit.wire.source import CONNECTIONS
from servers import Server, eventually


def test_a_passage_that_is_lost_is_renewed_no_more(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0) as limiter:
        told = passed(gate(limiter, rule("streams", Concurrent(2, "1s"))).enter({"user": "ann"}))
        del told
        gc.collect()
        eventually(lambda: free(limiter, "streams:ann") == 2, "the end of the lease")
        assert limiter.counters["leases_lost"] == 0


async def test_a_cancelled_request_takes_nothing(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0)
    door = AsyncGate(limiter, [rule("streams", Concurrent(50, "10m")), rule("tokens", BUCKET, estimate=10)], None)
    entered = await door.enter({"user": "ann"})
    assert isinstance(entered, Passage)
    await door.leave(entered)

    async def hasty(patience: float) -> None:
        task = asyncio.create_task(door.enter({"user": "ann"}))
        await asyncio.sleep(patience)
        if task.done():
            await door.leave(passed(task.result()))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or patience

    with server.frozen():
        await asyncio.gather(*(hasty(0.01 * i) for i in range(1, 10)))
    await asyncio.gather(*(hasty(0.0) for _ in range(20)))
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0) as bare:
        await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann", 50) == 50, "the release")
        await asyncio.to_thread(eventually, lambda: not held(bare, "tokens:ann"), "the settlement")
    await limiter.close()


async def test_a_cancelled_request_that_was_not_sent_has_nothing_to_release(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0, breaker=None)
    door = AsyncGate(limiter, [rule("streams", Concurrent(500, "10m"))], None)
    await door.limiter.ready()
    with server.frozen():
        tasks = [asyncio.create_task(door.enter({"user": "ann"})) for _ in range(4 * CONNECTIONS)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert len(inside(limiter).background) <= CONNECTIONS  # the other calls waited for a connection
    await limiter.close()


async def test_a_cancellation_that_redis_py_drops_counts_all_the_same(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0)
    door = AsyncGate(limiter, [rule("streams", Concurrent(2, "10m"))], None)
    await door.limiter.ready()
    read: Any = redis.asyncio.Connection.read_response

    async def dropping(self: Any, *values: Any, **options: Any) -> Any:
        reading = asyncio.create_task(read(self, *values, **options))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            return await reading

    monkeypatch.setattr(redis.asyncio.Connection, "read_response", dropping)
    with server.frozen():
        task = asyncio.create_task(door.enter({"user": "ann"}))
        await asyncio.sleep(0.1)
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0) as bare:
        await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann") == 2, "the release")
    await limiter.close()
