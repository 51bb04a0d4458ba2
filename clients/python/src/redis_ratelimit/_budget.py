"""Budgets: an estimate is charged and held, and settled at the actual cost when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast
from uuid import uuid4

from . import _questions, _replies
from ._call import Call
from ._core import Core, Question
from ._decision import AskDecision, Decision
from ._failure import NoAnswer
from ._jobs import Ending, Scheduler
from ._rate import is_policy, limiter_of
from ._spec import MOST, LimiterLike
from ._values import Duration, Key, Word, check_duration, integer, milliseconds, prefixed, text
from .errors import CallError, ConfigurationError, Refused, Unavailable

if TYPE_CHECKING:
    from ._async_limiter import AsyncRateLimiter
    from ._limiter import RateLimiter


class Charge:
    """What a budget charges: a limiter or a policy, on a key.

    Args:
        prefix: What stands before the key.
        key: The key.
        limiter_or_policy: A limiter, a rate such as `"1000/d"`, or the name of a policy. Rates have a slash or a space,
            and names have none.
        ttl: For how long an estimate can be settled.
    """

    def __init__(self, prefix: str, key: Key, limiter_or_policy: LimiterLike, ttl: Duration) -> None:
        check_duration("ttl", ttl, 1)
        self.ttl = ttl
        self._prefix, self._key, self._name = prefix, key, prefixed(prefix, key)
        self._policy, self._limiter = None, None
        if is_policy(limiter_or_policy):
            text("policy", limiter_or_policy, 64)
            self._policy = limiter_or_policy
            return
        self._limiter = limiter_of(limiter_or_policy)
        if "hold" not in self._limiter.OPTIONS or getattr(self._limiter, "countrefused", False):
            raise ConfigurationError(f"{self._limiter!r} cannot be held")

    def question(
        self, estimate: int, hold_id: str, wait: Duration | None
    ) -> Question[Decision] | Question[AskDecision]:
        """The call that charges the estimate."""
        integer("estimate", estimate, 1, MOST)
        hold = hold_id, self.ttl
        if self._limiter is not None:
            return _questions.limit(self._prefix, self._key, self._limiter, estimate, wait, hold)
        return _questions.ask(self._prefix, self._key, cast(str, self._policy), estimate, None, (), False, wait, hold)

    def settlement(self, actual: int, hold_id: str) -> tuple[Call, Callable[[object], bool]]:
        """The call that settles, and whether a reply says that it settled something."""
        words: list[Word]
        if self._limiter is not None:
            words = ["RL.SETTLE", self._name, hold_id, *self._limiter.words, "COST", actual]
            return Call(words, self._name), lambda reply: _replies.settled(reply).settled
        words = ["RL.ASKSETTLE", self._name, cast(str, self._policy), hold_id, "COST", actual]
        return Call(words, self._name), lambda reply: bool(_replies.asksettled(reply).settled)


class HeldState:
    """What holds for threads and for asyncio share.

    Attributes:
        id: The id of the hold.
        estimate: What is charged at first.
        decision: The answer. Without an answer it is None.
    """

    def __init__(self, core: Core, background: Scheduler, charge: Charge, estimate: int, wait: Duration | None) -> None:
        self.id = uuid4().hex
        self.estimate = estimate
        self.decision: Decision | None = None
        self._core, self._background, self._charge = core, background, charge
        self._question = charge.question(estimate, self.id, wait)
        self._actual: int | None = None
        self._missing: NoAnswer | None = None
        self._entered = False

    @property
    def held(self) -> bool:
        """Whether the server has said that the estimate is held."""
        return self.decision is not None and self.decision.allowed

    def settle(self, actual: int) -> None:
        """Says what the work cost. It is charged when the work is left, and the last call counts.

        Args:
            actual: The actual cost (0 to 9007199254740991).
        """
        self._actual = integer("actual", actual, 0, MOST)

    def holding(self) -> Generator[Call, object, None]:
        """Charges the estimate."""
        if self._entered:
            raise ConfigurationError("an estimate is for one piece of work: call hold() for each")
        self._entered = True
        try:
            reply = yield self._question.call
        except NoAnswer as missing:
            self._missing = missing
            if not self._core.goes_on(self._question.call, missing):
                self._settle_later(0, missing)
                raise Unavailable(self._question.call.command, missing.error) from missing.error
            return
        except CallError:
            raise
        except BaseException:  # such as a cancellation: the estimate may be held, or may still be
            if self._question.call.sent:
                self._background.add(self._ending(0, certain=False), 0.0)
            raise
        self.decision = self._core.decided(cast(Question[Decision], self._question), reply)
        if not self.decision.allowed:
            raise Refused(self.decision)

    def settling(self, failed: bool) -> Generator[Call, object, None]:
        """Settles at what `settle` said, or at 0 if the work failed, or at the estimate."""
        actual = self._actual if self._actual is not None else 0 if failed else self.estimate
        if self._missing is not None:
            self._settle_later(actual, self._missing)
            return
        if self.decision is None:
            return
        yield from self._ending(actual, certain=True).tried(self._background)

    def _settle_later(self, actual: int, missing: NoAnswer) -> None:
        """Settles in the background what may be held, or may still be."""
        if missing.uncertain:
            self._background.add(self._ending(actual, certain=False), 0.0)

    def _ending(self, actual: int, *, certain: bool) -> Ending:
        call, ended = self._charge.settlement(actual, self.id)
        return Ending(self._core, call, ended, milliseconds("ttl", self._charge.ttl) / 1000, certain)


class Held(HeldState):
    """An estimate that is held, as a context manager: `with budget.hold(800) as h: h.settle(work())`.

    Entering charges the estimate. Leaving settles it: at what `settle` said; else at 0 if an exception leaves; else the
    estimate stands.
    """

    def __init__(self, limiter: RateLimiter, charge: Charge, estimate: int, wait: Duration | None) -> None:
        super().__init__(limiter.core, limiter.background, charge, estimate, wait)
        self._limiter = limiter

    def __enter__(self) -> Self:
        self._limiter.run(self.holding())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.run(self.settling(kind is not None))


class AsyncHeld(HeldState):
    """An estimate that is held, as a context manager: `async with budget.hold(800) as h: h.settle(await work())`.

    Entering charges the estimate. Leaving settles it: at what `settle` said; else at 0 if an exception leaves; else the
    estimate stands.
    """

    def __init__(self, limiter: AsyncRateLimiter, charge: Charge, estimate: int, wait: Duration | None) -> None:
        super().__init__(limiter.core, limiter.background, charge, estimate, wait)
        self._limiter = limiter

    async def __aenter__(self) -> Self:
        await self._limiter.run(self.holding())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limiter.run(self.settling(kind is not None))


class Budget:
    """A limit on what work costs, where the cost is known only afterwards."""

    def __init__(self, limiter: RateLimiter, charge: Charge) -> None:
        self._limiter, self._charge = limiter, charge

    def hold(self, estimate: int, wait: Duration | None = None) -> Held:
        """Charges an estimate, and settles it when the work is left.

        Args:
            estimate: The most that the work may cost (1 to 9007199254740991).
            wait: How long to wait in the server if the estimate does not fit.

        Raises:
            Refused: On entering: the estimate does not fit.
            Unavailable: On entering: there is no answer, and the limiter fails closed.
            CallError: On entering: the call is wrong.
        """
        return Held(self._limiter, self._charge, estimate, wait)


class AsyncBudget:
    """A limit on what work costs, where the cost is known only afterwards."""

    def __init__(self, limiter: AsyncRateLimiter, charge: Charge) -> None:
        self._limiter, self._charge = limiter, charge

    def hold(self, estimate: int, wait: Duration | None = None) -> AsyncHeld:
        """Charges an estimate, and settles it when the work is left.

        Args:
            estimate: The most that the work may cost (1 to 9007199254740991).
            wait: How long to wait in the server if the estimate does not fit.

        Raises:
            Refused: On entering: the estimate does not fit.
            Unavailable: On entering: there is no answer, and the limiter fails closed.
            CallError: On entering: the call is wrong.
        """
        return AsyncHeld(self._limiter, self._charge, estimate, wait)
