"""`redis_ratelimit.errors`: what may go wrong."""

from .call.errors import ConfigurationError, RateLimitError
from .decide.decision import Refused
from .decide.errors import CallError, Closed, Unavailable

__all__ = ["CallError", "Closed", "ConfigurationError", "RateLimitError", "Refused", "Unavailable"]
