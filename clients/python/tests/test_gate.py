"""Gates beyond the contract's cases: what only Python may pass by mistake, functions that fail, and real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker
from gates import Request, caller, free, gate, passed, refused, rule
from redis_ratelimit import AsyncRateLimiter, Concurrent, ConfigurationError, LeakyBucket, RateLimiter, Smooth
from redis_ratelimit.types import Limiter
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.entrance_threads import Gate
from redis_ratelimit.gate.rules import Rule
from redis_ratelimit.gate.shed import Shed
from servers import Server, eventually, free_port


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: rule("r", ("GCRA", 1, 1, "1s")), "rule 'r': a limiter is an instance"),  # type: ignore[arg-type]
        (lambda: Rule("r", "ann", "1/s"), "rule 'r': key must be a function of the request, not 'ann'"),  # type: ignore[arg-type]
        (lambda: Rule("r", caller, policy=b"x"), "rule 'r': policy must be text of 1 to 64 bytes, not b'x'"),  # type: ignore[arg-type]
        (lambda: Shed("fleet", 0.5, caller), "utilization must be a function, not 0.5"),  # type: ignore[arg-type]
        (lambda: Shed("fleet", lambda: 0.5, caller, 0), "tiers must be between 1"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_rule_is_an_error_at_once(make: Callable[[], object], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        make()


@pytest.mark.parametrize(
    ("rules", "options", "error"),
    [
        (["a"], {}, "a rule must be a Rule, not 'a'"),
        ("a", {}, "rules must be a list of rules, not 'a'"),
        (None, {}, "rules must be a list of rules, not None"),
        (rule(), {}, "rules must be a list of rules, not Rule"),
        ([rule()], {"shed": "a"}, "shed must be a Shed or None, not 'a'"),
        ([rule()], {"skip": "a"}, "skip must be a function of the request, not 'a'"),
    ],
)
def test_a_gate_needs_rules(limiter: RateLimiter, rules: Any, options: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        Gate(limiter, rules, **options)


def test_a_gate_needs_the_right_limiter_and_may_get_a_generator(limiter: RateLimiter) -> None:
    with pytest.raises(ConfigurationError, match="must be a RateLimiter, not NoneType"):
        Gate(None, [rule()], None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must be an AsyncRateLimiter"):
        AsyncGate(limiter, [rule()], None)  # type: ignore[arg-type]
    door = Gate(limiter, (each for each in [rule()]), None)
    for _ in range(3):
        passed(door.enter({"user": "ann"}))
    refused(door.enter({"user": "ann"}))


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("user", ["ann", None])
def test_skip_is_asked_once_also_for_local_limits(limiter: RateLimiter, skips: bool, user: str | None) -> None:
    asked: list[Request] = []

    def skip(request: Request) -> bool:
        asked.append(request)
        return skips

    local = Gate(limiter, [Rule("skipped", caller, "10/s", local=2)], skip=skip)
    assert bool(passed(local.enter({"user": user})).decisions) == (not skips and user is not None)
    assert len(asked) == 1


def test_a_limiter_for_threads_takes_no_asynchronous_function(limiter: RateLimiter) -> None:
    async def who(request: Request) -> str:
        return "ann"

    with pytest.raises(ConfigurationError, match="rule 'default': an asynchronous function needs an AsyncRateLimiter"):
        Gate(limiter, [Rule("default", who, "1/h")]).enter({})


def gone() -> float:
    raise OSError("no such file")


@pytest.mark.parametrize(
    ("utilization", "error"),
    [(lambda: float("nan"), "not nan"), (lambda: None, "TypeError"), (lambda: "busy", "ValueError"), (gone, "OSError: no such file")],
)
def test_if_a_function_of_the_shedder_fails_nothing_is_shed(
    caplog: pytest.LogCaptureFixture, utilization: Callable[[], Any], error: str
) -> None:
    with RateLimiter(redis.Redis(port=free_port()), fail="closed") as nowhere:
        passed(gate(nowhere, shed=Shed("fleet", utilization, lambda _: 1, 2)).enter({}))
    assert "RL.SHED 'fleet': nothing is shed: " in caplog.text and error in caplog.text


@pytest.mark.parametrize("queue", [LeakyBucket(3, 1, "500ms"), Smooth(2, "1s", burst="0", maxwait="1s")])
async def test_a_queued_request_waits_for_its_turn(make: Maker, queue: Limiter, key: str) -> None:
    made: Any = make(prefix=f"{key}:")
    threads = make.kind == "threads"
    door: Any = gate(made._limiter, rule("queue", queue)) if threads else AsyncGate(made, [rule("queue", queue)], None)

    async def entered() -> float:
        entrance = await (asyncio.to_thread(door.enter, {"user": "ann"}) if threads else door.enter({"user": "ann"}))
        await (asyncio.to_thread(door.wait, passed(entrance)) if threads else door.wait(passed(entrance)))
        return passed(entrance).wait

    started = time.monotonic()
    waits = await asyncio.gather(*(entered() for _ in range(3)))
    # The server counts in whole milliseconds, from the moment of the first request.
    assert time.monotonic() - started >= 0.98 and sorted(wait > 0 for wait in waits) == [False, True, True]


async def test_a_request_that_is_cancelled_in_the_queue_releases_its_lease(server: Server, key: str) -> None:
    rules = [rule("queue", LeakyBucket(3, 1, "1h")), rule("streams", Concurrent(2, "10m"))]
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        door = AsyncGate(limiter, rules, None)
        await door.leave(passed(await door.enter({"user": "ann"})))
        queued = asyncio.create_task(door.wait(passed(await door.enter({"user": "ann"}))))
        with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as bare:
            await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann") == 1, "the lease")
            await asyncio.sleep(0.2)
            queued.cancel()
            await asyncio.wait([queued])
            assert queued.cancelled()
            await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann") == 2, "the release")
