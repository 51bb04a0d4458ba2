"""The gate of an application: for each request it asks the limits, and afterwards ends what was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ..call.errors import ConfigurationError
from ..decide.decision import Decision
from ..limiter import AsyncRateLimiter
from ..local.local import AsyncLocal
from .gate import Before, Fields, GateCore
from .passage import Passage
from .response import Refusal
from .rules import AskedLimit, Given, Rule
from .shed import Shed

Req = TypeVar("Req")


class AsyncGate(Generic[Req]):
    """The limits of an application's requests, for a framework that has no middleware here.

        entered = await gate.enter(request)
        if isinstance(entered, Refusal): ...  # respond with its status, headers and body
        await gate.wait(entered)
        try: ...  # respond with entered.headers, and count in entered.spent
        finally: await gate.leave(entered, status)

    Args:
        limiter: Asks the server, and says what happens without an answer. Its `ready` checks the rules.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.
        skip: Returns whether a request is not limited at all.
        headers: Which headers responses have: `"draft"` (of the IETF), `"legacy"` (`X-RateLimit-*`), or `"off"` (only
            `Retry-After`, with a refusal).
        expose: Whether responses tell browsers that scripts of another origin may read these headers.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self,
        limiter: AsyncRateLimiter,
        rules: Iterable[Rule[Req]] = (),
        shed: Shed[Req] | None = None,
        *,
        skip: Callable[[Req], Given[bool]] | None = None,
        headers: Fields = "draft",
        expose: bool = False,
    ) -> None:
        if not isinstance(limiter, AsyncRateLimiter):
            raise ConfigurationError(f"the limiter must be an AsyncRateLimiter, not {type(limiter).__name__}")
        self.limiter = limiter
        self._connected = limiter._connected  # pyright: ignore[reportPrivateUsage]
        self._gate = GateCore(self._connected, rules, shed, skip, headers, expose)
        self.rules = self._gate.rules
        self._connected.gates.append(self._gate.checks)

    async def enter(self, request: Req, before: Before | None = None, websocket: bool = False) -> Passage | Refusal:
        """Asks the limits of a request.

        Args:
            request: The request.
            before: A set of this request, at first empty. With it a rule that stands before the request twice, as if a gate
                is mounted twice, is asked and charged once.
            websocket: Whether the request is the handshake of a WebSocket, which some rules are not for.

        Raises:
            ConfigurationError: A rule's function returned a wrong value.
            CallError: The server rejects a call.
        """
        before = set() if before is None else before
        if self._gate.has_locals:
            local = await self._connected.run(self._gate.locals(request, before, websocket))
            return local if isinstance(local, Passage) else await self._enter(request, before, websocket, local)
        return await self._connected.run(self._gate.entering(request, before, websocket))

    async def _enter(
        self, request: Req, before: Before, websocket: bool, local: Iterable[AskedLimit]
    ) -> Passage | Refusal:
        """Asks first what this process answers from memory, and gives that back if the request does not go on."""
        answers: list[tuple[str, Decision]] = []
        taken: list[tuple[AsyncLocal, int, Decision]] = []
        entered: Passage | Refusal | None = None
        try:
            for each in local:
                store = self.limiter.local(each.key, each.limiter, processes=each.local or 1)
                decision = await store.take(each.cost)
                answers.append((each.rule, decision))
                if not decision.allowed:
                    entered = self._gate.refused(answers, [each])
                    return entered
                taken.append((store, each.cost, decision))
            entered = await self._connected.run(self._gate.entering(request, before, websocket, answers))
            return entered
        finally:
            if not isinstance(entered, Passage):
                for store, cost, decision in taken:
                    await self._connected.run(store.giving_back(cost, decision))

    async def wait(self, passage: Passage) -> None:
        """Waits for the turn of a request that a limiter has queued."""
        if passage.wait:
            try:
                await self._connected.runtime.sleep(passage.wait)
            except BaseException:  # such as a cancellation, or a signal's
                passage.abandon()
                raise

    async def leave(self, passage: Passage, status: int | None = None) -> None:
        """Releases and settles. A second call does nothing.

        Args:
            passage: What `enter` returned.
            status: The status of the response, for rules with `counts`. None if there was none: then the request counts.
        """
        await self._connected.run(passage.leaving(status))
