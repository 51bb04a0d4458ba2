"""What a request has taken is ended on every path."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from gates import BUCKET, free, gate, held, passed, refused, remaining, rule
from redis_ratelimit import AsyncRateLimiter, Concurrent, RateLimiter
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.passage import Passage
from redis_ratelimit.gate.shed import Shed
from redis_ratelimit.wire.source import CONNECTIONS
from servers import Server, eventually


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


def test_a_lease_lasts_as_long_as_the_response(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "1m")))
    both = [passed(door.enter({"user": "ann"})) for _ in range(2)]
    told = refused(door.enter({"user": "ann"}))
    assert (told.headers["Retry-After"], told.headers["RateLimit"]) == ("1", '"streams";r=0')
    door.leave(both[0])
    door.leave(both[0])
    assert free(limiter, "streams:ann") == 1
    both[1] = passed(door.enter({"user": "ann"}))
    door.leave(both[1])


def test_several_leases_are_released_at_once(limiter: RateLimiter, server: Server) -> None:
    door = gate(limiter, rule("user", Concurrent(2, "1m")), rule("all", Concurrent(9, "2m")))
    told = passed(door.enter({"user": "ann"}))
    server.client.config_resetstat()
    door.leave(told)
    assert (free(limiter, "user:ann"), free(limiter, "all:ann", 9), server.calls("rl.multirelease")) == (2, 9, 1)


def test_a_lease_is_renewed_while_the_response_lasts(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "2s")))
    told = passed(door.enter({"user": "ann"}))
    time.sleep(3)
    assert free(limiter, "streams:ann") == 1
    door.leave(told)
    assert free(limiter, "streams:ann") == 2


def test_a_lease_that_is_released_is_not_renewed(limiter: RateLimiter, server: Server) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "1s")))
    told = passed(door.enter({"user": "ann"}))
    door.leave(told)
    server.client.config_resetstat()
    time.sleep(0.7)
    assert (server.calls("rl.renew"), limiter.counters["leases_lost"]) == (0, 0)


def test_a_passage_that_is_lost_is_renewed_no_more(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "1s")))
    told = passed(door.enter({"user": "ann"}))
    del told
    gc.collect()
    eventually(lambda: free(limiter, "streams:ann") == 2, "the end of the lease")
    assert limiter.counters["leases_lost"] == 0


def test_a_lease_that_is_gone_is_counted_as_lost(limiter: RateLimiter, caplog: pytest.LogCaptureFixture) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "1s")))
    told = passed(door.enter({"user": "ann"}))
    limiter.commands.release("streams:ann", told.id)
    eventually(lambda: limiter.counters["leases_lost"] == 1, "the renewal")
    assert "lease lost: a renewal found no lease" in caplog.text
    door.leave(told)


def test_a_lease_whose_renewal_is_rejected_is_lost_with_its_reason(
    limiter: RateLimiter, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    door = gate(limiter, rule("streams", Concurrent(2, "9s")))
    told = passed(door.enter({"user": "ann"}))
    server.client.acl_setuser("default", enabled=True, reset=False, commands=["-rl.renew"])
    try:
        eventually(lambda: limiter.counters["leases_lost"] == 1, "the renewal")
    finally:
        server.client.acl_setuser("default", enabled=True, reset=False, commands=["+rl.renew"])
    assert "lease lost: NOPERM " in caplog.text
    door.leave(told)
    assert free(limiter, "streams:ann") == 2


@pytest.mark.parametrize(
    ("spent", "left"), [({}, 600), ({"tokens": 100}, 900), ({"tokens": 99.5}, 900), ({"tokens": 0}, 1000), ({"tokens": 700}, 300)]
)
def test_a_budget_is_settled_at_what_was_spent(limiter: RateLimiter, spent: dict[str, float], left: int) -> None:
    door = gate(limiter, rule(), rule("tokens", BUCKET, estimate=lambda request: request["estimate"]))
    told = passed(door.enter({"user": "ann", "estimate": 400}))
    assert remaining(limiter, "tokens:ann", BUCKET) == 600
    told.spent.update(spent)
    door.leave(told)
    assert left <= remaining(limiter, "tokens:ann", BUCKET) <= left + 1
    # The request itself stays counted, and nothing is held any more.
    assert remaining(limiter, "default:ann") == 2
    assert not held(limiter, "tokens:ann")
    assert not held(limiter, "default:ann")


def test_what_is_no_number_leaves_the_estimate(limiter: RateLimiter, caplog: pytest.LogCaptureFixture) -> None:
    door = gate(limiter, rule("tokens", BUCKET, estimate=400))
    told = passed(door.enter({"user": "ann"}))
    told.spent["tokens"] = "many"  # type: ignore[assignment]
    door.leave(told)
    assert remaining(limiter, "tokens:ann", BUCKET) == 600
    assert "what was spent is no number but 'many'" in caplog.text


def test_an_estimate_is_at_least_1(limiter: RateLimiter) -> None:
    door = gate(limiter, rule("tokens", BUCKET, estimate=lambda request: 0))
    door.leave(passed(door.enter({"user": "ann"})))
    assert remaining(limiter, "tokens:ann", BUCKET) == 999


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_a_slow_moment_keeps_no_lease_and_no_estimate(key: str, fail: Any) -> None:
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=0.3, fail=fail) as limiter:
        rules = [rule("streams", Concurrent(5, "10m")), rule("tokens", BUCKET, estimate=100)]
        door = gate(limiter, *rules, shed=Shed("fleet", lambda: 0.1, lambda request: request.get("tier")))
        door.limiter.ready()
        door.leave(passed(door.enter({"user": "bob"})))
        with server.frozen():
            told = [door.enter({"user": "ann"}) for _ in range(5)]
            told.append(door.enter({"user": "ann", "tier": 1}))
        if fail == "closed":
            assert {refused(each).status for each in told} == {503}
            assert {refused(each).headers["Retry-After"] for each in told} == {"1"}
        for each in told:
            if fail == "open":
                assert passed(each).headers == {}
                passed(each).spent["tokens"] = 1
                door.leave(passed(each))
        bare = RateLimiter(redis.Redis(port=server.port), timeout=5.0)
        eventually(lambda: free(bare, "streams:ann", 5) == 5, "the release of the leases")
        eventually(lambda: not held(bare, "tokens:ann"), "the settlement")
        assert remaining(bare, "tokens:ann", BUCKET) >= 1000 - (0 if fail == "closed" else 6)
        bare.close()


def test_an_end_without_an_answer_is_repeated(key: str) -> None:
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=0.3, breaker=None) as limiter:
        rules = [rule("streams", Concurrent(5, "10m")), rule("tokens", BUCKET, estimate=100)]
        door = gate(limiter, *rules)
        told = passed(door.enter({"user": "ann"}))
        told.spent["tokens"] = 10
        with server.frozen():
            door.leave(told)
        bare = RateLimiter(redis.Redis(port=server.port), timeout=5.0)
        eventually(lambda: free(bare, "streams:ann", 5) == 5, "the release of the lease")
        eventually(lambda: remaining(bare, "tokens:ann", BUCKET) >= 990, "the settlement")
        bare.close()


async def test_a_cancelled_request_takes_nothing(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0)
    door = AsyncGate(limiter, [rule("streams", Concurrent(50, "10m")), rule("tokens", BUCKET, estimate=10)], None)
    entered = await door.enter({"user": "ann"})
    assert isinstance(entered, Passage)
    await door.leave(entered)

    async def hasty(patience: float) -> None:
        task = asyncio.create_task(door.enter({"user": "ann"}))
        await asyncio.sleep(patience)
        if task.done():
            await door.leave(passed(task.result()))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or patience

    with server.frozen():
        await asyncio.gather(*(hasty(0.01 * i) for i in range(1, 10)))
    await asyncio.gather(*(hasty(0.0) for _ in range(20)))
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0) as bare:
        await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann", 50) == 50, "the release")
        await asyncio.to_thread(eventually, lambda: not held(bare, "tokens:ann"), "the settlement")
    await limiter.close()


async def test_a_cancelled_request_is_ended_twice_at_most(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0)
    door = AsyncGate(limiter, [rule("streams", Concurrent(1, "10m")), rule("tokens", BUCKET, estimate=10)], None)
    entered = await door.enter({"user": "ann"})
    await asyncio.gather(*(door.enter({"user": "ann"}) for _ in range(9)))  # opens the connections
    server.client.config_resetstat()
    with server.frozen():
        tasks = [asyncio.create_task(door.enter({"user": "ann"})) for _ in range(9)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    # The server refuses them all, so that nothing is ended.
    await asyncio.sleep(1)
    assert (server.calls("rl.release"), server.calls("rl.multisettle")) == (18, 18)
    await door.leave(passed(entered))
    await limiter.close()


async def test_a_cancelled_request_that_was_not_sent_has_nothing_to_release(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0, breaker=None)
    door = AsyncGate(limiter, [rule("streams", Concurrent(500, "10m"))], None)
    await door.limiter.ready()
    with server.frozen():
        tasks = [asyncio.create_task(door.enter({"user": "ann"})) for _ in range(4 * CONNECTIONS)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert len(limiter.background) <= CONNECTIONS  # the other calls waited for a connection
    await limiter.close()


async def test_a_cancellation_that_redis_py_drops_counts_all_the_same(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=key, timeout=10.0)
    door = AsyncGate(limiter, [rule("streams", Concurrent(2, "10m"))], None)
    await door.limiter.ready()
    read: Any = redis.asyncio.Connection.read_response

    async def dropping(self: Any, *values: Any, **options: Any) -> Any:
        reading = asyncio.create_task(read(self, *values, **options))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            return await reading

    monkeypatch.setattr(redis.asyncio.Connection, "read_response", dropping)
    with server.frozen():
        task = asyncio.create_task(door.enter({"user": "ann"}))
        await asyncio.sleep(0.1)
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    with RateLimiter(redis.Redis(port=server.port), prefix=key, timeout=5.0) as bare:
        await asyncio.to_thread(eventually, lambda: free(bare, "streams:ann") == 2, "the release")
    await limiter.close()
