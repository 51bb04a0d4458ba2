"""What a budget charges, and how it is settled."""

from __future__ import annotations

from collections.abc import Sequence

from ..call import calls, endings, questions
from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import MOST, LimiterLike, check_policy, is_policy
from ..call.questions import Question
from ..call.rate import limiter_of
from ..call.values import Duration, Key, check_duration, integer, milliseconds, prefixed
from ..decide.core import Core
from ..decide.decision import AskDecision, Decision
from .endings import Ending


class Charge:
    """What a budget charges: a limiter or a policy, on a key.

    Args:
        core: The limiter's state.
        prefix: What stands before the keys.
        key: The key.
        limiter_or_policy: A limiter, a rate such as `"1000/d"`, or the name of a policy. Rates have a slash or a space,
            and names have none.
        ttl: For how long an estimate can be settled.
        keys: The keys 2, 3 and so on, for policies with limits on them.

    Attributes:
        kind: The class of the decision.
    """

    def __init__(
        self, core: Core, prefix: str, key: Key, limiter_or_policy: LimiterLike, ttl: Duration, keys: Sequence[Key]
    ) -> None:
        check_duration("ttl", ttl, 1)
        self._core, self._prefix, self._key, self._keys, self._ttl = core, prefix, key, keys, ttl
        self._what = limiter_or_policy
        prefixed(prefix, key)  # an error if it is wrong
        self.kind: type[Decision] = AskDecision
        if is_policy(limiter_or_policy):
            check_policy(limiter_or_policy)
            return
        self.kind, self._what = Decision, limiter_of(limiter_or_policy)
        if keys:
            raise ConfigurationError("only a policy has more keys")
        if not self._what.can("hold"):
            lease = ": a lease is lease()" if self._what.NAME == "CONCURRENT" else ""
            raise ConfigurationError(f"{self._what.NAME} cannot be held, so it is no budget{lease}")

    def question(
        self, estimate: int, hold_id: str, wait: Duration | None, tenant: str | None, weight: int | None, critical: bool
    ) -> Question:
        """The call that charges the estimate."""
        integer("estimate", estimate, 1, MOST)
        hold = hold_id, self._ttl
        if isinstance(self._what, str):
            asked = self._prefix, self._key, self._what, estimate, None, self._keys, False, wait, hold, False
            return questions.ask(*asked, tenant, weight, critical)
        return questions.limit(
            self._prefix, self._key, self._what, estimate, wait, hold, tenant=tenant, weight=weight, critical=critical
        )

    def settlement(
        self, actual: int, hold_id: str, call: Call, tenant: str | None, *, certain: bool, given_up: bool
    ) -> Ending:
        """What settles the estimate that this call has charged, or may have charged."""
        if isinstance(self._what, str):
            ending = endings.settle_ask(
                self._prefix, self._key, self._what, hold_id, actual, None, self._keys, tenant
            )
        else:
            ending = calls.settle(self._prefix, self._key, hold_id, self._what, actual, tenant=tenant)
        ttl = milliseconds("ttl", self._ttl) / 1000 + (0.0 if certain else call.wait or 0.0)
        return Ending(self._core, ending, ttl, certain, given_up)
