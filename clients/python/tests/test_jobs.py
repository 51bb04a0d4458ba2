"""When a call in the background is repeated, without a server."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from both import Maker, inside
from fakes import core, timetable
from redis_ratelimit.call.call import Call
from redis_ratelimit.taken import background as background_module
from redis_ratelimit.taken import jobs
from redis_ratelimit.taken.background import AsyncBackground, Background
from redis_ratelimit.taken.endings import Ending
from redis_ratelimit.taken.jobs import Job, Timetable
from redis_ratelimit.taken.renewals import Renewal
from redis_ratelimit.taken.signals import Signal
from redis_ratelimit.wire.sockets_threads import Room
from servers import eventually

RELEASE = Call(["RL.RELEASE", "k", "id"], ["k"])


def certain() -> Ending:
    return Ending(core(), RELEASE, 30.0, certain=True)


def renewal() -> Renewal:
    return Renewal(core(), RELEASE, 30.0, lambda _: None)


def each(perform: Callable[[Job], float | None]) -> Callable[[Sequence[Job]], list[float | None]]:
    """Performs one job after the other."""
    return lambda batch: [perform(job) for job in batch]


def each_awaited(
    perform: Callable[[Job], Awaitable[float | None]],
) -> Callable[[Sequence[Job]], Awaitable[list[float | None]]]:
    async def performed(batch: Sequence[Job]) -> list[float | None]:
        return [await perform(job) for job in batch]

    return performed


def nothing(_: Job) -> float | None:
    return None


class Once(Job):
    def __init__(self, delay: float | None = None) -> None:
        super().__init__(RELEASE)
        self.delay = delay


def test_jobs_run_in_the_order_of_their_time_and_the_thread_ends() -> None:
    done: list[Job] = []

    def perform(job: Job) -> float | None:
        done.append(job)
        assert isinstance(job, Once)
        delay, job.delay = job.delay, None
        return delay

    background = Background(timetable(), each(perform))
    late, early, repeated = Once(), Once(), Once(0.05)
    background.add(late, 0.3)
    background.add(early, 0.1)
    background.add(repeated, 0.0)
    eventually(lambda: len(done) == 4, "the jobs")
    assert done == [repeated, repeated, early, late]
    eventually(
        lambda: "redis-ratelimit" not in [thread.name for thread in threading.enumerate()], "the end of the thread"
    )


def test_stopped_jobs_take_no_memory() -> None:
    background = Background(timetable(), each(nothing))
    for _ in range(1000):
        job = Once()
        background.add(job, 600.0)
        background.stop(job)
    assert len(background) < 500
    background.close()


async def test_a_mistake_loses_no_release(
    make: Maker, key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make()
    mistakes = iter([RuntimeError("a mistake")])

    def enter(*_: object) -> int:
        if (mistake := next(mistakes, None)) is not None:
            raise mistake
        return 1

    monkeypatch.setattr(inside(limiter).core, "enter", enter)
    release = Ending(inside(limiter).core, Call(["RL.RELEASE", key, "id"], [key]), 30.0, certain=True)
    inside(limiter).background.add(release, 0.0)
    await asyncio.to_thread(eventually, lambda: limiter.counters["releases_retried"] == 1, "the release")
    assert "a mistake" in caplog.text


def test_close_returns_the_release_that_is_being_sent() -> None:
    sending, over = threading.Event(), threading.Event()

    def perform(job: Job) -> float | None:
        sending.set()
        over.wait(60)
        return 0.0

    background, now, later = Background(timetable(), each(perform), patience=0.05), certain(), certain()
    background.add(now, 0.0)
    background.add(later, 600.0)
    background.add(renewal(), 600.0)
    sending.wait(60)
    assert background.close() == [now, later]
    over.set()
    eventually(lambda: "redis-ratelimit" not in [one.name for one in threading.enumerate()], "the end of the thread")
    background.add(certain(), 0.0)
    assert len(background) == 0


def test_close_returns_a_release_that_had_no_answer_just_then() -> None:
    sending = threading.Event()

    def perform(job: Job) -> float | None:
        sending.set()
        time.sleep(0.3)
        return 0.0

    background, release = Background(timetable(), each(perform), patience=60.0), certain()
    background.add(release, 0.0)
    sending.wait(60)
    assert background.close() == [release] and len(background) == 0


async def test_close_returns_the_release_that_is_being_sent_on_asyncio() -> None:
    sending = asyncio.Event()

    async def perform(job: Job) -> float | None:
        sending.set()
        await asyncio.sleep(60)
        return 0.0

    background, now, later = AsyncBackground(timetable(), each_awaited(perform)), certain(), certain()
    background.add(now, 0.0)
    background.add(later, 600.0)
    await sending.wait()
    assert background.close() == [now, later]
    background.add(certain(), 0.0)
    assert len(background) == 0


def test_renewals_go_before_endings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that does not answer has many endings, and each takes a time-out."""
    monkeypatch.setattr(background_module, "THREADS", 1)
    monkeypatch.setattr(jobs, "BATCH", 1)
    done: list[Job] = []

    def perform(job: Job) -> float | None:
        done.append(job)
        time.sleep(0.1)
        return None

    background = Background(timetable(), each(perform))
    endings, first = [certain() for _ in range(4)], renewal()
    for ending in endings:
        background.add(ending, 0.0)
    background.add(first, 0.05)
    eventually(lambda: len(done) == 5, "the jobs")
    assert done.index(first) < 4
    background.close()


