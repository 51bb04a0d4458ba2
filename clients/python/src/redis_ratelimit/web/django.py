"""Rate limits, budgets, leases and load shedding in front of a Django application, of WSGI or ASGI. In the settings:

    from redis_ratelimit.django import UNLIMITED, Rule

    def user(request):
        return str(request.user.pk) if request.user.is_authenticated else UNLIMITED

    MIDDLEWARE = [..., "django.contrib.auth.middleware.AuthenticationMiddleware", "redis_ratelimit.django.RateLimit"]
    RATELIMIT = {"REDIS": "redis://127.0.0.1", "RULES": [Rule("default", key=user, limit="100/m")]}

Redis stores what `key` returns as plain text in the names of keys, so take a user's id and no secret. Functions of a rule are
synchronous. On ASGI Django lets none of them ask the database, as `request.user` does: take the caller from a signed cookie.

| setting | meaning |
|---|---|
| `REDIS` | the URL of the server |
| `CLUSTER` | True if the URL is of a node of a cluster |
| `OPTIONS` | arguments of the limiter, such as `{"fail": "closed", "timeout": 0.2}` |
| `LIMITER` | in place of these three: a limiter, or a function that returns it. `RateLimiter` for WSGI, `AsyncRateLimiter` for ASGI |
| `RULES` | the rules, with different names. They get the `HttpRequest` |
| `SHED` | a `Shed`, which sheds load before the rules are asked |
| `SKIP` | a function of the request: whether it is not limited at all |
| `HEADERS` | `"draft"` (of the IETF), `"legacy"` (`X-RateLimit-*`), or `"off"` |
| `PREFLIGHTS` | whether preflights of browsers (`OPTIONS` with `Access-Control-Request-Method`) are limited too |
| `EXPOSE` | whether responses tell browsers that scripts of another origin may read these headers |
| `ON_REFUSED` | a function of the request and the `Refusal`, which returns the application's own `HttpResponse` |

`LIMITER`, `RULES`, `SHED`, `SKIP` and `ON_REFUSED` may be given as a dotted path. All limits of a request are asked at once. If one refuses, none is
charged, and the response is a 429. A view counts what it spends of a budget in `request.spent`, under the rule's name, and finds
the decisions in `request.decisions`.

`limited` is for single views.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, TypeAlias, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string
from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis, RedisCluster as AsyncRedisCluster

from ..call.errors import ConfigurationError
from ..gate.cors import but_preflights
from ..gate.entrance import AsyncGate
from ..gate.entrance_threads import Gate
from ..gate.gate import Fields
from ..gate.passage import Passage
from ..gate.response import Refusal, stacked, unset
from ..gate.rules import UNLIMITED, Rule
from ..gate.shed import Shed
from ..limiter import AsyncRateLimiter
from ..limiter_threads import RateLimiter

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed", "limited"]

GetResponse: TypeAlias = Callable[[HttpRequest], HttpResponseBase]
AsyncGetResponse: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponseBase]]

OnRefused: TypeAlias = Callable[[HttpRequest, Refusal], HttpResponse]
View: TypeAlias = Callable[..., Any]

_NAMES = frozenset(("REDIS", "CLUSTER", "OPTIONS", "LIMITER", "RULES", "SHED", "SKIP", "HEADERS", "PREFLIGHTS", "EXPOSE", "ON_REFUSED"))
_STATUSES = (Http404, 404), (PermissionDenied, 403), ((BadRequest, SuspiciousOperation), 400), (Exception, 500)
_REFUSED, _BEFORE = "redis_ratelimit_refused", "redis_ratelimit_before"


class RateLimit:
    """The middleware. Rules are checked when Django loads it, unless the setting is a `LIMITER`: call its `ready` then.

    Raises:
        ConfigurationError: A setting or a rule is wrong.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse | AsyncGetResponse) -> None:
        self._get_response = get_response
        self._settings = _checked(getattr(settings, "RATELIMIT", None))
        # Python 3.11 has none in `inspect` that knows the mark of asgiref.
        self._async = iscoroutinefunction(get_response)  # pyright: ignore[reportDeprecated]
        self._gates: dict[asyncio.AbstractEventLoop, tuple[AsyncRateLimiter, AsyncGate[HttpRequest]]] = {}
        if self._async:
            markcoroutinefunction(self)
            self._first: tuple[AsyncRateLimiter, AsyncGate[HttpRequest]] | None = self._new_async_gate()
        else:
            self._gate = self._new_gate()
        if "LIMITER" not in self._settings:
            with self._new_gate().limiter as limiter:  # a loop may run in this thread, so the check is not of asyncio
                limiter.ready()

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Handles a request."""
        return self._handle_async(request) if self._async else self._handle(request)

    def _handle(self, request: HttpRequest) -> HttpResponseBase:
        on_refused: OnRefused | None = self._settings["ON_REFUSED"]
        return _through(self._gate, request, on_refused, cast(GetResponse, self._get_response))

    async def _handle_async(self, request: HttpRequest) -> HttpResponseBase:
        gate = self._gate_of(asyncio.get_running_loop())
        on_refused: OnRefused | None = self._settings["ON_REFUSED"]
        return await _async_through(gate, request, on_refused, cast(AsyncGetResponse, self._get_response))

    def _gate_of(self, loop: asyncio.AbstractEventLoop) -> AsyncGate[HttpRequest]:
        """Connections belong to an event loop. A server has one, and each test of Django's one of its own."""
        if loop not in self._gates:
            given = "LIMITER" in self._settings
            made = self._first or (next(iter(self._gates.values())) if given else self._new_async_gate())
            self._first = None
            for ended in [each for each in self._gates if each.is_closed()]:
                limiter, _ = self._gates.pop(ended)
                if not given:
                    _kept(loop.create_task(_closed(limiter)))
            self._gates[loop] = made
        return self._gates[loop][1]

    def _new_gate(self) -> Gate[HttpRequest]:
        limiter = _limiter(self._settings, RateLimiter, Redis, RedisCluster)
        return Gate(limiter, *self._gated, **self._options)

    def _new_async_gate(self) -> tuple[AsyncRateLimiter, AsyncGate[HttpRequest]]:
        limiter: AsyncRateLimiter = _limiter(self._settings, AsyncRateLimiter, AsyncRedis, AsyncRedisCluster)
        return limiter, AsyncGate(limiter, *self._gated, **self._options)

    @property
    def _gated(self) -> tuple[Any, Any]:
        return self._settings["RULES"], self._settings["SHED"]

    @property
    def _options(self) -> dict[str, Any]:
        skip: Callable[[HttpRequest], bool] | None = self._settings["SKIP"]
        return {
            "skip": skip if self._settings["PREFLIGHTS"] else but_preflights(skip),
            "headers": self._settings["HEADERS"],
            "expose": self._settings["EXPOSE"],
        }


