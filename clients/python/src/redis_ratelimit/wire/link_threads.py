"""A limiter's own connections to one server, for threads."""

from __future__ import annotations

from threading import RLock, Semaphore
from typing import Any

from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError, TimeoutError
from redis.retry import Retry

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection
from ..decide.fork import after_fork
from .slots import named
from .source import CONNECTING, CONNECTIONS, MARGIN, SPARE, Address, Settings, Source, patience, pool_of


class Link:
    """Connections to a server: some that are shared, and one for each call that waits.

    Attributes:
        closed: Whether it is closed. Then each call raises `Closed`.
    """

    def __init__(self, source: Source, timeout: float, connect_timeout: float, name: str, more: Settings) -> None:
        self.closed = self._waits_ended = False
        self._timeout, self._patience, self._name = timeout, connect_timeout, name
        # The time-out of a socket is for the handshake. A call has its own.
        settings = source.settings | patience(self._patience, Retry(NoBackoff(), 0)) | more
        self._pool_class, self._pool_settings = pool_of(source, settings, ConnectionPool)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins without connections. Redis-py would wait for the lock of a pool, which a thread of the parent may hold."""
        self._room, self._turn = Semaphore(CONNECTIONS), Semaphore(CONNECTING)
        self._spare: set[Any] = set()
        self._shared: Any = self._pool_class(**self._pool_settings)
        self._waiting: Any = self._pool_class(**self._pool_settings)

    def exchange(self, call: Call, asking: bool = False) -> object:
        """Sends a call and returns the reply. A connection that a reply may still reach is closed."""
        call.asked = self._name
        try:
            return self._at_once(call, asking) if call.wait is None else self._waited(call, asking)
        except Exception as error:
            # Redis-py raises any error, such as an AttributeError, if a connection in use is closed by another thread.
            if self._is_over(call) and not isinstance(error, Closed):
                raise Closed from error
            raise

    def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server. From now on such calls raise `Closed`."""
        self._waits_ended = True
        self._waiting.disconnect()

    def close(self) -> None:
        """Closes all connections."""
        self.closed = True
        self._shared.disconnect()
        self._waiting.disconnect()

    def _at_once(self, call: Call, asking: bool) -> object:
        self._take(self._room, self._patience)
        try:
            connection = self._connection(self._shared, self._patience)
            try:
                return self._exchange(connection, call, asking, self._timeout)
            finally:
                self._release(self._shared, connection)
        finally:
            self._room.release()

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
            self._release(self._waiting, connection)

    def _connection(self, pool: Any, seconds: float) -> Any:
        """Returns a connection that is open. Few are opened at a time, so that a burst does not overrun the server."""
        self._take(self._turn, seconds)
        try:
            connection = pool.get_connection()
        finally:
            self._turn.release()
        if self.closed:
            self._release(pool, connection)
            raise Closed
        return connection

    def _release(self, pool: Any, connection: Any) -> None:
        """Gives a connection back. Redis-py may have opened it anew after `close`."""
        if self.closed:
            connection.disconnect()
        pool.release(connection)

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

    def __init__(self, source: Source, timeout: float, connect_timeout: float, replicas: bool) -> None:
        self.closed = False
        self._source, self._times = source, (timeout, connect_timeout)
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
                new = Link(self._source, *self._times, named(address), more)
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
