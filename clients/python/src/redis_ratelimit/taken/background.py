"""Runs jobs: in a thread, or as tasks of an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from ..decide.fork import after_fork
from .jobs import Job, Timetable

IDLE = 1.0
"""Seconds after which the thread ends if there is nothing to do."""
PATIENCE = 1.0


class Background:
    """Runs jobs in one thread, which exists while there are some.

    Args:
        timetable: When they run.
        perform: Sends the call of a job. Returns the seconds until it is sent again, or None.
        patience: For how many seconds `close` waits for the call that is being sent.
    """

    def __init__(
        self, timetable: Timetable, perform: Callable[[Job], float | None], patience: float = PATIENCE
    ) -> None:
        self._timetable, self._perform, self._patience = timetable, perform, patience
        self.closed = False
        self._unfinished: list[Job] = []
        self.forked()
        after_fork(self)

    def __len__(self) -> int:
        return len(self._timetable)

    def forked(self) -> None:
        """Begins without jobs: the child of a fork has no thread, and its parent runs the jobs."""
        self._changed = threading.Condition()
        self._timetable.clear()
        self._current: Job | None = None
        self._thread: threading.Thread | None = None

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if it is dropped: after `close`, or if too many wait."""
        with self._changed:
            if self.closed or not self._timetable.add(job, delay):
                return False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="redis-ratelimit", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        with self._changed:
            self._timetable.stop(job)

    def close(self) -> list[Job]:
        """Ends the thread. Returns the endings that are left, and with them one whose call is still being sent."""
        with self._changed:
            if self.closed:
                return []
            self.closed = True
            left = self._timetable.take_endings()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._patience)
        with self._changed:
            sent = [*self._unfinished, *([self._current] if self._current else [])]
            self._unfinished, self._current = [], None
        return [*(job for job in sent if not job.is_renewal), *left]

    def _run(self) -> None:
        while (job := self._due()) is not None:
            delay = self._perform(job)
            with self._changed:
                self._current = None
                if delay is not None and self.closed:
                    self._unfinished.append(job)
            if delay is not None:
                self.add(job, delay)

    def _due(self) -> Job | None:
        """Waits for the next job. None if there is none."""
        with self._changed:
            while not self.closed:
                self._current = self._timetable.due()
                if self._current is not None:
                    return self._current
                wait = self._timetable.next()
                if not self._changed.wait(IDLE if wait is None else wait) and not len(self):
                    break
            self._thread = None
            return None


class AsyncBackground:
    """Runs jobs as tasks of the event loop.

    Args:
        timetable: When they run.
        perform: Sends the call of a job. Returns the seconds until it is sent again, or None.
    """

    def __init__(self, timetable: Timetable, perform: Callable[[Job], Awaitable[float | None]]) -> None:
        self._timetable, self._perform = timetable, perform
        self.closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[Job, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._timetable) + len(self._tasks)

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if it is dropped: after `close`, or if too many wait."""
        if self.closed or not self._timetable.add(job, delay):
            return False
        self._wait()
        return True

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        self._timetable.stop(job)

    def close(self) -> list[Job]:
        """Ends all jobs. Returns the endings that are left, and with them those whose call is still being sent."""
        self.closed = True
        left = [*(job for job in self._tasks if not job.is_renewal), *self._timetable.take_endings()]
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        self._wait()
        return left

    def _wait(self) -> None:
        """Sets the timer to the time of the next job."""
        if self._timer is not None:
            self._timer.cancel()
        wait = self._timetable.next()
        self._timer = None if wait is None else asyncio.get_running_loop().call_later(wait, self._start)

    def _start(self) -> None:
        while (job := self._timetable.due()) is not None:
            self._tasks[job] = asyncio.get_running_loop().create_task(self._run(job))
        self._wait()

    async def _run(self, job: Job) -> None:
        try:
            delay = await self._perform(job)
        finally:
            self._tasks.pop(job, None)
        if delay is not None and not job.stopped:
            self.add(job, delay)
