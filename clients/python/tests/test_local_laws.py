"""Laws of local limits and of shares, on a simulated clock: however many processes, calls, deaths, late and lost replies there
are, what is spent stays below its bound in every window.

RATELIMIT_HISTORIES is the number of histories, 300 by default. `pytest -s` prints the tightest windows."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from copy import copy, deepcopy
from itertools import count
from math import inf
from random import Random
from typing import Any, NamedTuple

import pytest

from redis_ratelimit.call.steady import SteadyRate
from redis_ratelimit.decide.decision import Decision
from redis_ratelimit.decide.errors import Unavailable
from redis_ratelimit.decide.insurance import Claim, Insurance
from redis_ratelimit.local.store import Store, Way

HISTORIES = int(os.environ.get("RATELIMIT_HISTORIES", "300"))
MISSING = Unavailable("RL.GCRA", "timeout", "no reply")
CALLS = (100, 300, 1000)
"""About how many calls a history has."""


class Window(NamedTuple):
    """What was spent in a window, beside the most that may be.

    Attributes:
        part: Which part of what may be spent at once was spent beyond the rate.
    """

    spent: int
    bound: float
    seconds: float
    part: float


NONE = Window(0, 0.0, 0.0, 0.0)


class Bucket:
    """The server: an exact bucket of C tokens that fills at r. If it holds less than is asked, it grants that."""

    def __init__(self, rate: SteadyRate) -> None:
        self.rate, self.left, self.at = rate, float(rate.most), 0.0

    def granted(self, cost: int, now: float, *, partial: bool) -> Decision:
        per_second = self.rate.count * 1000 / self.rate.period
        self.left = min(self.rate.most, self.left + (now - self.at) * per_second)
        self.at = now
        there = int(self.left + 1e-9)
        granted = min(cost, there) if partial else cost if cost <= there else 0
        self.left -= granted
        wait = 0.0 if granted else 1 / per_second
        return Decision(granted > 0, self.rate.most, int(self.left), wait, 0.0, granted)


class Process:
    """A process: its store, and a monotonic clock with a start and a drift of its own."""

    def __init__(self, rate: SteadyRate, hold: int, processes: int, random: Random) -> None:
        self.store, self.waiting = Store(rate, hold, processes), list[tuple[int, int]]()
        self.start, self.runs = random.uniform(0, 1e6), True
        self.costs = random.choice(((1,), (1,), (1, 1, 1, 5), (1, 20, 100)))

    def clock(self, now: float) -> float:
        return self.start + now


class History:
    """Some seconds of some processes, and every call that was admitted.

    Attributes:
        spent: When each call was admitted, and its cost.
        insured: The same of what the share of each process admitted.
    """

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.count = random.choice((1, 2, 3, 5, 10, 20, 50))
        self.hold = random.choice((5, 20, 100, 400))
        per_second = random.choice((200, 1000, 10_000))
        most = max(1, per_second * self.hold // 1000) * random.choice((1, 1, 2, 10)) + random.randrange(3)
        self.rate = SteadyRate(most, per_second, 1000)
        self.server, self.insurance = Bucket(self.rate), list[Insurance]()
        self.latency = random.choice((0.0002, 0.001, 0.01, self.hold / 1000))
        self.lost, self.late, self.deaths = (random.choice((0.0, 0.0, 0.01, 0.3)) for _ in range(3))
        self.gap = random.choice((0.02, 0.1, 0.5)) * self.hold / 1000 * random.uniform(0.5, 2)
        self.life = random.choice(CALLS) * self.gap / self.count
        self.outage = sorted(random.uniform(0, self.life) for _ in range(2)) if random.random() < 0.3 else (inf, inf)
        self.spent: list[tuple[float, int]] = []
        self.insured: dict[Insurance, list[tuple[float, int]]] = {}
        self._events: list[tuple[float, int, str, Any]] = []
        self._number = count()
        self.processes = [self._begin(0.0) for _ in range(self.count)]

    def run(self) -> None:
        while self._events:
            now, _, what, given = heapq.heappop(self._events)
            if now > self.life:
                return
            getattr(self, f"_{what}")(now, *given)

    def _at(self, now: float, what: str, *given: Any) -> None:
        heapq.heappush(self._events, (now, next(self._number), what, given))

    def _begin(self, now: float) -> Process:
        process = Process(self.rate, self.hold, self.count, self.random)
        process.store.take(min(self.rate.most, self.random.randrange(1, 10_000)), process.clock(now), waits=0)  # demand
        self._at(now + self.random.expovariate(1 / self.gap), "call", process, Insurance())
        return process

    def _call(self, now: float, process: Process, insurance: Insurance) -> None:
        if self.random.random() < self.deaths / 100:
            process.runs = False
            self.processes.append(self._begin(now))
            return
        if self.random.random() < self.deaths / 10 and len(self.processes) < 2 * self.count + 3:
            self._fork(now, process, insurance)
        self._at(now + self.random.expovariate(1 / self.gap), "call", process, insurance)
        self._take(now, process, insurance, self.random.choice(process.costs), 0)

    def _fork(self, now: float, parent: Process, insurance: Insurance) -> None:
        child = copy(parent)
        child.store, child.waiting = deepcopy(parent.store), []
        child.store.forked()
        shares = Insurance()
        shares.__dict__["_left"] = dict(insurance.__dict__["_left"])
        self.processes.append(child)
        self._at(now + self.random.expovariate(1 / self.gap), "call", child, shares)

    def _take(self, now: float, process: Process, insurance: Insurance, cost: int, waits: int) -> None:
        store, clock = process.store, process.clock(now)
        answer = store.take(cost, clock, waits=waits)
        if self.random.random() < 0.1 and isinstance(answer, Decision) and answer.allowed:
            store.give_back(cost, answer, clock)  # as the middleware does, so it was not spent
        elif isinstance(answer, Decision) and answer.allowed:
            self.spent.append((now, cost))
        if store.wanted:
            self._at(now + self._trip(), "serve", process, insurance, store.wanted, clock, True)
            store.wanted = 0
        if answer is Way.ASK:
            self._at(now + self._trip(), "serve", process, insurance, cost, clock, False)
        elif answer is Way.WAIT:
            process.waiting.append((cost, waits + 1))
        elif answer is Way.SHARE:
            self._share(now, insurance, cost)

    def _share(self, now: float, insurance: Insurance, cost: int) -> None:
        if insurance.take([Claim(0, self.rate, self.count, cost)], now).allowed:
            self.insured.setdefault(insurance, []).append((now, cost))

    def _serve(self, now: float, process: Process, insurance: Insurance, cost: int, sent: float, fetch: bool) -> None:
        outcome: Decision | Unavailable = MISSING
        lost = self.random.random() < self.lost
        if not lost and not self.outage[0] <= now <= self.outage[1]:
            outcome = self.server.granted(cost, now, partial=fetch)
            if not fetch and outcome.allowed:
                self.spent.append((now, cost))  # whether or not the reply arrives
            outcome = MISSING if self.random.random() < self.lost else outcome
        self._at(now + self._trip(), "arrive", process, insurance, cost, sent, fetch, outcome)

    def _arrive(
        self, now: float, process: Process, insurance: Insurance, cost: int, sent: float, fetch: bool, outcome: Any
    ) -> None:
        store, clock = process.store, process.clock(now)
        if not process.runs:
            return
        if not fetch:
            store.asked_at(outcome, clock)
            if outcome is MISSING:
                self._share(now, insurance, cost)
            return
        if outcome is MISSING:
            store.ended(MISSING)
        else:
            store.fetched_at(outcome, cost, sent, clock)
        waiting, process.waiting = process.waiting, []
        for each, waits in waiting:
            self._take(now, process, insurance, each, waits)

    def _trip(self) -> float:
        late = self.random.random() < self.late
        return self.random.expovariate(1 / self.latency) * (100 if late else 1)


def tightest(spent: Sequence[tuple[float, int]], most: float, per_second: float) -> Window:
    """Returns the tightest window, and checks that no window has more than `most + per_second * seconds`.

    It is one pass, as of a leaky bucket: its level is the most that any window that ends now has beyond the rate.
    """
    best, begin, level, in_window, last = NONE, 0.0, 0.0, 0, 0.0
    for now, cost in spent:
        level -= (now - last) * per_second
        if level <= 0:
            begin, in_window, level = now, 0, 0.0
        level, last, in_window = level + cost, now, in_window + cost
        window = Window(in_window, most + per_second * (now - begin), now - begin, level / most)
        assert level <= most + 1e-6, f"{window}: too much"
        best = max(best, window, key=by_part)
    return best


LARGE = 500


def by_part(window: Window) -> float:
    return window.part


def test_what_all_processes_spend_stays_below_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    best = best_large = best_share = NONE
    for seed in range(HISTORIES):
        history = History(seed)
        history.run()
        rate, hold = history.rate, history.hold / 1000
        window = tightest(sorted(history.spent), rate.most + rate.count * hold, rate.count)
        best = max(best, window, key=by_part)
        if rate.most >= LARGE:
            best_large = max(best_large, window, key=by_part)
        for insured in history.insured.values():
            share = max(1, rate.most // history.count)
            best_share = max(best_share, tightest(insured, share, rate.count / history.count), key=by_part)
    with capsys.disabled():
        print(f"\n{HISTORIES} histories. The tightest windows, of")
        for what, window in (
            ("all processes", best),
            (f"all processes, limits of at least {LARGE}", best_large),
            ("a share", best_share),
        ):
            print(f"  {what}: {window.spent} in {window.seconds * 1000:.1f} ms; the bound is {window.bound:.1f}")
    assert best.part > 0.6 and best_share.part > 0.99, "the histories do not come near their bounds"


def test_the_bound_of_all_processes_can_be_reached() -> None:
    """20 processes take the whole limit, spend it just before it is forgotten, and then what came in meanwhile."""
    rate, processes, hold, late = SteadyRate(10_000, 10_000, 1000), 20, 100, 0.0999
    server, spent = Bucket(rate), 0
    stores = [Store(rate, hold, processes) for _ in range(processes)]
    for store in stores:
        store.take(7_000, 0.0, waits=0)  # a demand of which 100 ms are more than its part of the limit
        assert store.take(1, 0.0, waits=0) is Way.WAIT
        store.fetched_at(server.granted(store.wanted, 0.0, partial=True), store.wanted, 0.0, 0.0)
    for store in stores:
        store.wanted = 0
        while isinstance(answer := store.take(1, late, waits=0), Decision) and answer.allowed:
            spent += 1
            if store.wanted:
                store.fetched_at(server.granted(store.wanted, late, partial=True), store.wanted, late, late)
                store.wanted = 0
    assert spent == rate.most + rate.count * late
