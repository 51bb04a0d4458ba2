"""Limits, leases and budgets with the package redis-ratelimit, on redis-py and redis.asyncio.

    limits.py [URL [PROTOCOL [SILENT_URL [cluster]]]]

Nobody answers at SILENT_URL."""

import asyncio
import sys
from uuid import uuid4

import redis
import redis.asyncio
from redis_ratelimit import AsyncRateLimiter, Calendar, Penalty, RateLimiter, Refused, SlidingWindow, TokenBucket

PLAN = [SlidingWindow(2, "1m"), SlidingWindow(100, "1d")]
LOGIN = Penalty(3, "10m", "10m", grow=2, max="1d")
MONTH = Calendar(1000, "MONTH", zone="Europe/Lisbon")
TOKENS = TokenBucket(9000, 9000, "1m")


def steps(limiter, user):
    answers = [limiter.limit(f"user:{user}", "3/m") for _ in range(4)]
    assert [answer.allowed for answer in answers] == [True, True, True, False]
    print("1 check:", answers[3].headers("user"))

    with limiter.lease(f"db:{user}", 1, "30s"):
        try:
            with limiter.lease(f"db:{user}", 1, "30s"):
                sys.exit("two leases of one")
        except Refused as refused:
            assert refused.decision.retry_after <= 30
    with limiter.lease(f"db:{user}", 1, "300ms", renew=False):  # ends by itself
        with limiter.lease(f"db:{user}", 1, "30s", wait="2s") as waited:
            assert waited.held
    print("2 lease: taken, refused, released, waited for")

    plans = [limiter.limits([f"plan:{user}"], PLAN) for _ in range(3)]
    minute, day = plans[2].each
    assert (plans[1].allowed, minute.allowed, day.allowed, day.remaining) == (True, False, True, 98)
    print("3 plan: refused by the minute, 98 left of the day")

    bans = [limiter.limit(f"ban:{user}:203.0.113.9", LOGIN, cost=failures) for failures in (1, 1, 0, 1)]
    assert bans[2].allowed and 590 <= bans[3].retry_after <= 600
    print("4 login: the third failure bans for ten minutes")

    months = [limiter.limit(f"month:{user}", MONTH, cost) for cost in (999, 2, 1)]
    assert [month.allowed for month in months] == [True, False, True]
    print("5 month: 999 taken, 2 refused, 1 taken")

    with limiter.budget(f"tokens:{user}", TOKENS).hold(6000) as hold:
        hold.settle(4500)
    assert 4500 <= limiter.peek(f"tokens:{user}", TOKENS).remaining < 6000
    print("6 tokens: 6000 held, 4500 taken")


async def steps_in_tasks(redis, user):
    async with AsyncRateLimiter(redis, prefix="example:") as limiter:
        assert (await limiter.limit(f"user:{user}", "3/m")).allowed
        async with limiter.lease(f"db:{user}", 1, "30s", wait="2s") as lease:
            assert lease.held
        async with limiter.budget(f"tokens:{user}", TOKENS).hold(600) as hold:
            hold.settle(450)


def main(url="redis://127.0.0.1:6379", protocol="3", silent="redis://127.0.0.1:1", kind=""):
    client = "RedisCluster" if kind == "cluster" else "Redis"
    with RateLimiter(getattr(redis, client).from_url(url, protocol=int(protocol)), prefix="example:") as limiter:
        steps(limiter, uuid4().hex)
    for fail in "open", "closed":
        with RateLimiter(redis.Redis.from_url(silent), fail=fail) as limiter:
            assert limiter.limit("user:1", "3/m").allowed == (fail == "open")
            assert limiter.counters["unavailable"] == 1
    print("7 no answer: open lets pass, closed does not")
    asyncio.run(steps_in_tasks(getattr(redis.asyncio, client).from_url(url, protocol=int(protocol)), uuid4().hex))
    print("the same in asyncio: checked, a lease taken, 600 held")


main(*sys.argv[1:])
