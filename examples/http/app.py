"""A FastAPI application behind the middleware: `uvicorn app:app`. REDIS, FAIL and UTILIZATION come from the environment."""

import asyncio
import os

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from ratelimit_asgi import Policy, RateLimit, Shed
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def caller(scope):
    key = dict(scope["headers"]).get(b"x-api-key")
    return key.decode("latin-1") if key else scope["client"][0]


def on(path):
    """The caller, on this path only."""
    return lambda scope: caller(scope) if scope["path"] == path else None


# The prompt and the answer of a chat, together.
MAX_TOKENS = 400

app = FastAPI()
app.add_middleware(
    RateLimit,
    redis=Redis.from_url(os.environ.get("REDIS", "redis://127.0.0.1"), retry=Retry(NoBackoff(), 1)),
    policies=[
        Policy("default", caller, ("SLIDINGLOG", 100, "10s"), window=10),
        Policy("short", on("/short"), ("SLIDINGLOG", 2, "1500ms"), window=2),
        Policy("streams", on("/stream"), ("CONCURRENT", 5, "1m")),
        Policy("tokens", on("/chat"), ("TOKENBUCKET", 1000, 1000, "1d"), 86_400, estimate=lambda scope: MAX_TOKENS),
    ],
    # Reports go first, pages next; what is paid for is never shed.
    shed=Shed(
        "fleet",
        utilization=lambda: float(os.environ.get("UTILIZATION", 0)),
        tier=lambda scope: {"/report": 1, "/pay": None}.get(scope["path"], 2),
        tiers=2,
        options=("DELAY", 200, "RAMP", 2_000),
    ),
    timeout=float(os.environ.get("TIMEOUT", 0.1)),
    fail=os.environ.get("FAIL", "open"),
)


@app.get("/stream")
async def stream():
    async def ticks():
        for _ in range(600):
            yield b"tick\n"
            await asyncio.sleep(0.1)

    return StreamingResponse(ticks())


@app.get("/chat")
async def chat(request: Request, tokens: int, fail: int | None = None):
    """Streams an answer of this many tokens. The model may fail after one of them."""
    spent = request.scope["spent"]
    spent["tokens"] = 0

    async def answer():
        for i in range(min(tokens, MAX_TOKENS)):
            if i == fail:
                raise RuntimeError("the model is gone")
            spent["tokens"] += 1
            yield b"word "
            await asyncio.sleep(0.01)

    return StreamingResponse(answer())


@app.get("/{path:path}")
async def page():
    return "ok"
