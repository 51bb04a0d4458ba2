"""Rate limits, budgets and leases with the Redis module ratelimit.

`RateLimiter` and `AsyncRateLimiter` ask limits and decide what happens without an answer. `Commands` and `AsyncCommands`
are the commands of the module as typed methods."""

from . import _commands
from ._async_limiter import AsyncRateLimiter
from ._breaker import Breaker
from ._budget import AsyncBudget, AsyncHeld, Budget, Held
from ._cache import RefusalCache
from ._commands import *
from ._decision import AskDecision, Decision, MultiDecision, SettledDecision, ShedReply, TopEntry, combined_headers
from ._lease import AsyncLease, Lease
from ._limiter import RateLimiter
from ._rate import Rate
from ._spec import Limit, Limiter, LimiterLike, LimitLike
from ._values import Duration, Hold, Key, Seconds
from .errors import BreakerOpen, CallError, ConfigurationError, RateLimitError, Refused, Unavailable

__version__ = "0.1.0"

__all__: list[str] = [
    "AskDecision",
    "AsyncBudget",
    "AsyncHeld",
    "AsyncLease",
    "AsyncRateLimiter",
    "Breaker",
    "BreakerOpen",
    "Budget",
    "CallError",
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
__all__ += _commands.__all__
