"""What a single call may have of its own: how it is charged, its time-out, its decision without an answer, its tenant."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from both import Maker
from redis_ratelimit import Concurrent, ConfigurationError, Gcra, Limit, Refused, Smooth, Unavailable
from servers import Server, eventually, free_port

BUCKET = Gcra(9, 10, "10d")


async def test_partial_charges_what_fits(make: Maker, key: str) -> None:
    limiter = make()
    assert (await limiter.limit(key, BUCKET, 7)).granted is None
    decision = await limiter.limit(key, BUCKET, 7, partial=True)
    assert decision.allowed and decision.granted == 3 and decision.remaining == 0


async def test_force_exceeds_the_limit(make: Maker, key: str) -> None:
    limiter = make()
    assert (await limiter.limit(key, BUCKET, 12, force=True)).allowed
    assert not (await limiter.limit(key, BUCKET)).allowed
    assert (await limiter.limits([key + "b"], [BUCKET], 12, force=True)).allowed


async def test_reserve_books_ahead(make: Maker, key: str) -> None:
    limiter, slow = make(), Gcra(0, 1, "10s")
    assert (await limiter.limit(key, slow, reserve=True)).retry_after == 0
    booked = await limiter.limit(key, slow, reserve="1m")
    assert booked.allowed and booked.retry_after is not None and 5 < booked.retry_after <= 10
    assert not (await limiter.limit(key, slow, reserve="5s")).allowed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"partial": True, "force": True}, "take one of partial, force and reserve"),
        ({"limiter": Smooth(1, "1s"), "force": True}, "SMOOTH takes no force"),
        ({"limiter": Concurrent(1, "1s", "a"), "partial": True}, "CONCURRENT takes no partial"),
        ({"reserve": 5}, "reserve"),
        ({"wait": "1s", "timeout": 1}, "a call that waits takes no timeout"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"fail": "never"}, "fail must be 'open' or 'closed', not 'never'"),
        ({"weight": 2}, "weight needs a tenant"),
        ({"tenant": "a"}, "a tenant of GCRA needs wait"),
        ({"tenant": "a", "weight": 1001, "wait": "1s"}, "weight must be"),
    ],
)
async def test_what_is_wrong_is_not_sent(make: Maker, key: str, options: dict[str, Any], says: str) -> None:
    limiter = make(port=free_port())
    asked: dict[str, Any] = {"limiter": BUCKET, **options}
    with pytest.raises(ConfigurationError, match=says):
        await limiter.limit(key, **asked)
    assert limiter.counters["unavailable"] == 0


async def test_a_call_has_a_decision_of_its_own_without_an_answer(make: Maker, key: str) -> None:
    limiter = make(port=free_port(), fail="open", breaker=None)
    assert (await limiter.limit(key, BUCKET)).allowed
    assert not (await limiter.limit(key, BUCKET, fail="closed")).allowed
    assert not (await limiter.peek(key, BUCKET, fail="closed")).allowed
    assert not (await limiter.limits([key], [BUCKET], fail="closed")).allowed
    assert not (await limiter.ask(key, "api", fail="closed")).allowed
    with pytest.raises(Unavailable):
        async with limiter.lease(key, 1, "1s", fail="closed"):
            raise AssertionError("not reached")
    with pytest.raises(Unavailable):
        async with limiter.budget(key, BUCKET).hold(5, fail="closed"):
            raise AssertionError("not reached")
    assert limiter.counters["failed_open"] == 1 and limiter.counters["failed_closed"] == 5


async def test_without_an_answer_a_partial_call_is_granted_all_or_nothing(make: Maker, key: str) -> None:
    limiter = make(port=free_port(), breaker=None)
    assert (await limiter.limit(key, BUCKET, 7, partial=True)).granted == 7
    assert (await limiter.limit(key, BUCKET, 7, partial=True, fail="closed")).granted == 0
    assert (await limiter.limit(key, BUCKET, 7)).granted is None


async def test_a_call_has_a_timeout_of_its_own(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=5.0, breaker=None)
    await limiter.limit(key, BUCKET)
    with server.frozen():
        asked = time.monotonic()
        decision = await limiter.limit(key, BUCKET, timeout=0.2)
        assert not decision.answered and time.monotonic() - asked < 2.5
        assert decision.error is not None and decision.error.reason.startswith("no reply within 200 ms")


async def test_tenants_take_turns(make: Maker, server: Server, key: str) -> None:
    """The first tenant waits twice, then the second one: the slots go to one of each."""
    limiter, order = make(), list[str]()

    async def work(tenant: str) -> None:
        async with limiter.lease(key, 1, "1m", wait="30s", tenant=tenant, weight=1):
            order.append(tenant)

    async with limiter.lease(key, 1, "1m", tenant="first"):
        with pytest.raises(Refused):
            async with limiter.lease(key, 1, "1m", tenant="second"):
                raise AssertionError("not reached")
        tasks: list[asyncio.Task[None]] = []
        for tenant in ("first", "first", "second"):
            tasks.append(asyncio.create_task(work(tenant)))
            await asyncio.to_thread(eventually, lambda: server.waiting() == len(tasks), "a wait")
    await asyncio.gather(*tasks)
    assert order.index("second") < 2


async def test_a_limit_of_several_has_a_tenant(make: Maker, key: str) -> None:
    limiter = make()
    lease = Limit(Concurrent(2, "1m", "id"), tenant="a", weight=3)
    assert (await limiter.limits([key], [lease])).allowed
    async with limiter.budget(key + "b", BUCKET).hold(3, wait="1s", tenant="a") as held:
        held.settle(1)
    assert (await limiter.peek(key + "b", BUCKET)).remaining == 9


async def test_the_call_that_crosses_a_share_of_the_limit(make: Maker, key: str) -> None:
    limiter = make()
    crossed = [(await limiter.limit(key, BUCKET)).crosses(0.8) for _ in range(11)]
    assert crossed == [False] * 7 + [True] + [False] * 3
    assert not (await limiter.limits([f"{key}:a"], ["1000/d", Limit("100/h", cost=5)], 8)).crosses(0.8)
    assert (await limiter.limits([f"{key}:b"], ["1000/d", "10/h"], 8)).crosses(0.8)
    assert not (await limiter.peek(key, BUCKET)).crosses(0.8)
    with pytest.raises(ConfigurationError, match="fraction must be a number above 0 and at most 1, not 80"):
        (await limiter.limit(key, BUCKET)).crosses(80)
