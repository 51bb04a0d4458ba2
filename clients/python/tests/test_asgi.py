"""The middleware for Starlette and FastAPI, beyond the six applications of clients/http."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

import redis.asyncio
from fastapi import Depends, FastAPI
from fastapi import Request as FastAPIRequest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message

from redis_ratelimit import AsyncRateLimiter, Concurrent, ConfigurationError, SlidingLog, TokenBucket
from redis_ratelimit.gates import Refusal
from redis_ratelimit.asgi import RateLimit, RequestRefused, Rule, limited, problem
from servers import Server

BUCKET = TokenBucket(1000, 1000, "1d")


def user(request: Request) -> str:
    return request.headers["x-user"]


RULES = [Rule("default", user, SlidingLog(3, "1h"))]
STREAMS = [Rule("streams", user, Concurrent(2, "1m"))]


async def page(request: Request) -> Response:
    request.scope["spent"].update({"tokens": 1, "words": 2})
    return JSONResponse({name: each.remaining for name, each in request.scope["decisions"].items()})


async def stream(request: Request) -> Response:
    async def ticks() -> AsyncIterator[str]:
        while True:
            yield "tick\n"
            await asyncio.sleep(0.05)

    return StreamingResponse(ticks())


async def after(request: Request) -> Response:
    return PlainTextResponse("ok", background=BackgroundTask(asyncio.sleep, 60))


def application(limiter: AsyncRateLimiter, *gates: list[Rule[Request]], **options: Any) -> Any:
    app: Any = Starlette(routes=[Route("/", page), Route("/stream", stream), Route("/after", after)])
    for rules in gates:
        app = RateLimit(app, limiter, rules, **options)
    return app


@pytest.fixture
async def limiter(server: Server, key: str) -> AsyncIterator[AsyncRateLimiter]:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


async def asked(app: Any, name: str = "ann") -> Any:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as http:
        return await http.get("/", headers={"x-user": name})


async def test_keys_and_limits_may_be_asynchronous(limiter: AsyncRateLimiter) -> None:
    async def slow_user(request: Request) -> str:
        await asyncio.sleep(0.001)
        return user(request)

    async def plan(request: Request) -> str:
        return "2/h" if await slow_user(request) == "ann" else "9/h"

    app = application(limiter, [Rule("default", slow_user, plan)])
    assert [(await asked(app)).status_code for _ in range(3)] == [200, 200, 429]
    assert (await asked(app, "bob")).json() == {"default": 8}


async def test_headers_and_decisions_of_two_middlewares_add_up(limiter: AsyncRateLimiter) -> None:
    app = application(limiter, [Rule("inner", user, "2/h")], [Rule("outer", user, "9/h")])
    first, _, refused = [await asked(app) for _ in range(3)]
    assert first.json() == {"inner": 1, "outer": 8}
    assert first.headers["RateLimit-Policy"] == '"inner";q=2;w=3600, "outer";q=9;w=3600'
    assert [part.partition(";t")[0] for part in first.headers["RateLimit"].split(", ")] == ['"inner";r=1', '"outer";r=8']
    assert refused.status_code == 429
    assert refused.headers["RateLimit-Policy"] == '"inner";q=2;w=3600, "outer";q=9;w=3600'
    assert refused.headers["RateLimit"].startswith('"inner";r=0;t=') and "outer" not in refused.headers["RateLimit"]


async def test_two_middlewares_charge_the_same_rules_once_and_share_what_the_handler_counts(limiter: AsyncRateLimiter) -> None:
    budgets = [[Rule(name, user, BUCKET, estimate=400)] for name in ("tokens", "words")]
    told = await asked(application(limiter, RULES, RULES, *budgets))
    assert told.json()["default"] == 2
    assert [(await limiter.peek(f"{name}:ann", BUCKET, 0)).remaining for name in ("tokens", "words")] == [999, 998]


@pytest.mark.parametrize("preflights", [False, True])
async def test_preflights_pass_and_scripts_of_other_origins_may_read_the_headers(
    limiter: AsyncRateLimiter, preflights: bool
) -> None:
    app = application(limiter, [Rule("user", user, "1/h")], preflights=preflights, expose=True)
    fields = {"x-user": "ann", "Access-Control-Request-Method": "GET"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as http:
        first, again = [await http.options("/", headers=fields) for _ in range(2)]
    assert (first.status_code, again.status_code) == (405, 429 if preflights else 405)  # the route has no OPTIONS
    assert ("RateLimit" in first.headers) == preflights
    told = await asked(app)
    assert told.status_code == (429 if preflights else 200)
    assert told.headers["Access-Control-Expose-Headers"] == "RateLimit-Policy, RateLimit, Retry-After"


async def test_an_answer_of_the_applications_own(limiter: AsyncRateLimiter) -> None:
    seen: list[Refusal] = []

    async def answer(request: Request, refusal: Refusal) -> Response:
        seen.append(refusal)
        return PlainTextResponse("no", 420, {"Retry-After": "7"})

    app = application(limiter, [Rule("default", user, "1/h")], on_refused=answer)
    _, refused = [await asked(app) for _ in range(2)]
    assert refused.status_code == 420 and refused.text == "no" and refused.headers["Retry-After"] == "7"
    assert refused.headers["RateLimit-Policy"] == '"default";q=1;w=3600'
    assert refused.headers["content-type"].startswith("text/plain")
    assert seen[0].status == 429 and not seen[0].decisions["default"].allowed


class Connection:
    """A client's side of an HTTP request to an ASGI application."""

    def __init__(self, app: Any, path: str) -> None:
        self.sent: list[Message] = []
        self._first = [{"type": "http.request", "body": b"", "more_body": False}]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"x-user", b"ann")]}
        self.task = asyncio.create_task(app({**scope, "asgi": {"version": "3.0"}}, self._receive, self._send))

    async def until(self, sent: int) -> None:
        async with asyncio.timeout(30):
            while len(self.sent) < sent:
                await asyncio.sleep(0.01)

    async def _receive(self) -> Message:
        if self._first:
            return self._first.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


