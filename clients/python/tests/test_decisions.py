"""A decision is true if it is allowed, and has the headers of the draft."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from redis_ratelimit import Calendar, Decision, FixedWindow, Gcra, LeakyBucket, TokenBucket, Uniform
from redis_ratelimit.commands import Commands
from redis_ratelimit.types import Limiter
from servers import Server

NOW = 1_700_002_800_000_000


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
