"""Rate limits, budgets, leases and load shedding in front of an ASGI application, such as one of FastAPI or Starlette:

    from redis.asyncio import Redis
    from redis_ratelimit import AsyncRateLimiter
    from redis_ratelimit.asgi import RateLimit, Rule

    app.add_middleware(
        RateLimit,
        limiter=AsyncRateLimiter(Redis()),
        rules=[Rule("default", key=lambda request: request.session["user_id"], limit="100/m")],
    )
    app.add_middleware(SessionMiddleware, secret_key=...)  # what is added last comes first

Redis stores what `key` returns as plain text in the names of keys, so take a user's id and no secret.

All limits of a request are asked at once. If one refuses, none is charged, and the response is a 429. A handler counts what
it spends of a budget in `request.scope["spent"]`, under the rule's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..call.errors import RateLimitError
from ..gate.entrance import AsyncGate
from ..gate.passage import Passage
from ..gate.response import Refusal
from ..gate.rules import UNLIMITED, Rule
from ..gate.shed import Shed
from ..limiter import AsyncRateLimiter

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed"]


class RateLimit:
    """The middleware. Its rules get a `starlette.requests.Request`, whose body they cannot read.

    Rules are checked when the application starts. A wrong one lets the start fail. If the server does not run the lifespan
    of applications, call `limiter.ready()`.

    Args:
        app: The application.
        limiter: Asks the server, and says what happens without an answer. The middleware does not close it.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self, app: ASGIApp, limiter: AsyncRateLimiter, rules: Iterable[Rule[Request]], shed: Shed[Request] | None = None
    ) -> None:
        self._app = app
        self._gate = AsyncGate(limiter, rules, shed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a connection. Only those of HTTP are limited."""
        if scope["type"] == "lifespan":
            await self._start(scope, receive, send)
        elif scope["type"] == "http":
            await self._limit(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the rules before the application starts."""
        first = await receive()
        try:
            await self._gate.limiter.ready()
        except RateLimitError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        messages = [first]

        async def replayed() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replayed, send)

    async def _limit(self, scope: Scope, receive: Receive, send: Send) -> None:
        entered = await self._gate.enter(Request(scope))
        if isinstance(entered, Refusal):
            await send({"type": "http.response.start", "status": entered.status, "headers": _raw(entered.headers)})
            await send({"type": "http.response.body", "body": entered.body})
            return
        await self._gate.wait(entered)
        entered.spent = scope.setdefault("spent", entered.spent)  # another one of these may have set it
        left: list[asyncio.Task[None]] = []

        async def limited_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *_raw(entered.headers)]}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # What the application does after the response needs no lease.
                left.append(asyncio.create_task(self._gate.leave(entered)))

        try:
            await self._app(scope, receive, limited_send)
        finally:  # also if the client has gone, or the handler failed
            await self._leave(entered, left)

    async def _leave(self, passage: Passage, left: list[asyncio.Task[None]]) -> None:
        """Waits until the request has left, also if this task is cancelled meanwhile."""
        task = left[0] if left else asyncio.create_task(self._gate.leave(passage))
        _leaving.add(task)
        task.add_done_callback(_leaving.discard)
        await asyncio.shield(task)


# An event loop keeps only weak references to its tasks.
_leaving: set[asyncio.Task[None]] = set()


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
