"""What the middleware does with a request, without a web framework: ask the limits, and refuse or go on. A gate yields calls,
which the limiters for threads and for asyncio send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Generic, Literal, TypeAlias, TypeVar

from ..call.errors import ConfigurationError
from ..call.values import prefixed, seconds
from ..decide import replies
from ..decide.decision import Decision
from ..decide.errors import CallError, Closed, Unavailable
from ..decide.failure import HOLDS
from ..decide.headers import combined_headers, legacy_headers
from ..taken.connected import AsyncConnected
from ..taken.connected_threads import Connected
from ..wire.ready import Check
from ..wire.slots import SLOTS, slot_of
from .cors import EXPOSE, NAMES
from .passage import Calls, Passage
from .response import Refusal, answered, out_of_capacity, over_quota
from .rules import Asked, AskedLimit, AskedPolicy, Given, Rule, checked_rules, claim
from .shed import Shed
from .steps import LimitsStep, PolicyStep, Step

Req = TypeVar("Req")

Fields: TypeAlias = Literal["draft", "legacy", "off"]
"""Which headers responses have."""
Before: TypeAlias = set[tuple[int, int]]
"""The rules that were asked about a request, each with its limiter, by their identity."""


class GateCore(Generic[Req]):
    """The limits of an application's requests.

    Args:
        limiter: Asks the server.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.
        skip: Whether a request is not limited at all.
        headers: Which headers responses have: those of the IETF's draft, `X-RateLimit-*`, or only `Retry-After`.
        expose: Whether responses tell browsers that scripts of another origin may read these headers.
    """

    def __init__(
        self,
        limiter: AsyncConnected | Connected,
        rules: Iterable[Rule[Req]],
        shed: Shed[Req] | None,
        skip: Callable[[Req], Given[bool]] | None,
        headers: Fields,
        expose: bool = False,
    ) -> None:
        if headers not in ("draft", "legacy", "off"):
            raise ConfigurationError(f"headers must be 'draft', 'legacy' or 'off', not {headers!r}")
        if skip is not None and not callable(skip):
            raise ConfigurationError(f"skip must be a function of the request, not {skip!r}")
        self._skip, self._fields, self._runtime = skip, headers, limiter.runtime
        self.rules, self._shed = checked_rules(rules, shed), shed
        self._core, self._background, self._taken = limiter.core, limiter.background, limiter.taken
        self._channel, self._prefix = limiter.channel, limiter.prefix
        self._exposed = {EXPOSE: NAMES[headers]} if expose else {}
        self._spread = {rule.name: rule.spread for rule in self.rules if rule.spread}
        # The policies that are known to have leases. The limiter of a cluster has slots.
        self._leasing: set[str] = set()
        self._cluster = limiter.channel.slots is not None
        if shed is not None:
            self._core.check_otherwise("load shedding")
        for rule in self.rules:
            if not rule.has_rate:
                self._core.check_otherwise(f"rule {rule.name!r}")
        claim(limiter.claims, self.rules)
        self._said = False

    def checks(self) -> list[Check]:
        """Returns what can be asked at start."""
        return [check for rule in self.rules if (check := rule.check()) is not None]

    @property
    def has_locals(self) -> bool:
        """Whether this process answers limits from memory."""
        return any(rule.local is not None for rule in self.rules)

    def skips(self, request: Req) -> Calls[bool]:
        """Whether a request is not limited at all."""
        skips = self._skip is not None and self._skip(request)
        return bool((yield skips) if isawaitable(skips) else skips)

    def locals(self, request: Req, before: Before, websocket: bool) -> Calls[list[AskedLimit] | Passage]:
        """Returns the limits of a request that this process answers from memory, with their keys. If the request is not limited
        at all, returns its passage."""
        if (yield from self.skips(request)):
            return Passage(self._core, self._background, self._taken)
        found = yield from self._asked(request, before, websocket, local=True)
        return [each for each in found if isinstance(each, AskedLimit) and each.cost]

    def _asked(
        self, request: Req, before: Before, websocket: bool, *, local: bool
    ) -> Calls[list[AskedLimit | AskedPolicy]]:
        """Returns what the rules ask, with their keys. A rule that stands before the request twice is asked and charged once."""
        found: list[AskedLimit | AskedPolicy] = []
        for rule in self.rules:
            if (rule.local is not None) is not local or (websocket and not rule.websocket):
                continue
            each = yield from rule.asked(request)
            if each is not None and self._is_first(rule, f"rule {rule.name!r}", before):
                found.append(each.on(f"{each.rule}:{{{each.key}}}" if self._cluster else f"{each.rule}:{each.key}"))
        return found

    def _is_first(self, one: object, what: str, before: Before) -> bool:
        mark = (id(self._core), id(one))
        if mark not in before:
            before.add(mark)
            return True
        if not self._said:
            self._said = True
            self._core.log.warn("twice", self._core.clock(), f"{what} stands before a request twice: it is asked once")
        return False

    def refused(self, answers: Sequence[tuple[str, Decision]], asked: Iterable[Asked]) -> Refusal:
        """Returns the response to a request that the last answer refuses."""
        if not answers[-1][1].answered:
            return self._out(1)
        rules = self._spread
        spread = {each.rule: rules[each.rule] * slot_of(each.key) / SLOTS for each in asked if each.rule in rules}
        return over_quota(answers, self._headers(answers, spread, allowed=False))

    def _out(self, retry_after: float) -> Refusal:
        return out_of_capacity(retry_after, self._exposed)

    def _headers(
        self, answers: Sequence[tuple[str, Decision]], spread: Mapping[str, float], *, allowed: bool
    ) -> dict[str, str]:
        if self._fields == "legacy":
            return legacy_headers(answers, allowed=allowed, now=self._runtime.wall(), spread=spread) | self._exposed
        fields = combined_headers(answers, allowed=allowed, spread=spread)
        if self._fields == "off":
            fields = {name: fields[name] for name in fields if name == "Retry-After"}
        return fields | self._exposed

    def entering(
        self, request: Req, before: Before, websocket: bool, local: Sequence[tuple[str, Decision]] | None = None
    ) -> Calls[Passage | Refusal]:
        """Asks the limits of a request. All of them admit and are charged, or none is.

        After a call without an answer its server is not asked again for this request.

        Args:
            request: The request.
            before: The rules that were asked about this request before. Those of this gate are added.
            websocket: Whether it is the handshake of a WebSocket.
            local: The answers to the rules that are answered from memory, which admit. With them `skip` has been asked.
        """
        silent: set[str] = set()
        passage = Passage(self._core, self._background, self._taken)
        if local is None and (yield from self.skips(request)):
            return passage
        if (shed := (yield from self._shedding(request, silent, before))) is not None:
            return shed
        answers = list(local or ())
        try:
            asked = yield from self._asked(request, before, websocket, local=False)
            steps = self._steps(asked, passage.id)
            for step in steps:
                if self._channel.where(step.question.call) in silent:
                    continue
                decision = yield from self._deciding(step, passage, silent)
                answers += step.answers(decision)
                passage.wait = max(passage.wait, decision.retry_after or 0.0)
                if not decision.allowed:
                    yield from passage.undoing()
                    return self.refused(answers, asked) if decision.answered else self._out(1)
            if steps and self._taken.closed:  # `close` would not end what the request has taken
                yield from passage.undoing()
                raise Closed
        except CallError:
            yield from passage.undoing()
            raise
        except BaseException:
            passage.abandon()
            raise
        passage.headers, passage.decisions = self._headers(answers, {}, allowed=True), answered(answers)
        passage.begin()
        return passage

    def _steps(self, asked: Iterable[AskedLimit | AskedPolicy], id: str) -> list[Step]:
        """One RL.MULTI, or on a cluster one for each slot, and the policies. What cannot be given back comes last."""
        slots: dict[int, list[AskedLimit]] = {}
        policies: list[PolicyStep] = []
        for each in asked:
            if isinstance(each, AskedPolicy):
                policies.append(PolicyStep(self._prefix, each, id, self._leasing))
            else:
                slot = slot_of(prefixed(self._prefix, each.key)) if self._cluster else 0
                slots.setdefault(slot, []).append(each)
        policies.sort(key=lambda policy: policy.has_leases)
        return [*(LimitsStep(self._prefix, group, id) for group in slots.values()), *policies]

    def _deciding(self, step: Step, passage: Passage, silent: set[str]) -> Calls[Decision]:
        """Asks a step, and notes what it has taken or may have taken."""
        known = self._core.known(step.question, step.kind)
        if known is not None:
            return known
        call = step.question.call
        try:
            reply = yield call
        except Unavailable as missing:
            step.question.counted = not silent  # a request is counted as failed once
            if missing.kind != HOLDS:  # its server answers other calls
                silent |= {self._channel.where(call), missing.node}
            decision = self._core.undecided(step.question, step.kind, missing)
            if missing.maybe_sent:
                passage.unanswered(step, goes_on=decision.allowed)
            return decision
        except CallError as error:
            if step.corrected(error):
                return (yield from self._deciding(step, passage, silent))
            raise
        except BaseException:  # such as a cancellation: it may be charged, or may still be
            if call.sent:
                passage.unanswered(step, given_up=True)
            raise
        decision = self._core.decided(step.question, step.kind, reply)
        if decision.allowed:
            passage.charged(step)
        return decision

    def _shedding(self, request: Req, silent: set[str], before: Before) -> Calls[Refusal | None]:
        shed = self._shed
        if shed is None or not self._is_first(shed, f"Shed {shed.key!r}", before):
            return None
        try:
            pressure = shed.pressure(request)
        except Exception as error:  # whatever the application raises: requests go on
            line = f"RL.SHED {shed.key!r}: nothing is shed: {type(error).__name__}: {error}"
            self._core.log.warn("shed", self._core.clock(), line)
            return None
        if pressure is None:
            return None
        call = shed.call(self._prefix, *pressure)
        try:
            reply = yield call
        except Unavailable as missing:
            silent |= {self._channel.where(call), missing.node}
            return None if self._core.goes_on(call, missing) else self._out(1)
        return self._out(seconds("retry_after", shed.retry_after)) if replies.shed(reply).shed else None
