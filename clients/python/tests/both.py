"""The limiter for threads behind the interface of that for asyncio, so that a test runs on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

import redis
import redis.asyncio

from redis_ratelimit import AsyncRateLimiter, RateLimiter


class Maker(Protocol):
    """Makes limiters, which are closed when the test ends."""

    kind: str

    def __call__(self, port: int | None = None, **options: Any) -> AsyncRateLimiter: ...


def inside(limiter: object) -> Any:
    """What a limiter has inside."""
    return getattr(limiter, "_connected")


class OnThreads:
    """Each call runs in a thread of its own."""

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._limiter, name)
        if name in ("limit", "limits", "ask", "peek", "refund", "reset", "ready", "release", "settle", "settle_ask", "close"):
            return partial(asyncio.to_thread, member)
        return member

    def lease(self, *values: Any, **options: Any) -> Any:
        return OnThreadsManager(self._limiter.lease(*values, **options))

    def budget(self, *values: Any, **options: Any) -> Any:
        return _Budget(self._limiter.budget(*values, **options))


class _Budget:
    def __init__(self, budget: Any) -> None:
        self._budget = budget

    def hold(self, *values: Any, **options: Any) -> Any:
        return OnThreadsManager(self._budget.hold(*values, **options))


class OnThreadsManager:
    """A context manager that is entered and left in threads."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    async def __aenter__(self) -> Any:
        return await asyncio.to_thread(self._manager.__enter__)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._manager.__exit__, *error)


def threads_limiter(port: int, **options: Any) -> AsyncRateLimiter:
    return cast(AsyncRateLimiter, OnThreads(RateLimiter(redis.Redis(port=port), **options)))


def asyncio_limiter(port: int, **options: Any) -> AsyncRateLimiter:
    return AsyncRateLimiter(redis.asyncio.Redis(port=port), **options)


KINDS: dict[str, Callable[..., AsyncRateLimiter]] = {"threads": threads_limiter, "asyncio": asyncio_limiter}
