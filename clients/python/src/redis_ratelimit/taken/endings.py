"""Releases and settlements, which are repeated without an answer."""

from __future__ import annotations

from collections.abc import Generator

from ..call.call import Call
from ..decide.core import Core
from ..decide.errors import CallError, Closed, Unavailable
from ..decide.replies import has_ended
from .background import Scheduler
from .jobs import Job

FIRST_DELAY, LONGEST_DELAY = 0.05, 30.0
LONGEST_SILENT = 1.0
"""The longest delay until there is a reply: what may be taken is released soon after the server answers again."""
AFTER_ANSWER = 60.0
"""For how many seconds an ending is at most repeated after the first answer, if its ttl has passed."""
BEYOND = 600.0
"""For how many seconds after its ttl an ending is repeated to a server that does not answer at all."""


class Ending(Job):
    """The release of a lease, or the settlement of a hold.

    A call that had no answer may still be executed, even after this one. So the ending of what may have been taken is
    repeated until it ended something, or the ttl has passed. A server that was silent for longer may have the call in its
    socket, so the ending is also repeated for a while after its first answer. The ending of what was surely taken needs
    one answer. The ending of a call that was given up needs two, the second soon after the first one: a server that answers
    has read what was sent before.

    Args:
        core: The limiter's state.
        call: The release or the settlement.
        ttl: The seconds after which the server ends it by itself.
        certain: Whether it was surely taken.
        given_up: Whether the caller gave up the call that may have taken it.
    """

    def __init__(self, core: Core, call: Call, ttl: float, certain: bool, given_up: bool = False) -> None:
        super().__init__(call)
        self._core, self._certain, self._given_up = core, certain, given_up
        self._deadline = core.clock() + ttl
        self._after_answer = min(ttl, AFTER_ANSWER)
        self._answered = False
        self._delay = FIRST_DELAY

    def after(self, outcome: object) -> float | None:
        now = self._core.clock()
        if isinstance(outcome, CallError):
            self._core.warn(self.call, "not repeated", outcome)
            return None
        if isinstance(outcome, Unavailable):
            if now >= self._deadline + BEYOND:
                self._core.warn(self.call, "given up", outcome)
                return None
        elif self._certain or has_ended(self.call, outcome) or self._is_over(now):
            return None
        delay = self._delay
        self._delay = min(2 * delay, LONGEST_DELAY if self._answered else LONGEST_SILENT)
        return delay

    def _is_over(self, now: float) -> bool:
        """Whether the server has nothing to end any more, since it has read the call or the answer comes late."""
        if self._answered:
            return self._given_up or now >= self._deadline
        self._answered, self._delay = True, FIRST_DELAY
        self._deadline = max(self._deadline, now + self._after_answer)
        return now >= self._deadline

    def tried(self, background: Scheduler) -> Generator[Call, object, None]:
        """Sends the call, and repeats it in the background if there is no answer. Or leaves it all to the background."""
        if not self._certain:
            background.add(self, 0.0)
            return
        self.tries = 1
        try:
            yield self.call
        except Unavailable as missing:
            if background.add(self, self.after(missing) or FIRST_DELAY):
                self._core.warn(self.call, "repeated in the background", missing)
            elif background.closed:
                self._core.warn(self.call, "not repeated, since the limiter closes", missing)
        except CallError as error:
            self._core.warn(self.call, "not repeated", error)
        except Closed as error:
            self._core.note(self.call, "not repeated, since the limiter closes", str(error))
        except BaseException:  # such as a cancellation
            background.add(self, 0.0)
            raise
