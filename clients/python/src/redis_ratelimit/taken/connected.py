"""How a limiter for asyncio sends its calls, and how it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Self, TypeVar

from ..call.call import Call
from ..call.questions import Question
from ..call.values import Seconds
from ..commands import AsyncCommands
from ..decide.breaker import Breaker
from ..decide.core import Fail
from ..decide.decision import Decision
from ..decide.errors import CallError
from ..decide.failure import NoAnswer
from ..decide.refusals import RefusalCache
from ..wire.clients import AsyncClient
from ..wire.nodes import async_nodes_of, drive
from ..wire.settings import connecting_time
from .background import AsyncBackground
from .endings import Ending
from .jobs import Job
from .options import Options
from .under_way import AsyncUnderWay, Run

D = TypeVar("D", bound=Decision)
R = TypeVar("R")


class AsyncConnected(Options):
    """A limiter's connections and its jobs in the background."""

    def __init__(
        self,
        redis: AsyncClient,
        prefix: str,
        fail: Fail,
        timeout: Seconds,
        breaker: Breaker | None,
        cache: RefusalCache | None,
        replicas: bool,
    ) -> None:
        super().__init__(prefix, fail, timeout, breaker, cache)
        self.background = AsyncBackground(self._perform)
        self._under_way = AsyncUnderWay()
        self._nodes = async_nodes_of(redis, self.timeout, replicas)
        self.commands = AsyncCommands(self._nodes, prefix)
        """The raw commands, on the limiter's connections. Errors are those of redis-py."""
        self._closing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Releases the leases that are held, settles what is held, and closes the connections.

        Calls that wait in the server, and new ones, raise a RuntimeError. Other calls that are under way are waited for.
        Each release or settlement is tried once. Without an answer a lease ends by its ttl. Leaving a lease or a hold
        afterwards does nothing. A second call of `close` waits for the first.
        If the caller is cancelled, the limiter closes all the same.
        """
        closing = self._closing
        if closing is None or closing.cancelled() or closing.get_loop() is not asyncio.get_running_loop():
            closing = self._closing = asyncio.create_task(self._close(asyncio.current_task()))
        await asyncio.shield(closing)

    async def _close(self, closer: object) -> None:
        silent: set[str] = set()
        try:
            endings = self.taken.close()
            self._under_way.end_calls()
            await self._nodes.end_waits()
            await self._under_way.wait(connecting_time(self.timeout) + self.timeout, closer)
            # A release of this limiter may have granted what a call was waiting for. So the endings of such calls come last.
            for ending in [*endings, *self.background.close()]:
                where = self._nodes.where(ending.call)
                outcome = None if where in silent else await self._outcome(ending.call)
                if isinstance(outcome, (NoAnswer, CallError)):
                    self.core.warn(ending.call, outcome.error, "not repeated, since the limiter closes")
                if isinstance(outcome, NoAnswer):
                    silent.add(where)
        finally:
            await self._nodes.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, calls: Generator[Call, object, R]) -> R:
        """Sends the calls of a generator. For leases and budgets."""
        run = self._under_way.begin()
        try:
            return await drive(calls, partial(self._asked, run))
        finally:
            self._under_way.end(run)

    async def _decide(self, question: Question, kind: type[D]) -> D:
        known = self.core.known(question, kind)
        if known is not None:
            return known
        run = self._under_way.begin()
        try:
            reply = await self._asked(run, question.call)
        except NoAnswer as missing:
            return self.core.undecided(question, kind, missing)
        finally:
            self._under_way.end(run)
        return self.core.decided(question, kind, reply)

    async def _asked(self, run: Run, call: Call) -> object:
        run.begin(call, self.taken)
        return await self._send(call)

    async def _send(self, call: Call) -> object:
        call.asked = self._nodes.where(call)
        self.core.enter(call.asked)
        try:
            reply = await self._nodes.send(call)
        except BaseException as error:
            failure = self.core.lost(call.asked, call, error)
            if failure is error:
                raise
            raise failure from error
        finally:
            self.core.forget(call)
        self.core.leave(call.asked)
        return reply

    async def _outcome(self, call: Call) -> object:
        try:
            return await self._send(call)
        except (NoAnswer, CallError) as error:
            return error

    async def _perform(self, job: Job) -> float | None:
        if isinstance(job, Ending):
            self.core.counters.add("releases_retried")
        job.asked = monotonic()
        return job.after(await self._outcome(job.call))
