"""Replays the cases of clients/contract on a limiter, for threads and for asyncio. Wire, clock, timers and ids are the replay's."""

# JSON has no types.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, cast

import redis
import redis.asyncio
from redis import exceptions as errors
from redis.connection import DefaultParser

import redis_ratelimit
from redis_ratelimit import (
    UNLIMITED,
    Adapt,
    AsyncRateLimiter,
    Breaker,
    CallError,
    Decision,
    Limit,
    Rate,
    RateLimiter,
    RefusalCache,
    Refused,
    Rule,
    Share,
    Shed,
    Unavailable,
    client_address,
)
from redis_ratelimit.call import limiters
from redis_ratelimit.call.call import Call
from redis_ratelimit.call.rate import limiter_of
from redis_ratelimit.call.values import milliseconds
from redis_ratelimit.decide.failure import NoFreeConnection
from redis_ratelimit.gates import AsyncGate, Gate, Passage, Refusal
from redis_ratelimit.runtime import AsyncRuntime
from redis_ratelimit.runtime_threads import Runtime
from redis_ratelimit.taken.jobs import Job, Timetable
from redis_ratelimit.types import Asked, Limiter
from redis_ratelimit.wire.channel import drive as async_drive
from redis_ratelimit.wire.channel_threads import drive
from redis_ratelimit.wire.redirect import SLOTS, Hop, Route, routed
from redis_ratelimit.wire.slots import SlotMap

Object = dict[str, Any]

PATIENCE = 30.0
TICK = 1e-7
"""Seconds that the clock moves with each step, so that sums of floats are never early."""
ROUNDED = 5e-4
_CLASSES: list[type[Limiter]] = [getattr(limiters, name) for name in limiters.__all__]
LIMITERS = {limiter.NAME: limiter for limiter in _CLASSES}
PARSER: Any = DefaultParser


