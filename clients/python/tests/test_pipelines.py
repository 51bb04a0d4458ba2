"""What is due together in the background goes out in one pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from inspect import isawaitable
from time import monotonic
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError, TimeoutError

from both import Maker, inside
from redis_ratelimit import AsyncRateLimiter, RateLimiter
from redis_ratelimit.call import calls
from redis_ratelimit.call.call import Call
from redis_ratelimit.taken.endings import Ending
from servers import Cluster, Proxy, Server, eventually


async def sent_together(limiter: AsyncRateLimiter | RateLimiter, sent: Sequence[Call]) -> list[object]:
    replies: Any = inside(limiter).channel.send_all(sent)
    return list(await replies if isawaitable(replies) else replies)


def reads(server: Server) -> int:
    return int(server.info("stats", "total_reads_processed"))


async def test_a_pipeline_has_a_reply_or_an_error_for_each_call(make: Maker, server: Server, key: str) -> None:
    limiter = make()
    await limiter.peek(key, "1/s")
    server.client.set(f"{key}:text", "a string")
    sent = [calls.release("", f"{key}:{name}", "an id") for name in ("a", "text", "b")]
    begun = reads(server)
    first, wrong, last = await sent_together(limiter, sent)
    assert (first, last) == (0, 0) and isinstance(wrong, ResponseError) and reads(server) - begun <= 2
    assert await sent_together(limiter, sent[:1] * 100) == [0] * 100


async def test_a_silent_server_gives_no_reply_to_any_call(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2, breaker=None)
    await limiter.peek(key, "1/s")
    with server.frozen():
        replies = await sent_together(limiter, [calls.release("", key, "an id")] * 3)
    assert all(isinstance(reply, TimeoutError) for reply in replies) and len(replies) == 3
    assert await sent_together(limiter, [calls.release("", key, "an id")] * 3) == [0, 0, 0]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
async def test_calls_for_other_nodes_are_redirected(cluster: Cluster, kind: str, key: str) -> None:
    port = cluster.nodes[0].port
    sent = [calls.release("", f"{key}:{n}", "an id") for n in range(30)]
    if kind == "threads":
        with RateLimiter(RedisCluster(host="127.0.0.1", port=port), timeout=5.0) as limiter:
            limiter.peek(key, "1/s")
            cluster.reset()
            assert await asyncio.to_thread(lambda: inside(limiter).channel.send_all(sent)) == [0] * 30
    else:
        client = redis.asyncio.RedisCluster(host="127.0.0.1", port=port)
        async with client, AsyncRateLimiter(client, timeout=5.0) as limiter_of_loop:
            await limiter_of_loop.peek(key, "1/s")
            cluster.reset()
            assert await sent_together(limiter_of_loop, sent) == [0] * 30
    assert cluster.moved() > 0


async def test_close_releases_leases_in_few_pipelines(make: Maker, server: Server, key: str) -> None:
    limiter = make()
    leases = [limiter.lease(key, 1000, "10m") for _ in range(250)]
    for lease in leases:
        await lease.__aenter__()
    server.client.config_resetstat()
    await limiter.close()
    assert server.calls("rl.release") == 250 and reads(server) < 25
    assert not any(lease.held for lease in leases)


async def test_endings_that_are_due_together_go_out_in_one_pipeline(make: Maker, server: Server, key: str) -> None:
    limiter = make()
    await limiter.peek(key, "1/s")
    with Proxy(server.port, delay=0.05) as proxy:
        slow = make(proxy.port)
        await slow.peek(key, "1/s")
        server.client.config_resetstat()
        due = monotonic() + 1  # the same instant for all, however long this takes
        for n in range(100):
            ending = Ending(inside(slow).core, calls.release("", key, str(n)), 30.0, certain=True)
            inside(slow).background.add(ending, due - monotonic())
        await asyncio.to_thread(eventually, lambda: server.calls("rl.release") == 100, "the releases")
    # Each look at the server is a read of its own, and on a busy machine there are many.
    assert reads(server) - server.calls("info") < 40
