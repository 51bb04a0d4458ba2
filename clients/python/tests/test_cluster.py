"""On a cluster each call goes to the node of its key: no MOVED, and no COMMAND GETKEYS."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
import redis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.cluster import LoadBalancingStrategy

from both import OnThreads
from redis_ratelimit import (
    AsyncRateLimiter,
    Concurrent,
    FixedWindow,
    Gcra,
    Limit,
    RateLimiter,
    TokenBucket,
)
from redis_ratelimit.commands import AsyncCommands, Commands
from servers import Cluster, Server, eventually

REPLICAS = LoadBalancingStrategy.ROUND_ROBIN_REPLICAS
BUCKET = TokenBucket(100, 100, "100d")
Send = Callable[..., Awaitable[object]]


# Each call with a key, as methods and their arguments.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("token_bucket", ("{#}b", 100, 100, "100d"), {"cost": 5, "hold": ("h", "1m")}),
    ("settle", ("{#}b", "h", BUCKET, 3), {}),
    ("refund", ("{#}b", BUCKET), {}),
    ("peek", ("{#}b", BUCKET), {}),
    ("info", ("{#}b",), {}),
    ("leaky_bucket", ("{#}l", 9, 9, "1s"), {}),
    ("gcra", ("{#}g", 9, 10, "1s"), {}),
    ("gcra", (b"{#}g", 9, 10, "1s"), {"block": "10ms"}),
    ("fixed_window", ("{#}f", 9, "1h"), {}),
    ("calendar", ("{#}c", 9, "DAY"), {}),
    ("uniform", ("{#}u", "1s"), {}),
    ("sliding_window", ("{#}w", 9, "1s"), {}),
    ("sliding_log", ("{#}o", 9, "1s"), {}),
    ("smooth", ("{#}s", 9, "1s"), {}),
    ("concurrent", ("{#}r", 9, "1m", "id"), {}),
    ("renew", ("{#}r", "1m", "id"), {}),
    ("release", ("{#}r", "id"), {}),
    ("penalty", ("{#}p", 9, "1m", "1m"), {}),
    ("sketch", ("{#}k", "item", 9, 10, "1s"), {"width": 16}),
    ("shed", ("{#}d", 0.5), {}),
    ("throttle", ("{#}t", 9, 10, 60), {}),
    ("cl_throttle", ("{#}t", 9, 10, 60), {"quantity": 1}),
    ("xadd", ("{#}x", 9, "*", {"a": "b"}), {}),
    ("lpush", ("{#}y", 9, ["a"]), {}),
    ("rpush", ("{#}y", 9, ["a"]), {}),
    ("multi", (["{#}m1", "{#}m2"], ["10/s", Limit(FixedWindow(9, "1h"), on=2)]), {"hold": ("h", "1m")}),
    ("multi_settle", (["{#}m1", "{#}m2"], "h", ["10/s"]), {"cost": 1}),
    ("multi_peek", (["{#}m1", "{#}m2"], ["10/s"]), {}),
    ("multi_refund", (["{#}m1", "{#}m2"], ["10/s"]), {}),
    ("multi", (["{#}n1", "{#}n2"], [Concurrent(9, "1m", "id")]), {}),
    ("multi_release", (["{#}n1", "{#}n2"], "id"), {}),
    ("ask", ("{#}a", "api"), {"more_keys": ["{#}a2"], "hold": ("h", "1m")}),
    ("ask_settle", ("{#}a", "api", "h", 1), {"more_keys": ["{#}a2"]}),
    ("ask_peek", ("{#}a", "api"), {"more_keys": ["{#}a2"]}),
    ("ask_refund", ("{#}a", "api"), {"more_keys": ["{#}a2"]}),
]
WITHOUT_KEY = {"help", "explain", "top", "top_reset", "apply"} | {name for name in vars(Commands) if name.startswith("policy_")}


def numbered(value: object, number: int) -> Any:
    """The value with a number for each #, so that calls are for all nodes."""
    if isinstance(value, str):
        return value.replace("#", str(number))
    if isinstance(value, bytes):
        return value.replace(b"#", str(number).encode())
    if isinstance(value, list):
        return [numbered(each, number) for each in cast("list[object]", value)]
    return value


async def finished(reply: Any) -> Any:
    return await reply if inspect.isawaitable(reply) else reply


@pytest.fixture(params=["commands", "async commands", "limiter", "async limiter", "replicas", "async replicas"])
async def commands(request: pytest.FixtureRequest, cluster: Cluster, key: str) -> AsyncIterator[Any]:
    """The commands on the application's client, and on a limiter's connections."""
    prefix = f"{key}:"
    if request.param.startswith("async"):
        async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
            if request.param == "async commands":
                yield AsyncCommands(client, prefix)
                return
            replicas = request.param == "async replicas"
            async with AsyncRateLimiter(client, prefix=prefix, timeout=5.0, read_from_replicas=replicas) as limiter:
                yield limiter.commands
        return
    threaded = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    if request.param == "commands":
        yield Commands(threaded, prefix)
    else:
        replicas = request.param == "replicas"
        with RateLimiter(threaded, prefix=prefix, timeout=5.0, read_from_replicas=replicas) as on_threads:
            yield on_threads.commands
    threaded.close()


