"""A limiter's own connections to one server, for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError, TimeoutError as NoReply

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection, ServerFull, Silence, is_lost, is_silent, is_unable, waits_for_another
from .slots import named
from .source import CONNECTING, FULL, MARGIN, SPARE, TRIES, Address, Settings, Source, patience, pool_of, raise_unable
from .within import in_time


T = TypeVar("T")


class AsyncLink:
    """Connections to a server. A call that waits in the server does not count among those that others share.

    The pools of redis.asyncio may lose a connection whose caller is cancelled. They only make connections here. If the server
    takes no more, calls wait in line for one that is open.

    Attributes:
        closed: Whether it is closed. Then each call raises `Closed`.
    """

    def __init__(
        self,
        source: Source,
        timeout: float,
        connect_timeout: float,
        clock: Callable[[], float],
        name: str,
        more: Settings,
    ) -> None:
        self.closed = self._waits_ended = False
        self._timeout, self._patience, self._clock, self._name = timeout, connect_timeout, clock, name
        self._most = source.connections
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

    async def exchange_all(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls that do not wait in one pipeline. Returns their replies. In place of a missing reply stands its error."""
        replies: list[object] = []
        for call in calls:
            call.asked = self._name
        try:
            if self.closed:
                raise Closed
            await self._lent(self._of_loop(), lambda connection: self._pipelined(connection, calls, replies))
        except Exception as error:
            replies += [Closed() if self.closed else error] * (len(calls) - len(replies))
        return replies

    async def _sent(self, call: Call, asking: bool) -> object:
        if self.closed:
            raise Closed
        opened = self._of_loop()
        if call.wait is not None:
            return await self._waited(opened, call, asking, call.wait)
        seconds = call.timeout or self._timeout
        return await self._lent(opened, lambda connection: self._exchange(connection, call, asking, seconds))

    async def _lent(self, opened: _Opened, work: Callable[[Any], Awaitable[T]]) -> T:
        """Lends a shared connection, and closes it if a reply may still reach it."""
        hurries = self._clock() < opened.hurried_until
        until = self._clock() + (min(self._timeout, self._patience) if hurries else self._patience)
        await opened.take(opened.room, self._patience)
        try:
            connection = await opened.shared(until)
            begun = self._clock()
            try:
                reply = await work(connection)
            except ResponseError as error:
                if is_unable(error):
                    await opened.drop(connection)
                    await opened.drop_idle()
                else:
                    opened.give_back(connection)
                raise
            except BaseException as error:
                await opened.drop(connection)
                if is_silent(error) and opened.heard < begun:
                    await opened.drop_idle()
                    opened.hurried_until = self._clock() + self._patience
                    raise Silence(str(error)) from error
                raise
            opened.heard = self._clock()
            opened.give_back(connection)
            return reply
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
        self._opened.leave_line()
        if self._opened.loop is not asyncio.get_running_loop():
            return
        for connection in list(self._opened.all):
            await connection.disconnect(nowait=True)

    def _of_loop(self) -> _Opened:
        """The connections of the running loop. Those of another loop cannot be used."""
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened.loop is not loop:
            self._opened = _Opened(loop, self._pool, self._most, self._clock)
        return self._opened

    async def _waited(self, opened: _Opened, call: Call, asking: bool, wait: float) -> object:
        connection = opened.spare.pop() if opened.spare else opened.made()
        opened.waiting.add(connection)
        keeps = False
        try:
            await opened.connect(connection, max(self._patience, wait))
            reply = await self._exchange(connection, call, asking, wait + MARGIN)
            keeps = True
            return reply
        except ResponseError as error:
            keeps = not is_unable(error)
            if not keeps:
                await opened.drop_idle()
            raise
        finally:
            opened.waiting.discard(connection)
            if keeps and len(opened.spare) < SPARE:
                opened.spare.append(connection)
            else:
                await opened.drop(connection)

    async def _exchange(self, connection: Any, call: Call, asking: bool, seconds: float) -> object:
        cancelled = cancellations()
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

    async def _pipelined(self, connection: Any, calls: Sequence[Call], replies: list[object]) -> None:
        cancelled = cancellations()
        async with in_time(self._timeout, f"no reply within {self._timeout * 1000:.0f} ms"):
            for call in calls:
                call.sent = True
            await connection.send_packed_command(connection.pack_commands([call.words for call in calls]))
            while len(replies) < len(calls):
                try:
                    replies.append(await connection.read_response())
                except ResponseError as error:
                    replies.append(error)
        if cancellations() > cancelled:
            raise asyncio.CancelledError
        raise_unable(replies)

    def _is_over(self, call: Call) -> bool:
        return self.closed or call.ended or (self._waits_ended and call.wait is not None)