class Clock:
    """Stands still until a step moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Expected:
    """What the package is to send in a step, and the outcomes. A name in angle brackets stands for an id."""

    def __init__(self) -> None:
        self.entries: list[Object] = []
        self.wrong: list[str] = []
        self._ids: dict[str, str] = {}

    def begin(self, entries: Iterable[Object]) -> None:
        self.entries = [dict(entry) for entry in entries for _ in range(entry.get("times", 1))]

    def outcome(self, words: list[Any], node: str) -> Object:
        """The outcome of a call."""
        sent = [_bytes(word) for word in words]
        if not self.entries:
            self.wrong.append(f"sent, but not expected: {b' '.join(sent)!r}")
            return {"reply": None}
        entry = self.entries.pop(0)
        said = entry["words"].split(" ") if isinstance(entry["words"], str) else entry["words"]
        expected = [_expected(word) for word in said]
        if len(sent) != len(expected) or not all(map(self._fits, expected, sent)):
            self.wrong.append(f"sent {b' '.join(sent)!r}, not {b' '.join(expected)!r}")
        if entry.get("at", node) != node:
            self.wrong.append(f"{b' '.join(sent)!r} was sent to {node}")
        return entry

    def _fits(self, expected: bytes, sent: bytes) -> bool:
        head, bracket, rest = expected.partition(b"<")
        name, closing, tail = rest.partition(b">")
        if not bracket or not closing or not name.isalnum():
            return expected == sent
        if not (sent.startswith(head) and sent.endswith(tail)):
            return False
        id = sent[len(head) : len(sent) - len(tail)].decode()
        return self._ids.setdefault(name.decode(), id) == id and list(self._ids.values()).count(id) == 1


def _expected(word: Any) -> bytes:
    return bytes.fromhex(str(word["hex"])) if isinstance(word, dict) else str(word).encode()


def _bytes(word: Any) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


def raised(outcome: Object, call: Call) -> Exception | None:
    """The error of redis-py for an outcome, or None for a reply."""
    call.sent = "unsent" not in outcome
    if "error" in outcome:
        return cast(Exception, PARSER.parse_error(outcome["error"]))
    if "unsent" in outcome:
        if outcome["unsent"] == "crowded":
            return NoFreeConnection("too many calls at once")
        return errors.ConnectionError("no connection")
    if "lost" in outcome:
        if outcome["lost"] == "timeout":
            return errors.TimeoutError("no reply within 100 ms")
        return errors.ConnectionError("the connection was lost")
    return None


def _shards(nodes: int) -> list[Any]:
    """The reply of CLUSTER SLOTS."""
    bounds = [number * 16384 // nodes for number in range(nodes + 1)]
    return [[low, high - 1, [f"node{n}".encode(), 6379]] for n, (low, high) in enumerate(zip(bounds, bounds[1:]), 1)]


def _slot_map(nodes: int, clock: Clock) -> SlotMap:
    slots = SlotMap([("node1", 6379)], None, False, 0.1, clock)
    slots.replace(("node1", 6379), _shards(nodes))
    return slots


class Background:
    """Runs jobs when the replay says so."""

    def __init__(self, timetable: Timetable, perform: Callable[[Sequence[Job]], Any]) -> None:
        self.timetable, self.perform = timetable, perform
        self.closed = False
        self.current: list[Job] = []

    def __len__(self) -> int:
        return len(self.timetable)

    def add(self, job: Job, delay: float) -> bool:
        return not self.closed and self.timetable.add(job, delay)

    def stop(self, job: Job) -> None:
        self.timetable.stop(job)

    def close(self) -> list[Job]:
        self.closed = True
        return [*(job for job in self.current if not job.is_renewal), *self.timetable.take_endings()]


def _alone(call: Call) -> Route:
    return (yield Hop(("redis", 6379), call))


class Wire:
    """The servers."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self.slots = _slot_map(replay.nodes, replay.clock) if replay.nodes else None

    def where(self, call: Call) -> str:
        return self.slots.where(call) if self.slots else "redis:6379"

    def steps(self, call: Call) -> Route:
        return routed(self.slots, call) if self.slots else _alone(call)

    def begun(self, call: Call, address: tuple[str, int]) -> Object:
        if call.ended:
            raise redis_ratelimit.Closed
        if call is SLOTS:  # how nodes are found is no matter of the cases
            return {"reply": _shards(self._replay.nodes)}
        call.asked, call.sent = f"{address[0]}:{address[1]}", True
        return self._replay.expected.outcome(call.words, call.asked)

    def ended(self, outcome: Object, call: Call) -> object:
        error = raised(outcome, call)
        if error is not None:
            raise error
        return outcome["reply"]


class AsyncWire(Wire):
    async def send(self, call: Call) -> object:
        return await async_drive(self.steps(call), self._perform)

    async def send_all(self, calls: Sequence[Call]) -> list[object]:
        return await asyncio.gather(*map(self.send, calls), return_exceptions=True)

    async def end_waits(self) -> None: ...

    async def close(self) -> None: ...

    async def _perform(self, hop: Hop) -> object:
        outcome = self.begun(hop.call, hop.address)
        return self.ended(await self._replay.pending(outcome["pending"]) if "pending" in outcome else outcome, hop.call)


class ThreadWire(Wire):
    def send(self, call: Call) -> object:
        return drive(self.steps(call), self._perform)

    def send_all(self, calls: Sequence[Call]) -> list[object]:
        replies: list[object] = []
        for call in calls:
            try:
                replies.append(self.send(call))
            except Exception as error:
                replies.append(error)
        return replies

    def end_waits(self) -> None: ...

    def close(self) -> None: ...

    def _perform(self, hop: Hop) -> object:
        outcome = self.begun(hop.call, hop.address)
        return self.ended(self._replay.pending(outcome["pending"]) if "pending" in outcome else outcome, hop.call)


class GivenUp(BaseException):
    """A signal's exception, in a thread."""


class Running:
    """A call that has begun.

    Attributes:
        result: What it returned.
        error: What it raised.
        done: Whether it has ended.
    """

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class Overload(Exception): ...


class Trouble(Exception): ...


def _is_overload(error: BaseException) -> bool:
    return isinstance(error, Overload)


