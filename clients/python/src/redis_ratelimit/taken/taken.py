"""What a limiter has taken and not ended yet. `close` ends it."""

from __future__ import annotations

from threading import RLock
from typing import Protocol
from weakref import WeakSet

from ..decide.fork import after_fork
from .endings import Ending


class Endable(Protocol):
    """A lease, a hold, or a request that is under way."""

    def closing(self) -> list[Ending]:
        """Returns what ends it. Leaving it then does nothing."""
        ...


class Taken:
    """Knows what is taken. It keeps only weak references.

    Attributes:
        closed: Whether the limiter closes. Then what is taken must be ended at once.
    """

    def __init__(self) -> None:
        self.closed = False
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins anew: what the parent has taken is the parent's to end."""
        self._lock = RLock()  # a signal handler may close the limiter in a thread that has the lock
        self._each: WeakSet[Endable] = WeakSet()

    def add(self, each: Endable) -> bool:
        """Notes what `close` must end. Returns False if `close` has begun, and will not end it."""
        with self._lock:
            if not self.closed:
                self._each.add(each)
            return not self.closed

    def discard(self, each: Endable) -> None:
        """Notes that something is being ended."""
        with self._lock:
            self._each.discard(each)

    def close(self) -> list[Ending]:
        """Returns what ends everything."""
        with self._lock:
            self.closed = True
            each, self._each = list(self._each), WeakSet()
        return [ending for taken in each for ending in taken.closing()]