def test_each_method_with_a_key_is_called() -> None:
    methods = {name for name in vars(Commands) if not name.startswith("_")}
    assert {name for name, _, _ in CALLS} | WITHOUT_KEY == methods


async def test_no_call_is_moved(cluster: Cluster, commands: Any) -> None:
    set_policies(cluster)
    await finished(commands.gcra("warm", 9, 10, "1s"))
    cluster.reset()
    for number in range(7):
        for name, values, options in CALLS:
            given = [numbered(value, number) for value in values]
            more = {option: numbered(value, number) for option, value in options.items()}
            await finished(getattr(commands, name)(*given, **more))
    assert cluster.moved() == 0
    assert cluster.calls("command|getkeys") == 0
    assert cluster.calls("rl.multi") == 14 and cluster.calls("rl.ask") == 7
    on_replicas = sum(node.calls("rl.peek") for node in cluster.replicas)
    assert on_replicas in (0, 7)


def set_policies(cluster: Cluster) -> None:
    for node in cluster.primaries:
        node.client.execute_command("RL.POLICY", "DEL", "api")
        node.client.execute_command("RL.POLICY", "SET", "api", *"LIMIT GCRA 9 10 1s".split())


async def test_policies_are_set_on_all_primaries(cluster: Cluster, commands: Any, key: str) -> None:
    name = f"everywhere.{key[-8:]}"
    assert await finished(commands.policy_set(name, ["10/s"])) == 1
    for node in cluster.primaries:
        assert name in str(node.client.execute_command("RL.POLICY", "LIST"))
    assert await finished(commands.policy_del(name)) is True
    for node in cluster.primaries:
        assert name not in str(node.client.execute_command("RL.POLICY", "LIST"))
    assert (await finished(commands.help(command="gcra")))[0].startswith("RL.GCRA")
    assert isinstance(await finished(commands.top()), list)


@pytest.fixture(params=["threads", "asyncio"])
async def limiter(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncIterator[Any]:
    if request.param == "asyncio":
        async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
            async with AsyncRateLimiter(client, timeout=5.0) as limiter:
                yield limiter
        return
    threaded = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    with RateLimiter(threaded, timeout=5.0) as on_threads:
        yield OnThreads(on_threads)
    threaded.close()


async def test_a_limiter_works_on_all_nodes(cluster: Cluster, limiter: Any, key: str) -> None:
    set_policies(cluster)
    await limiter.limit(key, "1/s")
    cluster.reset()
    for number in range(9):
        name = f"{key}:{number}"
        assert (await limiter.limit(name, Gcra(9, 10, "1h"))).remaining == 9
        assert (await limiter.limits(["{%s}1" % name, "{%s}2" % name], ["10/h"])).allowed
        assert (await limiter.ask(name + ":ask", "api")).allowed
        assert (await limiter.peek(name, Gcra(9, 10, "1h"))).allowed
        assert (await limiter.limit(name + ":wait", Gcra(0, 1, "20ms"), wait="20s")).allowed
        async with limiter.lease(name + ":lease", 1, "1m") as lease:
            assert lease.held
        async with limiter.budget(name + ":budget", BUCKET).hold(5) as held:
            held.settle(1)
        async with limiter.budget(name + ":policy", "api").hold(5) as held:
            held.settle(1)
    assert cluster.moved() == 0 and cluster.calls("command|getkeys") == 0


async def test_replicas_answer_probes(cluster: Cluster, key: str) -> None:
    async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
        async with AsyncRateLimiter(client, timeout=5.0, read_from_replicas=True) as limiter:
            await limiter.limit(key, "10/h")
            cluster.reset()
            for _ in range(4):
                assert (await limiter.peek(key, "10/h")).answered
            assert sum(node.calls("rl.peek") for node in cluster.replicas) == 4
            assert cluster.moved() == 0


async def test_a_client_that_reads_from_replicas_asks_them(cluster: Cluster, key: str) -> None:
    def on_replicas() -> int:
        return sum(node.calls("rl.peek") for node in cluster.replicas)

    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port, load_balancing_strategy=REPLICAS)
    cluster.reset()
    Commands(client).peek(key, "10/h")
    client.close()
    assert on_replicas() == 1
    async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port, load_balancing_strategy=REPLICAS) as asynchronous:
        await AsyncCommands(asynchronous).peek(key, "10/h")
    assert on_replicas() == 2 and cluster.moved() == 0


async def test_a_slot_that_moves_is_followed(cluster: Cluster, limiter: Any, key: str) -> None:
    """The key's slot moves to another node and back."""
    assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 9
    slot = int(cluster.nodes[0].client.execute_command("CLUSTER", "KEYSLOT", key))
    owner = next(node for node in cluster.primaries if has(node, key))
    other = next(node for node in cluster.primaries if node is not owner)
    try:
        move(slot, key, owner, other)
        assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 8
        cluster.reset()
        assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 7
        assert cluster.moved() == 0
    finally:
        move(slot, key, other, owner)
        cluster.settle()
    assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 6


