"""Which errors mean that the server did not decide, which of them the breaker counts, and which that the call is wrong."""

from __future__ import annotations

import re
from typing import NamedTuple

from redis import exceptions as errors

# Error replies of a server that cannot decide now. The breaker counts those of a server that answers nobody.
_COUNTED = frozenset("LOADING MASTERDOWN READONLY MISCONF NOREPLICAS BUSY".split())
_NOT_COUNTED = frozenset("TRYAGAIN MOVED ASK CLUSTERDOWN OOM UNBLOCKED".split())
_TOO_MANY_CLIENTS = "max number of clients"
_TOO_MANY_HOLDS = "ERR too many holds"
HOLDS = "holds"
"""The kind of `Unavailable` that is a bound of the server's: callers reach it that do not settle."""
# Wrong credentials, and a server without the module: none of this is the mistake of one call.
MISCONFIGURED = frozenset("NOAUTH WRONGPASS module".split())
"""Kinds of `Unavailable` that are errors in `ready`."""
_NO_MODULE = re.compile(r"ERR unknown command '(?:RL\.|rl\.)")
# Redis-py takes these codes out of the text, and ERR. The first class that fits counts.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (errors.BusyLoadingError, "LOADING"),
    (errors.ReadOnlyError, "READONLY"),
    (errors.OutOfMemoryError, "OOM"),
    (errors.MasterDownError, "MASTERDOWN"),
    (errors.ClusterDownError, "CLUSTERDOWN"),
    (errors.TryAgainError, "TRYAGAIN"),
    (errors.MovedError, "MOVED"),
    (errors.AskError, "ASK"),
    (errors.ClusterCrossSlotError, "CROSSSLOT"),
    (errors.NoPermissionError, "NOPERM"),
    (errors.NoScriptError, "NOSCRIPT"),
    (errors.ExecAbortError, "EXECABORT"),
    (errors.AuthenticationError, "WRONGPASS"),
    (errors.AuthorizationError, "NOAUTH"),
)
_NO_AUTH = ("Authentication required", "HELLO must be called with the client already authenticated")
_REPLIES: tuple[type[Exception], ...] = (errors.ResponseError, *(each for each, _ in _CODES))
# The codes that redis-py leaves in the text.
_KEPT = frozenset("WRONGTYPE MISCONF BUSY NOREPLICAS UNBLOCKED BUSYKEY INPROG IOERR NOPROTO NOTREADY DENIED".split())


class Failure(NamedTuple):
    """Why the server did not decide.

    Attributes:
        kind: As in `Unavailable`.
        reason: The same in words.
        counts: Whether the breaker counts it.
        replied: Whether it is a reply of the server, which has not executed the call.
        misconfigured: Whether the credentials are wrong, or the module is missing.
    """

    kind: str
    reason: str
    counts: bool
    replied: bool = False
    misconfigured: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether it shows the breaker that the server is well."""
        return self.misconfigured or self.kind == HOLDS


class Uncounted(errors.RedisError):
    """The server did not answer a call, but is not to blame. Each class is also an error of redis-py, for the raw commands."""

    kind = "crowded"


class NoFreeConnection(Uncounted, errors.ConnectionError):
    """All connections were in use."""


class ServerFull(Uncounted, errors.ConnectionError):
    """The server takes no more connections, and none of those that are open came free in time."""

    kind = "maxclients"


class LateLoop(Uncounted, errors.TimeoutError):
    """There was no reply in time, but the event loop was late itself."""

    kind = "timeout"


class Redirected(Uncounted, errors.ClusterError):
    """The call was redirected too often."""

    kind = "MOVED"


class Silence(errors.TimeoutError):
    """There was no reply in time to a call that was sent. Its connection is closed, as are the idle ones."""


def waits_for_another(error: BaseException) -> bool:
    """Whether a call that gets no connection waits for another one that is open: the server takes no more, or refuses."""
    failure = failure_of(error)
    return failure is not None and failure.kind in ("maxclients", "connection")


def is_lost(error: BaseException) -> bool:
    """Whether a connection was lost, and not refused."""
    failure = failure_of(error)
    return failure is not None and failure.kind == "connection"


def is_unable(error: BaseException) -> bool:
    """Whether a server replied that it can decide nothing now, as one that became a replica. Another one may have its address."""
    failure = failure_of(error)
    return failure is not None and failure.replied and failure.counts


def is_silent(error: BaseException) -> bool:
    """Whether a call was sent that had no reply in time."""
    failure = failure_of(error)
    return failure is not None and failure.kind == "timeout" and failure.counts


def failure_of(error: BaseException) -> Failure | None:
    """Returns why the server did not decide, or None if the call is wrong or the error unexpected."""
    if isinstance(error, Uncounted):
        return Failure(error.kind, str(error), False)
    reply = reply_of(error)
    if reply is not None:
        if _TOO_MANY_CLIENTS in reply:
            return Failure("maxclients", reply, False, True)
        if reply.endswith(_TOO_MANY_HOLDS):
            return Failure(HOLDS, reply, False, True)
        code = "module" if _NO_MODULE.match(reply) else reply.partition(" ")[0]
        if code in MISCONFIGURED:
            return Failure(code, reply, False, True, True)
        return Failure(code, reply, code in _COUNTED, True) if code in _COUNTED | _NOT_COUNTED else None
    if isinstance(error, errors.TimeoutError):
        return Failure("timeout", _text(error), True)
    if isinstance(error, (errors.ConnectionError, errors.InvalidResponse, OSError)):
        return Failure("connection", _text(error), True)
    if isinstance(error, (errors.ClusterError, errors.RedisClusterException)):
        return Failure("CLUSTERDOWN", _text(error), False)
    return None


def rejection_of(error: BaseException) -> str | None:
    """Returns the reply to a wrong call, or the words of redis-py if it cannot encode the call."""
    return str(error) if isinstance(error, errors.DataError) else reply_of(error)


def reply_of(error: BaseException) -> str | None:
    """Returns the whole error reply, with its code, or None if it is none."""
    text = str(error)
    if not isinstance(error, _REPLIES):
        return f"ERR {text}" if isinstance(error, errors.ConnectionError) and text.startswith(_TOO_MANY_CLIENTS) else None
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "ERR")
    if code == "WRONGPASS" and text.startswith(_NO_AUTH):  # redis-py has one class for both
        code = "NOAUTH"
    code = getattr(error, "status_code", None) or code  # the former from redis-py 7 on
    first = text.partition(" ")[0]
    return text if first == code or (code == "ERR" and first in _KEPT) else f"{code} {text}"


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
