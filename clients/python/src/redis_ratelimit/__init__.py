"""Rate limits, budgets and leases with the Redis module ratelimit.

`RateLimiter` and `AsyncRateLimiter` ask limits and decide what happens without an answer.

Beside this module are `asgi`, `django` and `flask` for web frameworks, `gates` for others, `commands` with the commands of the
module as typed methods, `types` for annotations, `errors`, `opentelemetry` and `limits_storage`. All else may change in any
version. The code stands in rooms, each of which imports only from those before it: call, decide, wire, taken, gate, web. A file
for asyncio may have a twin for threads beside it, `*_threads.py`, which clients/generate/python_threads.py makes."""

from .call import limiters
from .call.adapt import Adapt
from .call.limit import Limit
from .call.limiters import *
from .call.rate import Rate
from .decide.breaker import Breaker
from .decide.decision import Decision
from .decide.insurance import Share
from .decide.refusals import RefusalCache
from .errors import CallError, Closed, ConfigurationError, RateLimitError, Refused, Unavailable
from .gate.address import client_address
from .gate.rules import UNLIMITED, Rule
from .gate.shed import Shed
from .limiter import AsyncRateLimiter
from .limiter_threads import RateLimiter

__version__ = "0.1.0"

__all__: list[str] = [
    "UNLIMITED",
    "Adapt",
    "AsyncRateLimiter",
    "Breaker",
    "CallError",
    "Closed",
    "ConfigurationError",
    "Decision",
    "Limit",
    "Rate",
    "RateLimitError",
    "RateLimiter",
    "RefusalCache",
    "Refused",
    "Rule",
    "Share",
    "Shed",
    "Unavailable",
    "client_address",
]
__all__ += limiters.__all__
