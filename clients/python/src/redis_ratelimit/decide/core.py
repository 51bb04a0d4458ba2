"""What a limiter does with replies and errors, without sending anything. The limiters for threads and for asyncio share it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.questions import Place, Question
from ..call.values import Key, key_bytes
from .breaker import Breaker, Circuit
from .counters import Counters
from .decision import Decision
from .errors import BreakerOpen, CallError, at
from .failure import NoAnswer, is_reply, is_unavailable, is_wrong_call, reason
from .log import Log
from .refusals import RefusalCache, Refusals
from .replies import read

D = TypeVar("D", bound=Decision)

Fail: TypeAlias = Literal["open", "closed"]


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
        if fail not in ("open", "closed"):
            raise ConfigurationError(f"fail must be 'open' or 'closed', not {fail!r}")
        if not isinstance(breaker, Breaker | None):
            raise ConfigurationError(f"breaker must be a Breaker or None, not {breaker!r}")
        if not isinstance(cache, RefusalCache | None):
            raise ConfigurationError(f"cache must be a RefusalCache or None, not {cache!r}")
        self.clock, self.new_id = clock, new_id
        self.fail: Fail = fail
        self.cache = cache
        self.counters = Counters()
        self.log = Log()
        self._breaker = breaker
        self._circuits: dict[str, Circuit] = {}
        self._refusals = Refusals(cache) if cache else None

    # A decision

    def known(self, question: Question, kind: type[D]) -> D | None:
        """Returns the answer that the cache has."""
        place = self._place(question)
        if self._refusals is None or place is None:
            return None
        question.asked = self.clock()
        known = self._refusals.find(place, kind, question.asked)
        if known is not None:
            self.counters.add("asked", "refused", "cached")
        return known

    def decided(self, question: Question, kind: type[D], reply: object) -> D:
        """Returns the decision of a reply."""
        decision = read(kind, reply, question.limiters)
        if question.counted:
            self.counters.add("asked", "allowed" if decision.allowed else "refused")
        place = self._place(question)
        if self._refusals is not None and not decision.allowed and place is not None:
            self._refusals.keep(place, decision, self.clock(), question.asked)
        return decision

    def undecided(self, question: Question, kind: type[D], missing: NoAnswer) -> D:
        """Returns what `fail` says."""
        allowed = self.goes_on(question.call, missing, counted=question.counted)
        return kind(allowed, 0, 0, 0.0, 0.0, answered=False, error=missing.error)

    def goes_on(self, call: Call, missing: NoAnswer, *, counted: bool = True) -> bool:
        """Whether a request goes on without an answer. Counts it, and writes a line."""
        if counted:
            self.counters.add("asked", "failed_open" if self.fail == "open" else "failed_closed")
        self.warn(call, missing.error, f"fail {self.fail}")
        return self.fail == "open"

    def forget(self, call: Call) -> None:
        """Drops kept refusals of the keys of a call that may have given something back."""
        if self._refusals is not None and call.gives_back:
            for key in call.keys:
                self._refusals.forget(key_bytes(key), self.clock())

    def _place(self, question: Question) -> Place | None:
        """What a refusal is kept under. Refusals of policies are kept only if the cache is for policies."""
        if self.cache is None or (question.call.command == "RL.ASK" and not self.cache.cache_ask):
            return None
        return question.refusal

    # A call

    def enter(self, where: str) -> None:
        """Checks the breaker before a call is sent."""
        if self._breaker is None:
            return
        circuit = self._circuits.get(where)
        if circuit is not None and not circuit.admits(self.clock()):
            self.counters.add("unavailable")
            raise NoAnswer(BreakerOpen(f"{where} did not answer {self._breaker.failures} calls in a row"), False)

    def leave(self, where: str) -> None:
        """Notes that the server answered, be it with an error."""
        circuit = self._circuits.get(where)
        if circuit is not None and circuit.succeed():
            self.log.warn("breaker closed", self.clock(), f"breaker closed: {where} answers again")

    def lost(self, where: str, call: Call, error: BaseException) -> BaseException:
        """Returns the error to raise for a call that failed."""
        if isinstance(error, NoAnswer):  # the server is not to blame
            self.counters.add("unavailable")
            error.node = call.asked
            return error
        if is_wrong_call(error) and isinstance(error, Exception):
            self.leave(where)
            self.counters.add("wrong_calls")
            return CallError(call.command, error, call.asked)
        if not is_unavailable(error) or not isinstance(error, Exception):
            return error
        self.counters.add("unavailable")
        self._count_failure(where, error)
        missing = NoAnswer(error, call.sent and not is_reply(error))
        missing.node = call.asked
        return missing

    def warn(self, call: Call, error: BaseException, what: str) -> None:
        """Writes a line with command, server, error and the beginning of the key."""
        self.note(type(error).__name__, call, f"{what}: {reason(error)}")

    def note(self, kind: str, call: Call, what: str) -> None:
        """Writes a line of this kind with command, server and the beginning of the key."""
        key = "" if call.key is None else shown(call.key)
        self.log.warn(kind, self.clock(), f"{call.command}{key}{at(call.asked, what)}: {what}")

    def lease_lost(self, call: Call, why: str) -> None:
        """Counts a lease that a renewal did not prolong, and writes a line."""
        self.counters.add("leases_lost")
        self.note("lease lost", call, f"lease lost: {why}")

    def _count_failure(self, where: str, error: Exception) -> None:
        if self._breaker is None:
            return
        now = self.clock()
        circuit = self._circuits.setdefault(where, Circuit(self._breaker))
        if circuit.fail(now):
            self.counters.add("breaker_opened")
            line = f"breaker opened: {where} did not answer {self._breaker.failures} calls in a row: {reason(error)}"
            self.log.warn("breaker opened", now, line)


def shown(key: Key) -> str:
    """Returns the part of a key that stands in the log: what is before the first colon or brace.

    The rest may be an API key or an address, and a key without a colon may be one as a whole.
    """
    text = key.decode(errors="replace") if isinstance(key, bytes) else key
    begin = _BEGIN.match(text)
    return f" {begin[1][:LONGEST_SHOWN] + '…'!r}" if begin else ""


_BEGIN = re.compile(r"([^:{]+)[:{]")
LONGEST_SHOWN = 40
