"""The programs of the folder examples run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("flask")
httpx = pytest.importorskip("httpx")

from servers import Server

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("name", ["fastapi_routes", "flask_routes"])
async def test_a_route_has_limits_and_the_applications_own_answer(
    name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_PORT", str(server.port))
    server.client.flushall()
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    program: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, name, program)
    spec.loader.exec_module(program)
    fastapi = name.startswith("fastapi")
    loop, threads = httpx.AsyncClient, httpx.Client
    transport = httpx.ASGITransport(app=program.app) if fastapi else httpx.WSGITransport(app=program.app)
    client = (loop if fastapi else threads)(transport=transport, base_url="http://test")

    async def ask(user: str) -> Any:
        got = client.get("/search", headers={"x-user": user})
        return await got if fastapi else got

    answers = [await ask("ann") for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[0].headers["RateLimit"].startswith('"search";r=1;t=')
    refusal = answers[2]
    assert refusal.json()["error"] == "slow down" and 0 < refusal.json()["seconds"] <= 30
    assert refusal.headers["RateLimit"].startswith('"search";r=0;t=') and 0 < int(refusal.headers["Retry-After"]) <= 30
    assert refusal.headers.get_list("content-type") == ["application/json"]
    assert (await ask("bob")).status_code == 200
    closed = program.limiter.close()
    if fastapi:
        await closed
