"""Prints what a local limit costs and saves: the time of `try_take`, a fleet of processes against one limit, and what a fleet
admits while its server is stopped.

    local.py [try_take | rule | fleet | away | picture]...

It starts servers with the module. `rule` has the fleet on a simulated clock, without a server. `fleet` has 20 processes of 600
calls a second each, against 10000/s; PROCESSES=4 has 4, against 2000/s. `away` has 4 processes with a share, whose server is
stopped for 30 s (SIGSTOP) and goes on after it. `picture` draws docs/plots/local.svg: what a process has in memory, by the rule
itself on a simulated clock."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, cast

import redis
import redis.asyncio

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("src", "tests")]

from redis_ratelimit import AsyncRateLimiter, Decision, RateLimiter, Share
from redis_ratelimit.call.steady import SteadyRate
from redis_ratelimit.local.store import Store, Way
from servers import Server

PROCESSES = int(os.environ.get("PROCESSES", "20"))
RATE, DEMAND = 500 * PROCESSES, 600 * PROCESSES
SECONDS, WARM = 14, 8
AWAY_PROCESSES, AWAY_RATE, AWAY_DEMAND, BEFORE, AWAY, AFTER = 4, 200, 400, 5, 30, 10


def try_take() -> None:
    """The median of many rounds, with the time of the loop itself."""
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=1.0) as limiter:
        limit = limiter.local("bench", "10000000/s", hold="500ms", processes=1)
        limit.take(1000)
        rounds: list[float] = []
        calls = 2_000
        while len(rounds) < 300:
            limit.take()
            found = 0
            begun = time.process_time()
            for _ in range(calls):
                if limit.try_take():
                    found += 1
            took = time.process_time() - begun
            if found == calls:
                rounds.append(took / calls * 1e6)
        print(f"try_take: {median(rounds):.2f} µs of CPU, of {len(rounds)} rounds of {calls}; the fastest {min(rounds):.2f}")


class Fleet:
    """Processes on a simulated clock. Calls come at random, and a round trip takes 1 ms.

    Attributes:
        asked: How many calls there were after the first seconds.
        sent: How many of them, or fetches for them, went to the server.
        admitted: How many were admitted.
    """

    TRIP, LIFE, WARM = 0.001, 30.0, 10.0

    def __init__(self, demand: int) -> None:
        self._random, self._gap, self._number = Random(1), PROCESSES / demand, count()
        self._left, self._filled = float(RATE), 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.asked = self.sent = self.admitted = 0
        for _ in range(PROCESSES):
            waiting: list[int] = []
            self._at(self._random.expovariate(1 / self._gap), self._call, Store(SteadyRate(RATE, RATE, 1000), 100, PROCESSES), waiting)
        while self._events and self._events[0][0] <= self.LIFE:
            now, _, what, given = heappop(self._events)
            what(now, *given)

    def _at(self, now: float, what: Callable[..., None], *given: Any) -> None:
        heappush(self._events, (now, next(self._number), what, given))

    def _count(self, now: float) -> bool:
        return now > self.WARM

    def _call(self, now: float, store: Store, waiting: list[int]) -> None:
        self._at(now + self._random.expovariate(1 / self._gap), self._call, store, waiting)
        self.asked += self._count(now)
        self._take(now, store, waiting, 0)

    def _take(self, now: float, store: Store, waiting: list[int], waits: int) -> None:
        answer = store.take(1, now, waits=waits)
        if store.wanted:
            self._at(now + self.TRIP / 2, self._serve, store, waiting, store.wanted, now)
            store.wanted = 0
        if isinstance(answer, Decision):
            self.admitted += answer.allowed and self._count(now)
        elif answer is Way.WAIT:
            waiting.append(waits + 1)
        else:
            self._at(now + self.TRIP / 2, self._serve, store, waiting, 0, now)

    def _serve(self, now: float, store: Store, waiting: list[int], batch: int, sent: float) -> None:
        self._left = min(float(RATE), self._left + (now - self._filled) * RATE)
        self._filled = now
        granted = min(batch or 1, int(self._left + 1e-9))
        self._left -= granted
        self.sent += self._count(now)
        decision = Decision(granted > 0, RATE, int(self._left), 0.0 if granted else 1 / RATE, 0.0, granted)
        self._at(now + self.TRIP / 2, self._arrive, store, waiting, batch, sent, decision)

    def _arrive(self, now: float, store: Store, waiting: list[int], batch: int, sent: float, decision: Decision) -> None:
        if not batch:
            store.asked_at(decision, now)
            self.admitted += decision.allowed and self._count(now)
            return
        store.fetched_at(decision, batch, sent, now)
        waited = waiting.copy()
        waiting.clear()
        for waits in waited:
            self._take(now, store, waiting, waits)


def rule() -> None:
    """What the rule admits and saves, with nothing but the rule in the way."""
    for demand in (9_500, 12_000, 20_000):
        fleet = Fleet(demand)
        possible = min(fleet.asked, RATE * (Fleet.LIFE - Fleet.WARM))
        print(f"{demand}/s: {fleet.admitted / possible:.1%} of what is possible, {fleet.asked / fleet.sent:.1f} answered for each sent")


async def call(port: int, begun: float, results: Any, local: bool) -> None:
    """One process of the fleet: evenly spaced calls, each a task."""
    limiter = AsyncRateLimiter(redis.asyncio.Redis(port=port), timeout=2.0)
    limit = limiter.local("fleet", f"{RATE}/s", hold="100ms", processes=PROCESSES)
    await limiter.ready(f"{RATE}/s")
    admitted: Counter[int] = Counter()
    times: list[float] = []

    async def one() -> None:
        start = time.monotonic()
        decision = await (limit.take() if local else limiter.limit("fleet", f"{RATE}/s"))
        now = time.monotonic()
        times.append(now - start)
        if decision:
            admitted[int((now - begun) * 100)] += 1

    tasks: set[asyncio.Task[None]] = set()
    gap, due = PROCESSES / DEMAND, begun
    while due < begun + SECONDS:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        while due <= time.monotonic():
            due += gap
            decision = limit.try_take() if local else None
            if decision is None:
                task = asyncio.create_task(one())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            else:
                times.append(0.0)
                if decision:
                    admitted[int((time.monotonic() - begun) * 100)] += 1
    await asyncio.gather(*tasks)
    results.put((admitted, sorted(times), limiter.counters))
    await limiter.close()


def queue() -> Any:
    """A queue for what processes have counted."""
    return cast(Any, multiprocessing).Queue()


def started(many: int, work: Callable[..., None], *given: Any) -> list[multiprocessing.Process]:
    """Starts processes that all do the same."""
    workers = [multiprocessing.Process(target=work, args=given) for _ in range(many)]
    for worker in workers:
        worker.start()
    return workers


def process(*given: Any) -> None:
    asyncio.run(call(*given))


def fleet() -> None:
    """Throughput, calls, the most in any second, and the server's CPU, beside a call for each request."""
    for local in (True, False):
        with Server() as server:
            begun = time.monotonic() + 10
            results = queue()
            workers = started(PROCESSES, process, server.port, begun, results, local)
            time.sleep(max(0.0, begun + WARM - time.monotonic()))
            cpu, calls = server_cpu(server), server.info("stats", "total_commands_processed")
            time.sleep(SECONDS - WARM - 0.5)
            cpu, calls = server_cpu(server) - cpu, server.info("stats", "total_commands_processed") - calls
            slots: Counter[int] = Counter()
            times: list[float] = []
            for _ in workers:
                admitted, each, _ = results.get()
                slots += admitted
                times += each
            for worker in workers:
                worker.join()
            late = sum(n for slot, n in slots.items() if slot >= WARM * 100) / (SECONDS - WARM)
            most = max(sum(slots[slot + i] for i in range(100)) for slot in range(SECONDS * 100 - 99))
            times.sort()
            span = SECONDS - WARM - 0.5
            print(f"{'take()' if local else 'limit()'}: {late:.0f}/s admitted ({late / RATE:.1%}), {calls / span:.0f} calls/s sent,", end=" ")
            print(f"{DEMAND / max(1.0, calls / span):.1f} answered for each; at most {most} in a second", end=" ")
            print(f"(bound {RATE + RATE + RATE // 10}); server {cpu / span:.1%} of a core;", end=" ")
            print(f"p50 {times[len(times) // 2] * 1e3:.2f} ms, p99 {times[len(times) * 99 // 100] * 1e3:.2f} ms")


