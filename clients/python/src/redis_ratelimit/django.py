"""`redis_ratelimit.django`: the middleware for Django."""

from .web.django import UNLIMITED, RateLimit, Rule, Shed, limited

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed", "limited"]
