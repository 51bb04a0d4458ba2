"""How a limiter sends its calls, and how it is closed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import TypeVar

from ..call.call import Call, OpenOrClosed
from ..call.errors import ConfigurationError
from ..call.manner import bound
from ..call.questions import Question
from ..call.values import Seconds, seconds
from ..decide.breaker import Breaker
from ..decide.core import Core, Fail
from ..decide.decision import Decision
from ..decide.errors import CallError, Unavailable
from ..decide.log import LOGGER
from ..decide.refusals import RefusalCache
from ..runtime import AsyncRuntime
from ..wire.clients import AsyncClient
from ..wire.channel import drive
from ..wire.ready import Check
from ..wire.waits import Waits
from .jobs import BATCH, MOST, Delays, Job, Timetable
from .signals import AsyncOnce, Caller, async_caller
from .taken import Run, Taken

D = TypeVar("D", bound=Decision)
R = TypeVar("R")


class AsyncConnected:
    """A limiter's way to its servers: its connections, what is taken over them, and the jobs in the background.

    Attributes:
        prefix: What stands before each key.
        timeout: The seconds after which a call is given up.
        patience: The seconds for which a call waits for a connection, and then for it to open.
        runtime: Clock, timers, ids and connections.
        core: The counters, the breaker, the cache and the log.
        taken: What is taken and under way, which ends if the limiter closes.
        background: Runs jobs.
        channel: Sends a call to its server.
        gates: What `ready` checks for each gate.
        claims: The limit of each rule of the gates, by its name, as far as it is known before there is a request.
    """

    def __init__(
        self,
        redis: AsyncClient,
        prefix: str,
        fail: Fail,
        timeout: Seconds,
        connect_timeout: Seconds,
        breaker: Breaker | None,
        cache: RefusalCache | None,
        replicas: bool,
        max_waits: int,
        runtime: AsyncRuntime,
    ) -> None:
        if not isinstance(prefix, str):
            raise ConfigurationError(f"prefix must be text, not {prefix!r}")
        self.prefix = prefix
        self.timeout = seconds("timeout", timeout)
        self.patience = max(self.timeout, seconds("connect_timeout", connect_timeout))
        self.runtime = runtime
        self.core = Core(fail, breaker, cache, runtime.clock, runtime.new_id)
        self.core.hooks.prefix = prefix
        self.taken = Taken(async_caller)
        self._closing = AsyncOnce()
        self._waits = Waits(max_waits)
        timetable = Timetable(runtime.clock, self._dropped, lambda call: self.channel.where(call))
        self.background = runtime.background(timetable, self._perform)
        self.gates: list[Callable[[], list[Check]]] = []
        self.claims: dict[str, str] = {}
        self.channel = runtime.channel(redis, self.timeout, self.patience, replicas)

    async def close(self) -> None:
        """Ends what is taken, waits for calls under way as `Taken` says, and closes the connections."""
        await self._closing.do(partial(self._close, async_caller()))

    async def _close(self, closer: Caller) -> None:
        try:
            endings = self.taken.close()
            await self.channel.end_waits()
            until = self.runtime.clock() + self.patience + self.timeout
            while (left := until - self.runtime.clock()) > 0:
                changed = self.runtime.signal()
                self.taken.run_ended = changed.set
                if not self.taken.waits(closer):
                    break
                await changed.wait(left)
            # A release of this limiter may have granted what a call was waiting for. So the endings of such calls come last.
            servers: dict[str, list[Call]] = {}
            for ending in [*endings, *self.background.close()]:
                servers.setdefault(self.channel.where(ending.call), []).append(ending.call)
            for calls in servers.values():
                await self._close_one(calls)
        finally:
            await self.channel.close()

    async def _close_one(self, calls: list[Call]) -> None:
        """Tries endings once, unless their server does not answer."""
        silent = False
        while calls and not silent:
            some, calls = calls[:BATCH], calls[BATCH:]
            for call, outcome in zip(some, await self._outcomes(some), strict=True):
                silent = silent or isinstance(outcome, Unavailable)
                if isinstance(outcome, (Unavailable, CallError)):
                    self.core.warn(call, "not repeated, since the limiter closes", outcome)

    async def run(self, calls: Generator[Call | Awaitable[object], object, R]) -> R:
        """Sends the calls of a generator, and awaits what else it yields. For leases, budgets and gates."""
        with self.taken.run() as run:
            return await drive(calls, partial(self._asked, run))

    async def ask(self, call: Call) -> object:
        """Sends a call."""
        with self.taken.run() as run:
            run.begin(call)
            return await self._send(call)

    async def decide(
        self, question: Question, kind: type[D], timeout: Seconds | None, fail: OpenOrClosed | None
    ) -> D:
        """Asks a question, with a time-out of its own, and decides without an answer."""
        bound(question.call, timeout, fail)
        known = self.core.known(question, kind)
        if known is not None:
            return known
        try:
            reply = await self.ask(question.call)
        except Unavailable as missing:
            return self.core.undecided(question, kind, missing)
        return self.core.decided(question, kind, reply)

    async def send(self, call: Call) -> object:
        """Returns the reply to a raw command, or raises the error of redis-py."""
        with self.taken.run() as run:
            run.begin(call)
            return await self.channel.send(call)

    async def _asked(self, run: Run, call: Call | Awaitable[object]) -> object:
        if not isinstance(call, Call):
            return await call
        run.begin(call)
        return await self._send(call)

    async def _send(self, call: Call) -> object:
        where = call.asked = self.channel.where(call)
        ticket = self.core.enter(call, where)
        call.sent = False
        try:
            with self._waits.begin(call):
                reply = await self.channel.send(call)
        except BaseException as error:
            failure = self.core.lost(call, where, ticket, error)
            if failure is error:
                raise
            raise failure from error
        finally:
            self.core.forget(call)
        self.core.leave(call, where, ticket)
        return reply

    async def _outcomes(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls for one server in a pipeline. Returns what came of each: a reply, an `Unavailable` or a `CallError`."""
        asked: list[tuple[Call, str, int]] = []
        outcomes: dict[int, object] = {}
        for number, call in enumerate(calls):
            where = call.asked = self.channel.where(call)
            call.sent = False
            try:
                asked.append((call, where, self.core.enter(call, where)))
            except Exception as error:
                outcomes[number] = self._failed(call, error)
        try:
            replies = iter(await self._replies([call for call, _, _ in asked]))
        except BaseException as error:  # such as a cancellation
            for call, where, ticket in asked:
                self.core.lost(call, where, ticket, error)
            raise
        entered = iter(asked)
        return [outcomes[n] if n in outcomes else self._came(*next(entered), next(replies)) for n in range(len(calls))]

    async def _replies(self, calls: Sequence[Call]) -> list[object]:
        if len(calls) > 1:
            return await self.channel.send_all(calls)
        try:
            return [await self.channel.send(call) for call in calls]
        except Exception as error:
            return [error]

    def _came(self, call: Call, where: str, ticket: int, reply: object) -> object:
        """Notes what came of a call."""
        self.core.forget(call)
        if isinstance(reply, Exception):
            return self._failed(call, self.core.lost(call, where, ticket, reply))
        self.core.leave(call, where, ticket)
        return reply

    def _failed(self, call: Call, error: BaseException) -> Unavailable | CallError:
        """Why there is no reply. A mistake loses no release."""
        if isinstance(error, (Unavailable, CallError)):
            return error
        if not self.taken.closed:  # closing ends connections that are in use
            LOGGER.error("%s failed in the background", call.command, exc_info=error)
        return Unavailable(call.command, "mistake", str(error), maybe_sent=True)

    async def _perform(self, jobs: Sequence[Job]) -> Delays:
        """Sends the calls of jobs for one server. Returns for each the seconds until it is sent again."""
        now = self.runtime.clock()
        for job in jobs:
            if job.tries and not job.is_renewal:
                self.core.counters.add("releases_retried")
            job.tries += 1
            job.asked = now
        outcomes = await self._outcomes([job.call for job in jobs])
        return [None if job.stopped else job.after(outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def _dropped(self, job: Job) -> None:
        self.core.note(job.call, "given up", f"{MOST} calls wait in the background")
