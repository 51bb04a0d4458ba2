"""`redis_ratelimit.errors`: what may go wrong."""

from .call.errors import ConfigurationError, RateLimitError
from .decide.errors import BreakerOpen, CallError, Refused, Unavailable

__all__ = ["BreakerOpen", "CallError", "ConfigurationError", "RateLimitError", "Refused", "Unavailable"]
