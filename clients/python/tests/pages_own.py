"""What the pages leave to their readers, for their programs and for the types of these."""

from __future__ import annotations

from collections.abc import AsyncIterator

from redis_ratelimit import AsyncRateLimiter

limiter: AsyncRateLimiter
address = "203.0.113.9"
customer = "acme"
user = "ann"


def alarm() -> None: ...


async def ask_model() -> None: ...


def count(text: str) -> int:
    return len(text.split())


def right(name: str, password: str) -> bool:
    return password == f"{name}'s"


async def stream(prompt: str, most: int) -> AsyncIterator[str]:
    for word in "what the model says".split():
        yield word


async def work(job: str) -> None: ...


async def write_to(customer: str, text: str) -> None: ...
