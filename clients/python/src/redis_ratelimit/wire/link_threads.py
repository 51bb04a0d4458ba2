"""A limiter's own connections to one server, for threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import RLock, Semaphore
from typing import Any, TypeVar

from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError, TimeoutError
from redis.retry import Retry

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection, ServerFull, Silence, is_lost, is_silent, is_unable, waits_for_another
from ..decide.fork import after_fork
from .slots import named
from .source import CONNECTING, FULL, MARGIN, SPARE, TRIES, Address, Settings, Source, patience, pool_of, raise_unable


T = TypeVar("T")


class Link:
    """Connections to a server: some that are shared, and one for each call that waits.

    The pools of redis-py hand out connections that are not open, so they only make connections here. If the server takes no
    more, calls wait in line for one that is open.

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
        # The time-out of a socket is for the handshake. A call has its own.
        settings = source.settings | patience(self._patience, Retry(NoBackoff(), 0)) | more
        self._pool_class, self._pool_settings = pool_of(source, settings, ConnectionPool)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins without connections. Redis-py would wait for the lock of a pool, which a thread of the parent may hold."""
        self._room, self._turn = Semaphore(self._most), Semaphore(CONNECTING)
        self._pool: Any = self._pool_class(**self._pool_settings)
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock
        # All connections, and of them: those that are shared and open or being opened, those of them that are free, those of
        # calls that waited, and those of calls that wait.
        self._all: set[Any] = set()
        self._open: set[Any] = set()
        self._free: list[Any] = []
        self._spare: list[Any] = []
        self._waiting: set[Any] = set()
        self._line: deque[SimpleQueue[Any]] = deque()
        self._full_until, self._refusal = 0.0, ""
        self._heard = 0.0  # when a call on a shared connection was last answered
        self._hurried_until = 0.0

    def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        call.asked = self._name
        try:
            if call.wait is not None:
                return self._waited(call, asking)
            seconds = call.timeout or self._timeout
            return self._lent(lambda connection: self._exchange(connection, call, asking, seconds))
        except Exception as error:
            # Redis-py raises any error, such as an AttributeError, if a connection in use is closed by another thread.
            if self._is_over(call) and not isinstance(error, Closed):
                raise Closed from error
            raise

    def exchange_all(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls that do not wait in one pipeline. Returns their replies. In place of a missing reply stands its error."""
        replies: list[object] = []
        for call in calls:
            call.asked = self._name
        try:
            self._lent(lambda connection: self._pipelined(connection, calls, replies))
        except Exception as error:
            replies += [Closed() if self.closed else error] * (len(calls) - len(replies))
        return replies

    def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server. From now on such calls raise `Closed`."""
        self._waits_ended = True
        with self._lock:
            waiting = list(self._waiting)
        for connection in waiting:
            connection.disconnect()

    def close(self) -> None:
        """Closes all connections."""
        self.closed = True
        with self._lock:
            every = list(self._all)
            while self._line:
                self._line.popleft().put(None)
        for connection in every:
            connection.disconnect()

    def _lent(self, work: Callable[[Any], T]) -> T:
        """Lends a shared connection, and closes it if a reply may still reach it."""
        until = self._clock() + self._patience_now()
        self._take(self._room, self._patience)
        try:
            connection = self._shared(until)
            begun = self._clock()
            try:
                reply = work(connection)
            except ResponseError as error:
                if is_unable(error):
                    self._drop(connection)
                    self._drop_idle()
                else:
                    self._give_back(connection)
                raise
            except BaseException as error:
                self._drop(connection)
                if is_silent(error) and self._heard < begun:
                    self._drop_idle()
                    self._hurried_until = self._clock() + self._patience
                    raise Silence(str(error)) from error
                raise
            self._heard = self._clock()
            self._give_back(connection)
            return reply
        finally:
            self._room.release()

    def _patience_now(self) -> float:
        """For how long a call waits for a connection. Soon after a silence that is no longer than for a reply."""
        return min(self._timeout, self._patience) if self._clock() < self._hurried_until else self._patience

    def _waited(self, call: Call, asking: bool) -> object:
        wait = call.wait or 0.0
        with self._lock:
            connection = self._spare.pop() if self._spare else self._made()
            self._waiting.add(connection)
        keeps = False
        try:
            self._connect(connection, max(self._patience, wait))
            reply = self._exchange(connection, call, asking, wait + MARGIN)
            keeps = True
            return reply
        except ResponseError as error:
            keeps = not is_unable(error)
            if not keeps:
                self._drop_idle()
            raise
        finally:
            with self._lock:
                self._waiting.discard(connection)
                keeps = keeps and not self.closed and len(self._spare) < SPARE
                if keeps:
                    self._spare.append(connection)
            if not keeps:
                self._drop(connection)

    def _shared(self, until: float) -> Any:
        """Returns an open connection. If none can be opened, waits for one that is open.

        A connection that is lost while it opens is opened once more: a server that closes all of them is not away.
        """
        refusal: BaseException | None = None
        tries = TRIES
        while True:
            line: SimpleQueue[Any] | None = None
            with self._lock:
                if self._free:
                    connection = self._free.pop()
                elif self._open and (refusal is not None or self._clock() < self._full_until):
                    line = SimpleQueue[Any]()
                    connection = None
                    self._line.append(line)
                elif refusal is not None and tries <= 0:
                    raise refusal
                else:
                    connection = self._made()
                    self._open.add(connection)
            if line is not None and (connection := self._handed(line, until)) is None:
                continue  # no connection is open any more
            try:
                self._connect(connection, until - self._clock())
                return connection
            except BaseException as error:
                self._drop(connection)
                if not waits_for_another(error):
                    raise
                refusal, tries = error, tries - 1 if is_lost(error) else 0
                self._full_until, self._refusal = self._clock() + FULL, str(error)

    def _handed(self, line: SimpleQueue[Any], until: float) -> Any:
        """Waits for a connection that another thread gives back. None: there is none any more."""
        try:
            connection = line.get(timeout=max(0.0, until - self._clock()))
        except BaseException as error:  # such as Empty, or a signal's
            with self._lock:
                if line in self._line:
                    self._line.remove(line)
                elif (late := line.get_nowait()) is not None:
                    self._give_back(late)
            if not isinstance(error, Empty):
                raise
            raise ServerFull(f"no free connection, and no further one: {self._refusal}") from None
        if self.closed:
            raise Closed
        return connection

    def _give_back(self, connection: Any) -> None:
        with self._lock:
            if not self.closed:
                if self._line:
                    self._line.popleft().put(connection)
                else:
                    self._free.append(connection)
                return
        self._drop(connection)

    def _made(self) -> Any:
        connection = self._pool.make_connection()
        self._all.add(connection)
        return connection

    def _drop(self, connection: Any) -> None:
        """Closes a connection. If it was the last one, nobody waits for it any more."""
        with self._lock:
            self._all.discard(connection)
            self._open.discard(connection)
            while self._line and not self._open:
                self._line.popleft().put(None)
        connection.disconnect()

    def _drop_idle(self) -> None:
        """Closes the connections that nobody uses: they lead where no answer came from, and new ones may lead elsewhere."""
        with self._lock:
            idle = self._free + self._spare
            self._free, self._spare = [], []
        for connection in idle:
            self._drop(connection)

    def _connect(self, connection: Any, seconds: float) -> None:
        """Connects, and connects anew if the server has closed the connection or sent what nobody asked for.

        Few are opened at a time, so that a burst does not overrun the server.
        """
        if getattr(connection, "_sock", None) is not None:  # redis-py 6 has no other way to know
            if not _is_stale(connection):
                return
            connection.disconnect()
        self._take(self._turn, max(0.0, seconds))
        connection.socket_timeout = connection.socket_connect_timeout = self._patience_now()
        try:
            connection.connect()
        finally:
            self._turn.release()
        if self.closed:
            raise Closed

    def _exchange(self, connection: Any, call: Call, asking: bool, seconds: float) -> object:
        try:
            if asking:
                connection.send_command("ASKING")
                connection.read_response()
            # `close` waits for a call that is sent, and ends it before it looks. So `sent` is set before it is certain.
            already, call.sent = call.sent, True
            if self._is_over(call):
                call.sent = already
                raise Closed
            connection.send_command(*call.words)
            if self._is_over(call):  # redis-py may have opened the connection anew
                raise Closed
            if not connection.can_read(timeout=seconds):
                raise TimeoutError(f"no reply within {seconds * 1000:.0f} ms")
            return connection.read_response()
        except ResponseError:
            raise
        except BaseException:
            connection.disconnect()
            raise

    def _pipelined(self, connection: Any, calls: Sequence[Call], replies: list[object]) -> None:
        for call in calls:
            call.sent = True
        connection.send_packed_command(connection.pack_commands([call.words for call in calls]))
        if self.closed:  # redis-py may have opened the connection anew
            raise Closed
        until = self._clock() + self._timeout
        while len(replies) < len(calls):
            if not connection.can_read(timeout=max(0.0, until - self._clock())):
                raise TimeoutError(f"no reply within {self._timeout * 1000:.0f} ms")
            try:
                replies.append(connection.read_response())
            except ResponseError as error:
                replies.append(error)
        raise_unable(replies)

    def _is_over(self, call: Call) -> bool:
        return self.closed or call.ended or (self._waits_ended and call.wait is not None)

    def _take(self, semaphore: Semaphore, seconds: float) -> None:
        if not semaphore.acquire(timeout=seconds):
            raise NoFreeConnection(f"too many calls at once: no free connection within {seconds * 1000:.0f} ms")
        if self.closed:
            semaphore.release()
            raise Closed


class Links:
    """The connections to the nodes of a cluster.

    Attributes:
        closed: Whether they are closed.
    """

    def __init__(
        self, source: Source, timeout: float, connect_timeout: float, replicas: bool, clock: Callable[[], float]
    ) -> None:
        self.closed = False
        self._source, self._bounds = source, (timeout, connect_timeout, clock)
        self._more: Settings = {"redis_connect_func": _on_connect(source.settings, replicas)}
        self._links: dict[Address, Link] = {}
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock

    def to(self, address: Address) -> Link:
        """Returns the connections to a node."""
        link = self._links.get(address)
        if link is None:
            with self._lock:
                host, port = address
                more = {"host": host, "port": port, **self._more}
                new = Link(self._source, *self._bounds, named(address), more)
                link = self._links.setdefault(address, new)
                if self.closed:
                    link.close()
                    raise Closed
        return link

    def all(self) -> list[Link]:
        """Returns the connections to all nodes."""
        with self._lock:
            return list(self._links.values())

    def close(self) -> list[Link]:
        """Lets `to` raise `Closed` from now on. Returns the links to close."""
        with self._lock:
            self.closed = True
            return list(self._links.values())


def _is_stale(connection: Any) -> bool:
    """Whether the server has closed it, or sent what nobody asked for."""
    try:
        return bool(connection.can_read())
    except (RedisError, OSError):
        return True


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
