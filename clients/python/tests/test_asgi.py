"""The middleware in front of applications of Starlette and FastAPI."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

import redis.asyncio
from fastapi import Depends, FastAPI, WebSocket
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message

from redis_ratelimit import (
    UNLIMITED,
    AsyncRateLimiter,
    Concurrent,
    ConfigurationError,
    SlidingLog,
    TokenBucket,
    Unlimited,
)
from redis_ratelimit.asgi import RateLimit, Rule, Shed, limited
from servers import Server

BUCKET = TokenBucket(1000, 1000, "1d")


def caller(request: Request) -> str | None:
    return request.headers.get("x-api-key")


def on(path: str) -> Callable[[Request], str | Unlimited | None]:
    return lambda request: caller(request) if request.url.path == path else UNLIMITED


RULES = [
    Rule("default", caller, SlidingLog(3, "1h")),
    Rule("streams", on("/stream"), Concurrent(2, "1m")),
    Rule("tokens", on("/chat"), BUCKET, estimate=lambda request: int(request.query_params["estimate"])),
]


async def page(request: Request) -> Response:
    return PlainTextResponse("ok")


async def broken(request: Request) -> Response:
    raise RuntimeError("broken")


async def stream(request: Request) -> Response:
    async def ticks() -> AsyncIterator[str]:
        while True:
            yield "tick\n"
            await asyncio.sleep(0.05)

    return StreamingResponse(ticks())


async def chat(request: Request) -> Response:
    spent = request.scope["spent"]
    spent["tokens"] = 0

    async def words() -> AsyncIterator[str]:
        for word in request.query_params["words"].split():
            spent["tokens"] += 1
            yield word
            if word == "fail":
                raise RuntimeError("the model is gone")

    return StreamingResponse(words())


async def after(request: Request) -> Response:
    return PlainTextResponse("ok", background=BackgroundTask(asyncio.sleep, 60))


def application(limiter: AsyncRateLimiter, rules: list[Rule[Request]] = RULES, shed: Shed[Request] | None = None) -> Starlette:
    handlers = {"/": page, "/broken": broken, "/stream": stream, "/chat": chat, "/after": after}
    app = Starlette(routes=[Route(path, handler) for path, handler in handlers.items()])
    app.add_middleware(RateLimit, limiter=limiter, rules=rules, shed=shed)
    return app


@pytest.fixture
async def limiter(server: Server, key: str) -> AsyncIterator[AsyncRateLimiter]:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def client(app: Any) -> Any:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers={"x-api-key": "ann"})


async def test_a_response_has_headers_and_a_refusal_is_a_problem(limiter: AsyncRateLimiter) -> None:
    async with client(application(limiter)) as http:
        told = [await http.get("/") for _ in range(4)]
    assert [each.status_code for each in told] == [200, 200, 200, 429]
    assert told[0].text == "ok"
    assert told[0].headers["ratelimit-policy"] == '"default";q=3;w=3600'
    assert told[0].headers["ratelimit"] == '"default";r=2;t=3600'
    assert told[3].headers["content-type"] == "application/problem+json"
    assert told[3].json()["violated-policies"] == ["default"]
    assert 3500 < int(told[3].headers["retry-after"]) <= 3600


async def test_a_handler_that_fails_has_been_charged(limiter: AsyncRateLimiter) -> None:
    async with client(application(limiter)) as http:
        told = await http.get("/broken")
    assert told.status_code == 500
    assert (await limiter.peek("default:ann", SlidingLog(3, "1h"), 0)).remaining == 2


@pytest.mark.parametrize(("words", "left"), [("one two three", 997), ("one fail three", 998)])
async def test_a_budget_is_settled_after_the_response(limiter: AsyncRateLimiter, words: str, left: int) -> None:
    async with client(application(limiter)) as http:
        with contextlib.suppress(httpx.RemoteProtocolError, RuntimeError):
            await http.get("/chat", params={"estimate": 400, "words": words})
    assert left <= (await limiter.peek("tokens:ann", BUCKET, 0)).remaining <= left + 1


class Connection:
    """A client's side of an HTTP request to an ASGI application."""

    def __init__(self, app: Any, path: str) -> None:
        self.sent: list[Message] = []
        self._gone = asyncio.Event()
        self._first = [{"type": "http.request", "body": b"", "more_body": False}]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"x-api-key", b"ann")]}
        self.task = asyncio.create_task(app({**scope, "asgi": {"version": "3.0"}}, self._receive, self._send))

    async def until(self, holds: Callable[[list[Message]], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds(self.sent):
                await asyncio.sleep(0.01)

    def hang_up(self) -> None:
        self._gone.set()

    async def _receive(self) -> Message:
        if self._first:
            return self._first.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


async def free(limiter: AsyncRateLimiter) -> int:
    return (await limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0)).remaining


async def test_a_lease_is_released_when_the_client_hangs_up(limiter: AsyncRateLimiter) -> None:
    streams = [Connection(application(limiter), "/stream") for _ in range(2)]
    for each in streams:
        await each.until(lambda sent: len(sent) > 2)
    assert await free(limiter) == 0
    refused = Connection(application(limiter), "/stream")
    await refused.task
    assert refused.sent[0]["status"] == 429
    for each in streams:
        each.hang_up()
        await each.task
    assert await free(limiter) == 2


async def test_a_lease_is_released_when_the_request_is_cancelled(limiter: AsyncRateLimiter) -> None:
    streaming = Connection(application(limiter), "/stream")
    await streaming.until(lambda sent: len(sent) > 1)
    streaming.task.cancel()
    await asyncio.wait([streaming.task])
    async with asyncio.timeout(30):
        while await free(limiter) < 2:
            await asyncio.sleep(0.05)


async def test_work_after_the_response_needs_no_lease(limiter: AsyncRateLimiter) -> None:
    rules = [Rule("streams", caller, Concurrent(2, "1m"))]
    working = Connection(application(limiter, rules), "/after")
    await working.until(lambda sent: len(sent) == 2)
    async with asyncio.timeout(30):
        while await free(limiter) < 2:
            await asyncio.sleep(0.05)
    assert not working.task.done()
    working.task.cancel()
    await asyncio.wait([working.task])


async def lifespan(app: Any, sent: list[Message] | None = None) -> list[Message]:
    """Starts and stops an application as a server does."""
    sent = [] if sent is None else sent
    messages: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    return sent


async def test_a_wrong_rule_lets_the_start_fail(limiter: AsyncRateLimiter) -> None:
    wrong = [Rule("big", caller, SlidingLog(2_000_000, "1h"))]
    sent: list[Message] = []
    with pytest.raises(ConfigurationError, match="^rule 'big': RL.MULTIPEEK at localhost:") as raised:
        await lifespan(application(limiter, wrong), sent)
    assert sent == [{"type": "lifespan.startup.failed", "message": str(raised.value)}]


def test_a_test_client_raises_what_is_wrong(server: Server) -> None:
    wrong = [Rule("plan", caller, policy="none")]
    app = application(AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0), wrong)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with TestClient(app):
                pass
        except ConfigurationError as error:
            raised.append(error)

    # It would wait for ever for the end of an application that does not raise.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert "no such policy" in str(raised)


