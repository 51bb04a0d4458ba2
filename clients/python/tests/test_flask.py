"""The extension for Flask, beyond the six applications of clients/http."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("flask")

import redis
from flask import Flask, Request, Response, abort, g, session

from redis_ratelimit import Concurrent, ConfigurationError, RateLimiter, TokenBucket
from redis_ratelimit.flask import RateLimit, Rule, limited
from servers import Server

BUCKET = TokenBucket(1000, 1000, "1d")
ANN = {"x-user": "ann"}


def user(request: Request) -> str:
    return request.headers["x-user"]


TAKING = [Rule("streams", user, Concurrent(2, "1m")), Rule("tokens", user, BUCKET, estimate=9)]


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def application(propagate: bool | None = None) -> Flask:
    app = Flask("test")
    app.config["PROPAGATE_EXCEPTIONS"] = propagate

    @app.get("/")
    def page() -> dict[str, int]:
        g.spent.update({"tokens": 1, "words": 2})
        return {name: each.remaining for name, each in g.decisions.items()}

    @app.get("/broken")
    def broken() -> str:
        g.spent["tokens"] = 1
        raise RuntimeError("broken")

    @app.get("/session")
    def unsaved() -> str:
        session["unserializable"] = object()
        return "ok"

    return app


def failing(always: bool, failed: list[bool]) -> Callable[[Response], Response]:
    """A function of after_request, which is called for the error too."""

    def fail(response: Response) -> Response:
        if always or not failed:
            failed.append(True)
            raise RuntimeError("broken")
        return response

    return fail


@pytest.mark.parametrize("raised", [True, False], ids=["raised", "answered"])
@pytest.mark.parametrize("fault", ["handler", "session", "first", "second", "always"])
def test_an_error_releases_the_lease(limiter: RateLimiter, raised: bool, fault: str) -> None:
    """In the handler, the session, and functions of after_request that are called after the extension's, or before it."""
    app, failed = application(raised), list[bool]()
    app.secret_key = "secret"
    if fault in ("first", "always"):
        app.after_request(failing(fault == "always", failed))
    RateLimit(app, limiter, TAKING)
    if fault == "second":
        app.after_request(failing(False, failed))
    http = app.test_client()
    for _ in range(3):
        failed.clear()
        try:
            path = {"handler": "/broken", "session": "/session"}.get(fault, "/")
            assert http.get(path, headers=ANN, buffered=True).status_code == 500
        except (RuntimeError, TypeError):
            assert raised
        assert limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0).remaining == 2
    assert not (limiter.commands.info("tokens:ann") or {}).get("holds")


def test_two_extensions_of_an_application_limit_both(limiter: RateLimiter) -> None:
    app = application()
    RateLimit(app, limiter, [*TAKING, Rule("words", user, BUCKET, estimate=400)])
    RateLimit(app, limiter, [Rule("default", user, "3/h")])
    http = app.test_client()
    with app.app_context():  # whose `g` all these requests share
        told = http.get("/", headers=ANN, buffered=True)
        assert told.headers["RateLimit-Policy"] == (
            '"default";q=3;w=3600, "streams";q=2;qu="concurrent-requests", "tokens";q=1000;w=86400, "words";q=1000;w=86400'
        )
        assert [limiter.peek(f"{name}:ann", BUCKET, 0).remaining for name in ("tokens", "words")] == [999, 998]
        assert [http.get("/", headers=ANN, buffered=True).status_code for _ in range(3)] == [200, 200, 429]
    assert limiter.peek("streams:ann", Concurrent(2, "1m", "nobody"), 0).remaining == 2
    assert not (limiter.commands.info("words:ann") or {}).get("holds")


def test_an_extension_limits_an_application_once(limiter: RateLimiter) -> None:
    app = application()
    limits = RateLimit(app, limiter, TAKING)
    with pytest.raises(ConfigurationError, match="init_app was called twice with this application"):
        limits.init_app(app)
    limits.init_app(application())


def test_limits_of_a_route_add_up_skip_requests_and_show_decisions(limiter: RateLimiter) -> None:
    def internal(request: Request) -> bool:
        return user(request) == "probe"

    app = application()
    RateLimit(app, limiter, [Rule("outer", user, "9/h")], skip=internal)
    app.add_url_rule("/route", "route", limited(limiter, [Rule("inner", user, "1/h")], skip=internal)(app.view_functions["page"]))
    client = app.test_client()
    first, refused = [client.get("/route", headers=ANN) for _ in range(2)]
    assert first.json == {"inner": 0, "outer": 8}
    assert first.headers["RateLimit-Policy"] == '"inner";q=1;w=3600, "outer";q=9;w=3600'
    assert refused.status_code == 429 and refused.headers.getlist("Content-Type") == ["application/problem+json"]
    assert refused.headers["RateLimit-Policy"] == '"inner";q=1;w=3600, "outer";q=9;w=3600'
    assert "outer" not in refused.headers["RateLimit"]
    probe = client.get("/route", headers={"x-user": "probe"})
    assert probe.json == {} and "RateLimit" not in probe.headers
    # Responses of the framework have them too.
    assert client.get("/nowhere", headers=ANN).headers["RateLimit"].startswith('"outer";r=')


def test_a_view_counts_by_the_status_of_its_error(limiter: RateLimiter) -> None:
    def view(status: int) -> str:
        if status == 500:
            raise RuntimeError("broken")
        abort(status)

    app, rule = application(propagate=False), Rule("login", user, "9/h", counts=lambda status: status in (401, 500))
    app.add_url_rule("/login/<int:status>", "login", limited(limiter, [rule])(view))
    for status, left in (401, 8), (404, 8), (500, 7):
        response = app.test_client().get(f"/login/{status}", headers=ANN)
        assert response.status_code == status and response.headers["RateLimit-Policy"] == '"login";q=9;w=3600'
        assert limiter.peek("login:ann", "9/h", 0).remaining == left
