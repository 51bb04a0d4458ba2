"""`redis_ratelimit.limits_storage`: the storages for the library `limits`. Importing it registers their schemes."""

from .limits.storage import (
    AsyncRateLimitClusterStorage,
    AsyncRateLimitSentinelStorage,
    AsyncRateLimitStorage,
    RateLimitClusterStorage,
    RateLimitSentinelStorage,
    RateLimitStorage,
)

__all__ = [
    "AsyncRateLimitClusterStorage",
    "AsyncRateLimitSentinelStorage",
    "AsyncRateLimitStorage",
    "RateLimitClusterStorage",
    "RateLimitSentinelStorage",
    "RateLimitStorage",
]
