"""What goes on in the background: leases are renewed, and releases and settlements without an answer are repeated.

There is no I/O here. A job says what to send, and from the reply when to send it again."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Protocol

from ..call.call import Call
from ..decide.core import Core
from ..decide.failure import Closed, NoAnswer, reason
from ..errors import CallError

FIRST_DELAY, LONGEST_DELAY = 0.05, 30.0
AFTER_ANSWER = 60.0
"""For how many seconds an ending is at most repeated after the first answer, if its ttl has passed."""
BEYOND = 600.0
"""For how many seconds after its ttl an ending is repeated to a server that does not answer at all."""


class Scheduler(Protocol):
    """Runs jobs in the background."""

    @property
    def closed(self) -> bool:
        """Whether all jobs are dropped, since the limiter closes."""
        ...

    def add(self, job: Job, delay: float) -> bool:
        """Sends the call of a job after some seconds. Returns False if the job is dropped."""
        ...

    def stop(self, job: Job) -> None:
        """Sends the call of a job no more."""
        ...


class Job:
    """A call in the background.

    Attributes:
        call: What is sent.
        stopped: Whether it is not sent any more.
        asked: When the call was last begun, on a monotonic clock.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.stopped = False
        self.asked = 0.0

    def after(self, outcome: object) -> float | None:
        """Returns the seconds until the call is sent again, or None.

        Args:
            outcome: The reply, a `NoAnswer`, or a `CallError`.
        """
        raise NotImplementedError


class Ending(Job):
    """The release of a lease, or the settlement of a hold.

    A call that had no answer may still be executed, even after this one. So the ending of what may have been taken is
    repeated until it ended something, or the ttl has passed. A server that was silent for longer may have the call in its
    socket, so the ending is also repeated for a while after its first answer. The ending of what was surely taken needs
    one answer.

    Args:
        core: The limiter's state.
        call: The release or the settlement.
        ended: Whether a reply says that something was ended.
        ttl: The seconds after which the server ends it by itself.
        certain: Whether it was surely taken.
    """

    def __init__(self, core: Core, call: Call, ended: Callable[[object], bool], ttl: float, certain: bool) -> None:
        super().__init__(call)
        self._core, self._ended, self._certain = core, ended, certain
        self._deadline = monotonic() + ttl
        self._after_answer = min(ttl, AFTER_ANSWER)
        self._answered = False
        self._delay = FIRST_DELAY

    def after(self, outcome: object) -> float | None:
        now = monotonic()
        if isinstance(outcome, CallError):
            self._core.warn(self.call, outcome.error, "not repeated")
            return None
        if isinstance(outcome, NoAnswer):
            if now >= self._deadline + BEYOND:
                self._core.warn(self.call, outcome.error, "given up")
                return None
        elif self._certain or self._ended(outcome) or self._is_over(now):
            return None
        delay = self._delay
        self._delay = min(2 * delay, LONGEST_DELAY)
        return delay

    def _is_over(self, now: float) -> bool:
        """Whether an answer comes so late that the server has nothing to end any more."""
        if not self._answered:
            self._answered, self._delay = True, FIRST_DELAY
            self._deadline = max(self._deadline, now + self._after_answer)
        return now >= self._deadline

    def tried(self, background: Scheduler) -> Generator[Call, object, None]:
        """Sends the call, and repeats it in the background if there is no answer."""
        try:
            yield self.call
        except NoAnswer as missing:
            kept = background.add(self, self.after(missing) or FIRST_DELAY)
            dropped = "not repeated, since the limiter closes" if background.closed else "not repeated"
            self._core.warn(self.call, missing.error, "repeated in the background" if kept else dropped)
        except CallError as error:
            self._core.warn(self.call, error.error, "not repeated")
        except Closed as error:
            self._core.warn(self.call, error, "no reply" if self.call.sent else "not sent")
        except BaseException:  # such as a cancellation
            background.add(self, 0.0)
            raise


class Renewal(Job):
    """The renewals of a lease.

    Args:
        call: RL.RENEW.
        ttl: The lease's ttl in seconds. It is renewed every third of it.
        renewed: Is told None if the server still had the lease, or else why it is lost.
    """

    def __init__(self, call: Call, ttl: float, renewed: Callable[[str | None], None]) -> None:
        super().__init__(call)
        self._renewed = renewed
        self.every = ttl / 3

    def after(self, outcome: object) -> float | None:
        if self.stopped:
            return None
        if isinstance(outcome, NoAnswer):
            return self.every / 3
        lost = None if outcome == 1 else "a renewal found no lease"
        if isinstance(outcome, CallError):
            lost = reason(outcome.error)
        self._renewed(lost)
        return self.every if lost is None else None
