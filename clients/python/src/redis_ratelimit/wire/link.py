"""A limiter's own connections to one server, for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError, ResponseError, TimeoutError as NoReply

from ..call.call import Call
from ..decide.failure import Closed, NoFreeConnection
from .settings import CONNECTING, CONNECTIONS, MARGIN, SPARE, Settings, Source, connecting_time, patience, pool_of
from .within import in_time


class AsyncLink:
    """Connections to a server. A call that waits in the server does not count among those that others share.

    The pools of redis.asyncio may lose a connection whose caller is cancelled. They only make connections here.

    Attributes:
        closed: Whether it is closed. Then each call raises `Closed`.
    """

    def __init__(self, source: Source, timeout: float, name: str, more: Settings) -> None:
        self.closed = self._waits_ended = False
        self._timeout, self._patience, self._name = timeout, connecting_time(timeout), name
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
            self._opened = _Opened(loop, self._name)
        return self._opened

    async def _exchange(self, opened: _Opened, call: Call, asking: bool, patience: float, seconds: float) -> object:
        connection = opened.free.pop() if opened.free else self._made(opened)
        if call.wait is not None:
            opened.waiting.add(connection)
        try:
            await opened.connect(connection, patience)
            if self._is_over(call):
                raise Closed
            async with in_time(seconds, call, f"no reply from {self._name} within {seconds:g} s"):
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
        name: How an error calls the server.
        room: For calls that share connections.
        turn: For connections that open.
        free: Connections that are not in use.
        all: All connections.
        waiting: Those of calls that wait in the server.
        closed: Whether they are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.loop, self.name = loop, name
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
            async with in_time(seconds, None, f"no connection to {self.name} within {seconds:g} s"):
                await connection.connect()
        finally:
            self.turn.release()

    async def take(self, semaphore: asyncio.Semaphore, seconds: float) -> None:
        """Waits until there is room, or a turn."""
        if not semaphore.locked():
            await semaphore.acquire()  # at once
            return
        late = f"no free connection to {self.name} within {seconds:g} s"
        try:
            async with in_time(seconds, None, late):
                await semaphore.acquire()
        except NoReply as error:
            raise NoFreeConnection(ConnectionError(late), False) from error
        if self.closed:
            semaphore.release()
            raise Closed