class _Opened:
    """The connections of an event loop.

    Attributes:
        room: For calls that share connections.
        turn: For connections that open.
        all: All connections.
        open: Those that are shared and open, or being opened.
        free: Those of them that are not in use.
        spare: Those of calls that waited.
        waiting: Those of calls that wait in the server.
        heard: When a call on a shared one was last answered.
        hurried_until: Until then calls wait no longer for a connection than for a reply, because of a silence.
        closed: Whether they are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Any, most: int, clock: Callable[[], float]) -> None:
        self.loop, self._pool, self._clock = loop, pool, clock
        self.room, self.turn = asyncio.Semaphore(most), asyncio.Semaphore(CONNECTING)
        self.all: set[Any] = set()
        self.open: set[Any] = set()
        self.free: list[Any] = []
        self.spare: list[Any] = []
        self.waiting: set[Any] = set()
        self.heard = self.hurried_until = 0.0
        self.closed = False
        self._line: deque[asyncio.Future[Any]] = deque()
        self._full_until, self._refusal = 0.0, ""

    async def shared(self, until: float) -> Any:
        """Returns an open connection. If none can be opened, waits for one that is open.

        A connection that is lost while it opens is opened once more: a server that closes all of them is not away.
        """
        refusal: BaseException | None = None
        tries = TRIES
        while True:
            if self.free:
                connection = self.free.pop()
            elif self.open and (refusal is not None or self._clock() < self._full_until):
                if (connection := await self._handed(until)) is None:
                    continue  # no connection is open any more
            elif refusal is not None and tries <= 0:
                raise refusal
            else:
                connection = self.made()
                self.open.add(connection)
            try:
                await self.connect(connection, max(0.0, until - self._clock()))
                return connection
            except BaseException as error:
                await self.drop(connection)
                if not waits_for_another(error):
                    raise
                refusal, tries = error, tries - 1 if is_lost(error) else 0
                self._full_until, self._refusal = self._clock() + FULL, str(error)

    async def _handed(self, until: float) -> Any:
        """Waits for a connection that another call gives back. None: there is none any more."""
        place: asyncio.Future[Any] = self.loop.create_future()
        self._line.append(place)
        late = f"no free connection, and no further one: {self._refusal}"
        try:
            async with in_time(max(0.0, until - self._clock()), late):
                connection = await place
        except BaseException as error:  # such as a cancellation
            if place in self._line:
                self._line.remove(place)
            elif place.done() and not place.cancelled() and place.result() is not None:
                self.give_back(place.result())
            if isinstance(error, NoReply):
                raise ServerFull(late) from error
            raise
        if self.closed:
            raise Closed
        return connection

    def give_back(self, connection: Any) -> None:
        """Hands a connection to the next call in line, or keeps it."""
        while self._line:
            if not (place := self._line.popleft()).done():
                place.set_result(connection)
                return
        self.free.append(connection)

    def made(self) -> Any:
        """Returns a new connection, which is not open."""
        connection = self._pool.make_connection()
        self.all.add(connection)
        return connection

    async def drop(self, connection: Any) -> None:
        """Closes a connection. If it was the last one, nobody waits for it any more."""
        self.all.discard(connection)
        self.open.discard(connection)
        if not self.open:
            self.leave_line()
        await connection.disconnect(nowait=True)

    async def drop_idle(self) -> None:
        """Closes the connections that nobody uses: they lead where no answer came from, and new ones may lead elsewhere."""
        idle = self.free + self.spare
        self.free, self.spare = [], []
        for connection in idle:
            await self.drop(connection)

    def leave_line(self) -> None:
        """Lets nobody wait for a connection any more."""
        while self._line:
            if not (place := self._line.popleft()).done():
                place.set_result(None)

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

    def __init__(
        self, source: Source, timeout: float, connect_timeout: float, replicas: bool, clock: Callable[[], float]
    ) -> None:
        self.closed = False
        self._source, self._bounds = source, (timeout, connect_timeout, clock)
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
            link = self._links[address] = AsyncLink(self._source, *self._bounds, named(address), more)
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
