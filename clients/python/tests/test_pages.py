"""The programs on the pages run, all ```python of a page one after another on a server of its own, and have right types."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from textwrap import indent
from types import CodeType, SimpleNamespace
from typing import Any

import httpx
import pytest
import test_django as _  # configures Django
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

import pages_own
import redis.asyncio
import redis_ratelimit
import redis_ratelimit.django
from servers import ROOT, Server

Names = dict[str, Any]
README = ROOT / "clients" / "python" / "README.md"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


PAGES = [page for page in (ROOT / "README.md", README, *sorted((ROOT / "docs").rglob("*.md"))) if blocks(page)]


def empty(_: object) -> HttpResponse:
    return HttpResponse()


OPERATIONS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_NAME")


def used(code: CodeType) -> set[str]:
    """The names that code takes from its page, also in branches that are not run."""
    named = {name: {each.argval for each in dis.get_instructions(code) if each.opname == name} for name in OPERATIONS}
    inner = (used(each) for each in code.co_consts if isinstance(each, CodeType))
    return (named["LOAD_NAME"] - named["STORE_NAME"] | named["LOAD_GLOBAL"]).union(*inner)


async def run(page: Path, program: str, names: Names) -> None:
    code = compile(program, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result: object = eval(code, names)
    if inspect.isawaitable(result):
        await result
    unknown = used(code) - names.keys() - vars(builtins).keys()
    assert not unknown, f"{page}: what is {unknown}?"


async def ask(app: Any, method: str, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
        return await client.request(method, path, **options)


async def each_framework_counts_the_request(names: Names, _: Server) -> None:
    responses: list[Any] = [await ask(names["api"], "GET", "/"), names["app"].test_client().get("/")]
    request: Any = RequestFactory().get("/")
    request.user = SimpleNamespace(is_authenticated=True, pk=7)
    with override_settings(RATELIMIT={**names["RATELIMIT"], "OPTIONS": {"timeout": 5.0}}):
        name = names["MIDDLEWARE"][-1].rsplit(".", 1)[1]
        responses.append(getattr(redis_ratelimit.django, name)(empty)(request))
    assert [response.headers["RateLimit"].split(";")[:2] for response in responses] == [['"requests"', "r=99"]] * 3


async def a_login_admits_five_guesses(names: Names, server: Server) -> None:
    async def log_in(name: str, password: str) -> httpx.Response:
        return await ask(names["app"], "POST", "/login", data={"name": name, "password": password})

    assert [(await log_in("bob", "a guess")).status_code for _ in range(6)] == [401] * 5 + [429]
    assert 800 < int((await log_in("bob", "bob's")).headers["Retry-After"]) <= 900
    lockout = ("PENALTY", 5, "15m", "15m", "GROW", 2, "MAX", "4h", "COST", 0)
    assert server.client.execute_command("RL.PEEK", "login:fail:bob:127.0.0.1", *lockout)[0] == 1
    assert [(await log_in("ann", "ann's")).status_code for _ in range(10)] == [200] * 10
    assert server.client.execute_command("RL.PEEK", "login:failures", "SLIDINGWINDOW", 600, "1m")[2] == 595
    server.stop()
    assert (await log_in("ann", "ann's")).status_code == 503


async def a_job_has_a_lease(names: Names, server: Server) -> None:
    held: list[int] = []

    async def work(job: str) -> None:
        held.append(server.client.execute_command("RL.CONCURRENT", "fair:jobs", 3, "30s", "another")[2])
        server.client.execute_command("RL.RELEASE", "fair:jobs", "another")

    names["work"] = work
    assert await names["run"]("acme", "a job")
    assert held == [1]


async def an_answer_is_charged_what_it_took(names: Names, server: Server) -> None:
    assert [piece async for piece in names["answer"]("ann", "red", "two words", 1000)] == ["what", "the", "model", "says"]
    team = server.client.execute_command("RL.PEEK", "llm:team:red", "CALENDAR", 50_000_000, "MONTH")
    assert team[1] - team[2] == 6
    with pytest.raises(redis_ratelimit.Refused):
        await anext(names["answer"]("ann", "red", "two words", 100_000))


async def a_refused_caller_waits_and_comes_again(names: Names, _: Server) -> None:
    statuses = [429, 200]

    class Limited(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status := statuses.pop(0))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Limited) as api:
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        try:
            assert names["fetch"](f"http://127.0.0.1:{api.server_port}") == b"hello"
        finally:
            api.shutdown()
            thread.join()
    assert statuses == []


# What the programs of a page do, once they have run.
THEN: dict[Path, Callable[[Names, Server], Awaitable[None]]] = {
    README: each_framework_counts_the_request,
    ROOT / "docs" / "callers.md": a_refused_caller_waits_and_comes_again,
    ROOT / "docs" / "recipes-concurrency.md": a_job_has_a_lease,
    ROOT / "docs" / "recipes-login.md": a_login_admits_five_guesses,
    ROOT / "docs" / "recipes-tokens.md": an_answer_is_charged_what_it_took,
}


@pytest.fixture
def own_server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_the_programs_of_a_page_run(page: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def patient(kind: Callable[..., Any], *values: Any, **options: Any) -> Any:
        made.append(kind(*values, **{**options, "timeout": 5.0, "connect_timeout": 5.0}))
        return made[-1]

    for kind in (redis_ratelimit.RateLimiter, redis_ratelimit.AsyncRateLimiter):
        monkeypatch.setattr(redis_ratelimit, kind.__name__, partial(patient, kind))
    limiter = redis_ratelimit.AsyncRateLimiter(redis.asyncio.Redis(port=own_server.port))
    names: Names = {"__name__": "page", **vars(pages_own), "limiter": limiter}
    for block in blocks(page):
        here = block.replace("127.0.0.1:6379", f"127.0.0.1:{own_server.port}").replace("timeout=0.5", "timeout=5.0")
        await run(page, here, names)
    assert [each.counters["unavailable"] for each in made] == [0] * len(made)
    if page in THEN:
        await THEN[page](names, own_server)
    for each in made:
        closed = each.close()
        if inspect.isawaitable(closed):
            await closed


def nested(blocks: list[str]) -> str:
    """One program of all blocks. A block sees the names of those before it, and may give them other types."""
    program = "from pages_own import *\n"
    for depth, block in enumerate(blocks):
        program += indent(f"async def block() -> None:\n{indent(block, '    ')}", "    " * depth)
    return program


def test_the_programs_have_right_types(tmp_path: Path) -> None:
    for page in PAGES:
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
        (tmp_path / f"{name}.py").write_text(nested(blocks(page)), encoding="utf-8")
    python = ROOT / "clients" / "python"
    strictly = ["--strict", "--config-file=", "--cache-dir", str(ROOT / "target" / "packages" / "mypy")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *strictly, str(tmp_path)],
        env={**os.environ, "MYPYPATH": f"{python / 'src'}:{python / 'tests'}"},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_the_quick_start_is_short_and_refuses_the_fourth(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    code = blocks(README)[0].replace("6379", str(server.port))
    assert len(code.strip().splitlines()) <= 10
    await run(README, code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 2)[:2] for line in lines] == [["True", "2"], ["True", "1"], ["True", "0"], ["False", "0"]]
    shown = re.search(r"^False 0 (.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown is not None
    assert re.sub(r"\d+", "n", lines[3].removeprefix("False 0 ")) == re.sub(r"\d+", "n", shown[1])
