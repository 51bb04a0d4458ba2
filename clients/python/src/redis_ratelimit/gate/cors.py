"""What browsers need of a response for scripts of another origin: https://fetch.spec.whatwg.org/#http-cors-protocol"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .rules import Given

EXPOSE = "Access-Control-Expose-Headers"
_ASKS = "Access-Control-Request-Method"
NAMES = {
    "draft": "RateLimit-Policy, RateLimit, Retry-After",
    "legacy": "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After",
    "off": "Retry-After",
}


def but_preflights(skip: Callable[[Any], Given[bool]] | None) -> Callable[[Any], Given[bool]]:
    """Returns a `skip` that skips preflights too. The requests of all frameworks have a `method` and `headers`."""

    def skips(request: Any) -> Given[bool]:
        if request.method == "OPTIONS" and _ASKS in request.headers:
            return True
        return skip is not None and skip(request)

    return skips
