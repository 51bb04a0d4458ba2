"""The calls of a limiter, from what its methods are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .call import Call
from .errors import ConfigurationError
from .limit import MOST, Limit, Limiter, LimiterLike, LimitLike, limiter_words, limits_words
from .limiters import Sketch
from .rate import limiter_of
from .values import (
    Duration,
    Key,
    Word,
    check_duration,
    duration_word,
    integer,
    key_bytes,
    prefixed,
    prefixed_keys,
    text,
)


class Place(NamedTuple):
    """What a refusal is kept under.

    Attributes:
        keys: The keys of the call, as bytes. What is given back to one of them ends the refusal.
        item: The item of a sketch, each of which has a limit of its own.
        words: The call.
    """

    keys: tuple[bytes, ...]
    item: Word
    words: tuple[Word, ...]


@dataclass(slots=True)
class Question:
    """A call that a decision answers.

    Attributes:
        call: The call.
        limiters: The limiter of each pair of a limit and a key, limits outermost, where they are known.
        refusal: What the refusal is kept under in the cache, if it may be kept.
        counted: Whether the counters have it. Looks and refunds are not counted.
        asked: When it was asked, on a monotonic clock.
    """

    call: Call
    limiters: Sequence[Limiter] = ()
    refusal: Place | None = None
    counted: bool = True
    asked: float | None = None


def limit(
    prefix: str,
    key: Key,
    limiter: LimiterLike,
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
) -> Question:
    """A limiter's own command."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = [known.COMMAND, key, *limiter_words(known)[1:]]
    if checked_cost(cost) != 1:
        words += ("COST", cost)
    words += _hold_words(hold)
    call = Call(words, [key])
    if wait is not None:
        _wait(call, known, wait)
    kept = None
    if wait is None and hold is None and cost and is_kept(known):
        kept = Place((key_bytes(key),), known.item if isinstance(known, Sketch) else b"", (known.COMMAND, *words[2:]))
    return Question(call, [known], kept)


def limits(
    prefix: str,
    keys: Sequence[Key],
    several: Sequence[LimitLike],
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
) -> Question:
    """RL.MULTI."""
    names = prefixed_keys(prefix, keys)
    words: list[Word] = ["RL.MULTI", len(names), *names]
    if checked_cost(cost) != 1:
        words += ("COST", cost)
    words += _hold_words(hold)
    call = Call(words, names)
    if wait is not None:
        _block(call, wait)
    words += limits_words(several)
    pairs = limiters_of(several, len(names))
    kept = None
    if wait is None and hold is None and cost and all(map(is_kept, pairs)):
        kept = Place(tuple(map(key_bytes, names)), b"", ("RL.MULTI", *words[2 + len(names) :]))
    return Question(call, pairs, kept)


def ask(
    prefix: str,
    key: Key,
    policy: str,
    cost: int,
    lease_id: str | None,
    keys: Sequence[Key],
    full: bool,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
) -> Question:
    """RL.ASK."""
    text("policy", policy, 64)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.ASK", key, policy]
    if checked_cost(cost) != 1:
        words += ("COST", cost)
    if lease_id is not None:
        text("lease_id", lease_id, 256)
        words += ("ID", lease_id)
    words += _hold_words(hold)
    call = Call(words, [key])
    if wait is not None:
        _block(call, wait)
    if full:
        words.append("FULL")
    more = prefixed_keys(prefix, keys) if keys else []
    call.keys = [key, *more]
    kept = None
    if wait is None and hold is None and lease_id is None and cost:
        kept = Place(tuple(map(key_bytes, (key, *more))), b"", ("RL.ASK", *words[2:]))
    if more:
        words += ("KEYS", *more)
    return Question(call, refusal=kept)


def peek(prefix: str, key: Key, limiter: LimiterLike, cost: int) -> Question:
    """RL.PEEK."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.PEEK", key, *limiter_words(known), "COST", checked_cost(cost)]
    return Question(Call(words, [key], readonly=True), [known], counted=False)


def peek_policy(prefix: str, key: Key, policy: str, cost: int) -> Question:
    """RL.ASKPEEK."""
    text("policy", policy, 64)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.ASKPEEK", key, policy, "COST", checked_cost(cost)]
    return Question(Call(words, [key], readonly=True), counted=False)


def refund(prefix: str, key: Key, limiter: LimiterLike, cost: int) -> Question:
    """RL.REFUND."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.REFUND", key, *limiter_words(known), "COST", checked_cost(cost)]
    return Question(Call(words, [key]), [known], counted=False)


def lease(
    prefix: str, key: Key, capacity: int, ttl: Duration, lease_id: str, cost: int, wait: Duration | None
) -> Question:
    """RL.CONCURRENT."""
    integer("capacity", capacity, 1)
    check_duration("ttl", ttl, 1)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.CONCURRENT", key, capacity, duration_word(ttl), lease_id]
    if integer("cost", cost, 1, MOST) != 1:
        words += ("COST", cost)
    call = Call(words, [key])
    if wait is not None:
        _block(call, wait)
    return Question(call)


def checked_cost(cost: int) -> int:
    """Returns a cost that is an integer within the bounds."""
    return integer("cost", cost, 0, MOST)


def is_kept(limiter: Limiter) -> bool:
    """Whether a refusal may be kept in the cache: it holds until its time, and asking again changes nothing."""
    return not (limiter.can("early") or limiter.can("bans") or limiter.can("counts_refused"))


def limiters_of(several: Sequence[LimitLike], keys: int) -> list[Limiter]:
    """Returns the limiter of each pair of a limit and a key, limits outermost."""
    pairs: list[Limiter] = []
    for each in several:
        if isinstance(each, Limit):
            pairs += [limiter_of(each.limiter)] * (keys if each.on is None else 1)
        else:
            pairs += [limiter_of(each)] * keys
    return pairs


def _hold_words(hold: tuple[str, Duration] | None) -> list[Word]:
    if hold is None:
        return []
    if not isinstance(hold, tuple) or len(hold) != 2:
        raise ConfigurationError(f"hold must be an id and a ttl, not {hold!r}")
    id, ttl = hold
    text("the id of hold", id, 256)
    check_duration("the ttl of hold", ttl, 1)
    return ["HOLD", id, duration_word(ttl)]


def _wait(call: Call, limiter: Limiter, wait: Duration) -> None:
    if not limiter.can("block"):
        raise ConfigurationError(f"{limiter!r} cannot wait")
    _block(call, wait)


def _block(call: Call, wait: Duration) -> None:
    call.wait = check_duration("wait", wait, 1) / 1000
    call.words += ("BLOCK", duration_word(wait))