def _broken(*_: object) -> bool:
    raise TypeError("it is broken")


async def _asynchronous(_: BaseException) -> bool:
    return True


WORK: dict[str, type[Exception]] = {"Overload": Overload, "Trouble": Trouble}
DROPS: Object = {
    "class": Overload,
    "classes": [Overload],
    "function": _is_overload,
    "broken": _broken,
    "asynchronous": _asynchronous,
    "numbers": [1],
}


class Replay:
    """Replays a case. The subclasses run calls as tasks or in threads."""

    kinds: Any

    def __init__(self, case: Object) -> None:
        self.case, self.nodes = case, case.get("nodes", 0)
        self.clock, self.expected = Clock(), Expected()
        self._ids = count(1)
        self._named: dict[str, Running] = {}
        self._things: dict[str, Any] = {}
        self._before: dict[str, set[tuple[int, int]]] = {}
        self.told: list[str] = []
        self.background: Background | None = None
        self._performing: list[tuple[Job, Running]] = []
        self.limiter = self._limiter(case.get("limiter", {}))
        self.gate: Any = self._gate(case["gate"]) if "gate" in case else None

    # What differs

    def pending(self, name: str) -> Any:
        raise NotImplementedError

    async def run(self, called: Callable[[], Any]) -> Running:
        """Begins a call, and waits until it ends or waits for an outcome."""
        raise NotImplementedError

    async def answered(self, name: str, outcome: Object) -> None:
        raise NotImplementedError

    async def given_up(self, running: Running) -> None:
        raise NotImplementedError

    # What is the same

    def new_id(self) -> str:
        return f"id{next(self._ids)}"

    def wall(self) -> float:
        return 1_700_000_000 + self.clock.now

    def made_background(self, timetable: Timetable, perform: Callable[[Sequence[Job]], Any]) -> Background:
        self.background = self.background or Background(timetable, perform)
        return self.background

    async def step(self, step: Object) -> None:
        self.clock.now += TICK
        self.told.clear()
        self.expected.begin(step.get("sends", ()))
        if "after" in step:
            await self._advance(_seconds(step["after"]))
        running: Running | None = None
        if "call" in step:
            running = await self._called(step["call"], step.get("with", {}), step.get("as"))
        if "answer" in step:
            await self.answered(step["answer"], step["outcome"])
            if self.background is not None:
                self._finished(self.background)
        await self._due(self.clock.now + ROUNDED)
        if "of" in step:
            running = self._named[step["of"]]
        assert not self.expected.wrong, self.expected.wrong
        assert not self.expected.entries, f"not sent: {self.expected.entries}"
        if running is not None and running.done:
            self._check(step, running, step.get("as") or step.get("of") or "")
        elif "gives" in step or "throws" in step:
            raise AssertionError("the call has not ended")

    def counters(self) -> dict[str, int]:
        return dict(self.limiter.counters)

    async def _advance(self, seconds: float) -> None:
        target = self.clock.now + seconds
        await self._due(target + ROUNDED)
        self.clock.now = max(self.clock.now, target)

    async def _due(self, until: float) -> None:
        """Runs the jobs that become due, each at its time."""
        background = self.background
        while background is not None and (wait := background.timetable.next()) is not None:
            if self.clock.now + wait > until:
                return
            self.clock.now += wait + (1e-9 if wait else 0.0)
            job = background.timetable.due()
            if job is not None:
                await self._performed(background, job)

    async def _performed(self, background: Background, job: Job) -> None:
        background.current.append(job)
        running = await self.run(lambda: background.perform([job]))
        self._performing.append((job, running))
        self._finished(background)

    def _finished(self, background: Background) -> None:
        """Goes on with the jobs that had an outcome."""
        for job, running in [each for each in self._performing if each[1].done]:
            assert running.error is None, running.error
            self._performing.remove((job, running))
            background.current.remove(job)
            if running.result[0] is not None:
                background.add(job, running.result[0])

    async def _called(self, call: str, given: Object, name: str | None) -> Running:
        thing: Any = self._things.get(given.get("of", ""))
        values: dict[str, Callable[[], Any]] = {
            "new": lambda: self._limiter(given),
            "rules": lambda: self._gate(given),
            "address": lambda: client_address(given["text"], **({"v6": given["v6"]} if "v6" in given else {})),
            "value": lambda: limiter_of(_limit(given["limit"])).words,
            "local": lambda: self.limiter.local(given["key"], _limit(given["limit"]), **_rest(given)),
            "try_take": lambda: thing.try_take(given.get("cost", 1)),
            "crosses": lambda: self._named[given["of"]].result.crosses(given["fraction"]),
            "look": lambda: thing,
            "record": lambda: thing.settle(given["cost"]),
        }
        calls: dict[str, Callable[[], Any]] = {
            "lease": lambda: self.entered(self._lease(dict(given), name)),
            "hold": lambda: self.entered(self._hold(dict(given), name)),
            "work": lambda: self._worked(dict(given)),
            "take": lambda: thing.take(given.get("cost", 1)),
            "renew": lambda: thing.renew(),
            "release_lease": lambda: thing.release(*filter(None, [given.get("outcome")])),
            "end": lambda: thing.end(),
            "cancel": lambda: thing.cancel(),
            "enter": lambda: self.gate.enter(given["request"], self._before_of(given, name), given.get("websocket", False)),
            "leave": lambda: self._leave(thing.result, given),
        }
        if call == "cancel_call":
            await self.given_up(self._named[given["of"]])
            return Running()
        if call in values:
            running = self._value(values[call])
        else:
            running = await self.run(calls.get(call, lambda: self._method(call, given)))
        if name:
            self._named[name] = running
            if call in ("local", "enter"):
                self._things[name] = running.result if call == "local" else running
        return running

    def _before_of(self, given: Object, name: str | None) -> set[tuple[int, int]]:
        before = self._before[given["of"]] if "of" in given else set[tuple[int, int]]()
        self._before[name or ""] = before
        return before

    def _leave(self, passage: Any, given: Object) -> Any:
        passage.spent.update(given.get("spent", {}))
        return self.gate.leave(passage, given.get("status"))

    def _lease(self, given: Object, name: str | None) -> Any:
        if isinstance(given.get("adapt"), dict):
            given["adapt"] = Adapt(**given["adapt"])
        return self._kept(name, self.limiter.lease(given.pop("key"), given.pop("capacity"), given.pop("ttl"), **given))

    def _hold(self, given: Object, name: str | None) -> Any:
        what = _limit(given.pop("limit")) if "limit" in given else given.pop("policy")
        budget = {name: given.pop(name) for name in ("ttl", "keys") if name in given}
        return self._kept(name, self.limiter.budget(given.pop("key"), what, **budget).hold(given.pop("estimate"), **given))

    def _kept(self, name: str | None, thing: Any) -> Any:
        if name:
            self._things[name] = thing
        return thing

    def _method(self, call: str, given: Object) -> Any:
        given = dict(given)
        if call == "command":
            return getattr(self.limiter.commands, given["name"])(**_arguments(given["arguments"]))
        method = getattr(self.limiter, call)
        if call == "ready":
            return method(*map(_limit, given.pop("limits", ())), **given)
        if "hold" in given:
            given["hold"] = given["hold"]["id"], given["hold"]["ttl"]
        if "limits" in given:
            given["limits"] = [_limit(limit) for limit in given["limits"]]
        limit = [_limit(given.pop("limit"))] if "limit" in given else [given.pop("policy")] if call in ("peek", "explain") else []
        first = [given.pop("key"), *limit] if "key" in given else []
        return method(*first, **given)

    def entered(self, thing: Any) -> Any:
        raise NotImplementedError

    def failed(self, lease: Any, error: Exception) -> Any:
        """Works under a lease, and fails."""
        raise NotImplementedError

    def _worked(self, given: Object) -> Any:
        error = WORK[given.pop("error")]()
        if "drops" in given:
            given["drops"] = DROPS[given["drops"]]
        return self.failed(self._lease(given, None), error)

    def _value(self, made: Callable[[], Any]) -> Running:
        running = Running()
        try:
            running.result = made()
        except Exception as error:
            running.error = error
        running.done = True
        return running

    def _limiter(self, options: Object) -> Any:
        options = dict(options)
        if isinstance(options.get("fail"), dict):
            options["fail"] = Share(**options["fail"])
        if "breaker" in options:
            options["breaker"] = options["breaker"] and Breaker(**options["breaker"])
        if "cache" in options:
            options["cache"] = options["cache"] is not None and RefusalCache(**options["cache"]) or None
        if hooks := options.pop("hooks", None):
            options["on_decision"], options["on_error"] = (_broken, _broken) if hooks == "broken" else (self._decided, self._failed)
        return self.made(options)

    def _decided(self, decision: Decision, asked: Asked) -> None:
        outcome = "allowed" if decision.allowed else "refused"
        self.told.append(f"{asked.command} {asked.key!s}: {outcome} after {_ms(asked.seconds)} ms")

    def _failed(self, error: Unavailable | CallError) -> None:
        self.told.append(f"{type(error).__name__} of {error.command}")

    def made(self, options: Object) -> Any:
        raise NotImplementedError

    def _gate(self, given: Object) -> Any:
        rules: list[Rule[Any]] = [_rule(rule) for rule in given.get("rules", ())]
        shed = _shed(given["shed"]) if "shed" in given else None
        options = {name: _from(given[name]) for name in ("headers", "skip") if name in given}
        return self.kinds[1](self.limiter, rules, shed, **options)

    def _check(self, step: Object, running: Running, name: str) -> None:
        if running.error is not None and "throws" not in step:
            raise running.error
        if "throws" in step:
            assert running.error is not None, f"gave {running.result!r}"
            _check_error(step["throws"], running.error)
        if "gives" in step:
            given = self._things.get(name, running.result)
            if isinstance(step["gives"], dict) and "value" in step["gives"]:
                given = {"value": _plain(given)}
            compare(step["gives"], shown(given.result if isinstance(given, Running) else given))


