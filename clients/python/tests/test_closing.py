"""Closing a limiter ends what it holds, and leaving afterwards is quiet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker
from gates import BUCKET, free, gate, held, passed, remaining, rule
from redis_ratelimit import AsyncRateLimiter, Concurrent, RateLimiter
from redis_ratelimit.decide.errors import Closed
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.passage import Passage
from redis_ratelimit.taken.endings import Ending
from servers import Server, eventually


def leases(server: Server, key: str) -> int:
    return 100 - int(server.client.execute_command("RL.PEEK", key, "CONCURRENT", 100, "1m", "nobody")[2])


@pytest.mark.parametrize("renew", [True, False])
async def test_close_releases_the_leases_that_are_held(
    make: Maker, server: Server, key: str, renew: bool, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make()
    async with limiter.lease(key, 5, "1m", renew=renew) as first, limiter.lease(key, 5, "1m", renew=renew):
        assert leases(server, key) == 2
        await limiter.close()
        assert leases(server, key) == 0 and not first.held and not first.lost
        server.client.config_resetstat()
    assert server.calls("rl.release") == 0 and caplog.text == ""


async def test_a_lease_that_was_left_is_not_released_again(make: Maker, server: Server, key: str) -> None:
    limiter = make()
    async with limiter.lease(key, 5, "1m"):
        pass
    server.client.config_resetstat()
    await limiter.close()
    assert server.calls("rl.release") == 0


@pytest.mark.parametrize(("actual", "left"), [(None, 20), (30, 70)])
async def test_close_settles_what_is_held(
    make: Maker, server: Server, key: str, actual: int | None, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make()
    async with limiter.budget(key, "100/100d").hold(80) as each:
        if actual is not None:
            each.settle(actual)
        await limiter.close()
        bare = make()
        assert (await bare.peek(key, "100/100d", 0)).remaining == left
        assert not (await asyncio.to_thread(server.client.execute_command, "RL.INFO", key)).get("holds")
    assert caplog.text == ""


async def test_work_that_ends_after_close_names_the_cost_that_is_not_charged(
    make: Maker, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make()
    async with limiter.budget(key, BUCKET).hold(80) as each:
        await limiter.close()
        each.settle(30)
    assert len(caplog.records) == 1 and "the limiter has settled 80, not 30" in caplog.text


async def test_an_estimate_without_an_answer_is_settled_by_close(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=0.3, breaker=None)
    await limiter.limit(key + ":warm", "1/s")
    with server.frozen():
        manager = limiter.budget(key, BUCKET).hold(80)
        each = await manager.__aenter__()
        assert each.decision is None
    # The server executes what it got meanwhile, and the settlement comes after it.
    await asyncio.to_thread(eventually, lambda: server.client.exists(key), "the late call")
    await limiter.close()
    await manager.__aexit__(None, None, None)
    assert not server.client.execute_command("RL.INFO", key).get("holds")


async def test_without_an_answer_there_is_one_line_and_the_lease_ends_by_its_ttl(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make(timeout=0.3, breaker=None)
    async with limiter.lease(key, 5, "1m"), limiter.lease(key, 5, "1m"):
        with server.frozen():
            await limiter.close()
    assert len(caplog.records) == 1
    line = caplog.records[0].getMessage()
    assert line.startswith(f"RL.RELEASE 'key…' at localhost:{server.port}: not repeated, since the limiter closes: ")


async def test_a_release_after_close_is_quiet(make: Maker, key: str, caplog: pytest.LogCaptureFixture) -> None:
    """Such as that of a lease that was taken while the limiter closed."""
    limiter = make()
    async with limiter.lease(key, 5, "1m") as lease:
        limiter.taken.discard(lease)
        await limiter.close()
    assert len(caplog.records) == 1 and "not repeated, since the limiter closes: the limiter is closed" in caplog.text


def test_close_ends_the_requests_that_are_under_way(server: Server, key: str, caplog: pytest.LogCaptureFixture) -> None:
    limiter = RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0)
    door = gate(limiter, rule("streams", Concurrent(2, "1m")), rule("tokens", BUCKET, estimate=400))
    entered = [passed(door.enter({"user": "ann"})) for _ in range(2)]
    entered[0].spent["tokens"] = 100
    limiter.close()
    for each in entered:
        door.leave(each)
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as bare:
        assert free(bare, "streams:ann") == 2 and not held(bare, "tokens:ann")
        assert 500 <= remaining(bare, "tokens:ann", BUCKET) <= 501
    assert caplog.text == ""


async def test_close_ends_the_requests_that_are_under_way_on_asyncio(server: Server, key: str) -> None:
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), prefix=f"{key}:", timeout=5.0)
    door: AsyncGate[dict[str, Any]] = AsyncGate(limiter, [rule("streams", Concurrent(2, "1m"))], None)
    entered = await door.enter({"user": "ann"})
    assert isinstance(entered, Passage)
    await limiter.close()
    await door.leave(entered)
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as bare:
        assert free(bare, "streams:ann") == 2


async def test_a_release_without_an_answer_is_not_repeated_while_the_limiter_closes(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = make(timeout=0.3, breaker=None)
    lease = limiter.lease(key, 5, "1m")
    await lease.__aenter__()
    limiter.background.close()
    with server.frozen():
        await lease.__aexit__(None, None, None)
    assert [each.getMessage().split(": ")[1] for each in caplog.records] == ["not repeated, since the limiter closes"]


@pytest.mark.parametrize("verified", [True, False])
def test_a_request_that_no_rule_concerns_goes_on_after_close(server: Server, key: str, verified: bool) -> None:
    limiter = RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0)
    door = gate(limiter, rule())
    if verified:
        door.limiter.ready()
    limiter.close()
    door.leave(passed(door.enter({})))
    with pytest.raises(Closed):
        door.enter({"user": "ann"})


async def test_what_is_dropped_is_forgotten(make: Maker, key: str) -> None:
    limiter = make()
    lease = limiter.lease(key, 5, "1m", renew=False)
    await lease.__aenter__()
    left: list[Ending] = limiter.taken.close()
    assert [each.call.command for each in left] == ["RL.RELEASE"] and limiter.taken.close() == []
