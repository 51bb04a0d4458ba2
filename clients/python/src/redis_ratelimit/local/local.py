"""A limit that is answered from memory, and the local limits of a limiter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import suppress
from threading import RLock
from typing import TypeAlias

from ..call import calls, questions
from ..call.call import Call
from ..call.limit import MOST, Limiter, LimiterLike
from ..call.steady import SteadyRate, checked_limit
from ..call.values import Duration, Key, Word, integer, key_bytes, prefixed
from ..decide import replies
from ..decide.decision import Decision
from ..decide.errors import CallError, Unavailable
from ..decide.fork import after_fork
from ..decide.insurance import Claim
from ..taken.connected import AsyncConnected
from ..taken.endings import Ending
from ..taken.jobs import Job
from .store import Store, Way

MOST_KEYS = 10_000


class Fetch(Job):
    """Takes a batch ahead in the background, or what there is of it.

    Args:
        prefix: What stands before the key.
        key: The key.
        limiter: The limiter.
        batch: How much is wanted.
        done: Is given the outcome.

    Attributes:
        batch: How much is wanted.
    """

    is_renewal = True  # when the limiter closes, it is not sent any more

    def __init__(
        self, prefix: str, key: Key, limiter: Limiter, batch: int, done: Callable[[Fetch, object], None]
    ) -> None:
        call = questions.limit(prefix, key, limiter, batch, None).call
        super().__init__(Call([*call.words, "PARTIAL"], call.keys))
        self.batch, self._done = batch, done

    def after(self, outcome: object) -> float | None:
        self._done(self, outcome)
        return None


class AsyncLocal:
    """A limit that this process answers from memory: it takes tokens ahead, and forgets those that it has not spent in time.

    While the server answers, all processes together admit in any time t at most C + r * (t + hold), where C is the most that
    the limit admits at once and r its rate. While it does not answer, each process admits its share.

        api = limiter.local("api", "10000/s", processes=20)
        decision = await api.take()

    Attributes:
        key: The key, with its prefix.
        limiter: The limiter.
    """

    def __init__(
        self, limiter: AsyncConnected, key: Key, limit: Limiter, rate: SteadyRate, hold: int, processes: int
    ) -> None:
        self.key, self.limiter = prefixed(limiter.prefix, key), limit
        self._limiter, self._core, self._short_key = limiter, limiter.core, key
        self._clock = limiter.core.clock
        self._store = Store(rate, hold, processes)
        self._place = (key_bytes(self.key), limit.words, processes), rate, processes
        self._patience = limiter.patience + limiter.timeout
        self.forked()
        after_fork(self)
        limiter.core.counters.others[self] = None
        limiter.taken.add(self)

    def forked(self) -> None:
        """Forgets what the parent has taken."""
        self._lock = RLock()
        self._store.forked()
        self._arrival = self._limiter.runtime.signal()

    def try_take(self, cost: int = 1) -> Decision | None:
        """Answers from memory, without any I/O. Returns None if the server must be asked: `take` does it.

        Args:
            cost: How much the request takes.
        """
        if type(cost) is not int or cost < 1:
            integer("cost", cost, 1, MOST)
        store = self._store
        with self._lock:
            answer = store.try_take(cost, self._clock())
            batch, missing = store.wanted, store.missing
            if batch:
                store.wanted = 0
        if batch:
            self._fetch(batch)
        if answer is Way.SHARE:
            return self._insured(cost, missing)
        return None if answer is None else self._told(answer)

    async def take(self, cost: int = 1) -> Decision:
        """Answers from memory, or asks the server.

        Args:
            cost: How much the request takes. If less is left, the server is asked for this request alone.

        Raises:
            CallError: The server rejects the call, as for a key of another type.
        """
        integer("cost", cost, 1, MOST)
        waits = 0
        while True:
            with self._lock:
                answer = self._store.take(cost, self._clock(), waits=waits)
                batch, self._store.wanted = self._store.wanted, 0
                arrival, missing = self._arrival, self._store.missing
            if batch:
                self._fetch(batch)
            if isinstance(answer, Decision):
                return self._told(answer)
            if answer is Way.SHARE:
                return self._insured(cost, missing)
            if answer is Way.ASK:
                return await self._limiter.run(self._asking(cost))
            await arrival.wait(self._patience)
            waits += 1

    def giving_back(self, cost: int, decision: Decision) -> Generator[Call, object, None]:
        """Gives back what a decision has admitted, because the request does not go on."""
        with self._lock:
            self._store.give_back(cost, decision, self._clock())
        if decision.source == "server" and decision.allowed:
            call = calls.refund(self._limiter.prefix, self._short_key, self.limiter, cost=questions.sent_cost(cost))
            try:
                yield call
            except (Unavailable, CallError) as error:  # not repeated: it may have given back already
                self._core.warn(call, "not given back", error)

    def count(self) -> None:
        """Adds to the limiter's counters what was counted here."""
        store, counters = self._store, self._core.counters
        with self._lock:
            store.forget(self._clock())
            allowed, refused = store.allowed, store.refused
            fetched = store.fetches, store.fetched, store.forgotten
            store.allowed = store.refused = store.fetches = store.fetched = store.forgotten = 0
        counters.add("allowed", n=allowed)
        counters.add("refused", n=refused)
        counters.add("asked", "answered_locally", n=allowed + refused)
        for name, n in zip(("fetches", "fetched", "forgotten"), fetched, strict=True):
            counters.add(name, n=n)

    def closing(self) -> list[Ending]:
        """Lets callers that wait go on, since the limiter closes. What was taken is not given back."""
        self._ended(None)
        return []

    def _told(self, decision: Decision) -> Decision:
        if self._core.hooks.on_decision:
            self._core.hooks.decided(Call([self.limiter.COMMAND], [self.key]), decision, 0.0)
        return decision

    def _fetch(self, batch: int) -> None:
        fetch = Fetch(self._limiter.prefix, self._short_key, self.limiter, batch, self._fetched)
        if not self._limiter.background.add(fetch, 0.0):
            self._ended(None)

    def _fetched(self, fetch: Fetch, outcome: object) -> None:
        if isinstance(outcome, (Unavailable, CallError)):
            self._ended(outcome if isinstance(outcome, Unavailable) else None)
            return
        decision = replies.decision(outcome, self.limiter)
        with self._lock:
            self._store.fetched_at(decision, fetch.batch, fetch.asked, self._clock())
            arrival, self._arrival = self._arrival, self._limiter.runtime.signal()
        arrival.set()

    def _ended(self, missing: Unavailable | None) -> None:
        with self._lock:
            self._store.ended(missing)
            arrival, self._arrival = self._arrival, self._limiter.runtime.signal()
        arrival.set()

    def _asking(self, cost: int) -> Generator[Call, object, Decision]:
        question = questions.limit(self._limiter.prefix, self._short_key, self.limiter, cost, None)
        outcome: Decision | Unavailable | None = None
        try:
            outcome = self._core.decided(question, Decision, (yield question.call))
            return outcome
        except Unavailable as missing:
            outcome = missing
            return self._insured(cost, missing)
        finally:
            with self._lock:
                self._store.asked_at(outcome, self._clock())

    def _insured(self, cost: int, missing: Unavailable | None) -> Decision:
        command = self.limiter.COMMAND
        missing = missing or Unavailable(command, "connection", "no answer")
        call = Call([command], [self.key], asked=missing.node)
        return self._core.insured(call, [Claim(*self._place, cost)], Decision, missing)


Asked: TypeAlias = tuple[bytes, tuple[Word, ...], int, int]


class AsyncLocals:
    """The local limits of a limiter, of which it keeps 10,000. The one that was asked for least recently goes first."""

    def __init__(self, limiter: AsyncConnected) -> None:
        self._limiter = limiter
        self._known: OrderedDict[Asked, AsyncLocal] = OrderedDict()
        self.forked()
        after_fork(self)

    def __len__(self) -> int:
        return len(self._known)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()

    def find(self, key: Key, limit: LimiterLike, hold: Duration, processes: int) -> AsyncLocal:
        """Returns the local limit of these arguments, always the same."""
        limiter, rate, held = checked_limit(limit, hold)
        integer("processes", processes, 1, MOST)
        asked = key_bytes(prefixed(self._limiter.prefix, key)), limiter.words, held, processes
        with self._lock:
            found = self._known.get(asked)
            if found is None:
                found = AsyncLocal(self._limiter, key, limiter, rate, held, processes)
                found = self._known.setdefault(asked, found)
            with suppress(KeyError):  # a signal handler has evicted it
                self._known.move_to_end(asked)
            if len(self._known) > MOST_KEYS:
                self._known.popitem(last=False)[1].count()
        return found
