"""A wrong rule is an error: when it is made, or at the first request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from gates import Request, caller, gate, passed, refused, remaining, rule
from redis_ratelimit import (
    CallError,
    Concurrent,
    ConfigurationError,
    Limit,
    RateLimiter,
    Sketch,
    SlidingLog,
    Smooth,
    Uniform,
)
from redis_ratelimit.gate.entrance import AsyncGate
from redis_ratelimit.gate.entrance_threads import Gate
from redis_ratelimit.gate.response import Refusal
from redis_ratelimit.gate.rules import Rule
from redis_ratelimit.gate.shed import Shed
from servers import Server


@pytest.fixture
def limiter(server: Server, key: str) -> Iterator[RateLimiter]:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        yield limiter


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: rule(""), "rule '': name must be text that is not empty, not ''"),
        (lambda: rule("tägl"), "rule 'tägl': a name is printable ASCII"),
        (lambda: rule("r", None), "rule 'r': it needs either a limit or a policy"),
        (lambda: rule("r", "1/s", policy="api"), "rule 'r': it needs either a limit or a policy"),
        (lambda: rule("r", "often"), "rule 'r': a rate is a count per time"),
        (lambda: rule("r", ("GCRA", 1, 1, "1s")), "rule 'r': a limiter is an instance"),  # type: ignore[arg-type]
        (lambda: rule("r", "1/s", cost=-1), "rule 'r': cost must be between 0 and 9007199254740991, not -1"),
        (lambda: rule("r", "1/s", estimate=0), "rule 'r': estimate must be between 1 and 9007199254740991, not 0"),
        (lambda: rule("r", "1/s", estimate=5, cost=2), "rule 'r': cost and estimate exclude each other"),
        (lambda: rule("r", "1/s", estimate=5, hold="soon"), "rule 'r': hold must be a whole number with ms"),
        (lambda: rule("r", Uniform("1s"), estimate=5), "rule 'r': Uniform.* cannot be held"),
        (lambda: rule("r", Concurrent(5, "1m", "id")), "rule 'r': a lease has no id"),
        (lambda: rule("r", Smooth(1, "1s")), "rule 'r': Smooth.* needs a maxwait"),
        (lambda: rule("r", Sketch("ann", 1, 1, "1s")), "rule 'r': Sketch.* is not for rules"),
        (lambda: rule("r", SlidingLog(1, "1s", countrefused=True)), "rule 'r': SlidingLog.* is not for rules"),
        (lambda: Rule("r", "ann", "1/s"), "rule 'r': key must be a function of the request, not 'ann'"),  # type: ignore[arg-type]
        (lambda: Shed("fleet", 0.5, caller), "utilization must be a function, not 0.5"),  # type: ignore[arg-type]
        (lambda: Shed("fleet", lambda: 0.5, caller, 0), "tiers must be between 1"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_rule_is_an_error_at_once(make: Callable[[], object], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        make()


def test_rules_have_different_names(limiter: RateLimiter) -> None:
    with pytest.raises(ConfigurationError, match="each rule has a name of its own"):
        gate(limiter, rule("same"), rule("same"))


@pytest.mark.parametrize(
    ("rules", "shed", "error"),
    [
        ([], None, "there are neither rules nor a Shed"),
        (["a"], None, "a rule must be a Rule, not 'a'"),
        ("a", None, "rules must be a list of rules, not 'a'"),
        (None, None, "rules must be a list of rules, not None"),
        (rule(), None, "rules must be a list of rules, not Rule"),
        ([rule()], "a", "shed must be a Shed or None, not 'a'"),
    ],
)
def test_a_gate_needs_rules(limiter: RateLimiter, rules: Any, shed: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        Gate(limiter, rules, shed)


def test_a_gate_may_only_shed_and_may_get_a_generator(limiter: RateLimiter) -> None:
    gate(limiter, shed=Shed("fleet", lambda: 0.5, lambda request: 1)).limiter.ready()
    door = Gate(limiter, (each for each in [rule()]), None)
    for _ in range(3):
        passed(door.enter({"user": "ann"}))
    refused(door.enter({"user": "ann"}))


@pytest.mark.parametrize("caller", [b"ann", 7])
def test_a_caller_is_text(limiter: RateLimiter, caller: object) -> None:
    door = gate(limiter, Rule[Request]("r", lambda _: caller, "1/h"))  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigurationError, match=f"rule 'r': key must return text that is not empty, or UNLIMITED, not {caller!r}"):
        door.enter({})


def test_callers_that_cannot_be_encoded_are_told_apart(limiter: RateLimiter) -> None:
    door = gate(limiter, Rule[Request]("r", lambda request: request["name"], SlidingLog(1, "1h")))
    told = [door.enter({"name": name}) for name in ("ann\udc80", "ann\udc81", "ann\udc80")]
    assert [isinstance(each, Refusal) for each in told] == [False, False, True]


def test_a_gate_needs_the_right_limiter(limiter: RateLimiter) -> None:
    with pytest.raises(ConfigurationError, match="must be a RateLimiter, not None"):
        Gate(None, [rule()], None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must be an AsyncRateLimiter"):
        AsyncGate(limiter, [rule()], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (rule("big", SlidingLog(2_000_000, "1h")), "rule 'big': RL.MULTIPEEK at .*limit must be an integer"),
        (rule("gone", None, policy="gone"), "rule 'gone': RL.ASKPEEK at .*no such policy"),
        (rule("many", Concurrent(2_000_000, "1h")), "rule 'many': .*capacity must be an integer"),
    ],
)
def test_a_wrong_rule_is_an_error_at_start(limiter: RateLimiter, wrong: Rule[Request], error: str) -> None:
    door = gate(limiter, rule(), wrong)
    with pytest.raises(ConfigurationError, match=error):
        limiter.ready()
    with pytest.raises(CallError):
        door.enter({"user": "ann"})
    assert remaining(limiter, "default:ann") == 3


def test_a_policy_for_two_keys_is_an_error(limiter: RateLimiter) -> None:
    limiter.commands.policy_set("two", [Limit("1/s", on=2)])
    with pytest.raises(ConfigurationError, match="rule 'team': .*policy 'two' needs 2 keys"):
        gate(limiter, rule("team", None, policy="two")).limiter.ready()


def test_a_server_without_the_module_is_an_error() -> None:
    with Server(module=False) as bare, RateLimiter(redis.Redis(port=bare.port), timeout=5.0) as limiter:
        with pytest.raises(ConfigurationError, match="the module ratelimit"):
            gate(limiter, rule()).limiter.ready()
