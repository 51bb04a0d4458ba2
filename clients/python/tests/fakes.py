"""What the core of a limiter takes as arguments, for tests without a server."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from time import monotonic

from redis_ratelimit import Breaker, RefusalCache
from redis_ratelimit.decide.core import Core, Fail
from redis_ratelimit.taken.jobs import Job, Timetable


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def core(
    fail: Fail = "open",
    breaker: Breaker | None = None,
    cache: RefusalCache | None = None,
    clock: Callable[[], float] = monotonic,
) -> Core:
    ids = count(1)
    return Core(fail, breaker, cache, clock, lambda: f"id{next(ids)}")


def timetable(dropped: Callable[[Job], None] = lambda _: None) -> Timetable:
    return Timetable(monotonic, dropped)
