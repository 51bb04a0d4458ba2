"""Rate limits, budgets, leases and load shedding in front of a Flask application:

    from flask import session
    from redis import Redis
    from redis_ratelimit import RateLimiter
    from redis_ratelimit.flask import RateLimit, Rule

    RateLimit(app, RateLimiter(Redis()), rules=[
        Rule("default", key=lambda request: session.get("user_id"), limit="100/m"),
    ])

Redis stores what `key` returns as plain text in the names of keys, so take a user's id and no secret.

All limits of a request are asked at once. If one refuses, none is charged, and the response is a 429. A handler counts what
it spends of a budget in `g.spent`, under the rule's name.
"""

from __future__ import annotations

from collections.abc import Iterable

from flask import Flask, Request, Response, g, request

from ._gate import SyncGate
from ._limiter import RateLimiter
from ._passage import Passage
from ._refusal import Refusal
from ._rules import Rule, Shed

__all__ = ["RateLimit", "Rule", "Shed"]

_PASSAGE, _FOLLOWED = "_redis_ratelimit", "_redis_ratelimit_followed"


class RateLimit:
    """The limits of an application. Make it before other extensions, so that a refused request costs little.

    Rules are verified before the first request. `verify()` does it earlier.

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
        self._gate = SyncGate(limiter, rules, shed)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Limits the requests of an application."""
        app.before_request(self._enter)
        app.after_request(self._follow)
        app.teardown_request(self._leave)

    def verify(self) -> None:
        """Asks the server whether the rules are right. If it does not answer, a line is logged.

        Raises:
            ConfigurationError: A rule is wrong, or the module is not loaded.
        """
        self._gate.verify()

    def _enter(self) -> Response | None:
        entered = self._gate.enter(request)
        if isinstance(entered, Refusal):
            return Response(entered.body, entered.status, entered.headers)
        setattr(g, _PASSAGE, entered)
        g.spent = entered.spent
        return None

    def _follow(self, response: Response) -> Response:
        """Lets the end of the response end the passage. The server calls it also if the client has gone.

        After a later error, such as of a session that cannot be saved, another response follows in place of this one.
        """
        passage: Passage | None = g.get(_PASSAGE)
        if passage is not None:
            setattr(g, _FOLLOWED, True)
            response.headers.extend(passage.headers)
            response.call_on_close(lambda: self._gate.leave(passage))
        return response

    def _leave(self, error: BaseException | None) -> None:
        """Ends a passage that got no response, or whose response may be dropped after an error."""
        passage: Passage | None = g.pop(_PASSAGE, None)
        followed: bool = g.pop(_FOLLOWED, False)
        if passage is not None and (error is not None or not followed):
            self._gate.leave(passage)
