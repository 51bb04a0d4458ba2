"""A limiter's own connections, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, Protocol, TypeVar

from redis.asyncio import Connection, ConnectionPool, Redis, RedisCluster, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as NoReply

from ._call import Call
from ._failure import LateLoop, NoFreeConnection
from ._nodes import MARGIN, WAITING, server_name
from ._routes import AsyncClient
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

LATE, GRACE, GRACES = 0.01, 0.05, 3
"""A timer that fires so many seconds late gives a call so many seconds more, so often."""

R = TypeVar("R")
S = TypeVar("S")


async def drive(steps: Generator[S, object, R], perform: Callable[[S], Awaitable[object]]) -> R:
    """Performs each step, and returns what the generator returns. Errors are raised in the generator."""
    try:
        step = next(steps)
        while True:
            try:
                reply = await perform(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


class AsyncNodes(Protocol):
    """The servers that a limiter asks."""

    @property
    def slots(self) -> SlotMap | None:
        """Which node has which slot, on a cluster."""
        ...

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        ...

    def where(self, key: Key | None) -> str:
        """Returns the name of the server that has the key."""
        ...

    async def close(self) -> None:
        """Closes all connections."""
        ...


def async_nodes_of(redis: AsyncClient, timeout: float, replicas: bool) -> AsyncNodes:
    """Returns connections of the limiter's own to the servers of this client."""
    if isinstance(redis, RedisCluster):
        return AsyncClusterNodes(source_of_cluster(redis, Connection, SSLConnection), timeout, replicas)
    if not isinstance(redis, Redis):
        raise ConfigurationError(
            f"the client must be a redis.asyncio.Redis or RedisCluster, such as Redis.from_url(…), not {type(redis).__name__}"
        )
    if replicas:
        raise ConfigurationError("read_from_replicas needs the client of a cluster")
    return AsyncServerNodes(source_of_server(redis), timeout)


class AsyncLink:
    """Connections to a server. A call that waits in the server does not count among those that others share.

    The pools of redis.asyncio may lose a connection whose caller is cancelled. They only make connections here.
    """

    def __init__(self, source: Source, timeout: float, more: Settings) -> None:
        self._timeout, self._patience = timeout, connecting_time(timeout)
        # Each step of a call has its own time-out.
        settings = source.settings | patience(None, Retry(NoBackoff(), 0)) | more
        settings |= {"max_connections": WAITING, "connection_class": source.connection_class}
        if source.pool is not None:
            found = source.pool
            settings |= {"service_name": found.service_name, "sentinel_manager": found.sentinel_manager}
            settings |= {"is_master": found.is_master, "check_connection": found.check_connection}
        self._pool: Any = (ConnectionPool if source.pool is None else type(source.pool))(**settings)
        self._opened: _Opened | None = None

    async def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        opened = self._of_loop()
        if call.wait is not None:
            patience = max(self._patience, call.wait)
            return await self._exchange(opened, call, asking, patience, call.wait + MARGIN)
        await _take(opened.room, self._patience)
        try:
            return await self._exchange(opened, call, asking, self._patience, self._timeout)
        finally:
            opened.room.release()

    async def close(self) -> None:
        """Closes all connections."""
        if self._opened is None or self._opened.loop is not asyncio.get_running_loop():
            return
        for connection in list(self._opened.all):
            await connection.disconnect(nowait=True)

    def _of_loop(self) -> _Opened:
        """The connections of the running loop. Those of another loop cannot be used."""
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened.loop is not loop:
            self._opened = _Opened(loop)
        return self._opened

    async def _exchange(self, opened: _Opened, call: Call, asking: bool, patience: float, seconds: float) -> object:
        connection = opened.free.pop() if opened.free else self._made(opened)
        try:
            await _connect(connection, opened.turn, patience)
            async with _in_time(seconds, call, f"no reply within {seconds:g} s"):
                if asking:
                    await connection.send_command("ASKING")
                    await connection.read_response()
                call.sent = True
                await connection.send_command(*call.words)
                return await connection.read_response()
        except ResponseError:
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            if call.wait is not None and len(opened.free) >= SPARE:
                opened.all.discard(connection)
                await connection.disconnect(nowait=True)
            else:
                opened.free.append(connection)

    def _made(self, opened: _Opened) -> Any:
        connection = self._pool.make_connection()
        opened.all.add(connection)
        return connection


