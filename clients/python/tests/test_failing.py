"""What happens without an answer, and what a wrong call is."""

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
from redis_ratelimit import (
    AsyncRateLimiter,
    Breaker,
    CallError,
    Concurrent,
    ConfigurationError,
    Decision,
    Gcra,
    Limit,
    LimitLike,
    RateLimiter,
    RefusalCache,
    Sketch,
    SlidingLog,
    Unavailable,
)
from redis_ratelimit.decide.failure import failure_of, rejection_of
from redis_ratelimit.decide.log import Log
from servers import Server, free_port


@pytest.mark.parametrize(("fail", "allowed"), [("open", True), ("closed", False)])
async def test_fail_decides_without_an_answer(make: Maker, key: str, fail: str, allowed: bool) -> None:
    limiter = make(port=free_port(), fail=fail)
    answers = [
        await limiter.limit(key, "1/s"),
        await limiter.limits([key], ["1/s"]),
        await limiter.ask(key, "api"),
    ]
    for answer in answers:
        assert (answer.allowed, answer.answered) == (allowed, False)
        assert isinstance(answer.error, Unavailable) and answer.headers() == {}
        assert (answer.error.kind, answer.error.maybe_sent) == ("connection", False)
        assert isinstance(answer.error.__cause__, redis.ConnectionError)
    counters = limiter.counters
    assert (counters["asked"], counters["unavailable"], counters[f"failed_{fail}"]) == (3, 3, 3)
    assert counters["allowed"] == counters["refused"] == 0
    assert (await limiter.peek(key, "1/s")).allowed is allowed
    assert limiter.counters["asked"] == 3


async def test_a_slow_server_is_given_up(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.1)
    with server.frozen():
        answer = await limiter.limit(key, "1/s")
    assert answer.error is not None and answer.error.kind == "timeout"
    assert (await make().limit(key + ":later", "1/s")).answered


