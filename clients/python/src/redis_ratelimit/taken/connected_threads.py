"""How a limiter for threads sends its calls, and how it is closed."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from threading import RLock
from time import monotonic
from types import TracebackType
from typing import Self, TypeVar

from ..call.call import Call
from ..call.questions import Question
from ..call.values import Seconds
from ..commands import Commands
from ..decide.breaker import Breaker
from ..decide.core import Fail
from ..decide.decision import Decision
from ..decide.errors import CallError
from ..decide.failure import NoAnswer
from ..decide.fork import after_fork
from ..decide.refusals import RefusalCache
from ..wire.clients import Client
from ..wire.nodes_threads import drive, nodes_of
from ..wire.settings import connecting_time
from .background import Background
from .endings import Ending
from .jobs import Job
from .options import Options
from .under_way import Run, UnderWay

D = TypeVar("D", bound=Decision)
R = TypeVar("R")


class Connected(Options):
    """A limiter's connections and its jobs in the background."""

    def __init__(
        self,
        redis: Client,
        prefix: str,
        fail: Fail,
        timeout: Seconds,
        breaker: Breaker | None,
        cache: RefusalCache | None,
        replicas: bool,
    ) -> None:
        super().__init__(prefix, fail, timeout, breaker, cache)
        self.background = Background(self._perform, self.timeout)
        self._under_way = UnderWay()
        self._nodes = nodes_of(redis, self.timeout, replicas)
        self.commands = Commands(self._nodes, prefix)
        """The raw commands, on the limiter's connections. Errors are those of redis-py."""
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock. The child closes the limiter for itself."""
        # A signal handler may close the limiter in a thread that is closing it.
        self._closing_lock, self._closing = RLock(), False

    def close(self) -> None:
        """Releases the leases that are held, settles what is held, and closes the connections.

        Calls that wait in the server, and new ones, raise a RuntimeError. Other calls that are under way are waited for.
        Each release or settlement is tried once. Without an answer a lease ends by its ttl. Leaving a lease or a hold
        afterwards does nothing. A second call of `close` waits for the first.
        """
        with self._closing_lock:
            if not self._closing:
                self._closing = True
                self._close()

    def _close(self) -> None:
        silent: set[str] = set()
        try:
            endings = self.taken.close()
            self._under_way.end_calls()
            self._nodes.end_waits()
            self._under_way.wait(connecting_time(self.timeout) + self.timeout)
            # A release of this limiter may have granted what a call was waiting for. So the endings of such calls come last.
            for ending in [*endings, *self.background.close()]:
                where = self._nodes.where(ending.call)
                outcome = None if where in silent else self._outcome(ending.call)
                if isinstance(outcome, (NoAnswer, CallError)):
                    self.core.warn(ending.call, outcome.error, "not repeated, since the limiter closes")
                if isinstance(outcome, NoAnswer):
                    silent.add(where)
        finally:
            self._nodes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, calls: Generator[Call, object, R]) -> R:
        """Sends the calls of a generator. For leases and budgets."""
        run = self._under_way.begin()
        try:
            return drive(calls, partial(self._asked, run))
        finally:
            self._under_way.end(run)

    def _decide(self, question: Question, kind: type[D]) -> D:
        known = self.core.known(question, kind)
        if known is not None:
            return known
        run = self._under_way.begin()
        try:
            reply = self._asked(run, question.call)
        except NoAnswer as missing:
            return self.core.undecided(question, kind, missing)
        finally:
            self._under_way.end(run)
        return self.core.decided(question, kind, reply)

    def _asked(self, run: Run, call: Call) -> object:
        run.begin(call, self.taken)
        return self._send(call)

    def _send(self, call: Call) -> object:
        call.asked = self._nodes.where(call)
        self.core.enter(call.asked)
        try:
            reply = self._nodes.send(call)
        except BaseException as error:
            failure = self.core.lost(call.asked, call, error)
            if failure is error:
                raise
            raise failure from error
        finally:
            self.core.forget(call)
        self.core.leave(call.asked)
        return reply

    def _outcome(self, call: Call) -> object:
        try:
            return self._send(call)
        except (NoAnswer, CallError) as error:
            return error

    def _perform(self, job: Job) -> float | None:
        if isinstance(job, Ending):
            self.core.counters.add("releases_retried")
        job.asked = monotonic()
        return job.after(self._outcome(job.call))
