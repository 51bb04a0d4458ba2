"""Durations, rates and limiters are checked when they are made."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redis_ratelimit import (
    Breaker,
    Calendar,
    Concurrent,
    ConfigurationError,
    FixedWindow,
    Gcra,
    Limit,
    Penalty,
    Rate,
    RefusalCache,
    Sketch,
    SlidingLog,
    SlidingWindow,
    Smooth,
    TokenBucket,
    Uniform,
)
from redis_ratelimit.gate.rules import Rule
from redis_ratelimit.gate.shed import Shed


@pytest.mark.parametrize(
    ("rate", "count", "period"),
    [
        ("10/s", 10, "1s"),
        ("1000/d", 1000, "1d"),
        ("100/15m", 100, "15m"),
        ("10 per minute", 10, "1m"),
        ("10 per 2 hours", 10, "2h"),
        (" 7 / week ", 7, "1w"),
        ("1/250ms", 1, "250ms"),
    ],
)
def test_a_rate_is_a_gcra(rate: str, count: int, period: str) -> None:
    assert Rate(rate).words == ("GCRA", count - 1, count, period)
    assert Rate(rate, burst=2 * count).words == ("GCRA", 2 * count - 1, count, period)
    assert isinstance(Rate(rate), Gcra)


@pytest.mark.parametrize(
    "rate", ["", "10", "10/", "/s", "0/s", "10/fortnight", "10/0s", "-1/s", "1.5/s", "10/s extra", "ten/s", 10, None, "9" * 5000 + "/s"]
)
def test_what_is_no_rate_is_an_error(rate: Any) -> None:
    with pytest.raises(ConfigurationError):
        Rate(rate)
    with pytest.raises(ConfigurationError):
        Limit(rate)


def test_a_duration_has_two_forms() -> None:
    assert Uniform("1500ms").words == Uniform(timedelta(seconds=1.5)).words == ("UNIFORM", "1500ms")
    assert SlidingLog(5, "1m", gap="0").words == ("SLIDINGLOG", 5, "1m", "GAP", "0")
    assert SlidingLog(5, "1m", gap=timedelta()).words == ("SLIDINGLOG", 5, "1m", "GAP", "0ms")


@pytest.mark.parametrize("bare", [60, "60"])
def test_a_duration_needs_a_unit(bare: Any) -> None:
    makers: dict[str, Callable[[], object]] = {
        "period": lambda: Gcra(15, 30, bare),
        "window": lambda: FixedWindow(5, bare),
        "ban": lambda: Penalty(3, "10m", bare),
        "gap": lambda: SlidingLog(5, "1m", gap=bare),
        "ttl": lambda: Concurrent(5, bare),
        "hold": lambda: Rule("r", key=str, limit="10/s", hold=bare),
        "delay": lambda: Shed[object]("fleet", lambda: 1, lambda _: 1, delay=bare),
    }
    for name, make in makers.items():
        with pytest.raises(ConfigurationError) as raised:
            make()
        assert str(raised.value).removeprefix("rule 'r': ") == f"{name} needs a unit: '60ms', '60s' or '60m'"


@pytest.mark.parametrize(
    "duration", ["", "s", "1.5s", "-1s", "1y", "1 s", "0", -1, True, 1.5, None, timedelta(microseconds=1)]
)
def test_what_is_no_duration_is_an_error(duration: Any) -> None:
    with pytest.raises(ConfigurationError, match="^interval must be "):
        Uniform(duration)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gcra(-1, 10, "1s"), "max_burst must be between 0 and 9007199254740991, not -1"),
        (lambda: Gcra(9, 0, "1s"), "count must be between 1 and 9007199254740991, not 0"),
        (lambda: Gcra(9, 10, "0s"), "period must be between 1 and 3153600000000 ms, not 0"),
        (lambda: Gcra(9, True, "1s"), "count must be an integer, not True"),
        (lambda: TokenBucket(2**53, 1, "1s"), "capacity must be between 1 and 9007199254740991, not 9007199254740992"),
        (lambda: Concurrent(5, "1m", reserved=6), "reserved must be between 0 and 5, not 6"),
        (lambda: Concurrent(0, "1m"), "capacity must be at least 1, not 0"),
        (lambda: Concurrent(5, "1m", "x" * 257), "id must be 1 to 256 bytes"),
        (lambda: Penalty(3, "1m", "10m", max="9m"), "max must be between 600000 and 3153600000000 ms, not 540000"),
        (lambda: Penalty(3, "1m", "10m", grow=1001), "grow must be between 1 and 1000, not 1001"),
        (lambda: Smooth(1, "1s", warmup="1s", factor=0.5), "factor must be a number between 1 and 1000, not 0.5"),
        (lambda: Calendar(5, ""), "unit must be HOUR, DAY, WEEK, MONTH, QUARTER or YEAR, not ''"),
        (lambda: Sketch("", 9, 10, "1s"), "item must be text that is not empty, not ''"),
        (lambda: Limit("1/s", on=0), "on must be between 1 and 64, not 0"),
        (lambda: Limit("1/s", cost=-1), "cost must be between 0 and 9007199254740991, not -1"),
        (lambda: Uniform("9" * 5000), f"interval must be a whole number with ms, s, m, h, d or w, such as '90s', not '{'9' * 5000}'"),
        (lambda: Sketch("\ud800", 9, 10, "1s"), "item must be text that UTF-8 can encode, not '\\ud800'"),
        (
            lambda: Limit(5),  # type: ignore[arg-type] # pyright: ignore
            "a limiter is an instance such as Gcra(9, 10, '1s'), or a rate such as '10/s', not 5",
        ),
        (lambda: Breaker(failures=0), "failures must be at least 1, not 0"),
        (lambda: Breaker(cooldown=0), "cooldown must be a number of seconds above 0, not 0"),
        (lambda: RefusalCache(keys=0), "keys must be at least 1, not 0"),
        (lambda: RefusalCache(longest="-1s"), "longest must be a whole number with ms, s, m, h, d or w, such as '90s', not '-1s'"),
    ],
)
def test_a_wrong_value_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make()
    assert str(raised.value) == message


def test_a_limiter_knows_its_words() -> None:
    assert Calendar(5, "MONTH", zone="Europe/Lisbon", anchor=31).words == (
        "CALENDAR", 5, "MONTH", "TZ", "Europe/Lisbon", "ANCHOR", 31,
    )  # fmt: skip
    assert SlidingLog(5, "1m", gap="10ms", countrefused=True).words == ("SLIDINGLOG", 5, "1m", "GAP", "10ms", "COUNTREFUSED")
    assert SlidingWindow(5, "1m", precision="1s").words == ("SLIDINGWINDOW", 5, "1m", "PRECISION", "1s")
    assert FixedWindow(5, "1m", aligned=True).words == ("FIXEDWINDOW", 5, "1m", "ALIGNED")
    assert Concurrent(5, "1m").words == ("CONCURRENT", 5, "1m")
    assert Concurrent(5, "1m", "a", reserved=1, critical=True).words == (
        "CONCURRENT", 5, "1m", "a", "RESERVED", 1, "CRITICAL",
    )  # fmt: skip
    assert Smooth(5, "1s", warmup="2s", factor=1e-17 + 3).words == (
        "SMOOTH",
        5,
        "1s",
        "WARMUP",
        "2s",
        "COLDFACTOR",
        "3",
    )


def test_limiters_are_values() -> None:
    assert Gcra(9, 10, "1s") == Gcra(9, 10, "1s") != Gcra(9, 10, "2s")
    assert len({Gcra(9, 10, "1s"), Gcra(9, 10, "1s"), Rate("10/s")}) == 1
    with pytest.raises(AttributeError):
        Gcra(9, 10, "1s").count = 11  # type: ignore[misc] # pyright: ignore
    assert repr(Gcra(9, 10, "1s")) == "Gcra(max_burst=9, count=10, period='1s')"


def test_a_rate_can_be_changed_and_copied() -> None:
    rate = Rate("10/s")
    assert rate == Gcra(9, 10, "1s") == pickle.loads(pickle.dumps(rate))
    assert replace(rate, max_burst=19).words == ("GCRA", 19, 10, "1s")
