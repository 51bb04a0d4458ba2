"""A signal handler may use a limiter in the middle of a call of its own thread, at every line: it waits for no lock, and
neither of the two fails."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from redis_ratelimit import Breaker, Decision, RefusalCache
from redis_ratelimit.call.questions import Place
from redis_ratelimit.call.steady import SteadyRate
from redis_ratelimit.decide.breaker import FIRST, Circuit
from redis_ratelimit.decide.counters import Counters
from redis_ratelimit.decide.log import Log
from redis_ratelimit.decide.refusals import Refusals
from redis_ratelimit.decide.insurance import Claim, Insurance
from redis_ratelimit.local.local_threads import Locals
from redis_ratelimit.local.store import Store
from redis_ratelimit.wire.slots import SlotMap

REFUSED = Decision(False, 1, 0, 30.0, 60.0)
PLACE = Place((b"a", b"b"), b"", ("q",))
RATE = SteadyRate(100, 100, 1000)
NODE = ("one", 1)


class Subject(NamedTuple):
    """What a signal interrupts, and what its handler does."""

    work: Callable[[], object]
    handler: Callable[[], object]


def breaker() -> Subject:
    circuit = Circuit(Breaker(1, 1.0))

    def work() -> None:
        circuit.fail(FIRST, 0.0, lost=True)
        circuit.admits(2.0)
        circuit.unknown(circuit.ticket)
        circuit.succeed()

    return Subject(work, work)


def counters() -> Subject:
    counted = Counters()

    def work() -> None:
        counted.add("asked", "allowed")
        counted.snapshot()

    return Subject(work, work)


def log() -> Subject:
    lines = Log()

    def work() -> None:
        for now in (0.0, 0.5, 1.5):
            lines.warn("kind", now, "line")

    return Subject(work, work)


def refusals() -> Subject:
    kept = Refusals(RefusalCache(keys=1))

    def work() -> None:
        for now in (0.0, 1.0, 100.0):
            kept.keep(PLACE, REFUSED, 0.0)
            kept.keep(PLACE._replace(words=("r",)), REFUSED, 0.0)
            kept.find(PLACE, Decision, now)
        kept.keep(PLACE._replace(keys=(b"c",)), REFUSED, 0.0)

    def handler() -> None:
        kept.find(PLACE, Decision, 100.0)
        kept.forget(b"a")
        kept.keep(PLACE._replace(keys=(b"d",)), REFUSED, 0.0)

    return Subject(work, handler)


def insurance() -> Subject:
    shares, places = Insurance(), count()

    def take(now: float) -> None:
        shares.take([Claim(next(places), RATE, 2, 1)], now)

    for _ in range(3):
        take(0.0)

    def work() -> None:
        for now in (0.0, 1e6, 2e6):
            take(now)

    return Subject(work, lambda: take(1e6))


def slots() -> Subject:
    known = SlotMap([NODE], None, False, 1.0, lambda: 0.0)

    def work() -> None:
        known.replace(NODE, [[0, 1, [b"one", 1, b"id1"]]])
        known.moved(0, ("two", 2))
        known.suspect(NODE)
        known.wants_refresh()

    return Subject(work, work)


def batches() -> Subject:
    store = Store(RATE, 100, 1)
    for sent in (0.0, 0.05):
        store.fetched_at(Decision(True, 100, 0, 0.0, 0.0, 2), 2, sent, sent)

    def work() -> None:
        answer = store.try_take(3, 0.06)
        if isinstance(answer, Decision):
            store.give_back(1, answer, 0.07)
        store.take(1, 0.11, waits=0)
        store.forget(0.2)

    def handler() -> None:
        store.try_take(1, 0.12)
        store.take(1, 0.12, waits=0)
        store.forget(0.12)

    return Subject(work, handler)


def locals_() -> Subject:
    limiter: Any = Mock(prefix="", patience=1.0, timeout=1.0)
    limiter.core.clock.return_value, limiter.core.counters = 0.0, Counters()
    limiter.core.hooks.on_decision = None
    known = Locals(limiter)

    def work() -> None:
        found = known.find("k", "100/s", "100ms", 1)
        found.try_take()
        found.count()
        assert known.find("k", "100/s", "100ms", 1) is found
        found.closing()

    return Subject(work, work)


def interrupted(subject: Subject, line: int) -> bool:
    """Works, and lets the handler run at this line. Returns whether there is one so late."""
    lines, errors = count(), list[BaseException]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if "redis_ratelimit" not in frame.f_code.co_filename:
            return None
        if event == "line" and next(lines) == line:
            sys.settrace(None)
            subject.handler()
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            subject.work()
        except BaseException as error:
            errors.append(error)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10.0)
    assert not thread.is_alive(), f"at line {line}"
    if errors:
        raise errors[0]
    return next(lines) > line


@pytest.mark.parametrize("make", [breaker, counters, log, refusals, insurance, slots, batches, locals_])
def test_a_signal_handler_may_use_what_its_thread_is_using(
    make: Callable[[], Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redis_ratelimit.decide.insurance.MOST_KEYS", 3)
    line = 0
    while interrupted(make(), line):
        line += 1
    assert line > 5
