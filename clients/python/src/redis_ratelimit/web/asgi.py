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
it spends of a budget in `request.scope["spent"]`, under the rule's name, and finds the decisions in
`request.scope["decisions"]`. The functions of a rule may be asynchronous.

`limited` is for single routes of FastAPI.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..call.errors import ConfigurationError, RateLimitError
from ..gate.cors import but_preflights
from ..gate.entrance import AsyncGate
from ..gate.gate import Before, Fields
from ..gate.passage import Passage
from ..gate.response import Refusal, stacked, unset
from ..gate.rules import UNLIMITED, Given, Rule
from ..gate.shed import Shed
from ..limiter import AsyncRateLimiter

__all__ = ["UNLIMITED", "RateLimit", "RequestRefused", "Rule", "Shed", "limited", "problem"]

OnRefused: TypeAlias = Callable[[Request, Refusal], Response | Awaitable[Response]]
_LIMITED = "redis_ratelimit"
_DENIAL = "websocket.http.response"
_STARTS = ("http.response.start", "websocket.accept", f"{_DENIAL}.start")
ACCEPTED, CLOSED, FAILED = 101, 403, 500
"""The status of the response to a handshake that is accepted or closed, and to a request whose handler failed."""
CODE = 1008
"""The code with which a WebSocket is closed by a policy."""


