"""Hooks of the application, and metrics of OpenTelemetry."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from both import KINDS, Maker
from redis_ratelimit import Asked, CallError, Decision, Gcra, RefusalCache, Unavailable
from servers import Server, free_port

ONE = Gcra(0, 1, "1h")


async def test_each_decision_is_told(make: Maker, server: Server, key: str) -> None:
    told: list[tuple[bool, str, bool]] = []

    def on_decision(decision: Decision, asked: Asked) -> None:
        assert asked.key == key and asked.seconds >= 0
        told.append((decision.allowed, asked.command, asked.seconds > 0))

    limiter = make(on_decision=on_decision, cache=RefusalCache())
    for _ in range(3):
        await limiter.limit(key, ONE)
    await limiter.peek(key, ONE)
    assert told == [(True, "RL.GCRA", True), (False, "RL.GCRA", True), (False, "RL.GCRA", False)]


async def test_decisions_without_an_answer_and_errors_are_told(make: Maker, server: Server, key: str) -> None:
    decisions: list[Decision] = []
    errors: list[Any] = []

    def on_decision(decision: Decision, _: Asked) -> None:
        decisions.append(decision)

    limiter = make(port=free_port(), on_decision=on_decision, on_error=errors.append, fail="closed")
    await limiter.limit(key, ONE)
    with pytest.raises(Unavailable):
        async with limiter.lease(key, 1, "1s"):
            raise AssertionError("not reached")
    assert [(each.allowed, each.answered) for each in decisions] == [(False, False)] * 2
    assert [type(each) for each in errors] == [Unavailable] * 2
    wrong = make(on_error=errors.append)
    with pytest.raises(CallError):
        await wrong.ask(key, "no-such-policy")
    assert isinstance(errors[-1], CallError)


async def test_a_hook_that_fails_changes_nothing(make: Maker, key: str, caplog: pytest.LogCaptureFixture) -> None:
    def broken(decision: Decision, asked: Asked) -> None:
        raise RuntimeError("broken")

    limiter = make(on_decision=broken)
    with caplog.at_level(logging.WARNING):
        assert (await limiter.limit(key, ONE)).allowed
    assert "hook failed: RuntimeError: broken" in caplog.text


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
async def test_metrics_of_opentelemetry(server: Server, key: str, kind: str) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from redis_ratelimit.opentelemetry import instrument

    reader = InMemoryMetricReader()
    limiter: Any = KINDS[kind](server.port, timeout=5.0)
    meter = MeterProvider([reader]).get_meter("test")
    instrument(getattr(limiter, "_limiter", limiter), meter, {"limiter": "api"})
    for _ in range(3):
        await limiter.limit(key, ONE)
    data: Any = reader.get_metrics_data()
    points = {each.name: each.data.data_points for each in data.resource_metrics[0].scope_metrics[0].metrics}
    values = {name: points[f"redis_ratelimit.{name}"][0].value for name in ("asked", "allowed", "refused", "unavailable")}
    assert values == {"asked": 3, "allowed": 1, "refused": 2, "unavailable": 0}
    counts = {each.attributes["outcome"]: each.count for each in points["redis_ratelimit.decision.duration"]}
    assert counts == {"allowed": 1, "refused": 2}
    assert dict(points["redis_ratelimit.asked"][0].attributes) == {"limiter": "api"}
    await limiter.close()
