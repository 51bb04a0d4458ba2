"""What may go wrong with a call: it is wrong, there is no answer, or it is refused where a decision cannot be returned."""

from __future__ import annotations

from ..call.errors import RateLimitError
from .decision import Decision


class _Failed(RateLimitError):
    def __init__(self, command: str, error: Exception, node: str = "") -> None:
        super().__init__(f"{command}{at(node, str(error))}: {str(error) or type(error).__name__}")
        self.command = command
        self.error = error
        self.node = node

    def __reduce__(self) -> tuple[type[_Failed], tuple[str, Exception, str]]:
        return type(self), (self.command, self.error, self.node)


class CallError(_Failed):
    """The server replied with an error, because the call is wrong: no such policy, a key of another type, no permission.

    Attributes:
        command: The name of the command, such as `RL.GCRA`.
        error: The error of redis-py.
        node: The name of the server, such as `127.0.0.1:6379`.
    """


class Unavailable(_Failed):
    """The server did not decide, and the limiter fails closed.

    Attributes:
        command: The name of the command, such as `RL.CONCURRENT`.
        error: What kept the server from it: an error of redis-py, or `BreakerOpen`.
        node: The name of the server, such as `127.0.0.1:6379`.
    """


def at(node: str, text: str) -> str:
    """Returns the name of a server as a message has it, unless the text has it already."""
    return f" at {node}" if node and node not in text else ""


class BreakerOpen(RateLimitError):
    """The server was not asked, because it did not answer several calls in a row."""


class Refused(RateLimitError):
    """A lease or a hold was refused.

    Attributes:
        decision: The refusal, with `retry_after`.
    """

    def __init__(self, decision: Decision) -> None:
        wait = "never" if decision.retry_after is None else f"in {decision.retry_after:g} s"
        super().__init__(f"refused, may be admitted {wait}")
        self.decision = decision

    def __reduce__(self) -> tuple[type[Refused], tuple[Decision]]:
        return type(self), (self.decision,)
