"""Where those who copied an example stumbled."""

from __future__ import annotations

import asyncio

from both import Maker
from servers import BUCKET, Proxy, Server, eventually, leases, remaining


async def test_after_a_slow_moment_an_idle_user_gets_a_lease(make: Maker, server: Server, key: str) -> None:
    """Five requests fail open while the server hangs, and the server takes their leases when it goes on."""
    limiter = make(timeout=0.2, breaker=None)
    await limiter.limit(key + ":warm", "1/s")

    async def work() -> None:
        async with limiter.lease(key, 5, "5m") as lease:
            assert not lease.held

    with server.frozen():
        await asyncio.gather(*(work() for _ in range(5)))
    await asyncio.to_thread(eventually, lambda: leases(server, key) == 0, "the release of all leases")
    async with make().lease(key, 1, "5m") as lease:
        assert lease.held
    assert limiter.counters["failed_open"] == 5


async def test_a_lease_that_is_taken_after_its_release_is_released_again(make: Maker, server: Server, key: str) -> None:
    """The call is on its way while the release is answered: nothing was held. Then the call arrives."""
    with Proxy(server.port, b"RL.CONCURRENT") as proxy:
        limiter = make(port=proxy.port, timeout=0.3, breaker=None)
        server.client.config_resetstat()
        async with limiter.lease(key, 1, "5m") as lease:
            assert not lease.held
        await asyncio.to_thread(eventually, lambda: server.calls("rl.release") >= 2, "two releases")
        assert server.calls("rl.concurrent") == 0
        proxy.let_go()
        await asyncio.to_thread(eventually, lambda: server.calls("rl.concurrent") == 1, "the late call")
        await asyncio.to_thread(eventually, lambda: leases(server, key) == 0, "the release")
        async with make().lease(key, 1, "5m") as lease:
            assert lease.held


async def test_an_estimate_that_is_held_after_its_settlement_is_settled_again(
    make: Maker, server: Server, key: str
) -> None:
    with Proxy(server.port, b"RL.GCRA") as proxy:
        limiter = make(port=proxy.port, timeout=0.3, breaker=None)
        server.client.config_resetstat()
        async with limiter.budget(key, BUCKET).hold(80) as held:
            held.settle(10)
        await asyncio.to_thread(eventually, lambda: server.calls("rl.settle") >= 2, "two settlements")
        assert remaining(server, key) == 100
        proxy.let_go()
        await asyncio.to_thread(eventually, lambda: remaining(server, key) == 90, "the settlement")
