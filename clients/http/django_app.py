"""A Django application behind the middleware, in one file: `gunicorn --threads 60 django_app:app` runs it on threads, and
`ASYNC=1 uvicorn django_app:app` on asyncio. See README.md for its routes and settings."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import re_path

from redis_ratelimit import UNLIMITED, Concurrent, SlidingLog, TokenBucket, client_address
from redis_ratelimit.types import Unlimited
from redis_ratelimit.django import Rule, Shed

# The prompt and the answer of a chat, together.
MAX_TOKENS = 400
PLANS = {"staff": UNLIMITED, "pro": SlidingLog(6, "10s")}


def caller(request: HttpRequest) -> str:
    return request.headers.get("x-api-key") or request.META["REMOTE_ADDR"]


def address(request: HttpRequest) -> str:
    """Of the client. A proxy in front adds the last address of the header."""
    return client_address(request.headers["x-forwarded-for"].split(",")[-1] if "PROXY" in os.environ else request)


def on(path: str, who: Callable[[HttpRequest], str] = caller) -> Callable[[HttpRequest], str | Unlimited | None]:
    """The caller, on this path only."""
    return lambda request: who(request) if request.path == path else UNLIMITED


settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["redis_ratelimit.django.RateLimit"],
    RATELIMIT={
        "REDIS": os.environ.get("REDIS", "redis://127.0.0.1"),
        "OPTIONS": {"fail": os.environ.get("FAIL", "open"), "timeout": float(os.environ.get("TIMEOUT", 0.1))},
        "RULES": [
            Rule("default", key=caller, limit=SlidingLog(100, "10s")),
            Rule("short", key=on("/short"), limit=SlidingLog(2, "1500ms")),
            Rule("streams", key=on("/stream"), limit=Concurrent(5, "1m")),
            Rule("tokens", key=on("/chat"), limit=TokenBucket(1000, 1000, "1d"), estimate=MAX_TOKENS),
            Rule("plan", key=on("/plan"), limit=lambda request: PLANS.get(request.headers.get("x-plan"), SlidingLog(3, "10s"))),
            Rule("items", key=on("/items"), limit=SlidingLog(10, "10s"), cost=lambda request: int(request.GET["n"])),
            Rule("login", key=on("/login"), limit=SlidingLog(3, "10s"), counts=lambda status: status >= 400),
            Rule("address", key=on("/address", address), limit=SlidingLog(2, "1m")),
        ],
        # Reports go first, pages next. What is paid for is never shed.
        "SHED": Shed[HttpRequest](
            "fleet",
            utilization=lambda: float(os.environ.get("UTILIZATION", 0)),
            tier=lambda request: {"/report": 1, "/pay": None}.get(request.path, 2),
            tiers=2,
            delay="200ms",
            ramp="2000ms",
        ),
    },
)


def words(request: HttpRequest) -> Iterator[bytes]:
    """An answer of some tokens. The model may fail after one of them."""
    fail, spent = int(request.GET.get("fail", -1)), getattr(request, "spent")
    spent["tokens"] = 0
    for i in range(min(int(request.GET["tokens"]), MAX_TOKENS)):
        if i == fail:
            raise RuntimeError("the model is gone")
        spent["tokens"] += 1
        yield b"word "


def paused(parts: Iterable[bytes], pause: float) -> Iterator[bytes]:
    for part in parts:
        yield part
        time.sleep(pause)


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(paused([b"tick\n"] * 600, 0.1))


def chat(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(paused(words(request), 0.01))


# On asyncio the same as coroutines. Django does not stop a view for threads when its client has gone.


async def async_paused(parts: Iterable[bytes], pause: float) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(pause)


async def async_stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(async_paused([b"tick\n"] * 600, 0.1))


async def async_chat(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(async_paused(words(request), 0.01))


def login(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", status=200 if request.GET["ok"] == "1" else 401)


def boom(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the handler is broken")


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


ON_ASYNCIO = "ASYNC" in os.environ
urlpatterns = [
    re_path("^stream$", async_stream if ON_ASYNCIO else stream),
    re_path("^chat$", async_chat if ON_ASYNCIO else chat),
    re_path("^login$", login),
    re_path("^boom$", boom),
    re_path("", page),
]
django.setup()
app = get_asgi_application() if ON_ASYNCIO else get_wsgi_application()
