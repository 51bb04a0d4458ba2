"""fast-tools as it is published, with its limiter backend for redis-cell, on the server at the port in argv[1].

Prints how many checks passed, and of how many."""

import asyncio
import sys
import time

import aioredis
from fast_tools.base import RedisHelper
from fast_tools.limit import Rule, limit
from fast_tools.limit.backend.redis import RedisCellBackend
from starlette.requests import Request
from starlette.responses import Response

# A token a minute, three at once: CL.THROTTLE key 2 60 3600.
SLOW = Rule(hour=1, max_token_num=3, gen_token_num=60)
README = Rule(minute=1, max_token_num=16, gen_token_num=30)
ONE_IN_TWO_SECONDS = Rule(second=2, max_token_num=1, gen_token_num=1)

checks = []


def expect(what, got, *wanted):
    checks.append(got in wanted)
    if not checks[-1]:
        print(f"{what}: got {got}, wanted {wanted}", file=sys.stderr)


async def main(port):
    helper = RedisHelper()
    helper.init(await aioredis.create_pool(("127.0.0.1", port), encoding="utf-8"))
    cell = RedisCellBackend(helper)
    start = time.monotonic()

    def seconds(most):
        """What a time of `most` seconds may have become: itself, unless this machine stood still."""
        return range(most - int(time.monotonic() - start), most + 1)

    expect("redis-cell's README", await cell._call_cell("user123", README), [0, 16, 15, -1, 2])

    expect("a look at a fresh key", await cell.expected_time("alice", SLOW), 0)
    for call in range(3):
        expect(f"request {call + 1} of 3", await cell.can_next("alice", SLOW), True)
    expect("one too many", await cell.can_next("alice", SLOW), False)
    reset = [[1, 3, 0, retry, reset] for retry in seconds(60) for reset in seconds(180)]
    expect("the reply", await cell._call_cell(f"{helper.namespace}:alice", SLOW), *reset)
    expect("a look at a used up key", await cell.expected_time("alice", SLOW), *(s / 60 for s in seconds(180)))

    expect("another key", await cell.can_next("bob", SLOW, 2), True)
    expect("more than is left", await cell.can_next("bob", SLOW, 2), False)
    expect("what is left", await cell.can_next("bob", SLOW), True)

    # The library sets the key's expiry itself after each call.
    ttl = await helper.client.ttl(f"{helper.namespace}:bob")
    expect("the library's expiry", ttl, *seconds(3600))

    @limit([SLOW], backend=cell, limit_func=lambda request: (request.url.path, None))
    async def endpoint(request):
        return Response("served")

    async def status(path):
        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b"", "server": ("a", 80)}
        return (await endpoint(request=Request(scope))).status_code

    expect("the decorator", [await status("/a") for _ in range(4)], [200, 200, 200, 429])
    expect("the decorator on another path", await status("/b"), 200)

    expect("one in two seconds", await cell.can_next("carol", ONE_IN_TWO_SECONDS), True)
    wait = (await cell._call_cell(f"{helper.namespace}:carol", ONE_IN_TWO_SECONDS))[3]
    expect("its wait", wait, 1, 2)
    await asyncio.sleep(wait)
    expect("after the wait", await cell.can_next("carol", ONE_IN_TWO_SECONDS), True)


asyncio.run(main(int(sys.argv[1])))
print(f"{sum(checks)} of {len(checks)}")
sys.exit(sum(checks) < len(checks))
