"""Which errors mean that the server did not decide, and which that the call is wrong."""

from __future__ import annotations

from redis import exceptions as errors

from .errors import BreakerOpen

# Error replies of a server that cannot decide now.
_CODES = frozenset("LOADING MASTERDOWN CLUSTERDOWN TRYAGAIN OOM READONLY MISCONF BUSY NOREPLICAS UNBLOCKED".split())
# The same, where redis-py has a class for it and takes the code out of the text.
_REPLIES = (
    errors.ClusterDownError,
    errors.TryAgainError,
    errors.OutOfMemoryError,
    errors.ReadOnlyError,
    errors.MovedError,
)
_CREDENTIALS = (errors.AuthenticationError, errors.AuthorizationError)
_CLUSTER = (errors.ClusterError, errors.RedisClusterException)
_LOST = (errors.ConnectionError, errors.TimeoutError, errors.InvalidResponse, OSError, BreakerOpen)


class NoAnswer(Exception):
    """The server did not decide.

    Attributes:
        error: Why.
        uncertain: Whether the call may have been decided all the same, or may still be.
        node: The name of the server that was asked.
    """

    def __init__(self, error: Exception, uncertain: bool) -> None:
        super().__init__(error)
        self.error = error
        self.uncertain = uncertain
        self.node = ""


class NotCounted(NoAnswer):
    """There is no answer, but the server as a whole is not to blame. The breaker does not count it.

    Each class is also an error of redis-py, for callers of the raw commands.
    """


class NoFreeConnection(NotCounted, errors.ConnectionError):
    """All connections were in use."""


class LateLoop(NotCounted, errors.TimeoutError):
    """There was no reply in time, but the event loop was late itself."""


class KeyMoves(NotCounted, errors.TryAgainError):
    """The slot of the keys moves to another node."""


class Redirected(NotCounted, errors.ClusterError):
    """The call was redirected too often."""


class Closed(RuntimeError):
    """The limiter is closed. This is a mistake of the caller, and no answer of the server."""

    def __init__(self) -> None:
        super().__init__("the limiter is closed")


def is_unavailable(error: BaseException) -> bool:
    """Whether the server did not decide. Else an error of redis-py means that the call is wrong.

    A `NoAnswer` is a verdict already, and is raised as it is.
    """
    if isinstance(error, (NoAnswer, *_CREDENTIALS)):
        return False
    if isinstance(error, (*_LOST, *_REPLIES, *_CLUSTER)):
        return True
    if isinstance(error, errors.ResponseError):
        text = str(error)
        return text.partition(" ")[0] in _CODES or "max number of clients" in text
    return False


def is_wrong_call(error: BaseException) -> bool:
    """Whether the server rejects the call, or redis-py cannot encode it."""
    wrong = isinstance(error, (errors.ResponseError, errors.DataError, *_CREDENTIALS))
    return wrong and not isinstance(error, NoAnswer) and not is_unavailable(error)


def is_reply(error: BaseException) -> bool:
    """Whether the error is a reply of the server, which has not executed the call."""
    return isinstance(error, (errors.ResponseError, errors.BusyLoadingError))


def reason(error: BaseException) -> str:
    """Returns the error as a line of a log has it."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
