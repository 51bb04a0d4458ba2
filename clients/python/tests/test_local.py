"""Local limits and shares beyond the contract: what is given back, many keys, threads, forks and cancelled calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio

from redis_ratelimit import AsyncRateLimiter, Decision, RateLimiter
from redis_ratelimit.types import Local
from redis_ratelimit.call.steady import SteadyRate
from redis_ratelimit.decide.insurance import MOST_KEYS, SWEEP, Claim, Insurance
from redis_ratelimit.local import local
from redis_ratelimit.local.store import Store, Way
from servers import Server

RATE = SteadyRate(10_000, 10_000, 1000)


def fetched(store: Store, granted: int, sent: float) -> None:
    """The answer to the fetch that the store wants, in full."""
    assert store.wanted == granted
    store.wanted = 0
    store.fetched_at(Decision(True, 10_000, 0, 0.0, 0.0, granted), granted, sent, sent + 0.001)


def test_what_is_given_back_ends_with_its_batch() -> None:
    store = Store(RATE, 100, 20)
    store.take(600, 0.0, waits=0)
    assert store.take(1, 0.0, waits=0) is Way.WAIT
    fetched(store, 45, 0.0)
    assert store.take(34, 0.03, waits=0)
    fetched(store, 47, 0.03)
    decision = store.try_take(11, 0.09)
    assert isinstance(decision, Decision)
    for now in (0.095, 0.1):
        store.give_back(11, decision, now)
    assert store.try_take(48, 0.1) is None and store.try_take(47, 0.1)


def test_a_call_that_has_waited_for_three_fetches_asks_directly() -> None:
    store = Store(RATE, 100, 20)
    store.take(600, 0.0, waits=0)
    for waits in range(3):
        now = waits / 1000
        assert store.take(1, now, waits=waits) is Way.WAIT
        batch, store.wanted = store.wanted, 0
        store.fetched_at(Decision(True, 10_000, 0, 0.0, 0.0, batch), batch, now, now)
        assert store.take(batch, now, waits=1)  # others are faster
    assert store.take(1, 0.003, waits=3) is Way.ASK


def test_new_keys_are_refused_while_many_shares_are_in_use() -> None:
    insurance, slow = Insurance(), SteadyRate(4, 4, 10_000)
    for key in range(MOST_KEYS):
        assert insurance.take([Claim(key, slow, 2, 1)], 0.0).allowed
    refused = insurance.take([Claim("new", slow, 2, 1)], 1.0)
    assert (refused.allowed, refused.retry_after, len(insurance)) == (False, SWEEP, MOST_KEYS)
    assert insurance.take([Claim(0, slow, 2, 1)], 1.0).allowed
    assert not insurance.take([Claim(0, slow, 2, 1)], 1.0).allowed
    assert not insurance.take([Claim("new", slow, 2, 1)], 1.5).allowed
    assert insurance.take([Claim("new", slow, 2, 1)], 5.0).allowed  # those that are full again have gone
    assert len(insurance) == 2


# A real server


@pytest.fixture
def limiter(server: Server) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), timeout=1.0, prefix="local:") as limiter:
        yield limiter


def busy(limit: Local) -> None:
    """Lets a local limit fetch."""
    assert limit.take(99)
    assert limit.take().source == "local"


def test_threads_share_what_is_fetched(limiter: RateLimiter) -> None:
    limit = limiter.local("threads", "1000000/s", processes=2)

    def work(calls: int) -> int:
        return sum(1 for _ in range(calls) if limit.take())

    with ThreadPoolExecutor(8) as threads:
        allowed = sum(threads.map(work, [500] * 8))
    counters = limiter.counters
    assert allowed == 4000 == counters["asked"] == counters["allowed"]
    assert counters["answered_locally"] > 100
    assert counters["fetched"] >= counters["answered_locally"] + counters["forgotten"]
    remaining = limiter.peek("threads", "1000000/s").remaining
    assert remaining <= 1_000_000


def test_the_child_of_a_fork_begins_without_what_was_taken(limiter: RateLimiter) -> None:
    limit = limiter.local("fork", "100000/s", hold="1s", processes=2)
    busy(limit)
    assert limit.try_take()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"0" if limit.try_take() is None and not limiter.counters["answered_locally"] else b"1")
        os._exit(0)
    os.close(write)
    assert os.read(read, 1) == b"0"
    os.close(read)
    os.waitpid(child, 0)
    assert limit.try_take()


def test_a_limiter_keeps_the_local_limits_that_are_used(limiter: RateLimiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MOST_KEYS", 3)
    monkeypatch.setattr("redis_ratelimit.local.local_threads.MOST_KEYS", 3)
    first = limiter.local("key:0", "1000/s", processes=2)
    for number in range(1, 5):
        limiter.local(f"key:{number}", "1000/s", processes=2)
        assert limiter.local("key:0", "1000/s", processes=2) is first
    assert limiter.local("key:0", "1000/s", processes=3) is not first


async def test_cancelled_calls_leave_no_fetch_behind(server: Server) -> None:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=1.0) as limiter:
        limit = limiter.local("cancelled", "10000/s", processes=2)
        assert await limit.take(99)
        tasks = [asyncio.create_task(limit.take()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks[:4]:
            task.cancel()
        results: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results[:4])
        assert results[4].source == "local"
        await asyncio.sleep(0.03)
        assert (await limit.take()).allowed
