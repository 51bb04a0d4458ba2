"""What a user with few rights is to do, for each row of the table in docs/clients.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import redis

from both import inside
from gates import Request, gate, passed, refused, rule
from redis_ratelimit import Concurrent, Limit, RateLimiter, TokenBucket
from redis_ratelimit.gate.rules import Rule
from redis_ratelimit.gate.shed import Shed
from servers import ROOT, Server, eventually

PAGE = ROOT / "docs/clients.md"

Row = Callable[[RateLimiter, Server], object]

ANN: Request = {"user": "ann"}
BUCKET = TokenBucket(1000, 1000, "1d")
ONE = Concurrent(1, "1s")


def table() -> dict[str, list[str]]:
    """The rights of the rows."""
    section = PAGE.read_text(encoding="utf-8").split("\n### Rights\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| ([^|]+) \| `(\+rl[^|`]+)` \|$", section, re.MULTILINE)
    return {what.replace("`", ""): rights.split() for what, rights in rows}


def user_of(server: Server, rights: list[str]) -> redis.Redis:
    """Makes a user that has these rights, and returns its client."""
    server.client.execute_command("ACL", "SETUSER", "app", "reset", "on", ">secret", "~limit:*", *rights)
    return redis.Redis(port=server.port, username="app", password="secret")


def limiter_of(client: redis.Redis | redis.RedisCluster) -> RateLimiter:
    return RateLimiter(client, prefix=f"limit:{uuid4().hex}:", timeout=5.0)


def denied(server: Server) -> set[str]:
    """The commands of the module, and UNLINK, that the server denied since the last reset."""
    statistics = server.client.info("commandstats").items()
    ours = [(name, each) for name, each in statistics if "_rl." in name or name == "cmdstat_unlink"]
    return {name.removeprefix("cmdstat_") for name, each in ours if each["rejected_calls"]}


def set_policies(server: Server) -> None:
    for name, limit in (("api", "GCRA 99 100 1m"), ("none", "GCRA 0 1 1d"), ("jobs", "CONCURRENT 1 1m")):
        server.client.execute_command("RL.POLICY", "SET", name, *f"LIMIT {limit}".split())


def _until_renewed(server: Server) -> None:
    eventually(lambda: server.calls("rl.renew") or denied(server), "a renewal")


def _reset(limiter: RateLimiter, server: Server) -> None:
    server.client.execute_command("RL.GCRA", f"{inside(limiter).prefix}key", 9, 10, "1h")
    limiter.reset("key")


def _lease(limiter: RateLimiter, server: Server) -> None:
    with limiter.lease("lease", 1, "1s", wait="1s"):
        _until_renewed(server)


def _budget(of: Any) -> Row:
    def run(limiter: RateLimiter, _: Server) -> None:
        with limiter.budget("tokens", of).hold(60) as hold:
            hold.settle(45)

    return run


def _held_limits(limiter: RateLimiter, _: Server) -> None:
    assert limiter.limits(["key"], [BUCKET], cost=60, hold=("id", "1m"))
    limiter.settle(["key"], [BUCKET], "id", "1m", cost=45)


def _middleware(*rules: Rule[Request], shed: Shed[Request] | None = None, lease: bool = False) -> Row:
    def run(limiter: RateLimiter, server: Server) -> None:
        door = gate(limiter, *rules, shed=shed)
        door.limiter.ready()
        passage = passed(door.enter(ANN))
        if lease:
            _until_renewed(server)
        door.leave(passage)

    return run


def _middleware_refuses(*rules: Rule[Request]) -> Row:
    """The last rule admits one request, and the others give back the second."""

    def run(limiter: RateLimiter, _: Server) -> None:
        door = gate(limiter, *rules)
        door.limiter.ready()
        door.leave(passed(door.enter(ANN)))
        refused(door.enter(ANN))

    return run


ROWS: dict[str, Row] = {
    "limit, with a rate": lambda limiter, _: [limiter.limit("key", "10/s"), limiter.limit("key", "10/s", wait="1s")],
    "limits": lambda limiter, _: limiter.limits(["key"], ["10/s", "100/h"], wait="1s"),
    "ask": lambda limiter, _: limiter.ask("key", "api", wait="1s"),
    "peek, with a rate": lambda limiter, _: limiter.peek("key", "10/s"),
    "peek, with a policy": lambda limiter, _: limiter.peek("key", "api"),
    "explain": lambda limiter, _: limiter.explain("key", "10/s"),
    "refund": lambda limiter, _: limiter.refund("key", "10/s"),
    "reset": _reset,
    "lease": _lease,
    "budget, with a TokenBucket": _budget(BUCKET),
    "budget, with a policy": _budget("api"),
    "limits with hold, settle": _held_limits,
    "ready, with a rate or limiter": lambda limiter, _: limiter.ready("10/s", BUCKET),
    "ready, with a Limit": lambda limiter, _: limiter.ready(Limit("10/s", on=2)),
    "ready, with a Concurrent": lambda limiter, _: limiter.ready(ONE),
    "ready, with policies only": lambda limiter, _: limiter.ready(policies=["api", "jobs"]),
    "middleware: limits": _middleware(rule(), rule("function", lambda _: "5/m")),
    "middleware: a Concurrent": _middleware(rule(), rule("lease", ONE), lease=True),
    "middleware: several Concurrent": _middleware(rule("one", ONE), rule("two", ONE), lease=True),
    "middleware: an estimate": _middleware(rule("tokens", BUCKET, estimate=60)),
    "middleware: a rule with counts": _middleware(rule("failed", BUCKET, counts=bool)),
    "middleware: a policy": _middleware(rule("policy", None, "api")),
    "middleware: policies that only functions return": _middleware(rule("policy", None, lambda _: "api")),
    "middleware: a policy with leases": _middleware(rule("policy", None, "jobs")),
    "middleware: a policy with an estimate": _middleware(rule("policy", None, "api", estimate=60)),
    "middleware: several policies": _middleware_refuses(rule("policy", None, "api"), rule("none", None, "none")),
    "middleware: limits and a policy": _middleware_refuses(rule(), rule("none", None, "none")),
    "middleware: limits and shed": _middleware(rule(), shed=Shed("fleet", lambda: 0.5, lambda _: 1, 3)),
}
