"""Metrics of a limiter for OpenTelemetry (`pip install redis-ratelimit[opentelemetry]`):

    from redis_ratelimit.opentelemetry import instrument

    instrument(limiter)

Each of the limiter's `counters` is a counter `redis_ratelimit.<name>`. The histogram `redis_ratelimit.decision.duration` has the
seconds of decisions, by `command` and `outcome`: `allowed`, `refused`, `failed_open` or `failed_closed`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

from .decide.decision import Decision
from .decide.hooks import Asked
from .limiter import AsyncRateLimiter
from .limiter_threads import RateLimiter

__all__ = ["instrument"]


def instrument(
    limiter: RateLimiter | AsyncRateLimiter, meter: Meter | None = None, attributes: Mapping[str, str] | None = None
) -> None:
    """Gives the metrics of a limiter to OpenTelemetry. Call it once for each limiter.

    Args:
        limiter: The limiter.
        meter: What makes the instruments, by default that of the global provider.
        attributes: Attributes of all values, such as a name for the limiter if there are several.
    """
    meter = meter or get_meter("redis_ratelimit")
    common = dict(attributes or {})
    for name in limiter.counters:
        meter.create_observable_counter(f"redis_ratelimit.{name}", [_counter(limiter, name, common)])
    durations = meter.create_histogram("redis_ratelimit.decision.duration", "s", "The time of decisions.")

    def decided(decision: Decision, asked: Asked) -> None:
        durations.record(asked.seconds, {**common, "command": asked.command, "outcome": _outcome(decision)})

    limiter._connected.core.hooks.on_decision.append(decided)  # pyright: ignore[reportPrivateUsage]


def _counter(
    limiter: RateLimiter | AsyncRateLimiter, name: str, attributes: Mapping[str, str]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [Observation(limiter.counters[name], attributes)]


def _outcome(decision: Decision) -> str:
    if decision.answered:
        return "allowed" if decision.allowed else "refused"
    return "failed_open" if decision.allowed else "failed_closed"
