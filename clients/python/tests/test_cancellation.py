"""On asyncio a caller may be cancelled at any time. Nothing that was taken stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import redis.asyncio

from redis_ratelimit import AsyncRateLimiter
from servers import BUCKET, Server, eventually, leases, remaining


@pytest.fixture
async def limiter(server: Server) -> AsyncIterator[AsyncRateLimiter]:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0) as limiter:
        yield limiter


async def cancelled(task: asyncio.Task[None], after: float = 0.2) -> None:
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def is_left(server: Server, key: str, left: int) -> None:
    """Whether no lease is left, and this much of the bucket."""
    await asyncio.to_thread(eventually, lambda: leases(server, key) == 0, "the release")
    await asyncio.to_thread(eventually, lambda: remaining(server, key + ":b") == left, "the settlement")


async def test_a_cancelled_worker_ends_its_lease_and_its_estimate(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        async with limiter.lease(key, 1, "1m"), limiter.budget(key + ":b", BUCKET).hold(80) as held:
            held.settle(30)
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await begun.wait()
    await cancelled(task, 0.0)
    await is_left(server, key, 70)


@pytest.mark.parametrize("call", ["lease", "hold"])
async def test_what_is_cancelled_while_it_is_taken_is_given_back(
    limiter: AsyncRateLimiter, server: Server, key: str, call: str
) -> None:
    async def work() -> None:
        taken = limiter.lease(key, 1, "1m") if call == "lease" else limiter.budget(key + ":b", BUCKET).hold(80)
        async with taken:
            raise AssertionError("not reached")

    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        await cancelled(asyncio.create_task(work()))
    end = "rl.release" if call == "lease" else "rl.settle"
    await asyncio.to_thread(eventually, lambda: server.calls(end) >= 1, "the end")
    await is_left(server, key, 100)


async def test_a_cancelled_wait_leaves_the_line(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> None:
        async with limiter.lease(key, 1, "1m", wait="30s"):
            raise AssertionError("not reached")

    async with limiter.lease(key, 1, "1m"):
        task = asyncio.create_task(work())
        await asyncio.to_thread(eventually, lambda: server.waiting() == 1, "the wait")
        await cancelled(task)
        await asyncio.to_thread(eventually, lambda: server.waiting() == 0, "the end of the wait")
    await asyncio.to_thread(eventually, lambda: leases(server, key) == 0, "the release")


async def test_a_cancelled_end_goes_on_in_the_background(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    with ExitStack() as stack:

        async def work() -> None:
            async with limiter.lease(key, 1, "1m"), limiter.budget(key + ":b", BUCKET).hold(80) as held:
                held.settle(10)
                stack.enter_context(server.frozen())

        await cancelled(asyncio.create_task(work()))
    await is_left(server, key, 90)
