"""redis-py: limits, a lease and time-outs.

    redis_sync.py [URL [PROTOCOL [SILENT_URL [cluster]]]]

Nobody answers at SILENT_URL."""

import sys
import time
from contextlib import contextmanager, suppress
from uuid import uuid4

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

OPEN, CLOSED = 200, 503  # without an answer: let it pass, or turn it away
WAIT = 2000  # how long a caller may wait for a lease, in ms


def connect(url, protocol, client=Redis, seconds=0.08):
    # No retries: the lost call may have been counted.
    patience = {"socket_timeout": seconds, "socket_connect_timeout": 0.08, "retry": Retry(NoBackoff(), 0)}
    return client.from_url(url, protocol=protocol, **patience)


def headers(name, window, reply):
    limited, limit, remaining, retry_after, reset_after = reply
    seconds = -(-(retry_after if limited else reset_after) // 1000)  # rounded up
    fields = {"RateLimit-Policy": f'"{name}";q={limit};w={window}', "RateLimit": f'"{name}";r={remaining};t={seconds}'}
    return fields | {"Retry-After": str(seconds)} if limited else fields


class Limits:
    def __init__(self, redis, waiting=None):
        self.redis = redis
        self.waiting = waiting  # for calls that wait in the server: a longer time-out, and connections of their own
        self.unanswered = 0  # set an alert on it

    def check(self, user, without_answer=OPEN):
        """The status and the headers for a request: three a minute, and all three may come at once."""
        try:
            reply = self.redis.execute_command("RL.GCRA", f"user:{user}", 2, 3, "1m")
        except RedisError:
            self.unanswered += 1
            return without_answer, {}
        return 429 if reply[0] else 200, headers("user", 60, reply)

    def plan(self, user):
        """Two a minute and 100 a day: whether both admit, and the answer of each."""
        limits = ["LIMIT", "SLIDINGWINDOW", 2, "1m", "LIMIT", "SLIDINGWINDOW", 100, "1d"]
        (limited, *_), each = self.redis.execute_command("RL.MULTI", 1, f"plan:{user}", *limits)
        return not limited, each

    def banned(self, user, address, failures=0):
        """Seconds until this address may try this user's password again. A third failure within ten minutes bans."""
        limit = [3, "10m", "10m", "GROW", 2, "MAX", "1d", "COST", failures]
        reply = self.redis.execute_command("RL.PENALTY", f"ban:{user}:{address}", *limit)
        return -(-reply[3] // 1000)

    def month(self, user, cost):
        """Whether this cost fits the user's thousand a month, by Lisbon's calendar, and what is left."""
        quota = [1000, "MONTH", "TZ", "Europe/Lisbon", "COST", cost]
        limited, _, remaining, *_ = self.redis.execute_command("RL.CALENDAR", f"month:{user}", *quota)
        return not limited, remaining

    def answer(self, user, estimate, model):
        """Asks the model, if the tokens that it may take fit into 9,000 a minute, and settles what it took."""
        key, hold, bucket = f"tokens:{user}", uuid4().hex, [9000, 9000, "1m"]
        options = ["COST", estimate, "HOLD", hold, "10m"]
        limited, *_ = self.redis.execute_command("RL.TOKENBUCKET", key, *bucket, *options)
        if limited:
            return None
        took = 0  # if the model fails
        try:
            text, took = model()
            return text
        finally:
            with suppress(RedisError):  # else the estimate stands
                self.redis.execute_command("RL.SETTLE", key, hold, "TOKENBUCKET", *bucket, "COST", took)

    @contextmanager
    def lease(self, key, capacity, ttl, wait=0):
        """Whether there is room for this piece of work, for which it waits up to so many ms. No answer is an error: then it
        is not begun."""
        lease_id = uuid4().hex
        redis, block = (self.waiting, ["BLOCK", wait]) if wait else (self.redis, [])
        try:
            limited, *_ = redis.execute_command("RL.CONCURRENT", key, capacity, ttl, lease_id, *block)
            yield not limited
        finally:
            with suppress(RedisError):  # else the lease ends by itself
                self.redis.execute_command("RL.RELEASE", key, lease_id)


def main(url="redis://127.0.0.1:6379", protocol="3", silent="redis://127.0.0.1:1", kind=""):
    client = RedisCluster if kind == "cluster" else Redis
    limits = Limits(connect(url, int(protocol), client), connect(url, int(protocol), client, WAIT / 1000 + 1))
    user = uuid4().hex  # fresh keys for each run

    answers = [limits.check(user) for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 200, 429], answers
    assert [fields["RateLimit"].split(";")[1] for _, fields in answers] == ["r=2", "r=1", "r=0", "r=0"]
    assert 1 <= int(answers[3][1]["Retry-After"]) <= 20 and "Retry-After" not in answers[0][1]
    print("1 check:", *answers[3])

    with limits.lease(f"db:{user}", 1, 30000) as first, limits.lease(f"db:{user}", 1, 30000) as second:
        assert (first, second) == (True, False)
    with limits.lease(f"db:{user}", 1, 30000) as third:
        assert third
    # The first one ends after 300 ms.
    with limits.lease(f"db:{user}", 1, 300), limits.lease(f"db:{user}", 1, 30000, wait=WAIT) as waited:
        assert waited
    print("2 lease: taken, refused, released, taken, waited for")

    plans = [limits.plan(user) for _ in range(3)]
    assert [admitted for admitted, _ in plans] == [True, True, False]
    (minute, *_), (day, _, left, *_) = plans[2][1]
    assert (minute, day, left) == (1, 0, 98)
    print("3 plan: refused by the minute, 98 left of the day")

    bans = [limits.banned(user, "203.0.113.9", failures) for failures in (1, 1, 0, 1)]
    assert bans[:3] == [0, 0, 0] and 590 <= bans[3] <= 600, bans
    assert limits.banned(user, "198.51.100.7") == 0 < limits.banned(user, "203.0.113.9")
    print("4 login: the third failure bans for ten minutes, and nobody else")

    assert [limits.month(user, cost) for cost in (999, 2, 1)] == [(True, 1), (False, 1), (True, 0)]
    print("5 month: 999 taken, 2 refused, 1 taken")

    answers = [limits.answer(user, estimate, lambda: ("hello", 4500)) for estimate in (6000, 6000, 4500)]
    assert answers == ["hello", None, "hello"], answers
    print("6 tokens: 6000 held and 4500 taken; 6000 refused, 4500 held")

    start, down = time.monotonic(), Limits(connect(silent, int(protocol)))
    assert down.check(user) == (200, {}) and down.check(user, without_answer=CLOSED) == (503, {})
    assert time.monotonic() - start < 1 and (limits.unanswered, down.unanswered) == (0, 2)
    print("7 no answer: open 200, closed 503, 2 counted")


main(*sys.argv[1:])
