"""Prints the server's CPU per call of the strategies of `limits`, with its own Redis storage and with ours.

    limits_cpu.py

20,000 calls after 1,000 to warm up. The storages take turns by the thousand, and each figure is the median of three
rounds. "all" is the main thread's user and system time (INFO cpu), most of which goes into sockets. "inside" is the part
of it that the script or the command took (INFO commandstats). One caller waits for each reply."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from limits import RateLimitItemPerHour
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    KnownStrategy,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("src", "tests")]

import redis_ratelimit.limits_storage  # noqa: F401  # pyright: ignore[reportUnusedImport] registers the schemes
from servers import Server

CALLS, TURN, KEYS, ROUNDS = 20_000, 1_000, 1_000, 3
ROW = "{:<34} {:>9} {:>9} {:>11} {:>12} {:>6}"
STRATEGIES: list[KnownStrategy] = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]

Answer: TypeAlias = Callable[[int], bool]
Figures: TypeAlias = list[float]


class Measured(Server):
    """A server with the module, whose CPU is measured."""

    def used(self) -> tuple[float, float]:
        """Returns the seconds of CPU until now: in all, and inside scripts and RL commands."""
        cpu, commands = self.client.info("cpu"), self.client.info("commandstats")
        inside = (commands[name]["usec"] for name in commands if name.startswith(("cmdstat_eval", "cmdstat_rl.")))
        return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"], sum(inside) / 1e6

    def measured(self, calls: list[Answer], right: bool) -> list[Figures]:
        """Returns the µs per call of each: in all, and inside the command or the script."""
        totals = [[0.0, 0.0] for _ in calls]
        for call in calls:
            for i in range(1_000):
                call(i)
        for start in range(0, CALLS, TURN):
            for total, call in zip(totals, calls, strict=True):
                before = self.used()
                answers = [call(i) for i in range(start, start + TURN)]
                for figure, (then, now) in enumerate(zip(before, self.used(), strict=True)):
                    total[figure] += now - then
                assert all(answer == right for answer in answers), f"not all are {right}"
        return [[seconds * 1e6 / CALLS for seconds in total] for total in totals]

    def hits(self, strategy: KnownStrategy, load: str) -> list[Figures]:
        self.client.flushall()
        item = RateLimitItemPerHour(100)

        def hit(scheme: str) -> Answer:
            limiter = strategy(storage_from_string(f"{scheme}://127.0.0.1:{self.port}", key_prefix=scheme))
            return lambda i: limiter.hit(item, "one" if load == "refused" else str(i % KEYS))

        return self.measured([hit("redis"), hit("ratelimit+redis")], load == "admitted")


def main(server: Measured) -> None:
    version = server.info("server", "redis_version")
    print(f"redis-server {version}, load {os.getloadavg()[0]:.1f}, µs of server CPU per call")
    print(ROW.format("call", "all, own", "all, ours", "inside, own", "inside, ours", "times"))
    pings = [server.measured([lambda _: bool(server.client.ping())], True)[0][0] for _ in range(ROUNDS)]
    print(ROW.format("PING", f"{statistics.median(pings):.1f}", "", "", "", ""))
    for strategy in STRATEGIES:
        for load in ("admitted", "refused"):
            rounds = [server.hits(strategy, load) for _ in range(ROUNDS)]
            own, ours = ([statistics.median(figures) for figures in zip(*of_each)] for of_each in zip(*rounds))
            figures = [f"{figure:.1f}" for pair in zip(own, ours, strict=True) for figure in pair]
            name = f"{strategy.__name__.removesuffix('RateLimiter')}, {load}"
            print(ROW.format(name, *figures, f"{own[1] / ours[1]:.1f}"), flush=True)


if __name__ == "__main__":
    with Measured() as server:
        main(server)
