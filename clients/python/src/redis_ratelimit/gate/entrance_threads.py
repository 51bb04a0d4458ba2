"""The gate of an application with threads."""

from __future__ import annotations

from collections.abc import Iterable
from time import sleep
from typing import Generic, TypeVar

from ..call.errors import ConfigurationError
from ..limiter_threads import RateLimiter
from .gate import Gate
from .passage import Passage
from .response import Refusal
from .rules import Rule
from .shed import Shed

Req = TypeVar("Req")


class SyncGate(Generic[Req]):
    """A gate for threads."""

    def __init__(self, limiter: RateLimiter, rules: Iterable[Rule[Req]], shed: Shed[Req] | None) -> None:
        if not isinstance(limiter, RateLimiter):
            raise ConfigurationError(f"the limiter must be a RateLimiter, not {limiter!r}")
        self._limiter, self._gate = limiter, Gate(limiter, rules, shed)

    def verify(self) -> None:
        """Asks the server whether the rules are right.

        Raises:
            ConfigurationError: A rule is wrong, or the module is not loaded.
        """
        try:
            answered = not self._gate.asks_limiter or self._limiter.verify(policies=self._gate.policies)
            answered = answered and self._limiter.run(self._gate.verifying())
        except BaseException:
            self._gate.unverified()
            raise
        self._gate.verified(answered)

    def enter(self, request: Req) -> Passage | Refusal:
        """Asks the limits of a request, and waits for its turn if it is queued."""
        if self._gate.wants_verification():
            self.verify()
        entered = self._limiter.run(self._gate.entering(request))
        if isinstance(entered, Passage) and entered.wait:
            try:
                sleep(entered.wait)
            except BaseException:  # such as a signal's
                entered.abandon()
                raise
        return entered

    def leave(self, passage: Passage) -> None:
        """Releases and settles. A second call does nothing."""
        self._limiter.run(passage.leaving())
