"""Rate limits, budgets and leases with the Redis module ratelimit.

`RateLimiter` and `AsyncRateLimiter` ask limits and decide what happens without an answer. `Commands` and `AsyncCommands`
are the commands of the module as typed methods.

What is neither exported here nor by `asgi`, `django`, `errors`, `flask` and `limits_storage` may change in any version. The code
stands in rooms, each of which imports only from those before it: call, decide, wire, taken, gate, web. A file for asyncio may
have a twin for threads beside it, `*_threads.py`, which clients/generate/python_threads.py makes."""

from .call import limiters
from .call.adapt import Adapt, Drops, Outcome
from .call.limit import Limit, Limiter, LimiterLike, LimitLike
from .call.limiters import *
from .call.rate import Rate
from .call.values import Duration, Hold, Key, Seconds
from .commands import AsyncCommands, Commands
from .decide.breaker import Breaker
from .decide.decision import AskDecision, Decision, MultiDecision, SettledDecision, ShedReply, TopEntry
from .decide.headers import combined_headers
from .decide.hooks import Asked
from .decide.refusals import RefusalCache
from .decide.share import Share
from .errors import CallError, Closed, ConfigurationError, RateLimitError, Refused, Unavailable
from .gate.entrance import AsyncGate
from .gate.entrance_threads import Gate
from .gate.passage import Passage
from .gate.response import Refusal
from .gate.rules import UNLIMITED, Rule, Unlimited
from .gate.shed import Shed
from .limiter import AsyncRateLimiter
from .limiter_threads import RateLimiter
from .local.local import AsyncLocal
from .local.local_threads import Local
from .taken.hold import AsyncBudget, AsyncHeld
from .taken.hold_threads import Budget, Held
from .taken.lease import AsyncLease
from .taken.lease_threads import Lease

__version__ = "0.1.0"

__all__: list[str] = [
    "UNLIMITED",
    "Adapt",
    "AskDecision",
    "Asked",
    "AsyncBudget",
    "AsyncCommands",
    "AsyncGate",
    "AsyncHeld",
    "AsyncLease",
    "AsyncLocal",
    "AsyncRateLimiter",
    "Breaker",
    "Budget",
    "CallError",
    "Closed",
    "Commands",
    "ConfigurationError",
    "Decision",
    "Drops",
    "Duration",
    "Gate",
    "Held",
    "Hold",
    "Key",
    "Lease",
    "Limit",
    "LimitLike",
    "Limiter",
    "LimiterLike",
    "Local",
    "MultiDecision",
    "Outcome",
    "Passage",
    "Rate",
    "RateLimitError",
    "RateLimiter",
    "Refusal",
    "RefusalCache",
    "Refused",
    "Rule",
    "Seconds",
    "Share",
    "SettledDecision",
    "Shed",
    "ShedReply",
    "TopEntry",
    "Unavailable",
    "Unlimited",
    "combined_headers",
]
__all__ += limiters.__all__
