"""Leases and estimates on a real server: time, many of them, lost ones. The contract's cases show their calls."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack

import pytest
import redis
import redis.asyncio

from both import Maker
from redis_ratelimit import AsyncRateLimiter, ConfigurationError, RateLimiter
from servers import BUCKET, Proxy, Server, eventually, leases, remaining


async def test_a_lease_is_held_and_an_estimate_charged_until_the_work_is_done(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    server.client.execute_command("RL.POLICY", "SET", "llm", "LIMIT", *BUCKET.words)
    async with limiter.lease(key, 2, "1m") as lease:
        for name, what in (("bucket", BUCKET), ("policy", "llm")):
            async with limiter.budget(f"{key}:{name}", what).hold(80) as held:
                assert lease.held and held.held and leases(server, key) == 1 and remaining(server, f"{key}:{name}") == 20
                held.settle(30)
            assert remaining(server, f"{key}:{name}") == 70
    assert leases(server, key) == 0 and not lease.held


async def test_a_lease_is_for_one_piece_of_work(limiter: AsyncRateLimiter, key: str) -> None:
    lease, held = limiter.lease(key, 5, "1m"), limiter.budget(key + ":b", "10/m").hold(1)
    async with lease, held:
        pass
    for used in (lease, held):
        with pytest.raises(ConfigurationError, match="is for one piece of work"):
            async with used:
                raise AssertionError("not reached")


async def test_a_lease_outlives_its_ttl_by_renewals(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 1, "2s") as lease:
        await asyncio.sleep(3)
        assert leases(server, key) == 1 and lease.held
    assert leases(server, key) == 0


def test_many_leases_are_kept_on_a_slow_network(server: Server, key: str) -> None:
    """Renewed one after the other, 100 leases would need four seconds for each round."""
    with Proxy(server.port, delay=0.04) as proxy, ExitStack() as stack:
        limiter = stack.enter_context(RateLimiter(redis.Redis(port=proxy.port), timeout=2.0))
        held = [limiter.lease(key, 100, "3s") for _ in range(100)]
        for lease in held:
            stack.enter_context(lease)
        time.sleep(5)
        assert not any(lease.lost for lease in held) and all(lease.held for lease in held)
        assert leases(server, key) == 100


async def test_work_hears_that_its_lease_is_lost(make: Maker, server: Server, key: str) -> None:
    limiter, lost = make(), threading.Event()
    async with limiter.lease(key, 1, "600ms", on_lost=lost.set) as lease:
        assert lease.held and not lost.is_set()
        server.client.delete(key)
        assert await asyncio.to_thread(lost.wait, 10) and lease.lost


async def test_a_function_for_a_lost_lease_that_fails_is_logged(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    async with make().lease(key, 1, "600ms", on_lost=broken) as lease:
        server.client.delete(key)
        await asyncio.to_thread(eventually, lambda: lease.lost and "hook failed: RuntimeError: broken" in caplog.text, "the line")


async def test_work_is_cancelled_if_its_lease_is_lost(server: Server, key: str) -> None:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0) as limiter:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(asyncio.CancelledError):
            async with limiter.lease(key, 1, "600ms", on_lost=task.cancel):
                server.client.delete(key)
                await asyncio.sleep(10)
        task.uncancel()
