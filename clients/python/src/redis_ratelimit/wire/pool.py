"""Which connection a call gets, without I/O: for threads and for asyncio."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import Any

from ..decide.errors import Closed
from ..decide.failure import is_lost, waits_for_another
from .sockets import AsyncPlace
from .sockets_threads import Place
from .source import FULL, SPARE


class Pool:
    """The connections to a server: some that are shared, and one for each call that waits in the server.

    The pools of redis-py hand out connections that are not open, and those of redis.asyncio may lose one whose caller is
    cancelled. So they only make connections here. If the server takes no more, calls wait in line for one that is open.

    Args:
        make: Makes a connection, which is not open.
        place: Makes a place in line.
        clock: The seconds of a monotonic clock.
        timeout: For how many seconds a call waits for a reply.
        longest: For how many seconds a call waits for a connection, and then for it to open.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        place: Callable[[], AsyncPlace | Place],
        clock: Callable[[], float],
        timeout: float,
        longest: float,
    ) -> None:
        self._make, self._place, self._clock, self._timeout, self._longest = make, place, clock, timeout, longest
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock
        self._closed = False
        self._all: set[Any] = set()  # all connections
        self._waiting: set[Any] = set()  # those of calls that wait in the server
        self._open: set[Any] = set()  # those that are shared and open, or being opened
        self._free: list[Any] = []  # those of them that are not in use
        self._spare: list[Any] = []  # those of calls that waited
        self._line: deque[AsyncPlace | Place] = deque()
        self._full_until, self.refusal = 0.0, ""
        self._heard = 0.0  # when a call on a shared one was last answered
        self._hurried_until = 0.0

    def patience(self) -> float:
        """For how long a call waits for a connection. Soon after a silence that is no longer than for a reply."""
        return min(self._timeout, self._longest) if self._clock() < self._hurried_until else self._longest

    def take(self, refused: BaseException | None, tries: int) -> tuple[Any, Any]:
        """Returns a connection, which may not be open, or a place in line for one that is.

        Args:
            refused: Why the connection that was opened last for this call did not open.
            tries: How often one may still be opened if it was lost. The server is not away if it closes all of them.
        """
        with self._lock:
            if self._closed:
                raise Closed
            if self._free:
                return self._free.pop(), None
            if self._open and (refused is not None or self._clock() < self._full_until):
                place = self._place()
                self._line.append(place)
                return None, place
            if refused is not None and tries <= 0:
                raise refused
            connection = self._made()
            self._open.add(connection)
            return connection, None

    def refused(self, error: BaseException, tries: int) -> int:
        """Notes why a connection did not open. Returns how many tries are left, or raises an error that none would help."""
        if not waits_for_another(error):
            raise error
        self._full_until, self.refusal = self._clock() + FULL, str(error)
        return tries - 1 if is_lost(error) else 0

    def leave(self, place: AsyncPlace | Place) -> None:
        """Notes that a call waits in line no more. What it was handed meanwhile is for the next one."""
        with self._lock:
            if place in self._line:
                self._line.remove(place)
            elif (connection := place.given()) is not None:
                self.give_back(connection)

    def give_back(self, connection: Any) -> bool:
        """Hands a shared connection to the next call in line, or keeps it. False if it must be closed."""
        with self._lock:
            while self._line and not self._closed:
                if self._line.popleft().set(connection):
                    return True
            if not self._closed:
                self._free.append(connection)
            return not self._closed

    def answered(self) -> None:
        """Notes that a call on a shared connection was answered."""
        self._heard = self._clock()

    def silent(self, begun: float) -> bool:
        """Whether there was no reply to a call, and no other was answered since it began. Then calls hurry for some time."""
        if self._heard >= begun:
            return False
        self._hurried_until = self._clock() + self._longest
        return True

    def begin_wait(self) -> Any:
        """Returns a connection, which may not be open, for a call that waits in the server."""
        with self._lock:
            connection = self._spare.pop() if self._spare else self._made()
            self._waiting.add(connection)
            return connection

    def end_wait(self, connection: Any, keeps: bool) -> bool:
        """Keeps the connection of such a call. False if it must be closed."""
        with self._lock:
            self._waiting.discard(connection)
            keeps = keeps and not self._closed and len(self._spare) < SPARE
            if keeps:
                self._spare.append(connection)
            return keeps

    def drop(self, connection: Any) -> None:
        """Forgets a connection. If it was the last one that is shared, no call waits for it any more."""
        with self._lock:
            self._all.discard(connection)
            self._open.discard(connection)
            if not self._open:
                self._leave_line()

    def take_idle(self) -> list[Any]:
        """Returns the connections that are not in use, to be closed: new ones may lead elsewhere."""
        with self._lock:
            idle = self._free + self._spare
            self._free, self._spare = [], []
            for connection in idle:
                self.drop(connection)
            return idle

    def waits(self) -> list[Any]:
        """Returns the connections of calls that wait in the server."""
        with self._lock:
            return list(self._waiting)

    def close(self) -> list[Any]:
        """Lets no call wait in line. Returns all connections, to be closed."""
        with self._lock:
            self._closed = True
            self._leave_line()
            return list(self._all)

    def _made(self) -> Any:
        connection = self._make()
        self._all.add(connection)
        return connection

    def _leave_line(self) -> None:
        while self._line:
            self._line.popleft().set(None)
