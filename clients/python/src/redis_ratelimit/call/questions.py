"""The calls of a limiter, from what its methods are given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..decide import replies
from ..decide.core import Question
from ..decide.decision import AskDecision, Decision, MultiDecision
from ..decide.refusals import Place
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


def limit(
    prefix: str,
    key: Key,
    limiter: LimiterLike,
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
) -> Question[Decision]:
    """A limiter's own command."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = [known.COMMAND, key, *limiter_words(known)[1:]]
    if checked_cost(cost) != 1:
        words += ("COST", cost)
    words += _hold_words(hold)
    call = Call(words, key)
    if wait is not None:
        _wait(call, known, wait)
    kept = None
    if wait is None and hold is None and cost and is_kept(known):
        kept = Place((key_bytes(key),), known.item if isinstance(known, Sketch) else b"", (known.COMMAND, *words[2:]))
    return Question(call, partial(replies.decision, limiter=known), Decision, kept)


def limits(
    prefix: str,
    keys: Sequence[Key],
    several: Sequence[LimitLike],
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
) -> Question[MultiDecision]:
    """RL.MULTI."""
    names = prefixed_keys(prefix, keys)
    words: list[Word] = ["RL.MULTI", len(names), *names]
    if checked_cost(cost) != 1:
        words += ("COST", cost)
    words += _hold_words(hold)
    call = Call(words, names[0])
    if wait is not None:
        _block(call, wait)
    words += limits_words(several)
    pairs = limiters_of(several, len(names))
    kept = None
    if wait is None and hold is None and cost and all(map(is_kept, pairs)):
        kept = Place(tuple(map(key_bytes, names)), b"", ("RL.MULTI", *words[2 + len(names) :]))
    return Question(call, partial(replies.multi, limiters=pairs), MultiDecision, kept)


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
) -> Question[AskDecision]:
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
    call = Call(words, key)
    if wait is not None:
        _block(call, wait)
    if full:
        words.append("FULL")
    more = prefixed_keys(prefix, keys) if keys else []
    kept = None
    if wait is None and hold is None and lease_id is None and cost:
        kept = Place(tuple(map(key_bytes, (key, *more))), b"", ("RL.ASK", *words[2:]))
    if more:
        words += ("KEYS", *more)
    return Question(call, replies.ask, AskDecision, kept)


def peek(prefix: str, key: Key, limiter: LimiterLike, cost: int) -> Question[Decision]:
    """RL.PEEK."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.PEEK", key, *limiter_words(known), "COST", checked_cost(cost)]
    return Question(Call(words, key, readonly=True), partial(replies.decision, limiter=known), Decision, counted=False)


def peek_policy(prefix: str, key: Key, policy: str, cost: int) -> Question[AskDecision]:
    """RL.ASKPEEK."""
    text("policy", policy, 64)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.ASKPEEK", key, policy, "COST", checked_cost(cost)]
    return Question(Call(words, key, readonly=True), replies.ask, AskDecision, counted=False)


def refund(prefix: str, key: Key, limiter: LimiterLike, cost: int) -> Question[Decision]:
    """RL.REFUND."""
    known = limiter_of(limiter)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.REFUND", key, *limiter_words(known), "COST", checked_cost(cost)]
    return Question(Call(words, key), partial(replies.decision, limiter=known), Decision, counted=False)


def lease(
    prefix: str, key: Key, capacity: int, ttl: Duration, lease_id: str, cost: int, wait: Duration | None
) -> Question[Decision]:
    """RL.CONCURRENT."""
    integer("capacity", capacity, 1)
    check_duration("ttl", ttl, 1)
    key = prefixed(prefix, key)
    words: list[Word] = ["RL.CONCURRENT", key, capacity, duration_word(ttl), lease_id]
    if integer("cost", cost, 1, MOST) != 1:
        words += ("COST", cost)
    call = Call(words, key)
    if wait is not None:
        _block(call, wait)
    return Question(call, replies.decision, Decision)


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
