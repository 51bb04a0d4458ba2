"""What callers have under way. `close` ends what waits in the server and what is not sent, and waits for the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.fork import after_fork
from .taken import Taken


class Run:
    """One or several calls of a caller, one after the other.

    Attributes:
        owner: The thread or the task.
        call: The call that was begun last.
    """

    __slots__ = ("call", "owner")

    def __init__(self, owner: int | asyncio.Task[Any] | None) -> None:
        self.owner = owner
        self.call: Call | None = None

    def begin(self, call: Call, taken: Taken) -> None:
        """Notes the next call. While the limiter closes, it must give something back."""
        self.call = call
        if taken.closed and not call.gives_back:
            raise Closed

    def end(self) -> None:
        """Ends a call that waits in the server, or that is not sent and takes something."""
        call = self.call
        if call is not None and not call.gives_back and (call.wait is not None or not call.sent):
            call.ended = True

    @property
    def is_waited_for(self) -> bool:
        """Whether `close` waits for it. A call that is ended is not sent any more."""
        return self.call is None or self.call.sent or not self.call.ended


class UnderWay:
    """What the callers of a limiter for threads have under way."""

    def __init__(self) -> None:
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins anew: the child has no other threads. It closes the limiter for itself."""
        self._runs: set[Run] = set()
        self._changed = threading.Condition()
        self._waits = False
        # A signal handler may close the limiter in a thread that is closing it.
        self._closing, self._begun = threading.RLock(), False

    def once(self, close: Callable[[], None]) -> None:
        """Closes the limiter once. A second call waits for the first."""
        with self._closing:
            if not self._begun:
                self._begun = True
                close()

    def begin(self) -> Run:
        """Notes that this thread begins its calls."""
        run = Run(threading.get_ident())
        self._runs.add(run)
        return run

    def end(self, run: Run) -> None:
        """Notes that a thread has ended its calls."""
        self._runs.discard(run)
        if self._waits:
            with self._changed:
                self._changed.notify_all()

    def end_calls(self) -> None:
        """Ends the calls that wait in the server, and those that are not sent."""
        for run in list(self._runs):
            run.end()

    def wait(self, seconds: float) -> None:
        """Waits for other threads, at most for some seconds."""
        self._waits = True
        with self._changed:
            self._changed.wait_for(lambda: not self._others(), seconds)

    def _others(self) -> bool:
        me = threading.get_ident()
        return any(run.is_waited_for for run in list(self._runs) if run.owner != me)


class AsyncUnderWay:
    """What the callers of a limiter for asyncio have under way."""

    def __init__(self) -> None:
        self._runs: set[Run] = set()
        self._changed: asyncio.Event | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closer: asyncio.Task[Any] | None = None

    async def once(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Closes the limiter once, also if the caller is cancelled. A second call waits for the first."""
        closing = self._closing
        if closing is None or closing.cancelled() or closing.get_loop() is not asyncio.get_running_loop():
            self._closer = asyncio.current_task()
            closing = self._closing = asyncio.create_task(close())
        await asyncio.shield(closing)

    def begin(self) -> Run:
        """Notes that this task begins its calls."""
        run = Run(asyncio.current_task())
        self._runs.add(run)
        return run

    def end(self, run: Run) -> None:
        """Notes that a task has ended its calls."""
        self._runs.discard(run)
        if self._changed is not None:
            self._changed.set()

    def end_calls(self) -> None:
        """Ends the calls that wait in the server, and those that are not sent."""
        for run in list(self._runs):
            run.end()

    async def wait(self, seconds: float) -> None:
        """Waits for other tasks of this event loop than the one that closes, at most for some seconds."""
        self._changed = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._others():
                    self._changed.clear()
                    await self._changed.wait()

    def _others(self) -> bool:
        tasks = asyncio.all_tasks() - {self._closer}
        return any(run.is_waited_for for run in list(self._runs) if run.owner in tasks)
