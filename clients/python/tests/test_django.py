"""The middleware for Django, on threads and on asyncio, beyond the six applications of clients/http."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, cast

import pytest

pytest.importorskip("django")

import django
import redis
import redis.asyncio
from django.conf import settings

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=["redis_ratelimit.django.RateLimit"])
    django.setup()

from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIHandler
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, AsyncRequestFactory, Client, RequestFactory, override_settings
from django.urls import path

from redis_ratelimit import AsyncRateLimiter, Concurrent, ConfigurationError, RateLimiter, SlidingLog
from redis_ratelimit.django import RateLimit, Rule, limited
from servers import Server, eventually


def caller(request: HttpRequest) -> str | None:
    return request.headers.get("x-api-key")


RULES = [Rule("default", caller, SlidingLog(3, "1h"))]
STREAMS = [Rule("streams", caller, Concurrent(2, "1m"))]


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("broken")


async def async_page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    async def words() -> AsyncIterator[bytes]:
        yield b"one"
        raise RuntimeError("the model is gone")

    return StreamingHttpResponse(words())


urlpatterns = [path("", page), path("broken", broken), path("stream", stream)]


def setting(server: Server, key: str, **more: Any) -> Any:
    redis_of = {"REDIS": f"redis://127.0.0.1:{server.port}", "OPTIONS": {"prefix": f"{key}:", "timeout": 5.0}}
    return override_settings(RATELIMIT={**redis_of, "RULES": RULES, **more})


async def get(kind: str, path: str) -> Any:
    client: Any = Client(False, False) if kind == "threads" else AsyncClient(False, False)
    got = await asyncio.to_thread(client.get, path, headers=ANN) if kind == "threads" else client.get(path, headers=ANN)
    return got if kind == "threads" else await got


ANN = {"x-api-key": "ann"}


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


async def is_free(limiter: RateLimiter) -> None:
    """On asyncio the response of a thread is followed a little later."""
    nobody = Concurrent(2, "1m", "nobody")
    await asyncio.to_thread(eventually, lambda: limiter.peek("streams:ann", nobody, 0).remaining == 2, "the release")


async def test_a_view_that_fails_releases_its_lease(kind: str, server: Server, key: str, limiter: RateLimiter) -> None:
    with setting(server, key, RULES=STREAMS):
        assert (await get(kind, "/broken")).status_code == 500
    await is_free(limiter)


async def test_a_lease_is_released_when_a_stream_on_asyncio_fails(server: Server, key: str, limiter: RateLimiter) -> None:
    scope = {"type": "http", "method": "GET", "path": "/stream", "query_string": b"", "headers": [(b"x-api-key", b"ann")]}
    first = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        return first.pop() if first else await asyncio.sleep(60)

    async def send(message: Any) -> None: ...

    with setting(server, key, RULES=STREAMS), pytest.raises(RuntimeError, match="the model is gone"):
        await ASGIHandler()(scope, receive, send)
    await is_free(limiter)


async def test_a_wrong_rule_is_an_error_when_django_loads_it(kind: str, server: Server, key: str) -> None:
    wrong = [Rule("big", caller, SlidingLog(2_000_000, "1h"))]
    with setting(server, key, RULES=wrong), pytest.raises(ConfigurationError, match="rule 'big'"):
        RateLimit(page if kind == "threads" else async_page)


def test_each_event_loop_has_a_limiter_that_is_closed_after_it(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[AsyncRateLimiter] = []
    close = AsyncRateLimiter.close

    async def noted(self: AsyncRateLimiter) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(AsyncRateLimiter, "close", noted)

    async def ask() -> int:
        request = AsyncRequestFactory().get("/", headers=ANN)
        status = (await cast(Awaitable[HttpResponseBase], middleware(request))).status_code
        await asyncio.sleep(0.05)
        return status

    with setting(server, key, RULES=(each for each in RULES)):
        middleware = RateLimit(async_page)
        assert [asyncio.run(ask()) for _ in range(5)] == [200, 200, 200, 429, 429]
    assert len(set(closed)) == len(closed) == 4


def limiter_of_the_test() -> Any:
    return MADE[0]


MADE: list[Any] = []


async def test_a_limiter_may_be_given(kind: str, server: Server, key: str) -> None:
    options: Any = {"prefix": f"{key}:", "timeout": 5.0}
    made: Any = RateLimiter(redis.Redis(port=server.port), **options)
    if kind == "asyncio":
        made = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), **options)
    MADE[:] = [made]
    for given in (made, limiter_of_the_test, f"{__name__}.limiter_of_the_test"):
        with override_settings(RATELIMIT={"LIMITER": given, "RULES": f"{__name__}.RULES"}):
            assert (await get(kind, "/")).status_code == 200
    assert made.counters["allowed"] == 3
    closed = made.close()
    if kind == "asyncio":
        await closed


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, "must be a dict"),
        ({"REDIS": "redis://127.0.0.1", "RULE": []}, "has no RULE"),
        ({"RULES": []}, "needs either REDIS or LIMITER"),
        ({"LIMITER": "nothing", "REDIS": "redis://127.0.0.1"}, "needs either REDIS or LIMITER"),
        ({"REDIS": "redis://127.0.0.1"}, "there are neither rules nor a Shed"),
        ({"LIMITER": 5}, "the limiter must be a RateLimiter, not int"),
        ({"REDIS": "redis://127.0.0.1", "OPTIONS": {"fail": "often"}}, "fail must be 'open' or 'closed'"),
    ],
)
def test_a_wrong_setting_is_an_error_at_start(given: Any, error: str) -> None:
    with override_settings(RATELIMIT=given), pytest.raises(ConfigurationError, match=error):
        RateLimit(page)


def test_a_view_has_limits_and_an_answer_of_its_own(limiter: RateLimiter) -> None:
    @limited(limiter, [Rule("default", caller, "1/h")], on_refused=lambda request, refusal: HttpResponse("no", status=420))
    def view(request: HttpRequest, left: int) -> HttpResponse:
        return HttpResponse(f"{getattr(request, 'decisions')['default'].remaining} {left}")

    first, refused = (view(RequestFactory().get("/", headers=ANN), 5) for _ in range(2))
    assert first.content == b"0 5" and first["RateLimit-Policy"] == '"default";q=1;w=3600'
    assert refused.status_code == 420 and refused.content == b"no" and "Retry-After" in refused.headers


async def test_an_asynchronous_view_has_limits(server: Server, key: str) -> None:
    async def who(request: HttpRequest) -> str:
        return request.headers["x-api-key"]

    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        view = limited(limiter, [Rule("default", who, "1/h")])(async_page)
        statuses = [(await view(AsyncRequestFactory().get("/", headers=ANN))).status_code for _ in range(2)]
    assert statuses == [200, 429]


def test_a_view_counts_by_the_status_of_its_error(limiter: RateLimiter) -> None:
    @limited(limiter, [Rule("login", caller, "9/h", counts=lambda status: status in (403, 500))])
    def view(request: HttpRequest, error: Exception) -> HttpResponse:
        raise error

    for error, left in (PermissionDenied(), 8), (Http404(), 8), (RuntimeError("broken"), 7):
        with pytest.raises(type(error)):
            view(RequestFactory().get("/", headers=ANN), error)
        assert limiter.peek("login:ann", "9/h", 0).remaining == left
