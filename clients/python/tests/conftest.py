"""Fixtures: a server for a module of tests, a cluster for the whole run, and limiters for threads and for asyncio."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest

from both import KINDS, Maker
from redis_ratelimit import AsyncRateLimiter
from servers import Cluster, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture
def key() -> str:
    """A key that no other test has."""
    return f"key:{uuid4().hex}"


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What a test logs, without the clients that an earlier one left unclosed and that Python finds only now."""

    def own(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Unclosed ")

    caplog.handler.addFilter(own)
    yield caplog
    caplog.handler.removeFilter(own)


class _Maker:
    def __init__(self, kind: str, port: int) -> None:
        self.kind, self._port = kind, port
        self.made: list[AsyncRateLimiter] = []

    def __call__(self, port: int | None = None, **options: Any) -> AsyncRateLimiter:
        # Busy machines are slow, so tests about answers have patience.
        limiter = KINDS[self.kind](port or self._port, **{"timeout": 5.0, **options})
        self.made.append(limiter)
        return limiter


@pytest.fixture(params=["threads", "asyncio"])
async def make(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Maker]:
    maker = _Maker(request.param, server.port)
    yield maker
    for limiter in maker.made:
        await limiter.close()


@pytest.fixture
def limiter(make: Maker) -> AsyncRateLimiter:
    return make()
