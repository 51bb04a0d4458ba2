"""Refusals are kept in the process, within bounds."""

from __future__ import annotations

import asyncio

import pytest

from both import Maker
from fakes import core
from redis_ratelimit import (
    AskDecision,
    Concurrent,
    Decision,
    FixedWindow,
    Gcra,
    Limit,
    LimitLike,
    MultiDecision,
    Penalty,
    RefusalCache,
    Sketch,
    SlidingLog,
)
from redis_ratelimit.call import calls
from redis_ratelimit.call.call import Call
from redis_ratelimit.call.questions import Place, Question
from redis_ratelimit.call.values import Word
from redis_ratelimit.decide.refusals import QUESTIONS_PER_KEY, Refusals
from servers import Server, eventually

REFUSAL = (1, 1, 0, 30_000, 60_000)


def place(key: str, words: Word = "q") -> Place:
    return Place((key.encode(),), b"", (words,))


def refusal(retry: float | None) -> Decision:
    return Decision(False, 1, 0, retry, 60.0)


async def test_a_refused_key_is_not_asked_again(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache())
    await limiter.limit(key, "1/h")
    server.client.config_resetstat()
    answers = [await limiter.limit(key, "1/h") for _ in range(5)]
    assert not any(answers) and server.calls("rl.gcra") == 1
    assert (limiter.counters["refused"], limiter.counters["cached"], limiter.counters["asked"]) == (5, 4, 6)
    waits = [each.retry_after or 0.0 for each in answers]
    assert waits == sorted(waits, reverse=True) and waits[0] > waits[-1] > 3500
    assert answers[4].headers()["RateLimit-Policy"] == '"default";q=1;w=3600'


async def test_another_question_is_asked(make: Maker, key: str) -> None:
    limiter = make(cache=RefusalCache())
    await limiter.limit(key, Gcra(9, 10, "1h"), cost=8)
    assert not await limiter.limit(key, Gcra(9, 10, "1h"), cost=5)
    assert await limiter.limit(key, Gcra(9, 10, "1h"), cost=2)
    assert await limiter.limit(key + ":other", Gcra(9, 10, "1h"), cost=5)
    assert not await limiter.limit(key, Gcra(9, 10, "1h"), cost=5)
    assert limiter.counters["cached"] == 1


async def test_a_refusal_ends_at_its_time(make: Maker, key: str) -> None:
    limiter = make(cache=RefusalCache())
    turn = Gcra(0, 1, "1s")
    assert await limiter.limit(key, turn)
    refused = await limiter.limit(key, turn)
    assert not refused
    await asyncio.sleep((refused.retry_after or 0.0) + 0.05)
    assert await limiter.limit(key, turn)


async def test_several_limits_are_kept_too(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache())
    limits: list[LimitLike] = ["1/h", Limit(FixedWindow(5, "1h"))]
    first, second, third = [await limiter.limits([key], limits) for _ in range(3)]
    assert (first.allowed, second.allowed, third.allowed) == (True, False, False)
    assert limiter.counters["cached"] == 1
    assert (third.each[0].retry_after or 0) < (second.each[0].retry_after or 0) and third.each[1].allowed


async def test_what_may_end_early_is_not_kept(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache())
    server.client.execute_command("RL.POLICY", "SET", "one", *"LIMIT GCRA 0 1 1h".split())
    for _ in range(3):
        await limiter.limit(key + ":p", Penalty(1, "1h", "1h"))
        await limiter.limit(key + ":c", SlidingLog(1, "1h", countrefused=True))
        await limiter.limit(key + ":w", "1/h", wait="20ms")
        await limiter.limits([key + ":m"], ["1/h", Concurrent(1, "1m", "a")])
        await limiter.limits([key + ":h"], ["1/h"], hold=("id", "1m"), cost=2)
        await limiter.ask(key + ":a", "one")
        await limiter.limit(key + ":z", "1/h", cost=0)
    assert limiter.counters["refused"] > 8 and limiter.counters["cached"] == 0


