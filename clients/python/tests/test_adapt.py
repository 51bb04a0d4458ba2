"""Leases whose limit adapts: what only Python's errors have. The contract's cases show the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from redis_ratelimit import Adapt, AsyncRateLimiter, ConfigurationError, RateLimiter
from redis_ratelimit.commands import Commands
from servers import Server


class TooSlow(Exception): ...


class Interrupted(BaseException): ...


def state(server: Server, key: str) -> tuple[int, int]:
    """The limit that has found itself, and how many leases are held."""
    held = 50 - int(server.client.execute_command("RL.PEEK", key, "CONCURRENT", 100, "1m", "another", "ADAPT")[2])
    return int(cast(Any, Commands(server.client).info(key))["limit"]), held


def failing(raises: type[BaseException]) -> Callable[[BaseException], bool]:
    def choice(_: BaseException) -> bool:
        raise raises

    return choice


@pytest.mark.parametrize(
    ("drops", "error", "left"),
    [
        ([TooSlow], KeyboardInterrupt, KeyboardInterrupt),
        ([TooSlow], asyncio.CancelledError, asyncio.CancelledError),
        (failing(LookupError), TooSlow, TooSlow),
        (failing(Interrupted), TooSlow, Interrupted),
    ],
    ids=["interrupted", "cancelled", "choice-fails", "choice-is-interrupted"],
)
async def test_what_is_no_error_of_the_work_changes_nothing_and_the_lease_is_released(
    limiter: AsyncRateLimiter, server: Server, key: str, drops: Any, error: type[BaseException], left: type[BaseException]
) -> None:
    with pytest.raises(left):
        async with limiter.lease(key, 100, "30s", adapt=Adapt(start=50), drops=drops):
            raise error
    assert state(server, key) == (50, 0)


async def test_an_outcome_of_another_name_is_an_error(limiter: AsyncRateLimiter, key: str) -> None:
    lease: Any = limiter.lease(key, 100, "30s", adapt=True)
    async with lease:
        with pytest.raises(ConfigurationError, match="outcome must be 'OK', 'DROP' or 'IGNORE', not 'BAD'"):
            await asyncio.to_thread(lambda: lease.releasing("BAD").send(None))


def test_wrong_options_are_errors(server: Server, key: str) -> None:
    with RateLimiter(server.client) as limiter:
        wrong: list[tuple[dict[str, object], str]] = [
            ({"drops": [TooSlow]}, "drops needs adapt"),
            ({"adapt": 5}, "adapt must be True, False or an Adapt, not 5"),
            ({"adapt": True, "drops": int}, "drops must be a class of errors, a list of them"),
            ({"adapt": True, "drops": "TooSlow"}, "drops must be a class of errors"),
            ({"adapt": True, "drops": [TooSlow()]}, "drops must be a class of errors"),
        ]
        lease = cast(Callable[..., object], limiter.lease)
        for options, text in wrong:
            with pytest.raises(ConfigurationError, match=text):
                lease(key, 100, "30s", **options)
