"""`redis_ratelimit.asgi`: the middleware for ASGI applications, such as those of FastAPI or Starlette."""

from .web.asgi import UNLIMITED, RateLimit, Rule, Shed

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed"]
