"""A command that is ready to be sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .values import Duration, Key, Word, milliseconds

OpenOrClosed: TypeAlias = Literal["open", "closed"]
"""What is decided without an answer."""
LONGEST_BLOCK = 86_400.0
"""BLOCK 0 waits for the setting ratelimit.max-block, which is a day at most."""
_GIVE_BACK = frozenset(
    f"RL.{name}"
    for name in "REFUND MULTIREFUND ASKREFUND SETTLE MULTISETTLE ASKSETTLE RELEASE MULTIRELEASE".split()
) | {"UNLINK"}


@dataclass(slots=True)
class Call:
    """A command.

    Attributes:
        words: The command and its arguments.
        keys: All keys. The first says which node of a cluster gets the call. Without keys any node may get it.
        readonly: Whether a replica may answer.
        wait: For how many seconds the call may wait in the server. Then it needs a connection of its own.
        everywhere: Whether each primary of a cluster gets the call.
        sent: Whether the call was sent, so that it may have been decided without a reply.
        ended: Whether `close` has ended the call, so that it is sent no more.
        asked: The name of the server that gets the call, or that was asked last.
        begun: When it was last begun, on a monotonic clock. None if it was not.
        timeout: The call's own time-out in seconds, in place of the limiter's.
        fail: What is decided about this call without an answer, in place of what the limiter's `fail` says.
    """

    words: list[Word]
    keys: list[Key] | tuple[Key, ...] = ()
    readonly: bool = False
    wait: float | None = None
    everywhere: bool = False
    sent: bool = False
    ended: bool = False
    asked: str = ""
    begun: float | None = None
    timeout: float | None = None
    fail: OpenOrClosed | None = None

    @property
    def command(self) -> str:
        """The name of the command."""
        return str(self.words[0])

    @property
    def key(self) -> Key | None:
        """The first key."""
        return self.keys[0] if self.keys else None

    @property
    def on_replica(self) -> bool:
        """Whether a replica may answer. It may have an old version of a policy, so it is not asked for one."""
        return self.readonly and self.command != "RL.ASKPEEK"

    @property
    def gives_back(self) -> bool:
        """Whether it gives back what was taken."""
        return self.command in _GIVE_BACK


def block_seconds(block: Duration | None) -> float | None:
    """Returns for how long a call with BLOCK may wait."""
    return None if block is None else milliseconds("block", block) / 1000 or LONGEST_BLOCK