async def test_policies_are_kept_if_the_cache_is_for_them(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache(cache_ask=True))
    server.client.execute_command("RL.POLICY", "SET", "hour", *"LIMIT GCRA 0 1 1h".split())
    answers = [await limiter.ask(key, "hour", full=True) for _ in range(3)]
    assert limiter.counters["cached"] == 1 and isinstance(answers[2], AskDecision) and answers[2].binding == 1
    await limiter.ask(key, "hour", lease_id="a")
    await limiter.ask(key, "hour", lease_id="a")
    assert limiter.counters["cached"] == 1


async def test_what_is_given_back_here_is_noticed(make: Maker, key: str) -> None:
    limiter = make(cache=RefusalCache())
    assert await limiter.limit(key, "1/h")
    assert not await limiter.limit(key, "1/h")
    await limiter.refund(key, "1/h")
    assert await limiter.limit(key, "1/h")
    bucket = Gcra(99, 100, "100d")
    async with limiter.budget(key + ":b", bucket).hold(80) as held:
        assert not await limiter.limit(key + ":b", bucket, cost=50)
        held.settle(10)
    assert await limiter.limit(key + ":b", bucket, cost=50)


def test_the_least_recently_used_key_goes() -> None:
    kept = Refusals(RefusalCache(keys=2))
    for key in ("a", "b"):
        kept.keep(place(key), refusal(30.0), 0.0)
    assert kept.find(place("a"), Decision, 1.0) is not None
    kept.keep(place("c"), refusal(30.0), 1.0)
    assert len(kept) == 2
    assert [kept.find(place(key), Decision, 1.0) is not None for key in "abc"] == [True, False, True]


def test_a_key_has_few_questions() -> None:
    kept = Refusals(RefusalCache())
    for number in range(QUESTIONS_PER_KEY + 1):
        kept.keep(place("a", number), refusal(30.0), 0.0)
    assert kept.find(place("a", 0), Decision, 1.0) is None
    assert kept.find(place("a", 1), Decision, 1.0) is not None


def test_a_refusal_is_kept_no_longer_than_said() -> None:
    kept = Refusals(RefusalCache(longest=10.0))
    for name, retry in (("never", None), ("long", 100.0), ("short", 5.0)):
        kept.keep(place(name), refusal(retry), 0.0)
    assert [kept.find(place(name), Decision, 4.9) is not None for name in ("never", "long", "short")] == [True] * 3
    assert [kept.find(place(name), Decision, 5.0) is not None for name in ("never", "long", "short")] == [
        True,
        True,
        False,
    ]
    assert [kept.find(place(name), Decision, 10.0) is not None for name in ("never", "long", "short")] == [False] * 3
    assert len(kept) == 0


def test_a_refusal_tells_what_is_left_of_its_time() -> None:
    kept = Refusals(RefusalCache())
    each = (refusal(30.0), refusal(None), Decision(True, 1, 1, 0.0, 1.0))
    kept.keep(place("a"), MultiDecision(False, 1, 0, None, 60.0, each=each), 0.0)
    later = kept.find(place("a"), MultiDecision, 2.0)
    assert later is not None and later.retry_after is None and later.reset_after == 58.0
    assert [part.retry_after for part in later.each] == [28.0, None, 0.0]
    assert [part.reset_after for part in later.each] == [58.0, 58.0, 0.0]


def test_a_refusal_of_another_kind_is_not_taken() -> None:
    kept = Refusals(RefusalCache())
    kept.keep(place("a"), refusal(30.0), 0.0)
    assert kept.find(place("a"), MultiDecision, 1.0) is None
    kept.forget(b"a")
    assert kept.find(place("a"), Decision, 1.0) is None
    with pytest.raises(ValueError):
        RefusalCache(keys=-1)


def test_a_key_that_goes_leaves_nothing_behind() -> None:
    kept = Refusals(RefusalCache(keys=2))
    for number in range(100):
        both = Place((b"all", b"user:%d" % number), b"", ("q",))
        kept.keep(both, refusal(30.0), 0.0)
    assert len(kept) == 2 and len(kept._of_key) == 3  # pyright: ignore[reportPrivateUsage]
    kept.forget(b"all")
    assert len(kept) == len(kept._of_key) == 0  # pyright: ignore[reportPrivateUsage]


