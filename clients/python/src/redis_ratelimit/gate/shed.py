"""Sheds load before the rules are asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import isnan
from typing import Generic, TypeVar

from ..call import calls
from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import MOST
from ..call.values import Duration, Seconds, check_duration, decimal, integer, seconds, text

Req = TypeVar("Req", contravariant=True)

MOST_UTILIZATION = 2.0
"""The largest utilization that RL.SHED takes."""


@dataclass(frozen=True)
class Shed(Generic[Req]):
    """Sheds requests with a chance that grows while the workers are overloaded (RL.SHED). A shed request gets a 503.

    Args:
        key: The key, named after the workers that share the load.
        utilization: Returns how busy this worker is, from 0 to 1. Above 1 it is overloaded; 2 and more are the same.
        tier: Returns the importance of a request: tier 1 is shed first. None: it is never shed. If this function or
            `utilization` raises an exception or returns a wrong value, nothing is shed, and a line is logged.
        tiers: The number of tiers.
        good: The utilization below which the chance falls; 0.7 by default.
        bad: The utilization above which the chance grows; 0.8 by default.
        delay: How long workers must be overloaded before any request is shed; 28s by default.
        ramp: How long the chance then takes from 0 to 1; 120s by default.
        retry_after: The `Retry-After` of a shed request.

    Raises:
        ConfigurationError: A value is wrong.
    """

    key: str
    utilization: Callable[[], float]
    tier: Callable[[Req], int | None]
    tiers: int = 1
    _: KW_ONLY
    good: float | None = None
    bad: float | None = None
    delay: Duration | None = None
    ramp: Duration | None = None
    retry_after: Seconds = 5

    def __post_init__(self) -> None:
        text("key", self.key)
        for name, function in (("utilization", self.utilization), ("tier", self.tier)):
            if not callable(function):
                raise ConfigurationError(f"{name} must be a function, not {function!r}")
        integer("tiers", self.tiers, 1, MOST)
        seconds("retry_after", self.retry_after)
        for name, share in (("good", self.good), ("bad", self.bad)):
            if share is not None:
                decimal(name, share, 0, 1)
        for name, duration in (("delay", self.delay), ("ramp", self.ramp)):
            if duration is not None:
                check_duration(name, duration, 1)

    def call(self, prefix: str, tier: int, utilization: float) -> Call:
        """Returns the call that asks whether a request of this tier is shed."""
        return calls.shed(
            prefix,
            self.key,
            min(max(utilization, 0.0), MOST_UTILIZATION),
            good=self.good,
            bad=self.bad,
            delay=self.delay,
            ramp=self.ramp,
            tier=tier,
            tiers=self.tiers,
        )

    def pressure(self, request: Req) -> tuple[int, float] | None:
        """Returns the request's tier and the utilization, or None if nothing is to be shed."""
        tier = self.tier(request)
        if tier is None:
            return None
        utilization = float(self.utilization())
        if isnan(utilization):
            raise ConfigurationError("utilization must be a number, not nan")
        return integer("tier", tier, 1, self.tiers), utilization
