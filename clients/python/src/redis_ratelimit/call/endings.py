"""The calls that end what was taken: releases and settlements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import calls
from .adapt import Outcome
from .errors import ConfigurationError
from .call import Call
from .limit import MOST, Limit, LimitLike, check_limits, check_policy
from .values import Key, integer, prefixed_keys, text


def release(prefix: str, keys: Sequence[Key], id: str, outcome: Outcome = "OK") -> Call:
    """RL.RELEASE, or RL.MULTIRELEASE for several keys."""
    text("id", id, 256)
    if outcome not in ("OK", "DROP", "IGNORE"):
        raise ConfigurationError(f"outcome must be 'OK', 'DROP' or 'IGNORE', not {outcome!r}")
    names, said = prefixed_keys(prefix, keys), None if outcome == "OK" else outcome
    if len(names) == 1:
        return calls.release("", names[0], id, outcome=said)
    return calls.multi_release("", names, id, outcome=said)


def settle(prefix: str, keys: Sequence[Key], limits: Sequence[LimitLike], id: str, cost: int) -> Call:
    """RL.MULTISETTLE."""
    text("id", id, 256)
    check_limits(limits)
    # A settlement names the tenant, and does not change its weight.
    unweighted = [replace(each, weight=None) if isinstance(each, Limit) else each for each in limits]
    return calls.multi_settle(prefix, keys, id, unweighted, cost=integer("cost", cost, 0, MOST))


def settle_ask(
    prefix: str,
    key: Key,
    policy: str,
    id: str,
    cost: int,
    lease_id: str | None,
    keys: Sequence[Key],
    tenant: str | None = None,
) -> Call:
    """RL.ASKSETTLE."""
    check_policy(policy)
    text("id", id, 256)
    if lease_id is not None:
        text("lease_id", lease_id, 256)
    cost = integer("cost", cost, 0, MOST)
    return calls.ask_settle(prefix, key, policy, id, cost, lease_id=lease_id, tenant=tenant, more_keys=keys)
