"""Limits of leases that find themselves, from how work ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from inspect import iscoroutine
from typing import Literal, TypeAlias, cast

from .errors import ConfigurationError
from .values import Duration

Outcome: TypeAlias = Literal["OK", "DROP", "IGNORE"]
"""How work ended: well, as in an overload, or in a way that says nothing."""
Drops: TypeAlias = type[BaseException] | Sequence[type[BaseException]] | Callable[[BaseException], bool]
"""Which errors are those of an overload: a class, several, or a function of the error."""


@dataclass(frozen=True, slots=True)
class Adapt:
    """How a limit of leases adapts. The capacity of the lease is the most that the limit can be.

    Args:
        gradient: Whether it is found from how long the work takes, too.
        floor: The least that the limit can be. One more than what is reserved by default.
        start: The limit at first. 20 by default.
        backoff: By how many percent a failure lowers the limit, from 1 to 90. 10 by default.
        slow: Work that takes longer has failed.
    """

    _: KW_ONLY
    gradient: bool = False
    floor: int | None = None
    start: int | None = None
    backoff: int | None = None
    slow: Duration | None = None


def adapted(adapt: bool | Adapt, drops: Drops) -> Adapt | None:
    """Returns the parameters of an adaptive limit, or None. They are checked."""
    if not isinstance(adapt, (bool, Adapt)):
        raise ConfigurationError(f"adapt must be True, False or an Adapt, not {adapt!r}")
    # A class is callable too, but does not say whether an error is one of its own.
    if (isinstance(drops, type) or not callable(drops)) and not _are_errors(drops):
        raise ConfigurationError(
            f"drops must be a class of errors, a list of them, or a function of the error, not {drops!r}"
        )
    if drops and adapt is False:
        raise ConfigurationError("drops needs adapt")
    return adapt if isinstance(adapt, Adapt) else Adapt() if adapt else None


def outcome_of(error: BaseException | None, drops: Drops) -> Outcome:
    """Returns how work ended that raised this error, or none. It raises what a function of the application raises."""
    if error is None:
        return "OK"
    if isinstance(drops, type):
        return "DROP" if isinstance(error, drops) else "IGNORE"
    if not callable(drops):
        return "DROP" if isinstance(error, tuple(drops)) else "IGNORE"
    is_drop: object = drops(error)
    if iscoroutine(is_drop):  # which is true, whatever it returns
        is_drop.close()
        raise TypeError("drops must not be asynchronous")
    return "DROP" if is_drop else "IGNORE"


def _are_errors(drops: object) -> bool:
    each: tuple[object, ...] = tuple(cast(Sequence[object], drops)) if isinstance(drops, (list, tuple)) else (drops,)
    return all(isinstance(one, type) and issubclass(one, BaseException) for one in each)
