"""Calls without an answer on real connections, and which errors of redis-py mean what."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest
import redis
import redis.asyncio
from redis import exceptions as errors

from both import Maker
from redis_ratelimit import AsyncRateLimiter, Breaker, ConfigurationError, RateLimiter
from redis_ratelimit.decide.failure import failure_of, rejection_of
from servers import PATIENCE, Server


async def test_connecting_to_a_silent_server_takes_no_longer_than_it_may(make: Maker, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limiter = make(port=silent.getsockname()[1], timeout=0.05, connect_timeout=0.1)
        started = time.monotonic()
        answer = await limiter.limit(key, "1/s")
        assert answer.error is not None and answer.error.kind == "timeout"
        assert time.monotonic() - started < 0.9


@pytest.mark.parametrize(("own", "of_call"), [(0.2, None), (5.0, 0.2)], ids=["limiter", "call"])
async def test_a_slow_server_is_given_up_and_a_call_is_never_sent_twice(
    make: Maker, server: Server, key: str, own: float, of_call: float | None
) -> None:
    limiter = make(timeout=own, breaker=None)
    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        asked = time.monotonic()
        error = (await limiter.limit(key, "100/h", timeout=of_call)).error
        assert time.monotonic() - asked < 2.5
    assert error is not None and error.kind == "timeout" and error.reason.startswith("no reply within 200 ms")
    assert (await make().peek(key, "100/h")).remaining == 99
    assert server.calls("rl.gcra") == 1


async def test_a_silent_server_opens_the_breaker(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.05, breaker=Breaker(failures=2, cooldown=60.0))
    await limiter.limit(key, "100/h")
    with server.frozen():
        until = time.monotonic() + PATIENCE
        while limiter.counters["breaker_opened"] == 0:
            assert time.monotonic() < until
            await limiter.limit(key, "100/h")
        answer = await limiter.limit(key, "100/h")
    assert answer.error is not None and answer.error.kind == "breaker"


async def test_connections_that_the_server_closed_are_replaced(make: Maker, server: Server, key: str) -> None:
    limiter = make(port=server.port)
    await limiter.limit(key, "100/h")
    for _ in range(3):
        server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.05)
        assert (await limiter.limit(key, "100/h")).answered
    assert limiter.counters["unavailable"] == 0


async def test_slow_moments_use_up_no_connections(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.1, breaker=None)
    calls = 60 if make.kind == "asyncio" else 12  # as many as there are threads for
    with server.frozen():
        for _ in range(2):
            answers = await asyncio.gather(*(limiter.limit(key, "1/s") for _ in range(calls)))
            assert not any(each.answered for each in answers)
    patient = make()
    assert (await patient.limit(key + ":patient", "1/s")).answered
    for _ in range(100):
        if (await limiter.limit(key, "1/s")).answered:
            return
    raise AssertionError("the limiter did not recover")


async def test_a_changed_password_follows_fail(server: Server, key: str, caplog: pytest.LogCaptureFixture) -> None:
    async def user(password: str) -> None:
        server.client.execute_command("ACL", "SETUSER", "app", "reset", "on", f">{password}", "~*", "+@all")
        server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.05)

    await user("old")
    threads = RateLimiter(redis.Redis(port=server.port, username="app", password="old"), timeout=5.0)
    loop = AsyncRateLimiter(redis.asyncio.Redis(port=server.port, username="app", password="old"), timeout=5.0)
    assert threads.limit(key, "9/h").answered and (await loop.limit(key, "9/h")).answered
    await user("new")
    for limiter, answer in ((threads, threads.limit(key, "9/h")), (loop, await loop.limit(key, "9/h"))):
        assert answer.allowed and answer.error is not None and answer.error.kind == "WRONGPASS"
        assert (limiter.counters["misconfigured"], limiter.counters["failed_open"]) == (1, 1)
    assert "failed open: WRONGPASS " in caplog.text
    with pytest.raises(ConfigurationError, match="WRONGPASS"):
        threads.ready("9/h")
    with pytest.raises(ConfigurationError, match="WRONGPASS"):
        await loop.ready("9/h")
    await user("old")
    assert threads.limit(key, "9/h").answered and (await loop.limit(key, "9/h")).answered
    threads.close()
    await loop.close()


async def test_a_full_server_is_unavailable(make: Maker, key: str) -> None:
    with Server("--maxmemory", "1", "--maxmemory-policy", "noeviction") as full:
        answer = await make(port=full.port).limit(key, "1/s")
        assert answer.allowed and answer.error is not None and answer.error.kind == "OOM"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"timeout": "soon"}, "timeout must be a whole number with ms"),
        ({"timeout": True}, "timeout must be a number of seconds above 0"),
        ({"breaker": 5}, "breaker must be a Breaker or None"),
        ({"cache": True}, "cache must be a RefusalCache or None"),
        ({"max_waits": 0}, "max_waits must be"),
        ({"on_decision": "log"}, "on_decision must be a function, not 'log'"),
        ({"on_error": 5}, "on_error must be a function, not 5"),
        ({"read_from_replicas": True}, "read_from_replicas needs the client of a cluster"),
    ],
)
async def test_a_wrong_option_is_an_error_at_once(make: Maker, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(**options)


async def test_a_wrong_client_is_an_error_at_once(server: Server) -> None:
    with pytest.raises(ConfigurationError, match="must be a redis.Redis"):
        RateLimiter("redis://127.0.0.1")  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="such as Redis.from_url.*, not the class redis.client.Redis$"):
        RateLimiter(redis.Redis)  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="not redis.client.Redis: RateLimiter takes it$"):
        AsyncRateLimiter(redis.Redis(port=server.port))  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="not redis.asyncio.client.Redis: AsyncRateLimiter takes it$"):
        RateLimiter(redis.asyncio.Redis(port=server.port))  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="Mine: AsyncRateLimiter takes it$"):
        RateLimiter(type("Mine", (redis.asyncio.Redis,), {})(port=server.port))  # pyright: ignore
    with pytest.raises(ConfigurationError, match="Redis$"):
        RateLimiter(type("Redis", (), {})())  # pyright: ignore


async def test_a_missing_module_is_an_error(make: Maker) -> None:
    with Server(module=False) as plain:
        with pytest.raises(ConfigurationError, match="the module ratelimit: RL.PEEK at .*: ERR unknown command"):
            await make(port=plain.port).ready()
        limiter = make(port=plain.port, fail="closed")
        answer = await limiter.limit("user:1", "1/s")
        assert not answer.allowed and answer.error is not None and answer.error.kind == "module"
        assert limiter.counters["misconfigured"] == 1


@pytest.mark.parametrize(
    ("error", "kind", "counts"),
    [
        (errors.ConnectionError("max number of clients reached"), "maxclients", False),
        (errors.AuthenticationError("Authentication required."), "NOAUTH", False),
        (errors.ConnectionError(), "connection", True),
        (errors.TimeoutError(), "timeout", True),
        (errors.SlotNotCoveredError("slot"), "CLUSTERDOWN", False),
        (OSError(), "connection", True),
    ],
    ids=repr,
)
def test_an_error_of_the_client_is_no_answer(error: Exception, kind: str, counts: bool) -> None:
    failure = failure_of(error)
    assert failure is not None and (failure.kind, failure.counts) == (kind, counts)
    assert failure.replied == (kind in ("maxclients", "NOAUTH"))


def test_what_cannot_be_sent_is_a_wrong_call_and_other_errors_are_neither() -> None:
    assert failure_of(errors.DataError("Invalid input")) is None and rejection_of(errors.DataError("Invalid input")) == "Invalid input"
    for error in (ValueError(), RuntimeError(), KeyboardInterrupt()):
        assert failure_of(error) is None and rejection_of(error) is None
