"""A limiter's own connections to one server, for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from threading import RLock
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError, TimeoutError as NoReply

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import ServerFull, Silence, is_silent, is_unable
from ..decide.fork import after_fork
from .pool import Pool
from .slots import named
from .sockets import (
    AsyncPlace,
    AsyncRoom,
    connect,
    disconnect,
    exchange,
    exchange_all,
    here,
    is_open,
    is_stale,
    on_connect,
)
from .source import CONNECTING, MARGIN, TRIES, Address, Settings, Source, patience, pool_of, raise_unable

T = TypeVar("T")


class _AsyncOpened:
    """Connections that are used together.

    Attributes:
        where: The event loop, if it is one.
        pool: Which of them a call gets.
        room: For calls that share connections.
        turn: For connections that open: few at a time, so that a burst does not overrun the server.
    """

    def __init__(self, pool: Pool, most: int) -> None:
        self.where = here()
        self.pool, self.room, self.turn = pool, AsyncRoom(most), AsyncRoom(CONNECTING)


class AsyncLink:
    """Connections to a server. A call that waits in the server does not count among those that others share.

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
        self.closed = False
        self._timeout, self._patience, self._clock, self._name = timeout, connect_timeout, clock, name
        self._most = source.connections
        # Each step of a call has its own time-out.
        settings = source.settings | patience(None, Retry(NoBackoff(), 0)) | more
        self._pool_class, self._pool_settings = pool_of(source, settings, ConnectionPool)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins without connections. Redis-py would wait for the lock of a pool, which a thread of the parent may hold."""
        self._lock = RLock()
        self._pool: Any = self._pool_class(**self._pool_settings)
        self._opened: _AsyncOpened | None = None

    async def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        call.asked = self._name
        try:
            if call.wait is not None:
                return await self._waited(self._of_here(), call, asking, call.wait)
            seconds = call.timeout or self._timeout
            return await self._lent(lambda connection: exchange(connection, call, asking, seconds, self._is_over))
        except Exception as error:
            # Redis-py raises any error, such as an AttributeError, if a connection in use is closed by another thread.
            if self._is_over(call) and not isinstance(error, Closed):
                raise Closed from error
            raise

    async def exchange_all(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls that do not wait in one pipeline. Returns their replies. In place of a missing reply stands its error."""
        replies: list[object] = []
        for call in calls:
            call.asked = self._name
        try:
            await self._lent(lambda connection: self._pipelined(connection, calls, replies))
        except Exception as error:
            replies += [Closed() if self.closed else error] * (len(calls) - len(replies))
        return replies

    async def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server, which are ended."""
        opened = self._opened
        if opened is not None and opened.where is here():
            for connection in opened.pool.waits():
                await disconnect(connection)

    async def close(self) -> None:
        """Closes all connections."""
        self.closed = True
        opened = self._opened
        if opened is None:
            return
        every = opened.pool.close()
        if opened.where is here():
            for connection in every:
                await disconnect(connection)

    def _of_here(self) -> _AsyncOpened:
        """The connections that can be used here: those of one event loop cannot be used in another."""
        opened = self._opened
        if opened is None or opened.where is not here():
            with self._lock:
                if self._opened is None or self._opened.where is not here():
                    pool = Pool(self._pool.make_connection, AsyncPlace, self._clock, self._timeout, self._patience)
                    self._opened = _AsyncOpened(pool, self._most)
                opened = self._opened
        if self.closed:
            raise Closed
        return opened

    async def _lent(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Lends a shared connection, and closes it if a reply may still reach it."""
        opened = self._of_here()
        pool = opened.pool
        until = self._clock() + pool.patience()
        await opened.room.enter(self._patience)
        try:
            connection = await self._shared(opened, until)
            begun = self._clock()
            try:
                reply = await work(connection)
            except ResponseError as error:
                if is_unable(error):
                    await self._drop(pool, connection, *pool.take_idle())
                else:
                    await self._give_back(pool, connection)
                raise
            except BaseException as error:
                await self._drop(pool, connection)
                if is_silent(error) and pool.silent(begun):
                    await self._drop(pool, *pool.take_idle())
                    raise Silence(str(error)) from error
                raise
            pool.answered()
            await self._give_back(pool, connection)
            return reply
        finally:
            opened.room.leave()

    async def _shared(self, opened: _AsyncOpened, until: float) -> Any:
        """Returns an open connection. If none can be opened, waits for one that is open."""
        pool = opened.pool
        refused: BaseException | None = None
        tries = TRIES
        while True:
            connection, place = pool.take(refused, tries)
            if place is not None and (connection := await self._handed(pool, place, until)) is None:
                continue  # no connection is open any more
            try:
                await self._connect(opened, connection, max(0.0, until - self._clock()))
                return connection
            except BaseException as error:
                await self._drop(pool, connection)
                tries = pool.refused(error, tries)
                refused = error

    async def _handed(self, pool: Pool, place: AsyncPlace, until: float) -> Any:
        """Waits for a connection that another call gives back. None: there is none any more."""
        try:
            connection = await place.wait(max(0.0, until - self._clock()))
        except BaseException as error:  # such as a cancellation, or a signal's
            pool.leave(place)
            if isinstance(error, NoReply):
                raise ServerFull(f"no free connection, and no further one: {pool.refusal}") from error
            raise
        return connection

    async def _waited(self, opened: _AsyncOpened, call: Call, asking: bool, wait: float) -> object:
        pool = opened.pool
        connection = pool.begin_wait()
        keeps = False
        try:
            await self._connect(opened, connection, max(self._patience, wait))
            reply = await exchange(connection, call, asking, wait + MARGIN, self._is_over)
            keeps = True
            return reply
        except ResponseError as error:
            keeps = not is_unable(error)
            if not keeps:
                await self._drop(pool, *pool.take_idle())
            raise
        finally:
            if not pool.end_wait(connection, keeps):
                await self._drop(pool, connection)

    async def _connect(self, opened: _AsyncOpened, connection: Any, seconds: float) -> None:
        """Connects, and connects anew if the server has closed the connection or sent what nobody asked for."""
        if is_open(connection):
            if not await is_stale(connection):
                return
            await disconnect(connection)
        await opened.turn.enter(seconds)
        try:
            await connect(connection, seconds, opened.pool.patience())
        finally:
            opened.turn.leave()

    async def _pipelined(self, connection: Any, calls: Sequence[Call], replies: list[object]) -> None:
        await exchange_all(connection, calls, replies, self._timeout, self._is_over, self._clock)
        raise_unable(replies)

    async def _give_back(self, pool: Pool, connection: Any) -> None:
        if not pool.give_back(connection):
            await self._drop(pool, connection)

    async def _drop(self, pool: Pool, *connections: Any) -> None:
        for connection in connections:
            pool.drop(connection)
            await disconnect(connection)

    def _is_over(self, call: Call) -> bool:
        return self.closed or call.ended


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
        self._more = on_connect(source.settings, replicas)
        self._links: dict[Address, AsyncLink] = {}
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock

    def to(self, address: Address) -> AsyncLink:
        """Returns the connections to a node."""
        link = self._links.get(address)
        if link is None:
            with self._lock:
                host, port = address
                more = {"host": host, "port": port, **self._more}
                new = AsyncLink(self._source, *self._bounds, named(address), more)
                link = self._links.setdefault(address, new)
                link.closed = self.closed
        return link

    def all(self) -> list[AsyncLink]:
        """Returns the connections to all nodes."""
        with self._lock:
            return list(self._links.values())

    def close(self) -> list[AsyncLink]:
        """Returns the links to close. Those that `to` makes from now on are closed."""
        with self._lock:
            self.closed = True
            return list(self._links.values())
