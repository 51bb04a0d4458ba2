"""Rate limits, budgets and leases with the Redis module ratelimit.

`RateLimiter` and `AsyncRateLimiter` ask limits and decide what happens without an answer. `Commands` and `AsyncCommands`
are the commands of the module as typed methods."""

from ._async_limiter import AsyncRateLimiter
from ._breaker import Breaker
from ._budget import AsyncBudget, AsyncHeld, Budget, Held
from ._cache import RefusalCache
from ._commands import (
    AsyncCommands,
    Calendar,
    Commands,
    Concurrent,
    FixedWindow,
    Gcra,
    LeakyBucket,
    Penalty,
    Sketch,
    SlidingLog,
    SlidingWindow,
    Smooth,
    TokenBucket,
    Uniform,
)
from ._decision import AskDecision, Decision, MultiDecision, SettledDecision, ShedReply, TopEntry, combined_headers
from ._lease import AsyncLease, Lease
from ._limiter import RateLimiter
from ._rate import Rate
from ._spec import Limit, Limiter, LimiterLike, LimitLike
from ._values import Duration, Hold, Key, Seconds
from .errors import BreakerOpen, CallError, ConfigurationError, RateLimitError, Refused, Unavailable

__version__ = "0.1.0"

__all__ = [
    "AskDecision",
    "AsyncBudget",
    "AsyncCommands",
    "AsyncHeld",
    "AsyncLease",
    "AsyncRateLimiter",
    "Breaker",
    "BreakerOpen",
    "Budget",
    "Calendar",
    "CallError",
    "Commands",
    "Concurrent",
    "ConfigurationError",
    "Decision",
    "Duration",
    "FixedWindow",
    "Gcra",
    "Held",
    "Hold",
    "Key",
    "LeakyBucket",
    "Lease",
    "Limit",
    "LimitLike",
    "Limiter",
    "LimiterLike",
    "MultiDecision",
    "Penalty",
    "Rate",
    "RateLimitError",
    "RateLimiter",
    "RefusalCache",
    "Refused",
    "Seconds",
    "SettledDecision",
    "ShedReply",
    "Sketch",
    "SlidingLog",
    "SlidingWindow",
    "Smooth",
    "TokenBucket",
    "TopEntry",
    "Unavailable",
    "Uniform",
    "combined_headers",
]
