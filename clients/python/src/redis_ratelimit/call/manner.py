"""The options of one call: how it is charged, for which tenant it waits, and what it does without an answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from .call import Call, OpenOrClosed
from .errors import ConfigurationError
from .limit import Limiter
from .values import Duration, Seconds, Word, check_duration, duration_word, flags, quoted, seconds

@dataclass(frozen=True, slots=True)
class Manner:
    """How much a limiter charges if the cost does not fit.

    Args:
        partial: Whether as much is charged as fits.
        force: Whether the cost is charged in any case, so that the limit may be exceeded.
        reserve: Whether the cost is booked ahead: True, or the longest time until it is available.
    """

    partial: bool = False
    force: bool = False
    reserve: bool | Duration = False

    def __bool__(self) -> bool:
        return self.partial or self.force or self.reserve is not False

    @property
    def name(self) -> str:
        """The option that is chosen, or nothing."""
        if self.partial is self.force is self.reserve is False:
            return ""
        flags(partial=self.partial, force=self.force)
        names = [name for name in ("partial", "force", "reserve") if getattr(self, name) is not False]
        if len(names) > 1:
            raise ConfigurationError("take one of partial, force and reserve")
        return names[0]

    def words(self, limiter: Limiter) -> list[Word]:
        """Returns the words of the option, if the limiter has it."""
        name = self.name
        if not name:
            return []
        if not limiter.can(name):
            raise ConfigurationError(f"{limiter.NAME} takes no {name}")
        words: list[Word] = [name.upper()]
        if not isinstance(self.reserve, bool):
            if not isinstance(self.reserve, timedelta) and not str(self.reserve)[:1].isdecimal():
                such = "True, or the longest wait such as '2s'"
                raise ConfigurationError(f"reserve must be {such}, not {quoted(self.reserve)}")
            check_duration("reserve", self.reserve, 1)
            words += ("MAXWAIT", duration_word(self.reserve))
        return words


def bound(call: Call, timeout: Seconds | None, fail: OpenOrClosed | None) -> None:
    """Gives a call its own time-out, and its own decision without an answer."""
    if timeout is not None:
        if call.wait is not None:
            raise ConfigurationError("a call that waits takes no timeout")
        call.timeout = seconds("timeout", timeout)
    if fail is not None:
        if fail not in ("open", "closed"):
            raise ConfigurationError(f"fail must be 'open' or 'closed', not {quoted(fail)}")
        call.fail = fail
