"""What the middleware does with a request, without a web framework: ask the limits, and refuse or go on. A gate yields calls,
which the limiters for threads and for asyncio send."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from threading import Lock
from typing import Generic, Protocol, TypeVar

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import limiter_words
from ..call.values import Word, duration_word, float_word, integer, prefixed
from ..decide import replies
from ..decide.core import Core
from ..decide.decision import Decision, combined_headers
from ..decide.errors import CallError
from ..decide.failure import Closed, NoAnswer, reason
from ..decide.fork import after_fork
from ..taken.jobs import Scheduler
from ..taken.taken import Taken
from ..wire.slots import SlotMap, slot_of
from ..wire.verify import checked
from .passage import Calls, Passage
from .response import Refusal, out_of_capacity, over_quota
from .rules import AskedLimit, AskedPolicy, Rule, checked_rules
from .shed import Shed
from .steps import LimitsStep, PolicyStep, Step

Req = TypeVar("Req")

_TOO_MANY_HOLDS = "too many holds"

VERIFY_AGAIN = 1.0
"""Seconds until the rules are verified again if the server did not answer."""
MOST_UTILIZATION = 2.0
"""The largest utilization that RL.SHED takes."""


class Placed(Protocol):
    """The servers."""

    @property
    def slots(self) -> SlotMap | None: ...


class Limiting(Protocol):
    """What a gate needs of a limiter."""

    @property
    def core(self) -> Core: ...

    @property
    def nodes(self) -> Placed: ...

    @property
    def background(self) -> Scheduler: ...

    @property
    def taken(self) -> Taken: ...

    @property
    def prefix(self) -> str: ...


class GateCore(Generic[Req]):
    """The limits of an application's requests.

    Args:
        limiter: Asks the server.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.
    """

    def __init__(self, limiter: Limiting, rules: Iterable[Rule[Req]], shed: Shed[Req] | None) -> None:
        self._rules, self._shed = checked_rules(rules, shed), shed
        self._core, self._background, self._taken = limiter.core, limiter.background, limiter.taken
        self._prefix = limiter.prefix
        # The policies that are known to have leases. The limiter of a cluster has slots.
        self._leasing: set[str] = set()
        self._cluster = limiter.nodes.slots is not None
        self._verify_at: float | None = 0.0
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._verify_lock = Lock()

    # At start

    @property
    def policies(self) -> list[str]:
        """The policies that are known before a request comes."""
        return [rule.policy for rule in self._rules if isinstance(rule.policy, str)]

    @property
    def asks_limiter(self) -> bool:
        """Whether the limiter is to verify: the policies, on each primary, or the module if nothing else is known.

        Its look at the module is RL.PEEK. Rules with limits need RL.MULTIPEEK only.
        """
        return bool(self.policies) or all(rule.limit is None for rule in self._rules)

    def wants_verification(self) -> bool:
        """Whether this request is to verify the rules. Others that come meanwhile are not."""
        due = self._verify_at
        if due is None or self._core.clock() < due or self._taken.closed:
            return False
        with self._verify_lock:
            if self._verify_at != due:
                return False
            self._verify_at = self._core.clock() + VERIFY_AGAIN
            return True

    def verified(self, answered: bool) -> None:
        """Notes that the rules are right, or that the server did not answer."""
        self._verify_at = None if answered else self._core.clock() + VERIFY_AGAIN

    def unverified(self) -> None:
        """Lets the next request verify the rules, since an error ended the verification."""
        self._verify_at = 0.0

    def verifying(self) -> Calls[bool]:
        """Asks the server whether the rules are right, without a charge. Returns whether it answered."""
        key = prefixed(self._prefix, f"verify:{self._core.new_id()}")
        for rule in self._rules:
            if isinstance(rule.policy, str):
                words: list[Word] = ["RL.ASKPEEK", key, rule.policy, "COST", 0, "ID", "verify"]
            elif rule.limit is not None:
                # What a function returns is not known yet, but the module and the right are.
                limit = "1/s" if callable(rule.limit) else rule.limit
                limiter = list(limiter_words(limit, lease_id=False))
                if limiter[0] == "CONCURRENT":
                    limiter.insert(3, "verify")
                words = ["RL.MULTIPEEK", 1, key, "COST", 0, "LIMIT", *limiter]
            else:
                continue
            call = Call(words, [key])
            try:
                yield from checked(f"rule {rule.name!r}", call)
            except NoAnswer as missing:
                self._core.warn(call, missing.error, "limits are not verified")
                return False
        return True

    # For each request

    def entering(self, request: Req) -> Calls[Passage | Refusal]:
        """Asks the limits of a request. All of them admit and are charged, or none is."""
        if (shed := (yield from self._shedding(request))) is not None:
            return shed
        passage = Passage(self._core, self._background, self._taken)
        answers: list[tuple[str, Decision]] = []
        try:
            steps = self._steps(request, passage.id)
            for step in steps:
                decision = yield from self._deciding(step, passage)
                answers += step.answers(decision)
                passage.wait = max(passage.wait, decision.retry_after or 0.0)
                if not decision.allowed:
                    yield from passage.undoing()
                    return over_quota(answers) if decision.answered else out_of_capacity(1)
            if steps and self._taken.closed:  # `close` would not end what the request has taken
                yield from passage.undoing()
                raise Closed
        except BaseException:
            passage.abandon()
            raise
        passage.headers = combined_headers(answers, allowed=True)
        passage.begin()
        return passage

    def _steps(self, request: Req, id: str) -> list[Step]:
        """One RL.MULTI, or on a cluster one for each slot, and the policies. What cannot be given back comes last."""
        slots: dict[int, list[AskedLimit]] = {}
        policies: list[PolicyStep] = []
        for each in [each for rule in self._rules if (each := rule.asked(request)) is not None]:
            asked = each.on(f"{each.rule}:{{{each.key}}}" if self._cluster else f"{each.rule}:{each.key}")
            if isinstance(asked, AskedPolicy):
                policies.append(PolicyStep(self._prefix, asked, id, self._leasing))
            else:
                slot = slot_of(prefixed(self._prefix, asked.key)) if self._cluster else 0
                slots.setdefault(slot, []).append(asked)
        policies.sort(key=lambda policy: bool(policy.releases()))
        return [*(LimitsStep(self._prefix, group, id) for group in slots.values()), *policies]

    def _deciding(self, step: Step, passage: Passage) -> Calls[Decision]:
        """Asks a step, and notes what it has taken or may have taken."""
        known = self._core.known(step.question, step.kind)
        if known is not None:
            return known
        try:
            reply = yield step.question.call
        except NoAnswer as missing:
            decision = self._core.undecided(step.question, step.kind, missing)
            if missing.uncertain:
                passage.unanswered(step, goes_on=decision.allowed)
            return decision
        except CallError as error:
            if step.corrected(error):
                return (yield from self._deciding(step, passage))
            if _TOO_MANY_HOLDS in str(error.error):  # a limit of the server's, not a wrong call
                return self._core.undecided(step.question, step.kind, NoAnswer(error.error, uncertain=False))
            raise
        except BaseException:  # such as a cancellation: it may be charged, or may still be
            if step.question.call.sent:
                passage.unanswered(step, goes_on=False)
            raise
        decision = self._core.decided(step.question, step.kind, reply)
        if decision.allowed:
            passage.charged(step)
        return decision

    def _shedding(self, request: Req) -> Calls[Refusal | None]:
        shed = self._shed
        asked = None if shed is None else self._pressure(shed, request)
        if shed is None or asked is None:
            return None
        tier, utilization = asked
        key = prefixed(self._prefix, shed.key)
        words: list[Word] = ["RL.SHED", key, float_word(utilization)]
        for token, share in (("GOOD", shed.good), ("BAD", shed.bad)):
            words += () if share is None else (token, float_word(share))
        for token, duration in (("DELAY", shed.delay), ("RAMP", shed.ramp)):
            words += () if duration is None else (token, duration_word(duration))
        call = Call([*words, "TIER", tier, "OF", shed.tiers], [key])
        try:
            reply = yield call
        except NoAnswer as missing:
            return None if self._core.goes_on(call, missing, counted=False) else out_of_capacity(1)
        return out_of_capacity(shed.retry_after) if replies.shed(reply).shed else None

    def _pressure(self, shed: Shed[Req], request: Req) -> tuple[int, float] | None:
        """Returns the request's tier, and the utilization within the bounds of RL.SHED; None if nothing is to be shed.

        The functions are the application's. If one fails, requests go on, and a line is logged.
        """
        try:
            tier = shed.tier(request)
            if tier is None:
                return None
            integer("tier", tier, 1, shed.tiers)
            utilization = float(shed.utilization())
            if isnan(utilization):
                raise ConfigurationError("utilization must be a number, not nan")
        except Exception as error:  # whatever the application raises
            self._core.log.warn("shed", self._core.clock(), f"RL.SHED {shed.key!r}: nothing is shed: {reason(error)}")
            return None
        return tier, min(max(utilization, 0.0), MOST_UTILIZATION)
