"""The extension for Flask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("flask")

import redis
from flask import Flask, Request, Response, g, request, session

from redis_ratelimit import (
    UNLIMITED,
    CallError,
    Concurrent,
    ConfigurationError,
    RateLimiter,
    SlidingLog,
    TokenBucket,
    Unlimited,
)
from redis_ratelimit.flask import RateLimit, Rule
from servers import Server, eventually

BUCKET = TokenBucket(1000, 1000, "1d")


def caller(request: Request) -> str | None:
    return request.headers.get("x-api-key")


def on(path: str) -> Callable[[Request], str | Unlimited | None]:
    return lambda request: caller(request) if request.path == path else UNLIMITED


RULES = [
    Rule("default", caller, SlidingLog(3, "1h")),
    Rule("streams", on("/stream"), Concurrent(2, "1m")),
    Rule("tokens", on("/chat"), BUCKET, estimate=lambda request: int(request.args["estimate"])),
]


def application() -> Flask:
    app = Flask("test")

    @app.get("/")
    def page() -> str:
        return "ok"

    @app.get("/broken")
    def broken() -> str:
        g.spent["tokens"] = 1
        raise RuntimeError("broken")

    @app.get("/stream")
    def stream() -> Response:
        return Response(iter(["tick\n"] * 1000))

    @app.get("/chat")
    def chat() -> Response:
        spent, words = g.spent, request.args["words"].split()
        spent["tokens"] = 0

        def answer() -> Iterator[str]:
            for word in words:
                spent["tokens"] += 1
                yield word
                if word == "fail":
                    raise RuntimeError("the model is gone")

        return Response(answer())

    return app


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def client(limiter: RateLimiter, rules: list[Rule[Request]] = RULES, app: Flask | None = None) -> Any:
    app = app or application()
    RateLimit(app, limiter, rules)
    return app.test_client()


ANN = {"x-api-key": "ann"}


def free(limiter: RateLimiter) -> int:
    return limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0).remaining


def test_a_response_has_headers_and_a_refusal_is_a_problem(limiter: RateLimiter) -> None:
    http = client(limiter)
    told = [http.get("/", headers=ANN) for _ in range(4)]
    assert [each.status_code for each in told] == [200, 200, 200, 429]
    assert told[0].text == "ok"
    assert told[0].headers["RateLimit-Policy"] == '"default";q=3;w=3600'
    assert told[0].headers["RateLimit"] == '"default";r=2;t=3600'
    assert told[3].content_type == "application/problem+json"
    assert told[3].headers.getlist("Content-Type") == ["application/problem+json"]
    assert told[3].json["violated-policies"] == ["default"]
    assert 3500 < int(told[3].headers["Retry-After"]) <= 3600
    assert http.get("/nowhere", headers={"x-api-key": "bob"}).headers["RateLimit"] == '"default";r=2;t=3600'


@pytest.mark.parametrize("raised", [True, False], ids=["raised", "answered"])
def test_a_handler_that_fails_releases_its_lease(limiter: RateLimiter, raised: bool) -> None:
    app = application()
    app.config["PROPAGATE_EXCEPTIONS"] = raised
    http = client(limiter, [Rule("streams", caller, Concurrent(2, "1m")), Rule("tokens", caller, BUCKET, estimate=9)], app)
    try:
        assert http.get("/broken", headers=ANN, buffered=True).status_code == 500
    except RuntimeError:
        assert raised
    assert free(limiter) == 2
    assert limiter.peek("tokens:ann", BUCKET, 0).remaining == 999


@pytest.mark.parametrize(("words", "left"), [("one two three", 997), ("one fail three", 998)])
def test_a_budget_is_settled_after_the_response(limiter: RateLimiter, words: str, left: int) -> None:
    http = client(limiter)
    response = http.get("/chat", query_string={"estimate": 400, "words": words}, headers=ANN, buffered=False)
    assert limiter.peek("tokens:ann", BUCKET, 0).remaining == 600
    try:
        list(response.response)
    except RuntimeError:
        assert "fail" in words
    response.close()
    assert left <= limiter.peek("tokens:ann", BUCKET, 0).remaining <= left + 1


@pytest.mark.parametrize("raised", [True, False], ids=["raised", "answered"])
@pytest.mark.parametrize("fault", ["session", "first", "second", "always"])
def test_an_error_after_the_handler_releases_its_lease(limiter: RateLimiter, raised: bool, fault: str) -> None:
    """The session, and functions of after_request that are called after the extension's, or before it."""
    app = application()
    app.config["PROPAGATE_EXCEPTIONS"] = raised
    failed: list[bool] = []

    def failing(response: Response) -> Response:
        if fault == "always" or not failed:
            failed.append(True)
            raise RuntimeError("broken")
        return response

    if fault in ("first", "always"):
        app.after_request(failing)
    RateLimit(app, limiter, [Rule("streams", caller, Concurrent(2, "1m")), Rule("tokens", caller, BUCKET, estimate=9)])
    if fault == "second":
        app.after_request(failing)
    if fault == "session":
        app.secret_key = "secret"

        @app.get("/session")
        def unsaved() -> str:
            g.spent["tokens"] = 1
            session["unserializable"] = object()
            return "ok"

    http = app.test_client()
    for _ in range(3):
        failed.clear()
        try:
            told = http.get("/session" if fault == "session" else "/", headers=ANN, buffered=True)
            assert told.status_code == 500
        except (RuntimeError, TypeError):
            assert raised
        assert free(limiter) == 2
    info = limiter.commands.info("tokens:ann") or {}
    assert not info.get("holds")


