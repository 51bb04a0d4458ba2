"""Rate limits, budgets, leases and load shedding in front of a Flask application:

    from flask import session
    from redis import Redis
    from redis_ratelimit import RateLimiter
    from redis_ratelimit.flask import RateLimit, Rule

    RateLimit(app, RateLimiter(Redis()), rules=[
        Rule("default", key=lambda request: session["user_id"], limit="100/m"),
    ])

Redis stores what `key` returns as plain text in the names of keys, so take a user's id and no secret.

All limits of a request are asked at once. If one refuses, none is charged, and the response is a 429. A handler counts what
it spends of a budget in `g.spent`, under the rule's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flask import Flask, Request, Response, g, request

from ..call.errors import ConfigurationError
from ..gate.entrance_threads import Gate
from ..gate.passage import Passage
from ..gate.response import Refusal
from ..gate.rules import UNLIMITED, Rule
from ..gate.shed import Shed
from ..limiter_threads import RateLimiter

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed"]

_LIMITED = "redis_ratelimit"


@dataclass
class _Limited:
    """A passage of the request, and whether a response has followed."""

    passage: Passage
    followed: bool = False


class RateLimit:
    """The limits of an application. Make it before other extensions, so that a refused request costs little.

    `limiter.ready()` checks the rules. An application may have several of these. They
    share `g.spent`, so their budgets need different names.

    Args:
        app: The application, or None to call `init_app` later.
        limiter: Asks the server, and says what happens without an answer. It is not closed.
        rules: The rules, with different names. They get the `flask.Request`.
        shed: Sheds load before the rules are asked.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self, app: Flask | None, limiter: RateLimiter, rules: Iterable[Rule[Request]], shed: Shed[Request] | None = None
    ) -> None:
        self._gate = Gate(limiter, rules, shed)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Limits the requests of an application.

        Raises:
            ConfigurationError: It limits them already.
        """
        limits: list[RateLimit] = app.extensions.setdefault(_LIMITED, [])
        if self in limits:
            raise ConfigurationError("init_app was called twice with this application")
        limits.append(self)
        app.before_request(self._enter)
        app.after_request(self._follow)
        app.teardown_request(self._leave)

    def _enter(self) -> Response | None:
        entered = self._gate.enter(request)
        if isinstance(entered, Refusal):
            return Response(entered.body, entered.status, entered.headers)
        self._gate.wait(entered)
        limited = _limited()
        if limited:
            entered.spent = g.spent
        g.spent = entered.spent
        limited[self] = _Limited(entered)
        return None

    def _follow(self, response: Response) -> Response:
        """Lets the end of the response end the passage. The server calls it also if the client has gone.

        After a later error, such as of a session that cannot be saved, another response follows in place of this one.
        """
        limited = _limited().get(self)
        if limited is not None:
            limited.followed = True
            response.headers.extend(limited.passage.headers)
            response.call_on_close(lambda: self._gate.leave(limited.passage))
        return response

    def _leave(self, error: BaseException | None) -> None:
        """Ends a passage that got no response, or whose response may be dropped after an error."""
        limited = _limited().pop(self, None)
        if limited is not None and (error is not None or not limited.followed):
            self._gate.leave(limited.passage)


def _limited() -> dict[RateLimit, _Limited]:
    """What each extension of the application knows of the request."""
    limited: dict[RateLimit, _Limited] = g.setdefault(_LIMITED, {})
    return limited
