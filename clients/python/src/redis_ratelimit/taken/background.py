"""Runs jobs: in a thread, or as tasks of an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

from ..decide.fork import after_fork
from .jobs import Delays, Job, Timetable

IDLE = 1.0
"""Seconds after which a thread ends if there is nothing to do."""
PATIENCE = 1.0
THREADS = 16
"""The most threads for a server: pipelines at a time, each of which waits for its replies."""


class _Queue:
    """The jobs for one server, and the threads that run them. A server that does not answer holds up its own jobs only.

    Attributes:
        timetable: The jobs that wait for their time.
        threads: For each thread whether it waits for a job.
    """

    def __init__(self, timetable: Timetable) -> None:
        self.timetable = timetable
        self.threads: dict[threading.Thread, bool] = {}

    def idle(self) -> int:
        """How many threads wait for a job. One that a signal's exception has kept from starting is forgotten."""
        self.threads = {thread: waits for thread, waits in self.threads.items() if thread.is_alive()}
        return sum(self.threads.values())


class Background:
    """Runs jobs in threads, which exist while there are some. Each server has a queue.

    Args:
        timetable: When they run.
        perform: Sends the calls of jobs for one server. Returns for each the seconds until it is sent again, or None.
        patience: For how many seconds `close` waits for the calls that are being sent.

    Attributes:
        closed: Whether all jobs are dropped, since the limiter closes.
    """

    def __init__(
        self,
        timetable: Timetable,
        perform: Callable[[Sequence[Job]], Delays],
        patience: float = PATIENCE,
    ) -> None:
        self._timetable, self._perform, self._patience = timetable, perform, patience
        self.closed = False
        self.forked()
        after_fork(self)

    def __len__(self) -> int:
        return sum(len(queue.timetable) for queue in list(self._queues.values()))

    def forked(self) -> None:
        """Begins without jobs: the child of a fork has no threads, and its parent runs the jobs."""
        # A signal's exception in the methods of a condition, which are Python's, would leave its lock taken.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queues: dict[str, _Queue] = {}
        self._sent: list[Job] = []
        self._unfinished: list[Job] = []

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if it is dropped: after `close`, or if too many wait."""
        with self._lock:
            if self.closed:
                return False
            queues = self._queues.values()
            where = self._timetable.where(job.call)
            queue = self._queues.get(where) or _Queue(self._timetable.another())
            if not queue.timetable.add(job, delay, sum(each.timetable.endings for each in queues if each is not queue)):
                return False
            self._queues[where] = queue
            self._grow(queue)
            self._changed.notify_all()
            return True

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        with self._lock:
            job.stopped = True
            for queue in self._queues.values():
                queue.timetable.stop(job)

    def close(self) -> list[Job]:
        """Ends the threads. Returns the endings that are left, and with them those whose calls are still being sent."""
        with self._lock:
            if self.closed:
                return []
            self.closed = True
            left = [job for queue in self._queues.values() for job in queue.timetable.take_endings()]
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._sent, self._patience)
            sent = [*self._unfinished, *self._sent]
            self._unfinished, self._sent = [], []
        return [*(job for job in sent if not job.is_renewal), *left]

    def _grow(self, queue: _Queue) -> None:
        """Starts a thread if none is idle."""
        if not queue.idle() and len(queue.threads) < THREADS:
            thread = threading.Thread(target=self._run, args=(queue,), name="redis-ratelimit", daemon=True)
            queue.threads[thread] = True
            thread.start()

    def _run(self, queue: _Queue) -> None:
        while jobs := self._due(queue):
            again = [(job, delay) for job, delay in zip(jobs, self._perform(jobs), strict=True) if delay is not None]
            with self._lock:
                queue.threads[threading.current_thread()] = True
                if self.closed:
                    self._unfinished += [job for job, _ in again if job in self._sent]
                self._sent = [job for job in self._sent if job not in jobs]
                self._changed.notify_all()
            for job, delay in again:
                self.add(job, delay)

    def _due(self, queue: _Queue) -> list[Job]:
        """Waits for the next jobs. None if there are none, or if another thread waits for them too.

        A signal's exception may take a notice away, so a thread looks again after a second, and leaves only by what it sees."""
        with self._lock:
            woken = True
            while not self.closed:
                jobs = queue.timetable.all_due()
                if jobs:
                    queue.threads[threading.current_thread()] = False
                    self._sent += jobs
                    if queue.timetable.next() == 0.0:
                        self._grow(queue)
                    return jobs
                wait = queue.timetable.next()
                if not woken and (wait is None or queue.idle() > 1):
                    break
                woken = self._changed.wait(IDLE if wait is None else min(wait, IDLE))
            queue.threads.pop(threading.current_thread(), None)
            return []


class AsyncBackground:
    """Runs jobs as tasks of the event loop.

    Args:
        timetable: When they run.
        perform: Sends the calls of jobs for one server. Returns for each the seconds until it is sent again, or None.

    Attributes:
        closed: Whether all jobs are dropped, since the limiter closes.
    """

    def __init__(self, timetable: Timetable, perform: Callable[[Sequence[Job]], Awaitable[Delays]]) -> None:
        self._timetable, self._perform = timetable, perform
        self.closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._sent: dict[asyncio.Task[None], list[Job]] = {}

    def __len__(self) -> int:
        return len(self._timetable) + sum(map(len, self._sent.values()))

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
        sent = [job for jobs in self._sent.values() for job in jobs if not job.is_renewal]
        left = [*sent, *self._timetable.take_endings()]
        for task in self._sent:
            task.cancel()
        self._sent = {}
        self._wait()
        return left

    def _wait(self) -> None:
        """Sets the timer to the time of the next job."""
        if self._timer is not None:
            self._timer.cancel()
        wait = self._timetable.next()
        self._timer = None if wait is None else asyncio.get_running_loop().call_later(wait, self._start)

    def _start(self) -> None:
        while due := self._timetable.all_due():
            servers: dict[str, list[Job]] = {}
            for job in due:
                servers.setdefault(self._timetable.where(job.call), []).append(job)
            for jobs in servers.values():
                self._sent[asyncio.get_running_loop().create_task(self._run(jobs))] = jobs
        self._wait()

    async def _run(self, jobs: Sequence[Job]) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            delays = await self._perform(jobs)
        finally:
            self._sent.pop(task, None)
        for job, delay in zip(jobs, delays, strict=True):
            if delay is not None and not job.stopped:
                self.add(job, delay)


Scheduler: TypeAlias = Background | AsyncBackground
