"""Errors, lines of the log and the breaker name the node that was asked, be it a replica."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from both import inside
from redis_ratelimit import AsyncRateLimiter, Breaker, CallError, RateLimiter
from redis_ratelimit.call.call import Call
from servers import Cluster, Server, eventually

PROBE = "10/h"


def of_key(cluster: Cluster, key: str) -> tuple[Server, Server]:
    """The primary of a key and its replica."""
    slot = int(cluster.nodes[0].client.execute_command("CLUSTER", "KEYSLOT", key))
    number = next(number for number in range(3) if slot < (number + 1) * 16384 // 3)
    return cluster.primaries[number], cluster.replicas[number]


@pytest.fixture
def written(cluster: Cluster, key: str) -> str:
    """A key that holds something of another program, on the replica too."""
    primary, replica = of_key(cluster, key)
    primary.client.set(key, "a string")
    eventually(lambda: replica.client.dbsize() == primary.client.dbsize(), "the replication")
    return key


def test_an_error_reply_names_the_replica(cluster: Cluster, written: str) -> None:
    primary, replica = of_key(cluster, written)
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    with RateLimiter(client, timeout=5.0, read_from_replicas=True) as limiter:
        with pytest.raises(CallError, match=f"RL.PEEK at 127.0.0.1:{replica.port}: ") as raised:
            limiter.peek(written, PROBE)
        assert raised.value.node == f"127.0.0.1:{replica.port}"
        with pytest.raises(CallError, match=f"RL.GCRA at 127.0.0.1:{primary.port}: "):
            limiter.limit(written, PROBE)
    client.close()


async def test_an_error_reply_names_the_replica_on_asyncio(cluster: Cluster, written: str) -> None:
    primary, replica = of_key(cluster, written)
    async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
        async with AsyncRateLimiter(client, timeout=5.0, read_from_replicas=True) as limiter:
            with pytest.raises(CallError, match=f"RL.PEEK at 127.0.0.1:{replica.port}: "):
                await limiter.peek(written, PROBE)
            with pytest.raises(CallError, match=f"RL.GCRA at 127.0.0.1:{primary.port}: "):
                await limiter.limit(written, PROBE)


class Silent:
    """Connections to a node that has gone."""

    def __init__(self, name: str) -> None:
        self._name = name

    def exchange(self, call: Call, asking: bool) -> object:
        call.asked = self._name
        raise redis.ConnectionError("gone")

    def end_waits(self) -> None: ...

    def close(self) -> None: ...


def test_a_replica_that_answers_does_not_speak_for_its_primary(
    cluster: Cluster, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    primary, _ = of_key(cluster, key)
    name = f"127.0.0.1:{primary.port}"
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    breaker = Breaker(failures=2, cooldown=600)
    with RateLimiter(client, timeout=5.0, breaker=breaker, read_from_replicas=True) as limiter:
        assert limiter.peek(key, PROBE).answered
        channel: Any = inside(limiter).channel
        channel._links._links["127.0.0.1", primary.port] = Silent(name)
        for _ in range(2):
            assert not limiter.limit(key, PROBE).answered
            assert limiter.peek(key, PROBE).answered
        decision = limiter.limit(key, PROBE)
        assert decision.error is not None and decision.error.kind == "breaker" and decision.error.node == name
        assert limiter.peek(key, PROBE).answered
    assert f"RL.GCRA 'key…' at {name}: failed open: gone" in caplog.text
    assert f"breaker opened: {name} did not answer 2 calls in a row" in caplog.text
    client.close()


def test_a_call_that_was_redirected_names_the_node_that_it_came_to(cluster: Cluster, key: str) -> None:
    primary, _ = of_key(cluster, key)
    other = next(node for node in cluster.primaries if node is not primary)
    primary.client.set(key, "a string")
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    with RateLimiter(client, timeout=5.0) as limiter:
        limiter.limit(key + "{%s}" % key, PROBE)
        slots: Any = inside(limiter).channel.slots
        slot = int(primary.client.execute_command("CLUSTER", "KEYSLOT", key))
        slots.moved(slot, ("127.0.0.1", other.port))
        slots._suspected = False
        with pytest.raises(CallError, match=f"RL.GCRA at 127.0.0.1:{primary.port}: "):
            limiter.limit(key, PROBE)
    client.close()
