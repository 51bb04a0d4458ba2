"""Leases are renewed, and released on every path."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker
from redis_ratelimit import (
    AsyncRateLimiter,
    CallError,
    Concurrent,
    ConfigurationError,
    RateLimiter,
    Refused,
    Unavailable,
)
from redis_ratelimit.decide import core
from servers import Proxy, Server, eventually, free_port


def leases(server: Server, key: str) -> int:
    """How many leases are held now."""
    return 100 - int(server.client.execute_command("RL.PEEK", key, "CONCURRENT", 100, "1m", "nobody")[2])


async def soon(server: Server, key: str, number: int) -> None:
    await asyncio.to_thread(eventually, lambda: leases(server, key) == number, f"{number} leases")


async def test_a_lease_is_held_until_the_work_is_done(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 2, "1m") as lease:
        assert lease.held and not lease.lost and lease.decision is not None and lease.decision.remaining == 1
        assert leases(server, key) == 1
    assert leases(server, key) == 0 and not lease.held
    assert limiter.counters["asked"] == limiter.counters["allowed"] == 1


async def test_an_exception_releases(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with limiter.lease(key, 1, "1m"):
            raise ZeroDivisionError
    assert leases(server, key) == 0


async def test_a_refused_lease_is_an_error_that_says_when(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 1, "1m"):
        with pytest.raises(Refused, match="refused for") as refused:
            async with limiter.lease(key, 1, "1m"):
                raise AssertionError("not reached")
        assert not refused.value.decision.allowed and 0 < (refused.value.decision.retry_after or 0) <= 60
        assert leases(server, key) == 1
    with pytest.raises(Refused, match="never"):
        async with limiter.lease(key, 1, "1m", cost=2):
            raise AssertionError("not reached")


async def test_a_wrong_lease_is_an_error(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    for values in ((0, "1m"), (1, "0s"), (1, "soon")):
        with pytest.raises(ConfigurationError):
            limiter.lease(key, *values)
    server.client.set(key, "a string")
    with pytest.raises(CallError, match="RL.CONCURRENT at .*wrong kind of value"):
        async with limiter.lease(key, 1, "1m"):
            raise AssertionError("not reached")


async def test_a_lease_is_for_one_piece_of_work(limiter: AsyncRateLimiter, key: str) -> None:
    lease, held = limiter.lease(key, 5, "1m"), limiter.budget(key + ":b", "10/m").hold(1)
    async with lease, held:
        pass
    for used in (lease, held):
        with pytest.raises(ConfigurationError, match="is for one piece of work"):
            async with used:
                raise AssertionError("not reached")


async def test_a_lease_outlives_its_ttl_by_renewals(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 1, "600ms") as lease:
        await asyncio.sleep(1.5)
        assert leases(server, key) == 1 and lease.held
    assert leases(server, key) == 0


async def test_a_lease_that_is_not_renewed_ends(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 1, "100ms", renew=False) as lease:
        await soon(server, key, 0)
        await asyncio.sleep(0.1)
        assert not lease.held and not lease.lost


async def test_a_lost_lease_is_noticed(
    limiter: AsyncRateLimiter, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with limiter.lease(key, 1, "300ms") as lease:
        server.client.delete(key)
        await asyncio.to_thread(eventually, lambda: lease.lost, "the loss")
        assert not lease.held
    assert limiter.counters["leases_lost"] == 1
    assert f"RL.RENEW 'key…' at localhost:{server.port}: lease lost: a renewal found no lease" in caplog.text


async def test_a_key_of_another_type_loses_the_lease(limiter: AsyncRateLimiter, server: Server, key: str) -> None:
    async with limiter.lease(key, 1, "300ms") as lease:
        server.client.delete(key)
        server.client.set(key, "a string")
        await asyncio.to_thread(eventually, lambda: lease.lost, "the loss")


async def test_a_release_that_is_rejected_is_logged(
    limiter: AsyncRateLimiter, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with limiter.lease(key, 1, "1m"):
        server.client.set(key, "a string")
    assert f"RL.RELEASE 'key…' at localhost:{server.port}: not repeated" in caplog.text


async def test_without_an_answer_the_work_goes_on_uncertainly(make: Maker, key: str) -> None:
    limiter = make(port=free_port())
    async with limiter.lease(key, 1, "1m") as lease:
        assert not lease.held and lease.decision is None
    assert limiter.counters["failed_open"] == 1
    assert limiter.counters["releases_retried"] == 0  # nothing was sent, so nothing is taken


async def test_without_an_answer_the_work_is_not_begun(make: Maker, key: str) -> None:
    limiter = make(port=free_port(), fail="closed")
    with pytest.raises(Unavailable, match="RL.CONCURRENT"):
        async with limiter.lease(key, 1, "1m"):
            raise AssertionError("not reached")
    assert limiter.counters["failed_closed"] == 1


@pytest.mark.parametrize("fail", ["open", "closed"])
async def test_a_lease_that_was_taken_late_is_released(make: Maker, server: Server, key: str, fail: str) -> None:
    limiter = make(timeout=0.2, fail=fail)
    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        if fail == "open":
            async with limiter.lease(key, 1, "1m") as lease:
                assert not lease.held
        else:
            with pytest.raises(Unavailable):
                async with limiter.lease(key, 1, "1m"):
                    raise AssertionError("not reached")
    await asyncio.to_thread(eventually, lambda: server.calls("rl.release") > 0, "the release")
    await soon(server, key, 0)
    async with make().lease(key, 1, "1m") as lease:
        assert lease.held


async def test_a_release_without_an_answer_is_repeated(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make(timeout=0.2, breaker=None)
    with ExitStack() as stack:
        async with limiter.lease(key, 1, "1m"):
            stack.enter_context(server.frozen())
    await soon(server, key, 0)
    assert "repeated in the background" in caplog.text
    await asyncio.to_thread(eventually, lambda: limiter.counters["releases_retried"] > 0, "a repetition")


async def test_a_renewal_without_an_answer_is_repeated(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2, breaker=None)
    async with limiter.lease(key, 1, "3s") as lease:
        await asyncio.sleep(0.9)
        with server.frozen():
            await asyncio.sleep(0.6)
        await asyncio.sleep(2.5)
        assert lease.held and not lease.lost and leases(server, key) == 1


async def test_after_a_renewal_the_ttl_counts_from_when_it_was_sent(make: Maker, server: Server, key: str) -> None:
    lease: Any = make(timeout=20.0).lease(key, 1, "6s")
    async with lease:
        first = lease._renewal.ends
        with server.frozen():
            await asyncio.to_thread(eventually, lambda: lease._renewal.call.sent, "the renewal")
            sent = time.monotonic()
            await asyncio.sleep(0.3)
        await asyncio.to_thread(eventually, lambda: lease._renewal.ends != first, "the reply")
        assert lease._renewal.ends <= sent + 6


async def test_close_releases_what_is_left(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.2)
    with server.frozen():
        for _ in range(2):
            async with limiter.lease(key, 5, "1m"):
                pass
    await limiter.close()
    await limiter.close()
    assert leases(server, key) == 0


async def test_lines_have_command_key_and_error(make: Maker, key: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "redis_ratelimit"):
        async with make(port=free_port()).lease(key, 1, "1m"):
            pass
    assert "RL.CONCURRENT 'key…' at localhost:" in caplog.text and ": failed open: " in caplog.text


async def test_the_log_has_only_the_beginning_of_a_key(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    limiter = make(port=free_port(), prefix="app:")
    await limiter.limit("sk-secret", "1/s")
    assert "RL.GCRA 'app…' at localhost:" in caplog.text and "secret" not in caplog.text
    shown = [core.shown(key) for key in ("sk-secret", "{sk-secret}:m", b"x" * 50 + b":a", "user:1", "mail{a}", ":a")]
    assert shown == ["", "", f" '{'x' * 40}…'", " 'user…'", " 'mail…'", ""]


async def test_a_lease_whose_renewal_is_rejected_is_released(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make(port=server.port)
    try:
        async with limiter.lease(key, 1, "9s") as lease:
            server.client.acl_setuser("default", enabled=True, reset=False, commands=["-rl.renew"])
            await asyncio.to_thread(eventually, lambda: lease.lost, "the loss")
            assert leases(server, key) == 1 and not lease.held
        assert leases(server, key) == 0
        assert f"RL.RENEW 'key…' at localhost:{server.port}: lease lost: NOPERM " in caplog.text
        assert limiter.counters["leases_lost"] == 1
        with pytest.raises(ConfigurationError, match="leases: RL.RENEW at .*rl.renew"):
            await limiter.ready(Concurrent(1, "9s"))
        assert await limiter.ready("1/s")
    finally:
        server.client.acl_setuser("default", enabled=True, reset=False, commands=["+rl.renew"])
    assert await limiter.ready(Concurrent(1, "9s"))


async def test_close_sends_the_release_that_is_under_way(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.5, breaker=None)
    await limiter.limit(key + ":warm", "1/s")
    with server.frozen():
        async with limiter.lease(key, 5, "1m"):
            pass
        await asyncio.to_thread(eventually, lambda: limiter.counters["releases_retried"] > 0, "a repetition")
        closing = asyncio.create_task(limiter.close())  # while a release has no answer
        await asyncio.sleep(0.6 if make.kind == "threads" else 0.1)
    await closing
    assert leases(server, key) == 0 and len(limiter.background) == 0


def test_a_lease_is_renewed_and_released_by_hand(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as limiter:
        with limiter.lease(key, 3, "1m", renew=False, reserved=1, critical=True) as lease:
            assert lease.renew() and leases(server, key) == 1
            lease.release()
            assert leases(server, key) == 0 and not lease.held and not lease.renew()
        assert limiter.reset(key) is False
        assert limiter.limit(key, "1/h") and limiter.reset(key) and limiter.limit(key, "1/h")


def test_many_leases_are_kept_on_a_slow_network(server: Server, key: str) -> None:
    """Renewed one after the other, 100 leases would need four seconds for each round."""
    with Proxy(server.port, delay=0.04) as proxy, ExitStack() as stack:
        limiter = stack.enter_context(RateLimiter(redis.Redis(port=proxy.port), timeout=2.0))
        held = [limiter.lease(key, 100, "3s") for _ in range(100)]
        for lease in held:
            stack.enter_context(lease)
        assert all(lease.held for lease in held)
        time.sleep(5)
        assert not any(lease.lost for lease in held) and all(lease.held for lease in held)
        assert leases(server, key) == 100


async def test_work_hears_that_its_lease_is_lost(make: Maker, server: Server, key: str) -> None:
    limiter, lost = make(), threading.Event()
    async with limiter.lease(key, 1, "600ms", on_lost=lost.set) as lease:
        assert lease.held and not lost.is_set()
        server.client.delete(key)
        assert await asyncio.to_thread(lost.wait, 10) and lease.lost


async def test_work_is_cancelled_if_its_lease_is_lost(server: Server, key: str) -> None:
    async with AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=5.0) as limiter:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(asyncio.CancelledError):
            async with limiter.lease(key, 1, "600ms", on_lost=task.cancel):
                server.client.delete(key)
                await asyncio.sleep(10)
        task.uncancel()
