"""What values are in Python: durations, equality, copies. The contract's cases show what is checked and sent."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta

import pytest

from redis_ratelimit import (
    CallError,
    ConfigurationError,
    Decision,
    Gcra,
    Rate,
    Refused,
    SlidingLog,
    Smooth,
    Unavailable,
    Uniform,
)


def test_a_duration_has_two_forms() -> None:
    assert Uniform("1500ms").words == Uniform(timedelta(seconds=1.5)).words == ("UNIFORM", "1500ms")
    assert SlidingLog(5, "1m", gap=timedelta()).words == ("SLIDINGLOG", 5, "1m", "GAP", "0ms")
    with pytest.raises(ConfigurationError, match="^interval must be whole milliseconds"):
        Uniform(timedelta(microseconds=1))


def test_a_float_is_sent_as_it_is_shown() -> None:
    assert Smooth(5, "1s", warmup="2s", factor=1e-17 + 3).words == ("SMOOTH", 5, "1s", "WARMUP", "2s", "COLDFACTOR", "3")


def test_headers_have_whole_seconds_and_names_that_a_header_can_have() -> None:
    refused = Decision(False, 3, 2, 0.07 * 100, 0.0)  # a float that is a little above 7
    assert refused.headers()["Retry-After"] == "7"
    for name in ("ü", "a\nb"):
        with pytest.raises(ConfigurationError):
            refused.headers(name)


def test_limiters_are_values() -> None:
    assert Gcra(9, 10, "1s") == Gcra(9, 10, "1s") != Gcra(9, 10, "2s")
    assert len({Gcra(9, 10, "1s"), Gcra(9, 10, "1s"), Rate("10/s")}) == 1
    with pytest.raises(AttributeError):
        Gcra(9, 10, "1s").count = 11  # type: ignore[misc] # pyright: ignore
    assert repr(Gcra(9, 10, "1s")) == "Gcra(max_burst=9, count=10, period='1s')"


def test_a_rate_can_be_changed_and_copied() -> None:
    rate = Rate("10/s")
    assert isinstance(rate, Gcra) and rate == Gcra(9, 10, "1s") == pickle.loads(pickle.dumps(rate))
    assert replace(rate, max_burst=19).words == ("GCRA", 19, 10, "1s")


def test_errors_can_be_sent_to_another_process() -> None:
    unavailable = Unavailable("RL.GCRA", "timeout", "no reply", "redis:6379", maybe_sent=True)
    for error in (CallError("RL.GCRA", "WRONGTYPE a key", "redis:6379"), unavailable):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
    refused = Refused(Decision(False, 3, 2, 2.0, 0.0, limiter=Gcra(2, 3, "1m")))
    copy = pickle.loads(pickle.dumps(refused))
    assert str(copy) == str(refused) and copy.decision == refused.decision and copy.decision.limiter == Gcra(2, 3, "1m")
