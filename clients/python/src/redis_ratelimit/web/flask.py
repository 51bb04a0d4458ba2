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
it spends of a budget in `g.spent`, under the rule's name, and finds the decisions in `g.decisions`.

`limited` is for single views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeAlias

from flask import Flask, Request, Response, after_this_request, current_app, g, make_response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from ..call.errors import ConfigurationError
from ..decide.decision import Decision
from ..gate.cors import but_preflights
from ..gate.entrance_threads import Gate
from ..gate.gate import Fields
from ..gate.passage import Passage
from ..gate.response import Refusal, stacked, unset
from ..gate.rules import UNLIMITED, Rule
from ..gate.shed import Shed
from ..limiter_threads import RateLimiter

__all__ = ["UNLIMITED", "RateLimit", "Rule", "Shed", "limited"]

OnRefused: TypeAlias = Callable[[Request, Refusal], ResponseReturnValue]
View: TypeAlias = Callable[..., Any]
_LIMITED, _REFUSED, _BEFORE = "redis_ratelimit", "redis_ratelimit_refused", "redis_ratelimit_before"


@dataclass
class _Limited:
    """A passage of the request, and the response that has followed."""

    passage: Passage
    response: Response | None = None


class RateLimit:
    """The limits of an application. Make it before other extensions, so that a refused request costs little.

    `limiter.ready()` checks the rules. An application may have several of these. They
    share `g.spent`, so their budgets need different names.

    Args:
        app: The application, or None to call `init_app` later.
        limiter: Asks the server, and says what happens without an answer. It is not closed.
        rules: The rules, with different names. They get the `flask.Request`.
        shed: Sheds load before the rules are asked.
        skip: Returns whether a request is not limited at all.
        headers: Which headers responses have: `"draft"` (of the IETF), `"legacy"` (`X-RateLimit-*`), or `"off"`.
        preflights: Whether preflights of browsers (`OPTIONS` with `Access-Control-Request-Method`) are limited too.
        expose: Whether responses tell browsers that scripts of another origin may read these headers.
        on_refused: Returns the application's own answer to a request that does not go on, in place of problem details
            (RFC 9457). It gets the headers of the refusal that it lacks.

    Raises:
        ConfigurationError: A rule is wrong.
    """

    def __init__(
        self,
        app: Flask | None,
        limiter: RateLimiter,
        rules: Iterable[Rule[Request]],
        shed: Shed[Request] | None = None,
        *,
        skip: Callable[[Request], bool] | None = None,
        headers: Fields = "draft",
        preflights: bool = False,
        expose: bool = False,
        on_refused: OnRefused | None = None,
    ) -> None:
        self._gate = Gate(
            limiter, rules, shed, skip=skip if preflights else but_preflights(skip), headers=headers, expose=expose
        )
        self._on_refused = on_refused
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
        entered = _entered(self._gate, self._on_refused)
        if isinstance(entered, Response):
            return entered
        _limited()[self] = _Limited(entered)
        return None

    def _follow(self, response: Response) -> Response:
        """Lets the end of the response end the passage. The server calls it also if the client has gone.

        After a later error, such as of a session that cannot be saved, another response follows in place of this one.
        """
        limited = _limited().get(self)
        if limited is not None:
            limited.response = response
            _set_headers(response, limited.passage)
            response.call_on_close(lambda: self._gate.leave(limited.passage, response.status_code))
        return response

    def _leave(self, error: BaseException | None) -> None:
        """Ends a passage that got no response, or whose response may be dropped after an error."""
        limited = _limited().pop(self, None)
        if limited is not None and (error is not None or limited.response is None):
            self._gate.leave(limited.passage, limited.response.status_code if limited.response else _status_of(error))


def limited(
    limiter: RateLimiter,
    rules: Iterable[Rule[Request]],
    shed: Shed[Request] | None = None,
    *,
    skip: Callable[[Request], bool] | None = None,
    headers: Fields = "draft",
    on_refused: OnRefused | None = None,
) -> Callable[[View], View]:
    """Limits single views: `@app.get("/search")` and below it `@limited(limiter, rules)`.

    The arguments are those of `RateLimit`. For the `counts` of a rule the status of an exception is its own if it is an
    `HTTPException`, and else 500, whatever an error handler of the application answers.

    Raises:
        ConfigurationError: A rule is wrong.
    """
    gate: Gate[Request] = Gate(limiter, rules, shed, skip=skip, headers=headers)

    def decorated(view: View) -> View:
        @wraps(view)
        def passed(*values: Any, **named: Any) -> Response:
            entered = _entered(gate, on_refused)
            if isinstance(entered, Response):
                return entered
            try:
                response = make_response(current_app.ensure_sync(view)(*values, **named))
            except BaseException as error:
                after_this_request(partial(_set_headers, passage=entered))
                gate.leave(entered, _status_of(error))
                raise
            _set_headers(response, entered)
            response.call_on_close(lambda: gate.leave(entered, response.status_code))
            return response

        return passed

    return decorated


def _entered(gate: Gate[Request], on_refused: OnRefused | None) -> Passage | Response:
    """Asks a gate for the request. Returns its passage, or the response that refuses it."""
    entered = gate.enter(request, request.environ.setdefault(_BEFORE, set()))
    if isinstance(entered, Refusal):
        return _refused(entered, on_refused)
    gate.wait(entered)
    _note(entered)
    return entered


def _note(passage: Passage) -> None:
    """Shows the view what it may count in, and the decisions. Another gate may have done so."""
    decisions: dict[str, Decision] = {}
    if request.environ.get(_LIMITED):
        passage.spent, decisions = g.spent, g.decisions
    request.environ[_LIMITED] = True  # requests of a test may share `g`
    g.spent, g.decisions = passage.spent, decisions | passage.decisions


def _set_headers(response: Response, passage: Passage) -> Response:
    response.headers.update(stacked(passage.headers, response.headers.items(), refused=_REFUSED in request.environ))
    return response


def _status_of(error: BaseException | None) -> int | None:
    """The status of the response to an error of a view."""
    if isinstance(error, HTTPException):
        return error.get_response().status_code
    return 500 if isinstance(error, Exception) else None


def _refused(refusal: Refusal, on_refused: OnRefused | None) -> Response:
    request.environ[_REFUSED] = True
    if on_refused is None:
        return Response(refusal.body, refusal.status, refusal.headers)
    response = make_response(on_refused(request, refusal))
    response.headers.update(unset(refusal.headers, response.headers.items()))
    return response


def _limited() -> dict[RateLimit, _Limited]:
    """What each extension of the application knows of the request."""
    limited: dict[RateLimit, _Limited] = g.setdefault(_LIMITED, {})
    return limited
