"""What a request has taken, and how it is ended: leases are released, budgets are settled, and what was charged before a
refusal is given back."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeVar
from weakref import ref

from ..call.call import Call
from ..decide.core import Core
from ..decide.errors import CallError
from ..decide.failure import NoAnswer
from ..taken.endings import Ending
from ..taken.jobs import Scheduler
from ..taken.renewals import Renewal
from ..taken.taken import Taken
from .steps import End, Step

T = TypeVar("T")
Calls = Generator[Call, object, T]


class Passage:
    """A request that has passed the limits, or is about to.

    Attributes:
        id: The id of its leases and holds.
        headers: The headers for its response.
        spent: What the handler counts, under the names of rules.
        wait: The seconds until the request's turn, if a limiter has queued it.
    """

    def __init__(self, core: Core, background: Scheduler, taken: Taken) -> None:
        self.id = core.new_id()
        self.headers: dict[str, str] = {}
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

    def unanswered(self, step: Step, *, goes_on: bool) -> None:
        """Notes that a step had no answer. It may have been charged, or may still be.

        Its lease is not counted on, so it is released at once. Its budget is settled when the work is done.
        """
        self._later(step.releases(), certain=False)
        if goes_on:
            self._unsure.append(step)
            self._taken.add(self)
        else:
            self._later(step.undone(), certain=False)

    def begin(self) -> None:
        """Renews the leases until the request has left."""
        for step in self._charged:
            for call, ttl in step.renewals():
                renewed = Renewed(self, self._core)
                renewal = renewed.job = Renewal(call, ttl, renewed)
                self._renewals.append(renewal)
                self._background.add(renewal, renewal.every)

    def leaving(self) -> Calls[None]:
        """Releases and settles. A second call does nothing."""
        ends, unsure = self._ended()
        self._later(unsure, certain=False)
        yield from self._ending(ends)

    def closing(self) -> list[Ending]:
        """Returns what releases and settles, because the limiter closes."""
        ends, unsure = self._ended()
        return [*(self._job(end, certain=True) for end in ends), *(self._job(end, certain=False) for end in unsure)]

    def undoing(self) -> Calls[None]:
        """Gives everything back, since the request is refused."""
        charged = self._abandoned()
        yield from self._ending([end for step in charged for end in (*step.releases(), *step.undone())])
        for call in [call for step in charged if (call := step.refund()) is not None]:
            try:
                yield call
            except NoAnswer as missing:  # not repeated: it may have given back already
                self._core.warn(call, missing.error, "not given back")
            except CallError as error:
                self._core.warn(call, error.error, "not given back")

    def abandon(self) -> None:
        """Ends leases and holds in the background, since an error ended the request."""
        self._stop_renewals()
        for step in self._abandoned():
            self._later([*step.releases(), *step.undone()], certain=True)

    def _ended(self) -> tuple[list[End], list[End]]:
        """The releases and settlements, and those of what may be held without an answer."""
        self._stop_renewals()
        releases = [end for step in self._charged for end in step.releases()]
        settlements = [end for step in self._charged for end in step.settlements(self.spent)]
        unsure = [end for step in self._unsure for end in step.settlements(self.spent)]
        self._charged, self._unsure = [], []
        return [*releases, *settlements], unsure

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

    def _ending(self, ends: list[End]) -> Calls[None]:
        left = list(ends)
        try:
            while left:
                end = left.pop(0)
                yield from self._job(end, certain=True).tried(self._background)
        except BaseException:  # such as a cancellation
            self._later(left, certain=True)
            raise

    def _later(self, ends: Iterable[End], *, certain: bool) -> None:
        for end in ends:
            self._background.add(self._job(end, certain=certain), 0.0)

    def _job(self, end: End, *, certain: bool) -> Ending:
        return Ending(self._core, end.call, end.ended, end.ttl, certain)


class Renewed:
    """Is told why a lease is lost, if it is. It ends the renewals if nobody can leave any more."""

    def __init__(self, passage: Passage, core: Core) -> None:
        self._passage, self._core = ref(passage), core
        self.job: Renewal | None = None

    def __call__(self, lost: str | None) -> None:
        if self.job is None:
            return
        if self._passage() is None:
            self.job.stopped = True
        elif lost is not None:
            self._core.lease_lost(self.job.call, lost)