class _Opened:
    """The connections of an event loop.

    Attributes:
        room: For calls that share connections.
        turn: For connections that open.
        free: Connections that are not in use.
        all: All connections.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.room, self.turn = asyncio.Semaphore(CONNECTIONS), asyncio.Semaphore(CONNECTING)
        self.free: list[Any] = []
        self.all: set[Any] = set()


async def _connect(connection: Any, turn: asyncio.Semaphore, seconds: float) -> None:
    """Connects, and connects anew if the server has closed the connection or sent what nobody asked for."""
    if connection.is_connected:
        can_read = getattr(connection, "can_read", None) or connection.can_read_destructive  # the latter in redis-py 6
        try:
            if not await can_read():
                return
        except (RedisError, OSError):
            pass
        await connection.disconnect(nowait=True)
    await _take(turn, seconds)
    try:
        async with _in_time(seconds, None, f"no connection within {seconds:g} s"):
            await connection.connect()
    finally:
        turn.release()


async def _take(semaphore: asyncio.Semaphore, seconds: float) -> None:
    if not semaphore.locked():
        await semaphore.acquire()  # at once
        return
    late = f"no free connection within {seconds:g} s"
    try:
        async with _in_time(seconds, None, late):
            await semaphore.acquire()
    except NoReply as error:
        raise NoFreeConnection(ConnectionError(late), False) from error


class AsyncServerNodes:
    """A single server."""

    slots: None = None

    def __init__(self, source: Source, timeout: float) -> None:
        self._link, self._closed = AsyncLink(source, timeout, {}), False
        self._name = server_name(source)

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        if self._closed:
            raise RuntimeError(CLOSED)
        return await self._link.exchange(call)

    def where(self, key: Key | None) -> str:
        """Returns the name of the server."""
        return self._name

    async def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        await self._link.close()


class AsyncClusterNodes:
    """The nodes of a cluster."""

    slots: SlotMap

    def __init__(self, source: Source, timeout: float, replicas: bool) -> None:
        self._source, self._timeout, self._closed = source, timeout, False
        self._more: Settings = {"redis_connect_func": _readonly(source.settings)} if replicas else {}
        self._links: dict[Address, AsyncLink] = {}
        self.slots = SlotMap(source.seeds, source.remap, replicas, timeout)

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        if self._closed:
            raise RuntimeError(CLOSED)
        return await drive(routed(self.slots, call), self._perform)

    def where(self, key: Key | None) -> str:
        """Returns the name of the node that has the key."""
        return self.slots.where(key)

    async def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        for link in list(self._links.values()):
            await link.close()

    async def _perform(self, step: Step) -> object:
        if step.pause:
            await asyncio.sleep(step.pause)
        return await self._link(step.address).exchange(step.call, step.asking)

    def _link(self, address: Address) -> AsyncLink:
        link = self._links.get(address)
        if link is None:
            host, port = address
            link = self._links[address] = AsyncLink(
                self._source, self._timeout, {"host": host, "port": port, **self._more}
            )
        return link


class _Timer:
    """Ends a block of code that is not done in time.

    A loop that was busy fires its timers late, and at once with the sockets that have a reply. So a timer that fires late
    leaves some time for the replies. If there is none then either, the server is not to blame.

    Attributes:
        graces: How often the loop was late.
    """

    def __init__(self, seconds: float, block: asyncio.Timeout) -> None:
        self._loop, self._block = asyncio.get_running_loop(), block
        self.graces = 0
        self._handle = self._loop.call_later(seconds, self._fire)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fire(self) -> None:
        if self._loop.time() - self._handle.when() > LATE and self.graces < GRACES:
            self.graces += 1
            self._handle = self._loop.call_later(GRACE, self._fire)
        else:
            self._block.reschedule(self._loop.time())


@asynccontextmanager
async def _in_time(seconds: float, call: Call | None, late: str) -> AsyncGenerator[None]:
    """Raises an error if a block of code is not done in time."""
    graces = 0
    try:
        async with asyncio.timeout(None) as block:
            timer = _Timer(seconds, block)
            try:
                yield
            finally:
                timer.cancel()
                graces = timer.graces
    except TimeoutError as error:
        if graces:
            raise LateLoop(NoReply(f"{late}, and the event loop was late"), call is not None and call.sent) from error
        raise NoReply(late) from error


def _readonly(settings: Settings) -> Any:
    """Says READONLY on each connection, so that replicas answer. The application's function connects, as in redis-py."""
    also = settings.get("redis_connect_func")

    async def connect(connection: Any) -> None:
        if also is None:
            await connection.on_connect()
        else:
            done = also(connection)
            if isawaitable(done):
                await done
        await connection.send_command("READONLY")
        await connection.read_response()

    return connect