def limited(
    limiter: RateLimiter | AsyncRateLimiter,
    rules: Iterable[Rule[HttpRequest]],
    shed: Shed[HttpRequest] | None = None,
    *,
    skip: Callable[[HttpRequest], bool] | None = None,
    headers: Fields = "draft",
    on_refused: OnRefused | None = None,
) -> Callable[[View], View]:
    """Limits single views, as a decorator. An asynchronous view needs an `AsyncRateLimiter`, another one a `RateLimiter`.

    For the `counts` of a rule the status of an exception is the one that Django gives it, whatever another middleware answers.

    Args:
        limiter: Asks the server, and says what happens without an answer. Its `ready` checks the rules.
        rules: The rules, with different names.
        shed: Sheds load before the rules are asked.
        skip: Returns whether a request is not limited at all.
        headers: Which headers responses have: `"draft"` (of the IETF), `"legacy"` (`X-RateLimit-*`), or `"off"`.
        on_refused: Returns the application's own answer to a request that does not go on, in place of problem details
            (RFC 9457). It gets the headers of the refusal that it lacks.

    Raises:
        ConfigurationError: A rule is wrong, or the limiter is for views of the other kind.
    """

    def decorated(view: View) -> View:
        if iscoroutinefunction(view):  # pyright: ignore[reportDeprecated]
            on_loop: AsyncGate[HttpRequest] = AsyncGate(
                cast(AsyncRateLimiter, limiter), rules, shed, skip=skip, headers=headers
            )

            @wraps(view)
            async def awaited(request: HttpRequest, *values: Any, **named: Any) -> HttpResponseBase:
                return await _async_through(on_loop, request, on_refused, lambda request: view(request, *values, **named))

            return awaited
        gate: Gate[HttpRequest] = Gate(cast(RateLimiter, limiter), rules, shed, skip=skip, headers=headers)

        @wraps(view)
        def passed(request: HttpRequest, *values: Any, **named: Any) -> HttpResponseBase:
            return _through(gate, request, on_refused, lambda request: view(request, *values, **named))

        return passed

    return decorated


def _through(
    gate: Gate[HttpRequest], request: HttpRequest, on_refused: OnRefused | None, get_response: GetResponse
) -> HttpResponseBase:
    """Lets a request pass, if its limits admit it."""
    entered = gate.enter(request, request.__dict__.setdefault(_BEFORE, set()))
    if isinstance(entered, Refusal):
        return _refused(request, entered, on_refused)
    gate.wait(entered)
    _note(request, entered)
    try:
        response = get_response(request)
    except BaseException as error:
        gate.leave(entered, _status_of(error))
        raise
    return _followed(request, response, entered, lambda: gate.leave(entered, response.status_code))


