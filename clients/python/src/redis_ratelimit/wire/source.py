"""What the client of the application says about its servers, for connections of the limiter's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

from redis import ConnectionPool, ResponseError

from ..call.errors import ConfigurationError
from ..decide.failure import is_unable

Address: TypeAlias = tuple[str, int]
Settings: TypeAlias = dict[str, Any]

CONNECTIONS = 50
"""The most connections to a server for calls that do not wait, unless the client has a `max_connections` of its own."""
CONNECTING = 16
"""The most connections to a server that are opened at a time."""
SPARE = 8
"""How many connections of calls that waited are kept."""
MARGIN = 1.0
"""Seconds that a caller waits longer than the server."""
WAITS = 1_000
"""The most calls of a limiter that wait in its servers, each on a connection of its own."""
TRIES = 2
"""How often a call opens a connection that is lost while it opens."""
FULL = 1.0
"""For how many seconds no more connections are opened to a server that takes no more."""
_UNBOUNDED = 2**31

# What the application's client needs for itself, or what a limiter sets otherwise.
_DROPPED = frozenset(
    "himport_registry retry retry_on_error retry_on_timeout socket_timeout socket_connect_timeout event_dispatcher cache "
    "cache_config health_check_interval decode_responses legacy_responses response_callbacks max_connections timeout "
    "connection_pool connection_class ssl".split()
)
_DROPPED_PREFIXES = ("maint_notifications_", "orig_")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the servers are, and how to connect to them.

    Attributes:
        connection_class: The class of redis-py for the connections.
        settings: The arguments of the class, without time-outs and retries.
        seeds: Nodes of the cluster. Empty for a single server.
        remap: How the cluster's addresses are reached, if otherwise than they are told.
        pool: The pool that finds its server by Sentinel, if the client has one.
        connections: The most connections to a server for calls that do not wait.
    """

    connection_class: type[Any]
    settings: Settings
    seeds: tuple[Address, ...] = ()
    remap: Callable[[Address], Address] | None = None
    pool: Any = None
    connections: int = CONNECTIONS


def source_of_server(redis: Any) -> Source:
    """Returns the source of a plain client, of redis-py or redis.asyncio."""
    pool = redis.connection_pool
    sentinel = pool if hasattr(pool, "sentinel_manager") else None
    settings = own_settings(pool.connection_kwargs)
    return Source(pool.connection_class, settings, pool=sentinel, connections=_most(pool.max_connections))


def source_of_cluster(redis: Any, plain: type[Any], tls: type[Any]) -> Source:
    """Returns the source of a cluster's client. `plain` and `tls` are the classes of connections for it."""
    kwargs: Mapping[str, Any] = redis.get_connection_kwargs()
    connection_class = kwargs.get("connection_class") or (tls if kwargs.get("ssl") else plain)
    settings = own_settings(kwargs)
    # The client's own function sends READONLY if that client reads from replicas. The limiter decides for itself.
    on_connect = settings.pop("redis_connect_func", None)
    if getattr(on_connect, "__self__", None) is redis:
        on_connect = getattr(redis, "user_on_connect_func", None)
    if on_connect is not None:
        settings["redis_connect_func"] = on_connect
    nodes = [*redis.get_nodes(), *redis.nodes_manager.startup_nodes.values()]
    seeds = tuple(dict.fromkeys((str(node.host), int(node.port)) for node in nodes))
    if not seeds:
        raise ConfigurationError("the client of the cluster knows no node")
    remap = getattr(redis.nodes_manager, "address_remap", None)
    return Source(connection_class, settings, seeds, remap, connections=_most(kwargs.get("max_connections")))


def _most(connections: int | None) -> int:
    """Returns the client's own `max_connections`, unless it is redis-py's default."""
    return CONNECTIONS if connections in (None, _UNBOUNDED, ConnectionPool().max_connections) else int(connections)


def server_name(source: Source) -> str:
    """Returns how a log calls the server."""
    if source.pool is not None:
        return str(source.pool.service_name)
    return str(
        source.settings.get("path") or f"{source.settings.get('host', 'localhost')}:{source.settings.get('port', 6379)}"
    )


def own_settings(kwargs: Mapping[str, Any]) -> Settings:
    """Returns the address and the credentials among the settings of a client."""
    return {
        name: value
        for name, value in kwargs.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_PREFIXES) and value is not None
    }


def pool_of(source: Source, settings: Settings, plain: type[Any]) -> tuple[type[Any], Settings]:
    """Returns the class of a pool and its arguments: the client's own class if it finds its server by Sentinel."""
    settings = settings | {"connection_class": source.connection_class, "max_connections": _UNBOUNDED}
    settings |= _without_notifications(plain)
    found = source.pool
    if found is None:
        return plain, settings
    settings |= {"service_name": found.service_name, "sentinel_manager": found.sentinel_manager}
    settings |= {"is_master": found.is_master, "check_connection": found.check_connection}
    found_class: Any = found.__class__
    return found_class, settings


def patience(timeout: float | None, no_retry: object) -> Settings:
    """The settings of a limiter's connections: their time-out, and no retries."""
    return {"socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": no_retry}


def late(seconds: float) -> str:
    """Why a call has no reply."""
    return f"no reply within {seconds * 1000:.0f} ms"


def crowded(seconds: float) -> str:
    """Why a call has no connection."""
    return f"too many calls at once: no free connection within {seconds * 1000:.0f} ms"


def raise_unable(replies: Iterable[object]) -> None:
    """Raises an error among the replies that says that the server can decide nothing now, so that its connection is closed."""
    for reply in replies:
        if isinstance(reply, ResponseError) and is_unable(reply):
            raise reply


def _without_notifications(pool: type[Any]) -> Settings:
    """No notifications from the server. Redis-py 6 has none, and redis.asyncio has them from 8.1 on."""
    if "maint_notifications_config" not in signature(pool).parameters:
        return {}
    from redis.maint_notifications import MaintNotificationsConfig

    return {"maint_notifications_config": MaintNotificationsConfig(enabled=False)}
