"""Runs jobs: in a thread, or as tasks of an event loop."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Awaitable, Callable
from time import monotonic

from ..decide.failure import NoAnswer
from ..decide.fork import after_fork
from ..decide.log import LOGGER, Log
from .endings import Ending
from .jobs import Job
from .renewals import Renewal

IDLE = 1.0
"""Seconds after which the thread ends if there is nothing to do."""
MOST = 10_000
"""The most endings that wait. A server that is away for long must not take all memory."""


class Background:
    """Runs jobs in one thread, which exists while there are some. Renewals that are due go before endings that are due.

    Args:
        perform: Sends the call of a job. Returns the seconds until it is sent again, or None.
        patience: For how many seconds `close` waits for the call that is being sent.
    """

    def __init__(self, perform: Callable[[Job], float | None], patience: float = 1.0) -> None:
        self._perform, self._patience = perform, patience
        self._log = Log()
        self._number = 0
        self._stopped = 0
        self.closed = False
        self._unfinished: list[Job] = []
        self.forked()
        after_fork(self)

    def __len__(self) -> int:
        return len(self._renewals) + len(self._endings)

    def forked(self) -> None:
        """Begins without jobs: the child of a fork has no thread, and its parent runs the jobs."""
        self._changed = threading.Condition()
        self._renewals: list[tuple[float, int, Job]] = []
        self._endings: list[tuple[float, int, Job]] = []
        self._current: Job | None = None
        self._thread: threading.Thread | None = None

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if it is dropped: after `close`, or if too many wait."""
        with self._changed:
            if self.closed:
                return False
            heap = self._renewals if isinstance(job, Renewal) else self._endings
            if heap is self._endings and len(heap) >= MOST:
                given_up(self._log, job)
                return False
            self._number += 1
            heapq.heappush(heap, (monotonic() + delay, self._number, job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="redis-ratelimit", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        job.stopped = True
        with self._changed:
            self._stopped += 1
            if 2 * self._stopped > len(self) + 100:
                self._renewals, self._endings = _going_on(self._renewals), _going_on(self._endings)
                self._stopped = 0

    def close(self) -> list[Ending]:
        """Ends the thread. Returns the endings that are left, and with them one whose call is still being sent."""
        with self._changed:
            if self.closed:
                return []
            self.closed = True
            left = [job for _, _, job in sorted(self._endings)]
            self._renewals, self._endings = [], []
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._patience)
        with self._changed:
            left = [*self._unfinished, *([self._current] if self._current else []), *left]
            self._unfinished, self._current = [], None
        return [job for job in left if isinstance(job, Ending)]

    def _run(self) -> None:
        while (job := self._due()) is not None:
            delay = None
            try:
                delay = None if job.stopped else self._perform(job)
            except Exception as error:
                delay = after_mistake(job, error, silent=self.closed)  # closing ends connections that are in use
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
                now = monotonic()
                heaps = [heap for heap in (self._renewals, self._endings) if heap]
                for heap in heaps:
                    if heap[0][0] <= now:
                        self._current = heapq.heappop(heap)[2]
                        return self._current
                wait = min(heap[0][0] for heap in heaps) - now if heaps else IDLE
                if not self._changed.wait(wait) and not len(self):
                    break
            self._thread = None
            return None


class AsyncBackground:
    """Runs jobs as tasks of the event loop.

    Args:
        perform: Sends the call of a job. Returns the seconds until it is sent again, or None.
    """

    def __init__(self, perform: Callable[[Job], Awaitable[float | None]]) -> None:
        self._perform = perform
        self._log = Log()
        self.closed = False
        self._timers: dict[Job, asyncio.TimerHandle] = {}
        self._tasks: dict[Job, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._timers) + len(self._tasks)

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if it is dropped: after `close`, or if too many wait."""
        if self.closed:
            return False
        if len(self) >= MOST and not isinstance(job, Renewal):
            given_up(self._log, job)
            return False
        self._timers[job] = asyncio.get_running_loop().call_later(delay, self._start, job)
        return True

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        job.stopped = True
        timer = self._timers.pop(job, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> list[Ending]:
        """Ends all jobs. Returns the endings that are left, and with them those whose call is still being sent."""
        self.closed = True
        left = [job for job in (*self._tasks, *self._timers) if isinstance(job, Ending)]
        for job in list(self._timers):
            self.stop(job)
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        return left

    def _start(self, job: Job) -> None:
        del self._timers[job]
        task = asyncio.get_running_loop().create_task(self._run(job))
        self._tasks[job] = task

    async def _run(self, job: Job) -> None:
        delay = None
        try:
            delay = await self._perform(job)
        except Exception as error:
            delay = after_mistake(job, error)
        finally:
            self._tasks.pop(job, None)
        if delay is not None and not job.stopped:
            self.add(job, delay)


def after_mistake(job: Job, error: Exception, silent: bool = False) -> float | None:
    """Returns the seconds until the call is sent again after an error that nobody expects."""
    if not silent:
        LOGGER.error("%s failed in the background", job.call.command, exc_info=error)
    return job.after(NoAnswer(error, True)) if isinstance(job, (Ending, Renewal)) else None


def given_up(log: Log, job: Job) -> None:
    """Writes a line about a job that is dropped."""
    log.warn("given up", monotonic(), f"{job.call.command}: given up, since {MOST} calls wait in the background")


def _going_on(heap: list[tuple[float, int, Job]]) -> list[tuple[float, int, Job]]:
    left = [entry for entry in heap if not entry[2].stopped]
    heapq.heapify(left)
    return left