async def _async_through(
    gate: AsyncGate[HttpRequest], request: HttpRequest, on_refused: OnRefused | None, get_response: AsyncGetResponse
) -> HttpResponseBase:
    """Lets a request pass, if its limits admit it."""
    loop = asyncio.get_running_loop()
    entered = await gate.enter(request, request.__dict__.setdefault(_BEFORE, set()))
    if isinstance(entered, Refusal):
        return _refused(request, entered, on_refused)
    await gate.wait(entered)
    _note(request, entered)
    try:
        response = await get_response(request)
    except BaseException as error:  # such as a cancellation, if the client has gone
        await asyncio.shield(_kept(loop.create_task(gate.leave(entered, _status_of(error)))))
        raise

    def leave() -> None:
        # Django closes a response in a thread.
        loop.call_soon_threadsafe(lambda: _kept(loop.create_task(gate.leave(entered, response.status_code))))

    return _followed(request, _watched(response, leave), entered, leave)


def _status_of(error: BaseException) -> int | None:
    """The status of Django's response to an error of a view."""
    for kinds, status in _STATUSES:
        if isinstance(error, kinds):
            return status
    return None


def _checked(given: object) -> dict[str, Any]:
    """Returns the settings, with objects in place of dotted paths."""
    if not isinstance(given, Mapping):
        raise ConfigurationError("the setting RATELIMIT must be a dict with REDIS or LIMITER, and RULES")
    known = dict(cast(Mapping[str, Any], given))
    if unknown := known.keys() - _NAMES:
        raise ConfigurationError(f"the setting RATELIMIT has no {', '.join(sorted(unknown))}")
    if ("REDIS" in known) == ("LIMITER" in known):
        raise ConfigurationError("the setting RATELIMIT needs either REDIS or LIMITER")
    for name in ("LIMITER", "RULES", "SHED", "SKIP", "ON_REFUSED"):
        if isinstance(known.get(name), str):
            known[name] = import_string(known[name])
    rules = known.get("RULES", ())
    # What yields its rules once would have none for a second event loop.
    known["RULES"] = tuple(cast(Iterable[object], rules)) if isinstance(rules, Iterable) and not isinstance(rules, str) else rules
    defaults = {"SHED": None, "SKIP": None, "HEADERS": "draft", "PREFLIGHTS": False, "EXPOSE": False, "ON_REFUSED": None}
    return defaults | known


def _limiter(known: Mapping[str, Any], kind: type[Any], plain: type[Any], cluster: type[Any]) -> Any:
    if "LIMITER" in known:
        limiter = known["LIMITER"]
        return limiter() if callable(limiter) else limiter
    client = cluster if known.get("CLUSTER") else plain
    return kind(client.from_url(known["REDIS"]), **known.get("OPTIONS", {}))


def _note(request: HttpRequest, passage: Passage) -> None:
    """Shows the view what it may count in, and the decisions. Another gate may have done so."""
    known: dict[str, Any] = request.__dict__
    passage.spent = known.setdefault("spent", passage.spent)
    known.setdefault("decisions", {}).update(passage.decisions)


def _refused(request: HttpRequest, refusal: Refusal, on_refused: OnRefused | None) -> HttpResponse:
    setattr(request, _REFUSED, True)
    if on_refused is None:
        return HttpResponse(refusal.body, status=refusal.status, headers=refusal.headers)
    response = on_refused(request, refusal)
    for name, value in unset(refusal.headers, response.headers.items()).items():
        response[name] = value
    return response


def _followed(
    request: HttpRequest, response: HttpResponseBase, passage: Passage, leave: Callable[[], object]
) -> HttpResponseBase:
    """Lets the end of the response end the passage. The server closes a response also if the client has gone."""
    refused = hasattr(request, _REFUSED)
    for name, value in stacked(passage.headers, response.headers.items(), refused=refused).items():
        response[name] = value
    close = response.close

    def closed() -> None:
        try:
            close()
        finally:
            leave()

    setattr(response, "close", closed)
    return response


def _watched(response: HttpResponseBase, leave: Callable[[], object]) -> HttpResponseBase:
    """Lets the end of a stream end the passage: on asyncio Django does not close the response of a stream that fails."""
    if isinstance(response, StreamingHttpResponse):
        if response.is_async:
            response.streaming_content = _async_stream(cast(AsyncIterable[bytes], response.streaming_content), leave)
        else:
            response.streaming_content = _stream(cast(Iterable[bytes], response.streaming_content), leave)
    return response


def _stream(content: Iterable[bytes], leave: Callable[[], object]) -> Iterator[bytes]:
    try:
        yield from content
    finally:
        leave()


async def _async_stream(content: AsyncIterable[bytes], leave: Callable[[], object]) -> AsyncIterator[bytes]:
    try:
        async for part in content:
            yield part
    finally:
        leave()


async def _closed(limiter: AsyncRateLimiter) -> None:
    """Closes the limiter of an event loop that has ended, whose connections may fail to close."""
    with suppress(Exception):
        await limiter.close()


# An event loop keeps only weak references to its tasks.
_leaving: set[asyncio.Task[None]] = set()


def _kept(task: asyncio.Task[None]) -> asyncio.Task[None]:
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
    return task
