"""Asks the server whether limits and policies are right, so that a wrong one is an error at start."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import Limit, Limiter, LimitLike
from ..call.rate import limiter_of
from ..call.values import Key, Word, prefixed, text
from ..decide.core import Core
from ..decide.errors import CallError, Unavailable
from ..decide.failure import NoAnswer
from .slots import SlotMap

_NEEDS = re.compile(r"needs (\d+) keys")
_MODULE = "the module ratelimit"

Verification = Generator[Call, object, bool]


def verifying(
    core: Core, slots: SlotMap | None, prefix: str, limits: Sequence[LimitLike], policies: Sequence[str], required: bool
) -> Verification:
    """Asks each primary, on a key of its own and without a charge. Returns whether all of them answered."""
    limiters = [limiter_of(limit.limiter if isinstance(limit, Limit) else limit) for limit in limits]
    if isinstance(policies, (str, bytes)) or not isinstance(policies, Sequence):
        raise ConfigurationError(f"policies must be a list of names, not {policies!r}")
    for policy in policies:
        text("policy", policy, 64)
    own = core.new_id()

    def name(number: int) -> Key:
        return prefixed(prefix, f"{{verify:{own}:{number}}}")

    # An application that only asks policies may have no right to look at limits.
    probe = "RL.ASKPEEK" if policies and not limiters else "RL.PEEK"
    try:
        if probe == "RL.PEEK":
            yield from _module(name(0))
        for key in slots.keys_of_all(name) if slots else [name(0)]:
            yield from _limits(key, limiters)
            yield from _policies(key, policies)
    except NoAnswer as missing:
        call = Call([probe], [name(0)], asked=missing.node)
        core.warn(call, missing.error, "limits are not verified")
        if required:
            raise Unavailable(probe, missing.error, missing.node) from missing.error
        return False
    return True


def _module(key: Key) -> Generator[Call, object, None]:
    yield from checked(_MODULE, _peek(key, ("GCRA", 0, 1, "1ms")))


def _limits(key: Key, limiters: Sequence[Limiter]) -> Generator[Call, object, None]:
    for number, limiter in enumerate(limiters, 1):
        words = limiter.words
        if limiter.NAME == "CONCURRENT" and getattr(limiter, "id", None) is None:
            words = (*words[:3], "verify", *words[3:])
        yield from checked(f"limit {number}, {limiter!r}", _peek(key, words))
    if any(limiter.NAME == "CONCURRENT" for limiter in limiters):
        # Of a lease that nobody holds. A limiter without the permission would lose each lease, or keep it for its ttl.
        yield from checked("leases", Call(["RL.RENEW", key, "1ms", "verify"], [key]))
        yield from checked("leases", Call(["RL.RELEASE", key, "verify"], [key]))


def _policies(key: Key, policies: Sequence[str]) -> Generator[Call, object, None]:
    for policy in policies:
        words: list[Word] = ["RL.ASKPEEK", key, policy, "COST", 0, "ID", "verify"]
        try:
            yield from checked(f"policy {policy!r}", Call(words, [key]))
        except ConfigurationError as error:
            needs = _NEEDS.search(str(error))
            if needs is None:
                raise
            more = [_numbered(key, number) for number in range(2, int(needs[1]) + 1)]
            yield from checked(f"policy {policy!r}", Call([*words, "KEYS", *more], [key, *more]))


def _numbered(key: Key, number: int) -> Key:
    return key + b":%d" % number if isinstance(key, bytes) else f"{key}:{number}"


def _peek(key: Key, words: Sequence[Word]) -> Call:
    """RL.PEEK takes what RL.MULTIPEEK does not: a sketch, and a log with COUNTREFUSED."""
    return Call(["RL.PEEK", key, *words, "COST", 0], [key])


def checked(what: str, call: Call) -> Generator[Call, object, None]:
    """Asks, and names what is wrong if the server replies with an error."""
    try:
        yield call
    except CallError as error:
        if "unknown command" in str(error):
            what = _MODULE
        raise ConfigurationError(f"{what}: {error}") from error
