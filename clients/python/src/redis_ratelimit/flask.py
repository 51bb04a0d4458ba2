"""`redis_ratelimit.flask`: the extension for Flask."""

from .web.flask import UNLIMITED, RateLimit, Rule, Shed, limited

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed", "limited"]
