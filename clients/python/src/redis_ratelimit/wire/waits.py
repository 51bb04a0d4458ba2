"""How many calls wait in the servers at once. Each has a connection of its own."""

from __future__ import annotations

from threading import RLock
from types import TracebackType

from ..call.call import Call
from ..call.values import integer
from ..decide.failure import NoFreeConnection
from ..decide.fork import after_fork


class Waits:
    """Bounds the calls of a limiter that wait in its servers.

    Args:
        most: The most of them.
    """

    def __init__(self, most: int) -> None:
        self._most = integer("max_waits", most, 1)
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock. What waits for the parent is not the child's."""
        self._lock = RLock()
        self._count = 0

    def begin(self, call: Call) -> _Wait:
        """Returns a context manager for the sending of a call. It raises an error if there are too many that wait."""
        return _Wait(self, call.wait is not None)

    def add(self) -> None:
        """Notes one more."""
        with self._lock:
            if self._count >= self._most:
                raise NoFreeConnection(f"{self._most} calls wait already, the most by max_waits")
            self._count += 1

    def remove(self) -> None:
        """Notes one less."""
        with self._lock:
            self._count -= 1


class _Wait:
    __slots__ = ("_waits", "_with")

    def __init__(self, waits: Waits, waits_in_server: bool) -> None:
        self._waits, self._with = waits, waits_in_server

    def __enter__(self) -> None:
        if self._with:
            self._waits.add()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._with:
            self._waits.remove()
