"""A signal handler may use a limiter in the middle of a call of its own thread, wherever CPython runs one: when a function begins
or a call returns, and when a loop goes back. It waits for no lock, neither of the two fails, and the numbers are right after it."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from types import CodeType, FrameType
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from redis_ratelimit import Breaker, Decision, RefusalCache
from redis_ratelimit.call.questions import Place
from redis_ratelimit.call.steady import SteadyRate
from redis_ratelimit.decide.breaker import FIRST, Circuit
from redis_ratelimit.decide.counters import Counters
from redis_ratelimit.decide.insurance import Claim, Insurance
from redis_ratelimit.decide.log import Log
from redis_ratelimit.decide.refusals import Refusals
from redis_ratelimit.local.local_threads import Locals
from redis_ratelimit.local.store import _NOTHING, Store
from redis_ratelimit.taken.taken import Taken
from redis_ratelimit.wire.slots import SlotMap

REFUSED = Decision(False, 1, 0, 30.0, 60.0)
PLACE = Place((b"a", b"b"), b"", ("q",))
RATE = SteadyRate(100, 100, 1000)
NODE = ("one", 1)


class Subject(NamedTuple):
    """What a signal interrupts, what its handler does, and what is true afterwards, by whether it has run."""

    work: Callable[[], object]
    handler: Callable[[], object]
    check: Callable[[bool], object] = bool


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

    def check(handled: bool) -> None:
        assert counted.snapshot()["asked"] == 1 + handled

    return Subject(work, work, check)


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
            asked = kept.generation
            kept.keep(PLACE, REFUSED, 0.0, asked)
            kept.keep(PLACE._replace(words=("r",)), REFUSED, 0.0)
            kept.find(PLACE, Decision, now)
            assert kept.generation == asked or kept.find(PLACE, Decision, 0.0) is None
        kept.forget(b"c")
        kept.forget(b"c")
        kept.keep(PLACE._replace(keys=(b"c",)), REFUSED, 0.0)

    def handler() -> None:
        kept.find(PLACE, Decision, 100.0)
        kept.forget(b"a")
        kept.keep(PLACE._replace(keys=(b"d",)), REFUSED, 0.0)

    def check(handled: bool) -> None:
        assert len(kept) == 1
        kept.keep(PLACE, REFUSED, 0.0, 0)
        assert not handled or kept.find(PLACE, Decision, 0.0) is None

    return Subject(work, handler, check)


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


def batches(handler_at: float = 0.12) -> Subject:
    store, answers = Store(RATE, 100, 1), list[object]()
    for sent in (0.0, 0.05):
        store.fetched_at(Decision(True, 100, 0, 0.0, 0.0, 2), 2, sent, sent)

    def work() -> None:
        answer = store.try_take(3, 0.06)
        answers.append(answer)
        if isinstance(answer, Decision):
            store.give_back(1, answer, 0.07)
        answers.append(store.take(1, 0.08, waits=0))
        answers.append(store.take(1, 0.11, waits=0))
        store.fetched_at(Decision(True, 100, 0, 0.0, 0.0, 1), 1, 0.11, 0.12)
        store.forget(0.2)

    def handler() -> None:
        for cost in (1, 1, 1):
            answers.append(store.try_take(cost, handler_at))
        answers.append(store.take(1, handler_at, waits=0))
        store.forget(handler_at)

    def check(_: bool) -> None:
        assert store._left == sum(batch.left for batch in store._batches) and _NOTHING.left == 0
        assert store._demand == sum(store._slots) + store._slot
        assert store._slot_ends < 0.4
        decisions = [answer for answer in answers if isinstance(answer, Decision)]
        assert all(decision.allowed or decision.limit == 100 for decision in decisions)
        assert store.allowed == sum(decision.allowed for decision in decisions)

    return Subject(work, handler, check)


def last_tokens() -> Subject:
    return batches(0.06)


def locals_(others: bool = False) -> Subject:
    limiter: Any = Mock(prefix="", patience=1.0, timeout=1.0)
    limiter.core.clock.return_value, counted = 0.0, Counters()
    limiter.core.hooks.on_decision, limiter.core.counters = None, counted
    known, answers = Locals(limiter), list[object]()

    def work(key: str = "k", granted: int = 2) -> None:
        found = known.find(key, "100/s", "100ms", 1)
        if granted:
            found._store.fetched_at(Decision(True, 100, 0, 0.0, 0.0, granted), granted, 0.0, 0.0)
        answers.append(found.try_take())
        counted.snapshot()
        assert others or known.find(key, "100/s", "100ms", 1) is found
        found.closing()

    def check(_: bool) -> None:
        assert counted.snapshot()["allowed"] == len([answer for answer in answers if answer]) > 0

    return Subject(work, lambda: work("other" if others else "k", 0), check)


def evicted() -> Subject:
    return locals_(others=True)


class Thing:
    """What is taken."""

    def closing(self) -> list[Any]:
        return [self]


def taken() -> Subject:
    known, things, ended = Taken(lambda: (None, None)), [Thing() for _ in range(4)], list[object]()

    def work() -> None:
        for thing in things[:3]:
            assert known.add(thing) or known.closed
        ended.extend(known.close())

    def handler() -> None:
        known.discard(things[0])
        if not known.add(things[3]):
            ended.append(things[3])

    def check(handled: bool) -> None:
        assert {id(thing) for thing in things[1 : 3 + handled]} <= {id(thing) for thing in ended}

    return Subject(work, handler, check)


@lru_cache
def operations(code: CodeType) -> dict[int, str]:
    return {each.offset: each.opname for each in dis.get_instructions(code)}


def interrupted(subject: Subject, point: int) -> bool:
    """Works, and lets the handler run at this point. Returns whether there is one so late."""
    points, errors, last = count(), list[BaseException](), dict[FrameType, int]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not any(name in frame.f_code.co_filename for name in ("redis_ratelimit", "weakref")):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        before, last[frame] = last.get(frame, 0), frame.f_lasti
        operation = operations(frame.f_code).get(before, "")
        back = "JUMP_BACKWARD" in operation and frame.f_lasti < before
        if (event == "call" or (event == "opcode" and (back or operation.startswith("CALL")))) and next(points) == point:
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
    assert not thread.is_alive(), f"at point {point}"
    if errors:
        raise errors[0]
    handled = next(points) > point
    subject.check(handled)
    return handled


SUBJECTS = [breaker, counters, log, refusals, insurance, slots, batches, last_tokens, locals_, evicted, taken]


@pytest.mark.parametrize("make", SUBJECTS)
def test_a_signal_handler_may_use_what_its_thread_is_using(
    make: Callable[[], Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redis_ratelimit.decide.insurance.MOST_KEYS", 3)
    if make is evicted:
        monkeypatch.setattr("redis_ratelimit.local.local_threads.MOST_KEYS", 1)
    point = 0
    while interrupted(make(), point):
        point += 1
    assert point > 5
