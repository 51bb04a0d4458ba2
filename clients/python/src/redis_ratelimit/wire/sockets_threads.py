"""What a link does with connections of redis-py, and how its calls wait: its twin does the same with asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Condition, RLock, get_ident
from typing import Any

from redis.exceptions import RedisError, ResponseError, TimeoutError

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection
from .source import Settings, crowded, late


class Place:
    """A place in line for a connection that is in use."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Any] = SimpleQueue()

    def set(self, connection: Any) -> bool:
        """Hands a connection to the call that waits, or None if there is none any more."""
        self._given.put(connection)
        return True

    def wait(self, seconds: float) -> Any:
        """Returns what is handed, or raises a time-out."""
        try:
            return self._given.get(timeout=seconds)
        except Empty:
            raise TimeoutError("no free connection") from None

    def given(self) -> Any:
        """Returns the connection that was handed to a call that has gone."""
        return None if self._given.empty() else self._given.get_nowait()


class Room:
    """Lets a bounded number of calls in at a time, each of another thread.

    It knows the threads, and not only their number, because a signal's exception may keep a call from leaving. Its place is
    free again when the next call of its thread leaves. A semaphore would lose the place, or even leave its lock taken."""

    def __init__(self, most: int) -> None:
        self._most, self._inside = most, set[int]()
        self._lock = RLock()  # the methods of a condition, which are Python's, would leave it taken
        self._left = Condition(self._lock)

    def enter(self, seconds: float) -> None:
        """Waits until there is room."""
        me = get_ident()
        with self._lock:
            if not self._left.wait_for(lambda: me in self._inside or len(self._inside) < self._most, seconds):
                raise NoFreeConnection(crowded(seconds))
            self._inside.add(me)

    def leave(self) -> None:
        """Makes room for the next."""
        with self._lock:
            self._inside.discard(get_ident())
            self._left.notify()


def here() -> object:
    """Threads share their connections, wherever they run."""
    return None


def is_open(connection: Any) -> bool:
    """Whether it has connected, as far as is known here."""
    return getattr(connection, "_sock", None) is not None  # redis-py 6 has no other way to know


def is_stale(connection: Any) -> bool:
    """Whether the server has closed it, or sent what nobody asked for."""
    try:
        return bool(connection.can_read())
    except (RedisError, OSError):
        return True


def connect(connection: Any, _seconds: float, patience: float) -> None:
    """Connects. The socket keeps this time-out for the calls that follow, so it is never the rest of one call's time."""
    connection.socket_timeout = connection.socket_connect_timeout = patience
    connection.connect()


def disconnect(connection: Any) -> None:
    """Closes it."""
    connection.disconnect()


def exchange(connection: Any, call: Call, asking: bool, seconds: float, is_over: Callable[[Call], bool]) -> object:
    """Sends a call and returns its reply. After any other error than one of the server's, the reply may still come."""
    if asking:
        connection.send_command("ASKING")
        connection.read_response()
    # `close` waits for a call that is sent, and ends it before it looks. So `sent` is set before it is certain.
    already, call.sent = call.sent, True
    if is_over(call):
        call.sent = already
        raise Closed
    connection.send_command(*call.words)
    if is_over(call):  # redis-py may have opened the connection anew
        raise Closed
    if not connection.can_read(timeout=seconds):
        raise TimeoutError(late(seconds))
    return connection.read_response()


def exchange_all(
    connection: Any,
    calls: Sequence[Call],
    replies: list[object],
    seconds: float,
    is_over: Callable[[Call], bool],
    clock: Callable[[], float],
) -> None:
    """Sends calls in a pipeline, and adds their replies."""
    if is_over(calls[0]):
        raise Closed
    for call in calls:
        call.sent = True
    connection.send_packed_command(connection.pack_commands([call.words for call in calls]))
    if is_over(calls[0]):  # redis-py may have opened the connection anew
        raise Closed
    until = clock() + seconds
    while len(replies) < len(calls):
        if not connection.can_read(timeout=max(0.0, until - clock())):
            raise TimeoutError(late(seconds))
        try:
            replies.append(connection.read_response())
        except ResponseError as error:
            replies.append(error)


def on_connect(settings: Settings, replicas: bool) -> Settings:
    """Says READONLY on each connection, so that replicas answer. As in redis-py, the application's function is next."""
    also = settings.get("redis_connect_func")

    def connected(connection: Any) -> None:
        connection.on_connect()
        if replicas:
            connection.send_command("READONLY")
            connection.read_response()
        if also is not None:
            also(connection)

    return {"redis_connect_func": connected} if replicas or also is not None else {}
