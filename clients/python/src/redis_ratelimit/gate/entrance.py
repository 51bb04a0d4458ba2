"""The gate of an application on asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from ..call.errors import ConfigurationError
from ..limiter import AsyncRateLimiter
from .gate import GateCore
from .passage import Passage
from .response import Refusal
from .rules import Rule
from .shed import Shed

Req = TypeVar("Req")


class AsyncGate(Generic[Req]):
    """A gate for asyncio."""

    def __init__(self, limiter: AsyncRateLimiter, rules: Iterable[Rule[Req]], shed: Shed[Req] | None) -> None:
        if not isinstance(limiter, AsyncRateLimiter):
            raise ConfigurationError(f"the limiter must be an AsyncRateLimiter, not {limiter!r}")
        self._limiter, self._gate = limiter, GateCore(limiter, rules, shed)

    async def verify(self) -> None:
        """Asks the server whether the rules are right.

        Raises:
            ConfigurationError: A rule is wrong, or the module is not loaded.
        """
        try:
            answered = not self._gate.asks_limiter or await self._limiter.verify(policies=self._gate.policies)
            answered = answered and await self._limiter.run(self._gate.verifying())
        except BaseException:
            self._gate.unverified()
            raise
        self._gate.verified(answered)

    async def enter(self, request: Req) -> Passage | Refusal:
        """Asks the limits of a request, and waits for its turn if it is queued."""
        if self._gate.wants_verification():
            await self.verify()
        entered = await self._limiter.run(self._gate.entering(request))
        if isinstance(entered, Passage) and entered.wait:
            try:
                await self._limiter.outside.sleep(entered.wait)
            except BaseException:  # such as a cancellation, or a signal's
                entered.abandon()
                raise
        return entered

    async def leave(self, passage: Passage) -> None:
        """Releases and settles. A second call does nothing."""
        await self._limiter.run(passage.leaving())
