"""Sends a call on the client of the application, to the node of its key.

redis-py asks a node for the keys of each command that it does not know, twice a call (COMMAND GETKEYS). It does not ask if
the node is named, so the node is named here."""

from __future__ import annotations

from random import choice
from typing import Protocol, TypeAlias, TypeVar, cast

from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis, RedisCluster as AsyncRedisCluster

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.values import Key

_S = TypeVar("_S")

Client: TypeAlias = "Redis | RedisCluster"
AsyncClient: TypeAlias = "AsyncRedis | AsyncRedisCluster"


class Sender(Protocol):
    """Sends calls."""

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        ...


class AsyncSender(Protocol):
    """Sends calls on asyncio."""

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        ...


def sender(redis: Client | Sender) -> Sender:
    """Returns what sends calls on this client."""
    if isinstance(redis, RedisCluster):
        return _OnCluster(cast(_Cluster, redis))
    if isinstance(redis, Redis):
        return _OnServer(cast(_Server, redis))
    return checked_sender(redis, "redis.Redis or redis.RedisCluster")


def async_sender(redis: AsyncClient | AsyncSender) -> AsyncSender:
    """Returns what sends calls on this client of redis.asyncio."""
    if isinstance(redis, AsyncRedisCluster):
        return _OnAsyncCluster(cast(_AsyncCluster, redis))
    if isinstance(redis, AsyncRedis):
        return _OnAsyncServer(cast(_AsyncServer, redis))
    return checked_sender(redis, "redis.asyncio.Redis or redis.asyncio.RedisCluster")


def checked_sender(redis: _S, expected: str) -> _S:
    """Returns what is a sender already."""
    if isinstance(redis, (Redis, RedisCluster, AsyncRedis, AsyncRedisCluster)) or not hasattr(redis, "send"):
        raise ConfigurationError(f"the client must be a {expected}, such as Redis.from_url(…), not {type(redis).__name__}")
    return redis


# What is used of redis-py, whose own types leave most of it open.


class _Server(Protocol):
    def execute_command(self, *words: object) -> object: ...


class _AsyncServer(Protocol):
    async def execute_command(self, *words: object) -> object: ...


class _Nodes(Protocol):
    read_from_replicas: bool
    load_balancing_strategy: object

    def get_node_from_key(self, key: Key, replica: bool = False) -> object: ...

    def get_primaries(self) -> list[object]: ...


class _Cluster(_Nodes, Protocol):
    def get_random_node(self) -> object: ...

    def execute_command(self, *words: object, target_nodes: object) -> object: ...


class _AsyncCluster(_Nodes, Protocol):
    def get_random_node(self) -> object: ...

    async def initialize(self) -> object: ...

    async def execute_command(self, *words: object, target_nodes: object) -> object: ...


class _OnServer:
    def __init__(self, redis: _Server) -> None:
        self._redis = redis

    def send(self, call: Call) -> object:
        return self._redis.execute_command(*call.words)


class _OnAsyncServer:
    def __init__(self, redis: _AsyncServer) -> None:
        self._redis = redis

    async def send(self, call: Call) -> object:
        return await self._redis.execute_command(*call.words)


class _OnCluster:
    def __init__(self, redis: _Cluster) -> None:
        self._redis = redis

    def send(self, call: Call) -> object:
        nodes = _nodes(self._redis, call)
        return combined([self._redis.execute_command(*call.words, target_nodes=node) for node in nodes])


class _OnAsyncCluster:
    def __init__(self, redis: _AsyncCluster) -> None:
        self._redis = redis

    async def send(self, call: Call) -> object:
        await self._redis.initialize()
        nodes = _nodes(self._redis, call)
        return combined([await self._redis.execute_command(*call.words, target_nodes=node) for node in nodes])


def _nodes(redis: _Cluster | _AsyncCluster, call: Call) -> list[object]:
    """The nodes that get the call. A replica answers probes if the client reads from replicas."""
    if call.everywhere:
        return redis.get_primaries()
    if call.key is None:
        return [choice(redis.get_primaries() or [redis.get_random_node()])]
    replicas = on_replica(call) and (redis.read_from_replicas or redis.load_balancing_strategy)
    return [(replicas and redis.get_node_from_key(call.key, replica=True)) or redis.get_node_from_key(call.key)]


def on_replica(call: Call) -> bool:
    """Whether a replica may answer. Policies are not replicated, so no replica answers for a policy."""
    return call.readonly and call.command != "RL.ASKPEEK"


def combined(replies: list[object]) -> object:
    """One reply for those of all primaries. They are versions and numbers of policies: the largest is told."""
    return replies[0] if len(replies) == 1 else max(cast("list[int]", replies))
