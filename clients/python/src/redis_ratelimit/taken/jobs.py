"""Calls in the background. There is no I/O here: a job says from the reply when its call is sent again."""

from __future__ import annotations

from typing import Protocol

from ..call.call import Call


class Scheduler(Protocol):
    """Runs jobs in the background."""

    @property
    def closed(self) -> bool:
        """Whether all jobs are dropped, since the limiter closes."""
        ...

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if the job is dropped."""
        ...

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        ...


class Job:
    """A call in the background.

    Attributes:
        call: What is sent.
        stopped: Whether it is not sent any more.
        asked: When the call was last begun, on a monotonic clock.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.stopped = False
        self.asked = 0.0

    def after(self, outcome: object) -> float | None:
        """Returns the seconds until the call is sent again, or None.

        Args:
            outcome: The reply, a `NoAnswer`, or a `CallError`.
        """
        raise NotImplementedError