async def test_each_item_of_a_sketch_is_kept(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache())
    addresses = [Sketch(f"203.0.113.{number}", 0, 1, "1h") for number in range(2 * QUESTIONS_PER_KEY)]
    for address in (*addresses, *addresses):
        await limiter.limit(key, address)
    server.client.config_resetstat()
    answers = [await limiter.limit(key, address) for address in addresses]
    assert not any(answers) and server.calls("rl.sketch") == 0
    assert limiter.counters["cached"] == len(addresses)


async def test_what_is_given_back_to_any_key_of_several_is_noticed(make: Maker, key: str) -> None:
    limiter = make(cache=RefusalCache())
    keys = [key + ":user", key + ":team"]
    limits = [Limit("5/h", on=1), Limit("1/h", on=2)]
    assert await limiter.limits(keys, limits)
    assert not await limiter.limits(keys, limits)
    await limiter.refund(keys[1].encode(), "1/h")
    assert await limiter.limits(keys, limits)
    assert not await limiter.limits([each.encode() for each in keys], limits)
    assert not await limiter.limits(keys, limits)
    assert limiter.counters["cached"] == 1


async def test_a_refusal_while_a_refund_is_under_way_is_forgotten(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache())
    assert await limiter.limit(key, "1/h")
    with server.frozen():
        refund = asyncio.create_task(limiter.refund(key, "1/h"))
        await asyncio.sleep(0.2)
        late = Question(Call(["RL.GCRA", key]), refusal=place(key, "late"))
        limiter.core.decided(late, Decision, REFUSAL)
    await refund
    assert limiter.core.known(late, Decision) is None
    assert await limiter.limit(key, "1/h")


async def test_a_settlement_in_the_background_is_noticed(make: Maker, server: Server, key: str) -> None:
    limiter = make(cache=RefusalCache(), timeout=0.3, breaker=None)
    bucket = Gcra(99, 100, "100d")
    await limiter.limit(key + ":warm", "1/s")
    server.client.config_resetstat()
    with server.frozen():
        async with limiter.budget(key, bucket).hold(80) as held:
            held.settle(10)
    await asyncio.to_thread(eventually, lambda: server.calls("rl.settle") > 0, "the settlement")

    async def admitted() -> bool:
        return bool(await limiter.limit(key, bucket, cost=50))

    for _ in range(100):
        if await admitted():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the refusal was kept")


def test_the_keys_of_calls_that_give_back() -> None:
    own = core(cache=RefusalCache())
    ended: list[tuple[Call, list[str]]] = [
        (calls.refund("", "a", "1/s"), ["a"]),
        (calls.multi_settle("", ["a", "b"], "id", ["1/s"]), ["a", "b"]),
        (calls.ask_settle("", "a", "KEYS", "id", 1, more_keys=["b", "c"]), ["a", "b", "c"]),
        (calls.ask_refund("", "a", "api"), ["a"]),
        (calls.peek("", "a", "1/s"), []),
    ]
    for call, given in ended:
        asked = [Question(Call(["RL.GCRA"]), refusal=place(key)) for key in "abc"]
        for question in asked:
            own.decided(question, Decision, REFUSAL)
        own.forget(call)
        assert [key for key, each in zip("abc", asked, strict=True) if own.known(each, Decision) is None] == given


def test_a_refusal_that_was_decided_before_something_was_given_back_is_not_kept() -> None:
    kept = Refusals(RefusalCache(keys=2))
    before = kept.generation
    kept.forget(b"a")
    kept.keep(place("a"), refusal(30.0), 6.0, before)
    assert kept.find(place("a"), Decision, 6.0) is None
    kept.keep(place("a"), refusal(30.0), 6.0, kept.generation)
    assert kept.find(place("a"), Decision, 6.0) is not None
    for other in (b"b", b"c", b"d"):
        kept.forget(other)
    kept.keep(place("e"), refusal(30.0), 6.0, before)  # what is known of few keys is taken for all others
    assert kept.find(place("e"), Decision, 6.0) is None