def _limit(limit: Any) -> Any:
    if not isinstance(limit, dict):
        return limit
    given: Object = dict(limit)  # pyright: ignore[reportUnknownArgumentType]
    if "rate" in given:
        return Rate(**given)
    if "name" in given:
        return LIMITERS[given.pop("name")](**given)
    return Limit(_limit(given.pop("limit")), **given)


def _arguments(given: Object) -> Object:
    """The arguments of a command."""
    limits = {"limits": [_limit(limit) for limit in given["limits"]]} if "limits" in given else {}
    return {**given, **limits, **({"limiter": _limit(given["limiter"])} if "limiter" in given else {})}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value._asdict() if hasattr(value, "_asdict") else value


def _rest(given: Object) -> Object:
    return {name: value for name, value in given.items() if name not in ("key", "limit")}


def _from(value: Any, *, limits: bool = False) -> Any:
    """A function of the request, or the value."""
    if not isinstance(value, dict) or "from" not in value:
        return _limit(value) if limits else value

    def function(request: Object) -> Any:
        found = request.get(value["from"])
        return UNLIMITED if found == {"unlimited": True} else _limit(found) if limits else found

    return function


def _rule(rule: Object) -> Rule[Any]:
    given = {name: _from(value, limits=name == "limit") for name, value in rule.items()}
    if (counts := given.get("counts")) is not None and counts is not True:
        given["counts"] = _broken if counts == "broken" else counts.__contains__
    return Rule(**given)


