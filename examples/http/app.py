"""Limits in front of a FastAPI application: `REDIS=redis://127.0.0.1 uvicorn app:app`."""

import os

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from redis.asyncio import Redis
from redis_ratelimit import UNLIMITED, AsyncRateLimiter, Concurrent, TokenBucket, client_address
from redis_ratelimit.asgi import RateLimit, Rule

OWNERS = {"a-secret-key": "acme", "another-key": "staff"}
PLANS = {"acme": "600/m", "staff": UNLIMITED}


def caller(request):  # the owner of the key: the server stores this name, so it must be no secret
    return OWNERS.get(request.headers.get("x-api-key")) or client_address(request)


def chatting(request):
    return caller(request) if request.url.path == "/chat" else UNLIMITED


rules = [
    Rule("requests", key=caller, limit=lambda request: PLANS.get(caller(request), "60/m")),
    Rule("streams", key=chatting, limit=Concurrent(2, "30s")),
    Rule("tokens", key=chatting, limit=TokenBucket(9000, 9000, "1m"), estimate=400),
]
app = FastAPI()
app.add_middleware(RateLimit, limiter=AsyncRateLimiter(Redis.from_url(os.environ["REDIS"])), rules=rules)


@app.get("/chat")
async def chat(request: Request):
    spent = request.scope["spent"]
    spent["tokens"] = 0
    async def answer():
        for word in "what the model says".split():
            spent["tokens"] += 1
            yield word + " "

    return StreamingResponse(answer())
