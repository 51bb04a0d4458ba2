"""On asyncio a caller may be cancelled at any time. Nothing that was taken stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import redis.asyncio
from test_holds import remaining
from test_leases import leases, soon

from redis_ratelimit import AsyncRateLimiter, Gcra
from servers import Server, eventually

BUCKET = Gcra(99, 100, "100d")


@pytest.fixture
async def limiter(server: Server) -> AsyncIterator[AsyncRateLimiter]:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0) as limiter:
        yield limiter


async def cancelled(task: asyncio.Task[None], after: float = 0.2) -> None:
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_worker_releases_its_lease(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> None:
        async with limiter.lease(key, 1, "1m"):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await soon(server, key, 1)
    await cancelled(task)
    await soon(server, key, 0)


async def test_a_worker_that_runs_out_of_time_releases_its_lease(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            async with limiter.lease(key, 1, "1m"):
                await asyncio.sleep(60)
    assert leases(server, key) == 0


async def test_a_cancelled_acquire_releases_what_it_takes_late(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    async def work() -> None:
        async with limiter.lease(key, 1, "1m"):
            raise AssertionError("not reached")

    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        await cancelled(asyncio.create_task(work()))
    await asyncio.to_thread(eventually, lambda: server.calls("rl.release") >= 1, "the release")
    await soon(server, key, 0)


async def test_a_cancelled_wait_leaves_the_line(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> None:
        async with limiter.lease(key, 1, "1m", wait="30s"):
            raise AssertionError("not reached")

    async with limiter.lease(key, 1, "1m"):
        task = asyncio.create_task(work())
        await asyncio.to_thread(eventually, lambda: server.waiting() == 1, "the wait")
        await cancelled(task)
        await asyncio.to_thread(eventually, lambda: server.waiting() == 0, "the end of the wait")
    await soon(server, key, 0)


async def test_a_cancelled_wait_sends_two_releases_at_most(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    async def work() -> None:
        async with limiter.lease(key, 1, "1m", wait="30s"):
            raise AssertionError("not reached")

    async with limiter.lease(key, 1, "1m"):
        tasks = [asyncio.create_task(work()) for _ in range(50)]
        await asyncio.sleep(1)
        server.client.config_resetstat()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(eventually, lambda: server.calls("rl.release") >= 100, "two releases of each")
        await asyncio.sleep(1)
        assert server.calls("rl.release") == 100
    await soon(server, key, 0)


async def test_a_cancelled_limit_leaves_the_line(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def ask() -> None:
        await limiter.limit(key, "1/20s", wait="30s")

    await limiter.limit(key, "1/20s")
    task = asyncio.create_task(ask())
    await asyncio.to_thread(eventually, lambda: server.waiting() == 1, "the wait")
    await cancelled(task)
    await asyncio.to_thread(eventually, lambda: server.waiting() == 0, "the end of the wait")


async def test_a_cancelled_release_goes_on_in_the_background(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    with ExitStack() as stack:

        async def work() -> None:
            async with limiter.lease(key, 1, "1m"):
                stack.enter_context(server.frozen())

        await cancelled(asyncio.create_task(work()))
    await soon(server, key, 0)


async def test_a_cancelled_worker_settles_what_it_recorded(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> None:
        async with limiter.budget(key, BUCKET).hold(80) as held:
            held.settle(30)
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 20, "the hold")
    await cancelled(task)
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 70, "the settlement")


async def test_a_cancelled_hold_is_given_back(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> None:
        async with limiter.budget(key, BUCKET).hold(80):
            raise AssertionError("not reached")

    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        await cancelled(asyncio.create_task(work()))
    await asyncio.to_thread(eventually, lambda: server.calls("rl.settle") >= 1, "the settlement")
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 100, "the settlement")


async def test_a_cancelled_settlement_goes_on_in_the_background(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    with ExitStack() as stack:

        async def work() -> None:
            async with limiter.budget(key, BUCKET).hold(80) as held:
                held.settle(10)
                stack.enter_context(server.frozen())

        await cancelled(asyncio.create_task(work()))
    await asyncio.to_thread(eventually, lambda: remaining(server, key) == 90, "the settlement")


async def test_many_tasks_share_the_connections(limiter: AsyncRateLimiter, key: str) -> None:
    answers = await asyncio.gather(*(limiter.limit(key, "200/d") for _ in range(300)))
    assert sum(each.allowed for each in answers) == 200 and all(each.answered for each in answers)