def _shed(shed: Object) -> Shed[Any]:
    given = {name: _from(value) for name, value in shed.items()}
    utilization = given.pop("utilization")
    return Shed(utilization=lambda: utilization, **given)


def _seconds(duration: str) -> float:
    return milliseconds("after", duration) / 1000


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def shown(value: Any) -> Any:
    """A result, as the cases write it."""
    if isinstance(value, Decision):
        names = "allowed limit remaining granted fence answered binding settled source".split()
        fields = {name: getattr(value, name, None) for name in names}
        times = {"retry_after_ms": _ms(value.retry_after), "reset_after_ms": _ms(value.reset_after)}
        each = [shown(one) for one in getattr(value, "each", ())]
        error = value.error and {"kind": value.error.kind, "command": value.error.command, "node": value.error.node}
        return {**fields, **times, "each": each, "headers": value.headers("user"), "error": error}
    if isinstance(value, Refusal):
        fields = {name: getattr(value, name) for name in ("status", "headers", "violated", "decisions")}
        return {**fields, "body": json.loads(value.body), "retry_after_ms": _ms(value.retry_after)}
    if isinstance(value, Passage):
        return {"status": 200, "headers": value.headers, "violated": [], "wait_ms": _ms(value.wait), "decisions": value.decisions}
    if isinstance(value, tuple):
        return {"words": " ".join(map(str, value))}
    if hasattr(value, "held"):
        fields = {name: getattr(value, name, None) for name in ("held", "lost", "id", "estimate", "fence")}
        return {**fields, "decision": shown(value.decision)}
    return value


