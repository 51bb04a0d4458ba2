"""A FastAPI application behind the middleware: `uvicorn fastapi_app:app`. See README.md for its routes and settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from redis.asyncio import Redis

from redis_ratelimit import UNLIMITED, AsyncRateLimiter, Concurrent, SlidingLog, TokenBucket, client_address
from redis_ratelimit.types import Unlimited
from redis_ratelimit.asgi import RateLimit, Rule, Shed

# The prompt and the answer of a chat, together.
MAX_TOKENS = 400
PLANS = {"staff": UNLIMITED, "pro": SlidingLog(6, "10s")}


def caller(request: Request) -> str:
    return request.headers.get("x-api-key") or (request.client.host if request.client else "unknown")


def on(path: str, who: Callable[[Request], str] = caller) -> Callable[[Request], str | Unlimited | None]:
    """The caller, on this path only."""
    return lambda request: who(request) if request.url.path == path else UNLIMITED


# The limiter takes the address, and has connections of its own.
limiter = AsyncRateLimiter(
    Redis.from_url(os.environ.get("REDIS", "redis://127.0.0.1")),
    fail="closed" if os.environ.get("FAIL") == "closed" else "open",
    timeout=float(os.environ.get("TIMEOUT", 0.1)),
)
app = FastAPI()
app.add_middleware(
    RateLimit,
    limiter=limiter,
    rules=[
        Rule("default", key=caller, limit=SlidingLog(100, "10s")),
        Rule("short", key=on("/short"), limit=SlidingLog(2, "1500ms")),
        Rule("streams", key=on("/stream"), limit=Concurrent(5, "1m")),
        Rule("tokens", key=on("/chat"), limit=TokenBucket(1000, 1000, "1d"), estimate=MAX_TOKENS),
        Rule("plan", key=on("/plan"), limit=lambda request: PLANS.get(request.headers.get("x-plan", ""), SlidingLog(3, "10s"))),
        Rule("items", key=on("/items"), limit=SlidingLog(10, "10s"), cost=lambda request: int(request.query_params["n"])),
        Rule("login", key=on("/login"), limit=SlidingLog(3, "10s"), counts=lambda status: status >= 400),
        Rule("address", key=on("/address", client_address), limit=SlidingLog(2, "1m")),
    ],
    # Reports go first, pages next. What is paid for is never shed.
    shed=Shed(
        "fleet",
        utilization=lambda: float(os.environ.get("UTILIZATION", 0)),
        tier=lambda request: {"/report": 1, "/pay": None}.get(request.url.path, 2),
        tiers=2,
        delay="200ms",
        ramp="2000ms",
    ),
)


@app.get("/stream")
async def stream() -> StreamingResponse:
    async def ticks() -> AsyncIterator[bytes]:
        for _ in range(600):
            yield b"tick\n"
            await asyncio.sleep(0.1)

    return StreamingResponse(ticks())


@app.get("/chat")
async def chat(request: Request, tokens: int, fail: int | None = None) -> StreamingResponse:
    """Streams an answer of this many tokens. The model may fail after one of them."""
    spent = request.scope["spent"]
    spent["tokens"] = 0

    async def answer() -> AsyncIterator[bytes]:
        for i in range(min(tokens, MAX_TOKENS)):
            if i == fail:
                raise RuntimeError("the model is gone")
            spent["tokens"] += 1
            yield b"word "
            await asyncio.sleep(0.01)

    return StreamingResponse(answer())


@app.get("/login")
async def login(ok: bool) -> PlainTextResponse:
    return PlainTextResponse("ok", 200 if ok else 401)


@app.get("/boom")
async def boom() -> None:
    raise RuntimeError("the handler is broken")


@app.api_route("/{path:path}", methods=["GET", "OPTIONS"])
async def page(path: str) -> PlainTextResponse:
    return PlainTextResponse("ok")
