"""What a limiter does when its connections lead to a server that does not decide, and new ones lead to another."""

from __future__ import annotations

import asyncio

import pytest

from both import Maker
from redis_ratelimit import Unavailable
from servers import Proxy, Server, free_port


async def test_finds_the_primary_behind_the_address_of_one_that_became_a_replica(make: Maker) -> None:
    with Server() as old, Server() as new, Proxy(old.port) as proxy:
        limiter = make(proxy.port)
        # Several connections, all of which lead to the old one.
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(4)))
        assert (await limiter.limit("user:0", "9/h", wait="1s")).answered
        proxy.lead_to(new.port)
        old.client.replicaof("127.0.0.1", free_port())
        lost = await limiter.limit("user:1", "9/h")
        assert isinstance(lost.error, Unavailable) and lost.error.kind == "READONLY"
        assert (await limiter.limit("user:1", "9/h")).answered
        assert (await limiter.limit("user:1", "9/h", wait="1s")).answered
        assert limiter.counters["breaker_opened"] == 0


async def test_calls_under_way_to_one_that_became_a_replica_count_once(make: Maker) -> None:
    with Server() as old, Server() as new, Proxy(old.port, delay=0.1) as proxy:
        limiter = make(proxy.port, timeout=5.0)
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(8)))
        proxy.lead_to(new.port)
        old.client.replicaof("127.0.0.1", free_port())
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(8)))
        assert limiter.counters["breaker_opened"] == 0
        assert (await limiter.limit("user:1", "9/h")).answered


async def test_silent_connections_cost_one_call_however_many_there_are(
    make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    with Server() as server, Proxy(server.port, delay=0.02) as proxy:
        limiter = make(proxy.port)
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(8)))
        assert proxy.connections > 4
        proxy.silence()
        answers = [(await limiter.limit("user:1", "9/h")).answered for _ in range(4)]
        # A loop that is late does not blame the connection.
        late = sum("the event loop was late" in line for line in caplog.messages)
        assert not answers[0] and all(answers[1 + late :])


async def test_silent_connections_under_way_count_once(make: Maker) -> None:
    with Server() as server, Proxy(server.port, delay=0.05) as proxy:
        limiter = make(proxy.port, timeout=1.0)
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(8)))
        proxy.silence()
        await asyncio.gather(*(limiter.limit(f"user:{number}", "9/h") for number in range(8)))
        assert limiter.counters["breaker_opened"] == 0
        assert (await limiter.limit("user:1", "9/h")).answered