async def test_connecting_to_a_silent_server_takes_no_longer_than_it_may(make: Maker, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limiter = make(port=silent.getsockname()[1], timeout=0.05, connect_timeout=0.1)
        started = time.monotonic()
        answer = await limiter.limit(key, "1/s")
        assert answer.error is not None and answer.error.kind == "timeout"
        assert time.monotonic() - started < 0.9


async def test_a_call_is_never_sent_twice(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2)
    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        await limiter.limit(key, "100/h")
    assert (await make().peek(key, "100/h")).remaining == 99
    assert server.calls("rl.gcra") == 1


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


async def test_the_breaker_opens_and_closes(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make(timeout=0.1, breaker=Breaker(failures=3, cooldown=2.0))
    with server.frozen():
        answers: list[Decision] = []
        while limiter.counters["breaker_opened"] == 0 and len(answers) < 50:
            answers.append(await limiter.limit(key, "100/h"))
        answers += [await limiter.limit(key, "100/h") for _ in range(4)]
    # What a late event loop of a busy machine has missed is not counted.
    reasons = [(each.error.kind, each.error.reason) for each in answers if each.error is not None]
    kinds = [kind for kind, reason in reasons if "event loop was late" not in reason]
    assert "breaker" not in kinds[:3] and kinds[3:] == ["breaker"] * 4
    assert limiter.counters["breaker_opened"] == 1 and limiter.counters["unavailable"] == len(answers)
    await asyncio.sleep(2.05)
    assert all([(await limiter.limit(key, "100/h")).answered for _ in range(3)])
    lines = [each.getMessage() for each in caplog.records if "breaker" in each.getMessage()]
    name = f"127.0.0.1:{server.port}" if "127" in lines[0] else f"localhost:{server.port}"
    assert lines[0].startswith(f"breaker opened: {name} did not answer 3 calls in a row: ")
    assert f"breaker closed: {name} answers again" in lines


async def test_without_a_breaker_the_server_is_always_asked(make: Maker, key: str) -> None:
    limiter = make(port=free_port(), breaker=None)
    answers = [await limiter.limit(key, "1/s") for _ in range(10)]
    assert not any((each.error is not None and each.error.kind == "breaker") for each in answers)


async def test_a_wrong_call_never_fails_open(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    server.client.set(key, "a string")
    with pytest.raises(CallError, match="RL.GCRA at .*WRONGTYPE .* holding ") as raised:
        await limiter.limit(key, "1/s")
    assert (raised.value.command, raised.value.node) == ("RL.GCRA", f"localhost:{server.port}")
    assert raised.value.code == "WRONGTYPE" and isinstance(raised.value.__cause__, redis.ResponseError)
    with pytest.raises(CallError, match="no such policy 'nobody'"):
        await limiter.ask(key, "nobody")
    with pytest.raises(ConfigurationError, match="a key must be text or bytes"):
        await limiter.limit({"no": "key"}, "1/s")  # type: ignore[arg-type] # pyright: ignore
    assert limiter.counters["wrong_calls"] >= 2 and limiter.counters["failed_open"] == 0


async def test_wrong_calls_do_not_open_the_breaker(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    for _ in range(10):
        with pytest.raises(CallError):
            await limiter.ask(key, "nobody")
    assert (await limiter.limit(key, "1/s")).answered


async def test_missing_permissions_are_a_wrong_call(make: Maker, server: Server, key: str) -> None:
    server.client.execute_command("ACL", "SETUSER", "nobody", "on", "nopass", "~*", "+ping")
    client: Any = redis.Redis(port=server.port, username="nobody", password="x")
    with RateLimiter(client, timeout=5.0) as limiter:
        with pytest.raises(
            CallError, match=r"RL.GCRA at \S+: NOPERM (this user|User nobody) has no permissions"
        ):
            limiter.limit(key, "1/s")


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


async def test_one_line_a_second_of_each_kind(make: Maker, key: str, caplog: pytest.LogCaptureFixture) -> None:
    limiter = make(port=free_port(), breaker=None)
    for _ in range(5):
        await limiter.limit(key, "1/s")
    lines = [each.getMessage() for each in caplog.records]
    assert len(lines) == 1 and lines[0].startswith("RL.GCRA 'key…' at localhost:")
    assert [each.name for each in caplog.records] == ["redis_ratelimit"]


def test_a_line_tells_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    for now in (0.0, 0.1, 0.9, 1.1):
        log.warn("kind", now, f"line at {now}")
    log.warn("other", 0.1, "another kind")
    assert [each.getMessage() for each in caplog.records] == [
        "line at 0.0",
        "line at 1.1 (2 more since the last line)",
        "another kind",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail": "half-open"}, "fail must be 'open' or 'closed'"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"timeout": "soon"}, "timeout must be a whole number with ms"),
        ({"timeout": True}, "timeout must be a number of seconds above 0"),
        ({"prefix": 5}, "prefix must be text"),
        ({"breaker": 5}, "breaker must be a Breaker or None"),
        ({"cache": True}, "cache must be a RefusalCache or None"),
        ({"read_from_replicas": True}, "read_from_replicas needs the client of a cluster"),
    ],
)
async def test_a_wrong_option_is_an_error_at_once(make: Maker, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(**options)


async def test_a_wrong_client_is_an_error_at_once(server: Server) -> None:
    with pytest.raises(ConfigurationError, match="must be a redis.Redis"):
        RateLimiter("redis://127.0.0.1")  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ConfigurationError, match="must be a redis.asyncio.Redis"):
        AsyncRateLimiter(redis.Redis(port=server.port))  # type: ignore[arg-type] # pyright: ignore


async def test_right_limits_are_verified(limiter: AsyncRateLimiter, server: Server) -> None:
    server.client.execute_command(
        "RL.POLICY", "SET", "two", *"LIMIT CONCURRENT 1 1m ON 2 LIMIT GCRA 9 10 1h ON 1".split()
    )
    before = server.client.dbsize()
    limits: list[LimitLike] = ["10/s", Limit("5/d", on=2), Concurrent(3, "1m"), Concurrent(3, "1m", reserved=1)]
    more = [Sketch("i", 1, 1, "1s"), SlidingLog(3, "1m", countrefused=True)]
    assert await limiter.ready(*limits, *more, policies=["two"]) is True
    assert server.client.dbsize() == before


async def test_a_wrong_limit_or_policy_is_named(limiter: AsyncRateLimiter) -> None:
    with pytest.raises(
        ConfigurationError, match=r"limit 2, SlidingLog\(limit=2000000.*: RL.PEEK at .*: ERR limit must be an integer"
    ):
        await limiter.ready("10/s", SlidingLog(2_000_000, "1m"))
    with pytest.raises(ConfigurationError, match="policy 'nobody': RL.ASKPEEK at .*: ERR no such policy"):
        await limiter.ready(policies=["nobody"])
    with pytest.raises(ConfigurationError, match="a rate is a count per time"):
        await limiter.ready("10/fortnight")


async def test_a_missing_module_is_an_error(make: Maker) -> None:
    with Server(module=False) as plain:
        with pytest.raises(ConfigurationError, match="the module ratelimit: RL.PEEK at .*: ERR unknown command"):
            await make(port=plain.port).ready()
        limiter = make(port=plain.port, fail="closed")
        answer = await limiter.limit("user:1", "1/s")
        assert not answer.allowed and answer.error is not None and answer.error.kind == "module"
        assert limiter.counters["misconfigured"] == 1


async def test_no_answer_at_start_is_logged(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    limiter = make(port=free_port())
    assert await limiter.ready("10/s") is False
    assert ": not checked: " in caplog.text
    with pytest.raises(Unavailable):
        await limiter.ready("10/s", required=True)


@pytest.mark.parametrize(
    ("error", "kind", "counts"),
    [
        (errors.BusyLoadingError("Redis is loading"), "LOADING", True),
        (errors.MasterDownError("Link with MASTER is down"), "MASTERDOWN", True),
        (errors.ClusterDownError("The cluster is down"), "CLUSTERDOWN", False),
        (errors.TryAgainError("Multiple keys request during rehashing of slot"), "TRYAGAIN", False),
        (errors.OutOfMemoryError("command not allowed"), "OOM", False),
        (errors.ReadOnlyError("You can't write against a read only replica."), "READONLY", True),
        (errors.ResponseError("MISCONF Redis is configured to save RDB snapshots"), "MISCONF", True),
        (errors.ResponseError("BUSY Redis is busy running a script."), "BUSY", True),
        (errors.ResponseError("NOREPLICAS Not enough good replicas to write."), "NOREPLICAS", True),
        (errors.ResponseError("UNBLOCKED force unblock from blocking operation"), "UNBLOCKED", False),
        (errors.ResponseError("max number of clients reached"), "maxclients", False),
        (errors.ConnectionError("max number of clients reached"), "maxclients", False),
        (errors.ResponseError("unknown command 'RL.GCRA'"), "module", False),
        (errors.AuthenticationError("invalid username-password pair"), "WRONGPASS", False),
        (errors.AuthenticationError("Authentication required."), "NOAUTH", False),
        (errors.ConnectionError(), "connection", True),
        (errors.TimeoutError(), "timeout", True),
        (errors.SlotNotCoveredError("slot"), "CLUSTERDOWN", False),
        (OSError(), "connection", True),
    ],
    ids=repr,
)
def test_the_server_cannot_decide(error: Exception, kind: str, counts: bool) -> None:
    failure = failure_of(error)
    assert failure is not None and (failure.kind, failure.counts) == (kind, counts)
    assert failure.replied == (kind not in ("connection", "timeout") and "slot" not in str(error)[:4])


@pytest.mark.parametrize(
    ("error", "reply"),
    [
        (errors.ResponseError("unknown command 'GET'"), "ERR unknown command 'GET'"),
        (errors.ResponseError("COST 6 is above the limit 5"), "ERR COST 6 is above the limit 5"),
        (errors.ResponseError("WRONGTYPE Operation against a key"), "WRONGTYPE Operation against a key"),
        (errors.ClusterCrossSlotError("Keys in request don't hash"), "CROSSSLOT Keys in request don't hash"),
        (errors.NoPermissionError("this user has no permissions"), "NOPERM this user has no permissions"),
        (errors.DataError("Invalid input"), "Invalid input"),
    ],
    ids=repr,
)
def test_the_call_is_wrong(error: Exception, reply: str) -> None:
    assert failure_of(error) is None and rejection_of(error) == reply


def test_other_errors_are_neither() -> None:
    for error in (ValueError(), RuntimeError(), KeyboardInterrupt()):
        assert failure_of(error) is None and rejection_of(error) is None


async def test_limiters_are_values_of_a_call(limiter: AsyncRateLimiter, key: str) -> None:
    assert (await limiter.limit(key, Gcra(9, 10, "1h"))).limiter == Gcra(9, 10, "1h")


async def test_cache_and_breaker_may_be_given(make: Maker, key: str) -> None:
    limiter = make(cache=RefusalCache(), breaker=None)
    assert (await limiter.limit(key, "1/h")).allowed
