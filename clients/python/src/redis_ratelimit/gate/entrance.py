"""The gate of an application: for each request it asks the limits, and afterwards ends what was taken."""

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
    """The limits of an application's requests, for a framework that has no middleware here.

        entered = await gate.enter(request)
        if isinstance(entered, Refusal): ...  # respond with its status, headers and body
        await gate.wait(entered)
        try: ...  # respond with entered.headers, and count in entered.spent
        finally: await gate.leave(entered)

    Args:
        limiter: Asks the server, and says what happens without an answer. Its `ready` checks the rules.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self, limiter: AsyncRateLimiter, rules: Iterable[Rule[Req]] = (), shed: Shed[Req] | None = None
    ) -> None:
        if not isinstance(limiter, AsyncRateLimiter):
            raise ConfigurationError(f"the limiter must be an AsyncRateLimiter, not {limiter!r}")
        self.limiter, self._gate = limiter, GateCore(limiter, rules, shed)
        limiter.gates.append(self._gate.checks)

    async def enter(self, request: Req) -> Passage | Refusal:
        """Asks the limits of a request.

        Raises:
            ConfigurationError: A rule's function returned a wrong value.
            CallError: The server rejects a call.
        """
        return await self.limiter.run(self._gate.entering(request))

    async def wait(self, passage: Passage) -> None:
        """Waits for the turn of a request that a limiter has queued."""
        if passage.wait:
            try:
                await self.limiter.runtime.sleep(passage.wait)
            except BaseException:  # such as a cancellation, or a signal's
                passage.abandon()
                raise

    async def leave(self, passage: Passage) -> None:
        """Releases and settles. A second call does nothing."""
        await self.limiter.run(passage.leaving())
