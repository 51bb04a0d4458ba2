"""The call that takes tokens ahead, in the background."""

from __future__ import annotations

from collections.abc import Callable

from ..call import questions
from ..call.call import Call
from ..call.limit import Limiter
from ..call.values import Key
from ..taken.jobs import Job


class Fetch(Job):
    """Takes a batch, or what there is of it.

    Args:
        prefix: What stands before the key.
        key: The key.
        limiter: The limiter.
        batch: How much is wanted.
        done: Is given the outcome.

    Attributes:
        batch: How much is wanted.
    """

    is_renewal = True  # when the limiter closes, it is not sent any more

    def __init__(
        self, prefix: str, key: Key, limiter: Limiter, batch: int, done: Callable[[Fetch, object], None]
    ) -> None:
        call = questions.limit(prefix, key, limiter, batch, None).call
        super().__init__(Call([*call.words, "PARTIAL"], call.keys))
        self.batch, self._done = batch, done

    def after(self, outcome: object) -> float | None:
        self._done(self, outcome)
        return None
