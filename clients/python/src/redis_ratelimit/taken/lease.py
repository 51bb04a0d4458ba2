"""Leases: at most n pieces of work at a time. A lease is renewed while the work goes on, and released on every path."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import TracebackType
from typing import Self

from ..call import calls, endings, questions
from ..call.adapt import Adapt, Drops, Outcome, adapted, outcome_of
from ..call.call import Call, OpenOrClosed
from ..call.errors import ConfigurationError
from ..call.manner import bound
from ..call.values import Duration, Key, Seconds, flags, function, milliseconds
from ..decide.decision import LeaseDecision, Refused
from ..decide.errors import CallError, Closed, Unavailable
from .connected import AsyncConnected
from .endings import Ending
from .renewals import Renewal


class AsyncLease:
    """A lease, as a context manager: `async with limiter.lease("db", 5, "30s") as lease:`.

    Entering takes the lease. Leaving releases it on every path.

    Attributes:
        id: The id of the lease.
        lost: Whether the lease ended before the work: a renewal did not find it, was rejected, or had no answer for a ttl.
        decision: The answer. Before the work begins, and without an answer, it is None.
    """

    def __init__(
        self,
        limiter: AsyncConnected,
        key: Key,
        capacity: int,
        ttl: Duration,
        wait: Duration | None,
        cost: int,
        renew: bool,
        reserved: int | None,
        critical: bool,
        fence: bool,
        timeout: Seconds | None,
        fail: OpenOrClosed | None,
        tenant: str | None,
        weight: int | None,
        on_lost: Callable[[], object] | None,
        adapt: bool | Adapt,
        drops: Drops,
    ) -> None:
        self._adapt, self._drops = adapted(adapt, drops), drops
        function("on_lost", on_lost)
        flags(renew=renew)
        self._limiter, self._core = limiter, limiter.core
        self.id = self._core.new_id()
        self.lost, self._on_lost = False, on_lost
        self.decision: LeaseDecision | None = None
        self._question = questions.lease(
            limiter.prefix, key, capacity, ttl, self.id, cost, wait, reserved, critical, tenant, weight, self._adapt, fence
        )
        bound(self._question.call, timeout, fail)
        self._core.check(self._question)
        self._key, self._ttl, self._renews = key, milliseconds("ttl", ttl) / 1000, renew
        self._entered = self._open = False
        self._renewal = Renewal(self._core, calls.renew(limiter.prefix, key, ttl, self.id), self._ttl, self._lose)

    @property
    def held(self) -> bool:
        """Whether the server has said that the lease is held, and its ttl has not passed since."""
        return self._open and not self.lost and self._core.clock() < self._renewal.ends

    @property
    def fence(self) -> int | None:
        """With `fence=True`: the fencing token, greater than those of all leases that the key had before.

        Renewals keep it. It stays when the lease is lost, so that a database refuses what its holder still writes. Without an
        answer it is None, and no number: a database that compares with NULL writes nothing.
        """
        return None if self.decision is None else self.decision.fence

    async def renew(self) -> bool:
        """Extends the lease to a whole ttl from now. Returns whether it is still held.

        Raises:
            Unavailable: There is no answer.
            CallError: The server rejects the renewal.
        """
        return await self._limiter.run(self.renewing())

    async def release(self, outcome: Outcome = "OK") -> None:
        """Ends the lease before the work is left, also one that is lost: the server may have it still.

        Args:
            outcome: With `adapt`: how the work ended. `"DROP"` lowers the limit, and `"IGNORE"` changes nothing.
        """
        await self._limiter.run(self.releasing(outcome))

    async def __aenter__(self) -> Self:
        await self._limiter.run(self.acquiring())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outcome: Outcome = "IGNORE"
        try:
            outcome = self._outcome_of(error)
        finally:
            await self.release(outcome)

    def _outcome_of(self, error: BaseException | None) -> Outcome:
        """Returns how the work ended. The caller gets the error of the work, also if `drops` raises one."""
        try:
            return outcome_of(error, self._drops)
        except Exception as wrong:
            self._core.note(self._question.call, "drops failed", f"{type(wrong).__name__}: {wrong}")
            return "IGNORE"

    def acquiring(self) -> Generator[Call, object, None]:
        """Takes the lease."""
        if self._entered:
            raise ConfigurationError("a lease is for one piece of work: call lease() for each")
        self._entered = True
        call, asked = self._question.call, self._core.clock()
        try:
            reply = yield call
        except Unavailable as missing:
            if missing.maybe_sent:
                self._release_later()
            if self._core.goes_on(call, missing):
                return
            raise
        except CallError:
            raise
        except BaseException:  # such as a cancellation: the lease may be taken, or may still be
            if call.sent:
                self._release_later(given_up=True)
            raise
        self.decision = self._core.decided(self._question, LeaseDecision, reply)
        if not self.decision.allowed:
            raise Refused(self.decision)
        self._open = True
        self._renewal.ends = (asked if call.wait is None else self._core.clock()) + self._ttl
        if not self._limiter.taken.add(self):
            yield from self.releasing("IGNORE")
            raise Closed
        if self._renews:
            self._limiter.background.add(self._renewal, self._renewal.every)

    def renewing(self) -> Generator[Call, object, bool]:
        """Renews the lease by hand."""
        if not self._open or self.lost:
            return False
        asked = self._core.clock()
        reply = yield Call(self._renewal.call.words, self._renewal.call.keys)
        if self._open:
            self._renewal.asked = asked
            self._renewal.after(reply)
        return self.held

    def releasing(self, outcome: Outcome) -> Generator[Call, object, None]:
        """Ends the lease."""
        release = self._released(outcome)
        self._limiter.taken.discard(self)
        for ending in self._closing(release):
            yield from ending.tried(self._limiter.background)

    def closing(self) -> list[Ending]:
        """Returns the release of a lease that is held. After it the lease is held no more."""
        return self._closing(self._released("IGNORE"))

    def _closing(self, release: Call) -> list[Ending]:
        self._limiter.background.stop(self._renewal)
        if not self._open:  # what may be taken without an answer is being released since then
            return []
        self._open = False
        return [self._ending(release, certain=True)]

    def _release_later(self, *, given_up: bool = False) -> None:
        release = self._released("IGNORE")
        self._limiter.background.add(self._ending(release, certain=False, given_up=given_up), 0.0)

    def _released(self, outcome: Outcome) -> Call:
        """The release. Only an adaptive limit learns how the work ended."""
        return endings.release(self._limiter.prefix, [self._key], self.id, outcome if self._adapt else "OK")

    def _ending(self, release: Call, *, certain: bool, given_up: bool = False) -> Ending:
        wait = 0.0 if certain else self._question.call.wait or 0.0
        return Ending(self._core, release, self._ttl + wait, certain, given_up)

    def _lose(self, why: str) -> None:
        # The server may still have the lease. So it is released all the same.
        self.lost = True
        self._core.lease_lost(self._renewal.call, why)
        if self._on_lost is not None:
            try:
                self._on_lost()
            except Exception as error:
                self._core.note(self._renewal.call, "hook failed", f"{type(error).__name__}: {error}")
