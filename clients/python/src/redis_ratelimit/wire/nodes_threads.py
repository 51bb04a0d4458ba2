"""A limiter's own connections, for threads."""

from __future__ import annotations

from collections.abc import Generator
from threading import RLock
from time import sleep
from typing import Any, Protocol, TypeVar

from redis import Redis, RedisCluster
from redis.connection import Connection, SSLConnection

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..decide.failure import Closed
from ..decide.fork import after_fork
from .clients import Client
from .link_threads import Link
from .redirect import Step, routed
from .settings import Address, Settings, Source, server_name, source_of_cluster, source_of_server
from .slots import SlotMap, named

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

    def where(self, call: Call) -> str:
        """Returns the name of the server that will get the call, as far as it is known."""
        ...

    def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server."""
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


class ServerNodes:
    """A single server."""

    slots: None = None

    def __init__(self, source: Source, timeout: float) -> None:
        self._name = server_name(source)
        self._link = Link(source, timeout, self._name, {})

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        return self._link.exchange(call)

    def where(self, call: Call) -> str:
        """Returns the name of the server."""
        return self._name

    def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server."""
        self._link.end_waits()

    def close(self) -> None:
        """Closes all connections."""
        self._link.close()


class ClusterNodes:
    """The nodes of a cluster."""

    slots: SlotMap

    def __init__(self, source: Source, timeout: float, replicas: bool) -> None:
        self._source, self._timeout, self._closed = source, timeout, False
        self._more: Settings = {"redis_connect_func": _on_connect(source.settings, replicas)}
        self._links: dict[Address, Link] = {}
        self.slots = SlotMap(source.seeds, source.remap, replicas, timeout)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock

    def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        if self._closed:
            raise Closed
        return drive(routed(self.slots, call), self._perform)

    def where(self, call: Call) -> str:
        """Returns the name of the node that will get the call, as far as it is known."""
        return self.slots.where(call)

    def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server."""
        with self._lock:
            links = list(self._links.values())
        for link in links:
            link.end_waits()

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            self._closed, links = True, list(self._links.values())
        for link in links:
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
                more = {"host": host, "port": port, **self._more}
                new = Link(self._source, self._timeout, named(address), more)
                link = self._links.setdefault(address, new)
                if self._closed:
                    link.close()
                    raise Closed
        return link


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
