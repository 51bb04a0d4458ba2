"""The calls of a request: one RL.MULTI for all limits of a slot, and one RL.ASK for each policy. Each step knows the calls
that charge it, end it and give it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from ..call import calls, endings, questions
from ..call.adapt import Outcome
from ..call.call import Call
from ..call.limit import Limit, Limiter
from ..call.limiters import Concurrent
from ..call.questions import Question
from ..call.values import Duration, milliseconds
from ..decide.decision import AskDecision, Decision, MultiDecision
from ..decide.errors import CallError
from .rules import Asked, AskedLimit, AskedPolicy

Actual: TypeAlias = Callable[[Asked], int]
"""What is charged in the end of what is held."""

LONGEST_LEASE = 3_600.0
"""For how many seconds the release of a policy's lease is repeated, whose ttl only the server knows."""


class End(NamedTuple):
    """A call that ends a lease or a hold.

    Attributes:
        call: The release or the settlement.
        ttl: The seconds after which the server ends it by itself.
    """

    call: Call
    ttl: float


class Step(ABC):
    """A call of a request, and what follows from it.

    Attributes:
        question: The call.
        kind: The class of its decision.
    """

    question: Question
    kind: type[Decision]

    @abstractmethod
    def answers(self, decision: Decision) -> list[tuple[str, Decision]]:
        """Returns the answer to each rule."""

    @abstractmethod
    def releases(self, outcome: Outcome) -> list[End]:
        """Returns the calls that release the leases, and say how the work ended."""

    @abstractmethod
    def settlements(self, actual: Actual) -> list[End]:
        """Returns the calls that settle what is held."""

    @abstractmethod
    def undone(self) -> list[End]:
        """Returns the calls that settle the budgets at 0, and with them all that is held."""

    @abstractmethod
    def refund(self) -> Call | None:
        """Returns the call that gives back what is charged and neither a lease nor held."""

    def renewals(self) -> list[tuple[Call, float]]:
        """Returns the calls that renew the leases, and their ttl in seconds."""
        return []

    def corrected(self, error: CallError) -> bool:
        """Whether the call is right now, after an error reply that says what it lacks."""
        return False


class LimitsStep(Step):
    """RL.MULTI: the limits of a request whose keys share a slot.

    Args:
        prefix: What stands before the keys.
        asked: The limits. Each has a key of its own.
        id: The id of the request, for leases and holds.
    """

    kind = MultiDecision

    def __init__(self, prefix: str, asked: Sequence[AskedLimit], id: str) -> None:
        self._prefix, self._asked, self._id = prefix, asked, id
        self._holds = any(each.budget for each in asked)
        self._ttl = max((each.hold for each in asked if each.budget), key=_ms, default="1ms")
        hold = (id, self._ttl) if self._holds else None
        keys, limits = self._words_of(asked, {each.rule: each.cost for each in asked})
        self.question = questions.limits(prefix, keys, limits, 1, None, hold)
        self._leases = [(each, each.limiter) for each in asked if isinstance(each.limiter, Concurrent)]

    def answers(self, decision: Decision) -> list[tuple[str, Decision]]:
        each = decision.each if isinstance(decision, MultiDecision) else ()
        return [(asked.rule, answer) for asked, answer in zip(self._asked, each, strict=False)]

    def releases(self, outcome: Outcome) -> list[End]:
        if not self._leases:
            return []
        said = outcome if any(lease.adapt for _, lease in self._leases) else "OK"
        call = endings.release(self._prefix, [each.key for each, _ in self._leases], self._id, said)
        return [End(call, max(ttl for _, ttl in self.renewals()))]

    def renewals(self) -> list[tuple[Call, float]]:
        return [
            (calls.renew(self._prefix, each.key, lease.ttl, self._id), _ms(lease.ttl) / 1000)
            for each, lease in self._leases
        ]

    def settlements(self, actual: Actual) -> list[End]:
        costs = {each.rule: actual(each) if each.budget else each.cost for each in self._asked}
        return self._settlement(1, costs)

    def undone(self) -> list[End]:
        return self._settlement(0, {})

    def refund(self) -> Call | None:
        given = [each for each in self._asked if each.cost and self._is_refunded(each.limiter)]
        if not given:
            return None
        keys, limits = self._words_of(given, {each.rule: each.cost for each in given})
        return calls.multi_refund(self._prefix, keys, limits)

    def _is_refunded(self, limiter: Limiter) -> bool:
        """Leases are released, a turn or a strike cannot be given back, and what is held is settled at 0."""
        return limiter.can("refund") and not limiter.can("bans") and not (self._holds and limiter.can("hold"))

    def _settlement(self, cost: int, costs: Mapping[str, int]) -> list[End]:
        if not self._holds:
            return []
        keys, limits = self._words_of(self._asked, costs)
        call = endings.settle(self._prefix, keys, limits, self._id, cost)
        return [End(call, _ms(self._ttl) / 1000)]

    def _words_of(self, asked: Sequence[AskedLimit], costs: Mapping[str, int]) -> tuple[list[str], list[Limit]]:
        limits: list[Limit] = []
        for number, each in enumerate(asked, 1):
            limiter = each.limiter
            limiter = replace(limiter, id=self._id) if isinstance(limiter, Concurrent) else limiter
            cost = costs.get(each.rule)
            limits.append(Limit(limiter, on=number, cost=None if cost == 1 else cost))
        return [each.key for each in asked], limits


