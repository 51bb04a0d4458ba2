"""A request is charged all limits or none."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from gates import BUCKET, HOUR, Request, free, gate, held, passed, refused, remaining, rule
from redis_ratelimit import (
    UNLIMITED,
    AsyncRateLimiter,
    CallError,
    Concurrent,
    ConfigurationError,
    LeakyBucket,
    Limiter,
    Penalty,
    RateLimiter,
    RefusalCache,
    SlidingLog,
    Smooth,
    Uniform,
)
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.response import PROBLEM, Refusal
from redis_ratelimit.gate.shed import Shed
from servers import Server, eventually


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def test_all_limits_admit_or_none_is_charged(limiter: RateLimiter, server: Server) -> None:
    door = gate(limiter, rule("minute", SlidingLog(5, "1m")), rule("hour", HOUR))
    server.client.config_resetstat()
    door.limiter.ready()
    for _ in range(3):
        door.leave(passed(door.enter({"user": "ann"})))
    told = refused(door.enter({"user": "ann"}))
    assert server.calls("rl.multi") == 4
    assert told.status == 429
    assert json.loads(told.body) == {"type": f"{PROBLEM}quota-exceeded", "status": 429, "violated-policies": ["hour"]}
    assert told.headers["Content-Type"] == "application/problem+json"
    assert told.headers["RateLimit-Policy"] == '"minute";q=5;w=60, "hour";q=3;w=3600'
    retry = int(told.headers["Retry-After"])
    assert 3500 < retry <= 3600
    assert told.headers["RateLimit"] == f'"hour";r=0;t={retry}'
    assert remaining(limiter, "minute:ann", SlidingLog(5, "1m")) == 2


def test_headers_of_an_admitted_request_have_all_rules(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("hour", HOUR), rule("streams", Concurrent(5, "1m")))
    told = passed(door.enter({"user": "ann"}))
    assert told.headers == {
        "RateLimit-Policy": '"hour";q=3;w=3600, "streams";q=5;qu="concurrent-requests"',
        "RateLimit": '"hour";r=2;t=3600, "streams";r=4',
    }
    door.leave(told)


def test_a_rule_without_a_key_or_a_limit_is_not_for_the_request(limiter: RateLimiter, server: Server) -> None:
    plans = {"pro": SlidingLog(2, "1h"), "free": SlidingLog(1, "1h")}
    door = gate(limiter, rule("plan", lambda request: plans.get(request["plan"], UNLIMITED)))
    server.client.config_resetstat()
    assert passed(door.enter({"plan": "pro"})).headers == {}
    assert passed(door.enter({"plan": "staff", "user": "sue"})).headers == {}
    assert server.calls("rl.multi") == 0
    told = [door.enter({"plan": plan, "user": plan}) for plan in ("free", "free", "pro", "pro", "pro")]
    assert [isinstance(each, Refusal) for each in told] == [False, True, False, False, True]


def test_a_request_costs_what_the_rule_says(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("items", SlidingLog(10, "1h"), cost=lambda request: request["items"]), rule("double", cost=2))
    for items in (4, 0):
        passed(door.enter({"user": f"ann{items}", "items": items}))
    assert remaining(limiter, "items:ann4", SlidingLog(10, "1h")) == 6
    assert remaining(limiter, "items:ann0", SlidingLog(10, "1h")) == 10
    assert remaining(limiter, "double:ann4") == 1
    with pytest.raises(ConfigurationError, match="rule 'items': cost must be an integer, not 'two'"):
        door.enter({"user": "ann", "items": "two"})


def test_a_request_that_never_fits_has_no_retry_after(limiter: RateLimiter) -> None:
    told = refused(gate(limiter, rule(cost=4)).enter({"user": "ann"}))
    assert (told.status, "Retry-After" in told.headers) == (429, False)


def test_refusals_strike_a_penalty(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("hour", SlidingLog(1, "1h")), rule("ban", Penalty(2, "1h", "2h")))
    told = [door.enter({"user": "ann"}) for _ in range(3)]
    assert [isinstance(each, Refusal) for each in told] == [False, True, True]
    assert json.loads(refused(told[2]).body)["violated-policies"] == ["hour", "ban"]


def test_a_cached_refusal_is_not_asked_again(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0, cache=RefusalCache(100)) as limiter:
        door = gate(limiter, rule(limit=SlidingLog(1, "1h")))
        passed(door.enter({"user": "ann"}))
        first = refused(door.enter({"user": "ann"}))
        server.client.config_resetstat()
        assert refused(door.enter({"user": "ann"})).body == first.body
        assert (server.calls("rl.multi"), limiter.counters["cached"]) == (0, 1)


def test_a_policy_is_asked_by_its_name(limiter: RateLimiter) -> None:
    limiter.commands.policy_set("gate", [SlidingLog(5, "1m"), SlidingLog(2, "1h")])
    door = gate(limiter, rule("api", None, policy=lambda request: request.get("policy", UNLIMITED)))
    assert passed(door.enter({"user": "ann"})).headers == {}
    for left in (1, 0):
        told = passed(door.enter({"user": "ann", "policy": "gate"}))
        assert told.headers == {"RateLimit-Policy": '"api";q=2', "RateLimit": f'"api";r={left};t=3600'}
    assert json.loads(refused(door.enter({"user": "ann", "policy": "gate"})).body)["violated-policies"] == ["api"]


def test_a_policy_that_is_gone_is_a_wrong_call(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "1m")), rule("api", None, policy=lambda _: "gone"))
    with pytest.raises(CallError, match="no such policy"):
        door.enter({"user": "ann"})
    eventually(lambda: free(limiter, "streams:ann") == 2, "the release")


def test_a_policy_may_get_a_lease(limiter: RateLimiter, server: Server) -> None:
    limiter.commands.policy_set("jobs", [HOUR])
    door = gate(limiter, rule("jobs", None, policy="jobs"))
    server.client.config_resetstat()
    door.leave(passed(door.enter({"user": "ann"})))
    assert server.calls("rl.release") == 0
    limiter.commands.policy_set("jobs", [HOUR, Concurrent(2, "1m")])
    told = passed(door.enter({"user": "ann"}))
    assert free(limiter, "jobs:ann") == 1
    door.leave(told)
    assert free(limiter, "jobs:ann") == 2


def test_a_policy_has_a_budget(limiter: RateLimiter) -> None:
    limiter.commands.policy_set("llm", [BUCKET])
    door = gate(limiter, rule("tokens", None, policy="llm", estimate=400))
    told = passed(door.enter({"user": "ann"}))
    told.spent["tokens"] = 150
    door.leave(told)
    assert 850 <= remaining(limiter, "tokens:ann", BUCKET) <= 851


@pytest.mark.parametrize("first", ["limit", "lease", "budget", "policy", "policy's budget", "policy's lease"])
def test_what_was_charged_before_a_refusal_is_given_back(limiter: RateLimiter, first: str) -> None:
    limiter.commands.policy_set("given", [BUCKET])
    limiter.commands.policy_set("leasing", [Concurrent(2, "1m")])
    limiter.commands.policy_set("full", [SlidingLog(1, "1h"), Concurrent(2, "1m")])
    rules = {
        "limit": rule("first", BUCKET, cost=5),
        "lease": rule("first", Concurrent(2, "1m")),
        "budget": rule("first", BUCKET, estimate=5),
        "policy": rule("first", None, policy="given", cost=5),
        "policy's budget": rule("first", None, policy="given", estimate=5),
        "policy's lease": rule("first", None, policy="leasing"),
    }
    door = gate(limiter, rules[first], rule("other", Uniform("1h")), rule("last", None, policy="full"))
    limiter.commands.ask("last:ann", "full", lease_id="another")
    if "lease" not in first:
        limiter.limit("first:ann", BUCKET, 100)
    told = refused(door.enter({"user": "ann"}))
    assert json.loads(told.body)["violated-policies"] == ["last"]
    assert told.headers["RateLimit"].startswith('"last";r=0')
    if "lease" in first:
        assert free(limiter, "first:ann") == 2
    else:
        assert 900 <= remaining(limiter, "first:ann", BUCKET) <= 901
        assert not held(limiter, "first:ann")
    assert remaining(limiter, "other:ann", Uniform("1h")) == 1


def shed(utilization: float = 0.9) -> Shed[Request]:
    return Shed("fleet", lambda: utilization, lambda request: request["tier"], 2, good=0.1, bad=0.2, delay="500ms", ramp="500ms")


def test_load_is_shed_before_limits_are_asked(limiter: RateLimiter) -> None:
    door = gate(limiter, rule(), shed=shed())
    passed(door.enter({"user": "ann", "tier": None}))

    def is_shed() -> bool:
        return all(isinstance(door.enter({"tier": 1}), Refusal) for _ in range(20))

    eventually(is_shed, "shedding")
    told = refused(door.enter({"user": "ann", "tier": 1}))
    assert (told.status, told.headers["Retry-After"]) == (503, "5")
    assert json.loads(told.body)["type"] == f"{PROBLEM}temporary-reduced-capacity"
    passed(door.enter({"user": "ann", "tier": None}))
    assert remaining(limiter, "default:ann") == 1


def gone() -> float:
    raise OSError("no such file")


@pytest.mark.parametrize(
    ("utilization", "tier", "error"),
    [
        (lambda: float("nan"), 1, "not nan"),
        (lambda: None, 1, "TypeError"),
        (lambda: "busy", 1, "ValueError"),
        (gone, 1, "OSError: no such file"),
        (lambda: 1.0, 3, "tier must be between 1 and 2, not 3"),
        (lambda: 1.0, "gold", "tier must be"),
    ],
)
def test_if_a_function_of_the_shedder_fails_nothing_is_shed(
    limiter: RateLimiter,
    caplog: pytest.LogCaptureFixture,
    server: Server,
    utilization: Callable[[], Any],
    tier: Any,
    error: str,
) -> None:
    door = gate(limiter, shed=Shed("fleet", utilization, lambda _: tier, 2))
    server.client.config_resetstat()
    passed(door.enter({}))
    assert server.calls("rl.shed") == 0
    assert "RL.SHED 'fleet': nothing is shed: " in caplog.text
    assert error in caplog.text


@pytest.mark.parametrize("utilization", [-1.0, 0.5, 3.0, 1, float("inf"), float("-inf")])
def test_a_utilization_out_of_bounds_is_cut(limiter: RateLimiter, server: Server, utilization: float) -> None:
    server.client.config_resetstat()
    passed(gate(limiter, shed=Shed("fleet", lambda: utilization, lambda _: 1)).enter({}))
    assert server.calls("rl.shed") == 1


QUEUES = [LeakyBucket(3, 1, "500ms"), Smooth(2, "1s", burst="0", maxwait="1s")]


@pytest.mark.parametrize("queue", QUEUES)
def test_a_queued_request_waits_for_its_turn(limiter: RateLimiter, queue: Limiter) -> None:
    door = gate(limiter, rule("queue", queue), rule("hour", HOUR))
    door.limiter.ready()
    started = time.monotonic()
    first, second = passed(door.enter({"user": "ann"})), passed(door.enter({"user": "ann"}))
    door.wait(first)
    door.wait(second)
    # The server counts in whole milliseconds, from the moment of the first request.
    assert time.monotonic() - started >= 0.49
    assert (first.wait, 0.0 < second.wait <= 0.5) == (0.0, True)
    assert remaining(limiter, "hour:ann") == 1


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_queued_request_waits_on_asyncio(server: Server, key: str, queue: Limiter) -> None:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        door = AsyncGate(limiter, [rule("queue", queue)], None)
        started = time.monotonic()
        told = [passed(each) for each in await asyncio.gather(*(door.enter({"user": "ann"}) for _ in range(3)))]
        await asyncio.gather(*map(door.wait, told))
        assert time.monotonic() - started >= 0.98
        assert sorted(each.wait > 0 for each in told) == [False, True, True]


def test_a_policy_with_a_queue_waits_too(limiter: RateLimiter) -> None:
    limiter.commands.policy_set("queue", [LeakyBucket(3, 1, "500ms"), HOUR])
    door = gate(limiter, rule("queue", None, policy="queue"))
    assert passed(door.enter({"user": "ann"})).wait == 0
    assert 0 < passed(door.enter({"user": "ann"})).wait <= 0.5


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


def test_a_turn_is_not_given_back(limiter: RateLimiter, caplog: pytest.LogCaptureFixture) -> None:
    limiter.commands.policy_set("none", [SlidingLog(1, "1h")])
    limiter.commands.ask("last:ann", "none")
    door = gate(limiter, rule("queue", QUEUES[1]), rule("hour", HOUR), rule("last", None, policy="none"))
    refused(door.enter({"user": "ann"}))
    assert remaining(limiter, "hour:ann") == 3
    assert "not given back" not in caplog.text


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_too_many_holds_are_as_no_answer(key: str, caplog: pytest.LogCaptureFixture, fail: Any) -> None:
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=5.0, fail=fail) as limiter:
        server.client.config_set("ratelimit.max-holds", 1)
        limiter.commands.policy_set("llm", [BUCKET])
        for name, door in (
            ("limit", gate(limiter, rule("limit", BUCKET, estimate=5))),
            ("policy", gate(limiter, rule("policy", None, policy="llm", estimate=5))),
        ):
            first = passed(door.enter({"user": "ann"}))
            told = door.enter({"user": "ann"})
            if fail == "open":
                assert passed(told).headers == {}
                door.leave(passed(told))
            else:
                assert refused(told).status == 503
            assert held(limiter, f"{name}:ann")
            door.leave(first)
        assert f"failed {fail}: ERR too many holds" in caplog.text
        assert limiter.counters[f"failed_{fail}"] == 2