def test_a_lease_is_released_when_the_server_closes_the_response(limiter: RateLimiter) -> None:
    http = client(limiter)
    streams = [http.get("/stream", headers=ANN, buffered=False) for _ in range(2)]
    assert free(limiter) == 0
    assert http.get("/stream", headers=ANN).status_code == 429
    for each in streams:
        next(each.response)
        each.close()
    assert free(limiter) == 2


def test_a_wrong_rule_is_an_error_at_start(limiter: RateLimiter) -> None:
    app = application()
    app.testing = True
    limits = RateLimit(None, limiter, [Rule("big", caller, SlidingLog(2_000_000, "1h"))])
    limits.init_app(app)
    with pytest.raises(ConfigurationError, match="rule 'big'"):
        limiter.ready()
    with pytest.raises(CallError):
        app.test_client().get("/", headers=ANN)


@pytest.mark.parametrize(("fail", "status"), [("open", 200), ("closed", 503)])
def test_it_fails_as_the_limiter_says(fail: Any, status: int) -> None:
    with Server() as server:
        limiter = RateLimiter(redis.Redis(port=server.port), timeout=0.2, fail=fail)
    told = client(limiter).get("/", headers=ANN)
    assert (told.status_code, "RateLimit" in told.headers) == (status, False)
    assert told.headers.get("Retry-After") == (None if fail == "open" else "1")
    limiter.close()


def test_a_slow_moment_keeps_no_lease() -> None:
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=0.3) as limiter:
        http = client(limiter)
        assert http.get("/", headers={"x-api-key": "bob"}).status_code == 200
        with server.frozen():
            assert [http.get("/stream", headers=ANN, buffered=True).status_code for _ in range(2)] == [200, 200]
        bare = RateLimiter(redis.Redis(port=server.port), timeout=5.0)
        eventually(lambda: free(bare) == 2, "the release")
        bare.close()


def test_two_extensions_of_an_application_limit_both(limiter: RateLimiter) -> None:
    app = application()
    RateLimit(app, limiter, [Rule("streams", caller, Concurrent(2, "1m")), Rule("other", caller, BUCKET, estimate=9)])
    http = client(limiter, app=app)
    with app.app_context():  # whose `g` all these requests share
        told = http.get("/chat", query_string={"estimate": 400, "words": "one two"}, headers=ANN, buffered=True)
        assert told.headers["RateLimit-Policy"] == (
            '"default";q=3;w=3600, "tokens";q=1000;w=86400, "streams";q=2;qu="concurrent-requests", "other";q=1000;w=86400'
        )
        assert (free(limiter), limiter.peek("default:ann", SlidingLog(3, "1h"), 0).remaining) == (2, 2)
        assert limiter.peek("tokens:ann", BUCKET, 0).remaining == 998
        assert [http.get("/", headers=ANN, buffered=True).status_code for _ in range(3)] == [200, 200, 429]
    assert free(limiter) == 2
    info = limiter.commands.info("other:ann") or {}
    assert not info.get("holds")


def test_the_handler_counts_for_all_extensions(limiter: RateLimiter) -> None:
    app = application()
    RateLimit(app, limiter, [Rule("tokens", caller, BUCKET, estimate=400)])
    RateLimit(app, limiter, [Rule("words", caller, BUCKET, estimate=400)])

    @app.get("/both")
    def both() -> str:
        g.spent.update({"tokens": 1, "words": 2})
        return "ok"

    assert app.test_client().get("/both", headers=ANN, buffered=True).status_code == 200
    assert [limiter.peek(f"{name}:ann", BUCKET, 0).remaining for name in ("tokens", "words")] == [999, 998]


def test_an_extension_limits_an_application_once(limiter: RateLimiter) -> None:
    app = application()
    limits = RateLimit(app, limiter, RULES)
    with pytest.raises(ConfigurationError, match="init_app was called twice with this application"):
        limits.init_app(app)
    limits.init_app(application())