def server_cpu(server: Server) -> float:
    return float(server.info("cpu", "used_cpu_user")) + float(server.info("cpu", "used_cpu_sys"))


def visit(port: int, begun: float, results: Any, mode: str) -> None:
    """One process, in threads, with a share of ordinary calls (`limit`) or of a local limit (`take`)."""
    limiter = RateLimiter(redis.Redis(port=port), fail=Share(AWAY_PROCESSES), timeout=0.1)
    rate = f"{AWAY_RATE}/s"
    limit = limiter.local("away", rate, hold="100ms", processes=AWAY_PROCESSES)
    admitted: Counter[int] = Counter()
    due = begun
    while due < begun + BEFORE + AWAY + AFTER:
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due + AWAY_PROCESSES / AWAY_DEMAND, time.monotonic() - 0.5)
        if limit.take() if mode == "take" else limiter.limit("away", rate):
            admitted[int(time.monotonic() - begun)] += 1
    results.put(admitted)
    limiter.close()


def away() -> None:
    """What all processes admit in each second, while the server is stopped in the middle."""
    for mode in ("limit", "take"):
        with Server() as server:
            begun = time.monotonic() + 2
            results = queue()
            workers = started(AWAY_PROCESSES, visit, server.port, begun, results, mode)
            time.sleep(max(0.0, begun + BEFORE - time.monotonic()))
            with server.frozen():
                time.sleep(AWAY)
            admitted: Counter[int] = Counter()
            for _ in workers:
                admitted += results.get()
            for worker in workers:
                worker.join()
        seconds = [admitted[second] for second in range(BEFORE + AWAY + AFTER)]
        print(f"{mode}(), {AWAY_RATE}/s, {AWAY_PROCESSES} processes, {AWAY_DEMAND} calls/s. Admitted in each second:")
        print(f"  with the server:    {seconds[:BEFORE]}")
        print(f"  while it is stopped: {seconds[BEFORE:BEFORE + AWAY]}")
        print(f"  after it goes on:   {seconds[BEFORE + AWAY:]}")


