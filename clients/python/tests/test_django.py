"""The middleware for Django, on threads and on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
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

from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from redis_ratelimit import (
    UNLIMITED,
    AsyncRateLimiter,
    Concurrent,
    ConfigurationError,
    RateLimiter,
    SlidingLog,
    TokenBucket,
    Unlimited,
)
from redis_ratelimit.django import RateLimit, Rule
from servers import Server, eventually

BUCKET = TokenBucket(1000, 1000, "1d")


def caller(request: HttpRequest) -> str | None:
    return request.headers.get("x-api-key")


def on(wanted: str) -> Callable[[HttpRequest], str | Unlimited | None]:
    return lambda request: caller(request) if request.path == wanted else UNLIMITED


RULES = [
    Rule("default", caller, SlidingLog(3, "1h")),
    Rule("streams", on("/stream"), Concurrent(2, "1m")),
    Rule("tokens", on("/chat"), BUCKET, estimate=lambda request: int(request.GET["estimate"])),
]
WRONG = [Rule("big", caller, SlidingLog(2_000_000, "1h"))]


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


def broken(request: HttpRequest) -> HttpResponse:
    request.spent["default"] = 1  # type: ignore[attr-defined]
    raise RuntimeError("broken")


def words(request: HttpRequest) -> Iterator[bytes]:
    spent: dict[str, float] = getattr(request, "spent")
    spent["tokens"] = 0
    for word in request.GET.get("words", "tick " * 1000).split():
        spent["tokens"] += 1
        yield word.encode()
        if word == "fail":
            raise RuntimeError("the model is gone")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(words(request))


async def async_stream(request: HttpRequest) -> StreamingHttpResponse:
    async def paused() -> AsyncIterator[bytes]:
        for word in words(request):
            yield word
            await asyncio.sleep(0.01)

    return StreamingHttpResponse(paused())


urlpatterns = [
    path("", page),
    path("broken", broken),
    path("stream", stream),
    path("chat", stream),
    path("async", async_stream),
]


def setting(server: Server, key: str, **more: Any) -> Any:
    redis_of = {"REDIS": f"redis://127.0.0.1:{server.port}", "OPTIONS": {"prefix": f"{key}:", "timeout": 5.0}}
    return override_settings(RATELIMIT={**redis_of, "RULES": RULES, **more})


class Http:
    """A client on threads or on asyncio."""

    def __init__(self, kind: str) -> None:
        self._client: Any = Client(False, False) if kind == "threads" else AsyncClient(False, False)

    async def get(self, path: str, caller: str = "ann") -> Any:
        if isinstance(self._client, Client):
            return await asyncio.to_thread(self._client.get, path, headers={"x-api-key": caller})
        return await self._client.get(path, headers={"x-api-key": caller})

    async def content(self, response: Any) -> bytes:
        parts: Any = response.streaming_content
        if hasattr(parts, "__aiter__"):
            return b"".join([part async for part in parts])
        return b"".join(await asyncio.to_thread(list, parts))

    async def close(self, response: Any) -> None:
        await asyncio.to_thread(response.close)


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def http(kind: str, server: Server, key: str) -> Iterator[Http]:
    with setting(server, key):
        yield Http(kind)


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def free(limiter: RateLimiter) -> int:
    return limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0).remaining


async def is_free(limiter: RateLimiter) -> None:
    """On asyncio the response of a thread is followed a little later."""
    await asyncio.to_thread(eventually, lambda: free(limiter) == 2, "the release")


async def test_a_response_has_headers_and_a_refusal_is_a_problem(http: Http) -> None:
    told = [await http.get("/") for _ in range(4)]
    assert [each.status_code for each in told] == [200, 200, 200, 429]
    assert told[0].content == b"ok"
    assert told[0]["RateLimit-Policy"] == '"default";q=3;w=3600'
    assert told[0]["RateLimit"] == '"default";r=2;t=3600'
    assert told[3]["Content-Type"] == "application/problem+json"
    assert told[3].json()["violated-policies"] == ["default"]
    assert 3500 < int(told[3]["Retry-After"]) <= 3600


async def test_a_view_that_fails_releases_its_lease(kind: str, server: Server, key: str, limiter: RateLimiter) -> None:
    with setting(server, key, RULES=[Rule("streams", caller, Concurrent(2, "1m"))]):
        assert (await Http(kind).get("/broken")).status_code == 500
    await is_free(limiter)


@pytest.mark.parametrize(("words", "left"), [("one+two+three", 997), ("one+fail+three", 998)])
async def test_a_budget_is_settled_after_the_response(http: Http, limiter: RateLimiter, words: str, left: int) -> None:
    response = await http.get(f"/chat?estimate=400&words={words}")
    assert limiter.peek("tokens:ann", BUCKET, 0).remaining == 600
    try:
        assert await http.content(response) == b"onetwothree"
    except RuntimeError:
        assert "fail" in words
    await http.close(response)
    await asyncio.to_thread(eventually, lambda: limiter.peek("tokens:ann", BUCKET, 0).remaining >= left, "the settlement")
    assert limiter.peek("tokens:ann", BUCKET, 0).remaining <= left + 1


async def test_a_lease_is_released_when_the_server_closes_the_response(http: Http, limiter: RateLimiter) -> None:
    streams = [await http.get("/stream") for _ in range(2)]
    assert free(limiter) == 0
    assert (await http.get("/stream")).status_code == 429
    for each in streams:
        await http.close(each)
    await is_free(limiter)


async def asked(path: str, hang_up: float | None) -> None:
    """Asks the handler for ASGI, and hangs up after some seconds."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"words=one+fail"}
    first = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if first:
            return first.pop()
        await asyncio.sleep(60 if hang_up is None else hang_up)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    await ASGIHandler()({**scope, "headers": [(b"x-api-key", b"ann")]}, receive, send)


