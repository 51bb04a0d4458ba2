"""A Flask application behind the middleware: `gunicorn --threads 60 flask_app:app`. See README.md for its routes and
settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from flask import Flask, Request, Response, g, request
from redis import Redis
from werkzeug.middleware.proxy_fix import ProxyFix

from redis_ratelimit import UNLIMITED, Concurrent, RateLimiter, SlidingLog, TokenBucket, client_address
from redis_ratelimit.types import Unlimited
from redis_ratelimit.flask import RateLimit, Rule, Shed

# The prompt and the answer of a chat, together.
MAX_TOKENS = 400
PLANS = {"staff": UNLIMITED, "pro": SlidingLog(6, "10s")}


def caller(request: Request) -> str:
    return request.headers.get("x-api-key") or request.remote_addr or "unknown"


def on(path: str, who: Callable[[Request], str] = caller) -> Callable[[Request], str | Unlimited | None]:
    """The caller, on this path only."""
    return lambda request: who(request) if request.path == path else UNLIMITED


# The limiter takes the address, and has connections of its own.
limiter = RateLimiter(
    Redis.from_url(os.environ.get("REDIS", "redis://127.0.0.1")),
    fail="closed" if os.environ.get("FAIL") == "closed" else "open",
    timeout=float(os.environ.get("TIMEOUT", 0.1)),
)
app = Flask(__name__)
if "PROXY" in os.environ:
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
RateLimit(
    app,
    limiter,
    rules=[
        Rule("default", key=caller, limit=SlidingLog(100, "10s")),
        Rule("short", key=on("/short"), limit=SlidingLog(2, "1500ms")),
        Rule("streams", key=on("/stream"), limit=Concurrent(5, "1m")),
        Rule("tokens", key=on("/chat"), limit=TokenBucket(1000, 1000, "1d"), estimate=MAX_TOKENS),
        Rule("plan", key=on("/plan"), limit=lambda request: PLANS.get(request.headers.get("x-plan", ""), SlidingLog(3, "10s"))),
        Rule("items", key=on("/items"), limit=SlidingLog(10, "10s"), cost=lambda request: int(request.args["n"])),
        Rule("login", key=on("/login"), limit=SlidingLog(3, "10s"), counts=lambda status: status >= 400),
        Rule("address", key=on("/address", client_address), limit=SlidingLog(2, "1m")),
    ],
    # Reports go first, pages next. What is paid for is never shed.
    shed=Shed(
        "fleet",
        utilization=lambda: float(os.environ.get("UTILIZATION", 0)),
        tier=lambda request: {"/report": 1, "/pay": None}.get(request.path, 2),
        tiers=2,
        delay="200ms",
        ramp="2000ms",
    ),
)
limiter.ready()


@app.get("/stream")
def stream() -> Response:
    def ticks() -> Iterator[bytes]:
        for _ in range(600):
            yield b"tick\n"
            time.sleep(0.1)

    return Response(ticks())


@app.get("/chat")
def chat() -> Response:
    """Streams an answer of this many tokens. The model may fail after one of them."""
    tokens, fail = int(request.args["tokens"]), request.args.get("fail", type=int)
    spent = g.spent
    spent["tokens"] = 0

    def answer() -> Iterator[bytes]:
        for i in range(min(tokens, MAX_TOKENS)):
            if i == fail:
                raise RuntimeError("the model is gone")
            spent["tokens"] += 1
            yield b"word "
            time.sleep(0.01)

    return Response(answer())


@app.get("/login")
def login() -> tuple[str, int]:
    return "ok", 200 if request.args["ok"] == "1" else 401


@app.get("/boom")
def boom() -> str:
    raise RuntimeError("the handler is broken")


@app.route("/", methods=["GET", "OPTIONS"])
@app.route("/<path:path>", methods=["GET", "OPTIONS"])
def page(path: str = "") -> str:
    return "ok"
