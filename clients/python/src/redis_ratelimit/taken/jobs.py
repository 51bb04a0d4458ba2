"""Calls in the background, and when they are sent. There is no I/O here."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import TypeAlias

from ..call.call import Call

MOST = 10_000
"""The most endings that wait. A server that is away for long must not take all memory."""

BATCH = 100
"""The most calls that go out in one pipeline."""


class Job:
    """A call in the background. It says from the reply when its call is sent again.

    Attributes:
        call: What is sent.
        stopped: Whether it is not sent any more.
        asked: When the call was last begun, on a monotonic clock.
        tries: How often it was begun.
    """

    is_renewal = False

    def __init__(self, call: Call) -> None:
        self.call = call
        self.stopped = False
        self.asked = 0.0
        self.tries = 0

    def after(self, outcome: object) -> float | None:
        """Returns the seconds until the call is sent again, or None.

        Args:
            outcome: The reply, an `Unavailable`, or a `CallError`.
        """
        raise NotImplementedError


Delays: TypeAlias = Sequence[float | None]
"""For each job the seconds until its call is sent again, or None."""


class Timetable:
    """The jobs that wait for their time. Renewals that are due go before endings that are due.

    Args:
        clock: The seconds of a monotonic clock.
        dropped: Is told of a job that is dropped, because too many wait.
        where: Returns the name of the server that will get a call.
    """

    def __init__(
        self, clock: Callable[[], float], dropped: Callable[[Job], None], where: Callable[[Call], str] = lambda _: ""
    ) -> None:
        self._clock, self._dropped, self.where = clock, dropped, where
        self._number = count()
        self.clear()

    def __len__(self) -> int:
        return len(self._renewals) + len(self._endings)

    def another(self) -> Timetable:
        """Returns an empty one."""
        return Timetable(self._clock, self._dropped, self.where)

    @property
    def endings(self) -> int:
        """How many endings wait."""
        return len(self._endings)

    def clear(self) -> None:
        """Begins without jobs."""
        self._renewals: list[tuple[float, int, Job]] = []
        self._endings: list[tuple[float, int, Job]] = []
        self._stopped = 0

    def add(self, job: Job, delay: float, elsewhere: int = 0) -> bool:
        """Adds a job that is due after some seconds. Returns False if it is dropped.

        Args:
            job: The job.
            delay: The seconds.
            elsewhere: How many endings wait for other servers.
        """
        heap = self._renewals if job.is_renewal else self._endings
        if heap is self._endings and len(heap) + elsewhere >= MOST:
            self._dropped(job)
            return False
        heapq.heappush(heap, (self._clock() + delay, next(self._number), job))
        return True

    def due(self) -> Job | None:
        """Takes a job that is due."""
        for heap in (self._renewals, self._endings):
            while heap and (heap[0][0] <= self._clock() or heap[0][2].stopped):
                job = heapq.heappop(heap)[2]
                if not job.stopped:
                    return job
                self._stopped -= 1
        return None

    def all_due(self) -> list[Job]:
        """Takes what is due, as much as one pipeline takes."""
        return list(islice(iter(self.due, None), BATCH))

    def next(self) -> float | None:
        """Returns the seconds until a job is due."""
        times = [heap[0][0] for heap in (self._renewals, self._endings) if heap]
        return max(0.0, min(times) - self._clock()) if times else None

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more. Stopped jobs do not take memory for long."""
        job.stopped = True
        self._stopped += 1
        if 2 * self._stopped > len(self) + 100:
            for heap in (self._renewals, self._endings):
                heap[:] = sorted(entry for entry in heap if not entry[2].stopped)  # in one step, whatever a signal raises
            self._stopped = 0

    def take_endings(self) -> list[Job]:
        """Takes all endings, in the order of their time. Renewals are dropped."""
        left = [job for _, _, job in sorted(self._endings) if not job.stopped]
        self.clear()
        return left
