"""Asks the server whether limits, rules and policies are right, so that a wrong one is an error at start."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..call import calls
from ..call.call import Call
from ..call.errors import ConfigurationError
from ..call.limit import Limit, LimitLike, check_policy
from ..call.limiters import Concurrent
from ..call.rate import limiter_of
from ..call.values import Key, prefixed
from ..decide.core import Core
from ..decide.errors import CallError, Unavailable
from ..decide.failure import MISCONFIGURED
from .redirect import SLOTS
from .slots import SlotMap

_NEEDS = re.compile(r"needs (\d+) keys")
_MODULE = "the module ratelimit"

Readiness = Generator[Call, object, bool]


class Check(NamedTuple):
    """A question to the server.

    Attributes:
        what: How an error calls what is wrong.
        limit: A limit, or None for a policy.
        policy: The name of a policy.
        rule: Whether it is of a rule: a limit is asked by RL.MULTIPEEK, and a policy with one key only.
    """

    what: str
    limit: Limit | None = None
    policy: str = ""
    rule: bool = False


def checks_of(limits: Sequence[LimitLike], rules: Iterable[Check], policies: Sequence[str]) -> list[Check]:
    """Returns what is to be asked: limits, then rules with limits, then policies."""
    if isinstance(policies, (str, bytes)) or not isinstance(policies, Sequence):
        raise ConfigurationError(f"policies must be a list of names, not {policies!r}")
    for policy in policies:
        check_policy(policy)
    given: list[Check] = []
    for number, limit in enumerate(limits, 1):
        several = isinstance(limit, Limit)
        limit = limit if isinstance(limit, Limit) else Limit(limiter_of(limit))
        given.append(Check(f"limit {number}, {limit.limiter!r}", limit, rule=several))
    known = [*given, *rules, *(Check(f"policy {policy!r}", policy=policy) for policy in policies)]
    return sorted(known, key=lambda check: check.limit is None)


def readying(core: Core, slots: SlotMap | None, prefix: str, checks: Sequence[Check], required: bool) -> Readiness:
    """Asks each primary, on a key of its own and without a charge. Returns whether all of them answered."""

    def name() -> Key:
        return prefixed(prefix, f"{{ready:{core.new_id()}}}")

    call: Call | None = None
    try:
        if slots is not None and not slots.primaries():
            yield SLOTS
        for key in [name()] if slots is None else slots.keys_of_all(name):
            for what, call, several in _calls(key, checks):
                yield from _checked(what, call, several)
    except Unavailable as missing:
        core.warn(call or SLOTS, "not checked", missing)
        if required:
            raise
        return False
    return True


def _calls(key: Key, checks: Sequence[Check]) -> Generator[tuple[str, Call, bool], None, None]:
    """Yields what is asked, the call, and whether it may get more keys."""
    if not checks:
        yield _MODULE, calls.peek("", key, "1/s", cost=0), False
    leases = False
    for check in checks:
        if check.limit is None:
            yield check.what, calls.ask_peek("", key, check.policy, cost=0, lease_id="ready"), not check.rule
            continue
        limiter = limiter_of(check.limit.limiter)
        if isinstance(limiter, Concurrent):
            leases, limiter = True, replace(limiter, id=limiter.id or "ready")
        # RL.PEEK takes what RL.MULTIPEEK does not: a sketch, and a log with COUNTREFUSED.
        limit = replace(check.limit, limiter=limiter, on=None)
        call = calls.multi_peek("", [key], [limit], cost=0) if check.rule else calls.peek("", key, limiter, cost=0)
        yield check.what, call, False
    if leases:
        # Of a lease that nobody holds. A limiter without the right would lose each lease, or keep it for its ttl.
        yield "leases", calls.renew("", key, "1ms", "ready"), False
        yield "leases", calls.release("", key, "ready"), False


def _checked(what: str, call: Call, several: bool) -> Generator[Call, object, None]:
    """Asks, and names what is wrong if the server replies with an error. A policy of several keys is asked with as many."""
    try:
        yield call
    except Unavailable as missing:
        if missing.kind not in MISCONFIGURED:
            raise
        raise ConfigurationError(f"{_MODULE if missing.kind == 'module' else what}: {missing}") from missing
    except CallError as error:
        needs = _NEEDS.search(error.reply) if several else None
        if needs is not None:
            more = [_numbered(call.keys[0], number) for number in range(2, int(needs[1]) + 1)]
            yield from _checked(what, Call([*call.words, "KEYS", *more], [*call.keys, *more]), False)
            return
        raise ConfigurationError(f"{what}: {error}") from error


def _numbered(key: Key, number: int) -> Key:
    return key + b":%d" % number if isinstance(key, bytes) else f"{key}:{number}"
