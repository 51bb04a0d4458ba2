"""Sends a call to a node of a cluster, and follows redirections. There is no I/O here: a generator says what to send to whom,
and a limiter sends it."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias, cast

from redis import exceptions as errors

from ..call.call import Call
from ..decide.failure import NoFreeConnection, Redirected, Uncounted, failure_of
from .slots import SlotMap, slot_of
from .source import Address

REDIRECTIONS = 5
"""How often a call follows MOVED and ASK."""
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.1
"""Seconds before a call is sent again whose keys are moving."""
SLOTS = Call(["CLUSTER", "SLOTS"])


class Hop(NamedTuple):
    """Send a call to this node, and behind ASKING if the slot is about to move there. First pause for some seconds."""

    address: Address
    call: Call
    asking: bool = False
    pause: float = 0.0


Route: TypeAlias = Generator[Hop, object, object]


def routed(slots: SlotMap, call: Call) -> Route:
    """Sends a call to its node, or to all primaries, and returns the reply."""
    if slots.wants_refresh():
        yield from _refreshed(slots)
    if not call.everywhere:
        return (yield from _redirected(slots, call, slots.node(call)))
    replies: list[object] = []
    for primary in slots.primaries():
        replies.append((yield Hop(primary, call)))
    return combined(replies)


def _redirected(slots: SlotMap, call: Call, address: Address) -> Route:
    asking, redirections, pause, tries = False, 0, 0.0, slots.clock() + (call.wait or slots.timeout)
    while redirections < REDIRECTIONS:
        try:
            return (yield Hop(address, call, asking, pause))
        except errors.AskError as error:  # MovedError is one, too
            redirections += 1
            address = slots.reached(address, *_target(error))
            asking = not isinstance(error, errors.MovedError)
            if not asking:
                slots.moved(slot_of(call.key or b""), address)
        except NoFreeConnection:
            raise
        except errors.TryAgainError:
            if slots.clock() >= tries:
                raise
            pause = min(2 * pause or FIRST_PAUSE, LONGEST_PAUSE)
            address, asking = slots.node(call), False
        except Exception as error:
            if failure_of(error) is None:
                raise
            if not isinstance(error, Uncounted):
                slots.suspect(address)
            primary = slots.instead(address, call)
            if primary is None:
                raise
            address = primary
    raise Redirected(f"the call was redirected {REDIRECTIONS} times")


def _target(error: errors.AskError) -> tuple[object, object]:
    """The node that a redirection names. redis-py has a type for neither of its parts."""
    return getattr(error, "host"), getattr(error, "port")


def _refreshed(slots: SlotMap) -> Generator[Hop, object, None]:
    """Asks a node for the slots. If none answers, the slots stay as they are known."""
    failure: Exception | None = None
    for seed in slots.seeds():
        try:
            slots.replace(seed, (yield Hop(seed, SLOTS)))
            return
        except Exception as error:
            failure = error
            slots.suspect(seed)
    if failure is not None and not slots.primaries():
        raise failure


def combined(replies: list[object]) -> object:
    """One reply for those of all primaries. They are versions and numbers of policies: the largest is told."""
    return replies[0] if len(replies) == 1 else max(cast("list[int]", replies))