class PolicyStep(Step):
    """RL.ASK: a policy of a request.

    Args:
        prefix: What stands before the key.
        asked: The policy and its key.
        id: The id of the request, for a lease and a hold.
        leasing: The policies that are known to have leases. A call of theirs needs an id.
    """

    kind = AskDecision

    def __init__(self, prefix: str, asked: AskedPolicy, id: str, leasing: set[str]) -> None:
        self._prefix, self._asked, self._id, self._leasing = prefix, asked, id, leasing
        self._ask()

    def _ask(self) -> None:
        each, lease_id = self._asked, self._id if self.has_leases else None
        hold = (self._id, each.hold) if each.budget else None
        question = questions.ask(self._prefix, each.key, self._asked.policy, each.cost, lease_id, (), True, None, hold)
        self.question = question

    def corrected(self, error: CallError) -> bool:
        # A policy may get a lease at any time, so the first call finds out whether it has one.
        if self.has_leases or "needs an ID" not in error.reply:
            return False
        self._leasing.add(self._asked.policy)
        self._ask()
        return True

    def answers(self, decision: Decision) -> list[tuple[str, Decision]]:
        """The answer of the limit that binds."""
        if isinstance(decision, AskDecision) and decision.binding and decision.each:
            decision = decision.each[decision.binding - 1]
        return [(self._asked.rule, decision)]

    @property
    def has_leases(self) -> bool:
        """Whether the policy is known to have leases."""
        return self._asked.policy in self._leasing

    def releases(self, outcome: Outcome) -> list[End]:
        if not self.has_leases:
            return []
        return [End(endings.release(self._prefix, [self._asked.key], self._id), LONGEST_LEASE)]

    def settlements(self, actual: Actual) -> list[End]:
        return self._settlement(actual)

    def undone(self) -> list[End]:
        return self._settlement(lambda _: 0)

    def refund(self) -> Call | None:
        # The server has no refund for a policy with a lease.
        if self._asked.budget or not self._asked.cost or self.has_leases:
            return None
        each = self._asked
        return calls.ask_refund(self._prefix, each.key, each.policy, cost=questions.sent_cost(each.cost))

    def _settlement(self, actual: Actual) -> list[End]:
        each = self._asked
        if not each.budget:
            return []
        call = endings.settle_ask(self._prefix, each.key, each.policy, self._id, actual(each), None, ())
        return [End(call, _ms(each.hold) / 1000)]


def _ms(duration: Duration) -> int:
    return milliseconds("duration", duration)
