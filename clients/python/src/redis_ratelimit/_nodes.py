"""A limiter's own connections, for threads."""

from __future__ import annotations

from collections.abc import Generator
from threading import Lock, Semaphore
from time import sleep
from typing import Any, Protocol, TypeVar

from redis import ConnectionPool, Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.exceptions import ConnectionError, ResponseError, TimeoutError
from redis.retry import Retry

from ._call import Call
from ._failure import NoFreeConnection
from ._routes import Client
from ._settings import (
    CLOSED,
    CONNECTING,
    CONNECTIONS,
    SPARE,
    Address,
    Settings,
    Source,
    connecting_time,
    patience,
    source_of_cluster,
    source_of_server,
)
from ._slots import SlotMap, Step, routed
from ._values import Key
from .errors import ConfigurationError

MARGIN = 1.0
"""Seconds that a caller waits longer than the server."""
WAITING = 10_000
"""The most connections to a server for calls that wait."""

R = TypeVar("R")
S = TypeVar("S")


def drive(steps: Generator[S, object, R], perform: Any) -> R:
    """Performs each step, and returns what the generator returns. Errors are raised in the generator."""
    try:
        step = next(steps)
        while True:
            try:
                reply = perform(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


class Nodes(Protocol):
    """The servers that a limiter asks."""

    @property
    def slots(self) -> SlotMap | None:
        """Which node has which slot, on a cluster."""
        ...

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        ...

    def where(self, key: Key | None) -> str:
        """Returns the name of the server that has the key."""
        ...

    def close(self) -> None:
        """Closes all connections."""
        ...


def nodes_of(redis: Client, timeout: float, replicas: bool) -> Nodes:
    """Returns connections of the limiter's own to the servers of this client."""
    if isinstance(redis, RedisCluster):
        return ClusterNodes(source_of_cluster(redis, Connection, SSLConnection), timeout, replicas)
    if not isinstance(redis, Redis):
        raise ConfigurationError(
            f"the client must be a redis.Redis or redis.RedisCluster, such as Redis.from_url(…), not {type(redis).__name__}"
        )
    if replicas:
        raise ConfigurationError("read_from_replicas needs the client of a cluster")
    return ServerNodes(source_of_server(redis), timeout)


class Link:
    """Connections to a server: some that are shared, and one for each call that waits."""

    def __init__(self, source: Source, timeout: float, more: Settings) -> None:
        self._timeout, self._patience = timeout, connecting_time(timeout)
        self._room, self._turn = Semaphore(CONNECTIONS), Semaphore(CONNECTING)
        self._spare: set[Any] = set()
        # The time-out of a socket is for the handshake. A call has its own.
        settings = source.settings | patience(self._patience, Retry(NoBackoff(), 0)) | more
        if source.pool is not None:
            named = {"service_name": source.pool.service_name, "sentinel_manager": source.pool.sentinel_manager}
            named |= {"is_master": source.pool.is_master, "check_connection": source.pool.check_connection}
            named |= {"connection_class": source.connection_class, "max_connections": WAITING}
            self._shared: Any = type(source.pool)(**named, **settings)
            self._waiting: Any = type(source.pool)(**named, **settings)
            return
        settings |= {"connection_class": source.connection_class, "max_connections": WAITING}
        self._shared, self._waiting = ConnectionPool(**settings), ConnectionPool(**settings)

    def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        if call.wait is not None:
            return self._waited(call, asking)
        _take(self._room, self._patience)
        try:
            connection = self._connection(self._shared, self._patience)
            try:
                return self._exchange(connection, call, asking, self._timeout)
            finally:
                self._shared.release(connection)
        finally:
            self._room.release()

    def close(self) -> None:
        """Closes all connections."""
        self._shared.disconnect()
        self._waiting.disconnect()

    def _waited(self, call: Call, asking: bool) -> object:
        wait = call.wait or 0.0
        connection = self._connection(self._waiting, max(self._patience, wait))
        self._spare.discard(connection)
        try:
            return self._exchange(connection, call, asking, wait + MARGIN)
        finally:
            if len(self._spare) < SPARE:
                self._spare.add(connection)
            else:
                connection.disconnect()
            self._waiting.release(connection)

    def _connection(self, pool: Any, seconds: float) -> Any:
        """Returns a connection that is open. Few are opened at a time, so that a burst does not overrun the server."""
        _take(self._turn, seconds)
        try:
            return pool.get_connection()
        finally:
            self._turn.release()

    def _exchange(self, connection: Any, call: Call, asking: bool, seconds: float) -> object:
        try:
            if asking:
                connection.send_command("ASKING")
                connection.read_response()
            call.sent = True
            connection.send_command(*call.words)
            if not connection.can_read(timeout=seconds):
                raise TimeoutError(f"no reply within {seconds:g} s")
            return connection.read_response()
        except ResponseError:
            raise
        except BaseException:
            connection.disconnect()
            raise


def _take(semaphore: Semaphore, seconds: float) -> None:
    if not semaphore.acquire(timeout=seconds):
        raise NoFreeConnection(ConnectionError(f"no free connection within {seconds:g} s"), False)


class ServerNodes:
    """A single server."""

    slots: None = None

    def __init__(self, source: Source, timeout: float) -> None:
        self._link, self._closed = Link(source, timeout, {}), False
        self._name = server_name(source)

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        if self._closed:
            raise RuntimeError(CLOSED)
        return self._link.exchange(call)

    def where(self, key: Key | None) -> str:
        """Returns the name of the server."""
        return self._name

    def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        self._link.close()


class ClusterNodes:
    """The nodes of a cluster."""

    slots: SlotMap

    def __init__(self, source: Source, timeout: float, replicas: bool) -> None:
        self._source, self._timeout, self._closed = source, timeout, False
        self._more: Settings = {"redis_connect_func": _on_connect(source.settings, replicas)}
        self._links: dict[Address, Link] = {}
        self._lock = Lock()
        self.slots = SlotMap(source.seeds, source.remap, replicas, timeout)

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        if self._closed:
            raise RuntimeError(CLOSED)
        return drive(routed(self.slots, call), self._perform)

    def where(self, key: Key | None) -> str:
        """Returns the name of the node that has the key."""
        return self.slots.where(key)

    def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        for link in list(self._links.values()):
            link.close()

    def _perform(self, step: Step) -> object:
        if step.pause:
            sleep(step.pause)
        return self._link(step.address).exchange(step.call, step.asking)

    def _link(self, address: Address) -> Link:
        link = self._links.get(address)
        if link is None:
            with self._lock:
                host, port = address
                new = Link(self._source, self._timeout, {"host": host, "port": port, **self._more})
                link = self._links.setdefault(address, new)
        return link


def server_name(source: Source) -> str:
    """Returns how a log calls the server."""
    if source.pool is not None:
        return str(source.pool.service_name)
    return str(
        source.settings.get("path") or f"{source.settings.get('host', 'localhost')}:{source.settings.get('port', 6379)}"
    )


def _on_connect(settings: Settings, replicas: bool) -> Any:
    """Says READONLY on each connection, so that replicas answer. As in redis-py, the application's function is next."""
    also = settings.get("redis_connect_func")

    def connect(connection: Any) -> None:
        connection.on_connect()
        if replicas:
            connection.send_command("READONLY")
            connection.read_response()
        if also is not None:
            also(connection)

    return connect if replicas or also is not None else None