async def test_a_right_application_starts(limiter: AsyncRateLimiter) -> None:
    told = await lifespan(application(limiter))
    assert [message["type"] for message in told] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_an_application_starts_without_redis() -> None:
    with Server() as server:
        limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=0.2)
    told = await lifespan(application(limiter))
    assert told[0]["type"] == "lifespan.startup.complete"
    async with client(application(limiter)) as http:
        assert (await http.get("/")).status_code == 200
    await limiter.close()


async def test_it_fails_closed_if_that_is_chosen() -> None:
    with Server() as server:
        limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=0.2, fail="closed")
    async with client(application(limiter)) as http:
        told = await http.get("/")
    assert (told.status_code, told.headers["retry-after"]) == (503, "1")
    assert told.json()["type"].endswith("#temporary-reduced-capacity")
    await limiter.close()


async def test_other_connections_are_not_limited(limiter: AsyncRateLimiter) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def unused(*_: Any) -> Any:
        raise AssertionError("nothing is sent")

    await RateLimit(app, limiter, RULES)({"type": "websocket"}, unused, unused)
    assert seen == ["websocket"]


def test_limits_of_the_whole_application_let_websockets_pass(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0)
    app = FastAPI(dependencies=[Depends(limited(limiter, RULES))])

    @app.get("/")
    def page() -> str:
        return "ok"

    @app.websocket("/echo")
    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(await socket.receive_text())
        await socket.close()

    http: Any = TestClient(app, headers={"x-api-key": "ann"})
    with http as client:
        with client.websocket_connect("/echo") as socket:
            socket.send_text("hello")
            assert socket.receive_text() == "hello"
        assert client.get("/").headers["ratelimit"] == '"default";r=2;t=3600'


async def test_two_middlewares_of_the_same_rules_charge_once(limiter: AsyncRateLimiter) -> None:
    shared = application(limiter)
    shared.add_middleware(RateLimit, limiter=limiter, rules=RULES)
    async with client(shared) as http:
        told = await http.get("/")
    assert told.headers["ratelimit"] == '"default";r=2;t=3600'
    assert (await limiter.peek("default:ann", SlidingLog(3, "1h"), 0)).remaining == 2


async def test_the_handler_counts_for_two_middlewares(limiter: AsyncRateLimiter) -> None:
    async def both(request: Request) -> Response:
        request.scope["spent"].update({"tokens": 1, "words": 2})
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/", both)])
    for name in ("tokens", "words"):
        app.add_middleware(RateLimit, limiter=limiter, rules=[Rule(name, caller, BUCKET, estimate=400)])
    async with client(app) as http:
        assert (await http.get("/")).status_code == 200
    assert [(await limiter.peek(f"{name}:ann", BUCKET, 0)).remaining for name in ("tokens", "words")] == [999, 998]
