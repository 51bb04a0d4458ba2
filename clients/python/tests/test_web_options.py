"""What middleware may do besides: limits of single routes, answers and headers of one's own, several in front of one another."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("fastapi")
pytest.importorskip("flask")
pytest.importorskip("django")
httpx = pytest.importorskip("httpx")

import redis
import redis.asyncio
from fastapi import Depends, FastAPI, Request as FastAPIRequest
from flask import Flask, Request as FlaskRequest, g
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
import test_django as _  # configures Django
from django.http import HttpRequest, HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from gates import caller as named_user
from redis_ratelimit import AsyncRateLimiter, ConfigurationError, Gate, RateLimiter, Refusal, SlidingLog
from redis_ratelimit import asgi, django as dj, flask as fl
from redis_ratelimit.asgi import Rule
from servers import Server

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of a program, whose server is this one."""
    monkeypatch.setenv("REDIS_PORT", str(server.port))
    server.client.flushall()
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, name, module)
    spec.loader.exec_module(module)
    return module


async def asked(app: Any, path: str = "/", **headers: str) -> Any:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
        return await client.get(path, headers=headers)


# The programs


async def test_the_program_for_fastapi(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    program = example("fastapi_routes", server, monkeypatch)
    answers = [await asked(program.app, "/search", **{"x-user": "ann"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[0].headers["RateLimit"].startswith('"search";r=1;t=')
    refusal = answers[2]
    assert refusal.json()["error"] == "slow down" and 0 < refusal.json()["seconds"] <= 30
    assert refusal.headers["RateLimit"].startswith('"search";r=0;t=') and 0 < int(refusal.headers["Retry-After"]) <= 30
    assert refusal.headers.get_list("content-type") == ["application/json"]
    assert (await asked(program.app, "/search", **{"x-user": "bob"})).status_code == 200
    await program.limiter.close()


def test_the_program_for_flask(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    program = example("flask_routes", server, monkeypatch)
    client = program.app.test_client()
    answers = [client.get("/search", headers={"x-user": "ann"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[0].headers["RateLimit"].startswith('"search";r=1;t=')
    refusal = answers[2]
    assert refusal.json["error"] == "slow down" and 0 < refusal.json["seconds"] <= 30
    assert refusal.headers["RateLimit"].startswith('"search";r=0;t=') and 0 < int(refusal.headers["Retry-After"]) <= 30
    assert client.get("/search", headers={"x-user": "bob"}).status_code == 200
    program.limiter.close()


def test_the_programs_are_short() -> None:
    for path in EXAMPLES.glob("*.py"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) <= 22, f"{path.name} has {len(lines)} lines"


# ASGI


def user(request: Request) -> str:
    return request.headers["x-user"]


async def slow_user(request: Request) -> str:
    await asyncio.sleep(0.001)
    return request.headers["x-user"]


async def page(request: Request) -> Response:
    return JSONResponse({name: each.remaining for name, each in request.scope["decisions"].items()})


@pytest.fixture
def on_loop(server: Server, key: str) -> AsyncRateLimiter:
    return AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0)


def stack(limiter: AsyncRateLimiter, *gates: dict[str, Any]) -> Any:
    app: Any = Starlette(routes=[Route("/", page)])
    for options in gates:
        app = asgi.RateLimit(app, limiter, **options)
    return app


async def test_keys_and_limits_may_be_asynchronous(on_loop: AsyncRateLimiter) -> None:
    async def plan(request: Request) -> str:
        return "2/h" if await slow_user(request) == "ann" else "9/h"

    app = stack(on_loop, {"rules": [Rule("default", slow_user, plan)]})
    assert [(await asked(app, **{"x-user": "ann"})).status_code for _ in range(3)] == [200, 200, 429]
    assert (await asked(app, **{"x-user": "bob"})).json() == {"default": 8}


async def test_headers_of_two_middlewares_add_up(on_loop: AsyncRateLimiter) -> None:
    app = stack(on_loop, {"rules": [Rule("inner", user, "2/h")]}, {"rules": [Rule("outer", user, "9/h")]})
    first, _, refused = [await asked(app, **{"x-user": "ann"}) for _ in range(3)]
    assert first.json() == {"inner": 1, "outer": 8}
    assert first.headers["RateLimit-Policy"] == '"inner";q=2;w=3600, "outer";q=9;w=3600'
    assert [part.partition(";t")[0] for part in first.headers["RateLimit"].split(", ")] == ['"inner";r=1', '"outer";r=8']
    assert refused.status_code == 429
    assert refused.headers["RateLimit-Policy"] == '"inner";q=2;w=3600, "outer";q=9;w=3600'
    assert refused.headers["RateLimit"].startswith('"inner";r=0;t=') and "outer" not in refused.headers["RateLimit"]


async def test_an_answer_of_the_applications_own(on_loop: AsyncRateLimiter) -> None:
    seen: list[Refusal] = []

    async def answer(request: Request, refusal: Refusal) -> Response:
        seen.append(refusal)
        return PlainTextResponse("no", 420, {"Retry-After": "7"})

    app = stack(on_loop, {"rules": [Rule("default", user, "1/h")], "on_refused": answer})
    assert (await asked(app, **{"x-user": "ann"})).status_code == 200
    refused = await asked(app, **{"x-user": "ann"})
    assert refused.status_code == 420 and refused.text == "no" and refused.headers["Retry-After"] == "7"
    assert refused.headers["RateLimit-Policy"] == '"default";q=1;w=3600'
    assert refused.headers["content-type"].startswith("text/plain")
    assert seen[0].status == 429 and seen[0].violated == ["default"] and 3590 < (seen[0].retry_after or 0) <= 3600
    assert not seen[0].decisions["default"].allowed


async def test_requests_are_skipped(on_loop: AsyncRateLimiter) -> None:
    async def internal(request: Request) -> bool:
        return request.headers["x-user"] == "probe"

    app = stack(on_loop, {"rules": [Rule("default", user, "1/h")], "skip": internal})
    for _ in range(3):
        answer = await asked(app, **{"x-user": "probe"})
        assert answer.status_code == 200 and "RateLimit" not in answer.headers
    assert [(await asked(app, **{"x-user": "ann"})).status_code for _ in range(2)] == [200, 429]


async def test_legacy_headers_and_none(on_loop: AsyncRateLimiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_loop.runtime, "wall", lambda: 1_700_000_000.25)
    rules = [Rule("many", user, SlidingLog(9, "1h")), Rule("few", user, SlidingLog(1, "1h"))]
    app = stack(on_loop, {"rules": rules, "headers": "legacy"})
    first, refused = [await asked(app, **{"x-user": "ann"}) for _ in range(2)]
    names = [f"X-RateLimit-{name}" for name in ("Limit", "Remaining", "Reset")]
    assert [first.headers[name] for name in names] == ["1", "0", "1700003601"]
    assert "RateLimit" not in first.headers and "Retry-After" not in first.headers
    assert refused.status_code == 429 and refused.headers["X-RateLimit-Limit"] == "1" and "Retry-After" in refused.headers
    silent = stack(on_loop, {"rules": rules, "headers": "off"})
    refused = await asked(silent, **{"x-user": "ann"})
    assert "Retry-After" in refused.headers and "ratelimit" not in str(refused.headers).lower()
    with pytest.raises(ConfigurationError, match="headers must be 'draft', 'legacy' or 'off', not 'x'"):
        stack(on_loop, {"rules": rules, "headers": "x"})


async def test_without_a_handler_a_route_answers_with_the_problem(on_loop: AsyncRateLimiter) -> None:
    async def route(request: FastAPIRequest) -> dict[str, int]:
        return {"left": request.scope["decisions"]["default"].remaining}

    limit = Depends(asgi.limited(on_loop, [Rule("default", user, "1/h")]))
    plain, handled = FastAPI(), FastAPI(exception_handlers={asgi.RequestRefused: asgi.problem})
    for app in (plain, handled):
        app.get("/", dependencies=[limit])(route)
    assert (await asked(plain, **{"x-user": "ann"})).json() == {"left": 0}
    refused = await asked(plain, **{"x-user": "ann"})
    assert refused.status_code == 429 and refused.json()["detail"]["violated-policies"] == ["default"]
    refused = await asked(handled, **{"x-user": "ann"})
    assert refused.headers["content-type"] == "application/problem+json" and refused.json()["status"] == 429
    assert refused.headers["RateLimit-Policy"] == '"default";q=1;w=3600'


async def test_a_lease_of_a_route_ends_with_its_response(on_loop: AsyncRateLimiter, server: Server, key: str) -> None:
    from redis_ratelimit import Concurrent

    app = FastAPI()

    @app.get("/", dependencies=[Depends(asgi.limited(on_loop, [Rule("pool", user, Concurrent(1, "1m"))]))])
    async def route() -> int:
        return int(server.client.execute_command("RL.PEEK", f"{key}:pool:ann", "CONCURRENT", 1, "1m", "x")[0])

    for _ in range(2):
        assert (await asked(app, **{"x-user": "ann"})).json() == 1
    assert not server.client.execute_command("RL.PEEK", f"{key}:pool:ann", "CONCURRENT", 1, "1m", "x")[0]


# Flask, Django, and no framework


def test_flask_stacks_skips_and_shows_decisions(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        app = Flask("test")

        def who(request: FlaskRequest) -> str:
            return request.headers["x-user"]

        def internal(request: FlaskRequest) -> bool:
            return request.headers["x-user"] == "probe"

        fl.RateLimit(app, limiter, [fl.Rule[FlaskRequest]("outer", who, "9/h")], skip=internal)

        @app.get("/")
        @fl.limited(limiter, [fl.Rule[FlaskRequest]("inner", who, "1/h")], skip=internal)
        def view() -> dict[str, int]:
            return {name: each.remaining for name, each in g.decisions.items()}

        client = app.test_client()
        first, refused = [client.get("/", headers={"x-user": "ann"}) for _ in range(2)]
        assert first.json == {"inner": 0, "outer": 8}
        assert first.headers["RateLimit-Policy"] == '"inner";q=1;w=3600, "outer";q=9;w=3600'
        assert refused.status_code == 429 and refused.mimetype == "application/problem+json"
        assert refused.headers["RateLimit-Policy"] == '"inner";q=1;w=3600, "outer";q=9;w=3600'
        assert "outer" not in refused.headers["RateLimit"]
        probe = client.get("/", headers={"x-user": "probe"})
        assert probe.json == {} and "RateLimit" not in probe.headers


def test_django_limits_a_view(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        rules = [dj.Rule[HttpRequest]("default", lambda request: request.headers["x-user"], "1/h")]

        @dj.limited(limiter, rules, on_refused=lambda request, refusal: HttpResponse("no", status=420))
        def view(request: HttpRequest, left: int) -> HttpResponse:
            return HttpResponse(f"{getattr(request, 'decisions')['default'].remaining} {left}")

        request = RequestFactory().get("/", headers={"x-user": "ann"})
        first, refused = view(request, 5), view(RequestFactory().get("/", headers={"x-user": "ann"}), 5)
        assert first.content == b"0 5" and first["RateLimit-Policy"] == '"default";q=1;w=3600'
        assert refused.status_code == 420 and refused.content == b"no" and "Retry-After" in refused.headers


async def test_django_limits_an_asynchronous_view(on_loop: AsyncRateLimiter) -> None:
    async def who(request: HttpRequest) -> str:
        return request.headers["x-user"]

    @dj.limited(on_loop, [dj.Rule[HttpRequest]("default", who, "1/h")])
    async def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse("ok")

    statuses = [(await view(AsyncRequestFactory().get("/", headers={"x-user": "ann"}))).status_code for _ in range(2)]
    assert statuses == [200, 429]


def test_a_limiter_for_threads_takes_no_asynchronous_function(server: Server, key: str) -> None:
    async def who(request: dict[str, Any]) -> str:
        return named_user(request)  # type: ignore[return-value]

    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        gate: Gate[dict[str, Any]] = Gate(limiter, [Rule("default", who, "1/h")])
        with pytest.raises(ConfigurationError, match="rule 'default': an asynchronous function needs an AsyncRateLimiter"):
            gate.enter({"user": "ann"})
