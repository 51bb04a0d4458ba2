"""Limits of single routes of FastAPI, with an answer of the application's own: `uvicorn fastapi_routes:app`."""

import os

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from redis.asyncio import Redis

from redis_ratelimit import AsyncRateLimiter
from redis_ratelimit.asgi import RequestRefused, Rule, limited

app = FastAPI()
limiter = AsyncRateLimiter(Redis(port=int(os.environ.get("REDIS_PORT", "6379"))))


async def caller(request: Request) -> str:
    return request.headers.get("x-user") or "anonymous"  # a database may say who it is


@app.exception_handler(RequestRefused)
async def too_many(request: Request, error: RequestRefused) -> JSONResponse:
    return JSONResponse({"error": "slow down", "seconds": error.refusal.retry_after}, error.status_code, error.headers)


@app.get("/search", dependencies=[Depends(limited(limiter, [Rule("search", caller, "2/m")]))])
async def search() -> dict[str, str]:
    return {"found": "nothing"}