async def test_a_failover_is_followed(cluster: Cluster, limiter: Any, key: str) -> None:
    assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 9
    number = next(number for number, node in enumerate(cluster.primaries) if has(node, key))
    primary, replica = cluster.primaries[number], cluster.replicas[number]
    try:
        await asyncio.to_thread(fail_over, replica)
        answers = [await limiter.limit(key, Gcra(9, 10, "1h")) for _ in range(3)]
        assert all(each.allowed for each in answers) and answers[2].answered
        cluster.reset()
        assert (await limiter.limit(key, Gcra(9, 10, "1h"))).answered
        assert cluster.moved() == 0
    finally:
        await asyncio.to_thread(fail_over, primary)
        await asyncio.to_thread(cluster.settle)


def fail_over(replica: Server) -> None:
    """Makes a replica the primary. The others vote only once in a while, so it does not ask them."""
    replica.client.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
    eventually(lambda: replica.info("replication", "role") == "master", "the failover")
    eventually(lambda: replica.info("replication", "connected_slaves") == 1, "the end of the failover")


async def test_a_key_that_is_moving_is_found(cluster: Cluster, limiter: Any, key: str) -> None:
    """ASK: the slot is about to move, and the key has moved already."""
    assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 9
    slot = int(cluster.nodes[0].client.execute_command("CLUSTER", "KEYSLOT", key))
    owner = next(node for node in cluster.primaries if has(node, key))
    other = next(node for node in cluster.primaries if node is not owner)
    begin(slot, owner, other)
    migrate(key, owner, other)
    try:
        assert (await limiter.limit(key, Gcra(9, 10, "1h"))).remaining == 8
        assert (await limiter.limits([key], [Gcra(9, 10, "1h")])).remaining == 7
    finally:
        finish(slot, owner, other)
        move(slot, key, other, owner)
        cluster.settle()


def has(node: Any, key: str) -> bool:
    try:
        return bool(node.client.exists(key))
    except redis.ResponseError:
        return False


def begin(slot: int, owner: Any, other: Any) -> None:
    other.client.execute_command(
        "CLUSTER", "SETSLOT", slot, "IMPORTING", owner.client.execute_command("CLUSTER", "MYID")
    )
    owner.client.execute_command(
        "CLUSTER", "SETSLOT", slot, "MIGRATING", other.client.execute_command("CLUSTER", "MYID")
    )


def migrate(key: str, owner: Any, other: Any) -> None:
    owner.client.execute_command("MIGRATE", "127.0.0.1", other.port, key, 0, 5000)


def finish(slot: int, owner: Any, other: Any) -> None:
    name = other.client.execute_command("CLUSTER", "MYID")
    for node in (other, owner):
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", name)


def move(slot: int, key: str, owner: Any, other: Any) -> None:
    begin(slot, owner, other)
    migrate(key, owner, other)
    finish(slot, owner, other)


async def test_reads_without_a_key_go_to_a_primary(cluster: Cluster) -> None:
    threaded = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
        cluster.reset()
        for _ in range(10):
            Commands(threaded).top()
            await AsyncCommands(client).top()
    threaded.close()
    assert [cluster.calls("rl.top"), sum(node.calls("rl.top") for node in cluster.replicas)] == [20, 0]


@pytest.mark.parametrize("replicas", [False, True])
async def test_the_applications_function_for_connections_is_called(cluster: Cluster, key: str, replicas: bool) -> None:
    called: list[str] = []

    def connected(connection: Any) -> None:
        called.append("threads")

    async def connects(connection: Any) -> None:
        await connection.on_connect()
        called.append("asyncio")

    options: dict[str, Any] = {"host": "127.0.0.1", "port": cluster.port, "redis_connect_func": connected}
    threaded = redis.RedisCluster(**options)
    # redis.asyncio passes its keyword arguments on to connections, but has no argument for this one.
    client = AsyncRedisCluster(host="127.0.0.1", port=cluster.port)
    client.connection_kwargs["redis_connect_func"] = connects
    async with client:
        called.clear()
        with RateLimiter(threaded, timeout=5.0, read_from_replicas=replicas) as limiter:
            assert limiter.peek(key, "10/h").answered
        assert set(called) == {"threads"}
        async with AsyncRateLimiter(client, timeout=5.0, read_from_replicas=replicas) as asynchronous:
            called.clear()
            assert (await asynchronous.peek(key, "10/h")).answered
        assert set(called) == {"asyncio"}
    threaded.close()


async def test_a_dead_replica_does_not_open_the_breaker(cluster: Cluster, key: str) -> None:
    async with AsyncRedisCluster(host="127.0.0.1", port=cluster.port) as client:
        async with AsyncRateLimiter(client, timeout=0.5, read_from_replicas=True) as limiter:
            assert (await limiter.limit(key, "10/h")).answered
            number = next(number for number, node in enumerate(cluster.primaries) if has(node, key))
            with cluster.replicas[number].frozen():
                for _ in range(7):
                    assert (await limiter.peek(key, "10/h")).answered
                    assert (await limiter.limit(key, "100/h")).answered
            assert limiter.counters["breaker_opened"] == limiter.counters["unavailable"] == 0
