"""Metrics of OpenTelemetry."""

from __future__ import annotations

from typing import Any

import pytest

from both import KINDS
from redis_ratelimit import Gcra
from servers import Server

ONE = Gcra(0, 1, "1h")


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
