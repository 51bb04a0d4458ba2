"""How callers wait for one another: for threads and for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from ..decide.fork import after_fork

Caller: TypeAlias = tuple[object, object]
"""The event loop, if there is one, and the task or the thread in it."""


def caller() -> Caller:
    """Returns this thread."""
    return None, threading.get_ident()


def async_caller() -> Caller:
    """Returns this task, and its event loop: tasks of another loop cannot be waited for."""
    return asyncio.get_running_loop(), asyncio.current_task()


class Signal:
    """Something that happens once."""

    def __init__(self) -> None:
        self._news: SimpleQueue[None] = SimpleQueue()  # a signal's exception in an event would leave its lock taken

    def wait(self, seconds: float) -> None:
        """Waits until it has happened, at most for some seconds."""
        with suppress(Empty):
            self._news.put(self._news.get(timeout=max(0.0, seconds)))  # for the next caller

    def set(self) -> None:
        """Lets all callers go on."""
        self._news.put(None)


class AsyncSignal:
    """Something that happens once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Waits until it has happened, at most for some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def set(self) -> None:
        """Lets all callers go on."""
        self._event.set()


class Once:
    """Work that is done once. A second caller waits for the first."""

    def __init__(self) -> None:
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Begins anew: the child does the work for itself."""
        # A signal handler may call in the thread that does the work.
        self._lock, self._begun = threading.RLock(), False

    def do(self, work: Callable[[], None]) -> None:
        """Does the work, unless it was begun before."""
        with self._lock:
            if not self._begun:
                self._begun = True
                work()


class AsyncOnce:
    """Work that is done once, also if a caller is cancelled. A second caller waits for the first."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does the work, unless it was begun before, in an event loop that still runs."""
        task = self._task
        if task is None or task.cancelled() or task.get_loop() is not asyncio.get_running_loop():
            task = self._task = asyncio.create_task(work())
        await asyncio.shield(task)
