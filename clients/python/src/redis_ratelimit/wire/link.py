"""A limiter's own connections to one server, for asyncio."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import Any

from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError, TimeoutError as NoReply

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection
from .slots import named
from .source import CONNECTING, CONNECTIONS, MARGIN, SPARE, Address, Settings, Source, patience, pool_of
from .within import in_time


class AsyncLink:
    """Connections to a server. A call that waits in the server does not count among those that others share.

    The pools of redis.asyncio may lose a connection whose caller is cancelled. They only make connections here.

    Attributes:
        closed: Whether it is closed. Then each call raises `Closed`.
    """

    def __init__(self, source: Source, timeout: float, connect_timeout: float, name: str, more: Settings) -> None:
        self.closed = self._waits_ended = False
        self._timeout, self._patience, self._name = timeout, connect_timeout, name
        # Each step of a call has its own time-out.
        settings = source.settings | patience(None, Retry(NoBackoff(), 0)) | more
        pool_class, pool_settings = pool_of(source, settings, ConnectionPool)
        self._pool: Any = pool_class(**pool_settings)
        self._opened: _Opened | None = None

    async def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        call.asked = self._name
        try:
            return await self._sent(call, asking)
        except Exception as error:
            if self._is_over(call) and not isinstance(error, Closed):
                raise Closed from error
            raise

    async def _sent(self, call: Call, asking: bool) -> object:
        if self.closed:
            raise Closed
        opened = self._of_loop()
        if call.wait is not None:
            patience = max(self._patience, call.wait)
            return await self._exchange(opened, call, asking, patience, call.wait + MARGIN)
        await opened.take(opened.room, self._patience)
        try:
            return await self._exchange(opened, call, asking, self._patience, self._timeout)
        finally:
            opened.room.release()

    async def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server. From now on such calls raise `Closed`."""
        self._waits_ended = True
        if self._opened is None or self._opened.loop is not asyncio.get_running_loop():
            return
        for connection in list(self._opened.waiting):
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Closes all connections."""
        self.closed = True
        if self._opened is None:
            return
        self._opened.closed = True
        if self._opened.loop is not asyncio.get_running_loop():
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
        if call.wait is not None:
            opened.waiting.add(connection)
        cancelled = cancellations()
        try:
            await opened.connect(connection, patience)
            if self._is_over(call):
                raise Closed
            async with in_time(seconds, f"no reply within {seconds * 1000:.0f} ms"):
                if asking:
                    await connection.send_command("ASKING")
                    await connection.read_response()
                call.sent = True
                await connection.send_command(*call.words)
                reply = await connection.read_response()
            if cancellations() > cancelled:
                raise asyncio.CancelledError
            return reply
        except ResponseError:
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            opened.waiting.discard(connection)
            if call.wait is not None and len(opened.free) >= SPARE:
                opened.all.discard(connection)
                await connection.disconnect(nowait=True)
            else:
                opened.free.append(connection)

    def _is_over(self, call: Call) -> bool:
        return self.closed or call.ended or (self._waits_ended and call.wait is not None)

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
        waiting: Those of calls that wait in the server.
        closed: Whether they are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.room, self.turn = asyncio.Semaphore(CONNECTIONS), asyncio.Semaphore(CONNECTING)
        self.free: list[Any] = []
        self.all: set[Any] = set()
        self.waiting: set[Any] = set()
        self.closed = False

    async def connect(self, connection: Any, seconds: float) -> None:
        """Connects, and connects anew if the server has closed the connection or sent what nobody asked for."""
        if connection.is_connected:
            can_read = getattr(connection, "can_read", None) or connection.can_read_destructive  # the latter in redis-py 6
            try:
                if not await can_read():
                    return
            except (RedisError, OSError):
                pass
            await connection.disconnect(nowait=True)
        await self.take(self.turn, seconds)
        try:
            async with in_time(seconds, f"no connection within {seconds * 1000:.0f} ms"):
                await connection.connect()
        finally:
            self.turn.release()

    async def take(self, semaphore: asyncio.Semaphore, seconds: float) -> None:
        """Waits until there is room, or a turn."""
        if not semaphore.locked():
            await semaphore.acquire()  # at once
            return
        late = f"too many calls at once: no free connection within {seconds * 1000:.0f} ms"
        try:
            async with in_time(seconds, late):
                await semaphore.acquire()
        except NoReply as error:
            raise NoFreeConnection(late) from error
        if self.closed:
            semaphore.release()
            raise Closed


def cancellations() -> int:
    """Returns how often the caller was cancelled. `wait_for` of Python 3.11, which redis-py uses, sometimes drops one."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


class AsyncLinks:
    """The connections to the nodes of a cluster.

    Attributes:
        closed: Whether they are closed.
    """

    def __init__(self, source: Source, timeout: float, connect_timeout: float, replicas: bool) -> None:
        self.closed = False
        self._source, self._times = source, (timeout, connect_timeout)
        self._more: Settings = {"redis_connect_func": _readonly(source.settings)} if replicas else {}
        self._links: dict[Address, AsyncLink] = {}

    def to(self, address: Address) -> AsyncLink:
        """Returns the connections to a node."""
        link = self._links.get(address)
        if link is None:
            if self.closed:
                raise Closed
            host, port = address
            more = {"host": host, "port": port, **self._more}
            link = self._links[address] = AsyncLink(self._source, *self._times, named(address), more)
        return link

    def all(self) -> list[AsyncLink]:
        """Returns the connections to all nodes."""
        return list(self._links.values())

    def close(self) -> list[AsyncLink]:
        """Lets `to` raise `Closed` from now on. Returns the links to close."""
        self.closed = True
        return self.all()


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