async def test_a_handler_that_fails_counts_as_the_status_500(limiter: AsyncRateLimiter) -> None:
    async def broken(request: Request) -> Response:
        raise RuntimeError("broken")

    rule = Rule("errors", user, "9/h", counts=lambda status: status == 500)
    for handler, left in (page, 9), (broken, 8):
        with suppress(RuntimeError):
            assert (await asked(RateLimit(Starlette(routes=[Route("/", handler)]), limiter, [rule]))).json() == {"errors": 8}
        assert (await limiter.peek("errors:ann", "9/h", 0)).remaining == left
    with pytest.raises(ConfigurationError, match="needs the middleware"):
        limited(limiter, [rule])


@pytest.mark.parametrize("path", ["/stream", "/after"], ids=["cancelled", "work-after-the-response"])
async def test_a_lease_is_released_when_the_request_is_cancelled_and_before_work_after_the_response(
    limiter: AsyncRateLimiter, path: str
) -> None:
    working = Connection(application(limiter, STREAMS), path)
    await working.until(2)
    if path == "/stream":
        working.task.cancel()
    async with asyncio.timeout(30):
        while (await limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0)).remaining < 2:
            await asyncio.sleep(0.05)
    assert path == "/stream" or not working.task.done()
    working.task.cancel()
    await asyncio.wait([working.task])


async def lifespan(app: Any, sent: list[Message]) -> None:
    """Starts and stops an application as a server does."""
    messages: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)


async def test_a_wrong_rule_lets_the_start_fail(limiter: AsyncRateLimiter) -> None:
    sent: list[Message] = []
    await lifespan(application(limiter, RULES), sent)
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    sent.clear()
    with pytest.raises(ConfigurationError, match="^rule 'big': RL.MULTIPEEK at localhost:") as raised:
        await lifespan(application(limiter, [Rule("big", user, SlidingLog(2_000_000, "1h"))]), sent)
    assert sent == [{"type": "lifespan.startup.failed", "message": str(raised.value)}]


def test_a_test_client_raises_what_is_wrong(server: Server) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0)
    app, raised = application(limiter, [Rule("plan", user, policy="none")]), list[BaseException]()

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


async def test_without_a_handler_a_route_answers_with_the_problem(limiter: AsyncRateLimiter) -> None:
    async def route(request: FastAPIRequest) -> dict[str, int]:
        return {"left": request.scope["decisions"]["default"].remaining}

    limit = Depends(limited(limiter, [Rule("default", user, "1/h")]))
    plain, handled = FastAPI(), FastAPI(exception_handlers={RequestRefused: problem})
    for app in (plain, handled):
        app.get("/", dependencies=[limit])(route)
    assert (await asked(plain)).json() == {"left": 0}
    refused = await asked(plain)
    assert refused.status_code == 429 and refused.json()["detail"]["violated-policies"] == ["default"]
    refused = await asked(handled)
    assert refused.headers["content-type"] == "application/problem+json" and refused.json()["status"] == 429
    assert refused.headers["RateLimit-Policy"] == '"default";q=1;w=3600'


async def test_a_lease_of_a_route_ends_with_its_response(limiter: AsyncRateLimiter) -> None:
    app, free = FastAPI(), Concurrent(1, "1m", "nobody")

    @app.get("/", dependencies=[Depends(limited(limiter, [Rule("pool", user, Concurrent(1, "1m"))]))])
    async def route() -> int:
        return (await limiter.peek("pool:ann", free, 0)).remaining

    for _ in range(2):
        assert (await asked(app)).json() == 0
    assert (await limiter.peek("pool:ann", free, 0)).remaining == 1