def test_a_server_that_does_not_answer_holds_up_its_own_jobs_only() -> None:
    silent, done = threading.Event(), list[Job]()

    def perform(job: Job) -> float | None:
        if job.call.words[1] == "silent":
            silent.wait(60)
        done.append(job)
        return None

    def job(node: str) -> Job:
        return Ending(core(), Call(["RL.RELEASE", node, "id"], [node]), 30.0, certain=True)

    background = Background(Timetable(time.monotonic, lambda _: None, lambda call: str(call.words[1])), each(perform))
    for node in ["silent"] * 50 + ["healthy"] * 50:
        background.add(job(node), 0.0)
    eventually(lambda: len(done) == 50, "the jobs of the healthy server")
    assert {job.call.words[1] for job in done} == {"healthy"}
    silent.set()
    eventually(lambda: len(done) == 100, "the other jobs")
    background.close()


def test_endings_for_several_servers_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST", 2)
    dropped: list[Job] = []
    background = Background(Timetable(time.monotonic, dropped.append, lambda call: str(call.words[1])), each(nothing))
    three = [Ending(core(), Call(["RL.RELEASE", node, "id"], [node]), 30.0, certain=True) for node in "aba"]
    assert [background.add(job, 600.0) for job in three] == [True, True, False] and dropped == three[2:]
    background.close()


def interrupted(function: Any, event: str, work: Callable[[], object]) -> None:
    """Works, and raises an exception at the first such event in a function of Python's own, as a signal handler may."""
    before, done = sys.gettrace(), False

    def interrupt(frame: FrameType, happens: str, _: object) -> Any:
        nonlocal done
        if not done and happens == event and frame.f_code is function.__code__:
            done = True
            raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        sys.settrace(before)


def test_a_signal_leaves_no_lock_behind() -> None:
    background, job = Background(timetable(), lambda jobs: [None] * len(jobs)), Job(Call(["RL.RELEASE"]))
    background.add(job, 600.0)
    for step, event in ((threading.Condition.notify_all, "call"), (threading.Condition.notify, "return")):
        interrupted(step, event, lambda: background.add(job, 600.0))
        other = threading.Thread(target=background.stop, args=(job,), daemon=True)
        other.start()
        other.join(5.0)
        assert not other.is_alive()
    background.close()


@pytest.mark.parametrize(
    ("function", "event"),
    [
        (threading.Thread.start, "call"),  # the thread never starts
        (threading.Event.wait, "call"),  # it starts, and nobody has waited for it
        (threading.Condition.__enter__, "return"),  # it starts, and waits for ever for a lock of its own event
        (threading.Condition.notify_all, "call"),  # the threads do not hear of the job
        (threading.Condition.notify, "return"),
    ],
)
def test_jobs_run_after_a_signal_in_the_middle_of_adding_one(function: Any, event: str) -> None:
    done: list[Job] = []

    def perform(job: Job) -> float | None:
        done.append(job)
        return None

    background, lost, later, now = Background(timetable(), each(perform)), Once(), Once(), Once()
    interrupted(function, event, lambda: background.add(lost, 0.0))
    background.add(later, 0.1)
    background.add(now, 0.0)
    eventually(lambda: {lost, later, now} == set(done), "the jobs")
    background.close()


def test_a_signal_loses_a_place_in_a_room_only_until_the_next_call_of_its_thread() -> None:
    room, entered = Room(1), list[bool]()

    def come_and_go() -> None:
        room.enter(1.0)
        room.leave()
        entered.append(True)

    for function, event in ((Room.leave, "call"), (Room.enter, "return"), (threading.Condition.notify, "return")):
        interrupted(function, event, come_and_go)
        come_and_go()
        other = threading.Thread(target=come_and_go, daemon=True)
        other.start()
        other.join(5.0)
    assert len(entered) == 6


def test_a_signal_while_callers_are_told_to_go_on_keeps_none_of_them() -> None:
    told = Signal()
    callers = [threading.Thread(target=told.wait, args=(1.0,), daemon=True) for _ in range(3)]
    for each in callers:
        each.start()
    with suppress(pytest.fail.Exception):  # no function of Python's own is called, so nothing is raised
        interrupted(threading.Condition.__enter__, "return", told.set)
    for each in callers:
        each.join(10.0)
    assert not any(each.is_alive() for each in callers)
