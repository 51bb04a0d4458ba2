"""Rate limits, budgets, leases and load shedding in front of an ASGI application (FastAPI, Starlette, …), with
`redis.asyncio`.

All policies of a request are decided by one `RL.MULTI`: if one refuses, none is charged and no lease is taken.

A budget is a policy with an estimate, which is held before the application runs and settled after the response. The
application writes what it spends into `scope["spent"]`, under the policy's name, as it goes. If it writes nothing, the
estimate stands."""

import asyncio
import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from redis.exceptions import RedisError

PROBLEM = "https://iana.org/assignments/http-problem-types#"
log = logging.getLogger("ratelimit")


@dataclass(frozen=True)
class Policy:
    name: str
    # Whose limit it is; None if the policy is not for this request.
    key: Callable[[dict], str | None]
    # As it stands behind LIMIT in RL.MULTI: ("SLIDINGLOG", 100, "10s"), ("CONCURRENT", 5, "30s").
    limiter: tuple
    # The w of RateLimit-Policy, in seconds.
    window: int | None = None
    # Of a budget: the most that the request may cost.
    estimate: Callable[[dict], int] | None = None

    @property
    def lease(self):
        return self.limiter[0] == "CONCURRENT"


@dataclass(frozen=True)
class Shed:
    key: str
    # How busy the workers are, from 0 to 1.
    utilization: Callable[[], float]
    # The request's tier, 1 going first; None for what is never shed.
    tier: Callable[[dict], int | None]
    tiers: int
    options: tuple = ()
    retry_after: int = 5


def seconds(ms):
    return -(-ms // 1000)


def fields(policies, replies, limited):
    """`RateLimit-Policy` and `RateLimit`. A 429 names the policies that refuse: `t` may not be later than Retry-After.
    A lease has no `t`: it comes free when somebody is done, and nobody knows when."""
    offered, left = [], []
    for policy, (refused, limit, remaining, retry, reset) in zip(policies, replies):
        unit = ';qu="concurrent-requests"' if policy.lease else ""
        window = f";w={policy.window}" if policy.window else ""
        offered.append(f'"{policy.name}";q={limit}{unit}{window}')
        wait = retry if refused else reset
        t = "" if policy.lease or wait < 0 else f";t={seconds(wait)}"
        if refused or not limited:
            left.append(f'"{policy.name}";r={remaining}{t}')
    return {"RateLimit-Policy": ", ".join(offered), "RateLimit": ", ".join(left)}


@dataclass(frozen=True)
class Asked:
    """A policy that is for this request."""

    policy: Policy
    key: str
    estimate: int | None


def has_budget(asked):
    return any(each.estimate is not None for each in asked)


def multi(command, asked, options, request, spent):
    """`RL.MULTI`, or the `RL.MULTISETTLE` that belongs to it."""
    words = [command, len(asked), *(each.key for each in asked), *options]
    for i, each in enumerate(asked, 1):
        words += ["LIMIT", *each.policy.limiter, *([request] if each.policy.lease else []), "ON", i]
        if each.estimate is not None:
            words += ["COST", spent.get(each.policy.name, each.estimate)]
    return words


class RateLimit:
    def __init__(self, app, redis, policies, shed=None, timeout=0.1, fail="open", hold="10m"):
        self.app, self.redis, self.policies, self.shed = app, redis, policies, shed
        # After `hold` an estimate can no longer be settled, so it is longer than the longest response.
        self.timeout, self.fail, self.hold = timeout, fail, hold

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request, refusal, headers, leases = uuid.uuid4().hex, None, {}, []
        spent = scope["spent"] = {}
        asked = self.asked(scope)
        try:
            async with asyncio.timeout(self.timeout):
                refusal, headers, leases = await self.ask(scope, asked, request)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("fail %s: %r", self.fail, error)
            if self.fail != "open":
                refusal = 503, "temporary-reduced-capacity", [], 1
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        if refusal:
            return await self.refuse(send, raw, *refusal)

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *raw]}
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:  # also when the client has gone, or the application failed
            await asyncio.shield(self.end(asked, leases, request, spent))

    def asked(self, scope):
        asked = []
        for policy in self.policies:
            key = policy.key(scope)
            if key is not None:
                estimate = max(1, policy.estimate(scope)) if policy.estimate else None
                asked.append(Asked(policy, f"{policy.name}:{key}", estimate))
        return asked

    async def ask(self, scope, asked, request):
        """The refusal, if it is one; the headers; the keys on which leases are held."""
        if await self.sheds(scope):
            return (503, "temporary-reduced-capacity", [], self.shed.retry_after), {}, []
        if not asked:
            return None, {}, []
        hold = ["HOLD", request, self.hold] if has_budget(asked) else []
        (limited, *_), replies = await self.redis.execute_command(*multi("RL.MULTI", asked, hold, request, {}))
        policies = [each.policy for each in asked]
        headers = fields(policies, replies, limited)
        if not limited:
            return None, headers, [each.key for each in asked if each.policy.lease]
        refusing = [(policy, reply[3]) for policy, reply in zip(policies, replies) if reply[0]]
        waits = [1 if policy.lease else seconds(retry) for policy, retry in refusing]
        wait = None if -1 in waits else max(waits)  # never: the limit is less than one request
        return (429, "quota-exceeded", [policy.name for policy, _ in refusing], wait), headers, []

    async def sheds(self, scope):
        tier = self.shed and self.shed.tier(scope)
        if not tier:
            return False
        call = ("RL.SHED", self.shed.key, self.shed.utilization(), *self.shed.options)
        shed, _ = await self.redis.execute_command(*call, "TIER", tier, "OF", self.shed.tiers)
        return shed == 1

    async def end(self, asked, leases, request, spent):
        for key in leases:
            await self.tell("RL.RELEASE", key, request)
        # Without an answer too: the call may have been decided. If it was not, nothing is held and nothing changes.
        if has_budget(asked):
            await self.tell(*multi("RL.MULTISETTLE", asked, [request, "COST", 1], request, spent))

    async def tell(self, *words):
        try:
            async with asyncio.timeout(self.timeout):
                await self.redis.execute_command(*words)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("%s failed, its lease or hold ends by itself: %r", words[0], error)

    async def refuse(self, send, headers, status, problem, violated, wait):
        retry = [] if wait is None else [(b"retry-after", str(wait).encode())]
        headers = [(b"content-type", b"application/problem+json"), *headers, *retry]
        body = json.dumps({"type": PROBLEM + problem, "status": status, "violated-policies": violated}).encode()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
