"""Sends a call on the client of the application, to the node of its key.

redis-py asks a node for the keys of each command that it does not know, twice a call (COMMAND GETKEYS). It does not ask if
the node is named, so the node is named here."""

from __future__ import annotations

from itertools import count
from typing import Any, Protocol, TypeAlias

import redis.asyncio as client
from redis import Redis, RedisCluster, asyncio
from redis.exceptions import AskError, ClusterDownError, ConnectionError, MovedError, TimeoutError, TryAgainError

from ..call.call import Call
from ..call.errors import ConfigurationError
from .blocking import forget_slots, waited, waited_at
from .redirect import combined

AsyncClient: TypeAlias = "client.Redis | client.RedisCluster"


class AsyncSender(Protocol):
    """Sends calls."""

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        ...


def async_sender_of(redis: AsyncClient | AsyncSender) -> AsyncSender:
    """Returns what sends calls on this client."""
    if isinstance(redis, client.RedisCluster):
        return _OnCluster(redis)
    if isinstance(redis, client.Redis):
        return _OnServer(redis)
    if not hasattr(redis, "send"):
        raise wrong_client(redis)
    return redis


def wrong_client(redis: object) -> ConfigurationError:
    """Returns the error for what is no client of this package."""
    kind = redis if isinstance(redis, type) else type(redis)
    given = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    expected = "a redis.asyncio.Redis or redis.asyncio.RedisCluster"
    is_async = isinstance(redis, (asyncio.Redis, asyncio.RedisCluster))
    is_client = is_async or isinstance(redis, (Redis, RedisCluster))
    other = f": {'Async' if is_async else ''}RateLimiter takes it" if is_client else ""
    given = f"the class {given}" if kind is redis else f"{given}{other}"
    return ConfigurationError(f"the client must be {expected}, such as Redis.from_url(…), not {given}")


_REDIRECTED = (MovedError, AskError, TryAgainError, ClusterDownError)


class _OnServer:
    def __init__(self, redis: Any) -> None:
        self._redis = redis

    async def send(self, call: Call) -> object:
        if call.wait is not None:
            return await waited(self._redis, call, call.wait)
        return await self._redis.execute_command(*call.words)


class _OnCluster:
    def __init__(self, redis: Any) -> None:  # redis-py leaves most of its types open
        self._redis, self._turn = redis, count()

    async def send(self, call: Call) -> object:
        await self._redis.initialize()  # asyncio only
        nodes = self._nodes(call)
        if call.wait is not None:
            try:
                return await waited_at(self._redis, nodes[0], call, call.wait)
            except _REDIRECTED:  # redis-py follows it
                pass
            except (ConnectionError, TimeoutError):
                await forget_slots(self._redis)
                raise
        return combined([await self._redis.execute_command(*call.words, target_nodes=node) for node in nodes])

    def _nodes(self, call: Call) -> Any:
        """The nodes that get the call. A replica answers probes if the client reads from replicas."""
        redis = self._redis
        if call.everywhere:
            return redis.get_primaries()
        if call.key is None:
            primaries = redis.get_primaries() or [redis.get_random_node()]
            return [primaries[next(self._turn) % len(primaries)]]
        replicas = call.on_replica and (redis.read_from_replicas or redis.load_balancing_strategy)
        return [(replicas and redis.get_node_from_key(call.key, replica=True)) or redis.get_node_from_key(call.key)]
