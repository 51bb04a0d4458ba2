"""Rate limits, budgets and leases with the Redis module ratelimit.

`RateLimiter` and `AsyncRateLimiter` ask limits and decide what happens without an answer. `Commands` and `AsyncCommands`
are the commands of the module as typed methods."""

from .call import limiters
from .call.limit import Limit, Limiter, LimiterLike, LimitLike
from .call.limiters import *
from .call.rate import Rate
from .call.values import Duration, Hold, Key, Seconds
from .commands import AsyncCommands, Commands
from .decide.breaker import Breaker
from .decide.decision import (
    AskDecision,
    Decision,
    MultiDecision,
    SettledDecision,
    ShedReply,
    TopEntry,
    combined_headers,
)
from .decide.refusals import RefusalCache
from .errors import BreakerOpen, CallError, ConfigurationError, RateLimitError, Refused, Unavailable
from .limiter import AsyncRateLimiter
from .limiter_threads import RateLimiter
from .taken.hold import AsyncBudget, AsyncHeld
from .taken.hold_threads import Budget, Held
from .taken.lease import AsyncLease
from .taken.lease_threads import Lease

__version__ = "0.1.0"

__all__: list[str] = [
    "AskDecision",
    "AsyncBudget",
    "AsyncCommands",
    "AsyncHeld",
    "AsyncLease",
    "AsyncRateLimiter",
    "Breaker",
    "BreakerOpen",
    "Budget",
    "CallError",
    "Commands",
    "ConfigurationError",
    "Decision",
    "Duration",
    "Held",
    "Hold",
    "Key",
    "Lease",
    "Limit",
    "LimitLike",
    "Limiter",
    "LimiterLike",
    "MultiDecision",
    "Rate",
    "RateLimitError",
    "RateLimiter",
    "RefusalCache",
    "Refused",
    "Seconds",
    "SettledDecision",
    "ShedReply",
    "TopEntry",
    "Unavailable",
    "combined_headers",
]
__all__ += limiters.__all__
