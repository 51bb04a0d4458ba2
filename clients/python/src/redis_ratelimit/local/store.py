"""What a process has taken of one key ahead, and when it takes more. There is no I/O, no clock and no lock here. A signal
handler may call in the middle of another call: then a call more may be admitted from memory, and nothing fails.

The process fetches a batch by `PARTIAL` and spends it on calls. It forgets the rest when `hold` has passed since it sent the fetch.
A batch is three quarters of what is asked for in `hold`:

      0 ms   fetch 45    600 calls a second, hold is 100 ms
      1 ms   45 arrive   they may be spent until 100 ms
     57 ms   11 left     a quarter, so the next batch is fetched
     58 ms   45 arrive   these may be spent until 157 ms
     75 ms   the first batch is spent

All processes together spend in any time t at most C + r * (t + hold), where C is the most at once and r the rate. What is
spent in [a, a + t] was granted in [a - hold, a + t], and the server grants at most C + r * (t + hold) in that time. The
argument needs only that nothing is spent later than `hold` after it was granted. So `hold` counts from sending, and all
other numbers here are for throughput alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Literal

from ..call.steady import SteadyRate
from ..decide.decision import Decision
from ..decide.errors import Unavailable

SLOT = 0.1
SLOTS = 10
"""Demand is counted in slots of 100 ms: the current one, and the nine before."""
RARE = 100
"""With less demand in a second a call asks directly: a batch would be forgotten before it is spent."""


MOST_WAITS = 3
"""For how many fetches a call waits. If one brings nothing, as with an error reply, or later than a hold, it asks directly."""
MOST_ASKING = 8
"""How many calls may ask directly before others wait for a fetch instead. A direct call costs a process much more than one from
memory. Without this bound a process without enough CPU time asks directly for each call, and never catches up."""
LONGEST_WAITS = 20
"""For how many fetches a call waits because others ask directly."""


class Way(Enum):
    """What a call does that has no answer from memory."""

    ASK = "asks the server for its whole cost"
    WAIT = "waits for the fetch that is under way"
    SHARE = "asks the insurance, since the server does not answer"


@dataclass(slots=True, eq=False)
class Batch:
    """What was granted by one fetch.

    Attributes:
        left: How much of it is not spent.
        ends: When it is forgotten.
        decision: The answer to each call that it admits.
    """

    left: int
    ends: float
    decision: Decision


_NOTHING = Batch(0, inf, Decision(False, 0, 0, 0.0, 0.0, source="local"))


class Store:
    """The batches of a key, in a process. Times are seconds of a monotonic clock.

    Attributes:
        wanted: How much is to be fetched now. Its reader sets it to 0.
        missing: Why the server did not answer, while the process is cut off.
        fetches: How many fetches were answered since this was last set to 0. So of the others:
        fetched: How much they granted.
        forgotten: How much was forgotten.
        allowed: How many calls were admitted from memory.
        refused: How many calls were refused from memory.
    """

    __slots__ = (
        "_asking",
        "_batches",
        "_brought",
        "_current",
        "_demand",
        "_ends",
        "_fetching",
        "_hold",
        "_hold_ms",
        "_largest",
        "_late",
        "_left",
        "_low",
        "_most",
        "_next_fetch",
        "_quarter",
        "_refusal",
        "_refused_until",
        "_slot",
        "_slot_ends",
        "_slots",
        "allowed",
        "fetched",
        "fetches",
        "forgotten",
        "missing",
        "refused",
        "wanted",
    )

    def __init__(self, rate: SteadyRate, hold: int, processes: int) -> None:
        self._most, self._largest = rate.most, max(1, rate.most // processes)
        self._hold_ms, self._hold, self._quarter = hold, hold / 1000, hold / 4000
        self._demand = self._slot = 0
        self._slots = deque([0] * (SLOTS - 1))
        self._slot_ends = -inf
        self._next_fetch = self._refused_until = -inf
        self._refusal = _NOTHING.decision
        self.missing: Unavailable | None = None
        self.forked()

    def forked(self) -> None:
        """Forgets everything: what was taken is the parent's."""
        self._batches: tuple[Batch, ...] = ()
        self._current = _NOTHING
        self._left = self._low = self.wanted = 0
        self._ends = inf
        self._fetching = self._brought = self._late = False
        self._asking = 0
        self.fetches = self.fetched = self.forgotten = self.allowed = self.refused = 0

    # Calls

    def try_take(self, cost: int, now: float) -> Decision | Literal[Way.SHARE] | None:
        """Returns an answer for which nobody waits, or None."""
        if now >= self._ends:
            self.forget(now)
        if now >= self._slot_ends:
            self._turn(now)
        if cost > self._left and not self._is_known(cost, now):
            return None
        self._slot += cost
        self._demand += cost
        if cost <= self._left:
            return self._spend(cost, now)
        return self._without(now)

    def take(self, cost: int, now: float, *, waits: int) -> Decision | Way:
        """Returns an answer from memory, or what the call does else.

        Args:
            cost: What it costs.
            now: The time.
            waits: For how many fetches it has waited.
        """
        if now >= self._ends:
            self.forget(now)
        if cost > self._most:
            return self._ask()
        if not waits:
            self._turn(now)
            self._slot += cost
            self._demand += cost
        if cost <= self._left:
            return self._spend(cost, now) or self._ask()
        if self._is_known(0, now):
            return self._without(now)
        rare = self._demand < RARE or waits >= MOST_WAITS or (waits and self._late)
        if self._left or (waits and not self._brought) or waits >= LONGEST_WAITS or (rare and self._asking < MOST_ASKING):
            return self._ask()
        if not self._fetching:
            if cost > self._batch():
                return self._ask()
            self._begin(now)
        return Way.WAIT

    def _ask(self) -> Way:
        self._asking += 1
        return Way.ASK

    def give_back(self, cost: int, decision: Decision, now: float) -> None:
        """Takes back what a decision of a batch has admitted. It is forgotten with that batch."""
        self.forget(now)
        for batch in self._batches:
            if batch.decision is decision and batch in self._batches:  # a signal handler may have forgotten it
                batch.left += cost
                self._left += cost
        self._advance()

    # Replies

    def fetched_at(self, decision: Decision, asked: int, sent: float, now: float) -> None:
        """Notes the answer to a fetch that was sent at some time."""
        granted = decision.granted or 0
        self.fetches += 1
        self.fetched += granted
        self._low = granted // 4
        ends = sent + self._hold
        shared = replace(decision, allowed=True, retry_after=0.0, granted=None, source="local")
        batch = Batch(granted, ends, shared)
        self._left += granted
        self._batches += (batch,)
        self.forget(now)
        if granted < asked:
            self._refused(decision, now)
        self.ended()
        self._brought, self._late = granted > 0, now >= ends

    def asked_at(self, outcome: Decision | Unavailable | None, now: float) -> None:
        """Notes what came of a call that asked directly. None: it was given up, or the server rejects it."""
        self._asking -= 1
        if isinstance(outcome, Unavailable):
            self.missing = outcome
        elif outcome is not None:
            self.missing = None
            if not outcome.allowed and outcome.remaining == 0 and outcome.retry_after is not None:
                self._refused(outcome, now)

    def ended(self, missing: Unavailable | None = None) -> None:
        """Notes that no fetch is under way any more."""
        self._fetching = self._brought = self._late = False
        self.wanted, self.missing = 0, missing

    # Within

    def forget(self, now: float) -> None:
        """Forgets what is over."""
        for batch in self._batches:
            if now >= batch.ends:
                self.forgotten += batch.left
                self._left -= batch.left
                batch.left = 0
        self._batches = tuple(batch for batch in self._batches if now < batch.ends)
        self._ends = self._batches[0].ends if self._batches else inf
        self._advance()

    def _is_known(self, cost: int, now: float) -> bool:
        """Whether a call that finds too little is answered all the same, with this cost more of demand."""
        if self.missing is not None:
            return cost <= self._most
        return now < self._refused_until and self._demand + cost >= RARE and cost <= self._most

    def _without(self, now: float) -> Decision | Literal[Way.SHARE]:
        """Answers a call that finds too little."""
        if self.missing is None:
            self.refused += 1
            return self._refusal
        self._fetch(now)
        return Way.SHARE

    def _advance(self) -> None:
        """Finds the oldest batch of which something is left."""
        self._current = next((batch for batch in self._batches if batch.left), _NOTHING)

    def _spend(self, cost: int, now: float) -> Decision | None:
        """Takes a cost that is there, of the oldest batch first. Returns None if a signal handler has taken all."""
        batch = first = self._current
        while cost >= batch.left and batch is not _NOTHING:
            self._left -= batch.left
            cost -= batch.left
            batch.left = 0
            self._advance()
            batch = self._current
        if batch is not _NOTHING:
            batch.left -= cost
            self._left -= cost
        elif first is _NOTHING:
            return None
        self.allowed += 1
        if self._left <= self._low and now >= self._next_fetch and self._demand >= RARE:
            self._fetch(now)
        return first.decision

    def _fetch(self, now: float) -> None:
        """Says how much to fetch, unless a fetch is under way or was a short time ago."""
        if not self._fetching and now >= self._next_fetch and now >= self._refused_until:
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._fetching = True
        self._next_fetch = now + self._quarter
        self.wanted = self._batch()

    def _batch(self) -> int:
        return min(max(1, 3 * self._demand * self._hold_ms // 4000), self._largest)

    def _refused(self, decision: Decision, now: float) -> None:
        self._refused_until = now + self._quarter
        wait = max(self._quarter, decision.retry_after or 0.0)
        self._refusal = replace(
            decision, allowed=False, remaining=0, retry_after=wait, granted=None, source="local"
        )

    def _turn(self, now: float) -> None:
        """Begins the slot of this time, if it is another one."""
        if now < self._slot_ends:
            return
        if self._slot_ends == -inf:
            self._slot_ends = now + SLOT
            return
        ends = self._slot_ends
        gone = int((now - ends) / SLOT) + 1
        for _ in range(min(gone, SLOTS)):
            slot, self._slot = self._slot, 0
            self._slots.append(slot)
            oldest = self._slots.popleft()
            self._demand -= oldest
        self._slot_ends = ends + gone * SLOT
