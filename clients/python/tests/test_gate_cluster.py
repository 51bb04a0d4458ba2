"""The middleware on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import redis

from gates import BUCKET, HOUR, Request, free, gate, held, passed, refused, remaining, rule
from redis_ratelimit import Concurrent, RateLimiter, SlidingLog
from redis_ratelimit.gate.rules import Rule
from servers import Cluster


@pytest.fixture
def on_cluster(cluster: Cluster, key: str) -> Iterator[RateLimiter]:
    client = redis.RedisCluster("127.0.0.1", cluster.port)
    with RateLimiter(client, prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter
    client.close()


def test_rules_of_one_caller_are_one_call_on_a_cluster(on_cluster: RateLimiter, cluster: Cluster) -> None:
    door = gate(on_cluster, rule("hour"), rule("minute", "5/m"), rule("streams", Concurrent(5, "1m")))
    door.limiter.ready()
    cluster.reset()
    for i in range(20):
        door.leave(passed(door.enter({"user": f"user{i}"})))
    assert (cluster.calls("rl.multi"), cluster.moved()) == (20, 0)
    assert on_cluster.peek("hour:{user1}", HOUR, 0).remaining == 2


def test_other_slots_are_asked_one_after_another_and_given_back(on_cluster: RateLimiter, cluster: Cluster) -> None:
    by_address = Rule[Request]("address", lambda request: request["address"], SlidingLog(1, "1h"))
    rules = [rule("hour"), rule("streams", Concurrent(2, "1m")), rule("tokens", BUCKET, estimate=5), by_address]
    door = gate(on_cluster, *rules)
    door.limiter.ready()
    cluster.reset()
    for i in range(10):
        user, address = f"user{i}", f"10.0.0.{i}"
        door.leave(passed(door.enter({"user": user, "address": address})))
        told = refused(door.enter({"user": user, "address": address}))
        assert json.loads(told.body)["violated-policies"] == ["address"]
        assert remaining(on_cluster, f"hour:{{{user}}}") == 2
        assert free(on_cluster, f"streams:{{{user}}}") == 2
        assert remaining(on_cluster, f"tokens:{{{user}}}", BUCKET) >= 995
        assert not held(on_cluster, f"tokens:{{{user}}}")
    assert cluster.moved() == 0