class RateLimit:
    """The middleware. Its rules get a `starlette.requests.Request`, whose body they cannot read.

    Rules are checked when the application starts. A wrong one lets the start fail. If the server does not run the lifespan
    of applications, call `limiter.ready()`.

    The handshake of a WebSocket is limited too, except by rules with `websocket=False`. Its rules get a `Request` of the
    method GET. A refused handshake is answered as a request is, or closed with the code 1008 if the server cannot do so. A
    lease lasts as long as the connection, and a budget is settled at its end. Messages are not limited.

    The response of Starlette to an error of a handler comes from outside of all middlewares, so that it has no headers of
    these limits. It has them if this middleware is around the whole application: `app = RateLimit(app, limiter, rules)`.

    Args:
        app: The application.
        limiter: Asks the server, and says what happens without an answer. The middleware does not close it.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.
        skip: Returns whether a request is not limited at all.
        headers: Which headers responses have: `"draft"` (of the IETF), `"legacy"` (`X-RateLimit-*`), or `"off"`.
        preflights: Whether preflights of browsers (`OPTIONS` with `Access-Control-Request-Method`) are limited too.
        expose: Whether responses tell browsers that scripts of another origin may read these headers.
        on_refused: Returns the application's own answer to a request that does not go on, in place of problem details
            (RFC 9457). It gets the headers of the refusal that it lacks.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self,
        app: ASGIApp,
        limiter: AsyncRateLimiter,
        rules: Iterable[Rule[Request]],
        shed: Shed[Request] | None = None,
        *,
        skip: Callable[[Request], Given[bool]] | None = None,
        headers: Fields = "draft",
        preflights: bool = False,
        expose: bool = False,
        on_refused: OnRefused | None = None,
    ) -> None:
        self._app, self._on_refused = app, on_refused
        self._gate = AsyncGate(
            limiter, rules, shed, skip=skip if preflights else but_preflights(skip), headers=headers, expose=expose
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a connection."""
        if scope["type"] == "lifespan":
            await self._start(scope, receive, send)
        elif scope["type"] in ("http", "websocket"):
            await self._limit(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the rules before the application starts."""
        first = await receive()
        try:
            await self._gate.limiter.ready()
        except RateLimitError as error:
            # As Starlette does: a server writes the message and ends. A test client waits for the error.
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        messages = [first]

        async def replayed() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replayed, send)

    async def _limit(self, scope: Scope, receive: Receive, send: Send) -> None:
        state, websocket = _state(scope), scope["type"] == "websocket"
        before: Before = state.setdefault("before", set())
        entered = await self._gate.enter(Request(_as_http(scope)), before, websocket)
        if isinstance(entered, Refusal):
            state["refused"] = True
            await (self._deny if websocket else self._refuse)(entered, scope, receive, send)
            return
        await self._gate.wait(entered)
        _note(scope, entered)
        left: list[asyncio.Task[None]] = []
        status: int | None = None

        async def limited_send(message: Message) -> None:
            nonlocal status
            if message["type"] in _STARTS:
                status = message.get("status", ACCEPTED)
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                headers.update(stacked(entered.headers, headers.items(), refused="refused" in state))
                message = {**message, "headers": headers.raw}
            closed = message["type"] == "websocket.close"
            status = CLOSED if closed and status is None else status
            await send(message)
            if closed or (message["type"] == "http.response.body" and not message.get("more_body", False)):
                # What the application does after the response needs no lease.
                left.append(asyncio.create_task(self._gate.leave(entered, status)))

        try:
            await self._app(scope, receive, limited_send)
        except Exception:
            status = status or FAILED
            raise
        finally:  # also if the client has gone, or the handler failed
            await _left(left[0] if left else asyncio.create_task(self._gate.leave(entered, status)))

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Response(refusal.body, refusal.status, refusal.headers)
        if self._on_refused is not None:
            given = self._on_refused(Request(scope, receive), refusal)
            answer = (await given) if isawaitable(given) else given
            answer.headers.update(unset(refusal.headers, answer.headers.items()))
        await answer(scope, receive, send)

    async def _deny(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses the handshake of a WebSocket, by a response if the server can send one."""

        async def denied(message: Message) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await receive()  # the handshake
        if _DENIAL in (scope.get("extensions") or {}):
            await self._refuse(refusal, _as_http(scope), receive, denied)
        else:
            await send({"type": "websocket.close", "code": CODE, "reason": HTTPStatus(refusal.status).phrase})


class RequestRefused(HTTPException):
    """A request that `limited` refuses. An exception handler of the application may answer it, such as `problem`.

    Attributes:
        refusal: The response, as problem details.
    """

    def __init__(self, refusal: Refusal) -> None:
        headers = {name: value for name, value in refusal.headers.items() if name != "Content-Type"}
        super().__init__(refusal.status, json.loads(refusal.body), headers)
        self.refusal = refusal


async def problem(request: Request, error: Exception) -> Response:
    """An exception handler for `RequestRefused`, which answers with problem details (RFC 9457)."""
    refusal = cast(RequestRefused, error).refusal
    return Response(refusal.body, refusal.status, refusal.headers)


def limited(
    limiter: AsyncRateLimiter,
    rules: Iterable[Rule[Request]],
    shed: Shed[Request] | None = None,
    *,
    skip: Callable[[Request], Given[bool]] | None = None,
    headers: Fields = "draft",
) -> Callable[[HTTPConnection, Response], AsyncIterator[Passage]]:
    """Returns limits of single routes, as a dependency of FastAPI: `dependencies=[Depends(limited(limiter, rules))]`.

    The arguments are those of `RateLimit`. It may also be a dependency of the whole application. It limits the handshakes of
    WebSockets too, except by rules with `websocket=False`.

    A request that does not go on is a `RequestRefused`. A route that returns a `Response` itself has to give it the `headers` of the
    passage, which is the value of the dependency, and a WebSocket's has to give them to `accept`. A dependency does not see the
    response, so its rules have no `counts`.

    Raises:
        ConfigurationError: A rule is wrong.
    """
    gate = AsyncGate(limiter, rules, shed, skip=skip, headers=headers)
    if any(rule.counts for rule in gate.rules):
        raise ConfigurationError("a rule with counts needs the middleware, since a dependency does not see the response")

    async def passed(connection: HTTPConnection, response: Response) -> AsyncIterator[Passage]:
        scope, websocket = connection.scope, not isinstance(connection, Request)
        state = _state(scope)
        request = connection if isinstance(connection, Request) else Request(_as_http(scope))
        entered = await gate.enter(request, state.setdefault("before", set()), websocket)
        if isinstance(entered, Refusal):
            state["refused"] = True
            # Starlette answers handshakes since 0.37.
            if websocket and not (_DENIAL in (scope.get("extensions") or {}) and hasattr(connection, "send_denial_response")):
                raise WebSocketException(CODE, HTTPStatus(entered.status).phrase)
            raise RequestRefused(entered)
        await gate.wait(entered)
        _note(scope, entered)
        response.headers.update(stacked(entered.headers, response.headers.items(), refused=False))
        try:
            yield entered
        finally:
            await _left(asyncio.create_task(gate.leave(entered)))

    return passed


def _as_http(scope: Scope) -> Scope:
    """The handshake of a WebSocket as a request. That of a request is the same."""
    return scope if scope["type"] == "http" else {**scope, "type": "http", "method": "GET"}


def _state(scope: Scope) -> dict[str, Any]:
    """What several gates know of a request."""
    state: dict[str, Any] = scope.setdefault(_LIMITED, {})
    return state


def _note(scope: Scope, passage: Passage) -> None:
    """Shows the handler what it may count in, and the decisions. Another gate may have done so."""
    passage.spent = scope.setdefault("spent", passage.spent)
    scope.setdefault("decisions", {}).update(passage.decisions)


async def _left(task: asyncio.Task[None]) -> None:
    """Waits until the request has left, also if this task is cancelled meanwhile."""
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
    await asyncio.shield(task)


# An event loop keeps only weak references to its tasks.
_leaving: set[asyncio.Task[None]] = set()