async def test_a_lease_is_released_when_the_client_hangs_up(server: Server, key: str, limiter: RateLimiter) -> None:
    with setting(server, key, RULES=[Rule("streams", caller, Concurrent(50, "10m"))]):
        await asyncio.gather(*(asked("/async", 0.005 * i) for i in range(20)), return_exceptions=True)
    nobody = Concurrent(50, "10m", "nobody")
    await asyncio.to_thread(eventually, lambda: limiter.peek("streams:ann", nobody, 0).remaining == 50, "the release")


async def test_a_lease_is_released_when_a_stream_on_asyncio_fails(server: Server, key: str, limiter: RateLimiter) -> None:
    with setting(server, key, RULES=[Rule("streams", caller, Concurrent(2, "10m"))]):
        with pytest.raises(RuntimeError, match="the model is gone"):
            await asked("/async", None)
    await is_free(limiter)


async def test_a_wrong_rule_is_an_error_when_django_loads_it(kind: str, server: Server, key: str) -> None:
    async def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse("ok")

    with setting(server, key, RULES=WRONG), pytest.raises(ConfigurationError, match="rule 'big'"):
        RateLimit(page if kind == "threads" else view)


@pytest.mark.parametrize(("fail", "status"), [("open", 200), ("closed", 503)])
async def test_it_fails_as_the_settings_say(kind: str, fail: str, status: int) -> None:
    with Server() as server:
        pass
    with setting(server, "none", OPTIONS={"fail": fail, "timeout": 0.2}):
        told = await Http(kind).get("/")
    assert (told.status_code, told.get("Retry-After")) == (status, None if fail == "open" else "1")


def test_each_event_loop_has_a_limiter_that_is_closed_after_it(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[AsyncRateLimiter] = []
    close = AsyncRateLimiter.close

    async def noted(self: AsyncRateLimiter) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(AsyncRateLimiter, "close", noted)

    async def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse("ok")

    async def ask() -> int:
        request = HttpRequest()
        request.META["HTTP_X_API_KEY"] = "ann"
        status = (await cast(Awaitable[HttpResponseBase], middleware(request))).status_code
        await asyncio.sleep(0.05)
        return status

    with setting(server, key, RULES=(each for each in RULES[:1])):
        middleware = RateLimit(view)
        assert [asyncio.run(ask()) for _ in range(5)] == [200, 200, 200, 429, 429]
    assert len(set(closed)) == len(closed) == 4


def limiter_of_the_test() -> Any:
    return MADE[0]


MADE: list[Any] = []


async def test_a_limiter_may_be_given(kind: str, server: Server, key: str) -> None:
    options = {"prefix": f"{key}:", "timeout": 5.0}
    made: Any = RateLimiter(redis.Redis(port=server.port), **options)  # type: ignore[arg-type]
    if kind == "asyncio":
        made = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), **options)  # type: ignore[arg-type]
    MADE[:] = [made]
    for given in (made, limiter_of_the_test, f"{__name__}.limiter_of_the_test"):
        with override_settings(RATELIMIT={"LIMITER": given, "RULES": f"{__name__}.RULES"}):
            assert (await Http(kind).get("/")).status_code == 200
    assert made.counters["allowed"] == 3
    if kind == "asyncio":
        await made.close()
    else:
        made.close()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, "must be a dict"),
        ({"REDIS": "redis://127.0.0.1", "RULE": []}, "has no RULE"),
        ({"RULES": []}, "needs either REDIS or LIMITER"),
        ({"LIMITER": "nothing", "REDIS": "redis://127.0.0.1"}, "needs either REDIS or LIMITER"),
        ({"REDIS": "redis://127.0.0.1"}, "there are neither rules nor a Shed"),
        ({"REDIS": "redis://127.0.0.1", "RULES": ["a"]}, "a rule must be a Rule, not 'a'"),
        ({"REDIS": "redis://127.0.0.1", "RULES": 5}, "rules must be a list of rules, not 5"),
        ({"LIMITER": 5}, "the limiter must be a RateLimiter, not 5"),
        ({"REDIS": "redis://127.0.0.1", "OPTIONS": {"fail": "often"}}, "fail must be 'open' or 'closed'"),
    ],
)
def test_a_wrong_setting_is_an_error_at_start(given: Any, error: str) -> None:
    with override_settings(RATELIMIT=given), pytest.raises(ConfigurationError, match=error):
        RateLimit(page)
