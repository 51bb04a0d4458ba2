"""The calls of a limiter, from what its methods are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from . import calls
from .adapt import Adapt
from .call import Call, block_seconds
from .errors import ConfigurationError
from .limit import MOST, Limit, Limiter, LimiterLike, LimitLike, check_policy, is_policy, is_rate, limiter_words
from .limiters import Concurrent, Sketch
from .manner import Manner
from .rate import limiter_of
from .tenant import tenant_words
from .values import Duration, Key, Word, check_duration, duration_word, flags, integer, key_bytes, prefixed, text


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
        several: The limits, where they are known.
        cost: The cost of the call.
        refusal: What the refusal is kept under in the cache, if it may be kept.
        counted: Whether the counters have it. Looks and refunds are not counted.
        asked: After how many returns to the limits it was asked. A refusal is kept if none of them was for its keys since.
        costs: What the call charges each pair of a limit and a key, if it is allowed. One number: each.
        partial: Whether it may charge less than its cost.
    """

    call: Call
    limiters: Sequence[Limiter] = ()
    several: Sequence[LimitLike] = ()
    cost: int = 1
    refusal: Place | None = None
    counted: bool = True
    asked: int | None = None
    costs: Sequence[int] | int = 0
    partial: bool = False


PLAIN = Manner()


def limit(
    prefix: str,
    key: Key,
    limiter: LimiterLike,
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
    manner: Manner = PLAIN,
    tenant: str | None = None,
    weight: int | None = None,
    critical: bool = False,
) -> Question:
    """A limiter's own command."""
    try:
        known = limiter_of(limiter)
    except ConfigurationError:
        if is_rate(key):  # the other one may be a secret, such as an API key
            raise ConfigurationError("key and limit are swapped: limit('user:1', '10/s')") from None
        raise
    key = prefixed(prefix, key)
    words: list[Word] = [known.COMMAND, key, *limiter_words(known)[1:]]
    if sent_cost(cost) is not None:
        words += ("COST", cost)
    words += manner.words(known)
    if (held := checked_hold(hold)) is not None:
        if not known.can("hold"):
            raise ConfigurationError(f"{known.NAME} takes no hold")
        words += ("HOLD", held[0], duration_word(held[1]))
    call = Call(words, [key])
    if (block := checked_wait(wait, manner, cost, critical)) is not None:
        if not known.can("block"):
            raise ConfigurationError(f"{known.NAME} takes no wait")
        call.words += ("BLOCK", duration_word(block))
        if critical and not getattr(known, "critical", False):  # a lease has the word once
            call.words.append("CRITICAL")
        call.wait = block_seconds(block)
    elif tenant is not None and not known.can("early"):
        raise ConfigurationError(f"a tenant of {known.NAME} needs wait")
    call.words += tenant_words(tenant, weight)
    kept = None
    if wait is None and hold is None and tenant is None and not manner and cost and is_kept(known):
        kept = Place((key_bytes(key),), known.item if isinstance(known, Sketch) else b"", (known.COMMAND, *words[2:]))
    return Question(call, [known], [known], cost, kept, costs=cost, partial=manner.partial)


def limits(
    prefix: str,
    keys: Sequence[Key],
    several: Sequence[LimitLike],
    cost: int,
    wait: Duration | None,
    hold: tuple[str, Duration] | None = None,
    force: bool = False,
    critical: bool = False,
) -> Question:
    """RL.MULTI."""
    flags(force=force)
    call = calls.multi(
        prefix,
        keys,
        several,
        cost=sent_cost(cost),
        force=force,
        hold=checked_hold(hold),
        block=checked_wait(wait, Manner(force=force), cost, critical),
        critical=critical,
    )
    for each in several:
        if isinstance(each, Limit) and each.tenant is not None and wait is None and not limiter_of(each.limiter).can("early"):
            raise ConfigurationError(f"a tenant of {limiter_of(each.limiter).NAME} needs wait")
    limiters, costs = pairs_of(several, len(call.keys), cost)
    kept = None
    shares = any(isinstance(each, Limit) and each.tenant is not None for each in several)
    if wait is None and hold is None and not shares and not force and cost and all(map(is_kept, limiters)):
        kept = Place(tuple(map(key_bytes, call.keys)), b"", ("RL.MULTI", *call.words[2 + len(call.keys) :]))
    return Question(call, limiters, several, cost, kept, costs=costs)


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
    force: bool = False,
    tenant: str | None = None,
    weight: int | None = None,
    critical: bool = False,
) -> Question:
    """RL.ASK."""
    check_policy(policy)
    if lease_id is not None:
        text("lease_id", lease_id, 256)
    flags(full=full, force=force)
    tenant_words(tenant, weight)  # an error if they are wrong
    call = calls.ask(
        prefix,
        key,
        policy,
        cost=sent_cost(cost),
        lease_id=lease_id,
        force=force,
        hold=checked_hold(hold),
        block=checked_wait(wait, Manner(force=force), cost, critical),
        critical=critical,
        tenant=tenant,
        weight=weight,
        full=full,
        more_keys=keys,
    )
    kept = None
    if wait is None and hold is None and lease_id is None and tenant is None and not force and cost:
        words = call.words[2 : -len(call.keys)] if keys else call.words[2:]
        kept = Place(tuple(map(key_bytes, call.keys)), b"", ("RL.ASK", *words))
    return Question(call, refusal=kept, costs=cost)


