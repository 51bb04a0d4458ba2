"""What a budget charges, and how it is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ..call import questions
from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import MOST, LimiterLike
from ..call.questions import Question
from ..call.rate import is_policy, limiter_of
from ..call.values import Duration, Key, Word, check_duration, integer, prefixed, text
from ..decide import replies
from ..decide.decision import AskDecision, Decision


class Charge:
    """What a budget charges: a limiter or a policy, on a key.

    Args:
        prefix: What stands before the key.
        key: The key.
        limiter_or_policy: A limiter, a rate such as `"1000/d"`, or the name of a policy. Rates have a slash or a space,
            and names have none.
        ttl: For how long an estimate can be settled.
    """

    def __init__(self, prefix: str, key: Key, limiter_or_policy: LimiterLike, ttl: Duration) -> None:
        check_duration("ttl", ttl, 1)
        self.ttl = ttl
        self._prefix, self._key, self._name = prefix, key, prefixed(prefix, key)
        self._policy, self._limiter = None, None
        if is_policy(limiter_or_policy):
            text("policy", limiter_or_policy, 64)
            self._policy = limiter_or_policy
            return
        self._limiter = limiter_of(limiter_or_policy)
        if not self._limiter.can("hold"):
            raise ConfigurationError(f"{self._limiter!r} cannot be held")

    @property
    def kind(self) -> type[Decision]:
        """The class of the decision."""
        return AskDecision if self._limiter is None else Decision

    def question(self, estimate: int, hold_id: str, wait: Duration | None) -> Question:
        """The call that charges the estimate."""
        integer("estimate", estimate, 1, MOST)
        hold = hold_id, self.ttl
        if self._limiter is not None:
            return questions.limit(self._prefix, self._key, self._limiter, estimate, wait, hold)
        return questions.ask(self._prefix, self._key, cast(str, self._policy), estimate, None, (), False, wait, hold)

    def settlement(self, actual: int, hold_id: str) -> tuple[Call, Callable[[object], bool]]:
        """The call that settles, and whether a reply says that it settled something."""
        words: list[Word]
        if self._limiter is not None:
            words = ["RL.SETTLE", self._name, hold_id, *self._limiter.words, "COST", actual]
            return Call(words, [self._name]), lambda reply: replies.settled(reply).settled
        words = ["RL.ASKSETTLE", self._name, cast(str, self._policy), hold_id, "COST", actual]
        return Call(words, [self._name]), lambda reply: bool(replies.asksettled(reply).settled)
