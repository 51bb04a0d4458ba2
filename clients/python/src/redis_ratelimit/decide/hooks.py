"""Functions of the application that are called with what a limiter decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ..call.call import Call
from ..call.values import Key
from .decision import Decision
from .errors import CallError, Unavailable


class Asked(NamedTuple):
    """The call of a decision.

    Attributes:
        command: The name of the command, such as `RL.GCRA`.
        key: The first key, without the limiter's prefix.
        seconds: How long the call took: 0 from memory.
    """

    command: str
    key: Key | None
    seconds: float


OnDecision: TypeAlias = Callable[[Decision, Asked], object]
OnError: TypeAlias = Callable[[Unavailable | CallError], object]


class Hooks:
    """The functions that are called. An error of theirs is logged, and changes no decision.

    Args:
        failed: Is told of such an error.

    Attributes:
        on_decision: Called with each counted decision.
        on_error: Called with each error of a call, in the background too.
        prefix: What stands before each key.
    """

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._failed = failed
        self.on_decision: list[OnDecision] = []
        self.on_error: list[OnError] = []
        self.prefix = ""

    def decided(self, call: Call, decision: Decision, seconds: float) -> None:
        """Calls those for decisions."""
        for hook in self.on_decision:
            try:
                hook(decision, Asked(call.command, self._given(call.key), seconds))
            except Exception as error:
                self._failed(f"hook failed: {type(error).__name__}: {error}")

    def _given(self, key: Key | None) -> Key | None:
        """The key as the application passed it."""
        return key and key[len(self.prefix if isinstance(key, str) else self.prefix.encode()) :]

    def failed(self, error: Unavailable | CallError) -> None:
        """Calls those for errors."""
        for hook in self.on_error:
            try:
                hook(error)
            except Exception as wrong:
                self._failed(f"hook failed: {type(wrong).__name__}: {wrong}")
