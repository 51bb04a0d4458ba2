"""What a limiter does with replies and errors, without sending anything. The limiters for threads and for asyncio share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Literal, TypeAlias, TypeVar

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.values import Key, Word, key_bytes
from .breaker import Breaker, Circuit
from .counters import Counters
from .decision import Decision
from .errors import BreakerOpen, CallError, at
from .failure import NoAnswer, is_reply, is_unavailable, is_wrong_call, reason
from .log import Log
from .refusals import Place, RefusalCache, Refusals

D = TypeVar("D", bound=Decision)

Fail: TypeAlias = Literal["open", "closed"]


@dataclass(slots=True)
class Question(Generic[D]):
    """A call that a decision answers.

    Attributes:
        call: The call.
        read: Makes the decision from the reply.
        kind: The class of the decision.
        refusal: What the refusal is kept under in the cache, if it may be kept.
        counted: Whether the counters have it. Looks and refunds are not counted.
        asked: When it was asked, on a monotonic clock.
    """

    call: Call
    read: Callable[[object], D]
    kind: type[D]
    refusal: Place | None = None
    counted: bool = True
    asked: float | None = None


class Core:
    """The counters, the breaker, the cache and the log of a limiter."""

    def __init__(self, fail: Fail, breaker: Breaker | None, cache: RefusalCache | None) -> None:
        if fail not in ("open", "closed"):
            raise ConfigurationError(f"fail must be 'open' or 'closed', not {fail!r}")
        if not isinstance(breaker, Breaker | None):
            raise ConfigurationError(f"breaker must be a Breaker or None, not {breaker!r}")
        if not isinstance(cache, RefusalCache | None):
            raise ConfigurationError(f"cache must be a RefusalCache or None, not {cache!r}")
        self.fail: Fail = fail
        self.cache = cache
        self.counters = Counters()
        self.log = Log()
        self._breaker = breaker
        self._circuits: dict[str, Circuit] = {}
        self._refusals = Refusals(cache) if cache else None

    # A decision

    def known(self, question: Question[D]) -> D | None:
        """Returns the answer that the cache has."""
        if self._refusals is None or question.refusal is None:
            return None
        question.asked = monotonic()
        known = self._refusals.find(question.refusal, question.kind, question.asked)
        if known is not None:
            self.counters.add("asked", "refused", "cached")
        return known

    def decided(self, question: Question[D], reply: object) -> D:
        """Returns the decision of a reply."""
        decision = question.read(reply)
        if question.counted:
            self.counters.add("asked", "allowed" if decision.allowed else "refused")
        if self._refusals is not None and not decision.allowed and question.refusal is not None:
            self._refusals.keep(question.refusal, decision, monotonic(), question.asked)
        return decision

    def undecided(self, question: Question[D], missing: NoAnswer) -> D:
        """Returns what `fail` says."""
        allowed = self.goes_on(question.call, missing, counted=question.counted)
        return question.kind(allowed, 0, 0, 0.0, 0.0, answered=False, error=missing.error)

    def goes_on(self, call: Call, missing: NoAnswer, *, counted: bool = True) -> bool:
        """Whether a request goes on without an answer. Counts it, and writes a line."""
        if counted:
            self.counters.add("asked", "failed_open" if self.fail == "open" else "failed_closed")
        self.warn(call, missing.error, f"fail {self.fail}")
        return self.fail == "open"

    def forget(self, key: Key | None) -> None:
        """Drops kept refusals of a key, because something was given back."""
        if self._refusals is not None and key is not None:
            self._refusals.forget(key_bytes(key), monotonic())

    def forget_given_back(self, call: Call) -> None:
        """Drops kept refusals of the keys of a call that may have given something back."""
        if self._refusals is not None and call.command in GIVE_BACK:
            for key in _keys_of(call):
                self._refusals.forget(key_bytes(key), monotonic())

    def cached_ask(self, question: Question[D]) -> Question[D]:
        """Returns the question of a policy, whose refusal is kept only if the cache is for policies."""
        if self.cache is None or not self.cache.cache_ask:
            question.refusal = None
        return question

    # A call

    def enter(self, where: str) -> None:
        """Checks the breaker before a call is sent."""
        if self._breaker is None:
            return
        circuit = self._circuits.get(where)
        if circuit is not None and not circuit.admits(monotonic()):
            self.counters.add("unavailable")
            raise NoAnswer(BreakerOpen(f"{where} did not answer {self._breaker.failures} calls in a row"), False)

    def leave(self, where: str) -> None:
        """Notes that the server answered, be it with an error."""
        circuit = self._circuits.get(where)
        if circuit is not None and circuit.succeed():
            self.log.warn("breaker closed", monotonic(), f"breaker closed: {where} answers again")

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
        self.log.warn(kind, monotonic(), f"{call.command}{key}{at(call.asked, what)}: {what}")

    def lease_lost(self, call: Call, why: str) -> None:
        """Counts a lease that a renewal did not prolong, and writes a line."""
        self.counters.add("leases_lost")
        self.note("lease lost", call, f"lease lost: {why}")

    def _count_failure(self, where: str, error: Exception) -> None:
        if self._breaker is None:
            return
        now = monotonic()
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


def _keys_of(call: Call) -> Iterable[Key]:
    words: list[Word] = call.words
    if call.command.startswith("RL.MULTI"):
        yield from _texts(words[2 : 2 + int(words[1])])
        return
    yield from _texts(words[1:2])
    if call.command.startswith("RL.ASK") and "KEYS" in words[4:]:
        yield from _texts(words[words.index("KEYS", 4) + 1 :])


def _texts(words: list[Word]) -> Iterable[Key]:
    return [word for word in words if isinstance(word, (str, bytes))]


_BEGIN = re.compile(r"([^:{]+)[:{]")
LONGEST_SHOWN = 40
GIVE_BACK = frozenset(
    ("RL.REFUND", "RL.MULTIREFUND", "RL.ASKREFUND", "RL.SETTLE", "RL.MULTISETTLE", "RL.ASKSETTLE")
    + ("RL.RELEASE", "RL.MULTIRELEASE")
)
"""The commands that give back what was taken."""