def compare(expected: Any, given: Any, where: str = "gives") -> None:
    if where.endswith(".headers"):
        # What a problem's type is says only some cases.
        given = {name: value for name, value in given.items() if name != "Content-Type" or name in expected}
        assert given == expected, f"{where}: {given!r}, not {expected!r}"
    elif isinstance(expected, dict):
        assert not where.endswith(".decisions") or given.keys() == expected.keys(), f"{where}: {given!r}"
        for name, value in expected.items():
            compare(value, given[name] if isinstance(given, dict) else getattr(given, name), f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(given) == len(expected), f"{where}: {given!r}, not {expected!r}"
        for number, (value, one) in enumerate(zip(expected, given, strict=True)):
            compare(value, one, f"{where}[{number}]")
    else:
        assert given == expected, f"{where}: {given!r}, not {expected!r}"


def _check_error(expected: Object, error: BaseException) -> None:
    kind = WORK.get(expected["error"]) or getattr(redis_ratelimit, expected["error"])
    if not isinstance(error, kind):
        raise error
    for name, value in expected.items():
        if name == "says":
            assert value in str(error), str(error)
        elif name == "text":
            assert value == str(error)
        elif name == "decision":
            compare(value, shown(cast(Refused, error).decision))
        elif name != "error":
            assert getattr(error, name) == value, f"{name}: {getattr(error, name)!r}, not {value!r}"


def _with(runtime: AsyncRuntime | Runtime, kind: type) -> Any:
    """A class of limiters that have this runtime."""

    def own(_: object) -> AsyncRuntime | Runtime:
        return runtime

    return type("Replayed", (kind,), {"_runtime": own})


# Asyncio


class _AsyncRuntime(AsyncRuntime):
    def __init__(self, replay: OnAsyncio) -> None:
        self._replay = replay
        self.clock, self.new_id, self.wall = replay.clock, replay.new_id, replay.wall  # type: ignore[method-assign]

    def channel(self, *_: Any) -> Any:
        return AsyncWire(self._replay)

    def background(self, timetable: Timetable, perform: Callable[[Sequence[Job]], Any]) -> Any:
        return self._replay.made_background(timetable, perform)


class OnAsyncio(Replay):
    kinds = AsyncRateLimiter, AsyncGate

    def __init__(self, case: Object) -> None:
        self._futures: dict[str, asyncio.Future[Object]] = {}
        self._tasks: dict[Running, asyncio.Task[None]] = {}
        super().__init__(case)

    def made(self, options: Object) -> Any:
        return _with(_AsyncRuntime(self), AsyncRateLimiter)(redis.asyncio.Redis(), **options)

    def entered(self, thing: Any) -> Any:
        return thing.__aenter__()

    async def failed(self, lease: Any, error: Exception) -> Any:
        async with lease:
            raise error

    def pending(self, name: str) -> Awaitable[Object]:
        self._futures[name] = asyncio.get_running_loop().create_future()
        return self._futures[name]

    async def run(self, called: Callable[[], Any]) -> Running:
        running = Running()

        async def task() -> None:
            try:
                running.result = await called()
            except BaseException as error:
                running.error = error
            running.done = True

        self._tasks[running] = asyncio.create_task(task())
        await self._settled()
        return running

    async def answered(self, name: str, outcome: Object) -> None:
        self._futures.pop(name).set_result(outcome)
        await self._settled()

    async def given_up(self, running: Running) -> None:
        self._tasks[running].cancel()
        await self._settled()

    async def _settled(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)


# Threads


class _Runtime(Runtime):
    def __init__(self, replay: OnThreads) -> None:
        self._replay = replay
        self.clock, self.new_id, self.wall = replay.clock, replay.new_id, replay.wall  # type: ignore[method-assign]

    def channel(self, *_: Any) -> Any:
        return ThreadWire(self._replay)

    def signal(self) -> Any:
        return _Signal(self._replay)

    def background(self, timetable: Timetable, perform: Callable[[Sequence[Job]], Any]) -> Any:
        return self._replay.made_background(timetable, perform)


class _Signal:
    """Wakes threads, of which the replay must know whether they wait."""

    def __init__(self, replay: OnThreads) -> None:
        self._replay, self._waiting, self._happened = replay, 0, False

    def wait(self, _: float) -> None:
        self._replay.wait_for(self)

    def set(self) -> None:
        self._replay.wake(self)

    def begins(self) -> int:
        """How many threads more do not run."""
        self._waiting += not self._happened
        return int(not self._happened)

    def happens(self) -> int:
        """How many threads more run."""
        self._happened, waiting, self._waiting = True, self._waiting, 0
        return waiting

    @property
    def happened(self) -> bool:
        return self._happened


class OnThreads(Replay):
    kinds = RateLimiter, Gate

    def __init__(self, case: Object) -> None:
        self._changed = threading.Condition()
        self._outcomes: dict[str, Object | None] = {}
        self._waiting: dict[int, str] = {}
        self._active = 0
        self._threads: dict[Running, int] = {}
        super().__init__(case)

    def made(self, options: Object) -> Any:
        return _with(_Runtime(self), RateLimiter)(redis.Redis(), **options)

    def entered(self, thing: Any) -> Any:
        return thing.__enter__()

    def failed(self, lease: Any, error: Exception) -> Any:
        with lease:
            raise error

    def pending(self, name: str) -> Object:
        with self._changed:
            self._waiting[threading.get_ident()] = name
            self._active -= 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: name in self._outcomes, PATIENCE)
            del self._waiting[threading.get_ident()]
            outcome = self._outcomes.pop(name)
        if outcome is None:
            raise GivenUp
        return outcome

    async def run(self, called: Callable[[], Any]) -> Running:
        running = Running()

        def work() -> None:
            self._threads[running] = threading.get_ident()
            try:
                running.result = called()
            except BaseException as error:
                running.error = error
            with self._changed:
                running.done = True
                self._active -= 1
                self._changed.notify_all()

        self._active += 1
        threading.Thread(target=work, daemon=True).start()
        self._settled()
        return running

    def wait_for(self, signal: _Signal) -> None:
        with self._changed:
            self._active -= signal.begins()
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: signal.happened, PATIENCE)

    def wake(self, signal: _Signal) -> None:
        with self._changed:
            self._active += signal.happens()
            self._changed.notify_all()

    async def answered(self, name: str, outcome: Object) -> None:
        self._answer(name, outcome)

    async def given_up(self, running: Running) -> None:
        self._answer(self._waiting[self._threads[running]], None)

    def _answer(self, name: str, outcome: Object | None) -> None:
        with self._changed:
            self._outcomes[name] = outcome
            self._active += 1
            self._changed.notify_all()
        self._settled()

    def _settled(self) -> None:
        with self._changed, suppress(KeyError):
            assert self._changed.wait_for(lambda: not self._active, PATIENCE), "a call does not end"


KINDS: dict[str, type[Replay]] = {"threads": OnThreads, "asyncio": OnAsyncio}
