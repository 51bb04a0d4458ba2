"""The middleware on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from gates import HOUR, gate, passed, rule
from redis_ratelimit import Concurrent, RateLimiter
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
