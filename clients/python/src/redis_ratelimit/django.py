"""`redis_ratelimit.django`: the middleware for Django."""

from .web.django import RateLimit, Rule, Shed

__all__ = ["RateLimit", "Rule", "Shed"]
