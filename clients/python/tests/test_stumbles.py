"""Where those who copied an example stumbled."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import redis
from test_holds import BUCKET, remaining
from test_leases import leases

from both import Maker
from redis_ratelimit import CallError, ConfigurationError, Gcra, RateLimiter, Refused, SlidingLog
from servers import Cluster, Proxy, Server, eventually


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


async def test_a_slow_moment_of_the_server_itself(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2)
    await limiter.limit(key + ":warm", "1/s")
    sleeping = asyncio.create_task(asyncio.to_thread(server.client.execute_command, "DEBUG", "SLEEP", "1"))
    await asyncio.sleep(0.2)

    async def work() -> None:
        async with limiter.lease(key, 5, "5m"):
            pass

    await asyncio.gather(*(work() for _ in range(5)))
    await sleeping
    await asyncio.to_thread(eventually, lambda: leases(server, key) == 0, "the release of all leases")
    async with make().lease(key, 1, "5m") as lease:  # the only one
        assert lease.held


async def test_a_wrong_rule_is_an_exception_at_start(make: Maker, server: Server, key: str) -> None:
    with pytest.raises(ConfigurationError, match="count must be between 1 and"):
        Gcra(9, 0, "1s")
    limiter = make()
    with pytest.raises(
        ConfigurationError, match=r"limit 1, SlidingLog\(limit=9000000.*limit must be an integer from 1 to 1000000 "
    ):
        await limiter.ready(SlidingLog(9_000_000, "1m"))
    with pytest.raises(ConfigurationError, match="policy 'mial': .*no such policy 'mial'"):
        await limiter.ready(policies=["mial"])


async def test_a_wrong_call_is_no_silent_failure(make: Maker, key: str, caplog: pytest.LogCaptureFixture) -> None:
    limiter = make(fail="open")
    with caplog.at_level(logging.WARNING), pytest.raises(CallError, match="RL.ASK at .*: ERR no such policy 'mial'"):
        await limiter.ask(key, "mial")
    assert limiter.counters["failed_open"] == 0


def test_a_cluster_without_a_detour(cluster: Cluster, key: str) -> None:
    """No MOVED, and no COMMAND GETKEYS, which redis-py sends before each RL.MULTI."""
    client: Any = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    with RateLimiter(client, timeout=5.0, prefix="app:") as limiter:
        limiter.limit(key, "10/s")
        cluster.reset()
        for number in range(30):
            assert limiter.limits([f"{{{key}{number}}}:user", f"{{{key}{number}}}:team"], ["10/s"]).allowed
        assert cluster.moved() == 0 and cluster.calls("command|getkeys") == 0
        assert cluster.calls("rl.multi") == 30
        assert client.exists(f"app:{{{key}0}}:user") == 1
    client.close()


async def test_a_full_house_is_a_refusal(make: Maker, key: str) -> None:
    limiter = make()
    async with limiter.lease(key, 1, "5m"):
        with pytest.raises(Refused):
            async with limiter.lease(key, 1, "5m"):
                raise AssertionError("not reached")
