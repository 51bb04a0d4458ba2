"""Prints the microseconds per call of the package, beside those of the client's execute_command on the same server.

    overhead.py [URL [CALLS [ROUNDS]]]

Without a URL it starts a server with the module. Each figure is the median of many short rounds, in which
the ways take turns. The CPU time is that of this process, which other programs on the machine hardly change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import redis
import redis.asyncio

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("src", "tests")]

from redis_ratelimit import AsyncRateLimiter, Gcra, RateLimiter, RefusalCache
from redis_ratelimit.commands import AsyncCommands, Commands
from servers import Server

# redis-py leaves the types of its clients open.
REDIS: Any = redis.Redis
ASYNC_REDIS: Any = redis.asyncio.Redis
KEY, SEVERAL, REFUSED = "bench:one", "bench:several", "bench:refused"
MANY = 10**15
GENEROUS, MINUTE, RATE = Gcra(MANY, MANY, "1s"), Gcra(MANY, MANY, "1m"), "1000000000/s"
WORDS: Any = ("RL.GCRA", KEY, MANY, MANY, "1s")
MULTI = ("RL.MULTI", 1, SEVERAL, "LIMIT", *GENEROUS.words, "LIMIT", *MINUTE.words)


class Figures:
    """The time of each way, in microseconds per call: on the clock, and of this process's CPU."""

    def __init__(self, names: Iterable[str]) -> None:
        self._clock: dict[str, list[float]] = {name: [] for name in names}
        self._cpu: dict[str, list[float]] = {name: [] for name in names}

    @contextmanager
    def measured(self, name: str, calls: int) -> Generator[None]:
        clock, cpu = perf_counter(), process_time()
        yield
        self._cpu[name].append((process_time() - cpu) / calls * 1e6)
        self._clock[name].append((perf_counter() - clock) / calls * 1e6)

    def show(self) -> None:
        raw = 0.0
        for name in self._clock:
            cpu = median(self._cpu[name])
            raw = cpu if "execute_command" in name else raw
            print(f"{name:<34}{median(self._clock[name]):>8.0f}{cpu:>8.0f}{cpu - raw:>+8.0f}")


def threads(url: str, calls: int, rounds: int) -> Figures:
    client = REDIS.from_url(url)
    commands = Commands(client)
    with RateLimiter(client) as limiter, RateLimiter(client, cache=RefusalCache()) as cached:
        cached.limit(REFUSED, "1/d")
        ways: dict[str, Callable[[], object]] = {
            "execute_command": lambda: client.execute_command(*WORDS),
            "commands.gcra": lambda: commands.gcra(*WORDS[1:]),
            "limit, Gcra": lambda: limiter.limit(KEY, GENEROUS),
            "limit, rate": lambda: limiter.limit(KEY, RATE),
            "limit, refused by the cache": lambda: cached.limit(REFUSED, "1/d"),
            "execute_command, RL.MULTI": lambda: client.execute_command(*MULTI),
            "limits, two": lambda: limiter.limits([SEVERAL], [GENEROUS, MINUTE]),
        }
        figures = Figures(ways)
        for _ in range(rounds):
            for name, way in ways.items():
                with figures.measured(name, calls):
                    for _ in range(calls):
                        way()
        client.delete(KEY, SEVERAL, REFUSED)
    client.close()
    return figures


async def tasks(url: str, calls: int, rounds: int) -> Figures:
    client = ASYNC_REDIS.from_url(url)
    commands = AsyncCommands(client)
    async with AsyncRateLimiter(client) as limiter:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "await execute_command": lambda: client.execute_command(*WORDS),
            "await commands.gcra": lambda: commands.gcra(*WORDS[1:]),
            "await limit, Gcra": lambda: limiter.limit(KEY, GENEROUS),
            "await execute_command, RL.MULTI": lambda: client.execute_command(*MULTI),
            "await limits, two": lambda: limiter.limits([SEVERAL], [GENEROUS, MINUTE]),
        }
        figures = Figures(ways)
        for _ in range(rounds):
            for name, way in ways.items():
                with figures.measured(name, calls):
                    for _ in range(calls):
                        await way()
        await client.delete(KEY, SEVERAL)
    await client.aclose()
    return figures


def main(url: str = "", calls: str = "100", rounds: str = "151") -> None:
    if not url:
        with Server() as server:
            return main(f"redis://127.0.0.1:{server.port}", calls, rounds)
    print(f"redis-py {redis.__version__}: median of {rounds} rounds of {calls} calls, in µs per call\n")
    print(f"{'':<34}{'clock':>8}{'CPU':>8}{'more':>8}")
    threads(url, int(calls), int(rounds)).show()
    asyncio.run(tasks(url, int(calls), int(rounds))).show()


if __name__ == "__main__":
    main(*sys.argv[1:])
