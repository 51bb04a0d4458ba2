"""How many connections there are, and what calls do if there are no more."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis
import redis.asyncio
from test_bursts import connected

from both import Maker, OnThreads, inside
from redis_ratelimit import AsyncRateLimiter, Gcra, RateLimiter
from redis_ratelimit.wire.pool import Pool
from redis_ratelimit.wire.sockets import AsyncPlace
from redis_ratelimit.wire.sockets_threads import Place
from redis_ratelimit.wire.source import CONNECTING
from servers import PATIENCE, Proxy, Server, eventually


@pytest.fixture
async def full() -> AsyncIterator[Server]:
    """A server that takes four more connections than there are."""
    with Server() as server:
        server.client.config_set("maxclients", connected(server) + 4)
        yield server


async def asked_for(seconds: float, callers: int, ask: Callable[[], Any]) -> list[Any]:
    """The answers to callers who ask one after the other."""
    until = time.monotonic() + seconds

    async def caller() -> list[Any]:
        answers: list[Any] = []
        while time.monotonic() < until:
            answers.append(await ask())
        return answers

    return [answer for each in await asyncio.gather(*(caller() for _ in range(callers))) for answer in each]


async def test_calls_wait_for_connections_of_a_server_that_takes_no_more(make: Maker, full: Server, key: str) -> None:
    limiter = make(port=full.port, timeout=2.0, connect_timeout=5.0)
    answers = await asked_for(1.0, 24, lambda: limiter.limit(key, "1000000/h"))
    assert len(answers) > 24
    assert [each.error for each in answers if not each.answered] == []
    assert limiter.counters["breaker_opened"] == 0


async def test_calls_that_wait_in_vain_say_that_the_server_takes_no_more(
    make: Maker, full: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.client.config_set("maxclients", connected(full) + 1)
    with Proxy(full.port, b"RL.GCRA") as proxy:
        limiter = make(port=proxy.port, timeout=10.0)
        monkeypatch.setattr(inside(limiter).channel._link, "_patience", 2.0)
        first = asyncio.create_task(limiter.limit(key, "9/h"))
        await asyncio.to_thread(proxy.holds.wait)
        answers = await asyncio.gather(*(limiter.limit(key, "9/h") for _ in range(5)))
        assert [each.error and each.error.kind for each in answers] == ["maxclients"] * 5
        assert all("no free connection" in str(each.error) and "max number" in str(each.error) for each in answers)
        proxy.let_go()
        assert (await first).answered and limiter.counters["breaker_opened"] == 0


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
async def test_max_connections_of_the_client_holds(server: Server, key: str, kind: str) -> None:
    with Proxy(server.port) as proxy:
        made: Any = (
            OnThreads(RateLimiter(redis.Redis(port=proxy.port, max_connections=5), timeout=5.0, connect_timeout=5.0))
            if kind == "threads"
            else AsyncRateLimiter(
                redis.asyncio.Redis(port=proxy.port, max_connections=5), timeout=5.0, connect_timeout=5.0
            )
        )
        answers = await asked_for(0.5, 20, lambda: made.limit(key, "1000000/h"))
        assert all(each.answered for each in answers)
        assert 1 <= proxy.connections <= 5
        await made.close()


async def test_waits_are_bounded(make: Maker, server: Server, key: str) -> None:
    limiter, slow = make(max_waits=3), Gcra(0, 1, "700ms")
    assert (await limiter.limit(key, slow)).allowed
    waits = [asyncio.create_task(limiter.limit(key, slow, wait="30s")) for _ in range(3)]
    await asyncio.to_thread(eventually, lambda: server.waiting() == 3, "three waits")
    further = await limiter.limit(key, slow, wait="30s")
    assert further.error is not None and further.error.kind == "crowded" and not further.error.maybe_sent
    assert further.error.reason == "3 calls wait already, the most by max_waits"
    assert all(await asyncio.gather(*waits))
    again = await limiter.limit(key, slow, wait="30s")
    assert again.allowed and again.answered and limiter.counters["breaker_opened"] == 0


async def test_few_connections_are_opened_at_a_time(key: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        silent.setblocking(False)
        client = redis.asyncio.Redis(port=silent.getsockname()[1])
        async with AsyncRateLimiter(client, connect_timeout=2 * PATIENCE) as limiter:
            waits = [asyncio.create_task(limiter.limit(key, "1/h", wait="9s")) for _ in range(40)]
            opened = [(await asyncio.get_running_loop().sock_accept(silent))[0] for _ in range(CONNECTING)]
            await asyncio.sleep(0.2)
            with pytest.raises(BlockingIOError):
                silent.accept()
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            for connection in opened:
                connection.close()


async def test_close_leaves_no_connection(make: Maker, server: Server, key: str) -> None:
    before, limiter = connected(server), make()
    await asyncio.gather(*(limiter.limit(key, "100/h", wait=wait) for wait in (None, None, "1s")))
    assert connected(server) > before
    await limiter.close()
    await asyncio.to_thread(eventually, lambda: connected(server) == before, "the end of all connections")


@pytest.mark.parametrize("place", [Place, AsyncPlace])
async def test_what_is_handed_to_a_call_that_has_gone_is_for_the_next(place: Callable[[], Place | AsyncPlace]) -> None:
    pool, refusal = Pool(object, place, time.monotonic, 1.0, 1.0), redis.ConnectionError("max number of clients reached")
    connection, _ = pool.take(None, 1)
    (_, gone), (_, following) = pool.take(refusal, 1), pool.take(refusal, 1)
    pool.give_back(connection)
    pool.leave(gone)
    assert following.given() is connection


async def test_connections_that_are_killed_again_and_again_do_not_open_the_breaker(make: Maker, key: str) -> None:
    """Each kill costs the calls that were under way, and those after it are answered."""
    kills, callers = 5, 4
    with Server() as server:
        limiter = make(port=server.port)
        asking = asyncio.create_task(asked_for(1.5, callers, lambda: limiter.limit(key, "1000000/h")))
        for _ in range(kills):
            await asyncio.sleep(0.2)
            await asyncio.to_thread(server.client.execute_command, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        answers = await asking
    assert limiter.counters["breaker_opened"] == 0
    assert sum(not each.answered for each in answers) <= 2 * kills * callers < len(answers)


async def test_a_server_that_goes_away_is_found_out_at_once_with_four_free_connections(make: Maker, key: str) -> None:
    with Server() as server:
        limiter = make(port=server.port, timeout=5.0, connect_timeout=5.0)
        server.client.client_pause(30_000, all=False)
        asked = [asyncio.create_task(limiter.limit(key, "100/h")) for _ in range(4)]
        await asyncio.to_thread(eventually, lambda: connected(server) > 4)
        server.client.client_unpause()
        assert all([(await each).answered for each in asked])
    answer = await asyncio.wait_for(limiter.limit(key, "100/h"), 20.0)
    assert answer.error is not None and answer.error.kind == "connection"
