"""Types of arguments and results, for annotations: a limiter makes the objects."""

from .call.adapt import Drops, Outcome
from .call.limit import Limiter, LimiterLike, LimitLike
from .call.values import Duration, Key, Seconds
from .decide.decision import AskDecision, LeaseDecision, MultiDecision, SettledDecision, ShedReply, TopEntry
from .decide.hooks import Asked
from .gate.rules import Unlimited
from .local.local import AsyncLocal
from .local.local_threads import Local
from .taken.hold import AsyncBudget, AsyncHeld
from .taken.hold_threads import Budget, Held
from .taken.lease import AsyncLease
from .taken.lease_threads import Lease

__all__ = [
    "AskDecision",
    "Asked",
    "AsyncBudget",
    "AsyncHeld",
    "AsyncLease",
    "AsyncLocal",
    "Budget",
    "Drops",
    "Duration",
    "Held",
    "Key",
    "Lease",
    "LeaseDecision",
    "LimitLike",
    "Limiter",
    "LimiterLike",
    "Local",
    "MultiDecision",
    "Outcome",
    "Seconds",
    "SettledDecision",
    "ShedReply",
    "TopEntry",
    "Unlimited",
]
