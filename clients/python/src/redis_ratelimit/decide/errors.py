"""What may go wrong with a call: it is wrong, or there is no answer."""

from __future__ import annotations

from ..call.errors import RateLimitError


class CallError(RateLimitError):
    """The server replied with an error, because the call is wrong: no such policy, a key of another type, no permission.

    Attributes:
        command: The name of the command, such as `RL.GCRA`.
        reply: The error reply.
        node: The name of the server, such as `127.0.0.1:6379`.
    """

    def __init__(self, command: str, reply: str, node: str = "") -> None:
        super().__init__(f"{command}{at(node)}: {reply}")
        self.command, self.reply, self.node = command, reply, node

    @property
    def code(self) -> str:
        """The code of the reply, such as `WRONGTYPE`."""
        return self.reply.partition(" ")[0]

    @property
    def kind(self) -> str:
        """The code too, for the log."""
        return self.code

    @property
    def reason(self) -> str:
        """The reply too, for the log."""
        return self.reply

    def __reduce__(self) -> tuple[type[CallError], tuple[str, str, str]]:
        return type(self), (self.command, self.reply, self.node)


class Unavailable(RateLimitError):
    """The server did not decide. It is raised where the limiter fails closed, or is the `error` of a decision.

    Attributes:
        command: The name of the command, such as `RL.CONCURRENT`.
        kind: `timeout`, `connection`, `breaker` (the server was not asked, since it did not answer several calls in a row),
            `crowded` (too many calls at once), `maxclients`, `holds` (the key has the most holds that the server keeps),
            `module` (it is not loaded), or the code of an error reply, such as `LOADING` or `WRONGPASS`.
        reason: The same in words.
        node: The name of the server, such as `127.0.0.1:6379`.
        maybe_sent: Whether the call may have been decided all the same, or may still be.
    """

    def __init__(self, command: str, kind: str, reason: str, node: str = "", maybe_sent: bool = False) -> None:
        super().__init__(f"{command}{at(node)}: {reason}")
        self.command, self.kind, self.reason, self.node, self.maybe_sent = command, kind, reason, node, maybe_sent

    def __reduce__(self) -> tuple[type[Unavailable], tuple[str, str, str, str, bool]]:
        return type(self), (self.command, self.kind, self.reason, self.node, self.maybe_sent)


class Closed(RateLimitError, RuntimeError):
    """The limiter is closed. This is a mistake of the caller, and no answer of the server."""

    def __init__(self) -> None:
        super().__init__("the limiter is closed")


def at(node: str) -> str:
    """Returns the name of a server as a message has it."""
    return f" at {node}" if node else ""
