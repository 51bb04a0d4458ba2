"""Leases: at most n pieces of work at a time. A lease is renewed while the work goes on, and released on every path."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Self

from ..call import questions
from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.values import Duration, Key, duration_word, milliseconds
from ..decide import replies
from ..decide.decision import Decision
from ..decide.errors import CallError, Refused, Unavailable
from ..decide.failure import Closed, NoAnswer
from .connected import AsyncConnected
from .endings import Ending
from .renewals import Renewal


class AsyncLease:
    """A lease, as a context manager: `async with limiter.lease("db", 5, "30s") as lease:`.

    Entering takes the lease. Leaving releases it on every path.

    Attributes:
        id: The id of the lease.
        lost: Whether a renewal found that the lease has ended, or was rejected.
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
    ) -> None:
        self._limiter, self._core = limiter, limiter.core
        self.id = self._core.new_id()
        self.lost = False
        self.decision: Decision | None = None
        self._question = questions.lease(limiter.prefix, key, capacity, ttl, self.id, cost, wait)
        self._ttl = milliseconds("ttl", ttl) / 1000
        self._ends: float | None = None
        self._entered = False
        name = self._question.call.words[1]
        self._release = Call(["RL.RELEASE", name, self.id], self._question.call.keys)
        self._renewal_call = Call(["RL.RENEW", name, duration_word(ttl), self.id], self._question.call.keys)
        self._renewal = Renewal(self._renewal_call, self._ttl, self._renewed) if renew else None

    @property
    def held(self) -> bool:
        """Whether the server has said that the lease is held, and its ttl has not passed since."""
        return self._ends is not None and not self.lost and self._core.clock() < self._ends

    async def __aenter__(self) -> Self:
        await self._limiter.run(self.acquiring())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limiter.run(self.releasing())

    def acquiring(self) -> Generator[Call, object, None]:
        """Takes the lease."""
        if self._entered:
            raise ConfigurationError("a lease is for one piece of work: call lease() for each")
        self._entered = True
        asked = self._core.clock()
        try:
            reply = yield self._question.call
        except NoAnswer as missing:
            self._unanswered(missing)
            return
        except CallError:
            raise
        except BaseException:  # such as a cancellation: the lease may be taken, or may still be
            if self._question.call.sent:
                self._limiter.background.add(self._ending(certain=False), 0.0)
            raise
        decision = self._core.decided(self._question, Decision, reply)
        self.decision = decision
        if not decision.allowed:
            raise Refused(decision)
        self._ends = (asked if self._question.call.wait is None else self._core.clock()) + self._ttl
        if not self._limiter.taken.add(self):
            for ending in self.closing():
                yield from ending.tried(self._limiter.background)
            raise Closed
        if self._renewal is not None:
            self._limiter.background.add(self._renewal, self._renewal.every)

    def releasing(self) -> Generator[Call, object, None]:
        """Ends the lease."""
        self._limiter.taken.discard(self)
        for ending in self.closing():
            yield from ending.tried(self._limiter.background)

    def closing(self) -> list[Ending]:
        """Returns the release of a lease that is held. After it the lease is held no more."""
        if self._renewal is not None:
            self._limiter.background.stop(self._renewal)
        if self._ends is None:  # what may be taken without an answer is being released since then
            return []
        self._ends = None
        return [self._ending(certain=True)]

    def _unanswered(self, missing: NoAnswer) -> None:
        if missing.uncertain:
            ending = self._ending(certain=False)
            self._limiter.background.add(ending, ending.after(missing) or 0.0)
        if not self._core.goes_on(self._question.call, missing):
            raise Unavailable(self._question.call.command, missing.error, missing.node) from missing.error

    def _ending(self, *, certain: bool) -> Ending:
        return Ending(self._core, self._release, replies.bool_, self._ttl, certain)

    def _renewed(self, lost: str | None) -> None:
        if lost is None:
            if self._renewal is not None:
                self._ends = self._renewal.asked + self._ttl
            return
        # If the renewal was rejected, the server may still have the lease. So it is released all the same.
        self.lost = True
        self._core.lease_lost(self._renewal_call, lost)
