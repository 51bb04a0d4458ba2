"""Calls that are under way while a limiter closes take nothing, and keep no connection."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker
from gates import BUCKET, free, gate, held, remaining, rule
from redis_ratelimit import AsyncRateLimiter, Concurrent, RateLimiter
from redis_ratelimit._failure import Closed
from servers import Cluster, Proxy, Server, eventually
from test_closing import leases


def release_of(key: str) -> bytes:
    """How the release of a lease on this key begins."""
    return f"RL.RELEASE\r\n${len(key)}\r\n{key}\r\n".encode()


async def test_what_is_granted_while_the_limiter_closes_is_ended_at_once(make: Maker, server: Server, key: str) -> None:
    with Proxy(server.port, release_of(key)) as proxy:
        limiter = make(port=proxy.port, timeout=20.0)
        async with limiter.lease(key, 5, "1m"):
            closing = asyncio.create_task(limiter.close())
            await asyncio.to_thread(eventually, lambda: limiter.taken.closed, "the beginning of close")
            late, estimate = limiter.lease(key + ":late", 5, "1m"), limiter.budget(key + ":budget", BUCKET).hold(80)
            for each in (late, estimate):
                with pytest.raises(Closed):
                    await each.__aenter__()
            assert not closing.done() and not late.held and leases(server, key + ":late") == 0
            proxy.let_go()
            await closing
    assert leases(server, key) == 0
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as bare:
        assert remaining(bare, key + ":budget", BUCKET) == 1000 and not held(bare, key + ":budget")


def test_a_request_that_is_admitted_while_the_limiter_closes_ends_at_once(server: Server, key: str) -> None:
    with Proxy(server.port, release_of(key + ":first")) as proxy:
        limiter = RateLimiter(redis.Redis(port=proxy.port), prefix=f"{key}:", timeout=20.0)
        door = gate(limiter, rule("streams", Concurrent(2, "1m")))
        door.verify()
        with limiter.lease("first", 5, "1m"):
            closing = threading.Thread(target=limiter.close)
            closing.start()
            eventually(lambda: limiter.taken.closed, "the beginning of close")
            with pytest.raises(Closed):
                door.enter({"user": "ann"})
            with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as bare:
                assert free(bare, "streams:ann") == 2
            proxy.let_go()
            closing.join()


@pytest.mark.parametrize("wait", [None, "20s"])
async def test_a_call_whose_connection_opens_is_not_sent_after_close(
    make: Maker, server: Server, key: str, wait: str | None
) -> None:
    with Proxy(server.port, b"SETINFO") as proxy:  # the handshake is held up
        limiter = make(port=proxy.port, timeout=20.0)
        asking = asyncio.create_task(limiter.limit(key, "1/h", wait=wait))
        await asyncio.to_thread(eventually, lambda: proxy.connections, "the connection")
        await asyncio.sleep(0.1)
        await limiter.close()
        proxy.let_go()
        with pytest.raises(Closed):
            await asking
        with pytest.raises(Closed):
            await limiter.limit(key, "1/h")
        assert not server.client.exists(key)


def connections(server: Server, name: str) -> int:
    return [each["name"] for each in server.client.client_list()].count(name)


@pytest.mark.parametrize("wait", [None, "20s"])
async def test_a_connection_that_opens_while_the_limiter_closes_is_closed(
    server: Server, key: str, wait: str | None
) -> None:
    opening, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(connection: Any) -> None:
        await connection.on_connect()
        opening.set()
        await go_on.wait()

    client = redis.asyncio.Redis(port=server.port, client_name=key, redis_connect_func=slowly)
    limiter = AsyncRateLimiter(client, timeout=20.0)
    asking = asyncio.create_task(limiter.limit(key, "1/h", wait=wait))
    await opening.wait()
    await limiter.close()
    go_on.set()
    with pytest.raises(Closed):
        await asking
    await asyncio.to_thread(eventually, lambda: connections(server, key) == 0, "the end of the connection")
    assert not server.client.exists(key)


@pytest.mark.parametrize("wait", [None, "20s"])
def test_a_connection_that_opens_in_another_thread_is_closed(server: Server, key: str, wait: str | None) -> None:
    opening, go_on = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def slowly(connection: Any) -> None:
        opening.set()
        go_on.wait()
        connection.on_connect()  # redis-py connects anew after `disconnect`

    def ask() -> None:
        try:
            limiter.limit(key, "1/h", wait=wait)
        except BaseException as error:
            raised.append(error)

    connect: Any = slowly
    limiter = RateLimiter(redis.Redis(port=server.port, client_name=key, redis_connect_func=connect), timeout=20.0)
    asking = threading.Thread(target=ask)
    asking.start()
    opening.wait()
    limiter.close()
    go_on.set()
    asking.join()
    assert [type(each) for each in raised] == [Closed]
    eventually(lambda: connections(server, key) == 0, "the end of the connection")
    assert not server.client.exists(key)


def test_after_close_no_other_node_of_a_cluster_is_asked(cluster: Cluster, key: str) -> None:
    closing, opened = False, list[int]()
    opening, go_on = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def slowly(connection: Any) -> None:
        if closing:
            opened.append(connection.port)
            opening.set()
            go_on.wait()

    def ask() -> None:
        try:
            limiter.limit(key, "1/h")
        except BaseException as error:
            raised.append(error)

    connect: Any = slowly
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port, redis_connect_func=connect)
    limiter = RateLimiter(client, timeout=20.0)
    closing = True
    asking = threading.Thread(target=ask)
    asking.start()
    opening.wait()
    limiter.close()
    go_on.set()
    asking.join()
    client.close()
    assert [type(each) for each in raised] == [Closed] and len(set(opened)) == 1
