"""What is wrong before anything is sent."""

from __future__ import annotations


class RateLimitError(Exception):
    """The base of all errors of this package."""


class ConfigurationError(RateLimitError, ValueError):
    """A limiter, a duration, an option or a policy is wrong. No request was decided."""
