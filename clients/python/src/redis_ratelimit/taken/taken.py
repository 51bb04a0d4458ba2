"""What a limiter has taken and not ended yet, and the calls of its callers that are under way.

One rule says what happens to them when the limiter closes. A new call raises `Closed`, unless it gives something back. A call
that waits in the server ends with `Closed`, because it might wait for long, and so does a call that takes something and is not
sent yet. All other calls have until the time-out. A lease or a hold that they are granted is given back by itself, because `close`
ends only what was taken before it began: `add` says so, and the caller gets `Closed`.

The limiter may be closed in the middle of one of its own calls, as by a signal handler. So `close` does not wait for the thread
or the task that closes, and a lock may be taken again by the thread that has it."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakKeyDictionary

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.fork import after_fork
from .endings import Ending
from .signals import Caller


class Endable(Protocol):
    """A lease, a hold, or a request that is under way."""

    def closing(self) -> list[Ending]:
        """Returns what ends it. Leaving it then does nothing."""
        ...


class Run:
    """One or several calls of a caller, one after the other. A context manager.

    Attributes:
        caller: The thread or the task.
    """

    __slots__ = ("_call", "_taken", "caller")

    def __init__(self, taken: Taken, caller: Caller) -> None:
        self._taken, self.caller = taken, caller
        self._call: Call | None = None

    def __enter__(self) -> Self:
        self._taken.runs.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taken.runs.discard(self)
        self._taken.run_ended()

    def begin(self, call: Call) -> None:
        """Notes the next call before it is sent."""
        self._call = call  # before the look at `closed`, which another thread sets before it looks at the calls
        if self._taken.closed and not call.gives_back:
            raise Closed

    def close(self) -> None:
        """Ends a call that waits in the server, or that takes something and is not sent."""
        call = self._call
        if call is not None and not call.gives_back and (call.wait is not None or not call.sent):
            call.ended = True

    def is_waited_for_by(self, closer: Caller) -> bool:
        """Whether `close` waits for it. A call that was ended before it was sent takes nothing, however long it still lasts."""
        where, who = self.caller
        call = self._call
        return where is closer[0] and who != closer[1] and (call is None or call.sent or not call.ended)


class Taken:
    """Knows what is taken, of which it keeps only weak references, and what is under way.

    Args:
        caller: Returns the thread or the task that asks.

    Attributes:
        closed: Whether the limiter closes. Then what is taken must be ended at once.
        runs: The calls that are under way.
        run_ended: Called after the calls of a caller.
    """

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self.closed, self._caller = False, caller
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins anew: what the parent has taken is the parent's to end, and the child has no other threads."""
        self._lock = RLock()
        self._each: WeakKeyDictionary[Endable, None] = WeakKeyDictionary()
        self.runs: set[Run] = set()
        self.run_ended: Callable[[], object] = _nothing

    def run(self) -> Run:
        """Returns a context manager for calls of the thread or the task that asks."""
        return Run(self, self._caller())

    def add(self, each: Endable) -> bool:
        """Notes what `close` must end. Returns False if `close` has begun, and will not end it."""
        with self._lock:
            if not self.closed:
                self._each[each] = None
            return not self.closed

    def discard(self, each: Endable) -> None:
        """Notes that something is being ended."""
        with self._lock:
            self._each.pop(each, None)

    def close(self) -> list[Ending]:
        """Refuses new calls, and ends those that are not waited for. Returns what ends everything that is taken."""
        with self._lock:
            self.closed = True
            each, self._each = self._each.keyrefs(), WeakKeyDictionary()
        endings = [ending for taken in each if (endable := taken()) is not None for ending in endable.closing()]
        for run in list(self.runs):
            run.close()
        return endings

    def waits(self, closer: Caller) -> bool:
        """Whether others than the one that closes have calls that `close` waits for."""
        return any(run.is_waited_for_by(closer) for run in list(self.runs))


def _nothing() -> None: ...
