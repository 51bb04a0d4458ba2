"""A cache of refusals in the process: a key that is refused is not asked again before its time."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import RLock
from typing import TypeAlias, TypeVar

from ..call.questions import Place
from ..call.values import Seconds, Word, integer, seconds
from .decision import AskDecision, Decision, MultiDecision
from .fork import after_fork

D = TypeVar("D", bound=Decision)

QUESTIONS_PER_KEY = 8
"""How many different refused calls of a key are kept, or of an item of a sketch."""


@dataclass(frozen=True, slots=True)
class RefusalCache:
    """Answers refused calls from memory until their `retry_after`.

    What is given back meanwhile, by another process or by the server, is noticed late.

    Args:
        keys: The most keys that are kept, and items of sketches. The least recently used one goes first.
        longest: For how many seconds a refusal is kept at most.
        cache_ask: Whether refusals of policies are kept. A policy may hold leases or penalties, whose refusals should
            not be kept.
    """

    keys: int = 10_000
    longest: Seconds = 60.0
    cache_ask: bool = False

    def __post_init__(self) -> None:
        integer("keys", self.keys, 1)
        seconds("longest", self.longest)


Group: TypeAlias = tuple[tuple[bytes, ...], Word]
"""Keys and item."""


class Refusals:
    """The refusals that are kept. Times are of a monotonic clock."""

    def __init__(self, cache: RefusalCache) -> None:
        self._most = cache.keys
        self._longest = seconds("longest", cache.longest)
        self._groups: OrderedDict[Group, dict[tuple[Word, ...], tuple[float, int, Decision]]] = OrderedDict()
        # How often something was given back, when it was for these keys, and when for keys that are left out here.
        self.generation = self._others = 0
        self._forgotten: OrderedDict[bytes, int] = OrderedDict()
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._groups)

    def find(self, place: Place, kind: type[D], now: float) -> D | None:
        """Returns the refusal of a call as of now, if it still holds."""
        group = place.keys, place.item
        with self._lock:
            known = self._groups.get(group, {})
            kept = known.get(place.words)
            if kept is None:
                return None
            at, asked, decision = kept
            if now - at >= self._kept_for(decision) or self._is_forgotten(place, asked):
                known.pop(place.words, None)
                if not known:
                    self._groups.pop(group, None)
                return None
            try:
                self._groups.move_to_end(group)
            except KeyError:  # a signal handler has forgotten it
                return None
        return aged(decision, now - at) if isinstance(decision, kind) else None

    def keep(self, place: Place, decision: Decision, now: float, asked: int | None = None) -> None:
        """Keeps a refusal, unless something was given back since it was asked. `asked` is the number of returns before that."""
        group = place.keys, place.item
        with self._lock:
            asked = self.generation if asked is None else asked
            if self._is_forgotten(place, asked):
                return
            known = self._groups.pop(group, {})
            known[place.words] = now, asked, decision
            if len(known) > QUESTIONS_PER_KEY:
                del known[next(iter(known))]
            self._groups[group] = known
            with suppress(KeyError):  # a signal handler has dropped them all
                if len(self._groups) > self._most:
                    self._groups.popitem(last=False)

    def forget(self, key: bytes) -> None:
        """Ends the refusals of a key, because something was given back."""
        with self._lock:
            self.generation += 1
            self._forgotten.pop(key, None)
            self._forgotten[key] = self.generation
            if len(self._forgotten) > self._most:
                oldest = self._forgotten.popitem(last=False)[1]
                if oldest > self._others:  # a signal handler may have been here
                    self._others = oldest

    def _is_forgotten(self, place: Place, asked: int) -> bool:
        return any(self._forgotten.get(key, self._others) > asked for key in place.keys)

    def _kept_for(self, decision: Decision) -> float:
        retry = decision.retry_after
        return self._longest if retry is None else min(retry, self._longest)


def aged(decision: D, elapsed: float) -> D:
    """Returns the decision as of some seconds later, from the cache."""
    retry = decision.retry_after
    later = replace(
        decision,
        retry_after=None if retry is None else max(0.0, retry - elapsed),
        reset_after=max(0.0, decision.reset_after - elapsed),
        source="cache",
    )
    if isinstance(later, (MultiDecision, AskDecision)) and later.each:
        return replace(later, each=tuple(aged(each, elapsed) for each in later.each))
    return later
