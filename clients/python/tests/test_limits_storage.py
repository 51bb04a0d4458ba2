"""The storages for `limits` do what its own Redis storage does."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import pytest

pytest.importorskip("limits")

import redis
from limits import (
    RateLimitItem,
    RateLimitItemPerHour,
    RateLimitItemPerMinute,
    RateLimitItemPerSecond,
    aio,
    parse,
    strategies,
)
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string

from redis_ratelimit.limits import calls as calls
from redis_ratelimit.limits_storage import AsyncRateLimitStorage, RateLimitStorage
from servers import Cluster, Server

T = TypeVar("T")

STRATEGIES = ["FixedWindowRateLimiter", "MovingWindowRateLimiter", "SlidingWindowCounterRateLimiter"]
LARGEST = 2**53 - 1


async def answer(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Storages:
    """Storages of one kind on one server."""

    def __init__(self, kind: str, address: str, name: str) -> None:
        self.kind, self._address, self._name = kind, address, name

    def storage(self, **options: Any) -> Any:
        options.setdefault("key_prefix", self._name)
        return storage_from_string(f"{self.kind}ratelimit+{self._address}", **options)

    def limiter(self, strategy: str, **options: Any) -> Any:
        module = aio.strategies if self.kind else strategies
        return getattr(module, strategy)(self.storage(**options))


@pytest.fixture(params=["", "async+"], ids=["threads", "asyncio"])
def on(request: pytest.FixtureRequest, server: Server, key: str) -> Storages:
    return Storages(request.param, f"redis://127.0.0.1:{server.port}", key)


@pytest.fixture(params=["", "async+"], ids=["threads", "asyncio"])
def on_cluster(request: pytest.FixtureRequest, cluster: Cluster, key: str) -> Storages:
    return Storages(request.param, f"redis+cluster://127.0.0.1:{cluster.port}", key)


@pytest.fixture(autouse=True)
def away_from_the_end_of_a_minute() -> Iterator[None]:
    """Windows of the sliding counter lie on the clock."""
    if time.time() % 60 > 50:
        time.sleep(60 - time.time() % 60)
    yield


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_limit_is_admitted_and_no_more(on: Storages, strategy: str) -> None:
    limiter, item = on.limiter(strategy), RateLimitItemPerMinute(5)
    assert [await answer(limiter.hit(item, "ann")) for _ in range(6)] == [True] * 5 + [False]
    assert not await answer(limiter.test(item, "ann"))
    assert await answer(limiter.test(item, "bob", cost=5))
    stats = await answer(limiter.get_window_stats(item, "ann"))
    assert stats.remaining == 0
    assert 0 < stats.reset_time - time.time() <= 60
    await answer(limiter.clear(item, "ann"))
    assert await answer(limiter.hit(item, "ann"))


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_limit_of_0_refuses_every_hit(on: Storages, strategy: str) -> None:
    limiter, item = on.limiter(strategy), parse("0 per minute")
    assert not await answer(limiter.hit(item, "ann"))
    assert not await answer(limiter.test(item, "ann"))
    assert (await answer(limiter.get_window_stats(item, "ann"))).remaining == 0


@pytest.mark.parametrize("cost", [10**15, 10**15 + 1, LARGEST])
async def test_a_huge_cost_on_a_fresh_key_is_refused_and_charged(on: Storages, cost: int) -> None:
    limiter, item = on.limiter("FixedWindowRateLimiter"), RateLimitItemPerMinute(10)
    assert not await answer(limiter.hit(item, "ann", cost=cost))
    assert not await answer(limiter.hit(item, "ann"))
    assert (await answer(limiter.get_window_stats(item, "ann"))).remaining == 0


@pytest.mark.parametrize("cost", [-1, LARGEST + 1])
async def test_a_cost_that_cannot_be_counted_is_an_error(on: Storages, cost: int) -> None:
    with pytest.raises(redis.ResponseError, match="COST must be an integer from 0 to 9007199254740991"):
        await answer(on.storage().incr("a/1/1/minute", 60, cost))
    with pytest.raises(StorageError):
        await answer(on.storage(wrap_exceptions=True).incr("a/1/1/minute", 60, cost))


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
async def test_a_cost_over_the_limit_is_refused_without_a_charge(on: Storages, strategy: str) -> None:
    limiter, item = on.limiter(strategy), RateLimitItemPerMinute(10)
    for cost in (11, 10**15 + 1, LARGEST + 1):
        assert not await answer(limiter.hit(item, "ann", cost=cost))
    assert (await answer(limiter.get_window_stats(item, "ann"))).remaining == 10


async def test_a_full_counter_is_over_every_limit(on: Storages) -> None:
    limiter, item = on.limiter("FixedWindowRateLimiter"), RateLimitItemPerMinute(10**18)
    assert await answer(limiter.hit(item, "ann", cost=LARGEST - 1))
    assert not await answer(limiter.hit(item, "ann", cost=LARGEST - 1))
    assert (await answer(limiter.get_window_stats(item, "ann"))).remaining == 0


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_answers_are_those_of_the_own_storage_of_limits(server: Server, key: str, strategy: str) -> None:
    chance, item = random.Random(7), RateLimitItemPerHour(20)
    address = f"redis://127.0.0.1:{server.port}"
    # Both may use the same prefix on the same server.
    own, ours = (
        getattr(strategies, strategy)(storage_from_string(scheme + address, key_prefix=key)) for scheme in ("", "ratelimit+")
    )
    for _ in range(300):
        caller, cost = str(chance.randrange(10)), chance.choice([0, 1, 1, 2, 3, 25])
        for method in ("hit", "test"):
            told = [getattr(limiter, method)(item, caller, cost=cost) for limiter in (own, ours)]
            assert told[0] == told[1], f"{method} of {caller} at {cost}"
        stats = [limiter.get_window_stats(item, caller) for limiter in (own, ours)]
        assert stats[0].remaining == stats[1].remaining
        if stats[0].remaining < 20:
            assert stats[0].reset_time == pytest.approx(stats[1].reset_time, abs=5)
        if chance.random() < 0.05:
            own.clear(item, caller)
            ours.clear(item, caller)


async def test_a_window_ends(on: Storages) -> None:
    limiter, item = on.limiter("FixedWindowRateLimiter"), RateLimitItemPerSecond(1)
    assert await answer(limiter.hit(item, "ann"))
    ends = (await answer(limiter.get_window_stats(item, "ann"))).reset_time
    time.sleep(max(0.0, ends - time.time()) + 0.05)
    assert await answer(limiter.test(item, "ann"))


class Fortnightly(RateLimitItem):
    GRANULARITY = RateLimitItemPerSecond.GRANULARITY._replace(seconds=14 * 86_400, name="fortnight")


async def test_any_item_and_any_key_may_be_counted(on: Storages) -> None:
    storage = on.storage()
    assert await answer(storage.get("plain")) == 0
    assert [await answer(storage.incr("plain", 60, 3)) for _ in range(2)] == [3, 6]
    assert await answer(storage.get("plain")) == 6
    assert 50 < await answer(storage.get_expiry("plain")) - time.time() <= 60
    limiter, item = on.limiter("FixedWindowRateLimiter"), Fortnightly(2)
    assert await answer(limiter.hit(item))
    stats = await answer(limiter.get_window_stats(item))
    assert stats.remaining == 1 and stats.reset_time - time.time() == pytest.approx(14 * 86_400, abs=60)


@pytest.mark.parametrize("options", [{"decode_responses": True}, {"protocol": 3}], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_form_of_replies_does_not_matter(on: Storages, strategy: str, options: dict[str, Any]) -> None:
    limiter, item = on.limiter(strategy, **options), RateLimitItemPerMinute(3)
    assert await answer(limiter.hit(item, "ann", cost=2))
    assert (await answer(limiter.get_window_stats(item, "ann"))).remaining == 1
    assert await answer(on.storage(**options).incr("plain", 60)) == 1
    assert await answer(on.storage(**options).get("plain")) == 1


async def test_reset_deletes_the_keys_with_the_prefix_only(on: Storages, key: str) -> None:
    storage, other = on.storage(key_prefix=f"{key}[ab]*"), on.storage(key_prefix=f"{key}a")
    await answer(other.incr("plain", 60))
    for i in range(1500):
        await answer(storage.incr(f"plain/{i}", 60))
    assert await answer(storage.reset()) == 1500
    assert await answer(storage.reset()) == 0
    assert await answer(other.get("plain")) == 1


async def test_a_server_without_the_module_is_not_healthy(on: Storages) -> None:
    assert await answer(on.storage().check())
    with Server(module=False) as plain:
        bare = Storages(on.kind, f"redis://127.0.0.1:{plain.port}", "bare").storage()
        assert not await answer(bare.check())
    assert not await answer(bare.check())


async def test_a_moving_window_is_as_large_as_the_server_allows(on: Storages) -> None:
    limiter = on.limiter("MovingWindowRateLimiter")
    with pytest.raises(redis.ResponseError, match="limit must be an integer from 1 to 1000000"):
        await answer(limiter.hit(RateLimitItemPerMinute(1_000_001), "ann"))


@pytest.mark.parametrize("form", ["redis://127.0.0.1:6379", "rediss://127.0.0.1:6379", "redis+unix:///tmp/redis.sock"])
def test_the_schemes_are_those_of_limits_with_a_word_in_front(form: str) -> None:
    assert isinstance(storage_from_string(f"ratelimit+{form}"), RateLimitStorage)
    assert isinstance(storage_from_string(f"async+ratelimit+{form}"), AsyncRateLimitStorage)


def test_the_only_client_on_asyncio_is_redis_py() -> None:
    with pytest.raises(ConfigurationError, match="the only implementation is redispy"):
        storage_from_string("async+ratelimit+redis://127.0.0.1", implementation="coredis")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_each_strategy_works_on_a_cluster(on_cluster: Storages, cluster: Cluster, strategy: str) -> None:
    limiter, item = on_cluster.limiter(strategy), RateLimitItemPerMinute(2)
    assert await answer(limiter.hit(item, "first"))
    cluster.reset()
    for i in range(20):
        assert [await answer(limiter.hit(item, str(i))) for _ in range(3)] == [True, True, False]
        assert (await answer(limiter.get_window_stats(item, str(i)))).remaining == 0
        assert not await answer(limiter.test(item, str(i)))
    assert (cluster.moved(), cluster.calls("command|getkeys")) == (0, 0)
    for i in range(10):
        await answer(limiter.clear(item, str(i)))
        assert await answer(limiter.test(item, str(i)))
    assert await answer(limiter.storage.check())
    assert await answer(limiter.storage.reset()) == 11


def driven(steps: Callable[[], calls.Steps[T]], *replies: list[object]) -> T:
    """What a method returns that gets these replies."""
    generator = steps()
    next(generator)
    with pytest.raises(StopIteration) as end:
        for each in replies:
            generator.send(each)
    return cast(T, end.value.value)


@pytest.mark.parametrize(
    ("previous", "current", "reset", "expected"),
    [
        (3, 2, 15_000, (3, 5.0, 2, 15.0)),  # the last charge was in the current window
        (0, 2, 15_000, (0, 0.0, 2, 15.0)),
        (3, 2, 5_000, (2, 5.0, 0, 0.0)),  # a window has ended since the last charge
        (3, 0, 5_000, (3, 5.0, 0, 0.0)),  # all of the current window was given back
        (3, 2, 0, (0, 0.0, 0, 0.0)),  # two windows have ended
    ],
)
def test_the_reset_says_how_many_windows_have_ended(previous: int, current: int, reset: int, expected: object) -> None:
    info = [b"current", current, b"previous", previous]
    look = [0, LARGEST, LARGEST - current, 0, reset]
    assert driven(lambda: calls.sliding_window("key", 10), [info, look]) == expected


def test_a_key_that_is_missing_has_empty_windows() -> None:
    assert driven(lambda: calls.sliding_window("key", 10), [None, [0, LARGEST, LARGEST, 0, 0]]) == (0, 0.0, 0, 0.0)
