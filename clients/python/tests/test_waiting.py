"""A call that waits has a connection of its own, and leaves the line if the caller gives up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.cluster import ClusterNode

from both import Maker
from redis_ratelimit import AsyncRateLimiter, Decision, Gcra, RateLimiter
from redis_ratelimit.commands import AsyncCommands, Commands
from servers import Cluster, Server, eventually


async def test_a_lease_goes_to_who_waits(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async def work() -> float:
        async with limiter.lease(key, 1, "1m", wait="20s") as lease:
            assert lease.held
            return time.monotonic()

    async with limiter.lease(key, 1, "1m"):
        waiter = asyncio.create_task(work())
        await asyncio.to_thread(eventually, lambda: server.waiting() == 1, "the wait")
        # Meanwhile other calls are answered.
        assert (await limiter.limit(key + ":other", "1/s")).allowed
        left = time.monotonic()
    assert await waiter >= left


async def test_a_wait_without_an_answer_ends(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2)
    await limiter.limit(key + ":warm", "1/s")
    with server.frozen():
        answer = await limiter.limit(key, "1/s", wait="100ms")
    assert answer.allowed and not answer.answered


async def test_a_wait_longer_than_the_timeout_is_answered(make: Maker, key: str) -> None:
    limiter = make(timeout=0.3)
    turn = Gcra(0, 1, "900ms")
    assert (await limiter.limit(key, turn)).allowed
    assert (await limiter.limit(key, turn, wait="20s")).answered


def test_a_thread_that_is_interrupted_leaves_the_line(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(redis.Connection):
        def can_read(self, timeout: float = 0) -> bool:
            if timeout <= 5:
                return super().can_read(timeout)
            eventually(lambda: server.waiting() == 1, "the wait")
            raise KeyboardInterrupt

    pool = redis.ConnectionPool(port=server.port, connection_class=Interrupted)
    with RateLimiter(redis.Redis(connection_pool=pool), timeout=5.0) as limiter:
        limiter.limit(key, "1/h")
        with limiter.lease(key + ":lease", 1, "1m"):
            with pytest.raises(KeyboardInterrupt), limiter.lease(key + ":lease", 1, "1m", wait="20s"):
                raise AssertionError("not reached")
            eventually(lambda: server.waiting() == 0, "the end of the wait")


async def test_a_wait_on_the_application_s_client_without_a_reply_is_an_error_and_the_client_goes_on(
    server: Server, key: str
) -> None:
    for single in (False, True):
        # With one connection, so that it must be given back.
        plain: Any = redis.Redis(port=server.port, single_connection_client=single, max_connections=1)
        other: Any = redis.asyncio.Redis(port=server.port, single_connection_client=single, max_connections=1)
        ways: list[Callable[[], Awaitable[Decision]]] = [
            lambda: asyncio.to_thread(Commands(plain).gcra, key, 0, 1, "1s", block="50ms"),
            lambda: AsyncCommands(other).gcra(key, 0, 1, "1s", block="50ms"),
        ]
        assert plain.ping() and await other.ping()
        for wait in ways:
            with server.frozen(), pytest.raises(redis.TimeoutError):
                await wait()
        assert [plain.echo("own"), await other.echo("own")] == [b"own", b"own"]
        plain.close()
        await other.aclose()


async def test_a_wait_on_the_application_s_client_outlasts_its_time_out_and_is_sent_once(server: Server, key: str) -> None:
    held = Commands(redis.Redis(port=server.port))
    for single in (False, True):
        plain = redis.Redis(port=server.port, socket_timeout=0.2, single_connection_client=single)
        other: Any = redis.asyncio.Redis(port=server.port, socket_timeout=0.2, single_connection_client=single)
        ways: list[Callable[[], Awaitable[Decision]]] = [
            lambda: asyncio.to_thread(Commands(plain).concurrent, key, 1, "1m", "next", block="9s"),
            lambda: AsyncCommands(other).concurrent(key, 1, "1m", "next", block="9s"),
        ]
        for wait in ways:
            held.concurrent(key, 1, "1m", "first")
            before = server.calls("rl.concurrent")
            waits = asyncio.ensure_future(wait())
            await asyncio.sleep(0.8)
            assert server.calls("rl.concurrent") - before <= 1
            held.release(key, "first")
            assert (await waits).allowed
            held.release(key, "next")
        plain.close()
        await other.aclose()


async def test_a_wait_on_the_application_s_cluster_outlasts_its_time_out(cluster: Cluster, key: str) -> None:
    plain: Any = redis.RedisCluster(host="127.0.0.1", port=cluster.port, socket_timeout=0.5)
    other: Any = redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.port, socket_timeout=0.5)
    assert Commands(plain).gcra(key, 0, 1, "1500ms").allowed
    assert (await asyncio.to_thread(Commands(plain).gcra, key, 0, 1, "1500ms", block="9s")).allowed
    assert (await AsyncCommands(other).gcra(key, 0, 1, "1500ms", block="9s")).allowed
    # After a failover, the first call finds the old node gone, and the next one asks the cluster.
    kinds: list[tuple[Any, Any]] = [(plain, ClusterNode), (other, AsyncClusterNode)]
    for client, node in kinds:
        client.nodes_manager.slots_cache[client.keyslot(key)] = [node("127.0.0.1", 1, "primary")]
    with pytest.raises(redis.ConnectionError):
        Commands(plain).gcra(key, 9, 10, "1h", block="1s")
    with pytest.raises(redis.ConnectionError):
        await AsyncCommands(other).gcra(key, 9, 10, "1h", block="1s")
    assert Commands(plain).gcra(key, 9, 10, "1h", block="1s").allowed
    assert (await AsyncCommands(other).gcra(key, 9, 10, "1h", block="1s")).allowed
    plain.close()
    await other.aclose()
