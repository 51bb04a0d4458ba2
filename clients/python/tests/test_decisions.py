"""A decision is true if it is allowed, and has the headers of the draft."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
import redis

from redis_ratelimit import (
    AsyncRateLimiter,
    Calendar,
    CallError,
    Commands,
    Concurrent,
    ConfigurationError,
    Decision,
    FixedWindow,
    Gcra,
    LeakyBucket,
    Limit,
    Limiter,
    LimitLike,
    Refused,
    SlidingLog,
    SlidingWindow,
    Smooth,
    TokenBucket,
    Unavailable,
    Uniform,
    combined_headers,
)
from redis_ratelimit.decide.headers import quota_of
from servers import Server

NOW = 1_700_002_800_000_000


def decision(allowed: bool, retry: float | None = 0.0, reset: float = 0.0, limiter: Limiter | None = None) -> Decision:
    return Decision(allowed, 3, 2, retry, reset, limiter=limiter)


def test_the_five_integers_have_names(server: Server, key: str) -> None:
    commands = Commands(redis.Redis(port=server.port))
    first = commands.gcra(key, 0, 1, "1500ms", at=NOW)
    assert first == Decision(allowed=True, limit=1, remaining=0, retry_after=0.0, reset_after=1.5)
    assert first
    refused = commands.gcra(key, 0, 1, "1500ms", at=NOW + 500_000)
    assert refused == Decision(allowed=False, limit=1, remaining=0, retry_after=1.0, reset_after=1.0)
    assert not refused
    assert commands.gcra(key, 0, 1, "1500ms", at=NOW, cost=2).retry_after is None


def test_headers_of_an_admitted_request() -> None:
    fields = decision(True, reset=20.0, limiter=Gcra(2, 3, "1m")).headers("user")
    assert fields == {"RateLimit-Policy": '"user";q=3;w=60', "RateLimit": '"user";r=2;t=20'}


def test_seconds_are_rounded_up() -> None:
    fields = decision(False, retry=7.001, reset=9.5).headers()
    assert fields == {"RateLimit-Policy": '"default";q=3', "RateLimit": '"default";r=2;t=8', "Retry-After": "8"}
    assert decision(False, retry=7.0).headers()["Retry-After"] == "7"
    assert decision(False, retry=0.07 * 100).headers()["Retry-After"] == "7"  # a float that is a little above 7


@pytest.mark.parametrize(
    ("limiter", "seconds"),
    [
        (Gcra(2, 3, "1m"), 20),
        (Gcra(0, 3, "1m"), 20),
        # 60 s / 7 is 8.57 s. What is rounded is rounded up.
        (Gcra(6, 7, "1m"), 9),
        (TokenBucket(10, 4, "1m"), 15),
        # 180 s until it is full: two after 60 s, two after 120 s, and the fifth.
        (TokenBucket(5, 2, "1m", batch=True), 60),
        (TokenBucket(5, 5, "1m", batch=True), 60),
        (LeakyBucket(5, 2, "1m"), 30),
        (FixedWindow(3, "1m"), 60),
        (Calendar(3, "HOUR"), 3600),
        (Uniform("1m"), 60),
    ],
    ids=str,
)
def test_t_is_when_the_next_request_fits_if_nothing_remains(server: Server, key: str, limiter: Limiter, seconds: int) -> None:
    commands = Commands(redis.Redis(port=server.port))

    def ask(after: int, cost: int = 1) -> Decision:
        (each,) = commands.multi([key], [limiter], cost=cost, at=NOW + after * 1_000_000).each
        return replace(each, limiter=limiter)

    last = ask(0, cost=ask(0, cost=0).limit)
    refused = ask(0)
    assert (last.allowed, refused.allowed) == (True, False)
    assert last.headers()["RateLimit"] == refused.headers()["RateLimit"] == f'"default";r=0;t={seconds}'
    assert not ask(seconds - 1)
    assert ask(seconds)


@pytest.mark.parametrize(
    ("limiter", "reset"), [(SlidingWindow(3, "1m"), 120), (SlidingLog(3, "1m"), 60), (None, 60)], ids=str
)
def test_t_is_the_reset_if_the_reply_does_not_tell_when_the_next_request_fits(limiter: Limiter | None, reset: int) -> None:
    last = Decision(True, 3, 0, 0.0, float(reset), limiter=limiter)
    assert last.headers()["RateLimit"] == f'"default";r=0;t={reset}'


def test_t_is_exact_for_the_largest_numbers() -> None:
    # The whole limit is available after 100 years, and one of it after a century / 2^53, which is 0.35 ms.
    most, century = 9_007_199_254_740_991, 3_153_600_000_000
    last = Decision(True, most, 0, 0.0, century / 1000, limiter=Gcra(most - 1, most, f"{century}ms"))
    assert last.headers()["RateLimit"] == '"default";r=0;t=1'
    # The same with a reset of 1.001 s more: FORCE charged that much beyond the limit.
    last = Decision(True, most, 0, 0.0, century / 1000 + 1.001, limiter=Gcra(most - 1, most, f"{century}ms"))
    assert last.headers()["RateLimit"] == '"default";r=0;t=2'


def test_what_never_fits_has_no_retry_after() -> None:
    fields = decision(False, retry=None, reset=5.0).headers()
    assert fields == {"RateLimit-Policy": '"default";q=3', "RateLimit": '"default";r=2'}


def test_a_lease_has_a_unit_and_no_time() -> None:
    lease = Concurrent(3, "1m")
    assert decision(True, reset=60.0, limiter=lease).headers("jobs") == {
        "RateLimit-Policy": '"jobs";q=3;qu="concurrent-requests"',
        "RateLimit": '"jobs";r=2',
    }
    assert decision(False, retry=59.0, limiter=lease).headers()["Retry-After"] == "1"


def test_without_an_answer_there_are_no_headers() -> None:
    assert Decision(True, 0, 0, 0.0, 0.0, answered=False, error=Unavailable("RL.GCRA", "timeout", "no reply")).headers() == {}


def test_a_refusal_lists_what_refuses() -> None:
    named = [
        ("day", decision(True, reset=1000.0)),
        ('a"b\\c', decision(False, retry=2.0)),
        ("s", decision(False, retry=3.0)),
    ]
    fields = combined_headers(named, allowed=False)
    assert fields["RateLimit-Policy"] == '"day";q=3, "a\\"b\\\\c";q=3, "s";q=3'
    assert fields["RateLimit"] == '"a\\"b\\\\c";r=2;t=2, "s";r=2;t=3'
    assert fields["Retry-After"] == "3"
    assert "Retry-After" not in combined_headers([*named, ("n", decision(False, retry=None))], allowed=False)


def test_a_name_that_no_header_can_have_is_an_error() -> None:
    for name in ("ü", "a\nb"):
        with pytest.raises(ConfigurationError):
            decision(True).headers(name)


@pytest.mark.parametrize(
    ("limiter", "count", "window"),
    [
        (Gcra(9, 10, "1s"), 10, 1),
        (Gcra(9, 10, "1500ms"), None, None),
        (TokenBucket(500, 100, "1m"), 100, 60),
        (FixedWindow(5, "1h"), 5, 3600),
        (SlidingWindow(5, "1h"), 5, 3600),
        (SlidingLog(5, "1d"), 5, 86_400),
        (Smooth(5, "2s"), 5, 2),
        (Uniform("2s"), 1, 2),
        (Calendar(5, "day"), 5, 86_400),
        (Calendar(5, "MONTH"), 5, None),
    ],
    ids=str,
)
def test_q_and_w_are_the_limiters(limiter: Limiter, count: int | None, window: int | None) -> None:
    assert quota_of(limiter) == (count, window, False)


async def test_each_limit_has_its_own_headers(limiter: AsyncRateLimiter, key: str) -> None:
    limits: list[LimitLike] = ["10/m", Limit(FixedWindow(5, "1h"), on=2), Limit(Concurrent(3, "1m", "a"), on=1)]
    both = await limiter.limits([key + ":1", key + ":2"], limits)
    policies = [each.headers("x")["RateLimit-Policy"] for each in both.each]
    assert policies == ['"x";q=10;w=60', '"x";q=10;w=60', '"x";q=5;w=3600', '"x";q=3;qu="concurrent-requests"']
    assert both.headers()["RateLimit-Policy"] == '"default";q=3'


def test_errors_can_be_sent_to_another_process() -> None:
    refused = Refused(decision(False, retry=2.0, limiter=Gcra(2, 3, "1m")))
    for error in (
        CallError("RL.GCRA", "WRONGTYPE a key", "redis:6379"),
        Unavailable("RL.GCRA", "timeout", "no reply", "redis:6379", maybe_sent=True),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
        assert vars(copy) == vars(error)
    copy = pickle.loads(pickle.dumps(refused))
    assert str(copy) == str(refused) and copy.decision == refused.decision
    assert copy.decision.limiter == Gcra(2, 3, "1m")