def picture() -> None:
    """600 calls a second until 260 ms, and then no more. A round trip takes 2 ms, so that it can be seen."""
    store, trip, sent, asked = Store(SteadyRate(RATE, RATE, 1000), 100, PROCESSES), 0.002, 0.0, 0
    points, fetches, ends, level = list[tuple[float, int]](), list[float](), list[float](), 0

    def changed(ms: int, tokens: int) -> None:
        nonlocal level
        if ms >= 0:
            points.extend(((ms, level), (ms, level + tokens)))
        level += tokens

    for ms in range(-2000, 360):
        now, gone = ms / 1000, store.forgotten
        if asked and now >= sent + trip:
            store.fetched_at(Decision(True, RATE, 0, 0.0, 0.0, asked), asked, sent, now)
            changed(ms, asked)
            asked = 0
        store.forget(now)
        if store.forgotten > gone:
            changed(ms, gone - store.forgotten)
            if ms >= 0:
                ends.append(ms)
        if ms <= 260 and ms % 5 in (0, 2, 4) and isinstance(store.take(1, now, waits=0), Decision):
            changed(ms, -1)
        if store.wanted:
            asked, sent, store.wanted = store.wanted, now, 0
            if ms >= 0:
                fetches.append(ms)
    points.append((360.0, level))
    place = Path(__file__).resolve().parents[3] / "docs/plots/local.svg"
    place.write_text(drawn(points, fetches, ends), encoding="utf-8")
    print(f"{place}: {len(fetches)} fetches")


def drawn(points: list[tuple[float, int]], fetches: list[float], ends: list[float]) -> str:
    """A step line of what is in memory, with a mark for each fetch and for what is forgotten."""

    def x(ms: float) -> str:
        return f"{50 + ms * 1.5:.1f}"

    def y(tokens: float) -> str:
        return f"{190 - tokens * 2.4:.1f}"

    line = " ".join(f"{x(ms)},{y(tokens)}" for ms, tokens in points)
    grid = "".join(
        f'<path class="grid" d="M50 {y(n)}H590"/><text x="42" y="{float(y(n)) + 4:.1f}" text-anchor="end">{n}</text>'
        for n in (0, 20, 40, 60)
    )
    ticks = "".join(f'<text x="{x(ms)}" y="210" text-anchor="middle">{ms} ms</text>' for ms in range(0, 361, 60))
    marks = "".join(f'<path class="fetch" d="M{x(ms)} 190v-12"/>' for ms in fetches)
    gone = "".join(f'<text class="gone" x="{float(x(ms)) + 6:.1f}" y="{y(14)}">forgotten</text>' for ms in ends)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="640" height="250" viewBox="0 0 640 250" role="img" aria-labelledby="t d">
<title id="t">What a process has in memory</title>
<desc id="d">A process of 600 calls a second fetches {len(fetches)} batches in 260 ms. When the calls end, the last is forgotten.</desc>
<style>
:root {{ --card: #ffffff; --ink: #1a1d21; --soft: #565d66; --rule: #dfe2e6; --line: #0072b2; --gone: #c4510a; }}
@media (prefers-color-scheme: dark) {{
:root {{ --card: #1b1f24; --ink: #e4e7ea; --soft: #a8b1bb; --rule: #343b43; --line: #56b4e9; --gone: #f0a23c; }}
}}
.card {{ fill: var(--card); stroke: var(--rule); }}
text {{ font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft); }}
.title {{ font-size: 15px; font-weight: 650; fill: var(--ink); }}
.grid {{ stroke: var(--rule); }}
.line {{ stroke: var(--line); fill: none; stroke-width: 2; }}
.fetch {{ stroke: var(--ink); stroke-width: 2; }}
.gone {{ fill: var(--gone); }}
</style>
<rect class="card" x="0.5" y="0.5" width="639" height="249" rx="8"/>
<text class="title" x="20" y="28">Tokens in memory of a process with 600 calls a second</text>
{grid}{ticks}
<polyline class="line" points="{line}"/>
{marks}{gone}
<text x="50" y="236">Each mark at the bottom is a fetch. The calls end at 260 ms.</text>
</svg>
"""


if __name__ == "__main__":
    parts = {"try_take": try_take, "rule": rule, "fleet": fleet, "away": away, "picture": picture}
    for name in sys.argv[1:] or parts:
        parts[name]()
