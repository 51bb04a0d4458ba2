"""Draws docs/plots/tried.svg: what a policy refused in each hour of a day, and what it would refuse with one more limit.

The day is made by a seed, and recorded by a server with the module. After each hour `RL.POLICY TRY` replays the day so far, so
that a limit begins no hour anew. An hour's refusals are what they grew by."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("src", "tests")]

from servers import Server

HOUR, MIDNIGHT = 3600.0, 1_700_006_400  # a midnight of UTC
NOW = "LIMIT FIXEDWINDOW 1000 1h"
THEN = f"{NOW} LIMIT SLIDINGLOG 20 1m"
# How many callers are busy, by the hour.
BUSY = [2, 1, 1, 1, 1, 2, 4, 8, 14, 20, 22, 20, 14, 16, 20, 21, 18, 14, 10, 8, 6, 5, 4, 3]


def day(chance: Random) -> list[tuple[float, str, int]]:
    """The calls of a day: seconds, key and cost."""
    calls: list[tuple[float, str, int]] = []
    for hour, busy in enumerate(BUSY):
        for user in range(busy):
            calls += [((hour + chance.random()) * HOUR, f"user:{user}", 1) for _ in range(chance.randint(20, 120))]
    for hour in (2, 9, 18):  # ann loads her list: 30 searches in some seconds, ten times
        for _ in range(10):
            begin = (hour + chance.random()) * HOUR
            calls += [(begin + chance.random() * 10, "user:ann", 1) for _ in range(30)]
    calls += [((14 + chance.random()) * HOUR, "user:loop", 1) for _ in range(1300)]  # a client in a loop
    return sorted(calls)


def tried(client: Any) -> tuple[int, int]:
    """All refusals until now: by the policy, and by the limits to try."""
    reply = client.execute_command("RL.POLICY", "TRY", "find", *THEN.split())
    return reply["refused_now"], reply["refused_then"]


def by_hour() -> list[tuple[int, int]]:
    """The refusals of each hour."""
    with Server() as server:
        client = server.client
        client.config_set("ratelimit.record", 100_000)
        client.execute_command("RL.POLICY", "SET", "find", *NOW.split())
        calls, before, hours = day(Random(65)), (0, 0), list[tuple[int, int]]()
        for hour in range(24):
            pipe = client.pipeline(transaction=False)
            for at, key, cost in calls:
                if hour <= at / HOUR < hour + 1:
                    pipe.execute_command("RL.ASK", key, "find", "COST", cost, "AT", round((MIDNIGHT + at) * 1e6))
            pipe.execute()
            until = tried(client)
            hours.append((until[0] - before[0], until[1] - before[1]))
            before = until
        print(f"{len(calls)} calls, refused {before[0]} now and {before[1]} then: {hours}")
        return hours


def drawn(hours: list[tuple[int, int]]) -> str:
    """Two bars for each hour."""
    most = -(-max(max(pair) for pair in hours) // 100) * 100
    now, then = (sum(pair[each] for pair in hours) for each in (0, 1))

    def bar(kind: str, x: float, refused: int) -> str:
        high = refused * 150 / most
        return f'<rect class="{kind}" x="{x:.1f}" y="{200 - high:.1f}" width="7" height="{high:.1f}"/>' if refused else ""

    bars = "".join(bar("now", 48 + hour * 18, a) + bar("then", 56 + hour * 18, b) for hour, (a, b) in enumerate(hours))
    grid = "".join(
        f'<path class="grid" d="M44 {200 - y}H480"/><text x="38" y="{204 - y}" text-anchor="end">{most * y // 150}</text>'
        for y in (0, 75, 150)
    )
    ticks = "".join(f'<text x="{47 + hour * 18}" y="219" text-anchor="middle">{hour}:00</text>' for hour in range(0, 25, 6))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="500" height="236" viewBox="0 0 500 236" role="img" aria-labelledby="t d">
<title id="t">Refused calls by hour</title>
<desc id="d">In a day the policy refuses {now} calls, and {then} with SLIDINGLOG 20 1m.</desc>
<style>
:root {{ --card: #ffffff; --ink: #1a1d21; --soft: #565d66; --rule: #dfe2e6; --now: #0072b2; --then: #c4510a; }}
@media (prefers-color-scheme: dark) {{
:root {{ --card: #1b1f24; --ink: #e4e7ea; --soft: #a8b1bb; --rule: #343b43; --now: #56b4e9; --then: #f0a23c; }}
}}
.card {{ fill: var(--card); stroke: var(--rule); }}
text {{ font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft); }}
.title {{ font-size: 15px; font-weight: 650; fill: var(--ink); }}
.grid {{ stroke: var(--rule); }}
.now {{ fill: var(--now); }}
.then {{ fill: var(--then); }}
</style>
<rect class="card" x="0.5" y="0.5" width="499" height="235" rx="8"/>
<text class="title" x="16" y="26">Refused calls by hour</text>
<rect class="now" x="224" y="16" width="10" height="10"/><text x="240" y="26">1000 an hour</text>
<rect class="then" x="346" y="16" width="10" height="10"/><text x="362" y="26">and 20 a minute</text>
{grid}
{bars}
{ticks}
</svg>
"""


if __name__ == "__main__":
    place = Path(__file__).resolve().parents[3] / "docs/plots/tried.svg"
    place.write_text(drawn(by_hour()), encoding="utf-8")
