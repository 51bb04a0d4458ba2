"""Budgets: an estimate is charged and held, and settled at the actual cost when the work is done."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Self

from ..call.call import Call, OpenOrClosed
from ..call.errors import ConfigurationError
from ..call.limit import MOST
from ..call.manner import bound
from ..call.values import Duration, Seconds, integer
from ..decide.decision import Decision, Refused
from ..decide.errors import CallError, Closed, Unavailable
from .charge import Charge
from .connected import AsyncConnected
from .endings import Ending


class AsyncHeld:
    """An estimate that is held, as a context manager: `async with budget.hold(800) as h: h.settle(await work())`.

    Entering charges the estimate. Leaving settles it: at what `settle` said; else at 0 if an exception leaves; else the
    estimate stands.

    Attributes:
        id: The id of the hold.
        estimate: What is charged at first.
        decision: The answer. Without an answer it is None.
    """

    def __init__(
        self,
        limiter: AsyncConnected,
        charge: Charge,
        estimate: int,
        wait: Duration | None,
        timeout: Seconds | None,
        fail: OpenOrClosed | None,
        tenant: str | None,
        weight: int | None,
        critical: bool,
    ) -> None:
        self._limiter, self._core = limiter, limiter.core
        self.id = self._core.new_id()
        self.estimate = estimate
        self.decision: Decision | None = None
        self._charge = charge
        self._tenant = tenant
        self._question = charge.question(estimate, self.id, wait, tenant, weight, critical)
        bound(self._question.call, timeout, fail)
        self._core.check(self._question)
        self._actual: int | None = None
        self._entered, self._open = False, False
        self._certain = True
        self._closed_at: int | None = None

    @property
    def held(self) -> bool:
        """Whether the server has said that the estimate is held."""
        return self.decision is not None and self.decision.allowed

    def settle(self, cost: int) -> None:
        """Says what the work cost. It is charged when the work is left, and the last call counts.

        Args:
            cost: The actual cost (0 to 9007199254740991).
        """
        self._actual = integer("cost", cost, 0, MOST)

    async def end(self) -> None:
        """Settles before the work is left: at what `settle` said, or else the estimate stands."""
        await self._limiter.run(self.settling(False))

    async def cancel(self) -> None:
        """Settles work that failed: at what `settle` said, or else at 0."""
        await self._limiter.run(self.settling(True))

    async def __aenter__(self) -> Self:
        await self._limiter.run(self.holding())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.end() if kind is None else self.cancel())

    def holding(self) -> Generator[Call, object, None]:
        """Charges the estimate."""
        if self._entered:
            raise ConfigurationError("an estimate is for one piece of work: call hold() for each")
        self._entered = True
        call = self._question.call
        try:
            reply = yield call
        except Unavailable as missing:
            self._unanswered(missing)
            return
        except CallError:
            raise
        except BaseException:  # such as a cancellation: the estimate may be held, or may still be
            if call.sent:
                self._settle_later(0, given_up=True)
            raise
        self.decision = self._core.decided(self._question, self._charge.kind, reply)
        if not self.decision.allowed:
            raise Refused(self.decision)
        if not self._begin(certain=True):
            self._open = False
            yield from self._ending(0).tried(self._limiter.background)
            raise Closed

    def settling(self, failed: bool) -> Generator[Call, object, None]:
        """Settles at what `settle` said, or at 0 if the work failed, or at the estimate."""
        actual = self._actual if self._actual is not None else 0 if failed else self.estimate
        if self._closed_at not in (None, actual):
            why = f"the limiter has settled {self._closed_at}, not {actual}"
            self._core.note(self._question.call, "settled when the limiter closed", why)
        if not self._open:
            return
        self._open = False
        self._limiter.taken.discard(self)
        yield from self._ending(actual).tried(self._limiter.background)

    def closing(self) -> list[Ending]:
        """Returns the settlement of what is held, at what `settle` said or else at the estimate."""
        if not self._open:
            return []
        self._open = False
        self._closed_at = self.estimate if self._actual is None else self._actual
        return [self._ending(self._closed_at)]

    def _begin(self, *, certain: bool) -> bool:
        """Returns False if the limiter closes, and will not settle it."""
        self._open, self._certain = True, certain
        return self._limiter.taken.add(self)

    def _unanswered(self, missing: Unavailable) -> None:
        """Goes on with what may be held, or may still be. Or settles it at 0."""
        if self._core.undecided(self._question, Decision, missing):
            if missing.maybe_sent and not self._begin(certain=False):
                self._open = False
                self._settle_later(0)
                raise Closed
            return
        if missing.maybe_sent:
            self._settle_later(0)
        raise missing

    def _settle_later(self, actual: int, *, given_up: bool = False) -> None:
        self._certain = False
        self._limiter.background.add(self._ending(actual, given_up=given_up), 0.0)

    def _ending(self, actual: int, *, given_up: bool = False) -> Ending:
        call = self._question.call
        return self._charge.settlement(
            actual, self.id, call, self._tenant, certain=self._certain, given_up=given_up
        )


class AsyncBudget:
    """A limit on what work costs, where the cost is known only afterwards."""

    def __init__(self, limiter: AsyncConnected, charge: Charge) -> None:
        self._limiter, self._charge = limiter, charge

    def hold(
        self,
        estimate: int,
        wait: Duration | None = None,
        *,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
        tenant: str | None = None,
        weight: int | None = None,
        critical: bool = False,
    ) -> AsyncHeld:
        """Charges an estimate, and settles it when the work is left.

        Args:
            estimate: The most that the work may cost (1 to 9007199254740991).
            wait: How long to wait in the server if the estimate does not fit.
            timeout, fail, tenant, weight, critical: As of `RateLimiter.limit`.

        Raises:
            Refused: On entering: the estimate does not fit.
            Unavailable: On entering: there is no answer, and the limiter fails closed.
            CallError: On entering: the call is wrong.
        """
        return AsyncHeld(self._limiter, self._charge, estimate, wait, timeout, fail, tenant, weight, critical)
