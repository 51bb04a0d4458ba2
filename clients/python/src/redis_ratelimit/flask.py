"""`redis_ratelimit.flask`: the extension for Flask."""

from .web.flask import RateLimit, Rule, Shed

__all__ = ["RateLimit", "Rule", "Shed"]
