"""Closing a limiter ends what it holds, and leaving afterwards is quiet. The contract's cases show what is sent."""

from __future__ import annotations

import asyncio

import pytest

from both import Maker, inside
from gates import Request, rule
from redis_ratelimit import Concurrent
from redis_ratelimit.gates import Passage
from redis_ratelimit.decide.errors import Closed
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.entrance_threads import Gate
from servers import BUCKET, Server, eventually, leases


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
        assert (await manager.__aenter__()).decision is None
    # The server executes what it got meanwhile, and the settlement comes after it.
    await asyncio.to_thread(eventually, lambda: server.client.exists(key), "the late call")
    await limiter.close()
    await manager.__aexit__(None, None, None)
    assert not server.client.execute_command("RL.INFO", key).get("holds")


@pytest.mark.parametrize("closed", ["limiter", "background"])
async def test_a_release_while_the_limiter_closes_is_not_repeated_and_one_line(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture, closed: str
) -> None:
    """Such as that of a lease that was taken while the limiter closed."""
    limiter = make(timeout=0.3, breaker=None)
    lease = limiter.lease(key, 5, "1m")
    inside(limiter).taken.discard(await lease.__aenter__())
    if closed == "limiter":
        await limiter.close()
        await lease.__aexit__(None, None, None)
    else:
        inside(limiter).background.close()
        with server.frozen():
            await lease.__aexit__(None, None, None)
    assert [each.getMessage().split(": ")[1] for each in caplog.records] == ["not repeated, since the limiter closes"]


@pytest.mark.parametrize("verified", [True, False])
async def test_a_request_that_no_rule_concerns_goes_on_after_close_and_others_are_ended(
    make: Maker, server: Server, key: str, verified: bool
) -> None:
    limiter = make(prefix=f"{key}:")
    streams = rule("streams", Concurrent(2, "1m"))
    threads = make.kind == "threads"
    door = Gate[Request](getattr(limiter, "_limiter"), [streams]) if threads else AsyncGate[Request](limiter, [streams])

    async def enter(request: Request) -> object:
        return door.enter(request) if isinstance(door, Gate) else await door.enter(request)

    if verified:
        await limiter.ready()
    entered = await enter({"user": "ann"})
    assert isinstance(entered, Passage) and leases(server, f"{key}:streams:ann") == 1
    await limiter.close()
    assert leases(server, f"{key}:streams:ann") == 0
    assert isinstance(await enter({}), Passage)
    with pytest.raises(Closed):
        await enter({"user": "ann"})
