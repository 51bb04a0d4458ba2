"""How many calls wait in the servers at once. Each has a connection of its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock

from ..call.call import Call
from ..call.values import integer
from ..decide.failure import NoFreeConnection
from ..decide.fork import after_fork

_AT_ONCE = nullcontext()


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

    def begin(self, call: Call) -> AbstractContextManager[None]:
        """Returns a context manager for the sending of a call. It raises an error if there are too many that wait."""
        return _AT_ONCE if call.wait is None else self._waiting()

    @contextmanager
    def _waiting(self) -> Generator[None]:
        with self._lock:
            if self._count >= self._most:
                raise NoFreeConnection(f"{self._most} calls wait already, the most by max_waits")
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
