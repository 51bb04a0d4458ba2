"""`redis_ratelimit.asgi`: the middleware for ASGI applications, such as those of FastAPI or Starlette."""

from .web.asgi import UNLIMITED, RateLimit, RequestRefused, Rule, Shed, limited, problem

__all__ = ["UNLIMITED", "RateLimit", "RequestRefused", "Rule", "Shed", "limited", "problem"]