def peek(
    prefix: str, key: Key, what: LimiterLike, cost: int, lease_id: str | None, keys: Sequence[Key]
) -> Question:
    """RL.PEEK, or RL.ASKPEEK of a policy."""
    if is_policy(what):
        asked = ask(prefix, key, what, cost, lease_id, keys, False, None).call
        return Question(Call(["RL.ASKPEEK", *asked.words[1:]], asked.keys, readonly=True), counted=False)
    only_of_policies(lease_id, keys)
    known = limiter_of(what)
    return Question(calls.peek(prefix, key, known, cost=sent_cost(cost)), [known], [known], cost, counted=False)


def explain(
    prefix: str, key: Key, what: LimiterLike, cost: int, lease_id: str | None, keys: Sequence[Key]
) -> Call:
    """RL.EXPLAIN of what would be asked."""
    if is_policy(what):
        asked = ask(prefix, key, what, cost, lease_id, keys, False, None).call
    else:
        only_of_policies(lease_id, keys)
        asked = limit(prefix, key, what, cost, None).call
    return Call(["RL.EXPLAIN", *asked.words], asked.keys, readonly=True)


def only_of_policies(lease_id: str | None, keys: Sequence[Key]) -> None:
    """Refuses what only a policy takes."""
    if lease_id is not None or keys:
        raise ConfigurationError("only a policy has a lease_id and more keys")


def refund(prefix: str, key: Key, limiter: LimiterLike, cost: int) -> Question:
    """RL.REFUND."""
    known = limiter_of(limiter)
    if not known.can("refund"):
        lease = ": a lease is released" if known.NAME == "CONCURRENT" else ""
        raise ConfigurationError(f"{known.NAME} takes no refund{lease}")
    return Question(calls.refund(prefix, key, known, cost=sent_cost(cost)), [known], [known], counted=False)


def lease(
    prefix: str,
    key: Key,
    capacity: int,
    ttl: Duration,
    lease_id: str,
    cost: int,
    wait: Duration | None,
    reserved: int | None,
    critical: bool,
    tenant: str | None,
    weight: int | None,
    adapt: Adapt | None = None,
    fence: bool = False,
) -> Question:
    """RL.CONCURRENT."""
    tenant_words(tenant, weight)  # an error if they are wrong
    flags(critical=critical, fence=fence)
    integer("cost", cost, 1, MOST)
    own: dict[str, Any] = {} if adapt is None else {"adapt": True, **asdict(adapt)}
    Concurrent(capacity, ttl, lease_id, reserved=reserved, critical=critical, **own)  # an error if it is wrong
    if reserved is not None:
        integer("reserved", reserved, 0, capacity - 1)
    call = calls.concurrent(
        prefix,
        key,
        capacity,
        ttl,
        lease_id,
        reserved=reserved,
        critical=critical,
        **own,
        cost=sent_cost(cost),
        block=checked_wait(wait),
        tenant=tenant,
        weight=weight,
    )
    call.words += ["FENCE"] if fence else []
    return Question(call, costs=cost)


def sent_cost(cost: int) -> int | None:
    """Returns the cost, if it is right. A cost of 1 is not sent."""
    return None if integer("cost", cost, 0, MOST) == 1 else cost


def checked_wait(
    wait: Duration | None, manner: Manner = PLAIN, cost: int = 1, critical: bool = False
) -> Duration | None:
    """Returns how long to wait in the server, if it is right. A call that waits is charged as a whole, and then."""
    if critical is not False:
        flags(critical=critical)
    if wait is not None:
        check_duration("wait", wait, 1)
        if manner:
            raise ConfigurationError(f"wait and {manner.name} exclude each other")
        if cost == 0:
            raise ConfigurationError("wait needs a cost above 0")
    elif critical:
        raise ConfigurationError("critical needs wait")
    return wait


def checked_hold(hold: tuple[str, Duration] | None) -> tuple[str, Duration] | None:
    """Returns an id and a ttl, if they are right."""
    if hold is not None:
        if not isinstance(hold, tuple) or len(hold) != 2:
            raise ConfigurationError(f"hold must be a tuple of an id and a ttl, such as ('job1', '10m'), not {hold!r}")
        text("the id of hold", hold[0], 256)
        check_duration("the ttl of hold", hold[1], 1)
    return hold


def is_kept(limiter: Limiter) -> bool:
    """Whether a refusal may be kept in the cache: it holds until its time, and asking again changes nothing."""
    return not (limiter.can("early") or limiter.can("bans") or limiter.can("counts_refused"))


def pairs_of(several: Sequence[LimitLike], keys: int, cost: int) -> tuple[list[Limiter], list[int]]:
    """Returns the limiter of each pair of a limit and a key, and what the pair is charged, limits outermost."""
    limiters: list[Limiter] = []
    costs: list[int] = []
    for each in several:
        like, own, on = (each.limiter, each.cost, each.on) if isinstance(each, Limit) else (each, None, None)
        limiter, pairs = limiter_of(like), keys if on is None else 1
        limiters += [limiter] * pairs
        costs += [own if own is not None else 1 if limiter.can("one_each") else cost] * pairs
    return limiters, costs
