"""What a limiter does with replies and errors, without sending anything. The limiters for threads and for asyncio share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from ..call.call import Call, OpenOrClosed
from ..call.errors import ConfigurationError
from ..call.questions import Place, Question
from ..call.values import Key, key_bytes, quoted
from .breaker import FIRST, Breaker, Circuit
from .counters import Counters
from .decision import Decision
from .errors import CallError, Unavailable, at
from .failure import Silence, failure_of, rejection_of
from .hooks import Hooks
from .insurance import Claim, Insurance, Share, claims_of
from .log import Log
from .refusals import RefusalCache, Refusals
from .replies import read

D = TypeVar("D", bound=Decision)

Fail: TypeAlias = OpenOrClosed | Share


class Core:
    """The counters, the breaker, the cache and the log of a limiter.

    Attributes:
        clock: The seconds of a monotonic clock.
        new_id: An id that nobody has.
    """

    def __init__(
        self,
        fail: Fail,
        breaker: Breaker | None,
        cache: RefusalCache | None,
        clock: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        if not isinstance(fail, Share) and fail not in ("open", "closed"):
            raise ConfigurationError(f"fail must be 'open' or 'closed', or a Share, not {quoted(fail)}")
        if not isinstance(breaker, Breaker | None):
            raise ConfigurationError(f"breaker must be a Breaker or None, not {breaker!r}")
        if not isinstance(cache, RefusalCache | None):
            raise ConfigurationError(f"cache must be a RefusalCache or None, not {cache!r}")
        self.clock, self.new_id = clock, new_id
        self.fail: Fail = fail
        self.cache = cache
        self.insurance = Insurance()
        self.counters = Counters()
        self.log = Log()
        self.hooks = Hooks(lambda line: self.log.warn("hook failed", self.clock(), line))
        self._breaker = breaker
        self._circuits: dict[str, Circuit] = {}
        self._refusals = Refusals(cache) if cache else None

    # A decision

    def known(self, question: Question, kind: type[D]) -> D | None:
        """Returns the answer that the cache has.

        Raises:
            ConfigurationError: The limiter lets processes admit their share, and what is asked has none.
        """
        self.check(question)
        place = self._place(question)
        if self._refusals is None or place is None:
            return None
        question.asked = self._refusals.generation
        known = self._refusals.find(place, kind, self.clock())
        if known is not None:
            self.counters.add("asked", "refused", "cached")
            self.hooks.decided(question.call, known, 0.0)
        return known

    def decided(self, question: Question, kind: type[D], reply: object) -> D:
        """Returns the decision of a reply."""
        decision = read(kind, reply, question.limiters, question.costs)
        if question.counted:
            self.counters.add("asked", "allowed" if decision.allowed else "refused")
            self.hooks.decided(question.call, decision, self._since(question.call))
        place = self._place(question)
        if self._refusals is not None and not decision.allowed and place is not None:
            self._refusals.keep(place, decision, self.clock(), question.asked)
        return decision

    def undecided(self, question: Question, kind: type[D], missing: Unavailable) -> D:
        """Returns what `fail` says."""
        claims = None
        if isinstance(self.fail, Share) and question.call.fail is None:
            claims = claims_of(question, self.fail.processes)
        if claims is not None:
            return self.insured(question.call, claims, kind, missing, counted=question.counted)
        allowed = self.goes_on(question.call, missing, counted=question.counted)
        granted = (question.costs if allowed else 0) if question.partial and isinstance(question.costs, int) else None
        return kind(allowed, 0, 0, 0.0, 0.0, granted, answered=False, error=missing, source=None)

    def insured(
        self, call: Call, claims: Sequence[Claim], kind: type[D], missing: Unavailable, *, counted: bool = True
    ) -> D:
        """Returns what the process's share says. A call that is not counted only looks."""
        verdict = self.insurance.take(claims, self.clock(), charges=counted)
        if counted:
            self.counters.add("asked", "insured_allowed" if verdict.allowed else "insured_refused")
        self.warn(call, "insured", missing)
        decision = kind(*verdict, answered=False, error=missing, source="insurance")
        if counted:
            self.hooks.decided(call, decision, self._since(call))
        return decision

    def goes_on(self, call: Call, missing: Unavailable, *, counted: bool = True) -> bool:
        """Whether a request goes on without an answer. Counts it, and writes a line."""
        fail = call.fail or (self.fail.otherwise if isinstance(self.fail, Share) else self.fail)
        if counted:
            self.counters.add("asked", f"failed_{fail}")
            undecided = Decision(fail == "open", 0, 0, 0.0, 0.0, answered=False, error=missing, source=None)
            self.hooks.decided(call, undecided, self._since(call))
        self.warn(call, f"failed {fail}", missing)
        return fail == "open"

    def _since(self, call: Call) -> float:
        return 0.0 if call.begun is None else self.clock() - call.begun

    def check(self, question: Question) -> None:
        """Raises an error if nothing says what a question decides without an answer."""
        if isinstance(self.fail, Share) and question.call.fail is None and claims_of(question, 1) is None:
            self.check_otherwise(question.call.command)

    def check_otherwise(self, what: str) -> None:
        """Raises an error if nothing says what is decided without an answer where there is no rate to share."""
        if isinstance(self.fail, Share) and self.fail.otherwise is None:
            raise ConfigurationError(f"{what} has no share: give Share the option otherwise, 'open' or 'closed'")

    def forget(self, call: Call) -> None:
        """Drops kept refusals of the keys of a call that may have given something back."""
        if self._refusals is not None and call.gives_back:
            for key in call.keys:
                self._refusals.forget(key_bytes(key))

    def _place(self, question: Question) -> Place | None:
        """What a refusal is kept under. Refusals of policies are kept only if the cache is for policies."""
        if self.cache is None or (question.call.command == "RL.ASK" and not self.cache.cache_ask):
            return None
        return question.refusal

    # A call

    def enter(self, call: Call, where: str) -> int:
        """Returns a ticket of the breaker before a call is sent to this server."""
        call.begun = self.clock()
        circuit = self._circuits.get(where)
        ticket = FIRST if circuit is None else circuit.admits(call.begun)
        if ticket is None:
            self.counters.add("unavailable")
            missing = Unavailable(call.command, "breaker", "not asked, since it did not answer before", where)
            self.hooks.failed(missing)
            raise missing
        return ticket

    def leave(self, call: Call, where: str, ticket: int) -> None:
        """Notes that the server answered, be it with an error. `where` is the server that the ticket is for."""
        if call.asked != where:
            self._unknown(where, ticket)
        circuit = self._circuits.get(call.asked)
        if circuit is not None and circuit.succeed():
            self.log.warn("breaker closed", self.clock(), f"breaker closed: {call.asked} answers again")

    def lost(self, call: Call, where: str, ticket: int, error: BaseException) -> BaseException:
        """Returns the error to raise for a call that failed. `where` is the server that the ticket is for."""
        failure = failure_of(error)
        if failure is None:
            reply = rejection_of(error)
            if reply is None:
                self._unknown(where, ticket)
                return error
            self.leave(call, where, ticket)
            self.counters.add("wrong_calls")
            wrong = CallError(call.command, reply, call.asked)
            self.hooks.failed(wrong)
            return wrong
        self.counters.add("unavailable", *(["misconfigured"] if failure.misconfigured else []))
        if failure.is_answer:
            self.leave(call, where, ticket)
        elif failure.counts:
            lost = failure.replied or isinstance(error, Silence) or (call.sent and failure.kind == "connection")
            self._count(call.asked, ticket if call.asked == where else None, failure.reason, lost)
        if not (failure.counts or failure.is_answer) or call.asked != where:
            self._unknown(where, ticket)
        maybe_sent = call.sent and not failure.replied
        missing = Unavailable(call.command, failure.kind, failure.reason, call.asked, maybe_sent)
        self.hooks.failed(missing)
        return missing

    def _count(self, where: str, ticket: int | None, reason: str, lost: bool) -> None:
        breaker = self._breaker
        if breaker is None:
            return
        now = self.clock()
        circuit = self._circuits.setdefault(where, Circuit(breaker))
        if circuit.fail(circuit.ticket if ticket is None else ticket, now, lost=lost):
            self.counters.add("breaker_opened")
            line = f"breaker opened: {where} did not answer {breaker.failures} calls in a row: {reason}"
            self.log.warn("breaker opened", now, line)

    def _unknown(self, where: str, ticket: int) -> None:
        circuit = self._circuits.get(where)
        if circuit is not None:
            circuit.unknown(ticket)

    # The log

    def warn(self, call: Call, what: str, error: Unavailable | CallError) -> None:
        """Writes a line with command, server, error and the beginning of the key."""
        self.note(call, what, error.reason, error.kind)

    def note(self, call: Call, what: str, why: str, kind: str = "") -> None:
        """Writes a line with command, server and the beginning of the key."""
        key = "" if call.key is None else shown(call.key)
        self.log.warn(f"{what} {kind}", self.clock(), f"{call.command}{key}{at(call.asked)}: {what}: {why}")

    def lease_lost(self, call: Call, why: str) -> None:
        """Counts a lease that a renewal did not prolong, and writes a line."""
        self.counters.add("leases_lost")
        self.note(call, "lease lost", why)


def shown(key: Key) -> str:
    """Returns the part of a key that stands in the log: what is before the first colon or brace.

    The rest may be an API key or an address, and a key without a colon may be one as a whole.
    """
    text = key.decode(errors="replace") if isinstance(key, bytes) else key
    begin = _BEGIN.match(text)
    return f" {begin[1][:LONGEST_SHOWN] + '…'!r}" if begin else ""


_BEGIN = re.compile(r"([^:{]+)[:{]")
LONGEST_SHOWN = 40
