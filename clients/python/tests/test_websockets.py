"""Handshakes of WebSockets, on a real server of ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

import redis.asyncio
import uvicorn
from fastapi import Depends, FastAPI, WebSocket, WebSocketException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from redis_ratelimit import AsyncRateLimiter, Concurrent, TokenBucket
from redis_ratelimit.asgi import RateLimit, Rule, limited
from servers import Server, eventually, free_port, leases

BUCKET = TokenBucket(1000, 1000, "1d")


def user(request: Request) -> str:
    assert request.method == "GET"
    return request.headers["x-user"]


RULES = [
    Rule("streams", user, Concurrent(1, "1m")),
    Rule("tokens", user, BUCKET, estimate=400),
    Rule("pages", user, "1/h", websocket=False),
]


async def echo(socket: WebSocket) -> None:
    await socket.accept(headers=[(b"x-own", b"1")])
    async for text in socket.iter_text():
        socket.scope["spent"]["tokens"] = len(text)
        await socket.send_text(text)


@pytest.fixture
async def limiter(server: Server, key: str) -> AsyncIterator[AsyncRateLimiter]:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[Any]:
    """Serves an application. Gives a function that connects."""
    port = free_port()
    running = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(running.serve())
    async with asyncio.timeout(30):
        while not running.started:
            await asyncio.sleep(0.01)
    yield lambda path="/": connect(f"ws://127.0.0.1:{port}{path}", additional_headers={"x-user": "ann"})
    running.should_exit = True
    await serving


def application(limiter: AsyncRateLimiter, kind: str) -> ASGIApp:
    app = FastAPI(dependencies=[Depends(limited(limiter, RULES))] if kind == "limited" else None)
    app.websocket("/")(echo)
    return app if kind == "limited" else RateLimit(app, limiter, RULES)


@pytest.mark.parametrize("kind", ["middleware", "limited"])
async def test_a_handshake_has_limits_and_its_lease_lasts_as_long_as_the_connection(
    kind: str, limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    async with served(application(limiter, kind)) as client:
        async with client() as socket:
            await socket.send("hello")
            assert await socket.recv() == "hello" and leases(server, f"{key}:streams:ann") == 1
            headers = socket.response.headers
            assert headers["x-own"] == "1"
            if kind == "middleware":
                assert headers["RateLimit-Policy"] == '"streams";q=1;qu="concurrent-requests", "tokens";q=1000;w=86400'
            with pytest.raises(InvalidStatus) as refused:
                await client().__aenter__()
        response: Any = refused.value.response
        problem = json.loads(response.body)
        assert response.status_code == 429 and response.headers["Retry-After"] == "1"
        assert (problem if kind == "middleware" else problem["detail"])["violated-policies"] == ["streams"]
        await asyncio.to_thread(eventually, lambda: leases(server, f"{key}:streams:ann") == 0, "the release")
        assert (await limiter.peek("tokens:ann", BUCKET, 0)).remaining == 995
        assert (await limiter.peek("pages:ann", "1/h", 0)).remaining == 1


async def test_a_handshake_counts_by_its_status_and_may_have_an_answer_of_the_applications_own(limiter: AsyncRateLimiter) -> None:
    app, seen = FastAPI(), list[int]()

    @app.websocket("/{how}")
    async def route(socket: WebSocket, how: str) -> None:
        if how == "closed":
            raise WebSocketException(1008)
        if how == "broken":
            raise RuntimeError("broken")
        await socket.accept()

    def counts(status: int) -> bool:
        seen.append(status)
        return status == 500

    rule = Rule("failures", user, "2/h", counts=counts)
    answer = PlainTextResponse("no", 420)
    async with served(RateLimit(app, limiter, [rule], on_refused=lambda request, refusal: answer)) as client:
        for path, status in ("/closed", 403), ("/open", 101), ("/broken", 500), ("/broken", 500), ("/open", 420):
            try:
                async with client(path) as socket:
                    assert socket.response.status_code == status
            except InvalidStatus as refused:
                assert refused.response.status_code == status
                assert status != 420 or (refused.response.body == b"no" and refused.response.headers["Retry-After"])
    assert seen == [403, 101, 500, 500]


async def handshake(app: ASGIApp) -> list[Message]:
    """What an application sends, behind a server that sends no responses to handshakes."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "websocket", "path": "/", "query_string": b"", "headers": [(b"x-user", b"ann")]}, receive, send)
    return sent


@pytest.mark.parametrize("kind", ["middleware", "limited"])
async def test_without_a_response_a_refused_handshake_is_closed(kind: str, limiter: AsyncRateLimiter) -> None:
    async with limiter.lease("streams:ann", 1, "1m"):
        sent = await handshake(application(limiter, kind))
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "Too Many Requests"}]


async def test_what_an_application_does_after_the_connection_needs_no_lease(
    limiter: AsyncRateLimiter, server: Server, key: str
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close"})
        await asyncio.to_thread(eventually, lambda: leases(server, f"{key}:streams:ann") == 0, "the release")

    await handshake(RateLimit(app, limiter, RULES))
