"""What a request has taken, and how it is ended: leases are released, budgets are settled, and what was charged before a
refusal is given back."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable
from functools import partial
from math import ceil
from typing import TypeVar
from weakref import finalize

from ..call.adapt import Outcome
from ..call.call import Call
from ..call.limit import MOST
from ..decide.core import Core
from ..decide.decision import Decision
from ..decide.errors import CallError, Unavailable
from ..taken.endings import Ending
from ..taken.background import Scheduler
from ..taken.renewals import Renewal
from ..taken.taken import Taken
from .rules import Asked
from .steps import End, Step

T = TypeVar("T")
Calls = Generator[Call | Awaitable[object], object, T]


class Passage:
    """A request that has passed the limits, or is about to.

    Attributes:
        id: The id of its leases and holds.
        headers: The headers for its response.
        decisions: What the server or this process has decided, under the names of rules.
        spent: What the handler counts, under the names of rules.
        wait: The seconds until the request's turn, if a limiter has queued it.
    """

    def __init__(self, core: Core, background: Scheduler, taken: Taken) -> None:
        self.id = core.new_id()
        self.headers: dict[str, str] = {}
        self.decisions: dict[str, Decision] = {}
        self.spent: dict[str, float] = {}
        self.wait = 0.0
        self._core, self._background, self._taken = core, background, taken
        self._charged: list[Step] = []
        self._unsure: list[Step] = []
        self._renewals: list[Renewal] = []

    def charged(self, step: Step) -> None:
        """Notes that a step is charged."""
        self._charged.append(step)
        self._taken.add(self)

    def unanswered(self, step: Step, *, goes_on: bool = False, given_up: bool = False) -> None:
        """Notes that a step had no answer, or was given up. It may have been charged, or may still be.

        Its lease is not counted on, so it is released at once. Its budget is settled when the work is done.
        """
        self._later(step.releases("IGNORE"), certain=False, given_up=given_up)
        if goes_on:
            self._unsure.append(step)
            self._taken.add(self)
        else:
            self._later(step.undone(), certain=False, given_up=given_up)

    def begin(self) -> None:
        """Renews the leases until the request has left."""
        for step in self._charged:
            for call, ttl in step.renewals():
                renewal = Renewal(self._core, call, ttl, partial(self._core.lease_lost, call))
                finalize(self, setattr, renewal, "stopped", True).atexit = False  # nobody can leave any more
                self._renewals.append(renewal)
                self._background.add(renewal, renewal.every)

    def leaving(self, status: int | None = None) -> Calls[None]:
        """Releases and settles. A second call does nothing."""
        yield from self._ending(self._closing("OK", status))

    def closing(self) -> list[Ending]:
        """Returns what releases and settles. Leaving then does nothing."""
        return self._closing("IGNORE", None)

    def _closing(self, outcome: Outcome, status: int | None) -> list[Ending]:
        self._stop_renewals()
        actual = partial(self._actual, status)
        certain = [end for step in self._charged for end in (*step.releases(outcome), *step.settlements(actual))]
        unsure = [end for step in self._unsure for end in step.settlements(actual)]
        self._charged, self._unsure = [], []
        return [*self._jobs(unsure, certain=False), *self._jobs(certain, certain=True)]

    def _actual(self, status: int | None, asked: Asked) -> int:
        """What the handler counted, or else the estimate. With `counts` the cost or 0, by the status of the response."""
        counted = self.spent.get(asked.rule, asked.cost)
        try:
            if asked.counts is None:
                return min(max(ceil(counted), 0), MOST)
            return asked.cost if status is None or asked.counts(status) else 0
        except Exception as error:  # of what the application gave
            why = f"what was spent is no number but {counted!r}: the estimate stands"
            if asked.counts is not None:
                why = f"counts failed, so the request counts: {type(error).__name__}: {error}"
            self._core.log.warn("settled", self._core.clock(), f"rule {asked.rule!r}: {why}")
            return asked.cost

    def undoing(self) -> Calls[None]:
        """Gives everything back, since the request is refused."""
        for step in self._abandoned():
            yield from self._ending(self._jobs([*step.releases("IGNORE"), *step.undone()], certain=True))
            if (call := step.refund()) is not None:
                try:
                    yield call
                except (Unavailable, CallError) as error:  # not repeated: it may have given back already
                    self._core.warn(call, "not given back", error)

    def abandon(self) -> None:
        """Ends leases and holds in the background, since an error ended the request."""
        self._stop_renewals()
        for step in self._abandoned():
            self._later([*step.releases("IGNORE"), *step.undone()], certain=True)

    def _stop_renewals(self) -> None:
        for renewal in self._renewals:
            self._background.stop(renewal)
        self._renewals = []

    def _abandoned(self) -> list[Step]:
        charged = self._charged
        for step in self._unsure:
            self._later(step.undone(), certain=False)
        self._charged, self._unsure = [], []
        return charged

    def _ending(self, endings: list[Ending]) -> Calls[None]:
        try:
            while endings:
                yield from endings.pop(0).tried(self._background)
        except BaseException:  # such as a cancellation
            for ending in endings:
                self._background.add(ending, 0.0)
            raise

    def _later(self, ends: Iterable[End], *, certain: bool, given_up: bool = False) -> None:
        for ending in self._jobs(ends, certain=certain, given_up=given_up):
            self._background.add(ending, 0.0)

    def _jobs(self, ends: Iterable[End], *, certain: bool, given_up: bool = False) -> list[Ending]:
        return [Ending(self._core, end.call, end.ttl, certain, given_up) for end in ends]
